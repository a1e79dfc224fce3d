"""What a score costs in KL: means and seeds, and the Pareto front."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected
from rlbench.report.plots import keys, lettering, style
from rlbench.report.plots.panels import Entry, arrange, by_task
from rlbench.report.plots.prose import LeftOut, in_common, of_seeds, titled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rlbench.report.cells.cell import Cell

_RAYS = 20  # seeds that lines tie to their mean, at most
_WIDE_RANGE = 10.0  # largest KL over the least, from which the axis is logarithmic


@dataclass(frozen=True, kw_only=True)
class _Point:
    """A cell.

    Attributes:
        entry: The cell.
        kl: Its mean KL over the seeds that ended well.
        value: Its mean over all that were tried.
        seeds: KL and value of each seed that has both.
    """

    entry: Entry
    kl: float
    value: float
    seeds: tuple[tuple[float, float], ...]


def draw(cells: Sequence[Cell], *, width: float, note: Callable[[str], None]) -> Figure:
    """Draw the metric against the KL; see `plots.draw`."""
    metric = cells[0].metric
    if metric.key == "kl":
        raise NothingSelected("the KL against itself shows nothing; choose another metric")
    shown: list[tuple[str, list[_Point]]] = []
    left_out = LeftOut(note)
    for panel in by_task(arrange(cells)):
        points = [point for entry in panel.entries if (point := _point(entry, left_out))]
        if points:
            shown.append((panel.title, points))
    if not shown:
        raise NothingSelected(f"no run has both a KL and a {metric.name}")
    columns = keys.columns_of(len(shown), width)
    rows = -(-len(shown) // columns)
    room = (1.9 if width < style.WIDE else 2.6) if len(shown) == 1 else 1.5
    every = [point for _, points in shown for point in points]
    looks = {point.entry.name: point.entry.look for point in every}
    height = rows * (room + 0.45) + keys.legend_height(looks, width, lines=False)
    caption = _caption(every) + left_out.caption() + in_common(cells)
    figure = style.new_figure(width, height, caption)
    grid = figure.subplots(rows, columns, squeeze=False)
    logarithmic = _logarithmic(every)
    for axes, (title, points) in zip(grid.flat, shown, strict=False):
        axes.set_title(lettering.fold(title, width / columns - 0.35, style.SIZE))
        if logarithmic:
            axes.set_xscale("log")
            style.plain_numbers(axes)
        _panel(axes, points)
    scale = ", log scale" if logarithmic else ""
    keys.trim(grid, len(shown), f"KL (nats a completion{scale})", titled(metric.name))
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


def _point(entry: Entry, left_out: LeftOut) -> _Point | None:
    cell = entry.cell
    kl, score = cell.mean("kl"), cell.score
    if kl is None or score is None:
        left_out.add(entry.name, f"it has no {'KL' if kl is None else cell.metric.name}")
        return None
    seeds = [(seed.value("kl"), seed.score) for seed in cell.ok]
    both = [(x, y) for x, y in seeds if x is not None and y is not None]
    return _Point(entry=entry, kl=kl, value=score.mid, seeds=tuple(both))


def _logarithmic(points: Sequence[_Point]) -> bool:
    kls = [kl for point in points for kl, _ in point.seeds]
    return min(kls) > 0 and max(kls) / min(kls) > _WIDE_RANGE


def _panel(axes: Axes, points: Sequence[_Point]) -> None:
    style.quiet_axes(axes, grid="y")
    for point in points:
        colour = point.entry.look.colour
        kls, values = [kl for kl, _ in point.seeds], [value for _, value in point.seeds]
        if len(kls) <= _RAYS:
            for kl, value in point.seeds:
                axes.plot([point.kl, kl], [point.value, value], color=colour, lw=0.6, alpha=0.4)
        axes.plot(kls, values, color=colour, **style.dots(len(kls)))
        axes.plot([point.kl], [point.value], zorder=3, **keys.marker_of(point.entry.look, 6.5))
        failed = len(point.entry.cell.failed)
        if failed:
            style.write(
                axes,
                f"{failed}/{len(point.entry.cell.tried)} failed",
                (point.kl, point.value),
                away=(6, -1),
                align=("left", "center"),
                colour=style.dark(colour),
                zorder=2.5,
                bbox=style.HALO,
            )
    _front(axes, points)


def _front(axes: Axes, points: Sequence[_Point]) -> None:
    """Draw the border of what is beaten in both by some mean, out to the edges."""
    sign = points[0].entry.cell.metric.sign
    best = [points[n] for n in front([(point.kl, sign * point.value) for point in points])]
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    x = [best[0].kl, *(point.kl for point in best), right]
    y = [low if sign > 0 else high, *(point.value for point in best), best[-1].value]
    axes.plot(x, y, color=style.GREY, linewidth=0.8, drawstyle="steps-post", zorder=1.5)
    axes.set_xlim(left, right)
    axes.set_ylim(low, high)


def _caption(points: Sequence[_Point]) -> str:
    cells = [point.entry.cell for point in points]
    caption = (
        f"Large: means over {of_seeds(len(cell.tried) for cell in cells)}; dots: seeds. Line: the "
        "Pareto front of the means, better to its upper left."
    )
    if cells[0].metric.sign < 0:
        caption = caption.replace("upper left", "lower left")
    if any(cell.failed for cell in cells):
        caption += " Failed runs count with the task's floor in the mean, and have no KL."
    return caption
