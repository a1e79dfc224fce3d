"""How far two policies are apart: ratios, KL estimates on sampled tokens, exact KL and entropy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from rlbench import masked
from rlbench.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

LOG_RATIO_LIMIT = 20.0
"""Log-ratios are kept within ± this before exp: in float32 exp(89) is already inf."""

EXACT = "full"
"""Name of the KL over the whole vocabulary, which is no function of the sampled tokens."""

KINDS = ("k1", "k2", "k3", "k3_ratio", "k1_plus", "k3_plus", "abs")


def log_ratio(logp: Tensor, old_logp: Tensor, mask: Tensor) -> Tensor:
    """Subtract log-probabilities, safe to exponentiate.

    Args:
        logp: (B, T) nats, of the policy that is trained.
        old_logp: (B, T) nats, of the policy that sampled.
        mask: (B, T) bool.

    Returns:
        (B, T): the difference, kept within `LOG_RATIO_LIMIT` (beyond it the gradient is 0), and 0
        outside the mask. NaN stays NaN.
    """
    return masked.select(logp - old_logp, mask).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def importance_ratio(logp: Tensor, old_logp: Tensor, mask: Tensor) -> Tensor:
    """Divide probabilities: ``exp(log_ratio(...))``, (B, T), 1 outside the mask."""
    return log_ratio(logp, old_logp, mask).exp()


def kl_estimate(
    logp: Tensor,
    ref_logp: Tensor,
    kind: str,
    *,
    old_logp: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Estimate KL(policy || reference) on each sampled token.

    With d = logp - ref_logp, r = exp(logp - old_logp) and tokens sampled from the policy:

    ========  ==========  ===================  ======  ====================
    estimate  also named  value                mean    gradient as a loss
    ========  ==========  ===================  ======  ====================
    k1        kl          d                    the KL  0 on average
    k2        mse, k2+    d² / 2               biased  that of the KL
    k3        low_var_kl  exp(-d) - 1 + d      the KL  of KL(ref || policy)
    k3_ratio              r (exp(-d) - 1 + d)  the KL  that of the KL
    k1_plus   k1+         d                    the KL  that of the KL
    k3_plus   k3+         exp(-d) - 1 + d      the KL  that of the KL
    abs                   absolute value of d  biased  biased
    ========  ==========  ===================  ======  ====================

    k1 as a loss pulls nowhere: it adds noise and regularises nothing. k1_plus and k3_plus have the
    gradient of k2, straight through. The gradient of k3_ratio is r d ∇logp, right also when the
    tokens came from an older policy. Each is the gradient at the given prefixes: that a changed
    policy also reaches other prefixes is in no estimate for a token. Inside the reward only the
    value counts, and k1 is the right one: its score-function gradient is that of the whole
    completion's KL. ``full``, the exact KL of `exact_kl`, needs no estimate.

    See: Schulman, "Approximating KL Divergence" (http://joschu.net/blog/kl-approx.html); Tang &
    Munos, "On a few pitfalls in KL divergence gradient estimation for RL"
    (https://arxiv.org/abs/2506.09477).

    Differs: GRPO as published, verl's ``low_var_kl`` and TRL use k3 in the loss; k3_ratio is what
    NeMo RL does and what TRL calls ``use_bias_correction_kl``; slime and tunix default to k1 in the
    loss; verl writes ``kl``, ``mse``, ``k1+`` and ``k3+``. verl and slime cut k3 at 10; here d is
    limited to ±20 and nothing else.

    Args:
        logp: (B, T) nats; gradients flow through it.
        ref_logp: (B, T) nats of the reference.
        kind: One of `KINDS`.
        old_logp: (B, T) nats of the policy that sampled; only k3_ratio needs it.
        mask: (B, T) bool. Give it where cells may hold NaN or inf: they are left out before exp.

    Returns:
        (B, T) nats, 0 outside the mask; k2 and k3 are never negative, k1 often is. In k3 and the
        ratio, d is kept within `LOG_RATIO_LIMIT`.

    Raises:
        UsageError: Unknown kind, ``full``, or k3_ratio without old_logp.
    """
    everywhere = torch.ones_like(logp, dtype=torch.bool) if mask is None else mask
    d = masked.select(logp - ref_logp, everywhere)
    if kind == "k1":
        return d
    if kind == "abs":
        return d.abs()
    k2 = d.square() / 2
    if kind == "k2":
        return k2
    if kind == "k1_plus":
        return d.detach() + (k2 - k2.detach())
    if kind == EXACT:
        raise UsageError("KL 'full' is no estimate on sampled tokens: use exact_kl")
    if kind not in KINDS:
        raise UsageError.unknown("KL estimator", kind, KINDS)
    # The whole of d is limited, not only the exponent: the linear part alone would push a policy
    # that fell far below the reference further down. expm1 and not exp, whose rounding would give
    # negative values near 0.
    near = d.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    k3 = torch.expm1(-near) + near
    if kind == "k3":
        return k3
    if kind == "k3_plus":
        return k3.detach() + (k2 - k2.detach())
    if old_logp is None:
        raise UsageError("KL estimator 'k3_ratio': needs old_logp, the log-probs at sampling")
    return importance_ratio(logp, old_logp, everywhere) * k3


def exact_kl(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """Sum KL(policy || reference) over the vocabulary: no estimate, and no noise of sampling.

    ``sum over v of p(v) (log p(v) - log q(v))`` with gradient
    ``p(v) (log p(v) - log q(v) - KL)`` with respect to logit v, at the given prefix.

    In the loss this is what the right estimates of `kl_estimate` have as their mean. In the reward
    it says what a prefix costs, whichever token follows, so a token is never charged for itself:
    the gradient is the part that `kl_estimate` leaves out, that of reaching other prefixes, and on
    the first token there is none. The sum of both is the gradient of the whole completion's KL.

    See: Tang & Munos, "On a few pitfalls in KL divergence gradient estimation for RL"
    (https://arxiv.org/abs/2506.09477).

    Differs: ROLL's ``full`` puts it in the reward; verl names it and raises NotImplementedError.
    With top-p or top-k, rlbench compares both policies on the tokens that could be drawn,
    normalised again.

    Args:
        log_probs: (..., V) nats, normalised; -inf where the policy never goes.
        ref_log_probs: (..., V) nats, normalised.

    Returns:
        (...) nats. A token of probability 0 adds 0, value and gradient, whatever the reference
        says; one that the policy uses and the reference excludes gives inf.
    """
    used = _used(log_probs)
    policy = masked.select(log_probs, used)
    return masked.total(policy.exp() * (policy - masked.select(ref_log_probs, used)), used, -1)


def entropy(log_probs: Tensor) -> Tensor:
    """Entropy over the vocabulary.

    Args:
        log_probs: (..., V) nats, normalised; -inf where the policy never goes.

    Returns:
        (...) nats, never negative; gradients are finite also at -inf.
    """
    used = _used(log_probs)
    policy = masked.select(log_probs, used)
    return -masked.total(policy.exp() * policy, used, -1)


def _used(log_probs: Tensor) -> Tensor:
    """Where the probability is not exactly 0; NaN counts as used, so that it stays visible."""
    return ~(log_probs.detach().exp() == 0)
