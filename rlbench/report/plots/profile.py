"""Performance profiles: the share of runs above each score, over tasks and seeds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlbench.errors import NothingSelected
from rlbench.report.cells import one_scale
from rlbench.report.cells.baseline import but_for_task
from rlbench.report.cells.cell import labels_of
from rlbench.report.cells.pairing import task_of
from rlbench.report.plots import keys, lettering, style
from rlbench.report.plots.panels import arrange, natural, spell
from rlbench.report.plots.prose import LeftOut, flags_of, in_common, of_seeds, titled
from rlbench.report.plots.resampled import bootstrapped
from rlbench.report.text.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from rlbench.report.cells.cell import Cell
    from rlbench.report.plots.style import Look

    Array = NDArray[np.float64]

_MOST = 12  # lines of a figure
_TOGETHER = 3  # lines whose bands can be told apart in one pair of axes
_THRESHOLDS = 400  # from which a grid does instead of every score
_MARKERS = 6  # on a line, at most
_LEVEL = 0.95
_OTHER_SCALE = 10.0  # largest range of a task over the smallest, from which scales differ
_NAMED = 4  # tasks that a caption names
_OTHERS: dict[str, Any] = {
    "color": "#b4b4b4",
    "linewidth": 0.6,
    "drawstyle": "steps-post",
    "zorder": 1.5,
}


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
    left_out = LeftOut(note)
    groups = _groups(cells, left_out)
    if len(groups) > _MOST:
        raise NothingSelected(
            f"{len(groups):,} profiles are too many for one figure, which shows up to {_MOST}; "
            f"select some with {flags_of(cells, task=False)}"
        )
    every = np.unique(np.concatenate([v for group in groups.values() for v in group.values()]))
    thresholds = _thresholds(every)
    lines = {name: profile(scores, thresholds, sign) for name, scores in groups.items()}
    looks = _looks(cells, groups)
    panels = [list(lines)] if len(lines) <= _TOGETHER else [[name] for name in lines]
    columns = keys.columns_of(len(panels), width)
    rows = -(-len(panels) // columns)
    room = (1.7 if width < style.WIDE else 2.1) if len(panels) == 1 else 1.1
    titles = [
        lettering.fold(names[0], width / columns - 0.35, style.SIZE) if len(panels) > 1 else ""
        for names in panels
    ]
    above = style.LINE * max(title.count("\n") + 1 for title in titles)
    height = rows * (room + above + 0.12) + 0.4
    if len(panels) == 1:
        height += keys.legend_height(looks, width)
    caption = _caption(groups, together=len(panels) == 1) + left_out.caption()
    if not one_scale.on_one_scale(cells) and (scales := _other_scales(groups)):
        note(scales)
        caption += f" {scales[:1].upper()}{scales[1:]}."
    caption += in_common(cells)
    figure = style.new_figure(width, height, caption)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, names, title in zip(grid.flat, panels, titles, strict=False):
        style.quiet_axes(axes, grid="y")
        axes.set_title(title)
        for name, line in lines.items():
            if name not in names:
                axes.plot(thresholds, line.shares, **_OTHERS)
        for name in names:
            _line(axes, lines[name], looks[name])
    grid.flat[0].set_ylim(-0.03, 1.03)
    grid.flat[0].set_xlim(thresholds[0], thresholds[-1])
    what = cells[0].metric.name
    keys.trim(
        grid, len(panels), f"threshold: {titled(what)}", f"share {'above' if sign > 0 else 'below'}"
    )
    if len(panels) == 1:
        keys.legend(figure, looks, width)
    return figure


def _looks(cells: Sequence[Cell], groups: Mapping[str, Mapping[str, Array]]) -> dict[str, Look]:
    """Give each line the look that its cells have in other figures."""
    labels = _labels(cells)
    task = next(iter(next(iter(groups.values()))))
    of_it = [cell for cell in cells if task_of(cell) == task]
    entries = [entry for panel in arrange(of_it) for entry in panel.entries]
    found = {_name(entry.cell, labels): replace(entry.look, fill="full") for entry in entries}
    return {name: found[name] for name in groups}


def profile(scores: Mapping[str, Array], thresholds: Array, sign: int = 1) -> Profile:
    """Compute the share of runs better than each threshold, with a pointwise interval.

    The shares are those of `rlbench.stats.performance_profile`. Of one task the interval is
    Jeffreys', which does not collapse where all runs are above a threshold, or none. Of several
    tasks it is that of a bootstrap over the runs within each, see `bootstrapped`.

    Args:
        scores: For every task, its scores (runs,).
        thresholds: Scores (k,), ascending.
        sign: 1 where more is better, -1 where less is.
    """
    from scipy.special import betaincinv

    from rlbench.stats import performance_profile

    signed = {task: sign * np.asarray(values) for task, values in scores.items()}
    shares = performance_profile(signed, sign * thresholds)
    if len(scores) > 1:
        above = [
            [int((values > sign * threshold).sum()) for threshold in thresholds]
            for values in signed.values()
        ]
        sizes = [len(values) for values in signed.values()]
        low, high = bootstrapped(np.array(above), np.array(sizes))
        return Profile(thresholds=thresholds, shares=shares, low=low, high=high)
    n = len(next(iter(scores.values())))
    wins, losses = shares * n + 0.5, (1 - shares) * n + 0.5
    low = np.where(shares == 0, 0.0, betaincinv(wins, losses, (1 - _LEVEL) / 2))
    high = np.where(shares == 1, 1.0, betaincinv(wins, losses, (1 + _LEVEL) / 2))
    return Profile(thresholds=thresholds, shares=shares, low=low, high=high)


def _groups(cells: Sequence[Cell], left_out: LeftOut) -> dict[str, dict[str, Array]]:
    """Collect scores by name and task; only what was tried on every task."""
    labels = _labels(cells)
    found: dict[str, dict[str, Array]] = {}
    order = [*labels, "task"]
    for cell in sorted(cells, key=lambda c: [natural(c.columns.get(name, "")) for name in order]):
        name = _name(cell, labels)
        scores = [seed.score for seed in cell.tried]
        if not scores or any(score is None for score in scores):
            left_out.add(name, f"not every run has a {cell.metric.name}")
            continue
        found.setdefault(name, {})[task_of(cell)] = np.array(scores, dtype=float)
    tasks = {task for group in found.values() for task in group}
    complete = {name: group for name, group in found.items() if group.keys() == tasks}
    for name in [name for name in found if name not in complete]:
        missing = ", ".join(sorted(tasks - found[name].keys()))
        left_out.add(name, f"it was not tried on {missing}")
    if not complete:
        raise NothingSelected("nothing was tried on every task with a score in each run")
    return complete


def _labels(cells: Sequence[Cell]) -> list[str]:
    return but_for_task(labels_of(cells))


def _name(cell: Cell, labels: Sequence[str]) -> str:
    return spell(cell, labels) or "all runs"


def _thresholds(every: Array) -> Array:
    spread = float(every[-1] - every[0]) or max(abs(float(every[0])), 1.0)
    low, high = every[0] - 0.04 * spread, every[-1] + 0.04 * spread
    inside = every if len(every) <= _THRESHOLDS else np.linspace(low, high, _THRESHOLDS)
    return np.unique(np.concatenate([[low], inside, [high]]))


def _line(axes: Axes, line: Profile, look: Look) -> None:
    axes.fill_between(
        line.thresholds, line.low, line.high, step="post", color=look.colour, alpha=0.15, lw=0
    )
    steps = np.flatnonzero(np.diff(line.shares, prepend=line.shares[0]))
    axes.plot(
        line.thresholds,
        line.shares,
        drawstyle="steps-post",
        linestyle=look.dash,
        markevery=steps[:: max(1, -(-len(steps) // _MARKERS))].tolist(),
        **look.of_marker(3.5),
    )


def _other_scales(groups: Mapping[str, Mapping[str, Array]]) -> str:
    """Say that scores of tasks seem to be on different scales; empty where they don't."""
    ends: dict[str, tuple[float, float]] = {}
    for group in groups.values():
        for task, values in group.items():
            low, high = ends.get(task, (np.inf, -np.inf))
            ends[task] = min(low, float(values.min())), max(high, float(values.max()))
    lows, highs = [low for low, _ in ends.values()], [high for _, high in ends.values()]
    if len(ends) < 2 or (min(lows) >= 0 and max(highs) <= 1):
        return ""
    spans = sorted(high / 2 - low / 2 for low, high in ends.values() if high > low)
    if max(lows) <= min(highs) and (not spans or spans[-1] / spans[0] <= _OTHER_SCALE):
        return ""
    return (
        "scores of these tasks seem to be on different scales, so that one threshold asks "
        "different things of them; --normalise FILE puts all on one"
    )


def _caption(groups: Mapping[str, Mapping[str, Array]], *, together: bool) -> str:
    tasks = list(dict.fromkeys(task for group in groups.values() for task in group))
    several = len(tasks) > 1
    named = f" ({', '.join(map(printable, tasks))})" if len(tasks) <= _NAMED else ""
    over = f" on each of {len(tasks)} tasks{named}" if several else ""
    seeds = of_seeds(len(values) for group in groups.values() for values in group.values())
    band = "Jeffreys' 95% interval"
    if several:
        band = (
            "95% interval of an expanded bootstrap over the runs of each task; none where no task "
            "has runs on both sides"
        )
    grey = "" if together else " Grey: the others."
    return (
        f"Share of runs ({seeds}{over}) better than each threshold, failed ones at the task's "
        f"floor. Band, point by point: {band}.{grey}"
    )
