"""p-values for a family whose comparisons have few or many pairs of seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlbench.stats.multiplicity import holm, max_t

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

MAX_T_FROM = 7  # pairs; below, flipping signs leaves no room for a correction


def adjusted_by_pairs(p: ArrayLike, pairs: ArrayLike, d: ArrayLike) -> NDArray[np.float64]:
    """Adjust for a family, each comparison by the method that its number of pairs allows.

    From 7 pairs on p is that of `max_t`, below it is Holm's on the t test. Where a family has both,
    each of the two groups gets its share of the error rate: its p-values are multiplied by the size
    of the family over that of the group (Bonferroni), so that the chance of any false claim is
    bounded as in a family of one kind, and a comparison with few pairs never makes another's p
    smaller.

    Args:
        p: Unadjusted p-values (k,) of t tests.
        pairs: Numbers of pairs (k,); 0 where nothing is paired, which no flip can test.
        d: Differences (n, k), 0 at seeds that a comparison lacks; columns of few pairs are not
            read.

    Returns:
        Adjusted p-values (k,).

    Raises:
        ValueError: Shapes don't fit, or a value is not finite.
    """
    given, many = np.asarray(p, dtype=np.float64), np.asarray(pairs) >= MAX_T_FROM
    values = np.asarray(d, dtype=np.float64)
    if values.ndim != 2 or given.shape != many.shape or values.shape[1] != len(given):
        raise ValueError(
            f"p has shape {given.shape}, pairs {many.shape}, d {values.shape}: expected (k,), (k,) "
            "and (n, k)"
        )
    found = np.ones(len(given))
    for group, adjust in ((many, max_t), (~many, holm)):
        if group.any():
            own = adjust(values[:, group] if adjust is max_t else given[group])
            found[group] = np.minimum(own * (len(given) / group.sum()), 1.0)
    return found
