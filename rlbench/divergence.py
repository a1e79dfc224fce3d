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

    With d = logp - ref_logp and tokens sampled from the policy:

    ======== ======================= ============== ==========================================
    kind     value                   expected value expected gradient when used as a loss
    ======== ======================= ============== ==========================================
    k1       d                       the KL         0: no regularisation at all
    k2       d² / 2                  biased         that of the KL
    k3       exp(-d) - 1 + d         the KL         that of KL(reference || policy)
    k3_ratio exp(logp - old_logp) k3 the KL         that of the KL
    k1_plus  d                       the KL         that of the KL (k2's, straight through)
    k3_plus  exp(-d) - 1 + d         the KL         that of the KL (k2's, straight through)
    abs      absolute value of d     biased         sign(d) ∇logp, which is biased
    ======== ======================= ============== ==========================================

    The gradient of k3_ratio is ratio · d · ∇logp. It is the gradient at the given prefixes: that a
    changed policy also reaches other prefixes is in no per-token estimate. Inside the reward only
    the value counts, and k1 is the right one: its score-function gradient is unbiased.

    See: Schulman, "Approximating KL divergence" (http://joschu.net/blog/kl-approx.html); "On a few
    pitfalls in KL divergence gradient estimation for RL" (https://arxiv.org/abs/2506.09477).

    Differs: GRPO as published, verl's ``low_var_kl`` and TRL use k3 in the loss; k3_ratio is what
    NeMo-RL does and what TRL calls ``use_bias_correction_kl``; verl writes ``k1+`` and ``k3+``.

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
        UsageError: Unknown kind, or k3_ratio without old_logp.
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
    """Sum KL(policy || reference) over the vocabulary.

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
