"""Differences between two cells at common seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, stdtr, stdtrit

from rlbench.stats.interval import (
    Interval,
    degenerate_interval,
    no_interval,
    symmetric_interval,
)
from rlbench.stats.sample import (
    check_level,
    check_resamples,
    constant,
    moments,
    sample,
    scaled,
    unscaled,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

ENUMERATED = 16  # up to here all sign flips are enumerated
BLOCK = 4096  # flips at a time
TIE = 1e-12  # statistics this near, of numbers scaled to 1, differ by rounding only


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A mean difference over seeds, with its t-test.

    Attributes:
        interval: The mean difference with its interval; positive means that the first is larger.
        t: Student's t, with the sign of the difference; None where there is no test.
        p: Two-sided p-value, unadjusted; None where there is no test.
        sd: Standard deviation of the differences; None for one pair or without spread.
        effect: Mean difference over ``sd``, corrected for small n (Hedges); None without spread.
    """

    interval: Interval
    t: float | None = None
    p: float | None = None
    sd: float | None = None
    effect: float | None = None

    @property
    def testable(self) -> bool:
        """Whether there is a test: at least two pairs, with a spread."""
        return self.p is not None


def paired_difference(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> Difference:
    """Compare two cells at the same seeds by the paired t interval and test.

    See Student, "The probable error of a mean", Biometrika 6 (1908): the t interval of
    ``d = a - b``. The effect is ``mean(d) / sd(d)`` times Hedges' factor
    ``Gamma(f / 2) / (sqrt(f / 2) Gamma((f - 1) / 2))`` with f = n - 1; see Hedges, "Distribution
    theory for Glass's estimator of effect size and related estimators", Journal of Educational
    Statistics 6 (1981). From n = 2 on; up to 6 seeds it is the only test that can reject after a
    correction, from 7 see `sign_flip_test`.

    Args:
        a: Values (n,) of the first cell.
        b: Values (n,) of the second, in the same order of seeds; the caller aligns them.
        level: Confidence level in (0, 1).

    Returns:
        The difference in the unit of the values; positive means that ``a`` is larger. One pair has
        no interval and no test; differences that are equal but for rounding are degenerate and
        have no test. The order of the pairs does not change a bit of the result.

    Raises:
        ValueError: ``a`` and ``b`` are not of one length, are empty or not finite, or ``level`` is
            not in (0, 1).
    """
    first, second = pair(a, b)
    scale = max(float(np.abs(first).max()), float(np.abs(second).max()))
    return one_sample(subtract(first, second), level=level, scale=scale, what="differences")


def pair(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Check two samples that stand seed by seed beside each other."""
    first, second = sample(a), sample(b)
    if len(first) != len(second):
        raise ValueError(
            f"{len(first)} values against {len(second)}: pairs are formed by seed; give the values "
            "at the common seeds, in one order"
        )
    return first, second


def subtract(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Subtract; a difference that no float can hold is refused, not infinite."""
    with np.errstate(over="ignore"):
        d = a - b
    if not np.isfinite(d).all():
        raise ValueError("the differences are larger than a float can hold: use a larger unit")
    return d


def one_sample(d: NDArray[np.float64], *, level: float, scale: float, what: str) -> Difference:
    """Compute the t interval and test of values against zero.

    Args:
        d: Values (n,), one per seed.
        level: Confidence level in (0, 1).
        scale: Size of the numbers that ``d`` was computed from; differences far below it are
            rounding.
        what: What the values are, for ``method``.

    Returns:
        The mean of ``d`` with its test.
    """
    check_level(level)
    n = len(d)
    if n == 1:
        return Difference(
            interval=no_interval(float(d[0]), level=level, n=1, why=f"one of the {what}")
        )
    small, exponent = scaled(d)
    mean, sd = moments(small)
    if constant(d, scale):
        # a residue such as 0.3 - (0.1 + 0.2) is no difference
        mid = 0.0 if constant(np.append(d, 0.0), scale) else unscaled(mean, exponent)
        why = f"all {what} are equal"
        return Difference(interval=degenerate_interval(mid, level=level, n=n, why=why))
    error = sd / math.sqrt(n)
    t = mean / error
    half = unscaled(float(stdtrit(n - 1, (1 + level) / 2)) * error, exponent)
    interval = symmetric_interval(
        unscaled(mean, exponent), half, level=level, n=n, method=f"t of the {what}"
    )
    return Difference(
        interval=interval,
        t=t,
        p=2 * float(stdtr(n - 1, -abs(t))),
        sd=unscaled(sd, exponent),
        effect=mean / sd * _hedges(n - 1),
    )


def _hedges(df: int) -> float:
    if df == 1:
        return 0.0  # the estimate has no mean there: shrunk to nothing
    return math.exp(float(gammaln(df / 2) - gammaln((df - 1) / 2))) / math.sqrt(df / 2)


def sign_flip_test(
    d: ArrayLike, resamples: int = 10_000, rng: int | np.random.Generator = 0
) -> float:
    """Test whether paired differences are centred at zero, by flipping their signs.

    See Fisher, "The Design of Experiments" (1935), chapter 3. The statistic is ``abs(sum(d))``. Up
    to 16 seeds all ``2**n`` flips are enumerated and p is exact if d is symmetric about 0. Above,
    ``resamples`` flips are drawn and ``p = (1 + b) / (resamples + 1)`` with b of them as extreme as
    the data; see Phipson and Smyth, "Permutation p-values should never be zero", Statistical
    Applications in Genetics and Molecular Biology 9 (2010).

    The least p is ``2**(1 - n)``: below 6 seeds it cannot be significant at 0.05, whatever the
    data; `paired_difference` can.

    Args:
        d: Differences (n,), one per seed; exact zeros are ties and stay.
        resamples: Number of random flips above 16 seeds, at least 100.
        rng: Seed or generator for them.

    Returns:
        The two-sided p-value; 1 when all differences are 0. The order of the seeds and the sign of
        all of ``d`` change nothing.

    Raises:
        ValueError: ``d`` is empty, not one-dimensional or not finite, or ``resamples`` is below
            100.
    """
    differences = sample(d)
    check_resamples(resamples)
    small, _ = scaled(np.sort(np.abs(differences)))
    total = float(small.sum())
    if total == 0:
        return 1.0
    observed = abs(math.fsum(scaled(differences)[0])) / total
    extreme = count = 0
    for signs in flips(len(small), resamples, rng):
        extreme += int((np.abs(signs @ small) / total >= observed - TIE).sum())
        count += len(signs)
    if len(small) > ENUMERATED:
        return (1 + extreme) / (1 + count)
    return extreme / count


def flips(n: int, resamples: int, rng: int | np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Give the sign flips of n seeds, in blocks.

    Args:
        n: Number of seeds.
        resamples: Number of random flips, where there are too many to enumerate.
        rng: Seed or generator for them.

    Yields:
        Signs (block, n) of -1 and 1: up to 16 seeds every one with the last sign positive, half of
        all, because a flip and its opposite give the same two-sided statistic.
    """
    if n <= ENUMERATED:
        for start in range(0, 2 ** (n - 1), BLOCK):
            codes = np.arange(start, min(start + BLOCK, 2 ** (n - 1)))
            yield 1 - 2 * (codes[:, None] >> np.arange(n) & 1).astype(np.float64)
        return
    generator = np.random.default_rng(rng)
    for start in range(0, resamples, BLOCK):
        rows = min(BLOCK, resamples - start)
        yield 1 - 2 * generator.integers(0, 2, size=(rows, n), dtype=np.int8).astype(np.float64)
