"""Confidence intervals for one group of seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy.special import stdtrit  # scipy.stats would cost 0.7 s at import

from rlbench.stats.sample import check_level, constant, moments, sample

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with its confidence interval.

    Attributes:
        low: Lower bound; None where the data admit no interval.
        mid: The estimate itself.
        high: Upper bound; None where the data admit no interval.
        level: Confidence level, such as 0.95.
        n: Number of independent values, in most cases seeds.
        method: How the bounds were computed, in words for a caption.
        degenerate: The data show no spread. The bounds then coincide with the estimate, which says
            that the spread is unknown, not that it is zero.
    """

    low: float | None
    mid: float
    high: float | None
    level: float
    n: int
    method: str
    degenerate: bool = False

    @property
    def half_width(self) -> float | None:
        """Half the length of the interval; None where there is none or where it is degenerate."""
        if self.low is None or self.high is None or self.degenerate:
            return None
        return self.high / 2 - self.low / 2


def no_interval(mid: float, *, level: float, n: int, why: str) -> Interval:
    """Give an estimate whose interval the data don't admit; `why` ends up in `method`."""
    return Interval(low=None, mid=mid, high=None, level=level, n=n, method=f"none: {why}")


def degenerate_interval(value: float, *, level: float, n: int, why: str) -> Interval:
    """Give an estimate without any spread; `why` ends up in `method`."""
    return Interval(
        low=value,
        mid=value,
        high=value,
        level=level,
        n=n,
        method=f"degenerate: {why}",
        degenerate=True,
    )


def symmetric_interval(mid: float, half: float, *, level: float, n: int, method: str) -> Interval:
    """Give ``mid ± half``; degenerate where a float does not show the width."""
    low, high = mid - half, mid + half
    if low == high:
        return degenerate_interval(mid, level=level, n=n, why="the spread is below rounding")
    return Interval(low=low, mid=mid, high=high, level=level, n=n, method=method)


def mean_interval(x: ArrayLike, level: float = 0.95) -> Interval:
    """Estimate a mean with Student's t interval.

    See Student, "The probable error of a mean", Biometrika 6 (1908). As published:
    ``mean ± t(n - 1, (1 + level) / 2) * sd / sqrt(n)`` with the standard deviation over n - 1. It
    holds its level from n = 2 on if the values are near normal, and undercovers if they are
    strongly skewed or a quarter of them are failures. The order of the values does not change a bit
    of the result.

    Args:
        x: Values (n,), one per seed, in any unit.
        level: Confidence level in (0, 1).

    Returns:
        The interval in the unit of ``x``. One value has none (``low`` and ``high`` are None);
        values that are equal but for rounding are marked ``degenerate``.

    Raises:
        ValueError: ``x`` is empty, not one-dimensional or not finite, or ``level`` not in (0, 1).
    """
    values = sample(x)
    check_level(level)
    n = len(values)
    if n == 1:
        return no_interval(float(values[0]), level=level, n=1, why="one value")
    mean, sd = moments(values)
    if constant(values):
        value = float(values[0]) if values.min() == values.max() else mean
        return degenerate_interval(value, level=level, n=n, why="all values are equal")
    half = float(stdtrit(n - 1, (1 + level) / 2)) * (sd / math.sqrt(n))
    return symmetric_interval(mean, half, level=level, n=n, method="Student t")
