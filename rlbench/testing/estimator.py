"""Rules of advantage estimators."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import torch

from rlbench import masked
from rlbench.testing.inputs import make_rollout
from rlbench.testing.rule import (
    Differs,
    Fault,
    Subject,
    Unanswered,
    check_close,
    check_options,
    check_tensor,
    check_untouched,
    rule,
    undeclared_needs,
    when,
)
from rlbench.types import Advantage, Rollout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

OPTIONAL = ("values", "last_value", "greedy_reward", "ref_logp")


def _rollout(subject: Subject, reward: list[float], group: list[int], **wide: Any) -> Rollout:
    """A rollout with exactly what the component declares that it needs."""
    rows, width = len(reward), len(wide["mask"][0]) if "mask" in wide else 2
    draw = torch.Generator().manual_seed(0)
    extras = {
        "values": torch.rand(rows, width, generator=draw, dtype=torch.float64),
        "ref_logp": -torch.rand(rows, width, generator=draw, dtype=torch.float64),
        "last_value": torch.rand(rows, generator=draw, dtype=torch.float64),
        "greedy_reward": torch.full((rows,), 0.25, dtype=torch.float64),
    }
    given = {name: extras[name] for name in OPTIONAL if name in subject.needs}
    defaults: dict[str, Any] = {"mask": [[1] * width] * rows, "dtype": torch.float64}
    return make_rollout(reward=reward, group=group, **defaults | given | wide)


def _example(
    subject: Subject, dtype: torch.dtype = torch.float64, *, eighth: float = torch.nan
) -> Rollout:
    """Three interleaved groups of four: gaps, unequal lengths, a cut row and an unscorable one."""
    return _rollout(
        subject,
        [1.0, 0.0, 0.5, 0.0, 1.0, 2.0, 0.0, eighth, 0.25, 1.0, 0.0, 3.0],
        [7, -2, 40] * 4,
        mask=[[1, 1, 1, 0, 0], [1, 0, 1, 1, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1, 1]] * 3,
        truncated=[False, False, False, True] * 3,
        dtype=dtype,
    )


def _plain(subject: Subject, dtype: torch.dtype = torch.float64) -> Rollout:
    """The same, and all rows have a reward."""
    return _example(subject, dtype, eighth=1.0)


def _estimate(subject: Subject, rollout: Rollout) -> Advantage:
    result = subject(rollout)
    if not isinstance(result, Advantage):
        raise Unanswered(f"it returned a {type(result).__name__} instead of an Advantage")
    check_tensor("advantages", result.advantages, rollout.token_reward, rollout.trained)
    if result.returns is not None:
        check_tensor("returns", result.returns, rollout.token_reward, rollout.trained)
    return result


def _compare(found: Advantage, expected: Advantage, where: Tensor) -> None:
    check_close("the advantage", found.advantages, expected.advantages, where)
    if found.returns is not None and expected.returns is not None:
        check_close("the return", found.returns, expected.returns, where)


def _rows(rollout: Rollout, index: Tensor) -> Rollout:
    """Select or reorder rows."""
    tensors = {f.name: getattr(rollout, f.name) for f in fields(rollout)}
    chosen: dict[str, Any] = {k: None if x is None else x[index] for k, x in tensors.items()}
    return Rollout(**chosen)


def _answer_rows(answer: Advantage, index: Tensor) -> Advantage:
    returns = None if answer.returns is None else answer.returns[index]
    return Advantage(answer.advantages[index], returns)


def _wide(rollout: Rollout) -> list[str]:
    """Names of the (B, T) tensors of numbers that there are."""
    names = ("token_reward", "old_logp", "ref_logp", "values")
    return [name for name in names if getattr(rollout, name) is not None]


def _replace_wide(rollout: Rollout, change: Any, names: Sequence[str] | None = None) -> Rollout:
    """Apply a function to (B, T) tensors of numbers, to all or to those that are named."""
    changed = {name: change(getattr(rollout, name)) for name in names or _wide(rollout)}
    return replace(rollout, **changed)


@rule(
    "one rollout, then keyword-only options with defaults",
    "Write f(rollout, *, option: float = 1.0)",
    explains=Unanswered,
)
def options(subject: Subject) -> None:
    """The signature can be read by the host."""
    check_options(subject, data=1)


@rule(
    "advantages have the shape and dtype of token_reward, finite and detached",
    "Return Advantage(advantages, returns), with one finite number for each token: "
    "outcome[:, None].expand(rollout.mask.shape)",
    explains=Unanswered,
)
def output(subject: Subject) -> None:
    """Shape, dtype, finiteness, detachment, and the critic's targets."""
    for dtype in (torch.float32, torch.float64):
        with undeclared_needs(subject, _plain, OPTIONAL):
            answer = _estimate(subject, _plain(subject, dtype))
        for what, x in (("advantages", answer.advantages), ("returns", answer.returns)):
            if x is not None and x.requires_grad:
                raise Fault(f"the {what} carry a gradient", "Detach them: x.detach()")
        if "values" in subject.needs and answer.returns is None:
            raise Fault("it needs values, but returned no returns for the critic to learn")


@rule("the same rollout gives the same answer", "Draw nothing at random", explains=Differs)
def determinism(subject: Subject) -> None:
    """The same rollout gives the same bits."""
    first, second = (_estimate(subject, _plain(subject)).advantages for _ in range(2))
    if not torch.equal(first.nan_to_num(), second.nan_to_num()):
        raise Differs("two calls with the same rollout differ")


@rule(
    "groups may have any size",
    "Take rows by rollout.group, however many, divide by max(n - 1, 1) and give a group of one 0",
    explains=Unanswered,
)
def group_sizes(subject: Subject) -> None:
    """Unscorable rows leave groups of any size, one among them."""
    rollout = _rows(_plain(subject), torch.tensor([0, 1, 3, 4, 2, 6]))
    with when("with groups of three, two and one"):
        _estimate(subject, rollout)


@rule(
    "rows without a reward take no part",
    "Use rollout.scored in every statistic, and give those rows 0",
    explains=Unanswered,
)
def unscorable_rows(subject: Subject) -> None:
    """A row without a reward changes nothing for the others and learns nothing."""
    rollout = _example(subject)
    with when("with a reward of NaN"):
        answer = _estimate(subject, rollout)
    scored = rollout.scored
    if (answer.advantages[~scored] != 0).any():
        raise Fault("a row whose reward is NaN has an advantage other than 0")
    alone = _estimate(subject, _rows(rollout, scored))
    with when("beside a reward of NaN"):
        _compare(_answer_rows(answer, scored), alone, rollout.trained[scored])
    with when("with a group whose only reward is NaN"):
        _estimate(subject, _rows(rollout, torch.tensor([0, 7, 2])))


@rule("inputs are not changed", "Work on new tensors: x - y, not x -= y")
def inputs(subject: Subject) -> None:
    """Inputs are shared with the host and other components."""
    check_untouched(subject, _example(subject))


@rule(
    "masked tokens do not matter",
    "Select with torch.where(rollout.trained, x, 0); NaN * 0 is NaN",
)
def masked_tokens(subject: Subject) -> None:
    """Anything may lie under a False."""
    rollout = _example(subject)
    expected = _estimate(subject, rollout)
    # Each alone, too: junk in two tensors can cancel, and inf - inf can become 0.
    alone = [[name] for name in _wide(rollout)]
    for names, junk in product([_wide(rollout), *alone], (torch.nan, torch.inf, -torch.inf, 1e30)):
        spoilt = _replace_wide(
            rollout, lambda x, j=junk: masked.select(x, rollout.trained, j), names
        )
        with when(f"with {junk} under the mask of {', '.join(names)}"):
            _compare(_estimate(subject, spoilt), expected, rollout.trained)


@rule("the padding width does not matter", "Take means over rollout.trained, never over the width")
def padding(subject: Subject) -> None:
    """The padded width depends on what else is in the batch."""
    rollout = _example(subject)
    expected = _estimate(subject, rollout)
    rows, width = rollout.mask.shape

    def widen(x: Tensor) -> Tensor:
        return torch.cat([x, torch.full((rows, 45), 7.0).to(x.dtype)], dim=1)

    wide: dict[str, Any] = {
        name: None if x is None else widen(x)
        for name, x in vars(rollout).items()
        if name in ("completion_ids", "token_reward", "old_logp", "ref_logp", "values")
    }
    blank = torch.zeros(rows, 45, dtype=torch.bool)
    wider = replace(rollout, mask=torch.cat([rollout.mask, blank], dim=1), **wide)
    found = _estimate(subject, wider)
    returns = None if found.returns is None else found.returns[:, :width]
    _compare(Advantage(found.advantages[:, :width], returns), expected, rollout.trained)


@rule(
    "moving tokens apart by masked ones moves only the answer",
    "Step from each trained token to the next: carry values and sums over a False",
)
def gaps(subject: Subject) -> None:
    """What the policy did not write, a tool's answer say, is no step of its own.

    The gap is at the same place in all rows, so that a statistic of each position keeps its rows.
    """
    rollout = _example(subject)
    expected = _estimate(subject, rollout)
    rows = len(rollout.mask)

    def open_gap(x: Tensor) -> Tensor:
        return torch.cat([x[:, :1], torch.zeros(rows, 2, dtype=x.dtype), x[:, 1:]], dim=1)

    def close_gap(x: Tensor) -> Tensor:
        return torch.cat([x[:, :1], x[:, 3:]], dim=1)

    wide = ("completion_ids", "mask", *_wide(rollout))
    found = _estimate(subject, _replace_wide(rollout, open_gap, wide))
    returns = None if found.returns is None else close_gap(found.returns)
    with when("with two masked tokens after the first of each row"):
        _compare(Advantage(close_gap(found.advantages), returns), expected, rollout.trained)


@rule(
    "a penalty in token_reward reaches the answer",
    "Read token_reward, summed over rollout.trained; reward has no KL penalty in it",
)
def kl_in_reward(subject: Subject) -> None:
    """With place=reward the KL penalty lies on every token, and ``reward`` does not have it."""
    rollout = _rollout(subject, [0.0, 1.0, 0.0, 0.0], [0, 0, 0, 0], mask=[[1] * 3] * 4)
    plain = _estimate(subject, rollout)
    token_reward = rollout.token_reward.clone()
    token_reward[1, 0] -= 3.0
    charged = _estimate(subject, replace(rollout, token_reward=token_reward))
    if torch.allclose(charged.advantages, plain.advantages, rtol=1e-9, atol=1e-12):
        raise Fault("a penalty of 3 on the first token of a row changed no advantage")


@rule(
    "the order of rows does not matter",
    "Group by rollout.group (rlbench.masked.group_mean), not by reshape",
)
def row_order(subject: Subject) -> None:
    """Groups are told by their ids, not by their place."""
    rollout = _example(subject)
    order = torch.tensor([9, 4, 11, 0, 7, 2, 1, 3, 10, 8, 5, 6])
    found = _estimate(subject, _rows(rollout, order))
    expected = _answer_rows(_estimate(subject, rollout), order)
    _compare(found, expected, rollout.trained[order])


@rule("group ids are only names", "Use rlbench.masked.group_mean, which takes any ids")
def group_labels(subject: Subject) -> None:
    """Ids are names, not numbers."""
    rollout = _example(subject)
    renamed = replace(rollout, group=3 - 1000 * rollout.group)
    _compare(_estimate(subject, renamed), _estimate(subject, rollout), rollout.trained)


@rule(
    "a group of equal rewards gives exactly 0",
    "Ask rlbench.masked.group_constant before dividing",
)
def equal_rewards(subject: Subject) -> None:
    """Equal rewards carry no signal, and rounding residue must not become one.

    A critic's values differ between equal rewards, which is a signal; here they are the same.
    """
    if not subject.group_relative:
        return
    for dtype, value, n in product(
        (torch.float32, torch.float64), (0.0, 0.1, 1 / 3, 4.2, -7.7, 1e4), (2, 3, 7, 16)
    ):
        reward, group = [value] * n + [1.0, 0.0], [5] * n + [1, 1]
        # of unequal length, so that a mean over all tokens is not 0
        mask = [[1, 1]] * (n + 1) + [[1, 0]]
        rollout = _rollout(subject, reward, group, mask=mask, dtype=dtype)
        if rollout.values is not None:
            rollout = replace(rollout, values=torch.full_like(rollout.values, 0.3))
        advantages = _estimate(subject, rollout).advantages[:n]
        if (advantages != 0).any():
            worst = advantages.abs().max().item()
            raise Fault(f"{n} equal rewards of {value:.6g} in {dtype} gave {worst:.3g}")


@rule("a better outcome has a higher advantage", "Positive means better than expected")
def sign(subject: Subject) -> None:
    """Positive means better than expected."""
    rollout = _rollout(subject, [0.0, 1.0, 0.0, 0.0], [0, 0, 0, 0])
    if rollout.values is not None:
        rollout = replace(rollout, values=torch.zeros_like(rollout.values))
    mean = _estimate(subject, rollout).advantages.mean(1)
    if not mean[1] > mean[[0, 2, 3]].max():
        raise Fault(f"rewards 0, 1, 0, 0 gave mean advantages {mean.tolist()}")


@rule(
    "finite rewards give finite advantages",
    "Take statistics in float64 and add an eps to what you divide by",
)
def large_rewards(subject: Subject) -> None:
    """Finite rewards give finite advantages."""
    for reward in ([1e4, -1e4, 1e4, 0.0], [1.0, 1.0 + 2e-7, 1.0, 1.0], [-1e4, -1e4, -1e4, 1e-30]):
        with when(f"with rewards {reward}"):
            _estimate(subject, _rollout(subject, reward, [0, 0, 0, 0], dtype=torch.float32))


@rule(
    "a NaN in what it reads stays visible",
    "Do not replace NaN (nan_to_num, nanmean, a comparison that is False for it); the host "
    "has to see it to fail the run",
)
def nan_visible(subject: Subject) -> None:
    """A broken critic or reference must fail its run, not train on.

    A number counts as read if one more or one less moves the answer. That a row could not be scored
    is said by ``reward``, and by ``greedy_reward`` of a baseline, so NaN in those is no fault.
    """
    rollout = _example(subject)
    expected = _estimate(subject, rollout)
    live = [cell for cell in rollout.trained.nonzero().tolist() if cell[0] in (0, 3)]
    names = [name for name in ("last_value", *_wide(rollout)) if getattr(rollout, name) is not None]
    for name, cell in product(names, live):
        place = cell[: getattr(rollout, name).ndim]
        if _shows_nan(subject, _moved(rollout, name, place, torch.nan)):
            continue
        for step in (1.0, -1.0):
            answer = _estimate(subject, _moved(rollout, name, place, step))
            try:
                _compare(answer, expected, rollout.trained)
            except Differs:
                where = ", token ".join(map(str, place))
                told = f"a NaN in {name} at row {where} left every advantage finite"
                raise Differs(told) from None


def _moved(rollout: Rollout, name: str, place: list[int], by: float) -> Rollout:
    """Add to one number of a tensor."""
    x = getattr(rollout, name).clone()
    x[tuple(place)] += by
    return replace(rollout, **{name: x})


def _shows_nan(subject: Subject, rollout: Rollout) -> bool:
    """Whether the answer is not finite at some trained token, or is refused."""
    try:
        _estimate(subject, rollout)
    except Unanswered:
        return True
    return False


RULES = (
    options,
    output,
    determinism,
    group_sizes,
    unscorable_rows,
    inputs,
    masked_tokens,
    padding,
    gaps,
    kl_in_reward,
    row_order,
    group_labels,
    equal_rewards,
    sign,
    large_rewards,
    nan_visible,
)
