"""Policy losses for completions that another policy may have sampled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

from rlbench import masked
from rlbench.types import LossTerms

if TYPE_CHECKING:
    from rlbench.types import PolicyBatch


def topr(batch: PolicyBatch, *, level: Literal["sequence", "token"] = "sequence") -> LossTerms:
    """Imitate what went well at full weight, taper what went badly (TOPR).

    ``-A logp`` for a positive advantage, ``-stop(min(r, 1)) A logp`` for a negative one, where r is
    the ratio of the whole completion. What the policy has already unlearnt pushes no further.

    See: Le Roux et al., "Tapered Off-Policy REINFORCE: Stable and efficient reinforcement learning
    for LLMs" (https://arxiv.org/abs/2503.14286).

    Differs: the sign is that of the advantage, which is the paper's reward less its baseline; ROLL
    takes that of the raw score, and the ratio of each token, ``level=token``. ROLL's ``tis`` tapers
    positive advantages too.

    Args:
        batch: Reads logp, old_logp, advantages and mask.
        level: Whether r is the product over the completion or the token's own ratio.

    Returns:
        Per-token loss (B, T). Its gradient is what counts; its value is not an objective. Metrics:
        ``taper``, the weight of the token: 1 for positive advantages.
    """
    advantages = masked.select(batch.advantages, batch.mask)
    log_ratio = masked.select(batch.logp.detach() - batch.old_logp, batch.mask)
    if level == "sequence":
        log_ratio = log_ratio.sum(1, keepdim=True).expand_as(log_ratio)
    weight = log_ratio.clamp(max=0).exp().masked_fill(advantages >= 0, 1.0)
    per_token = -weight * advantages * masked.select(batch.logp, batch.mask)
    return LossTerms(per_token, {"taper": weight})


def dro(batch: PolicyBatch, *, beta: Annotated[float, "[0, inf)"] = 0.05) -> LossTerms:
    """Plain policy gradient with a quadratic pull to the policy that sampled (DRO).

    ``-(A logp - beta / 2 (logp - old_logp)²)``, least at ``logp = old_logp + A / beta``.

    See: Richemond et al., "Offline Regularised Reinforcement Learning for Large Language Models
    Alignment" (https://arxiv.org/abs/2405.19107); Kimi Team, "Kimi k1.5: Scaling Reinforcement
    Learning with LLMs" (https://arxiv.org/abs/2501.12599).

    Differs: the square is that of each token, as in tinker, where beta=0.05 is the example. Both
    papers square the log-ratio of the whole completion; Kimi's gradient has tau for beta, 0.1 in
    ROLL's ``kimi15``. verl has no default. "DRO" is also distributionally robust optimisation.

    Args:
        batch: Reads logp, old_logp, advantages and mask.
        beta: Weight of the pull, usually 0.01 to 0.5; 0 leaves ``pg``.

    Returns:
        Per-token loss (B, T); no metrics.
    """
    advantages = masked.select(batch.advantages, batch.mask)
    # Nothing is exponentiated, so the pull needs no limit.
    log_ratio = masked.select(batch.logp - batch.old_logp, batch.mask)
    logp = masked.select(batch.logp, batch.mask)
    return LossTerms(-advantages * logp + beta / 2 * log_ratio.square())


def awr(
    batch: PolicyBatch,
    *,
    beta: Annotated[float, "(0, inf)"] = 1.0,
    cap: Annotated[float, "[1, inf)"] = 20.0,
) -> LossTerms:
    """Imitate every completion, the better ones exponentially more (AWR).

    ``-min(exp(A / beta), cap) logp``. Weights are positive: a bad completion is imitated less and
    never pushed away, so on-policy this is no policy gradient.

    See: Peng et al., "Advantage-Weighted Regression: Simple and Scalable Off-Policy Reinforcement
    Learning" (https://arxiv.org/abs/1910.00177).

    Differs: the defaults are those of the authors' code, which standardises advantages over the
    batch before it weighs them; here that is the estimator's business. Trinity's ``rec`` has the
    loss as ``weight="advantage"``.

    Args:
        batch: Reads logp, advantages and mask.
        beta: Temperature in the unit of advantages, usually 0.05 to 5; below a twentieth of their
            spread the loss sorts them into imitated and ignored.
        cap: Largest weight, usually 20, as in the authors' code.

    Returns:
        Per-token loss (B, T). Metrics: ``capped_fraction``, tokens whose weight is at the cap;
        ``weight``, of the token.
    """
    advantages = masked.select(batch.advantages, batch.mask)
    # The cap comes before exp: exp(1e4) is inf.
    weight = (advantages / beta).clamp(max=math.log(cap)).exp()
    capped = advantages / beta > math.log(cap)
    return LossTerms(
        -weight * masked.select(batch.logp, batch.mask),
        {"capped_fraction": capped.to(weight.dtype), "weight": weight},
    )
