"""p-values for a family of comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlbench.stats.paired import ENUMERATED, TIE, flips
from rlbench.stats.sample import check_resamples, table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

PIECE = 1 << 18  # statistics at a time: two megabytes, which stay in the processor's cache


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Adjust p-values by Holm's step-down rule.

    See Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6 (1979). As published: the i-th smallest of m is multiplied by ``m - i + 1``, and no
    adjusted value is below that of a smaller one. It bounds the chance of any false claim whatever
    the dependence. In use with paired t up to 6 seeds; from 7 `max_t` loses less.

    Args:
        p: Unadjusted p-values (m,) of the whole family.

    Returns:
        Adjusted p-values (m,), in the order given, at most 1.

    Raises:
        ValueError: Not one-dimensional, or a value is no probability.
    """
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"expected p-values of shape (m,), got shape {values.shape}")
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        raise ValueError(
            f"p-value {values[wrong][0]}: lies outside [0, 1]; a comparison that can't be tested "
            "has no p-value: decide whether it belongs to the family, and say so"
        )
    m = len(values)
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(m, 0, -1))
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def max_t(
    d: ArrayLike, resamples: int = 10_000, rng: int | np.random.Generator = 0
) -> NDArray[np.float64]:
    """Test several paired differences at once, by flipping the signs of whole seeds.

    See Westfall and Young, "Resampling-Based Multiple Testing" (Wiley, 1993): step-down max-t. All
    comparisons share each flip, so that their dependence is kept, and the least adjusted p is
    ``2**(1 - n)`` however many comparisons there are. The largest ``abs(t)`` is compared with the
    largest of every flip, the next with the largest of the rest, and so on. Up to 16 seeds all
    flips are enumerated; above, p is ``(1 + b) / (resamples + 1)``. A seed at which all differences
    are 0 is the same under every flip and is not counted.

    From n = 7: at 6 seeds the least p is 0.031, which leaves no room for error in any seed.

    Args:
        d: Differences (n, k): one row per seed, one column per comparison.
        resamples: Number of random flips above 16 seeds, at least 100.
        rng: Seed or generator for them.

    Returns:
        Adjusted two-sided p-values (k,); 1 for a column of zeros. The order of the seeds and the
        sign of all of ``d`` change nothing.

    Raises:
        ValueError: ``d`` is not two-dimensional, has no row or is not finite, or ``resamples`` is
            below 100.
    """
    values = table(d, "comparisons")
    check_resamples(resamples)
    k = values.shape[1]
    if k == 0:
        return np.empty(0)
    values = _canonical(values)
    if not len(values):
        return np.ones(k)
    # flips leave sum(d**2) as it is, so abs(t) grows with abs(sum(d)) / sqrt(sum(d**2)), which has
    # no variance to divide by
    size = np.abs(values).max(axis=0)
    values = values / np.where(size > 0, size, 1.0)
    values /= np.where(size > 0, np.sqrt((values**2).sum(axis=0)), 1.0)
    observed = np.abs(values.sum(axis=0))
    order = np.argsort(observed, kind="stable")  # weakest first
    ranked, threshold = values[:, order], observed[order] - TIE
    extreme, count = np.zeros(k, dtype=np.int64), 0
    rows = max(PIECE // k, 1)
    for signs in flips(len(values), resamples, rng):
        for start in range(0, len(signs), rows):
            largest = np.abs(signs[start : start + rows] @ ranked)
            np.maximum.accumulate(largest, axis=1, out=largest)
            extreme += (largest >= threshold).sum(axis=0)
        count += len(signs)
    drawn = int(len(values) > ENUMERATED)  # the data themselves count as one of the drawn flips
    p = (extreme + drawn) / (count + drawn)
    adjusted = np.empty(k)
    adjusted[order] = np.maximum.accumulate(p[::-1])[::-1]
    return adjusted


def _canonical(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Leave out rows of zeros, and order the rest by their sizes, whatever signs and order.

    Drawn flips meet rows in their order: neither who is called baseline nor the order of seeds or
    comparisons may choose which.
    """
    sizes = np.abs(values)
    keys = np.concatenate([sizes.T, np.sort(sizes, axis=1).T])  # the last key rules
    return values[np.lexsort(keys)][(sizes == 0).all(axis=1).sum() :]
