"""Learning curves: the mean over seeds with a band, cut where seeds end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlbench.grid.importing import steps_of
from rlbench.report.cells import one_scale
from rlbench.report.cells.curves import Course, Curve, Curves, course, read, stretches
from rlbench.report.plots import keys, lettering, placing, style
from rlbench.report.plots.panels import Entry, Panel, arrange
from rlbench.report.plots.prose import LeftOut, in_common, of_seeds, titled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Locator
    from numpy.typing import NDArray

    from rlbench.grid.normalisation import Scale
    from rlbench.report.cells.cell import Cell

_EVALUATIONS, _SCORE = "evals.csv", "score"
_DOTS = 12  # markers on a line, at most
_DENSE = 5  # updates between markers, from which a line is thin
_BEYOND = 0.12  # of the range of all seeds, that bands may go beyond it
_FEW = 3  # lines whose bands can be told apart at full strength


def draw(
    cells: Sequence[Cell],
    *,
    width: float,
    note: Callable[[str], None],
    column: str | None = None,
    scales: Mapping[str, Scale] | None = None,
) -> Figure:
    """Draw curves of one column; see `plots.draw`."""
    panels = arrange(cells)
    entries = [entry for panel in panels for entry in panel.entries]
    found = read([entry.cell for entry in entries], column)
    if scales is not None and (found.file, found.column) == (_EVALUATIONS, _SCORE):
        found = one_scale.curves(found, [entry.cell for entry in entries], scales)
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
    more = left_out.caption() + in_common(cells)
    return _figure(shown, drawn, found, width=width, more=more)


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
    grid.flat[0].xaxis.set_major_locator(_whole_numbers(width / columns))
    keys.trim(grid, len(panels), _steps(lines), _axis(found))
    grid.flat[0].set_ylim(*_limits(lines))
    size = (width / columns - 0.65) * (1 - keys.SHARE if direct else 1), room
    for axes, panel in zip(grid.flat, panels, strict=False):
        of_panel = [drawn[entry.name] for entry in panel.entries]
        labels = [label for line in of_panel for label in line.labels()]
        markers = [marker for line in of_panel for marker in line.markers()]
        means = [(part.updates, part.mean) for line in of_panel for part in line.stretches]
        placing.write(axes, labels, markers, means, size)
    if direct:
        ends = [(line.course.mean[-1], line.entry) for line in lines]
        keys.at_ends(grid.flat[0], ends, room)
    elif named:
        keys.legend(figure, looks, width)
    return figure


def _whole_numbers(width: float) -> Locator:
    """Put ticks at updates that there are, as many as a width in inches has room for."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=max(2, min(9, int(2 * width))), steps=[1, 2, 2.5, 5, 10], integer=True)


class _Line:
    """One cell of the figure; where panels tell groups apart, markers need not."""

    def __init__(self, entry: Entry, curves: Sequence[Curve], *, plain: bool) -> None:
        self.entry = entry
        self.look = replace(entry.look, fill="full") if plain else entry.look
        self.curves = curves
        self.course: Course = course(curves)
        self.stretches = stretches(curves)
        self.failed = [curve for curve in curves if not curve.seed.ok]

    @property
    def often(self) -> int:
        """Updates from one marker to the next."""
        return max(1, -(-len(self.course.updates) // _DOTS))

    def draw(self, axes: Axes, alpha: float) -> None:
        """Draw the mean stretch by stretch, the band, and where seeds ended."""
        look = self.look
        for number, part in enumerate(self.stretches):
            axes.fill_between(
                part.updates, part.low, part.high, color=look.colour, alpha=alpha, lw=0
            )
            axes.plot(
                part.updates,
                part.mean,
                linestyle=look.dash,
                linewidth=(1.4 if self.often < _DENSE else 1.0) if number == 0 else 0.8,
                markevery=self.often,
                **look.of_marker(3.8),
            )
        for curve in self.failed:
            thin: dict[str, Any] = {"color": look.colour, "linewidth": 0.8, "alpha": 0.8}
            axes.plot(curve.updates, curve.values, **thin)
            if curve.ended is not None:  # nothing was measured on the way there
                way = [curve.updates[-1], curve.ended]
                axes.plot(way, [curve.values[-1]] * 2, linestyle=(0, (1, 1.5)), **thin)
            place = self._end_of(curve)
            axes.plot([place[0]], [place[1]], zorder=4, **style.cross(look.colour, 7.5))

    def labels(self) -> list[placing.Label]:
        """Say how many seeds go on, where some have ended."""
        return [
            placing.Label(
                text=f"n={part.going[0]}",
                colour=style.dark(self.look.colour),
                spots=placing.between(part.updates, part.mean),
            )
            for part in self.stretches[1:]
        ]

    def markers(self) -> list[tuple[float, float]]:
        """List where markers and crosses stand."""
        means = [
            (float(update), float(mean))
            for part in self.stretches
            for update, mean in zip(
                part.updates[:: self.often], part.mean[:: self.often], strict=True
            )
        ]
        return means + [self._end_of(curve) for curve in self.failed]

    def _end_of(self, curve: Curve) -> tuple[float, float]:
        update = curve.updates[-1] if curve.ended is None else curve.ended
        return float(update), float(curve.values[-1])


def _limits(lines: Sequence[_Line]) -> tuple[float, float]:
    """Show every seed, and of bands that go far beyond them a part."""
    values = np.concatenate([curve.values for line in lines for curve in line.curves])
    bounds = _bounds(lines)
    low, high = float(values.min()), float(values.max())
    spread = high - low or abs(high) or 1.0
    if np.isfinite(bounds).any():
        low = max(min(low, float(np.nanmin(bounds))), low - _BEYOND * spread)
        high = min(max(high, float(np.nanmax(bounds))), high + _BEYOND * spread)
    return low - 0.04 * spread, high + 0.04 * spread


def _bounds(lines: Sequence[_Line]) -> NDArray[np.float64]:
    """Collect where the bands of all stretches end; NaN where there is none."""
    parts = [part for line in lines for part in line.stretches]
    return np.concatenate([bound for part in parts for bound in (part.low, part.high)])


def _steps(lines: Sequence[_Line]) -> str:
    """Name what curves are over: updates, or what the files of imported ones call their steps."""
    return " or ".join(dict.fromkeys(steps_of(c.seed.record) for one in lines for c in one.curves))


def _axis(found: Curves) -> str:
    name = titled(found.column)
    return name if found.file == _EVALUATIONS else f"{name}, training"


def _caption(lines: Sequence[_Line]) -> str:
    parts = [f"Mean over {of_seeds(len(line.curves) for line in lines)}"]
    if any((line.course.n > 2).any() for line in lines):
        parts.append("band: 95% t interval")
    if any((line.course.n == 2).any() for line in lines):
        parts.append("of two seeds their range" if len(parts) > 1 else "band: their range")
    if any(len(line.stretches) > 1 for line in lines):
        parts.append("where seeds end, the line is cut and goes on as the mean of the n left")
    if any(line.failed for line in lines):
        parts.append("thin line to a cross: a run that failed")
    if any(curve.ended is not None for line in lines for curve in line.failed):
        parts.append("dotted from its last evaluation on")
    if any((line.course.n < line.course.going).any() for line in lines):
        parts.append("some seeds lack some updates")
    without = sum(len(line.entry.cell.tried) - len(line.curves) for line in lines)
    if without:
        parts.append(f"{without} run{'s have' if without > 1 else ' has'} no curve")
    low, high = _limits(lines)
    bounds = _bounds(lines)
    if (bounds < low).any() or (bounds > high).any():
        parts.append("bands go on beyond the axes")
    return "; ".join(parts) + "."
