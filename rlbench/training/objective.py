"""What one optimiser step minimises.

``L = aggregate(policy loss) + coef * aggregate(KL) - entropy_coef * aggregate(entropy)``

The weights of the aggregation are computed once for the whole step, so splitting the step into
microbatches changes the memory it takes and not its gradient. Losses that select tokens over the
whole step, ``needs=("whole_step",)``, get it in one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from rlbench import aggregation, masked
from rlbench.aggregation import weighted_sum
from rlbench.divergence import LOG_RATIO_LIMIT, exact_kl, kl_estimate
from rlbench.divergence import entropy as entropy_of
from rlbench.errors import ComponentError, Diverged
from rlbench.training import border
from rlbench.training.distribution import chosen
from rlbench.training.sampling import log_probs_of
from rlbench.types import PolicyBatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from rlbench.training.parts import Parts
    from rlbench.training.rollout import Collected
    from rlbench.training.spec import RunSpec
    from rlbench.types import Advantage


@dataclass(frozen=True, kw_only=True)
class StepReport:
    """What one optimiser step saw, summed over its trained tokens."""

    loss: float  # the objective, as minimised
    tokens: int
    rows: int  # completions with a trained token
    sums: Mapping[str, float]  # entropy, kl_old, clamped ratios, the metrics of the policy loss
    log_ratio_error: float  # largest |logp - old_logp|


def rows_of(groups: Tensor, group_size: int) -> Tensor:
    """Row numbers of whole groups: (K,) to (K * G,)."""
    return (groups[:, None] * group_size + torch.arange(group_size)).reshape(-1)


def microbatches_of(spec: RunSpec, groups: Tensor) -> tuple[Tensor, ...]:
    """Split the groups of an optimiser step into forward passes."""
    whole = "whole_step" in spec.selections["loss"].component.needs
    return groups.tensor_split(1 if whole else min(spec.settings.microbatches, len(groups)))


def backward(
    parts: Parts, collected: Collected, advantage: Advantage, groups: Tensor, coef: float
) -> StepReport:
    """Add the gradients of one optimiser step to the policy's parameters.

    Args:
        parts: The run.
        collected: The whole rollout.
        advantage: Of the whole rollout.
        groups: Numbers of the groups in this step: (K,).
        coef: Coefficient of the KL penalty.

    Returns:
        The loss and the sums of the loss's metrics; tokens = 0 if nothing could be trained on, and
        then there are no gradients.

    Raises:
        ComponentError: If the policy loss breaks its contract.
        Diverged: If the loss, or the policy's log-probability of a trained token, is not finite.
    """
    settings, rollout = parts.spec.settings, collected.rollout
    step = rows_of(groups, settings.group_size)
    trained = rollout.trained[step]
    tokens = int(trained.sum())
    if tokens == 0:
        return StepReport(loss=0.0, tokens=0, rows=0, sums={}, log_ratio_error=0.0)
    microbatches = microbatches_of(parts.spec, groups)
    weights = aggregation.weights(
        trained,
        settings.aggregation,
        horizon=settings.horizon or parts.task.completion_limit,
        group=rollout.group[step],
        parts=[len(part) * settings.group_size for part in microbatches],
        count_masked_rows=settings.count_masked_rows,
        dtype=rollout.old_logp.dtype,
    )
    loss, sums, error, done = 0.0, dict[str, float](), 0.0, 0
    for part in microbatches:
        rows = rows_of(part, settings.group_size)
        share = weights[done : done + len(rows)]
        done += len(rows)
        objective, batch, metrics = _microbatch(
            parts, collected, advantage, part, weights=share, coef=coef
        )
        if not bool(objective.isfinite()):
            raise Diverged(f"the loss is {objective.item()}")
        if objective.requires_grad:
            objective.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        loss += float(objective.detach())
        for name, metric in metrics.items():
            sums[name] = sums.get(name, 0.0) + float(masked.total(metric.double(), batch.mask))
        error = max(error, float(masked.select(_gap(batch), batch.mask).max()))
    rows_trained = int(trained.any(1).sum())
    return StepReport(loss=loss, tokens=tokens, rows=rows_trained, sums=sums, log_ratio_error=error)


def _microbatch(
    parts: Parts,
    collected: Collected,
    advantage: Advantage,
    groups: Tensor,
    *,
    weights: Tensor,
    coef: float,
) -> tuple[Tensor, PolicyBatch, Mapping[str, Tensor]]:
    """One forward pass over whole groups: their share of the objective, and what it saw."""
    settings = parts.spec.settings
    batch, entropy, log_probs = _forward(parts, collected, advantage, groups)
    terms = border.loss_terms(parts.spec.selections["loss"], parts.loss, batch)
    objective = weighted_sum(terms.per_token, weights)
    if parts.kl_place == "loss" and coef > 0 and batch.ref_logp is not None:
        penalty = _penalty(parts, collected, groups, batch, log_probs)
        objective = objective + coef * weighted_sum(penalty, weights)
    if settings.entropy_coef > 0:
        objective = objective - settings.entropy_coef * weighted_sum(entropy, weights)
    own = {
        "entropy": batch.entropy,
        "ratio_clamped": _gap(batch) > LOG_RATIO_LIMIT,
        # of KL(old || new), whose samples the completions are: r - 1 - log r
        "kl_old": kl_estimate(batch.old_logp, batch.logp.detach(), "k3", mask=batch.mask),
    }
    border.check_metric_names(parts.spec.selections["loss"], terms, own)
    return objective, batch, {name: m.detach() for name, m in {**own, **terms.metrics}.items()}


def _penalty(
    parts: Parts, collected: Collected, groups: Tensor, batch: PolicyBatch, log_probs: Tensor
) -> Tensor:
    """KL to the reference on each token, with its gradient: (B, T)."""
    assert batch.ref_logp is not None  # noqa: S101 - only called with a reference
    if collected.ref_log_probs is None:
        return kl_estimate(
            batch.logp,
            batch.ref_logp,
            str(parts.kl_kind),
            old_logp=batch.old_logp,
            mask=batch.mask,
        )
    cells = batch.mask[..., None]  # (B, T, 1)
    reference = collected.ref_log_probs[rows_of(groups, parts.spec.settings.group_size)]
    return exact_kl(masked.select(log_probs, cells), masked.select(reference, cells))


def _gap(batch: PolicyBatch) -> Tensor:
    """How far the policy moved from the one that sampled: |logp - old_logp|, (B, T)."""
    return (batch.logp.detach() - batch.old_logp).abs()


def _forward(
    parts: Parts, collected: Collected, advantage: Advantage, groups: Tensor
) -> tuple[PolicyBatch, Tensor, Tensor]:
    """Score some groups: the batch, then with gradients entropy and log-probs (B, T, V)."""
    settings, rollout = parts.spec.settings, collected.rollout
    rows = rows_of(groups, settings.group_size)
    mask, ids = rollout.trained[rows], rollout.completion_ids[rows]
    log_probs = log_probs_of(
        parts.policy,
        collected.prompts.rows(groups.tolist()),
        ids,
        distribution=parts.distribution,
        group_size=settings.group_size,
        support=None if collected.support is None else collected.support[rows],
    )
    if not log_probs.requires_grad:
        raise ComponentError(
            f"{border.name_of(parts.spec.selections['model'])}: its policy's output carries no "
            "gradient, so nothing could be trained"
        )
    with torch.set_grad_enabled(settings.entropy_coef > 0):
        entropy = entropy_of(log_probs)
    logp = masked.select(chosen(log_probs, ids), mask)
    lost = masked.count(~logp.isfinite())
    if bool(lost > 0):  # the limit on log-ratios would make a number of -inf
        raise Diverged(
            f"the policy's log-probability is not finite on {int(lost)} of {int(mask.sum())} "
            "trained tokens: its weights have diverged"
        )
    batch = PolicyBatch(
        logp=logp,
        old_logp=rollout.old_logp[rows],
        advantages=masked.select(advantage.advantages[rows], mask),
        mask=mask,
        entropy=entropy.detach(),
        group=rollout.group[rows],
        reward=rollout.reward[rows],
        truncated=rollout.truncated[rows],
        ref_logp=None if rollout.ref_logp is None else rollout.ref_logp[rows],
    )
    return batch, entropy, log_probs


def value_loss(
    parts: Parts, collected: Collected, returns: Tensor, groups: Tensor
) -> tuple[Tensor, int]:
    """Half the mean squared error of the critic, over the trained tokens of some groups.

    Returns:
        The loss, with gradient, and the number of tokens; 0 tokens mean that there is no gradient.
    """
    settings, rollout = parts.spec.settings, collected.rollout
    assert parts.critic is not None  # noqa: S101 - only called with a critic
    rows = rows_of(groups, settings.group_size)
    mask = rollout.trained[rows]
    prompts = collected.prompts.rows(groups.tolist())
    state = parts.critic.spread(parts.critic.read(prompts.ids, prompts.mask), settings.group_size)
    values = parts.critic.run(state, rollout.completion_ids[rows])[..., 0]
    error = masked.select(values - masked.select(returns[rows], mask), mask)
    tokens = int(mask.sum())
    return 0.5 * error.square().sum() / max(tokens, 1), tokens
