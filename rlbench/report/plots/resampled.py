"""Bands of shares over several tasks: a bootstrap of the runs within each, without chance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Counts = NDArray[np.int64]

_FINEST = 240  # parts that a share of one task is counted in, where runs are unequal


def bootstrapped(above: Counts, runs: Counts, level: float = 0.95) -> tuple[Array, Array]:
    """Bound the mean over tasks of the share of runs above each threshold.

    The runs of each task are drawn anew, the tasks stay. How many of a task are above a threshold
    is binomial then, so that the distribution of the mean share is computed and not sampled: the
    same bits on every call and in any order. Where no common denominator of up to 240 fits all
    numbers of runs, shares of a task are rounded to 1/240. Quantiles are taken at
    `rlbench.stats.bootstrap.expanded_tail` with the degrees of freedom and the inflation of
    `rlbench.stats.suite_interval`. There is no width where no task has runs on both sides; and
    a task with one run adds none.

    Args:
        above: Runs (tasks, thresholds) above.
        runs: Runs (tasks,) in all.
        level: Confidence level.

    Returns:
        Lower and upper bounds (thresholds,).
    """
    order = np.lexsort((*above.T[::-1], runs))  # no order of tasks changes a bit of a sum
    above, runs = above[order], runs[order]
    parts = min(math.lcm(*runs.tolist()), _FINEST)
    columns, where = np.unique(above, axis=1, return_inverse=True)
    low, high = (np.empty(columns.shape[1]) for _ in range(2))
    for number, counts in enumerate(columns.T):
        low[number], high[number] = _bounds(counts, runs, parts, level)
    return low[where.ravel()], high[where.ravel()]


def _bounds(counts: Counts, runs: Counts, parts: int, level: float) -> tuple[float, float]:
    """Bound the mean share at one threshold."""
    share = math.fsum(counts / runs) / len(runs)
    spread = (counts > 0) & (counts < runs)
    if not spread.any():
        return share, share
    chances = np.ones(1)
    for count, n in zip(counts[spread].tolist(), runs[spread].tolist(), strict=True):
        steps = np.zeros(parts + 1)
        places = np.rint(np.arange(n + 1) * (parts / n)).astype(int)
        steps[places] = _binomial(n, count / n)
        chances = np.convolve(chances, steps)
    base = int((counts == runs).sum())
    tail = _tail(counts[spread] / runs[spread], runs[spread], level)
    cumulated = np.cumsum(chances)
    first = int(np.searchsorted(cumulated, tail, side="right"))
    last = len(chances) - 1 - int(np.searchsorted(np.cumsum(chances[::-1]), tail, side="right"))
    bounds = [(base + place / parts) / len(runs) for place in (first, last)]
    return min(bounds[0], share), max(bounds[1], share)


def _binomial(n: int, p: float) -> Array:
    """Compute the probabilities (n + 1,) of 0 to n; scipy.stats would cost 0.7 s at import."""
    from scipy.special import gammaln, xlog1py, xlogy

    k = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    found: Array = np.exp(ways + xlogy(k, p) + xlog1py(n - k, -p))
    return found


def _tail(shares: Array, runs: Counts, level: float) -> float:
    """Compute the tail at which quantiles are taken, by the variances of the tasks' shares."""
    from rlbench.stats.bootstrap import expanded_tail

    variances: Any = shares * (1 - shares) / (runs - 1)
    total = math.fsum(variances)
    return expanded_tail(
        level,
        df=total**2 / math.fsum(variances**2 / (runs - 1)),
        inflation=total / math.fsum(variances * (runs - 1) / runs),
    )
