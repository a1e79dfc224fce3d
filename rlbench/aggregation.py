"""How losses per token become the one number that an optimiser step minimises.

========================= ========================= ===========================================
mode                      formula                   what others call it
========================= ========================= ===========================================
token_mean                Σ l / N                   verl ``token-mean``, TRL ``dapo``
token_mean_local          mean_k (Σ l / N_k)        TRL ``bnpo``; any trainer that averages each
                                                    micro-batch k
token_sum                 Σ l                       verl ``token-sum``
seq_mean_token_mean       mean_i (Σ_t l / n_i)      TRL ``grpo``; GRPO as published
seq_mean_token_sum        mean_i Σ_t l              verl ``seq-mean-token-sum``
seq_mean_token_sum_norm   mean_i Σ_t l / horizon    TRL ``dr_grpo``; verl divides by the padded
                                                    width unless told otherwise
token_sum_norm            Σ l / horizon             ROLL ``seq-mean-token-sum-norm``, also in older
                                                    copies of verl (no mean over rows);
                                                    open-instruct with a constant denominator
prompt_mean               token mean in each group, SkyRL ``prompt_mean``; DAPO as published;
                          then the mean over groups torchrl's of this name is a mean over rows
========================= ========================= ===========================================

N counts the tokens of the whole optimiser step and n_i those of completion i. Counts taken over a
micro-batch would make the gradient depend on how a step is split, so the weights of all tokens are
computed once a step::

    w = weights(mask, "token_mean")              # the whole step
    for rows in micro_batches:                   # any split gives the same gradient
        weighted_sum(per_token[rows], w[rows]).backward()

The exception is ``token_mean_local``, which depends on the split by definition: it is there to
reproduce trainers that have it.

A completion without a token, be it that it could not be scored, is left out of means over
completions, groups and micro-batches. ``count_masked_rows`` counts it in their divisors, as TRL's
``grpo`` does, and verl when its global batch size is set; the others leave it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from rlbench import masked
from rlbench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

MODES = (
    "token_mean",
    "token_mean_local",
    "token_sum",
    "seq_mean_token_mean",
    "seq_mean_token_sum",
    "seq_mean_token_sum_norm",
    "token_sum_norm",
    "prompt_mean",
)


def weights(
    mask: Tensor,
    mode: str,
    *,
    horizon: int | None = None,
    group: Tensor | None = None,
    parts: Sequence[int] | None = None,
    count_masked_rows: bool = False,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Weigh every token so that the aggregate is the sum of weight times value.

    Args:
        mask: (B, T) bool, the tokens of one whole optimiser step.
        mode: One of `MODES`.
        horizon: What the two modes that end in ``_norm`` divide by: a constant such as the length
            limit of a completion, never the width of a batch. Other modes ignore it.
        group: (B,) ids, for ``prompt_mean``. Other modes ignore them.
        parts: How many rows each micro-batch has, in order, for ``token_mean_local``; none means
            one micro-batch. Other modes ignore it.
        count_masked_rows: Whether completions, groups and micro-batches without a token count in
            the divisor of a mean over them.
        dtype: Of the weights; take that of the values.

    Returns:
        (B, T), positive inside the mask and 0 outside.

    Raises:
        UsageError: Unknown mode, one whose horizon or group is missing, or parts that are not the
            rows of the mask.
    """
    inside = mask.to(torch.float64)
    length = masked.count(mask, 1)[:, None]
    rows = len(mask) if count_masked_rows else int(masked.count(length > 0))
    rows = max(rows, 1)
    if mode == "token_mean":
        return (inside / masked.count(mask).clamp(min=1)).to(dtype)
    if mode == "token_mean_local":
        return (inside / _local_divisor(mask, parts, count_empty=count_masked_rows)).to(dtype)
    if mode == "token_sum":
        return inside.to(dtype)
    if mode == "seq_mean_token_mean":
        return (inside / (rows * length.clamp(min=1))).to(dtype)
    if mode == "seq_mean_token_sum":
        return (inside / rows).to(dtype)
    if mode in ("seq_mean_token_sum_norm", "token_sum_norm"):
        if horizon is None or horizon < 1:
            raise UsageError(
                f"aggregation {mode!r}: horizon={horizon}, expected a constant length of at least 1"
            )
        return (inside / (horizon if mode == "token_sum_norm" else rows * horizon)).to(dtype)
    if mode == "prompt_mean":
        if group is None:
            raise UsageError(f"aggregation {mode!r}: needs the group ids of the rows")
        tokens = masked.group_total(length, length > 0, group)
        prompts: int = torch.unique(group if count_masked_rows else group[mask.any(1)]).numel()
        prompts = max(prompts, 1)
        return (inside / (prompts * tokens.clamp(min=1))).to(dtype)
    raise UsageError.unknown("aggregation", mode, MODES)


def _local_divisor(mask: Tensor, parts: Sequence[int] | None, *, count_empty: bool) -> Tensor:
    """Tokens of each row's micro-batch, times the number of micro-batches: (B, 1)."""
    sizes = [len(mask)] if parts is None else list(parts)
    if sum(sizes) != len(mask):
        raise UsageError(
            f"aggregation 'token_mean_local': micro-batches of {sizes} rows, and the mask has "
            f"{len(mask)}"
        )
    size = torch.tensor(sizes, device=mask.device)
    part = torch.arange(len(sizes), device=mask.device).repeat_interleave(size)  # (B,)
    length = masked.count(mask, 1)
    tokens = masked.group_total(length, length > 0, part)
    full = len(sizes) if count_empty else torch.unique(part[length > 0]).numel()
    return (max(full, 1) * tokens.clamp(min=1))[:, None]


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
    *,
    parts: Sequence[int] | None = None,
    count_masked_rows: bool = False,
) -> Tensor:
    """Reduce per-token values of one whole optimiser step to a scalar.

    Args:
        per_token: (B, T), anything where the mask is False.
        mask: (B, T) bool.
        mode: One of `MODES`; the table above says what each means.
        horizon: See `weights`.
        group: See `weights`.
        parts: See `weights`.
        count_masked_rows: See `weights`.

    Returns:
        A scalar; 0, but connected to the graph, when the mask is empty.

    Raises:
        UsageError: Unknown mode, one whose horizon or group is missing, or parts that are not the
            rows of the mask.
    """
    weight = weights(
        mask,
        mode,
        horizon=horizon,
        group=group,
        parts=parts,
        count_masked_rows=count_masked_rows,
        dtype=per_token.dtype,
    )
    return weighted_sum(per_token, weight)
