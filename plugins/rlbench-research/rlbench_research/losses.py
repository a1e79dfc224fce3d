"""Policy losses of recent papers that keep the policy in a trust region."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rlbench import masked
from rlbench.divergence import importance_ratio
from rlbench.types import LossTerms

if TYPE_CHECKING:
    from torch import Tensor

    from rlbench.types import PolicyBatch

LEAST_PROBABILITY = 1e-12  # of the other tokens together: keeps a log finite


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


def dppo_tv(batch: PolicyBatch, *, delta: Annotated[float, "(0, 1)"] = 0.2) -> LossTerms:
    """Drop tokens whose probability has moved far enough, in total variation (DPPO-Binary-TV).

    ``-A r`` where the token is kept, 0 elsewhere. With p and q its probabilities under the policy
    and the one that sampled, a token is dropped if it moves on from a distance of delta:
    ``p - q > delta`` with a positive advantage, ``p - q < -delta`` with a negative one. A rare
    token may change by a large factor, and a frequent one may not.

    See: Qi et al., "Rethinking the Trust Region in LLM Reinforcement Learning"
    (https://arxiv.org/abs/2602.04879).

    Differs: as in prime-rl and SkyRL the gradient goes through the ratio. verl takes ``-A
    stop(min(r, c)) logp``, whose gradient is the same below c, and reads delta from ``clip_ratio``
    and c from ``clip_ratio_c``. "DPPO" is also decoupled PPO.

    Args:
        batch: Reads logp, old_logp, advantages and mask.
        delta: How far the probability may move, usually 0.1 to 0.3; 0.2 in SkyRL and prime-rl.

    Returns:
        Per-token loss (B, T). Metrics: ``clip_fraction``, tokens that are dropped.
    """
    policy, old = _probabilities(batch)
    far = (policy - old).abs() > delta
    return _without_far(batch, far, policy - old)


def dppo_kl(batch: PolicyBatch, *, delta: Annotated[float, "(0, inf)"] = 0.05) -> LossTerms:
    """Drop tokens whose probability has moved far enough, in KL (DPPO-Binary-KL).

    Like ``dppo_tv``, with the distance ``q log(q / p) + (1 - q) log((1 - q) / (1 - p))``: the KL
    between choosing this token and choosing any other, from the policy that sampled (q) to the one
    that is trained (p). A token is dropped if the distance is above delta and it moves on:
    ``p > q`` with a positive advantage, ``p < q`` with a negative one.

    See: Qi et al., "Rethinking the Trust Region in LLM Reinforcement Learning"
    (https://arxiv.org/abs/2602.04879).

    Differs: as for ``dppo_tv``. verl has the same delta for both, 0.2.

    Args:
        batch: Reads logp, old_logp, advantages and mask.
        delta: Largest KL in nats, usually 0.01 to 0.1; 0.05 in SkyRL and prime-rl.

    Returns:
        Per-token loss (B, T). Metrics: ``clip_fraction``, tokens that are dropped.
    """
    policy, old = _probabilities(batch)
    rest, old_rest = ((1 - x).clamp(min=LEAST_PROBABILITY) for x in (policy, old))
    gap = masked.select(batch.old_logp - batch.logp.detach(), batch.mask)  # log(q / p)
    kl = old * gap + (1 - old) * (old_rest / rest).log()
    return _without_far(batch, kl > delta, policy - old)


def _probabilities(batch: PolicyBatch) -> tuple[Tensor, Tensor]:
    """Of each token under the policy and the one that sampled: (B, T) float64, detached."""
    both = (batch.logp.detach(), batch.old_logp)
    policy, old = (masked.select(x, batch.mask).double().exp() for x in both)
    return policy, old


def _without_far(batch: PolicyBatch, far: Tensor, moved: Tensor) -> LossTerms:
    """Drop far tokens that the advantage drives on in the direction they moved."""
    advantages = masked.select(batch.advantages, batch.mask)
    ratio = importance_ratio(batch.logp, batch.old_logp, batch.mask)
    dropped = far & (advantages * moved > 0)
    per_token = masked.select(-advantages * ratio, ~dropped)
    return LossTerms(per_token, {"clip_fraction": dropped.to(ratio.dtype)})
