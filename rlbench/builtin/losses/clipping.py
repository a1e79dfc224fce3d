"""Losses whose gradient stops where the ratio has moved far enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import torch

from rlbench import masked
from rlbench.divergence import importance_ratio
from rlbench.types import LossTerms

if TYPE_CHECKING:
    from torch import Tensor

    from rlbench.types import PolicyBatch


def surrogate(
    ratio: Tensor, advantages: Tensor, *, eps: float, eps_high: float | None
) -> tuple[Tensor, Tensor]:
    """Take the worse of the free and the clipped term: ``max(-A r, -A clip(r))``.

    Args:
        ratio: Any shape, with gradient.
        advantages: Of the same shape.
        eps: The ratio is clipped at ``1 - eps``.
        eps_high: And at ``1 + eps_high``; none means eps.

    Returns:
        The loss, and where the clipped term is the active one: there the gradient is 0.
    """
    high = eps if eps_high is None else eps_high
    free = -advantages * ratio
    held = -advantages * ratio.clamp(1 - eps, 1 + high)
    clipped = held > free
    # torch.maximum would halve the gradient between equal terms, and hide which one is active.
    return torch.where(clipped, held, free), clipped


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
    (https://arxiv.org/abs/1707.06347); for eps_high, Yu et al., "DAPO: An Open-Source LLM
    Reinforcement Learning System at Scale", eq. 8 (https://arxiv.org/abs/2503.14476); for dual, Ye
    et al., "Mastering Complex Control in MOBA Games with Deep Reinforcement Learning", eq. 5
    (https://arxiv.org/abs/1912.09729).

    Differs: verl's default loss, ``vanilla``, has dual=3 switched on. OpenRLHF, NeMo-RL, slime and
    TRL have it off; ROLL couples it to eps, dual = 1 + 2 eps. INTELLECT-2's delta is ``two_sided``:
    dual for negative advantages and the same for positive ones. eps is 0.2 everywhere but in
    torchtune (0.1).

    Args:
        batch: Reads logp, old_logp, advantages and mask.
        eps: How far the ratio may fall below 1, usually 0.1 to 0.3.
        eps_high: How far it may rise above 1, usually 0.2 to 0.28 ("clip-higher"); none means eps.
        dual: For negative advantages the loss is at most ``-dual * A``, so that a ratio above dual
            has no gradient; usually 3. None leaves it unbounded.

    Returns:
        Per-token loss (B, T). Metrics: ``clip_fraction``, tokens whose gradient is 0 because a
        clipped term is the active one.
    """
    ratio = importance_ratio(batch.logp, batch.old_logp, batch.mask)
    advantages = masked.select(batch.advantages, batch.mask)
    per_token, clipped = surrogate(ratio, advantages, eps=eps, eps_high=eps_high)
    if dual is not None:
        most = -dual * advantages
        beyond = (advantages < 0) & (per_token > most)
        per_token = torch.where(beyond, most, per_token)
        clipped = clipped | beyond
    return LossTerms(per_token, {"clip_fraction": clipped.to(ratio.dtype)})


def two_sided(
    batch: PolicyBatch,
    *,
    eps: Annotated[float, "(0, 1]"] = 0.2,
    eps_high: Annotated[float, "(0, inf)"] | None = None,
    delta: Annotated[float, "(1, inf)"] = 4.0,
) -> LossTerms:
    """Clip as PPO does, and bound the ratio of the free term too (INTELLECT-2).

    ``max(-A min(r, delta), -A clip(r, 1 - eps, 1 + eps_high))``. The bound acts where PPO has none:
    a negative advantage at a ratio above delta.

    See: Prime Intellect, "INTELLECT-2: A Reasoning Model Trained Through Globally Decentralized
    Reinforcement Learning", section 4.1 (https://arxiv.org/abs/2505.07291).

    Differs: TRL has it as the option ``delta`` of its clipped losses, off by default. With delta
    above 1 + eps_high it equals ``clip`` with dual=delta, which verl has on by default with 3.

    Args:
        batch: Reads logp, old_logp, advantages and mask.
        eps: How far the ratio may fall below 1, usually 0.1 to 0.3.
        eps_high: How far it may rise above 1, usually 0.2 to 0.28; none means eps.
        delta: Largest ratio that has a gradient; usually 4, as published. Take it above
            1 + eps_high: below, it is the upper bound of positive advantages as well.

    Returns:
        Per-token loss (B, T). Metrics: ``clip_fraction``, tokens whose gradient is 0 because a
        bound is active.
    """
    ratio = importance_ratio(batch.logp, batch.old_logp, batch.mask)
    advantages = masked.select(batch.advantages, batch.mask)
    high = eps if eps_high is None else eps_high
    free = -advantages * ratio.clamp(max=delta)
    held = -advantages * ratio.clamp(1 - eps, 1 + high)
    clipped = held > free
    per_token = torch.where(clipped, held, free)
    idle = clipped | ((ratio > delta) & (advantages != 0))
    return LossTerms(per_token, {"clip_fraction": idle.to(ratio.dtype)})
