"""The interquartile mean of one group of seeds."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from rlbench.stats.bootstrap import expanded_tail, tail_values
from rlbench.stats.interval import Interval, degenerate_interval, no_interval
from rlbench.stats.sample import (
    average,
    check_level,
    check_resamples,
    constant,
    sample,
    scaled,
    unscaled,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

FEWEST = 5  # below, a bootstrap of the IQM covers too rarely to be printed
ENUMERATED = 10  # up to here all resamples are enumerated
BLOCK = 1000  # resamples at a time: the block stays in the processor's cache


def iqm(x: ArrayLike) -> float:
    """Average the middle half of the values.

    See Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice"
    (NeurIPS 2021). As published: the mean without the ``int(n / 4)`` lowest and as many highest
    values, so that it is the plain mean below n = 4. A quarter of failed runs does not show in it:
    print the share of failures beside it.

    Args:
        x: Values (n,), one per run, in any unit.

    Returns:
        The interquartile mean in the unit of ``x``; the same bits in any order of the values.

    Raises:
        ValueError: ``x`` is empty, not one-dimensional or not finite.
    """
    values = np.sort(sample(x))
    cut = len(values) // 4
    return average(values[cut : len(values) - cut])


def iqm_interval(
    x: ArrayLike,
    level: float = 0.95,
    resamples: int = 10_000,
    rng: int | np.random.Generator = 0,
) -> Interval:
    """Estimate an interquartile mean with an expanded percentile bootstrap.

    From 5 to 10 values all resamples are enumerated, with their probabilities: no Monte-Carlo
    error, ``resamples`` and ``rng`` are not used. Above, the resamples are drawn. The quantiles are
    taken at `expanded_tail` with ``df = n - 1`` and ``inflation = n / (n - 1)``. Simulated on
    normal data at level .95 it covers 94 % at 5 and 97 % at 10 values.

    Args:
        x: Values (n,), one per seed, in any unit.
        level: Confidence level in (0, 1).
        resamples: Number of resamples above 10 values, at least 100.
        rng: Seed or generator.

    Returns:
        The interval in the unit of ``x``. Below 5 values there is none. It is ``degenerate`` when
        all values are equal, or when so many are that the quantiles coincide.

    Raises:
        ValueError: ``x`` is empty, not one-dimensional or not finite, or a setting is out of range.
    """
    values = np.sort(sample(x))
    check_level(level)
    check_resamples(resamples)
    n, mid = len(values), iqm(values)
    if n > 1 and constant(values):
        return degenerate_interval(mid, level=level, n=n, why="all values are equal")
    if n < FEWEST:
        why = "one value" if n == 1 else f"the IQM needs {FEWEST} values"
        return no_interval(mid, level=level, n=n, why=why)
    tail = expanded_tail(level, df=n - 1, inflation=n / (n - 1))
    small, exponent = scaled(values)
    if n <= ENUMERATED:
        low, high = _enumerated(small, tail)
        method = "exact bootstrap, expanded percentile"
    else:
        generator = np.random.default_rng(rng)
        low, high = tail_values(resampled_iqms([small], resamples, generator), tail)
        method = f"bootstrap, expanded percentile, {resamples} resamples"
    if low == high:
        return degenerate_interval(mid, level=level, n=n, why="too many values are equal")
    return Interval(
        low=unscaled(low, exponent),
        mid=mid,
        high=unscaled(high, exponent),
        level=level,
        n=n,
        method=method,
    )


def resampled_iqms(
    groups: list[NDArray[np.float64]], resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw every group anew, with replacement, and take the IQM of all values together.

    Args:
        groups: Sorted values of each group; every one keeps its size in each resample.
        resamples: Number of resamples B.
        rng: Generator.

    Returns:
        The IQM of each resample (B,).
    """
    sizes, iqms = [len(group) for group in groups], Resampled(np.concatenate(groups))
    estimates = np.empty(resamples)
    for start in range(0, resamples, BLOCK):
        rows = min(BLOCK, resamples - start)
        estimates[start : start + rows] = iqms.at(draw(sizes, rows, rng))
    return estimates


class Resampled:
    """IQMs of resamples of one array.

    Small integers are gathered and sorted instead of the values: their ranks. They sort several
    times as fast as floats.

    Args:
        pooled: Values (n,).
    """

    def __init__(self, pooled: NDArray[np.float64]) -> None:
        order = np.argsort(pooled, kind="stable")
        kind = np.int16 if len(pooled) < 2**15 else np.int32
        self._rank = np.empty(len(pooled), dtype=kind)
        self._rank[order] = np.arange(len(pooled), dtype=kind)
        self._ordered, self._cut = pooled[order], len(pooled) // 4

    def at(self, positions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Take the IQM of the values at these positions (rows, n), row by row."""
        drawn = self._rank[positions]
        drawn.sort(axis=1)
        middle = self._ordered[drawn[:, self._cut : drawn.shape[1] - self._cut]]
        found: NDArray[np.float64] = middle.mean(axis=1)
        return found


def draw(sizes: list[int], rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw positions for a stratified bootstrap.

    Args:
        sizes: Number of values of each group; the groups stand one after the other.
        rows: Number of resamples.
        rng: Generator.

    Returns:
        Positions (rows, sum of sizes): each group's lie inside this group.
    """
    starts = np.cumsum([0, *sizes[:-1]])
    positions: NDArray[np.int64]
    if len(set(sizes)) == 1:
        size = sizes[0]
        # one byte a draw, where it suffices: drawing is a third of the whole work
        byte = np.uint8 if size <= 2**8 else np.int64
        picks = rng.integers(0, size, size=(rows, len(sizes), size), dtype=byte)
        positions = (picks + starts[:, None]).reshape(rows, -1)
    else:
        ends = np.repeat(sizes, sizes)
        positions = rng.integers(0, ends, size=(rows, len(ends))) + np.repeat(starts, sizes)
    return positions


def _enumerated(values: NDArray[np.float64], tail: float) -> tuple[float, float]:
    """Take both quantiles of the exact bootstrap distribution of the IQM."""
    middles, ways = _middles(len(values))
    atoms = values[middles].mean(axis=1)
    order = np.argsort(atoms, kind="stable")
    atoms, ways = atoms[order], ways[order]
    threshold = tail * len(values) ** len(values)
    low = atoms[np.searchsorted(np.cumsum(ways), threshold)]
    high = atoms[::-1][np.searchsorted(np.cumsum(ways[::-1]), threshold)]
    return float(low), float(high)


@functools.cache
def _middles(n: int) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Enumerate the middle halves of all resamples of n sorted values.

    Returns:
        Positions (k, kept), and in how many of the n**n ordered resamples each occurs (k,).
    """
    multisets = np.fromiter(
        itertools.chain.from_iterable(itertools.combinations_with_replacement(range(n), n)),
        dtype=np.int8,
        count=n * math.comb(2 * n - 1, n),
    ).reshape(-1, n)
    factorial = np.array([math.factorial(i) for i in range(n + 1)])
    ways = np.full(len(multisets), factorial[n])
    for value in range(n):
        ways //= factorial[(multisets == value).sum(axis=1)]
    cut = n // 4
    middles = multisets[:, cut : n - cut]
    digits = n ** np.arange(middles.shape[1])  # one number per middle: quicker to tell apart
    _, first, owner = np.unique(middles @ digits, return_index=True, return_inverse=True)
    total = np.zeros(len(first), dtype=np.int64)
    np.add.at(total, owner, ways)
    return middles[first], total
