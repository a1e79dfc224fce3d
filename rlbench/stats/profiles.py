"""Whole distributions of scores over a suite of tasks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rlbench.stats.sample import average, sample, suite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray


def performance_profile(
    scores: Mapping[str, ArrayLike], thresholds: ArrayLike
) -> NDArray[np.float64]:
    """Compute the share of runs above each threshold, averaged over tasks.

    See Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice"
    (NeurIPS 2021), run-score distributions. As published for equal numbers of runs; with unequal
    ones every task counts the same. Compare profiles at a threshold, not their crossings.

    Args:
        scores: For every task, its normalised scores (runs,). Score failed runs first: a run
            without a score would be above no threshold and below none.
        thresholds: Thresholds (k,), in the unit of the scores.

    Returns:
        Shares (k,) in [0, 1] of scores strictly above each threshold, in the order given.

    Raises:
        ValueError: There is no task or no threshold, or a value is not finite.
    """
    tasks, above = suite(scores), sample(thresholds)
    shares = np.zeros(len(above))
    for values in tasks.values():
        shares += 1 - np.searchsorted(values, above, side="right") / len(values)
    # summing shares of 1 over 26 tasks is exact, dividing first is not
    return shares / len(tasks)


def optimality_gap(scores: Mapping[str, ArrayLike], gamma: float = 1.0) -> float:
    """Compute by how much runs fall short of a target, averaged over runs, then tasks.

    See Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice"
    (NeurIPS 2021). As published: the mean of ``max(gamma - score, 0)``; scores beyond the target
    earn nothing. For its interval see `suite_interval` with ``statistic="optimality_gap"``.

    Args:
        scores: For every task, its normalised scores (runs,).
        gamma: The target, such as 1 for the human score.

    Returns:
        The gap in the unit of the scores, at least 0; lower is better.

    Raises:
        ValueError: There is no task, or a value is not finite.
    """
    if not math.isfinite(gamma):
        raise ValueError(f"gamma {gamma}: the target is a finite score")
    return mean_over_tasks(shortfall(suite(scores), gamma))


def shortfall(
    tasks: Mapping[str, NDArray[np.float64]], gamma: float
) -> dict[str, NDArray[np.float64]]:
    """Replace every score by what it lacks to the target."""
    return {task: np.sort(gamma - np.minimum(values, gamma)) for task, values in tasks.items()}


def mean_over_tasks(tasks: Mapping[str, NDArray[np.float64]]) -> float:
    """Average over the runs of each task, then over tasks."""
    return average(np.array([average(values) for values in tasks.values()]))
