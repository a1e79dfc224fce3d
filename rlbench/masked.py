"""Sums, means and standard deviations over the True cells of a mask.

Everything selects and nothing multiplies, so that NaN or inf under a False changes neither a value
nor a gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


def select(x: Tensor, mask: Tensor, fill: float = 0.0) -> Tensor:
    """Replace the cells outside the mask; no gradient flows to them."""
    return torch.where(mask, x, torch.full((), fill, dtype=x.dtype, device=x.device))


def count(mask: Tensor, dim: int | None = None) -> Tensor:
    """Number of True cells, as int64."""
    return mask.sum() if dim is None else mask.sum(dim)


def total(x: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    """Sum over the True cells; 0 where there is none."""
    kept = select(x, mask)
    return kept.sum() if dim is None else kept.sum(dim)


def mean(x: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    """Mean over the True cells; 0 where there is none."""
    return total(x, mask, dim) / count(mask, dim).clamp(min=1)


def standard_deviation(x: Tensor, mask: Tensor, *, ddof: int) -> Tensor:
    """Standard deviation over all True cells, from deviations (two passes, no cancellation).

    Returns:
        A scalar; 0 with no more than ``ddof`` True cells.
    """
    n = int(count(mask))
    if n <= ddof:
        return torch.zeros((), dtype=x.dtype, device=x.device)
    deviation = select(x - mean(x, mask), mask)
    return (deviation.square().sum() / (n - ddof)).sqrt()
