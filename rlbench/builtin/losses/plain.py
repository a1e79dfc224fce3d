"""Losses that do not bound the ratio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rlbench import masked
from rlbench.divergence import importance_ratio, kl_estimate
from rlbench.types import LossTerms

if TYPE_CHECKING:
    from rlbench.types import PolicyBatch


def pg(batch: PolicyBatch) -> LossTerms:
    """Raise the log-probability in proportion to the advantage: ``-A logp`` (REINFORCE).

    Nothing corrects for a policy that moved since it sampled, so more than one step on a rollout is
    biased.

    See: Williams, "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement
    Learning" (https://doi.org/10.1007/BF00992696).

    Differs: verl calls this loss ``gpg`` and ROLL ``vanilla``, which in verl is PPO's clipping;
    NeMo-RL reaches it with ``disable_ppo_ratio``.

    Args:
        batch: Reads logp, advantages and mask.

    Returns:
        Per-token loss (B, T); no metrics.
    """
    advantages = masked.select(batch.advantages, batch.mask)
    return LossTerms(-advantages * masked.select(batch.logp, batch.mask))


def importance(batch: PolicyBatch) -> LossTerms:
    """Correct for the policy that sampled, without a bound: ``-A r``.

    The gradient is ``-A r`` times that of logp. It is unbiased for the sampled prefixes, and its
    variance grows with every step on the same rollout.

    See: Kakade and Langford, "Approximately Optimal Approximate Reinforcement Learning" (2002);
    as the loss that PPO bounds, Schulman et al., "Proximal Policy Optimization Algorithms", eq. 6
    (https://arxiv.org/abs/1707.06347).

    Differs: tinker, SkyRL and Trinity call it ``importance_sampling``. The ratio is that of each
    token; NeMo-RL's sequence-level weights multiply the ratios of a completion.

    Args:
        batch: Reads logp, old_logp, advantages and mask.

    Returns:
        Per-token loss (B, T). Metrics: ``ratio``, of the token.
    """
    ratio = importance_ratio(batch.logp, batch.old_logp, batch.mask)
    advantages = masked.select(batch.advantages, batch.mask)
    return LossTerms(-advantages * ratio, {"ratio": ratio.detach()})


def penalty(batch: PolicyBatch, *, beta: Annotated[float, "[0, inf)"] = 1.0) -> LossTerms:
    """Pull the policy back to the one that sampled by a KL penalty (PPO's other form).

    ``-A r + beta (r - 1 - log r)``: the second term estimates KL(old || policy) on tokens that the
    old policy sampled. Its expected gradient is that of this KL, it is never negative, and at a
    ratio of 1 it has no gradient.

    See: Schulman et al., "Proximal Policy Optimization Algorithms", section 4, eq. 8
    (https://arxiv.org/abs/1707.06347); for the estimate, Schulman, "Approximating KL divergence"
    (http://joschu.net/blog/kl-approx.html).

    Differs: the paper's adaptive variant moves beta between rollouts; here it is constant. The KL
    is the one to the policy that sampled; the one to the base policy is what ``-k`` adds. torchrl's
    ``KLPENPPOLoss`` and RLlib take the exact KL of the two distributions.

    Args:
        batch: Reads logp, old_logp, advantages and mask.
        beta: Weight of the KL, usually 0.3 to 10.

    Returns:
        Per-token loss (B, T); no metrics: the host's ``kl_old`` is the estimate that it holds down.
    """
    ratio = importance_ratio(batch.logp, batch.old_logp, batch.mask)
    advantages = masked.select(batch.advantages, batch.mask)
    # Sampled from old, so the two policies change places: k3 of KL(old || policy).
    kl = kl_estimate(batch.old_logp, batch.logp, "k3", mask=batch.mask)
    return LossTerms(-advantages * ratio + beta * kl)
