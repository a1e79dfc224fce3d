"""Learning curves: the mean over seeds with a band, cut where seeds end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected
from rlbench.report.curves import Course, Curve, Curves, course, read
from rlbench.report.plots import keys, lettering, style
from rlbench.report.plots.panels import Entry, arrange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rlbench.report.cells import Cell

_UNITS = {
    "score": "score, greedy, held-out prompts",
    "sampled_score": "score, sampled, held-out prompts",
    "kl": "KL (nats a completion)",
    "entropy": "entropy (nats a token)",
    "length": "length (tokens)",
    "tokens": "tokens so far",
}
_DOTS = 12  # markers on a line, at most
_NARROWEST = 1.55  # inches of a panel


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
        entry.name: _Line(entry, curves)
        for entry, curves in zip(entries, found.cells, strict=True)
        if curves
    }
    for entry in entries:
        if entry.name not in drawn:
            note(f"without a curve: {entry.name}")
    shown = [panel for panel in panels if any(e.name in drawn for e in panel.entries)]
    if not shown:
        raise NothingSelected("no run has a curve")
    columns = _columns(len(shown), width)
    rows = -(-len(shown) // columns)
    height = (2.1 if width < 5 else 2.6) if len(shown) == 1 else 1.75 * rows + 0.35
    figure = style.new_figure(width, height, _caption(found, list(drawn.values())))
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    for axes, panel in zip(grid.flat, shown, strict=False):
        style.quiet_axes(axes, grid="y")
        axes.set_title(lettering.fold(panel.title, width / columns - 0.5, style.SIZE))
        for entry in panel.entries:
            if entry.name in drawn:
                drawn[entry.name].draw(axes)
    for axes in grid[-1]:
        axes.set_xlabel("update")
    for axes in grid[:, 0]:
        axes.set_ylabel(_UNITS.get(found.column, found.column))
    keys.legend(figure, keys.shared([line.entry for line in drawn.values()]), width)
    return figure


class _Line:
    """One cell of the figure."""

    def __init__(self, entry: Entry, curves: Sequence[Curve]) -> None:
        self.entry = entry
        self.curves = curves
        self.course: Course = course(curves)
        self.failed = [curve for curve in curves if not curve.seed.ok]

    def draw(self, axes: Axes) -> None:
        """Draw the mean stretch by stretch, the band, and where seeds ended."""
        look, mean = self.entry.look, self.course
        markers = look.of_marker(4.0)
        for number, part in enumerate(mean.stretches()):
            updates = mean.updates[part]
            axes.fill_between(
                updates, mean.low[part], mean.high[part], color=look.colour, alpha=0.15, linewidth=0
            )
            axes.plot(
                updates,
                mean.mean[part],
                linestyle=look.dash,
                markevery=max(1, -(-len(mean.updates) // _DOTS)),
                linewidth=1.4 if number == 0 else 0.9,
                **markers,
            )
            if number:
                axes.annotate(
                    f"n={mean.going[part.start]}",
                    (updates[0], mean.mean[part.start]),
                    xytext=(0, 5),
                    textcoords="offset points",
                    color=style.dark(look.colour),
                    ha="center",
                    va="bottom",
                )
        for curve in self.failed:
            axes.plot(
                curve.updates, curve.values, color=look.colour, linewidth=0.6, linestyle=look.dash
            )
            axes.plot(
                curve.updates[-1:],
                curve.values[-1:],
                marker="x",
                markersize=6,
                markeredgewidth=1.6,
                color=look.colour,
                linestyle="none",
            )


def _columns(panels: int, width: float) -> int:
    return min(panels, max(1, int(width / _NARROWEST)), 4 if panels != 6 else 3)


def _caption(found: Curves, lines: Sequence[_Line]) -> str:
    counts = sorted({len(line.curves) for line in lines})
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    parts = [f"Mean over n={n} seeds; band: 95% t interval of the mean"]
    if any(((line.course.n == 2).any()) for line in lines):
        parts[0] += " (two seeds: from the lower to the upper)"
    if any(len(line.course.stretches()) > 1 for line in lines):
        parts.append("A line is cut where a seed ends and goes on with the mean of the n left")
    if any(line.failed for line in lines):
        parts.append("cross: a run that failed")
    if any((line.course.n < line.course.going).any() for line in lines):
        parts.append("some seeds have gaps")
    return ". ".join(part[0].upper() + part[1:] for part in parts) + f". {found.file}."
