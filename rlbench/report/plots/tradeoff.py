"""What a score costs in KL: means and seeds, and the Pareto front."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected
from rlbench.report.plots import keys, style
from rlbench.report.plots.panels import Entry, arrange, by_task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rlbench.report.cells import Cell

_KL = "KL from the base policy (nats a completion)"


@dataclass(frozen=True, kw_only=True)
class _Point:
    """A cell: mean KL of the seeds that ended well, mean metric of all that were tried."""

    entry: Entry
    kl: float
    value: float

    @property
    def worth(self) -> float:
        """The value, larger is better."""
        return self.entry.cell.metric.sign * self.value


def draw(cells: Sequence[Cell], *, width: float, note: Callable[[str], None]) -> Figure:
    """Draw the metric against the KL; see `plots.draw`."""
    metric = cells[0].metric
    if metric.key == "kl":
        raise NothingSelected("the KL against itself shows nothing; choose another metric")
    panels = by_task(arrange(cells))
    points = [[_point(entry, note) for entry in panel.entries] for panel in panels]
    shown = [
        (panel.title, known)
        for panel, row in zip(panels, points, strict=True)
        if (known := [point for point in row if point is not None])
    ]
    if not shown:
        raise NothingSelected(f"no run has both a KL and a {metric.name}")
    columns = min(len(shown), max(1, int(width / 2.1)))
    rows = -(-len(shown) // columns)
    height = (2.4 if width < 5 else 3.0) if len(shown) == 1 else 2.0 * rows + 0.3
    figure = style.new_figure(width, height, _caption([p for _, row in shown for p in row]))
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    for axes, (title, row) in zip(grid.flat, shown, strict=False):
        axes.set_title(title)
        _panel(axes, row)
    for axes in grid[-1]:
        axes.set_xlabel(_KL if columns == 1 else "KL (nats)")
    for axes in grid[:, 0]:
        axes.set_ylabel(metric.name)
    looks = {point.entry.name: point.entry.look for _, row in shown for point in row}
    keys.legend(figure, looks, width, lines=False)
    return figure


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Find what nothing else beats in both: numbers of the points, by rising cost.

    Args:
        points: Cost (less is better) and worth (more is better) of each.
    """
    order = sorted(range(len(points)), key=lambda number: (points[number][0], -points[number][1]))
    found: list[int] = []
    for number in order:
        if not found or points[number][1] > points[found[-1]][1]:
            found.append(number)
    return found


def _point(entry: Entry, note: Callable[[str], None]) -> _Point | None:
    kl, score = entry.cell.mean("kl"), entry.cell.score
    if kl is None or score is None:
        note(f"left out: {entry.name} has no {'KL' if kl is None else entry.cell.metric.name}")
        return None
    return _Point(entry=entry, kl=kl, value=score.mid)


def _panel(axes: Axes, points: Sequence[_Point]) -> None:
    style.quiet_axes(axes, grid="y")
    for point in points:
        for seed in point.entry.cell.ok:
            kl = seed.value("kl")
            if kl is not None and seed.score is not None:
                axes.plot(
                    [kl], [seed.score], "o", ms=3, color=point.entry.look.colour, alpha=0.45, mew=0
                )
    best = front([(point.kl, point.worth) for point in points])
    axes.plot(
        [points[number].kl for number in best],
        [points[number].value for number in best],
        color=style.GREY,
        linewidth=0.9,
        drawstyle="steps-post",
        zorder=1,
    )
    for point in points:
        axes.plot([point.kl], [point.value], **keys.marker_of(point.entry.look, 7))


def _caption(points: Sequence[_Point]) -> str:
    counts = sorted({len(point.entry.cell.tried) for point in points})
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    caption = f"Large: means over n={n} seeds; dots: seeds. Line: the Pareto front of the means."
    failing = [f"{p.entry.name} {len(p.entry.cell.failed)}" for p in points if p.entry.cell.failed]
    if failing:
        caption += (
            f" Failed runs ({', '.join(failing)}) count with the floor in the mean score; "
            "they have no KL."
        )
    return caption
