"""Sums, means and standard deviations over the True cells of a mask, whole or group by group.

Everything selects and nothing multiplies, so that NaN or inf under a False changes neither a value
nor a gradient. Functions that start with ``group_`` take ids (B,), any integers in any order, and
give every row the statistic of its own group.
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


def whiten(x: Tensor, mask: Tensor, *, ddof: int = 1, eps: float = 1e-6) -> Tensor:
    """Shift the True cells to mean 0 and scale them to standard deviation 1.

    Differs: verl and TRL put eps inside the root, and verl raises for a single cell; torchtune's
    function of this name adds the mean back by default.

    Args:
        x: Any shape.
        mask: Of the same shape, bool.
        ddof: The variance divides by the number of cells minus this.
        eps: Added to the standard deviation.

    Returns:
        ``(x - mean) / (sd + eps)``, and 0 outside the mask. Cells that are all equal, a single
        one among them, give exactly 0.
    """
    kept = x[mask]
    if kept.numel() == 0 or bool(kept.max() == kept.min()):
        return torch.zeros_like(x)
    wide = x.double()
    spread = standard_deviation(wide, mask, ddof=ddof)
    return select((wide - mean(wide, mask)) / (spread + eps), mask).to(x.dtype)


def _rows_to_groups(group: Tensor) -> tuple[Tensor, int]:
    """Number the groups: (B,) indices from 0, and how many groups there are."""
    ids, index = torch.unique(group, return_inverse=True)
    return index, ids.numel()


def group_total(x: Tensor, mask: Tensor, group: Tensor) -> Tensor:
    """Sum over the True cells of a row's group, at each position of the later dimensions.

    Args:
        x: (B, ...), one number or one sequence for each row.
        mask: Of the same shape, bool.
        group: (B,) integer ids.

    Returns:
        Of the shape of x: every row holds the sum of its group.
    """
    index, groups = _rows_to_groups(group)
    sums = torch.zeros((groups, *x.shape[1:]), dtype=x.dtype, device=x.device)
    return sums.index_add(0, index, select(x, mask))[index]


def group_count(mask: Tensor, group: Tensor) -> Tensor:
    """Number of True cells in a row's group, int64, of the shape of the mask."""
    return group_total(mask.long(), mask, group)


def group_mean(x: Tensor, mask: Tensor, group: Tensor) -> Tensor:
    """Mean over the True cells of a row's group; 0 where there is none. See `group_total`."""
    return group_total(x, mask, group) / group_count(mask, group).clamp(min=1)


def group_standard_deviation(x: Tensor, mask: Tensor, group: Tensor, *, ddof: int) -> Tensor:
    """Standard deviation over the True cells of a row's group, in two passes.

    Returns:
        Of the shape of x; 0 where a group has no more than ``ddof`` True cells.
    """
    deviation = x - group_mean(x, mask, group)
    free = (group_count(mask, group) - ddof).clamp(min=1)
    return (group_total(deviation.square(), mask, group) / free).sqrt()


def group_constant(x: Tensor, mask: Tensor, group: Tensor) -> Tensor:
    """Say whether all True cells of a row's group hold the same number.

    The question is ``max == min``: a standard deviation of equal numbers is often not exactly 0,
    and dividing rounding residue by it makes a signal out of nothing.

    Returns:
        Bool, of the shape of x; True where a group has fewer than two True cells.
    """
    index, groups = _rows_to_groups(group)
    spot = index.reshape(-1, *[1] * (x.ndim - 1)).expand_as(x)
    start = torch.full((groups, *x.shape[1:]), -torch.inf, dtype=x.dtype, device=x.device)
    highest = start.scatter_reduce(0, spot, select(x, mask, -torch.inf), "amax")
    lowest = -start.scatter_reduce(0, spot, select(-x, mask, -torch.inf), "amax")
    return (highest <= lowest)[index]
