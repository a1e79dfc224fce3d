"""Losses with one ratio for a whole completion.

The loss of a completion stands on each of its tokens. A mean over its tokens gives it back, so
``aggregation=seq_mean_token_mean`` is the mean over completions that the papers write. With
``token_mean`` long completions weigh more, in proportion to their length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import torch

from rlbench import masked
from rlbench.builtin.losses.clipping import surrogate
from rlbench.divergence import LOG_RATIO_LIMIT
from rlbench.types import LossTerms

if TYPE_CHECKING:
    from torch import Tensor

    from rlbench.types import PolicyBatch


def _row_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Mean over the tokens of each completion: (B, T) to (B, 1), 0 for a row without tokens."""
    return masked.mean(x, mask, 1)[:, None]


def _row_ratio(log_ratios: Tensor, mask: Tensor) -> Tensor:
    """Geometric mean of ratios: (B, T) nats to (B, 1).

    Only the mean is limited before exp: limiting each token first would change the ratio of a long
    completion that has one unlikely token.
    """
    return _row_mean(log_ratios, mask).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()


def _spread(row: Tensor, mask: Tensor) -> Tensor:
    """Put a number on each token of its completion: (B, 1) to (B, T), 0 outside the mask."""
    return masked.select(row.expand(mask.shape), mask)


def gspo(
    batch: PolicyBatch,
    *,
    eps: Annotated[float, "(0, 1]"] = 3e-4,
    eps_high: Annotated[float, "(0, inf)"] | None = 4e-4,
) -> LossTerms:
    """Clip the length-normalised ratio of the whole completion (GSPO).

    ``max(-A s, -A clip(s, 1 - eps, 1 + eps_high))`` with ``s = exp(mean_t(logp - old_logp))``, and
    A the mean of the completion's advantages. A completion is clipped as a whole.

    See: Zheng et al., "Group Sequence Policy Optimization", section 4.1, eq. 7
    (https://arxiv.org/abs/2507.18071).

    Differs: the paper means ``aggregation=seq_mean_token_mean``; with ``seq_mean_token_sum`` this
    is LUSPO (https://arxiv.org/abs/2602.05261). verl's ``gspo`` is ``gspo_token`` here, always
    averaged as in the paper. verl and TRL keep eps at 0.2, the paper has 3e-4 and 4e-4. TRL's RLOO
    and ROLL's sequence ratio multiply the ratios of a completion without the mean.

    Args:
        batch: Reads logp, old_logp, advantages and mask. Advantages that differ within a completion
            are averaged; for one of each token take ``gspo_token``.
        eps: How far s may fall below 1, usually 3e-4 as published, for completions of thousands of
            tokens, whose mean moves little; completions of a few tokens want 0.05 to 0.2.
        eps_high: How far it may rise above 1, usually a little more; none means eps.

    Returns:
        Per-token loss (B, T), equal on all tokens of a completion. Metrics: ``clip_fraction``,
        tokens of completions whose gradient is 0 because the clipped term is the active one.
    """
    mask = batch.mask
    ratio = _row_ratio(batch.logp - batch.old_logp, mask)
    advantages = _row_mean(batch.advantages, mask)
    loss, clipped = surrogate(ratio, advantages, eps=eps, eps_high=eps_high)
    return LossTerms(_spread(loss, mask), {"clip_fraction": _spread(clipped.to(ratio.dtype), mask)})


def gspo_token(
    batch: PolicyBatch,
    *,
    eps: Annotated[float, "(0, 1]"] = 3e-4,
    eps_high: Annotated[float, "(0, inf)"] | None = 4e-4,
) -> LossTerms:
    """Clip the completion's ratio, with an advantage for each token (GSPO-token).

    ``max(-A s_t, -A clip(s_t, 1 - eps, 1 + eps_high))`` with ``s_t = stop(s) exp(logp) /
    stop(exp(logp))``: s is the ratio of ``gspo``, and the gradient goes to the token itself. With
    equal advantages in a completion, and averaged within it, its gradient is that of ``gspo``.

    See: Zheng et al., "Group Sequence Policy Optimization", section 4.3, eq. 13 and 14
    (https://arxiv.org/abs/2507.18071).

    Differs: verl calls this form ``gspo`` and always averages within completions first, limiting
    log s to 10; ms-swift calls it ``sequence_token``.

    Args:
        batch: Reads logp, old_logp, advantages and mask.
        eps: How far s may fall below 1, usually 3e-4 for completions of thousands of tokens and
            0.05 to 0.2 for a few.
        eps_high: How far it may rise above 1, usually a little more; none means eps.

    Returns:
        Per-token loss (B, T). Metrics: ``clip_fraction``, tokens whose gradient is 0 because the
        clipped term is the active one.
    """
    mask = batch.mask
    current = masked.select(batch.logp, mask)
    ratio = _row_ratio((batch.logp - batch.old_logp).detach(), mask)
    own = ratio * (current - current.detach()).exp()  # (B, T), each equal to its row's ratio
    advantages = masked.select(batch.advantages, mask)
    loss, clipped = surrogate(own, advantages, eps=eps, eps_high=eps_high)
    return LossTerms(loss, {"clip_fraction": clipped.to(loss.dtype)})


def gmpo(
    batch: PolicyBatch,
    *,
    eps: Annotated[float, "(0, inf)"] = 0.4,
    eps_high: Annotated[float, "(0, inf)"] | None = None,
) -> LossTerms:
    """Take the geometric mean of clipped ratios as the ratio of the completion (GMPO).

    ``-A exp(mean_t l_t)`` where l is ``logp - old_logp`` clipped on the side that A drives to: at
    most eps_high for a positive A, at least -eps for a negative one; A is the mean of the
    completion's advantages. A token's clip does not stop the others.

    See: Zhao et al., "Geometric-Mean Policy Optimization", eq. 4 (https://arxiv.org/abs/2507.20673).

    Differs: verl calls it ``geo_mean``, has 0.2 instead of the published 0.4, and takes the mean
    over all rows whatever the aggregation. The paper's formula takes eps_high on both sides, verl
    takes eps for negative advantages as here; they agree while the two are equal. Where advantages
    differ within a completion, verl clips each token by the sign of its own. The paper means
    ``aggregation=seq_mean_token_mean``. The bounds are on the log of the ratio: 0.4 lets the ratio
    of a token go from 0.67 to 1.49.

    Args:
        batch: Reads logp, old_logp, advantages and mask. Advantages that differ within a completion
            are averaged.
        eps: How far log-ratios count below 0, in nats, usually 0.2 to 0.5.
        eps_high: How far they count above 0, in nats, usually as far; none means eps.

    Returns:
        Per-token loss (B, T), equal on all tokens of a completion. Metrics: ``clip_fraction``,
        tokens whose gradient is 0 because their ratio is clipped.
    """
    mask = batch.mask
    log_ratio = masked.select(batch.logp - batch.old_logp, mask)
    advantages = _row_mean(batch.advantages, mask)
    high = eps if eps_high is None else eps_high
    clipped = torch.where(advantages > 0, log_ratio > high, log_ratio < -eps) & (advantages != 0)
    edge = torch.full_like(advantages, -eps).masked_fill(advantages > 0, high)
    ratio = _row_ratio(torch.where(clipped, edge, log_ratio), mask)
    return LossTerms(
        _spread(-advantages * ratio, mask), {"clip_fraction": clipped.to(log_ratio.dtype)}
    )
