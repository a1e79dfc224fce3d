"""What lines and markers are called: at the ends of lines where there is room, else in a legend."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlbench.report.plots import lettering, style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from rlbench.report.plots.panels import Entry
    from rlbench.report.plots.style import Look

SHARE = 0.3  # of the width of a figure that names at line ends may take
_NARROWEST = 1.55  # inches of a panel
_GAP = 0.08  # inches between a line's end and its name


def legend(figure: Figure, looks: Mapping[str, Look], width: float, *, lines: bool = True) -> None:
    """Put names above everything, in as many columns as fit.

    Args:
        figure: The figure.
        looks: By name, in order.
        width: Of the figure, in inches.
        lines: Whether the figure has lines; else markers only.
    """
    from matplotlib.lines import Line2D

    names, columns = _fitted(looks, width, lines=lines)
    handles = [
        Line2D([], [], linestyle=look.dash if lines else "none", **look.of_marker(4.5))
        for look in looks.values()
    ]
    figure.legend(
        handles,
        names,
        loc="outside upper center",
        ncols=columns,
        handlelength=_handle(lines=lines),
        columnspacing=1.2,
        handletextpad=0.5,
    )


def legend_height(looks: Mapping[str, Look], width: float, *, lines: bool = True) -> float:
    """Compute the height of what `legend` puts above everything, in inches."""
    names, columns = _fitted(looks, width, lines=lines)
    rows = -(-len(names) // columns)
    deep = [max(name.count("\n") + 1 for name in names[row::rows]) for row in range(rows)]
    return sum(deep) * style.LINE + rows * 0.5 * style.SIZE / 72 + 0.15


def _fitted(looks: Mapping[str, Look], width: float, *, lines: bool) -> tuple[list[str], int]:
    """Fold names, and choose the number of columns."""
    names = [lettering.fold(name, width - 0.6, style.SIZE) for name in looks]
    widest = max(lettering.width_of(line, style.SIZE) for n in names for line in n.split("\n"))
    # the handle, the space behind it and that between columns, in sizes of the font
    each = widest + (_handle(lines=lines) + 0.5 + 1.2) * style.SIZE / 72
    most = max(1, min(len(looks), int((width - 0.1) / each)))
    rows = -(-len(looks) // most)
    return names, -(-len(looks) // rows)  # as even rows as these allow


def _handle(*, lines: bool) -> float:
    return 2.6 if lines else 1.0


def shared(entries: Sequence[Entry]) -> dict[str, Look]:
    """Collect the looks by the short names, which panels share but for how markers are filled."""
    looks: dict[str, Look] = {}
    for entry in entries:
        looks.setdefault(entry.short, replace(entry.look, fill="full"))
    return looks


def columns_of(panels: int, width: float) -> int:
    """Choose how many panels stand side by side.

    Args:
        panels: How many there are.
        width: Of the figure, in inches.
    """
    most = max(1, int(width / _NARROWEST))
    rows = -(-panels // most)
    return -(-panels // rows)


def trim(grid: NDArray[Any], panels: int, below: str, beside: str) -> None:
    """Title the outer axes of a grid only, and hide those without a panel.

    Args:
        grid: Axes (rows, columns).
        panels: How many of them, in reading order, hold something.
        below: Title of the horizontal axis.
        beside: Title of the vertical one.
    """
    columns = grid.shape[1]
    for number, axes in enumerate(grid.flat):
        axes.set_visible(number < panels)
        if number % columns == 0:
            axes.set_ylabel(beside)
        if number + columns >= panels:
            axes.set_xlabel(below)
            axes.tick_params(labelbottom=True)
            axes.xaxis.set_in_layout(number + columns >= grid.size)  # there is room below


def fit_at_ends(entries: Sequence[Entry], width: float, height: float) -> bool:
    """Whether names can stand at the ends of lines.

    Args:
        entries: One a line.
        width: Of the figure, in inches.
        height: Of the axes, in inches.
    """
    widest = max(lettering.width_of(entry.name, style.SIZE) for entry in entries)
    return widest + _GAP <= SHARE * width and len(entries) * style.LINE <= height


def at_ends(axes: Axes, ends: Sequence[tuple[float, Entry]], height: float) -> None:
    """Write each name beside the end of its line, moved apart where ends are close.

    Args:
        axes: Its limits are fixed by this.
        ends: The last value of each line, with its cell.
        height: Of the axes, in inches.
    """
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)
    places = apart([(end - low) / (high - low) for end, _ in ends], style.LINE / height)
    for place, (_, entry) in zip(places, ends, strict=True):
        style.write(
            axes,
            entry.name,
            (1, place),
            coords="axes fraction",
            away=(72 * _GAP, 0),
            align=("left", "center_baseline"),
            colour=style.dark(entry.look.colour),
        )


def apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Move places as little as needed, so that neighbours are a gap apart, all within [0, 1].

    Args:
        wanted: Places, in any order.
        gap: The least distance.

    Returns:
        Places in the order given; as close to each other as they have to be if there is no room.
    """
    order = sorted(range(len(wanted)), key=lambda number: (wanted[number], number))
    gap = min(gap, 1 / max(len(wanted) - 1, 1))
    blocks: list[tuple[float, list[int]]] = []  # the place of the lowest member, and the members
    for number in order:
        blocks.append((min(max(wanted[number], 0.0), 1.0), [number]))
        while len(blocks) > 1 and blocks[-2][0] + gap * len(blocks[-2][1]) > blocks[-1][0]:
            members = blocks[-2][1] + blocks[-1][1]
            middle = sum(wanted[m] - gap * place for place, m in enumerate(members)) / len(members)
            lowest = min(max(middle, 0.0), 1 - gap * (len(members) - 1))
            blocks[-2:] = [(lowest, members)]
    places = [0.0] * len(wanted)
    for lowest, members in blocks:
        for place, member in enumerate(members):
            places[member] = lowest + gap * place
    return places


def marker_of(look: Look, size: float = 5.0) -> dict[str, Any]:
    """Give the keywords of a marker without a line."""
    return look.of_marker(size) | {"linestyle": "none"}
