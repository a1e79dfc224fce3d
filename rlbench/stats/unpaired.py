"""Differences between two cells whose runs have nothing in common."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr, stdtrit

from rlbench.stats.interval import degenerate_interval, no_interval, symmetric_interval
from rlbench.stats.paired import Difference
from rlbench.stats.sample import check_level, constant, moments, sample, scaled, unscaled

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def unpaired_difference(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> Difference:
    """Compare two cells with independent runs by Welch's t interval and test.

    See Welch, "The generalization of 'Student's' problem when several different population
    variances are involved", Biometrika 34 (1947): ``mean(a) - mean(b)`` over
    ``sqrt(sa**2 / n + sb**2 / m)``, with Satterthwaite's degrees of freedom
    ``(u + v)**2 / (u**2 / (n - 1) + v**2 / (m - 1))``, u and v the two terms under the root. For
    results whose seeds say nothing of each other; where they do, `paired_difference` finds the
    same difference with fewer runs. Simulated at level .95 on normal values it errs in 3.4 to 5.2 %
    at 3, 5 and 10 runs, of equal spread or one three times the other's.

    Args:
        a: Values (n,) of the first cell.
        b: Values (m,) of the second; m may be another number.
        level: Confidence level in (0, 1).

    Returns:
        The difference in the unit of the values; positive means that ``a`` is larger. ``sd`` is
        ``sqrt(sa**2 + sb**2)``, that of the difference of one run from each side. One run on a
        side has no interval and no test; two sides without any spread are degenerate and have no
        test. There is no ``effect``. The order of the values does not change a bit.

    Raises:
        ValueError: A sample is empty, not one-dimensional or not finite, or ``level`` is not in
            (0, 1).
    """
    first, second = sample(a), sample(b)
    check_level(level)
    n, m = len(first), len(second)
    _, exponent = scaled(np.concatenate([first, second]))
    sides = [np.ldexp(values, -exponent) for values in (first, second)]
    means, deviations = zip(*(_moments(values) for values in sides), strict=True)
    mean = means[0] - means[1]
    mid = unscaled(mean, exponent)
    if not math.isfinite(mid):
        raise ValueError("the difference is larger than a float can hold: use a larger unit")
    if min(n, m) == 1:
        return Difference(interval=no_interval(mid, level=level, n=1, why="one run on a side"))
    parts = np.array([deviations[0] ** 2 / n, deviations[1] ** 2 / m])
    error = math.sqrt(math.fsum(parts))
    if error == 0 or constant(np.array([mean, mean + error]), 1.0):
        same = constant(np.concatenate(sides))
        why = "no side has a spread"
        return Difference(
            interval=degenerate_interval(0.0 if same else mid, level=level, n=min(n, m), why=why)
        )
    df = float(parts.sum() ** 2 / (parts**2 / [n - 1, m - 1]).sum())
    t = mean / error
    half = unscaled(float(stdtrit(df, (1 + level) / 2)) * error, exponent)
    return Difference(
        interval=symmetric_interval(mid, half, level=level, n=min(n, m), method="Welch t"),
        t=t,
        p=2 * float(stdtr(df, -abs(t))),
        sd=unscaled(math.hypot(*deviations), exponent),
    )


def _moments(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation; values that are equal but for rounding have none."""
    if len(values) == 1:
        return float(values[0]), 0.0
    mean, sd = moments(values)
    return (mean, 0.0) if constant(values) else (mean, sd)
