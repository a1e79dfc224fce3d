"""Mean ranks of several algorithms over a suite of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlbench.stats.bootstrap import tail_values
from rlbench.stats.interval import Interval, degenerate_interval, no_interval
from rlbench.stats.robust import BLOCK, draw
from rlbench.stats.sample import check_level, check_resamples, suite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

DIGITS = 12  # task means that agree so far, relative to the largest, are a tie


@dataclass(frozen=True, kw_only=True)
class Rank:
    """Mean rank of one algorithm over tasks.

    Attributes:
        interval: Mean rank with its interval; 1 is best. ``n`` is the number of tasks.
        best: Share of resamples in which no other algorithm has a better mean rank, shared between
            equals; None where there is no interval.
    """

    interval: Interval
    best: float | None


def bootstrap_ranks(
    scores: Mapping[str, Mapping[str, ArrayLike]],
    level: float = 0.95,
    resamples: int = 10_000,
    rng: int | np.random.Generator = 0,
) -> dict[str, Rank]:
    """Rank algorithms by their task means, and show how far the ranks depend on the seeds drawn.

    The runs of every algorithm and task are drawn anew, averaged, ranked within the task (mid-ranks
    for ties), and averaged over tasks. The quantiles of the mean ranks make the interval. Tasks
    stay fixed: seeds times tasks are never treated as independent blocks.

    It is a description, not a test: the noise of resampling pulls ranks together, so that the
    estimate can lie near an end of its interval, and every rank depends on which other algorithms
    are in the pool. From 2 runs on; show `probability_of_improvement` beside it.

    Args:
        scores: For every algorithm, for every task, its scores (runs,); larger is better. All
            algorithms have the same tasks.
        level: Confidence level in (0, 1).
        resamples: Number of resamples, at least 100.
        rng: Seed or generator.

    Returns:
        The rank of every algorithm, in the order given. There is no interval when any algorithm has
        one run of a task.

    Raises:
        ValueError: There are fewer than two algorithms, their tasks differ (both are named), a
            value is not finite, or a setting is out of range.
    """
    check_level(level)
    check_resamples(resamples)
    names = sorted(scores)
    cells = _cells(scores, names)
    tasks = len(cells) // len(names)
    observed = np.array([cell.mean() for cell in cells])
    shape = (-1, len(names), tasks)
    mids = _ranks(observed.reshape(shape)).mean(axis=2)[0]
    if min(len(cell) for cell in cells) == 1:
        why = "one run of a task"
        bare = {
            name: Rank(interval=no_interval(mid, level=level, n=tasks, why=why), best=None)
            for name, mid in zip(names, mids.tolist(), strict=True)
        }
        return {name: bare[name] for name in scores}
    generator = np.random.default_rng(rng)
    sizes, pooled = [len(cell) for cell in cells], np.concatenate(cells)
    starts = np.cumsum([0, *sizes[:-1]])
    drawn = np.empty((resamples, len(names)))
    for start in range(0, resamples, BLOCK):
        rows = min(BLOCK, resamples - start)
        means = np.add.reduceat(pooled[draw(sizes, rows, generator)], starts, axis=1) / sizes
        drawn[start : start + rows] = _ranks(means.reshape(shape)).mean(axis=2)
    first = drawn <= drawn.min(axis=1, keepdims=True) + 10.0**-DIGITS
    best = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
    found = {
        name: Rank(
            interval=_interval(float(mids[i]), drawn[:, i], level, tasks), best=float(best[i])
        )
        for i, name in enumerate(names)
    }
    return {name: found[name] for name in scores}


def _cells(
    scores: Mapping[str, Mapping[str, ArrayLike]], names: list[str]
) -> list[NDArray[np.float64]]:
    """Check all cells; algorithms by name, then tasks by name, each task scaled to 1."""
    if len(names) < 2:
        raise ValueError(f"{len(names)} algorithms: ranks need at least two")
    checked = {}
    for name in names:
        try:
            checked[name] = suite(scores[name])
        except ValueError as error:
            raise ValueError(f"algorithm {name!r}: {error}") from None
    tasks = checked[names[0]].keys()
    for name in names[1:]:
        differing = sorted(map(str, tasks ^ checked[name].keys()))
        if differing:
            raise ValueError(
                f"algorithms {names[0]!r} and {name!r} differ in tasks {', '.join(differing)}: "
                "ranks need the same tasks for all; leave these out, or run them"
            )
    largest = {
        task: max(float(np.abs(checked[name][task]).max()) for name in names) for task in tasks
    }
    return [checked[name][task] / (largest[task] or 1.0) for name in names for task in tasks]


def _ranks(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute mid-ranks among algorithms of means (rows, algorithms, tasks); the largest is 1."""
    rounded = np.round(means, DIGITS)
    ranks = np.ones_like(means)
    for other in range(means.shape[1]):
        against = rounded[:, other : other + 1]
        ranks += (against > rounded) + 0.5 * (against == rounded)
    return ranks - 0.5  # without the tie with itself


def _interval(mid: float, drawn: NDArray[np.float64], level: float, tasks: int) -> Interval:
    low, high = tail_values(drawn, (1 - level) / 2)
    if low == high:
        why = "the rank is the same in all resamples"
        return degenerate_interval(mid, level=level, n=tasks, why=why)
    return Interval(
        low=low,
        mid=mid,
        high=high,
        level=level,
        n=tasks,
        method=f"stratified bootstrap of ranks, {len(drawn)} resamples",
    )
