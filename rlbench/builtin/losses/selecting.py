"""Losses that treat a few tokens apart: those where the policy grows sure of what paid off.

They compare a token with all tokens of the optimiser step, so they are registered with
``needs=("whole_step",)``: the host gives them the step in one batch. Nothing is drawn at random and
no tie is broken by position, so neither the order of rows nor the padding shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import torch

from rlbench import masked
from rlbench.builtin.losses.clipping import surrogate
from rlbench.divergence import importance_ratio
from rlbench.types import LossTerms

if TYPE_CHECKING:
    from torch import Tensor

    from rlbench.types import PolicyBatch


def _covariance(batch: PolicyBatch) -> Tensor:
    """Each token's part in the covariance of advantage and logp: (B, T) float32, detached."""
    parts = [x.detach().double() for x in (batch.advantages, batch.logp)]
    a, b = (masked.select(x - masked.mean(x, batch.mask), batch.mask) for x in parts)
    # Computed wide and rounded: tokens that differ only by the order of the sums are tied.
    return (a * b).float()


def _budget(fraction: float, mask: Tensor) -> int:
    """How many tokens to select: the fraction rounded down, but at least 1."""
    # A fraction such as 0.29 of 100 tokens is 28.999... in binary.
    return max(1, int(fraction * int(masked.count(mask)) + 1e-6))


def clip_cov(
    batch: PolicyBatch,
    *,
    eps: Annotated[float, "(0, 1]"] = 0.2,
    eps_high: Annotated[float, "(0, inf)"] | None = None,
    fraction: Annotated[float, "(0, 1]"] = 2e-4,
    cov_low: Annotated[float, "[0, inf)"] = 1.0,
    cov_high: Annotated[float, "[0, inf)"] = 5.0,
) -> LossTerms:
    """Clip as PPO does, and take the loss off tokens of high covariance (Clip-Cov).

    A token's covariance is ``(A - mean A) (logp - mean logp)``, means over the optimiser step. Of
    the M tokens in the band ``cov_low < covariance < cov_high`` that PPO does not clip anyway,
    ``k = max(1, floor(fraction N))`` give up their loss, N being all tokens. They are the ones that
    make the entropy fall.

    See: Cui et al., "The Entropy Mechanism of Reinforcement Learning for Reasoning Language
    Models", section 4 (https://arxiv.org/abs/2505.22617).

    Differs: the paper, verl and SkyRL draw the k tokens at random. Here each token of the band
    gives up the share min(k, M) / M of its loss: the mean over all draws, without their noise, and
    independent of the order of rows. verl selects within a micro-batch, so that what is selected
    depends on the split; here it is the whole step. Defaults are those of verl and SkyRL.

    Args:
        batch: Reads logp, old_logp, advantages and mask.
        eps: How far the ratio may fall below 1, usually 0.1 to 0.3.
        eps_high: How far it may rise above 1, usually 0.2 to 0.28; none means eps.
        fraction: Of all tokens, how many are selected; usually 2e-4 to 2e-3.
        cov_low: Lower end of the band, in nats times the unit of advantages; usually 1.
        cov_high: Upper end, usually 5. Nothing is selected if it is not above cov_low.

    Returns:
        Per-token loss (B, T). Metrics: ``clip_fraction``, tokens whose gradient is 0 because PPO's
        clipped term is the active one; ``selected_fraction``, the share of tokens whose loss is
        given up for their covariance.
    """
    mask = batch.mask
    ratio = importance_ratio(batch.logp, batch.old_logp, mask)
    advantages = masked.select(batch.advantages, mask)
    loss, clipped = surrogate(ratio, advantages, eps=eps, eps_high=eps_high)
    covariance = _covariance(batch)
    band = mask & ~clipped & (covariance > cov_low) & (covariance < cov_high)
    found = int(masked.count(band))
    share = min(_budget(fraction, mask), found) / max(found, 1)
    given = band.to(loss.dtype) * share
    return LossTerms(
        loss * (1 - given), {"clip_fraction": clipped.to(loss.dtype), "selected_fraction": given}
    )


def kl_cov(
    batch: PolicyBatch,
    *,
    fraction: Annotated[float, "(0, 1]"] = 2e-3,
    beta: Annotated[float, "[0, inf)"] = 1.0,
) -> LossTerms:
    """Leave the ratio free, and hold the tokens of highest covariance by a penalty (KL-Cov).

    ``-A r``, plus ``beta |logp - old_logp|`` on the ``k = max(1, floor(fraction N))`` of N tokens
    with the highest ``(A - mean A) (logp - mean logp)``, means over the optimiser step.

    The penalty has no gradient at a ratio of exactly 1: with one step a rollout this loss is
    ``importance``.

    See: Cui et al., "The Entropy Mechanism of Reinforcement Learning for Reasoning Language
    Models", section 4 (https://arxiv.org/abs/2505.22617).

    Differs: the fraction is 2e-3 in the paper for 7B models and 2e-4 for 32B; verl has 2e-4, and
    beta 0.1 in its configuration and 1 in its code; SkyRL has 0.2, which is a hundred times the
    paper's. verl selects within a micro-batch; here it is the whole step. Where tokens are tied for
    the last places, these are shared between them: topk would decide by position.

    Args:
        batch: Reads logp, old_logp, advantages and mask.
        fraction: Of all tokens, how many carry the penalty; usually 2e-4 to 2e-3, at least 1 token.
        beta: Weight of the penalty, usually 0.1 to 1.

    Returns:
        Per-token loss (B, T). Metrics: ``selected_fraction``, the share of tokens under the
        penalty.
    """
    mask = batch.mask
    ratio = importance_ratio(batch.logp, batch.old_logp, mask)
    advantages = masked.select(batch.advantages, mask)
    share = _top_share(_covariance(batch), mask, _budget(fraction, mask)).to(ratio.dtype)
    # Nothing is exponentiated here, so a policy that is far away is still pulled back.
    distance = masked.select(batch.logp - batch.old_logp, mask).abs()
    return LossTerms(-advantages * ratio + beta * share * distance, {"selected_fraction": share})


def _top_share(score: Tensor, mask: Tensor, k: int) -> Tensor:
    """How far each token belongs to the k highest scores: 1, 0, or a share of the last places."""
    ranked = score[mask]
    if ranked.numel() == 0:
        return torch.zeros_like(score)
    # NaN is the highest of all: then nothing is above or tied, and the loss is NaN anyway.
    edge = ranked.topk(min(k, ranked.numel())).values[-1]
    above, tied = mask & (score > edge), mask & (score == edge)
    room = k - masked.count(above).double()
    return above + tied * (room / masked.count(tied).clamp(min=1))
