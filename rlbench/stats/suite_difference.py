"""Two algorithms over a suite of tasks: by how much one is ahead, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr, stdtrit

from rlbench.stats.interval import Interval, degenerate_interval, no_interval, symmetric_interval
from rlbench.stats.robust import BLOCK, Resampled, draw, iqm
from rlbench.stats.sample import (
    average,
    check_level,
    check_resamples,
    constant,
    moments,
    two_sides,
    unscaled,
)
from rlbench.stats.suite import Statistic, check_statistic
from rlbench.stats.suite_improvement import suite_improvement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    Side = Sequence[NDArray[np.float64]]  # the runs of each task


@dataclass(frozen=True, kw_only=True)
class SuiteDifference:
    """How two algorithms differ over a suite.

    Attributes:
        interval: Aggregate of the first less that of the second, with its interval.
        p: Two-sided p-value, unadjusted; below ``1 - level`` just where the interval lies on one
            side of 0. None where there is no test.
        improvement: Probability that a run of the first beats one of the second, mean over tasks;
            see `suite_improvement`.
        df: Degrees of freedom of the interval and the test; None where there is no test.
    """

    interval: Interval
    p: float | None
    improvement: Interval
    df: float | None = None

    @property
    def testable(self) -> bool:
        """Whether there is a test."""
        return self.p is not None

    def at(self, level: float) -> Interval:
        """Give the interval at another level; where there is none, or no spread, as it is."""
        check_level(level)
        found, half = self.interval, self.interval.half_width
        if self.df is None or half is None:
            return replace(found, level=level)
        wider = stdtrit(self.df, (1 + level) / 2) / stdtrit(self.df, (1 + found.level) / 2)
        return symmetric_interval(
            found.mid, half * float(wider), level=level, n=found.n, method=found.method
        )


def suite_difference(
    a: Mapping[str, ArrayLike],
    b: Mapping[str, ArrayLike],
    statistic: Statistic = "iqm",
    level: float = 0.95,
    *,
    resamples: int = 10_000,
    rng: int | np.random.Generator = 0,
    paired: bool = True,
    gamma: float = 1.0,
) -> SuiteDifference:
    """Compare two algorithms over the same tasks: the difference of their aggregates, and a test.

    The aggregates are those of `suite_interval`. The difference has the t interval
    ``d ± t(df) * error``, and p is that of ``d / error``. Of ``mean`` and ``optimality_gap``,
    error is ``sqrt(sum v) / T`` over T tasks, v the variance of a task's mean difference. Of the
    ``iqm`` it is the standard deviation of the difference over resamples in which the runs of each
    task are drawn anew, the same seeds on both sides, times ``sqrt(sum u / sum(u (n - 1) / n))``
    for what resampling n runs does not show. df is Satterthwaite's ``(sum u)**2 /
    sum(u**2 / (n - 1))``: u is v; of the IQM times the square of the share of the task's runs that
    lie in the middle half, for what is cut away has no say. See Efron and Tibshirani, "An
    Introduction to the Bootstrap" (1993), chapter 12, and Satterthwaite, Biometrics Bulletin 2
    (1946).

    Why not a permutation test: swapping the sides of single runs tests that both are alike in
    everything. Simulated, with means alike and one spread three times the other's, that of the IQM
    errs in 19 to 26 %; this one in 0.6 to 5.8 % at level .95, with 3 and 10 tasks of 3 to 10 runs,
    normal and bimodal scores and tasks near or far from each other (``benchmarks/simulation.py``).
    Where all scores are near one of two values, each half of the time, so that the middle half is
    hardly there, it errs in 6 to 9 % with 2 and 3 tasks, in 5 % with 10.

    Args:
        a: For every task, the normalised scores (n,) of the first algorithm's runs.
        b: Those of the second for the same tasks; paired: in the same order of seeds, as many.
        statistic: ``iqm``, ``mean`` or ``optimality_gap``.
        level: Confidence level in (0, 1).
        resamples: Number of resamples of the IQM, at least 100.
        rng: Seed or generator for them.
        paired: Whether the runs of a task stand seed by seed beside each other; else they are
            independent, and numbers may differ.
        gamma: Target of the optimality gap.

    Returns:
        The difference in the unit of the scores; positive means that the first aggregate is larger
        (of a gap: that the first is worse). ``n`` is the number of pairs over all tasks, of
        independent runs the fewer of both sides. There is no interval and no test where a task has
        one run on a side; none of a difference that has no spread. Swapping the sides turns the
        sign and changes nothing else. The order and names of tasks and the order of pairs do not
        change a bit.

    Raises:
        ValueError: Tasks differ, there is none, a paired task has other numbers of runs on both
            sides, a value is not finite (the task is named), or a setting is out of range.
    """
    check_level(level)
    check_resamples(resamples)
    check_statistic(statistic)
    if not math.isfinite(gamma):
        raise ValueError(f"gamma {gamma}: the target is a finite score")
    first, second, turned = _in_one_order(*two_sides(a, b, paired=paired), paired=paired)
    improvement = suite_improvement(a, b, level, paired=paired)
    if statistic == "optimality_gap":
        first, second = ([gamma - np.minimum(x, gamma) for x in side] for side in (first, second))
    generator = np.random.default_rng(rng)
    interval, p, df = _difference(
        first, second, statistic, level, (resamples, generator), paired=paired
    )
    return SuiteDifference(interval=_turned(interval, turned), p=p, improvement=improvement, df=df)


def _difference(
    first: Side,
    second: Side,
    statistic: Statistic,
    level: float,
    resampling: tuple[int, np.random.Generator],
    *,
    paired: bool,
) -> tuple[Interval, float | None, float | None]:
    """Subtract the aggregates; give the interval, and p and df where there is a test."""
    aggregate = _iqm if statistic == "iqm" else _mean
    mid = aggregate(first) - aggregate(second)
    if not math.isfinite(mid):
        raise ValueError("the difference is larger than a float can hold: use a larger unit")
    n = min(sum(map(len, side)) for side in (first, second))
    if min(len(values) for side in (first, second) for values in side) == 1:
        return no_interval(mid, level=level, n=n, why="one run of a task on a side"), None, None
    largest = max(float(np.abs(values).max()) for side in (first, second) for values in side)
    exponent = math.frexp(largest)[1]
    ours, theirs = ([np.ldexp(values, -exponent) for values in side] for side in (first, second))
    errors = _Errors.of(ours, theirs, paired=paired, trimmed=statistic == "iqm")
    error, method = errors.of_mean, "t, Satterthwaite over tasks"
    if statistic == "iqm":
        error = errors.inflation * _resampled_error(ours, theirs, *resampling, paired=paired)
        method = f"stratified bootstrap t, {resampling[0]} resamples"
    if error == 0:
        return degenerate_interval(mid, level=level, n=n, why="no task has a spread"), None, None
    half = unscaled(float(stdtrit(errors.df, (1 + level) / 2)) * error, exponent)
    p = 2 * float(stdtr(errors.df, -abs(math.ldexp(mid, -exponent)) / error))
    return symmetric_interval(mid, half, level=level, n=n, method=method), p, errors.df


def _in_one_order(first: Side, second: Side, *, paired: bool) -> tuple[Side, Side, bool]:
    """Order runs, tasks and the two sides by what is in them, so that nothing else chooses draws.

    Returns:
        Both sides, and whether they were swapped.
    """
    plain, swapped = (
        sorted(
            tuple(zip(*sorted(zip(one.tolist(), other.tolist(), strict=True)), strict=True))
            if paired
            else (tuple(np.sort(one).tolist()), tuple(np.sort(other).tolist()))
            for one, other in zip(*sides, strict=True)
        )
        for sides in ((first, second), (second, first))
    )
    turned = swapped < plain
    one, other = zip(*(swapped if turned else plain), strict=True)
    return list(map(np.array, one)), list(map(np.array, other)), turned


@dataclass(frozen=True)
class _Errors:
    """What the spreads within tasks make of the error of a difference.

    Attributes:
        of_mean: Standard error of the mean over tasks.
        df: Satterthwaite's degrees of freedom.
        inflation: By how much resampling shows an error too small.
    """

    of_mean: float
    df: float
    inflation: float

    @classmethod
    def of(cls, first: Side, second: Side, *, paired: bool, trimmed: bool) -> _Errors:
        """Compute them; where nothing has a spread, the error is 0.

        Args:
            first: Runs of each task, of numbers near 1.
            second: Those of the other side.
            paired: Whether they stand seed by seed beside each other.
            trimmed: Whether each task counts by how many of its runs lie in the middle half.
        """
        groups = (
            [[x - y for x, y in zip(first, second, strict=True)]] if paired else [first, second]
        )
        weights = [_inside(side) if trimmed else np.ones(len(side)) for side in (first, second)]
        if paired:
            weights = [(weights[0] + weights[1]) / 2]
        n = np.array([len(values) for side in groups for values in side], dtype=np.float64)
        spreads = [0.0 if constant(v, 1.0) else moments(v)[1] for side in groups for v in side]
        variances = np.square(spreads) / n
        weighed = variances * np.concatenate(weights) ** 2
        if not weighed.any():
            weighed = np.ones(len(n))
        total = math.fsum(weighed)
        return cls(
            of_mean=math.sqrt(math.fsum(variances)) / len(first),
            df=total**2 / math.fsum(weighed**2 / (n - 1)),
            inflation=math.sqrt(total / math.fsum(weighed * (n - 1) / n)),
        )


def _inside(side: Side) -> NDArray[np.float64]:
    """Compute for each task the share of its runs that lie in the middle half of all."""
    pooled = np.sort(np.concatenate(side))
    cut = len(pooled) // 4
    kept = pooled[cut : len(pooled) - cut]
    low, high = kept[0], kept[-1]
    # of runs that are as good as the last that is kept, some are
    share = {edge: float((kept == edge).sum() / (pooled == edge).sum()) for edge in (low, high)}
    return np.array(
        [
            ((low < x) & (x < high)).mean()
            + sum((x == edge).mean() * kept_of for edge, kept_of in share.items())
            for x in side
        ]
    )


def _resampled_error(
    first: Side, second: Side, resamples: int, rng: np.random.Generator, *, paired: bool
) -> float:
    """Compute the standard deviation of the difference of both IQMs over resamples."""
    sizes = [[len(values) for values in side] for side in (first, second)]
    ours, theirs = (Resampled(np.concatenate(side)) for side in (first, second))
    estimates = np.empty(resamples)
    for start in range(0, resamples, BLOCK):
        rows = min(BLOCK, resamples - start)
        positions = draw(sizes[0], rows, rng)
        beside = positions if paired else draw(sizes[1], rows, rng)
        estimates[start : start + rows] = ours.at(positions) - theirs.at(beside)
    return 0.0 if constant(estimates, 1.0) else moments(estimates)[1]


def _iqm(side: Side) -> float:
    return iqm(np.concatenate(side))


def _mean(side: Side) -> float:
    return average(np.array([average(values) for values in side]))


def _turned(interval: Interval, turned: bool) -> Interval:  # noqa: FBT001 - of the sides
    """Turn an interval round where the sides were swapped."""
    if not turned:
        return interval
    low, high = (None if end is None else -end for end in (interval.high, interval.low))
    return replace(interval, low=low, mid=-interval.mid, high=high)
