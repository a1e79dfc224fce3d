"""Learning curves: the mean over seeds with a band, cut where seeds end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rlbench.report.cells.curves import Course, Curve, Curves, course, read
from rlbench.report.plots import keys, lettering, style
from rlbench.report.plots.panels import Entry, Panel, arrange
from rlbench.report.plots.prose import LeftOut, of_seeds, titled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rlbench.report.cells.cell import Cell

_EVALUATIONS = "evals.csv"
_DOTS = 12  # markers on a line, at most
_DENSE = 5  # updates between markers, from which a line is thin
_BEYOND = 0.12  # of the range of all seeds, that bands may go beyond it
_FEW = 3  # lines whose bands can be told apart at full strength


def draw(
    cells: Sequence[Cell], *, width: float, note: Callable[[str], None], column: str | None = None
) -> Figure:
    """Draw curves of one column; see `plots.draw`."""
    panels = arrange(cells)
    entries = [entry for panel in panels for entry in panel.entries]
    found = read([entry.cell for entry in entries], column)
    for problem in found.problems:
        note(problem)
    drawn = {
        entry.name: _Line(entry, curves, plain=len(panels) > 1)
        for entry, curves in zip(entries, found.cells, strict=True)
        if curves
    }
    left_out = LeftOut(note)
    for entry in entries:
        if entry.name not in drawn:
            left_out.add(entry.name, "it has no curve")
    shown = [
        Panel(title=panel.title, entries=kept)
        for panel in panels
        if (kept := tuple(entry for entry in panel.entries if entry.name in drawn))
    ]
    return _figure(shown, drawn, found, width=width, more=left_out.caption())


def _figure(
    panels: Sequence[Panel], drawn: dict[str, _Line], found: Curves, *, width: float, more: str
) -> Figure:
    columns = keys.columns_of(len(panels), width)
    rows = -(-len(panels) // columns)
    room = (1.75 if width < style.WIDE else 2.3) if len(panels) == 1 else 1.4  # inches of axes
    lines = [drawn[entry.name] for panel in panels for entry in panel.entries]
    entries = [line.entry for line in lines]
    direct = len(panels) == 1 and keys.fit_at_ends(entries, width, room)
    titles = [lettering.fold(p.title, width / columns - 0.35, style.SIZE) for p in panels]
    above = style.LINE * max(title.count("\n") + 1 for title in titles) if len(panels) > 1 else 0.0
    looks = keys.shared(entries)
    named = any(panel.title != e.short for panel in panels for e in panel.entries)
    height = rows * (room + above + 0.14) + 0.35
    if named and not direct:
        height += keys.legend_height(looks, width)
    figure = style.new_figure(width, height, _caption(lines) + more)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, panel, title in zip(grid.flat, panels, titles, strict=False):
        style.quiet_axes(axes, grid="y")
        axes.set_title(title)
        for entry in panel.entries:
            drawn[entry.name].draw(axes, 0.16 if len(panel.entries) <= _FEW else 0.1)
    grid.flat[0].margins(x=0.02)
    keys.trim(grid, len(panels), "update", _axis(found))
    grid.flat[0].set_ylim(*_limits(lines))
    if direct:
        ends = [(line.course.mean[-1], line.entry) for line in lines]
        keys.at_ends(grid.flat[0], ends, room)
    elif named:
        keys.legend(figure, looks, width)
    return figure


class _Line:
    """One cell of the figure; where panels tell groups apart, markers need not."""

    def __init__(self, entry: Entry, curves: Sequence[Curve], *, plain: bool) -> None:
        self.entry = entry
        self.look = replace(entry.look, fill="full") if plain else entry.look
        self.curves = curves
        self.course: Course = course(curves)
        self.failed = [curve for curve in curves if not curve.seed.ok]

    def draw(self, axes: Axes, alpha: float) -> None:
        """Draw the mean stretch by stretch, the band, and where seeds ended."""
        look, mean = self.look, self.course
        often = max(1, -(-len(mean.updates) // _DOTS))
        for number, part in enumerate(mean.stretches()):
            updates, means = mean.updates[part], mean.mean[part]
            axes.fill_between(
                updates, mean.low[part], mean.high[part], color=look.colour, alpha=alpha, lw=0
            )
            axes.plot(
                updates,
                means,
                linestyle=look.dash,
                linewidth=(1.4 if often < _DENSE else 1.0) if number == 0 else 0.8,
                markevery=(-part.start % often, often),
                **look.of_marker(3.8),
            )
            if number:
                self._tell(axes, updates[0], means[0], f"n={mean.going[part.start]}")
        for curve in self.failed:
            axes.plot(curve.updates, curve.values, color=look.colour, linewidth=0.5, alpha=0.7)
            axes.plot(
                curve.updates[-1:], curve.values[-1:], zorder=4, **style.cross(look.colour, 7.5)
            )

    def _tell(self, axes: Axes, update: float, mean: float, text: str) -> None:
        """Write how many seeds go on, where some have ended."""
        style.write(
            axes,
            text,
            (update, mean),
            away=(0, 4),
            align=("center", "bottom"),
            colour=style.dark(self.look.colour),
            zorder=5,
            bbox=style.HALO,
        )


def _limits(lines: Sequence[_Line]) -> tuple[float, float]:
    """Show every seed, and of bands that go far beyond them a part."""
    values = np.concatenate([curve.values for line in lines for curve in line.curves])
    bounds = np.concatenate([[*line.course.low, *line.course.high] for line in lines])
    low, high = float(values.min()), float(values.max())
    spread = high - low or abs(high) or 1.0
    if np.isfinite(bounds).any():
        low = max(min(low, float(np.nanmin(bounds))), low - _BEYOND * spread)
        high = min(max(high, float(np.nanmax(bounds))), high + _BEYOND * spread)
    return low - 0.04 * spread, high + 0.04 * spread


def _axis(found: Curves) -> str:
    name = titled(found.column)
    return name if found.file == _EVALUATIONS else f"{name}, training"


def _caption(lines: Sequence[_Line]) -> str:
    parts = [f"Mean over {of_seeds(len(line.curves) for line in lines)}"]
    if any((line.course.n > 2).any() for line in lines):
        parts.append("band: 95% t interval")
    if any((line.course.n == 2).any() for line in lines):
        parts.append("of two seeds their range" if len(parts) > 1 else "band: their range")
    if any(len(line.course.stretches()) > 1 for line in lines):
        parts.append("where seeds end, the line is cut and goes on as the mean of the n left")
    if any(line.failed for line in lines):
        parts.append("cross, thin line: a run that failed")
    if any((line.course.n < line.course.going).any() for line in lines):
        parts.append("some seeds lack some updates")
    without = sum(len(line.entry.cell.tried) - len(line.curves) for line in lines)
    if without:
        parts.append(f"{without} run{'s have' if without > 1 else ' has'} no curve")
    low, high = _limits(lines)
    bounds = np.concatenate([[*line.course.low, *line.course.high] for line in lines])
    if (bounds < low).any() or (bounds > high).any():
        parts.append("bands go on beyond the axes")
    return "; ".join(parts) + "."
