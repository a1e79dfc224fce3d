"""Policy losses: what an optimiser step minimises, for each token and unreduced.

A positive advantage means that a step raises the token's log-probability.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import torch

from rlbench import masked
from rlbench.divergence import importance_ratio
from rlbench.types import LossTerms

if TYPE_CHECKING:
    from rlbench.types import PolicyBatch


def clip(
    batch: PolicyBatch,
    *,
    eps: Annotated[float, "(0, 1]"] = 0.2,
    eps_high: Annotated[float, "(0, inf)"] | None = None,
    dual: Annotated[float, "(1, inf)"] | None = None,
) -> LossTerms:
    """Stop the gradient where the ratio has already moved far enough (PPO).

    ``max(-A r, -A clip(r, 1 - eps, 1 + eps_high))`` with ``r = exp(logp - old_logp)``.

    See: Schulman et al., "Proximal Policy Optimization Algorithms", eq. 7
    (https://arxiv.org/abs/1707.06347); for eps_high, Yu et al., "DAPO", eq. 10
    (https://arxiv.org/abs/2503.14476); for dual, Ye et al., "Mastering Complex Control in MOBA
    Games", eq. 5 (https://arxiv.org/abs/1912.09729).

    Differs: verl has dual=3 switched on by default. INTELLECT-2's delta, which TRL offers, is dual
    for negative advantages and the same for positive ones.

    Args:
        batch: Reads logp, old_logp, advantages and mask.
        eps: How far the ratio may fall below 1, usually 0.1 to 0.3.
        eps_high: How far it may rise above 1, such as 0.28 ("clip-higher"); none means eps.
        dual: For negative advantages the loss is at most ``-dual * A``, so that a ratio above dual
            has no gradient; usually 3. None leaves it unbounded.

    Returns:
        Per-token loss (B, T). Metrics: ``clip_fraction``, tokens whose gradient is 0 because a
        clipped term is the active one.
    """
    ratio = importance_ratio(batch.logp, batch.old_logp, batch.mask)
    advantages = masked.select(batch.advantages, batch.mask)
    high = eps if eps_high is None else eps_high
    free = -advantages * ratio
    held = -advantages * ratio.clamp(1 - eps, 1 + high)
    clipped = held > free
    # torch.maximum would halve the gradient between equal terms, and hide which one is active.
    per_token = torch.where(clipped, held, free)
    if dual is not None:
        most = -dual * advantages
        beyond = (advantages < 0) & (per_token > most)
        per_token = torch.where(beyond, most, per_token)
        clipped = clipped | beyond
    return LossTerms(per_token, {"clip_fraction": clipped.to(ratio.dtype)})


def pg(batch: PolicyBatch) -> LossTerms:
    """Raise the log-probability in proportion to the advantage: ``-A logp`` (REINFORCE).

    Nothing corrects for a policy that moved since it sampled, so more than one step on a rollout is
    biased.

    See: Williams, "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement
    Learning" (1992).

    Differs: verl calls this loss ``gpg``; NeMo-RL reaches it with ``disable_ppo_ratio``.

    Args:
        batch: Reads logp, advantages and mask.

    Returns:
        Per-token loss (B, T); no metrics.
    """
    advantages = masked.select(batch.advantages, batch.mask)
    return LossTerms(-advantages * masked.select(batch.logp, batch.mask))
