"""How losses per token become the one number that an optimiser step minimises.

========================= ========================= ===========================================
mode                      formula                   what others call it
========================= ========================= ===========================================
token_mean                Σ l / N                   verl ``token-mean``, TRL ``dapo``
seq_mean_token_mean       mean_i (Σ_t l / n_i)      TRL ``grpo``; GRPO as published
seq_mean_token_sum        mean_i Σ_t l              verl ``seq-mean-token-sum``
seq_mean_token_sum_norm   mean_i Σ_t l / horizon    TRL ``dr_grpo``; verl divides by the padded
                                                    width, ROLL leaves out the mean over rows
prompt_mean               token mean in each group, SkyRL ``prompt_mean``; DAPO as published
                          then the mean over groups
========================= ========================= ===========================================

N counts the tokens of the whole optimiser step and n_i those of completion i. A completion without
a token is left out of means over completions. Counts taken over a micro-batch would make the
gradient depend on how a step is split, so the weights of all tokens are computed once a step::

    w = weights(mask, "token_mean")              # the whole step
    for rows in micro_batches:                   # any split gives the same gradient
        weighted_sum(per_token[rows], w[rows]).backward()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from rlbench import masked
from rlbench.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

MODES = (
    "token_mean",
    "seq_mean_token_mean",
    "seq_mean_token_sum",
    "seq_mean_token_sum_norm",
    "prompt_mean",
)


def weights(
    mask: Tensor,
    mode: str,
    *,
    horizon: int | None = None,
    group: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Weigh every token so that the aggregate is the sum of weight times value.

    Args:
        mask: (B, T) bool, the tokens of one whole optimiser step.
        mode: One of `MODES`.
        horizon: Length that ``seq_mean_token_sum_norm`` divides by: a constant such as the limit
            of a completion, never the width of a batch. Other modes ignore it.
        group: (B,) ids, for ``prompt_mean``. Other modes ignore them.
        dtype: Of the weights; take that of the values.

    Returns:
        (B, T), positive inside the mask and 0 outside.

    Raises:
        UsageError: Unknown mode, or one whose horizon or group is missing.
    """
    inside = mask.to(torch.float64)
    length = masked.count(mask, 1)[:, None]
    rows = masked.count(length > 0).clamp(min=1)
    if mode == "token_mean":
        divisor = masked.count(mask).clamp(min=1)
    elif mode == "seq_mean_token_mean":
        divisor = rows * length.clamp(min=1)
    elif mode == "seq_mean_token_sum":
        divisor = rows
    elif mode == "seq_mean_token_sum_norm":
        if horizon is None or horizon < 1:
            raise UsageError(
                f"aggregation {mode!r}: horizon={horizon}, expected a constant length of at least 1"
            )
        divisor = rows * horizon
    elif mode == "prompt_mean":
        if group is None:
            raise UsageError(f"aggregation {mode!r}: needs the group ids of the rows")
        tokens = masked.group_total(length, length > 0, group)
        prompts = torch.unique(group[mask.any(1)]).numel()
        divisor = max(prompts, 1) * tokens.clamp(min=1)
    else:
        raise UsageError.unknown("aggregation", mode, MODES)
    return (inside / divisor).to(dtype)


def weighted_sum(per_token: Tensor, weights: Tensor) -> Tensor:
    """Sum weight times value over the tokens that have a weight.

    Args:
        per_token: (B, T), anything where the weight is 0.
        weights: (B, T) from `weights`, or the same rows of both.

    Returns:
        A scalar; 0, but connected to the graph, when no token has a weight.
    """
    return (masked.select(per_token, weights != 0) * weights).sum()


def aggregate(
    per_token: Tensor,
    mask: Tensor,
    mode: str,
    horizon: int | None = None,
    group: Tensor | None = None,
) -> Tensor:
    """Reduce per-token values of one whole optimiser step to a scalar.

    Args:
        per_token: (B, T), anything where the mask is False.
        mask: (B, T) bool.
        mode: One of `MODES`; the table above says what each means.
        horizon: See `weights`.
        group: See `weights`.

    Returns:
        A scalar; 0, but connected to the graph, when the mask is empty.

    Raises:
        UsageError: Unknown mode, or one whose horizon or group is missing.
    """
    weight = weights(mask, mode, horizon=horizon, group=group, dtype=per_token.dtype)
    return weighted_sum(per_token, weight)
