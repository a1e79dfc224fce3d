"""Policy losses of recent papers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rlbench import masked
from rlbench.divergence import importance_ratio
from rlbench.types import LossTerms

if TYPE_CHECKING:
    from rlbench.types import PolicyBatch


def simple_po(batch: PolicyBatch, *, eps: Annotated[float, "(0, 1]"] = 0.2) -> LossTerms:
    """Pull the ratio to the edge of the trust region instead of cutting the gradient there.

    ``-(A r - |A| (r - 1)² / (2 eps))`` has its minimum at ``r = 1 + eps`` for a positive advantage
    and at ``r = 1 - eps`` for a negative one; a ratio beyond is pulled back.

    See: Xie et al., "Simple Policy Optimization" (https://arxiv.org/abs/2401.16025).

    Differs: "SPO" is also the name of segment policy optimisation (https://arxiv.org/abs/2505.23564)
    and of single-stream policy optimisation (https://arxiv.org/abs/2509.13232).

    Args:
        batch: Reads logp, old_logp, advantages and mask.
        eps: Distance of the edge from 1, usually 0.1 to 0.3.

    Returns:
        Per-token loss (B, T). Metrics: ``outside_fraction``, tokens whose ratio is further than eps
        from 1.
    """
    ratio = importance_ratio(batch.logp, batch.old_logp, batch.mask)
    advantages = masked.select(batch.advantages, batch.mask)
    distance = ratio - 1
    per_token = -advantages * ratio + advantages.abs() * distance.square() / (2 * eps)
    outside = (distance.detach().abs() > eps).to(ratio.dtype)
    return LossTerms(per_token, {"outside_fraction": outside})
