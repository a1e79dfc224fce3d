"""Confidence intervals for one group of seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit  # scipy.stats would cost 0.7 s at import

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


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
        degenerate: All values are equal. The bounds then coincide with the estimate, which says
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
        return (self.high - self.low) / 2


def mean_interval(x: ArrayLike, level: float = 0.95) -> Interval:
    """Estimate a mean with Student's t interval.

    See Student, "The probable error of a mean", Biometrika 6 (1908). As published:
    ``mean ± t(n - 1, (1 + level) / 2) * sd / sqrt(n)`` with the standard deviation over n - 1. The
    order of the values does not change a bit of the result.

    Args:
        x: Values (n,), one per seed, in any unit.
        level: Confidence level in (0, 1).

    Returns:
        The interval in the unit of ``x``. One value has none (``low`` and ``high`` are None); equal
        values are marked ``degenerate``.

    Raises:
        ValueError: ``x`` is empty, not one-dimensional or not finite, or ``level`` not in (0, 1).
    """
    values = _values(x)
    if not 0 < level < 1:
        raise ValueError(f"level {level}: a confidence level lies in (0, 1)")
    n = len(values)
    if n == 1:
        return Interval(
            low=None, mid=float(values[0]), high=None, level=level, n=1, method="none: one value"
        )
    if values.min() == values.max():
        value = float(values[0])
        return Interval(
            low=value,
            mid=value,
            high=value,
            level=level,
            n=n,
            method="degenerate: all values are equal",
            degenerate=True,
        )
    # fsum is exact, hence independent of the order; np.sum is neither
    mean = math.fsum(values) / n
    variance = math.fsum((values - mean) ** 2) / (n - 1)
    half = float(stdtrit(n - 1, (1 + level) / 2)) * math.sqrt(variance / n)
    return Interval(
        low=mean - half, mid=mean, high=mean + half, level=level, n=n, method="Student t"
    )


def _values(x: ArrayLike) -> NDArray[np.float64]:
    """Check and convert the values of one group."""
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"expected one value per seed, shape (n,), got shape {values.shape}")
    if len(values) == 0:
        raise ValueError("no values: an interval needs at least one")
    if not np.isfinite(values).all():
        raise ValueError(
            f"{int((~np.isfinite(values)).sum())} of {len(values)} values are not finite; give "
            "failed runs a score, such as the task's floor, or leave them out and say so"
        )
    return values
