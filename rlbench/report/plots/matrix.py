"""Two factors against each other: a number with its interval in each tile of a heat map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected, UsageError
from rlbench.report.cells import KINDS, NOT_RUN, labels_of
from rlbench.report.layout import fixed, places_by_interval
from rlbench.report.plots import lettering, style
from rlbench.report.plots.panels import MOST, natural, spell
from rlbench.report.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

    from rlbench.report.cells import Cell

_TILE = 0.46  # inches of its height
_NAMES = 0.3  # share of the width that names of rows may take
_NARROWEST = 0.62  # inches of a tile that holds a number


@dataclass(frozen=True, kw_only=True)
class _Table:
    """Cells of one panel by row and column."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]


def draw(
    cells: Sequence[Cell],
    *,
    width: float,
    note: Callable[[str], None],  # noqa: ARG001 - every figure has it; this one leaves nothing out
    factors: tuple[str | None, str | None] = (None, None),
) -> Figure:
    """Draw means of the metric by two factors; see `plots.draw`."""
    labels = labels_of(cells)
    down, across = _factors(cells, labels, factors)
    tables = _tables(cells, labels, down, across)
    if sum(len(table.rows) * len(table.columns) for table in tables) > 4 * MOST:
        raise NothingSelected(
            f"{len(cells):,} cells are too many for a matrix of {down} and {across}; select some "
            "with -e, -l, -k, -t or --set"
        )
    values = [cell.score.mid for cell in cells if cell.score is not None]
    if not values:
        raise NothingSelected(f"no run has a {cells[0].metric.name}")
    height = sum(len(table.rows) * _TILE + 0.45 for table in tables) + 0.2
    figure = style.new_figure(width, height, _caption(cells))
    grid = figure.subplots(
        len(tables),
        1,
        squeeze=False,
        gridspec_kw={"height_ratios": [len(table.rows) for table in tables]},
    )
    colours, scale = _scale(values, cells[0].metric.sign)
    places = places_by_interval(cell.score for cell in cells)
    for axes, table in zip(grid.flat, tables, strict=True):
        _panel(axes, table, colours=colours, scale=scale, places=places, width=width)
    grid.flat[-1].set_xlabel(across)
    grid.flat[0].set_ylabel(down)
    return figure


def _factors(
    cells: Sequence[Cell], labels: Sequence[str], wanted: tuple[str | None, str | None]
) -> tuple[str, str]:
    """Choose what stands down and across: what was asked for, else the first that differ."""
    known = [
        name
        for name in dict.fromkeys([*KINDS, *labels, *(n for c in cells for n in c.columns)])
        if any(cell.columns.get(name) for cell in cells)
    ]
    for name in wanted:
        if name is not None and name not in known:
            raise UsageError.unknown("factor", name, [n for n in known if "." not in n])
    differing = [n for n in labels if len({cell.columns.get(n) for cell in cells}) > 1]
    usual = [name for name in differing if name != "task"] or differing
    down, across = wanted
    down = down or next((name for name in usual if name != across), None)
    across = across or next((name for name in usual if name != down), None)
    if down is None or across is None:
        what = f"in {usual[0]} only" if usual else "in nothing"
        raise NothingSelected(f"the cells differ {what}: a matrix needs two factors")
    if down == across:
        raise UsageError(f"rows and columns are both {down}; name two factors")
    return down, across


def _tables(cells: Sequence[Cell], labels: Sequence[str], down: str, across: str) -> list[_Table]:
    rest = [name for name in labels if name not in (down, across)]
    groups: dict[str, list[Cell]] = {}
    for cell in sorted(cells, key=lambda c: [natural(c.columns.get(name, "")) for name in rest]):
        groups.setdefault(spell(cell, rest), []).append(cell)
    rows, columns = (
        tuple(sorted({cell.columns.get(name, "") for cell in cells}, key=natural))
        for name in (down, across)
    )
    return [
        _Table(
            title=title,
            rows=rows,
            columns=columns,
            cells={(c.columns.get(down, ""), c.columns.get(across, "")): c for c in group},
        )
        for title, group in groups.items()
    ]


def _scale(values: Sequence[float], sign: int) -> tuple[Colormap, Normalize]:
    """Map values to colours: the better the darker, never so dark that tiles look alike."""
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    blues = colormaps["Blues"]
    shades = [blues(0.06 + 0.8 * step / 63) for step in range(64)]
    colours = LinearSegmentedColormap.from_list("better", shades if sign > 0 else shades[::-1])
    low, high = min(values), max(values)
    return colours, Normalize(low, high if high > low else low + 1)


def _panel(
    axes: Axes, table: _Table, *, colours: Colormap, scale: Normalize, places: int, width: float
) -> None:
    from matplotlib.patches import Rectangle

    axes.set_title(table.title)
    axes.set_xlim(0, len(table.columns))
    axes.set_ylim(len(table.rows), 0)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks([])
    axes.set_yticks([])
    for y, row in enumerate(table.rows):
        name = lettering.fold(printable(row) or "-", _NAMES * width, style.SIZE)
        axes.text(-0.05, y + 0.5, name, ha="right", va="center")
        for x, column in enumerate(table.columns):
            cell = table.cells.get((row, column))
            score = cell.score if cell else None
            shade = colours(scale(score.mid)) if score else (1.0, 1.0, 1.0, 1.0)
            axes.add_patch(
                Rectangle(
                    (x, y),
                    1,
                    1,
                    facecolor=shade,
                    edgecolor="white" if score else style.FAINT,
                    linewidth=1.5,
                    hatch=None if score else "////",
                )
            )
            dark = style.luminance(shade[:3]) < 0.32
            axes.text(
                x + 0.5,
                y + 0.5,
                _text(cell, places),
                ha="center",
                va="center",
                color="white" if dark else style.INK,
                linespacing=1.3,
            )
    for x, column in enumerate(table.columns):
        name = lettering.fold(
            printable(column) or "-", 0.6 * width / len(table.columns), style.SIZE
        )
        axes.text(x + 0.5, len(table.rows) + 0.08, name, ha="center", va="top")


def _text(cell: Cell | None, places: int) -> str:
    if cell is None or not cell.tried:
        return NOT_RUN
    failed = f"{len(cell.failed)}/{len(cell.tried)} failed" if cell.failed else ""
    if cell.score is None:
        return failed or "no number"
    half = cell.score.half_width
    spread = fixed(half, places) if half is not None else ""
    text = f"{fixed(cell.score.mid, places)}{'*' if failed else ''}"
    text += f" ± {spread}" if spread else f" (n={cell.score.n})"
    return f"{text}\n{failed}" if failed else text


def _caption(cells: Sequence[Cell]) -> str:
    metric = cells[0].metric
    tried = [cell for cell in cells if cell.tried]
    counts = sorted({len(cell.tried) for cell in tried})
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    caption = (
        f"{metric.name}: mean over n={n} seeds ± half of its 95% t interval; the darker the better."
    )
    if any(cell.failed for cell in cells):
        caption += " *: failed runs count with the task's floor."
    return caption[0].upper() + caption[1:]
