"""Rules of advantage estimators."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import torch

from rlbench import masked
from rlbench.testing.inputs import make_rollout
from rlbench.testing.rule import (
    Fault,
    Rule,
    Subject,
    check_close,
    check_options,
    check_tensor,
    check_untouched,
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


def _example(subject: Subject, dtype: torch.dtype = torch.float64) -> Rollout:
    """Three interleaved groups of four: gaps, unequal lengths, a cut row and an unscorable one."""
    nan = float("nan")
    return _rollout(
        subject,
        [1.0, 0.0, 0.5, 0.0, 1.0, 2.0, 0.0, nan, 0.25, 1.0, 0.0, 3.0],
        [7, -2, 40] * 4,
        mask=[[1, 1, 1, 0, 0], [1, 0, 1, 1, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1, 1]] * 3,
        truncated=[False, False, False, True] * 3,
        dtype=dtype,
    )


def _estimate(subject: Subject, rollout: Rollout) -> Advantage:
    result = subject(rollout)
    if not isinstance(result, Advantage):
        raise Fault(f"it returned a {type(result).__name__} instead of an Advantage")
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


def options(subject: Subject) -> None:
    """The signature can be read by the host."""
    check_options(subject, data=1)


def output(subject: Subject) -> None:
    """Shape, dtype, finiteness, detachment, and the critic's targets."""
    for dtype in (torch.float32, torch.float64):
        answer = _estimate(subject, _example(subject, dtype))
        if answer.advantages.requires_grad:
            raise Fault("the advantages carry a gradient")
        if "values" in subject.needs and answer.returns is None:
            raise Fault("it needs values, but returned no returns for the critic to learn")


def inputs(subject: Subject) -> None:
    """Inputs are shared with the host and other components."""
    check_untouched(subject, _example(subject))


def determinism(subject: Subject) -> None:
    """The same rollout gives the same bits."""
    first = _estimate(subject, _example(subject)).advantages
    second = _estimate(subject, _example(subject)).advantages
    if not torch.equal(first.nan_to_num(), second.nan_to_num()):
        raise Fault("two calls with the same rollout differ")


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
        try:
            _compare(_estimate(subject, spoilt), expected, rollout.trained)
        except Fault as fault:
            where = f"with {junk} under the mask of {', '.join(names)}"
            raise Fault(f"{where}, {fault}") from fault.__cause__


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
    try:
        _compare(Advantage(close_gap(found.advantages), returns), expected, rollout.trained)
    except Fault as fault:
        told = f"with two masked tokens after the first of each row, {fault}"
        raise Fault(told) from fault.__cause__


def kl_in_reward(subject: Subject) -> None:
    """With place=reward the KL penalty lies on every token, and ``reward`` does not have it."""
    rollout = _rollout(subject, [0.0, 1.0, 0.0, 0.0], [0, 0, 0, 0], mask=[[1] * 3] * 4)
    plain = _estimate(subject, rollout)
    token_reward = rollout.token_reward.clone()
    token_reward[1, 0] -= 3.0
    charged = _estimate(subject, replace(rollout, token_reward=token_reward))
    if torch.allclose(charged.advantages, plain.advantages, rtol=1e-9, atol=1e-12):
        raise Fault("a penalty of 3 on the first token of a row changed no advantage")


def row_order(subject: Subject) -> None:
    """Groups are told by their ids, not by their place."""
    rollout = _example(subject)
    order = torch.tensor([9, 4, 11, 0, 7, 2, 1, 3, 10, 8, 5, 6])
    found = _estimate(subject, _rows(rollout, order))
    expected = _answer_rows(_estimate(subject, rollout), order)
    _compare(found, expected, rollout.trained[order])


def group_labels(subject: Subject) -> None:
    """Ids are names, not numbers."""
    rollout = _example(subject)
    renamed = replace(rollout, group=3 - 1000 * rollout.group)
    _compare(_estimate(subject, renamed), _estimate(subject, rollout), rollout.trained)


def group_sizes(subject: Subject) -> None:
    """Unscorable rows leave groups of any size, one and none among them."""
    rollout = _example(subject)
    _estimate(subject, _rows(rollout, torch.tensor([0, 1, 3, 4, 2, 6])))
    _estimate(subject, _rows(rollout, torch.tensor([0, 7, 1])))


def unscorable_rows(subject: Subject) -> None:
    """A row without a reward changes nothing for the others and learns nothing."""
    rollout = _example(subject)
    answer = _estimate(subject, rollout)
    scored = rollout.scored
    if (answer.advantages[~scored] != 0).any():
        raise Fault("a row whose reward is NaN has an advantage other than 0")
    alone = _estimate(subject, _rows(rollout, scored))
    _compare(_answer_rows(answer, scored), alone, rollout.trained[scored])


def equal_rewards(subject: Subject) -> None:
    """Equal rewards carry no signal, and rounding residue must not become one.

    A critic's values differ between equal rewards, which is a signal; here they are the same.
    """
    if not subject.group_relative:
        return
    for dtype, value, n in product(
        (torch.float32, torch.float64), (0.0, 0.1, 1 / 3, 4.2, -7.7, 1e4), (2, 3, 7, 16)
    ):
        rollout = _rollout(subject, [value] * n + [1.0, 0.0], [5] * n + [1, 1], dtype=dtype)
        if rollout.values is not None:
            rollout = replace(rollout, values=torch.full_like(rollout.values, 0.3))
        advantages = _estimate(subject, rollout).advantages[:n]
        if (advantages != 0).any():
            worst = advantages.abs().max().item()
            raise Fault(f"{n} equal rewards of {value:.6g} in {dtype} gave {worst:.3g}")


def sign(subject: Subject) -> None:
    """Positive means better than expected."""
    rollout = _rollout(subject, [0.0, 1.0, 0.0, 0.0], [0, 0, 0, 0])
    if rollout.values is not None:
        rollout = replace(rollout, values=torch.zeros_like(rollout.values))
    mean = _estimate(subject, rollout).advantages.mean(1)
    if not mean[1] > mean[[0, 2, 3]].max():
        raise Fault(f"rewards 0, 1, 0, 0 gave mean advantages {mean.tolist()}")


def large_rewards(subject: Subject) -> None:
    """Finite rewards give finite advantages."""
    for reward in ([1e4, -1e4, 1e4, 0.0], [1.0, 1.0 + 2e-7, 1.0, 1.0], [-1e4, -1e4, -1e4, 1e-30]):
        _estimate(subject, _rollout(subject, reward, [0, 0, 0, 0], dtype=torch.float32))


RULES = tuple(
    Rule(name=test.__name__, says=says, mend=mend, test=test)
    for test, says, mend in (
        (
            options,
            "one rollout, then keyword-only options with defaults",
            "Write f(rollout, *, option: float = 1.0)",
        ),
        (
            output,
            "advantages have the shape and dtype of token_reward, finite and detached",
            "Return Advantage(advantages, returns), and declare in needs= what you read",
        ),
        (inputs, "inputs are not changed", "Work on new tensors: x - y, not x -= y"),
        (determinism, "the same rollout gives the same answer", "Draw nothing at random"),
        (
            masked_tokens,
            "masked tokens do not matter",
            "Select with torch.where(rollout.trained, x, 0); NaN * 0 is NaN",
        ),
        (
            padding,
            "the padding width does not matter",
            "Take means over rollout.trained, never over the width",
        ),
        (
            gaps,
            "moving tokens apart by masked ones moves only the answer",
            "Step from each trained token to the next: carry values and sums over a False",
        ),
        (
            kl_in_reward,
            "a penalty in token_reward reaches the answer",
            "Read token_reward, summed over rollout.trained; reward has no KL penalty in it",
        ),
        (
            row_order,
            "the order of rows does not matter",
            "Group by rollout.group (rlbench.masked.group_mean), not by reshape",
        ),
        (
            group_labels,
            "group ids are only names",
            "Use rlbench.masked.group_mean, which takes any ids",
        ),
        (
            group_sizes,
            "groups may have any size",
            "Divide by max(n - 1, 1) and give a group of one 0",
        ),
        (
            unscorable_rows,
            "rows without a reward take no part",
            "Use rollout.scored in every statistic, and give those rows 0",
        ),
        (
            equal_rewards,
            "a group of equal rewards gives exactly 0",
            "Ask rlbench.masked.group_constant before dividing",
        ),
        (sign, "a better outcome has a higher advantage", "Positive means better than expected"),
        (
            large_rewards,
            "finite rewards give finite advantages",
            "Take statistics in float64 and add an eps to what you divide by",
        ),
    )
)
