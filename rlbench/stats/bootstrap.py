"""The expanded percentile bootstrap: quantiles of resamples, at a level that small n calls for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, stdtrit

if TYPE_CHECKING:
    from numpy.typing import NDArray


def expanded_tail(level: float, *, df: float, inflation: float) -> float:
    """Compute the tail probability at which the quantiles of a bootstrap are taken.

    See Hesterberg, "What teachers should know about the bootstrap", The American Statistician 69
    (2015): the plain percentile interval is too narrow by ``sqrt((n - 1) / n)``, and it takes the
    normal distribution's quantile where Student's belongs. Both are mended by
    ``Phi(-sqrt(inflation) * t(df, (1 + level) / 2))``.

    Args:
        level: Confidence level in (0, 1).
        df: Degrees of freedom of the spread: n - 1 for one group.
        inflation: Variance over what resampling shows of it: n / (n - 1) for one group.

    Returns:
        The probability to leave out on either side; smaller than ``(1 - level) / 2``.
    """
    return float(ndtr(-math.sqrt(inflation) * stdtrit(df, (1 + level) / 2)))


def tail_values(resampled: NDArray[np.float64], tail: float) -> tuple[float, float]:
    """Take both quantiles of resampled estimates.

    No interpolation: both are resampled values, and negating the data swaps them.

    Args:
        resampled: Estimates (B,), one a resample.
        tail: Probability to leave out on either side.

    Returns:
        Lower and upper quantile.
    """
    last = len(resampled) - 1
    skip = min(int(tail * len(resampled)), last // 2)
    ordered = np.partition(resampled, [skip, last - skip])
    return float(ordered[skip]), float(ordered[last - skip])
