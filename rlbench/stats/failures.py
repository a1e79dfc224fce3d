"""Rates of failed runs."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from scipy.special import betaincinv

from rlbench.stats.interval import Interval
from rlbench.stats.sample import check_level

if TYPE_CHECKING:
    from typing import SupportsIndex


def failure_interval(failures: SupportsIndex, n: SupportsIndex, level: float = 0.95) -> Interval:
    """Estimate a failure rate with Jeffreys' interval.

    See Brown, Cai and DasGupta, "Interval estimation for a binomial proportion", Statistical
    Science 16 (2001). As published: quantiles of Beta(k + 1/2, n - k + 1/2), with the lower bound 0
    when nothing failed and the upper bound 1 when everything did. It never has zero width: 0
    failures of 5 leave room for a rate of 0.38. For any n from 1.

    Args:
        failures: Number k of failed runs: failed, diverged and timed out ones, not those that the
            machine lost.
        n: Number of runs that were started.
        level: Confidence level in (0, 1).

    Returns:
        The rate in [0, 1] with its interval.

    Raises:
        ValueError: ``n`` is below 1, ``failures`` is not in [0, n], or ``level`` not in (0, 1).
        TypeError: A count is not a whole number.
    """
    k, runs = operator.index(failures), operator.index(n)
    check_level(level)
    if runs < 1:
        raise ValueError(f"n {runs}: a rate needs at least one run")
    if not 0 <= k <= runs:
        raise ValueError(f"{k} failures of {runs} runs: lies outside [0, {runs}]")
    low, high = jeffreys(float(k), runs, level)
    return Interval(low=low, mid=k / runs, high=high, level=level, n=runs, method="Jeffreys")


def jeffreys(successes: float, n: float, level: float) -> tuple[float, float]:
    """Compute Jeffreys' interval of a proportion; half a success stands for a tie."""
    a, b = successes + 0.5, n - successes + 0.5
    low = 0.0 if successes == 0 else float(betaincinv(a, b, (1 - level) / 2))
    high = 1.0 if successes == n else float(betaincinv(a, b, (1 + level) / 2))
    return low, high
