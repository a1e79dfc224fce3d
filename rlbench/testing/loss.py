"""Rules of policy losses."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import torch

from rlbench import masked
from rlbench.testing.inputs import make_batch
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
from rlbench.types import LossTerms, PolicyBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

ROW_ADVANTAGES = (1.0, -0.5, 2.0, -1.5, 0.25, -2.0)
MASK = ([1, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 0])
# Ratios of 0.6 to 1.65, none on the edge of a usual clipping range.
LOG_RATIOS = (
    [0.05, -0.5, 0.5, 0.1],
    [-0.05, 0.1, 0.5, -0.5],
    [0.5, -0.1, 0.0, 0.1],
    [-0.5, 0.05, -0.05, 0.5],
    [0.1, 0.0, 0.5, 0.0],
    [0.5, -0.5, 0.1, 0.1],
)
ON_PURPOSE = "; if that is on purpose, register with exceptions={'pushed_back': 'why'}"
WIDE = ("logp", "old_logp", "advantages", "entropy", "ref_logp")


def _batch(subject: Subject, log_ratios: Any, advantages: Any, **more: Any) -> PolicyBatch:
    """A batch with exactly what the component declares that it needs."""
    dtype = more.pop("dtype", torch.float64)
    ratio = torch.tensor(log_ratios, dtype=dtype)
    start = -1.0 - 0.1 * torch.arange(ratio.numel(), dtype=dtype).reshape(ratio.shape)
    reference = start - 0.3 if "ref_logp" in subject.needs else None
    # The log-probability of a sure token is 0, so large ratios come from an old one far below.
    logp = (start + ratio).clamp(max=0)
    return make_batch(
        logp=logp.requires_grad_(),
        old_logp=logp.detach() - ratio,
        advantages=advantages,
        ref_logp=reference,
        dtype=dtype,
        **more,
    )


def _example(subject: Subject, dtype: torch.dtype = torch.float64) -> PolicyBatch:
    """Six completions in three interleaved groups, after some steps away from the old policy."""
    return _batch(
        subject,
        LOG_RATIOS,
        [[a] * 4 for a in ROW_ADVANTAGES],
        mask=MASK,
        group=[3, -1, 8, 3, -1, 8],
        reward=[1.0, 0.0, 1.0, 0.0, 0.5, 0.0],
        dtype=dtype,
    )


def _terms(subject: Subject, batch: PolicyBatch) -> LossTerms:
    terms = subject(batch)
    if not isinstance(terms, LossTerms):
        raise Unanswered(f"it returned a {type(terms).__name__} instead of LossTerms")
    check_tensor("per_token", terms.per_token, batch.logp, batch.mask)
    return terms


def _gradient(
    subject: Subject, batch: PolicyBatch, weight: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Loss (B, T), 0 outside the mask, and the gradient of its weighted sum for logp."""
    loss = masked.select(_terms(subject, batch).per_token, batch.mask)
    if not loss.requires_grad:
        raise Unanswered("no gradient reaches logp")
    total = loss.sum() if weight is None else (loss * weight).sum()
    (gradient,) = torch.autograd.grad(total, batch.logp, allow_unused=True)
    if gradient is None:
        raise Unanswered("no gradient reaches logp")
    return loss.detach(), gradient


def _check_same(subject: Subject, batch: PolicyBatch, expected: tuple[Tensor, Tensor]) -> None:
    loss, gradient = _gradient(subject, batch)
    check_close("the loss", loss, expected[0], batch.mask)
    check_close("the gradient", gradient, expected[1], torch.ones_like(batch.mask))


def _change(batch: PolicyBatch, change: Any, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Apply a function to (B, T) tensors of numbers, all or those named; logp stays a leaf."""
    given = {name: getattr(batch, name) for name in names or _wide(batch)}
    changed = {name: change(x.detach()) for name, x in given.items()}
    logp = changed.get("logp", batch.logp)
    return changed | {"logp": logp.detach().clone().requires_grad_()}


def _wide(batch: PolicyBatch) -> list[str]:
    """Names of the (B, T) tensors of numbers that there are."""
    return [name for name in WIDE if getattr(batch, name) is not None]


@rule(
    "one batch, then keyword-only options with defaults",
    "Write f(batch, *, option: float = 1.0)",
    explains=Unanswered,
)
def options(subject: Subject) -> None:
    """The signature can be read by the host."""
    check_options(subject, data=1)


@rule(
    "the loss and its metrics have the shape and dtype of logp",
    "Return LossTerms(per_token, metrics), one number for each token; the host aggregates",
    explains=Unanswered,
)
def unreduced(subject: Subject) -> None:
    """Aggregation is a setting of its own."""
    for dtype in (torch.float32, torch.float64):
        batch = _example(subject, dtype)
        with undeclared_needs(subject, _example, ("ref_logp",)):
            terms = _terms(subject, batch)
        for name, metric in terms.metrics.items():
            try:
                check_tensor(f"metric {name}", metric, batch.logp, batch.mask)
            except Unanswered as fault:  # the other rules look at the loss alone
                raise Fault(str(fault), fault.mend) from None
            if metric.requires_grad:
                raise Fault(f"metric {name} carries a gradient", "Detach it: x.detach()")


@rule(
    "a gradient reaches logp",
    "Compute the loss from batch.logp itself, without detach, item, no_grad or a new tensor of it",
    explains=Unanswered,
)
def trainable(subject: Subject) -> None:
    """Without one there is nothing to train."""
    batch = _example(subject)
    _, found = _gradient(subject, batch)
    if not found[batch.mask].any():
        raise Fault("the gradient for logp is 0 at every token")


@rule("the same batch gives the same answer", "Draw nothing at random", explains=Differs)
def determinism(subject: Subject) -> None:
    """The same batch gives the same bits."""
    first, second = (_gradient(subject, _example(subject)) for _ in range(2))
    if not all(
        torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(first, second, strict=True)
    ):
        raise Differs("two calls with the same batch differ")


@rule("inputs are not changed", "Work on new tensors: x - y, not x -= y")
def inputs(subject: Subject) -> None:
    """Inputs are shared with the host and other components."""
    check_untouched(subject, _example(subject))


@rule(
    "masked tokens do not matter",
    "Select with torch.where before exp, not after; NaN * 0 is NaN, in gradients too",
)
def masked_tokens(subject: Subject) -> None:
    """Anything may lie under a False, and no gradient goes there."""
    batch = _example(subject)
    loss, gradient = _gradient(subject, batch)
    expected = (loss, masked.select(gradient, batch.mask))
    # Each alone, too: junk in two tensors can cancel, and inf - inf can become 0.
    alone = [[name] for name in _wide(batch)]
    for names, junk in product([_wide(batch), *alone], (torch.nan, torch.inf, -torch.inf, 1e30)):
        changed = _change(batch, lambda x, j=junk: masked.select(x, batch.mask, j), names)
        with when(f"with {junk} under the mask of {', '.join(names)}"):
            _check_same(subject, replace(batch, **changed), expected)


@rule("the padding width does not matter", "Take means over batch.mask, never over the width")
def padding(subject: Subject) -> None:
    """The padded width depends on what else is in the batch."""
    batch = _example(subject)
    expected = [torch.nn.functional.pad(x, (0, 45)) for x in _gradient(subject, batch)]
    changed = _change(batch, lambda x: torch.nn.functional.pad(x, (0, 45), value=-7.0))
    wider = replace(batch, mask=torch.nn.functional.pad(batch.mask, (0, 45)), **changed)
    _check_same(subject, wider, (expected[0], expected[1]))


@rule("the order of rows does not matter", "Group by batch.group, not by reshape")
def row_order(subject: Subject) -> None:
    """Rows are told apart by what they hold."""
    batch = _example(subject)
    order = torch.tensor([4, 0, 5, 2, 1, 3])
    loss, gradient = _gradient(subject, batch)
    narrow = {
        name: getattr(batch, name)[order] for name in ("mask", "group", "reward", "truncated")
    }
    moved = replace(batch, **_change(batch, lambda x: x[order]), **narrow)
    _check_same(subject, moved, (loss[order], gradient[order]))


@rule(
    "a batch of one group gives what the whole step gives",
    "If it compares tokens across groups on purpose, register with needs=('whole_step',)",
)
def microbatches(subject: Subject) -> None:
    """The host may hand over an optimiser step in parts, each of whole groups."""
    if "whole_step" in subject.needs:
        return
    batch = _example(subject)
    loss, gradient = _gradient(subject, batch)
    for label in set(batch.group.tolist()):
        rows = batch.group == label
        narrow = {
            name: getattr(batch, name)[rows] for name in ("mask", "group", "reward", "truncated")
        }
        part = replace(batch, **_change(batch, lambda x, r=rows: x[r]), **narrow)
        _check_same(subject, part, (loss[rows], gradient[rows]))


@rule("group ids are only names", "Use rlbench.masked.group_mean")
def group_labels(subject: Subject) -> None:
    """Ids are names, not numbers."""
    batch = _example(subject)
    expected = _gradient(subject, batch)
    _check_same(subject, replace(batch, group=3 - 1000 * batch.group), expected)


@rule(
    "a step raises the log-prob where the advantage is positive",
    "Return what is to be minimised: -A times something that grows with logp",
)
def sign(subject: Subject) -> None:
    """Minimising must raise what was better than expected."""
    advantages = [[a] * 4 for a in ROW_ADVANTAGES]
    batch = _batch(subject, [[0.0] * 4] * 6, advantages, mask=MASK)
    _, gradient = _gradient(subject, batch)
    gain = -masked.total(gradient * batch.advantages, batch.mask)
    if not gain > 0:
        raise Fault(
            "a step on the first batch lowers log-probabilities where the advantage is positive"
        )


@rule(
    "on-policy the gradient is that of -A logp",
    "If that is on purpose, register with exceptions={'on_policy_gradient': 'why'}",
)
def on_policy_gradient(subject: Subject) -> None:
    """Before the first step every loss is the policy gradient."""
    advantages = [[a] * 4 for a in ROW_ADVANTAGES]
    batch = _batch(subject, [[0.0] * 4] * 6, advantages, mask=MASK)
    _, gradient = _gradient(subject, batch)
    check_close("the gradient", gradient, -batch.advantages, batch.mask)


@rule(
    "a token that moved against its advantage is pushed back",
    "Of the free and the clipped loss take the larger: torch.maximum(-A * r, -A * clipped)"
    + ON_PURPOSE,
)
def pushed_back(subject: Subject) -> None:
    """A bound may stop what went far enough, and never the way back.

    At ratios of 0.61 and 1.65, beyond the usual clipping ranges; whole rows, since the ratio may be
    one of a row. Where a token moved with its advantage, a loss may do anything.
    """
    ratios = [[-0.5 if a > 0 else 0.5] * 4 for a in ROW_ADVANTAGES]
    batch = _batch(subject, ratios, [[a] * 4 for a in ROW_ADVANTAGES], mask=MASK)
    _, found = _gradient(subject, batch)
    gain = -found * batch.advantages
    bad = batch.mask & ~(gain > 0)
    if bad.any():
        row, token = bad.nonzero()[0].tolist()
        advantage, ratio = ROW_ADVANTAGES[row], math.exp(ratios[row][token])
        where = f"a token of advantage {advantage:g} and ratio {ratio:.2f}"
        if gain[row, token] < 0:
            raise Fault(
                f"{where} is driven further away",
                "Check the signs where a ratio is not 1" + ON_PURPOSE,
            )
        raise Fault(f"{where} has no gradient")


@rule(
    "log-ratios of 100 give finite losses and gradients",
    "Use rlbench.divergence.importance_ratio, which limits the exponent",
)
def extreme_ratios(subject: Subject) -> None:
    """float32 overflows in exp at 89."""
    for log_ratio in (100.0, -100.0):
        for advantage in (0.0, 1e4, -1e4):
            batch = _batch(
                subject,
                [[log_ratio] * 3, [0.0, log_ratio, 0.0]],
                [[advantage] * 3] * 2,
                dtype=torch.float32,
            )
            with when(f"at log-ratio {log_ratio:g} and advantage {advantage:g}"):
                _, gradient = _gradient(subject, batch)
                check_tensor("the gradient", gradient, batch.logp, batch.mask)


@rule("a NaN log-prob stays visible", "Do not replace NaN; the host has to see it to fail the run")
def nan_visible(subject: Subject) -> None:
    """A broken policy must fail its run, not train on. To refuse it is as good."""
    for advantage in (1.0, -1.0):
        batch = _batch(subject, [[0.0, 0.0], [0.0, 0.0]], [[advantage] * 2] * 2)
        _gradient(subject, batch)
        logp = batch.logp.detach().clone()
        logp[0, 1] = torch.nan
        try:
            terms = _terms(subject, replace(batch, logp=logp.requires_grad_()))
        except Unanswered:
            continue
        raise Fault(f"a NaN log-prob became a loss of {terms.per_token[0, 1].item():g}")


@rule(
    "the gradient is that of the value",
    "If a weight is detached on purpose, declare exceptions={'value_gradient': 'why'}",
)
def value_gradient(subject: Subject) -> None:
    """The gradient belongs to the value: central differences in float64."""
    batch = _example(subject)
    weight = torch.linspace(0.5, 1.5, batch.mask.numel(), dtype=torch.float64)
    weight = weight.reshape(batch.mask.shape)
    _, found = _gradient(subject, batch, weight)
    expected = torch.zeros_like(found)
    step = 1e-5
    for row, token in batch.mask.nonzero().tolist():
        ends = []
        for side in (step, -step):
            logp = batch.logp.detach().clone()
            logp[row, token] += side
            per_token = _terms(subject, replace(batch, logp=logp)).per_token.detach()
            ends.append(masked.total(per_token * weight, batch.mask))
        expected[row, token] = (ends[0] - ends[1]) / (2 * step)
    rounded = torch.where((found - expected).abs() < 1e-6, found, expected)
    check_close("the gradient", found, rounded, batch.mask)


RULES = (
    options,
    unreduced,
    trainable,
    determinism,
    inputs,
    masked_tokens,
    padding,
    row_order,
    microbatches,
    group_labels,
    sign,
    on_policy_gradient,
    pushed_back,
    extreme_ratios,
    nan_visible,
    value_gradient,
)
