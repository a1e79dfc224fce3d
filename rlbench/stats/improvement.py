"""How often one cell beats another."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logit, stdtrit

from rlbench.stats.failures import jeffreys
from rlbench.stats.interval import Interval, degenerate_interval, no_interval
from rlbench.stats.paired import pair
from rlbench.stats.sample import check_level, sample

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def probability_of_improvement(
    a: ArrayLike,
    b: ArrayLike,
    *,
    paired: bool = False,
    level: float = 0.95,
) -> Interval:
    """Estimate the probability that a run of the first cell beats one of the second.

    Paired: the share of seeds at which ``a`` is larger, ties counting one half, with Jeffreys'
    interval (see `failure_interval`).

    Unpaired: ``U / (n m)``, the share of all pairs of runs (Mann and Whitney), with a t interval on
    the logit scale. Its variance is ``S10 / n + S01 / m``: S10 and S01 are the variances of the
    share of the other cell that each run beats; see DeLong, DeLong and Clarke-Pearson, "Comparing
    the areas under two or more correlated receiver operating characteristic curves", Biometrics 44
    (1988). The degrees of freedom are Satterthwaite's; see Brunner and Munzel, "The nonparametric
    Behrens-Fisher problem", Biometrical Journal 42 (2000). Why the logit scale, and why all wins
    need a correction: Pohar Perme and Manevski, "Confidence intervals for the Mann-Whitney test",
    Statistical Methods in Medical Research 28 (2019).

    **Differs**: the estimate is kept half a win from 0 and 1, and the variance above that of half a
    win, ``1 / (2 n**2 m**2)``, inside the interval only. Simulated coverage of 95 % intervals at
    n = m = 3, 5 and 10 with true values .5, .76 and .96: 97 to 100 %. A percentile bootstrap
    collapses to a point when all are wins. Cliff's delta is ``2 * mid - 1``.

    Args:
        a: Values (n,) of the first cell; larger is better.
        b: Values (m,) of the second; paired: in the same order of seeds, m = n.
        paired: Whether the values stand seed by seed beside each other.
        level: Confidence level in (0, 1).

    Returns:
        The probability in [0, 1]; above one half means that ``a`` is better. One run on either side
        has no interval; nothing but ties is degenerate. ``n`` is the smaller number of runs.

    Raises:
        ValueError: A sample is empty, not one-dimensional or not finite, lengths differ in the
            paired form, or ``level`` is not in (0, 1).
    """
    check_level(level)
    if paired:
        return _paired(a, b, level)
    first, second = np.sort(sample(a)), np.sort(sample(b))
    n, m = len(first), len(second)
    fewest = min(n, m)
    beaten = _share_below(first, second)
    beats = _share_below(second, first)
    mid = math.fsum(beaten) / n
    if fewest == 1:
        return no_interval(mid, level=level, n=1, why="one run on a side")
    if min(first[0], second[0]) == max(first[-1], second[-1]):
        return degenerate_interval(mid, level=level, n=fewest, why="all values are equal")
    low, high = logit_t(
        mid,
        np.array([beaten.var(ddof=1) / n, beats.var(ddof=1) / m]),
        np.array([n, m], dtype=np.float64),
        games=n * m,
        level=level,
    )
    return Interval(low=low, mid=mid, high=high, level=level, n=fewest, method="U / (n m), logit t")


def logit_t(
    mid: float,
    parts: NDArray[np.float64],
    sizes: NDArray[np.float64],
    *,
    games: int,
    level: float,
) -> tuple[float, float]:
    """Compute a t interval of a probability on the logit scale.

    Args:
        mid: The probability.
        parts: Terms (k,) of its variance.
        sizes: From how many runs each of them is estimated (k,).
        games: How many pairs of runs the probability is a share of: inside the interval it is kept
            half a win from 0 and 1, and its variance above that of half a win.
        level: Confidence level.

    Returns:
        The bounds; ``mid`` lies between them.
    """
    variance, least, half_win = math.fsum(parts), 0.5 / games**2, 0.5 / games
    df = math.fsum(sizes - 1)
    if variance > least:
        df = variance**2 / math.fsum(parts**2 / (sizes - 1))
    inner = min(max(mid, half_win), 1 - half_win)
    half = float(stdtrit(df, (1 + level) / 2)) * math.sqrt(max(variance, least))
    half /= inner * (1 - inner)
    centre = float(logit(inner))
    return min(float(expit(centre - half)), mid), max(float(expit(centre + half)), mid)


def _paired(a: ArrayLike, b: ArrayLike, level: float) -> Interval:
    first, second = pair(a, b)
    n = len(first)
    ties = int((first == second).sum())
    wins = int((first > second).sum()) + ties / 2
    if n == 1:
        return no_interval(wins, level=level, n=1, why="one pair")
    if ties == n:
        return degenerate_interval(0.5, level=level, n=n, why="all pairs are ties")
    low, high = jeffreys(wins, n, level)
    return Interval(low=low, mid=wins / n, high=high, level=level, n=n, method="wins / n, Jeffreys")


def _share_below(values: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute for each value the share of the others (sorted) that it beats; ties are halves."""
    below = np.searchsorted(others, values, side="left")
    not_above = np.searchsorted(others, values, side="right")
    share: NDArray[np.float64] = (below + not_above) / (2 * len(others))
    return share
