"""Performance profiles: the share of runs above each score, over tasks and seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlbench.errors import NothingSelected
from rlbench.report.cells import labels_of
from rlbench.report.pairing import task_of
from rlbench.report.plots import keys, style
from rlbench.report.plots.panels import natural, spell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from rlbench.report.cells import Cell
    from rlbench.report.plots.style import Look

    Array = NDArray[np.float64]

_LINES = 12
_THRESHOLDS = 400  # from which a grid does instead of every score
_LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One line.

    Attributes:
        thresholds: Scores (k,), ascending.
        shares: Share (k,) of runs strictly better than each, averaged over tasks.
        low: Lower bound (k,).
        high: Upper bound (k,).
    """

    thresholds: Array
    shares: Array
    low: Array
    high: Array


def draw(cells: Sequence[Cell], *, width: float, note: Callable[[str], None]) -> Figure:
    """Draw a line for everything but the task; see `plots.draw`."""
    signs = {cell.metric.sign for cell in cells}
    if len(signs) > 1:
        raise NothingSelected("less is better in some tasks and more in others: no one threshold")
    sign = signs.pop()
    groups = _groups(cells, note)
    if len(groups) > _LINES:
        raise NothingSelected(
            f"{len(groups):,} profiles are too many for one figure, which shows up to {_LINES}; "
            "select some with -e, -l, -k or --set"
        )
    every = np.unique(np.concatenate([v for group in groups.values() for v in group.values()]))
    thresholds = _thresholds(every)
    figure = style.new_figure(width, 2.4 if width < 5 else 2.8, _caption(groups))
    axes = figure.subplots()
    style.quiet_axes(axes, grid="y")
    metric = cells[0].metric
    looks = {name: style.look(number) for number, name in enumerate(groups)}
    for name, scores in groups.items():
        _line(axes, profile(scores, thresholds, sign), looks[name])
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlim(thresholds[0], thresholds[-1])
    axes.set_xlabel(f"{metric.name} τ")
    axes.set_ylabel(f"share of runs with {metric.name} {'>' if sign > 0 else '<'} τ")
    keys.legend(figure, looks, width)
    return figure


def profile(scores: Mapping[str, Array], thresholds: Array, sign: int = 1) -> Profile:
    """Compute the share of runs better than each threshold, with a pointwise interval.

    The shares are those of `rlbench.stats.performance_profile`. The interval is Jeffreys', as if
    all runs came from one task: over several tasks it is conservative, since a sum of unequal
    chances spreads less than a binomial one of the same mean (Hoeffding, "On the distribution of
    the number of successes in independent trials", 1956). Unlike a percentile bootstrap's it does
    not collapse where all runs are above a threshold, or none.

    Args:
        scores: For every task, its scores (runs,).
        thresholds: Scores (k,), ascending.
        sign: 1 where more is better, -1 where less is.
    """
    from scipy.special import betaincinv

    from rlbench.stats import performance_profile

    signed = {task: sign * np.asarray(values) for task, values in scores.items()}
    shares = performance_profile(signed, sign * thresholds)
    # every task weighs the same: this many runs of equal weight have the same variance
    n = len(scores) ** 2 / sum(1 / len(values) for values in scores.values())
    wins, losses = shares * n + 0.5, (1 - shares) * n + 0.5
    low = np.where(shares == 0, 0.0, betaincinv(wins, losses, (1 - _LEVEL) / 2))
    high = np.where(shares == 1, 1.0, betaincinv(wins, losses, (1 + _LEVEL) / 2))
    return Profile(thresholds=thresholds, shares=shares, low=low, high=high)


def _groups(cells: Sequence[Cell], note: Callable[[str], None]) -> dict[str, dict[str, Array]]:
    """Collect scores by name and task; only what was tried on every task."""
    labels = [name for name in labels_of(cells) if name.partition(".")[0] != "task"]
    found: dict[str, dict[str, Array]] = {}
    for cell in sorted(cells, key=lambda c: [natural(c.columns.get(name, "")) for name in labels]):
        name = spell(cell, labels) or cell.columns.get("estimator", "all runs")
        scores = [seed.score for seed in cell.tried]
        if not scores or any(score is None for score in scores):
            note(f"left out: {name}: a run has no {cell.metric.name}")
            continue
        found.setdefault(name, {})[task_of(cell)] = np.array(scores, dtype=float)
    tasks = {task for group in found.values() for task in group}
    complete = {name: group for name, group in found.items() if group.keys() == tasks}
    for name in found.keys() - complete.keys():
        missing = ", ".join(sorted(tasks - found[name].keys()))
        note(f"left out: {name} was not tried on {missing}")
    if not complete:
        raise NothingSelected("nothing was tried on every task with a score in each run")
    return complete


def _thresholds(every: Array) -> Array:
    spread = float(every[-1] - every[0]) or max(abs(float(every[0])), 1.0)
    low, high = every[0] - 0.04 * spread, every[-1] + 0.04 * spread
    inside = every if len(every) <= _THRESHOLDS else np.linspace(low, high, _THRESHOLDS)
    return np.unique(np.concatenate([[low], inside, [high]]))


def _line(axes: Axes, line: Profile, look: Look) -> None:
    axes.fill_between(
        line.thresholds, line.low, line.high, step="post", color=look.colour, alpha=0.1, linewidth=0
    )
    axes.plot(
        line.thresholds,
        line.shares,
        drawstyle="steps-post",
        linestyle=look.dash,
        markevery=max(1, len(line.thresholds) // 8),
        **look.of_marker(4),
    )


def _caption(groups: Mapping[str, Mapping[str, Array]]) -> str:
    tasks = {task for group in groups.values() for task in group}
    counts = sorted({len(v) for group in groups.values() for v in group.values()})
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    over = f", mean over {len(tasks)} tasks" if len(tasks) > 1 else ""
    return (
        f"n={n} seeds{over}; failed runs with the task's floor. Band: Jeffreys' 95% interval, "
        "point by point."
    )
