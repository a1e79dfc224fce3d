"""Losses that never cut a token off: its weight is bounded, or fades."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import torch

from rlbench import masked
from rlbench.divergence import importance_ratio
from rlbench.types import LossTerms

if TYPE_CHECKING:
    from rlbench.types import PolicyBatch


def cispo(
    batch: PolicyBatch,
    *,
    eps: Annotated[float, "(0, 1]"] | None = None,
    eps_high: Annotated[float, "(0, inf)"] = 4.0,
    bound: Literal["one_plus", "absolute"] = "one_plus",
) -> LossTerms:
    """Weigh the policy gradient by the ratio, clipped and detached (CISPO).

    ``-stop(clip(r, low, high)) A logp``. A token beyond a bound keeps a gradient, with the bound as
    its weight, where PPO's clipping drops it.

    The same options mean different bounds elsewhere:

    ==================== ======= ================== ========================
    library              low     high               range as it comes
    ==================== ======= ================== ========================
    the paper            none    1 + eps_high       tuned
    rlbench, SkyRL       none    1 + eps_high       0 to 5
    open-instruct        none    1 + eps_high       0 to 1.272
    verl, NeMo-RL        1 - eps 1 + eps_high       0.8 to 1.2
    ROLL                 1 - eps 1 + eps_high       0.9 to 1.1
    slime                1 - eps 1 + eps_high       eps of 1 or more advised
    TRL, Liger, ms-swift none    eps_high, absolute 0 to 0.2, 5 advised
    ==================== ======= ================== ========================

    See: MiniMax, "MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention",
    eq. 4 and 5 (https://arxiv.org/abs/2506.13585); Khatri et al., "The Art of Scaling Reinforcement
    Learning Compute for LLMs" (https://arxiv.org/abs/2510.13786).

    Differs: for TRL's reading give ``bound=absolute``; its untouched 0.2 scales the gradient of
    every on-policy token down. For verl's give ``eps=0.2,eps_high=0.2``. torchrl's ``CISPOLoss``
    has no gradient at a clipped ratio, so it is not this loss.

    Args:
        batch: Reads logp, old_logp, advantages and mask.
        eps: The weight is at least ``1 - eps``, usually none or 0.2; none means no lower bound, as
            published.
        eps_high: Upper bound of the weight, read as ``bound`` says; usually 4 to 8 without a lower
            bound and about 0.2 with one.
        bound: ``one_plus``: at most ``1 + eps_high``; ``absolute``: at most eps_high, also where
            that is below ``1 - eps``.

    Returns:
        Per-token loss (B, T). Its gradient, weight times A times that of logp, is what counts; its
        value is not an objective. Metrics: ``bounded_fraction``, tokens whose weight is at a bound.
    """
    ratio = importance_ratio(batch.logp.detach(), batch.old_logp, batch.mask)
    advantages = masked.select(batch.advantages, batch.mask)
    high = eps_high if bound == "absolute" else 1 + eps_high
    low = 0.0 if eps is None else 1 - eps
    weight = ratio.clamp(low, high)
    bounded = (ratio < low) | (ratio > high)
    per_token = -weight * advantages * masked.select(batch.logp, batch.mask)
    return LossTerms(per_token, {"bounded_fraction": bounded.to(ratio.dtype)})


def sapo(
    batch: PolicyBatch,
    *,
    tau_pos: Annotated[float, "(0, inf)"] = 1.0,
    tau_neg: Annotated[float, "(0, inf)"] = 1.05,
) -> LossTerms:
    """Let the gradient fade smoothly as the ratio leaves 1 (SAPO).

    ``-A (4 / tau) sigmoid(tau (r - 1))``. The gradient is ``-A r 4 s (1 - s)`` times that of logp
    with ``s = sigmoid(tau (r - 1))``: that of -A logp at r = 1, near 0 far above, and at most
    proportional to r below.

    See: Gao et al., "Soft Adaptive Policy Optimization", eq. 5 and 6 (https://arxiv.org/abs/2511.20347).

    Differs: the paper and verl average within each completion first, which is the setting
    ``aggregation=seq_mean_token_mean``; verl does so whatever is set. verl, TRL, SkyRL, AReaL and
    ms-swift have the same defaults. The value on-policy is -2 A / tau, not -A.

    Args:
        batch: Reads logp, old_logp, advantages and mask.
        tau_pos: Steepness for positive advantages, usually about 1; higher fades earlier.
        tau_neg: The same for the others; usually a little above tau_pos, as published.

    Returns:
        Per-token loss (B, T). Metrics: ``gate``, 4 s (1 - s): 1 on-policy, 0 where nothing is left
        of the gradient.
    """
    ratio = importance_ratio(batch.logp, batch.old_logp, batch.mask)
    advantages = masked.select(batch.advantages, batch.mask)
    tau = torch.full_like(advantages, tau_neg).masked_fill(advantages > 0, tau_pos)
    s = torch.sigmoid(tau * (ratio - 1))
    gate = (4 * s * (1 - s)).detach()
    return LossTerms(-advantages * s * (4 / tau), {"gate": gate})
