"""One algorithm over a suite of tasks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from rlbench.stats.bootstrap import expanded_tail, tail_values
from rlbench.stats.interval import Interval, degenerate_interval, mean_interval, no_interval
from rlbench.stats.profiles import mean_over_tasks, shortfall
from rlbench.stats.robust import BLOCK, draw, iqm, iqm_interval, resampled_iqms
from rlbench.stats.sample import (
    check_level,
    check_resamples,
    constant,
    moments,
    scaled,
    suite,
    unscaled,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

Statistic = Literal["iqm", "mean", "optimality_gap"]


def suite_interval(
    scores: Mapping[str, ArrayLike],
    statistic: Statistic = "iqm",
    level: float = 0.95,
    resamples: int = 10_000,
    rng: int | np.random.Generator = 0,
    *,
    gamma: float = 1.0,
) -> Interval:
    """Estimate an aggregate over tasks with a stratified, expanded percentile bootstrap.

    See Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice"
    (NeurIPS 2021): the runs of each task are drawn anew, the tasks stay. ``iqm`` is the mean of the
    middle half of all runs together; ``mean`` and ``optimality_gap`` average over runs, then tasks.

    **Differs**: the plain percentile interval of that article is too narrow for few runs. Here the
    quantiles are taken at `expanded_tail`, with Satterthwaite's degrees of freedom
    ``(sum v)**2 / sum(v**2 / (n - 1))`` and the inflation ``sum v / sum(v (n - 1) / n)``, where v
    is the variance of a task's mean and n its number of runs. Simulated on 26 normal tasks
    at level .95 the IQM's covers 94 to 96 % at 3, 5 and 10 runs. The interval speaks of new seeds
    on these tasks; `new_tasks_interval` speaks of new tasks. The median over tasks is not offered:
    it is biased at few runs.

    Args:
        scores: For every task, its normalised scores (runs,). With unequal numbers of runs, ``iqm``
            weighs tasks by their runs, and ``method`` says so.
        statistic: ``iqm``, ``mean`` or ``optimality_gap``.
        level: Confidence level in (0, 1).
        resamples: Number of resamples, at least 100.
        rng: Seed or generator.
        gamma: Target of the optimality gap.

    Returns:
        The interval in the unit of the scores; ``n`` is the number of runs over all tasks. There is
        none when a task has one run, whose spread nobody knows. One task gives the interval of one
        sample. The order and names of tasks and the order of runs do not change a
        bit.

    Raises:
        ValueError: There is no task, a value is not finite (the task is named), or a setting is
            unknown or out of range.
    """
    tasks = suite(scores)
    check_level(level)
    check_resamples(resamples)
    check_statistic(statistic)
    if statistic == "optimality_gap":
        tasks = shortfall(tasks, gamma)
    pooled = np.concatenate(list(tasks.values()))
    mid = iqm(pooled) if statistic == "iqm" else mean_over_tasks(tasks)
    n = len(pooled)
    single = [task for task, values in tasks.items() if len(values) == 1]
    if single:
        return no_interval(mid, level=level, n=n, why=f"one run of task {single[0]!r}")
    if len(tasks) == 1:
        return _one_task(pooled, statistic, level, resamples, rng)
    if all(constant(values) for values in tasks.values()):
        return degenerate_interval(mid, level=level, n=n, why="no task has a spread")
    _, exponent = scaled(pooled)
    groups = in_one_order([np.ldexp(values, -exponent) for values in tasks.values()])
    generator = np.random.default_rng(rng)
    resample = resampled_iqms if statistic == "iqm" else _resampled_means
    low, high = tail_values(
        resample(groups, resamples, generator), expanded_by_tasks(groups, level)
    )
    if low == high:
        return degenerate_interval(mid, level=level, n=n, why="too many values are equal")
    return Interval(
        low=unscaled(low, exponent),
        mid=mid,
        high=unscaled(high, exponent),
        level=level,
        n=n,
        method=_method(statistic, [len(group) for group in groups], resamples),
    )


def in_one_order(groups: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Order groups by what is in them, so that no name of a task chooses what is drawn."""
    return sorted(groups, key=lambda group: (len(group), group.tolist()))


def check_statistic(statistic: str) -> None:
    """Refuse what is no `Statistic`."""
    if statistic not in ("iqm", "mean", "optimality_gap"):
        raise ValueError(
            f"statistic {statistic!r}: known are iqm, mean and optimality_gap (a median over tasks "
            "is biased at few runs)"
        )


def _one_task(
    values: NDArray[np.float64],
    statistic: Statistic,
    level: float,
    resamples: int,
    rng: int | np.random.Generator,
) -> Interval:
    """Fall back on the better interval that one sample has."""
    if statistic == "iqm":
        return iqm_interval(values, level, resamples, rng)
    return mean_interval(values, level)


def expanded_by_tasks(groups: list[NDArray[np.float64]], level: float) -> float:
    """Compute `expanded_tail` from the spread of the tasks' means; one of them must have some."""
    sizes = np.array([len(group) for group in groups])
    deviations = np.array([0.0 if constant(group) else moments(group)[1] for group in groups])
    variances = scaled(deviations)[0] ** 2 / sizes
    total = math.fsum(variances)
    return expanded_tail(
        level,
        df=total**2 / math.fsum(variances**2 / (sizes - 1)),
        inflation=total / math.fsum(variances * (sizes - 1) / sizes),
    )


def _resampled_means(
    groups: list[NDArray[np.float64]], resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw every group anew, with replacement, and average within groups, then over them."""
    sizes = [len(group) for group in groups]
    pooled = np.concatenate(groups)
    weights = np.repeat([1 / (size * len(sizes)) for size in sizes], sizes)
    estimates = np.empty(resamples)
    for start in range(0, resamples, BLOCK):
        rows = min(BLOCK, resamples - start)
        # not the matrix product, whose last bit depends on threads
        estimates[start : start + rows] = (pooled[draw(sizes, rows, rng)] * weights).sum(axis=1)
    return estimates


def _method(statistic: Statistic, sizes: list[int], resamples: int) -> str:
    method = f"stratified bootstrap, expanded percentile, {resamples} resamples"
    if statistic == "iqm" and min(sizes) < max(sizes):
        method += f", tasks weighted by their {min(sizes)} to {max(sizes)} runs"
    return method
