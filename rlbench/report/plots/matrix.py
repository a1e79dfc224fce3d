"""Two factors against each other: a number with its interval in each tile of a heat map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected, UsageError
from rlbench.report.cells.cell import KINDS, NOT_RUN, labels_of
from rlbench.report.cells.pairing import task_of
from rlbench.report.plots import lettering, style
from rlbench.report.plots.panels import natural, spell
from rlbench.report.plots.prose import flags_of, in_common, of_seeds
from rlbench.report.text.layout import fixed, places_by_interval
from rlbench.report.text.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rlbench.report.cells.cell import Cell

_TILE = 0.46  # inches of its height
_NAMES = 0.3  # share of the width that names of rows may take
_NARROWEST = 0.85  # inches of a tile that holds a number
_WIDEST = 1.4
_GAP = 0.14  # inches below a table
_MOST = 240  # tiles
_DARK = 0.179  # luminance below which ink is white, else black: a contrast of 4.5 to 1 or more


@dataclass(frozen=True, kw_only=True)
class _Table:
    """Cells of one panel by row and column."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]


@dataclass(frozen=True, kw_only=True)
class _Shades:
    """Colours of values: the better the darker.

    Attributes:
        worst: The value of the lightest.
        best: The value of the darkest.
        places: Places of numbers.
    """

    worst: float
    best: float
    places: int

    def of(self, value: float) -> tuple[float, float, float]:
        """Mix the colour of a value."""
        from matplotlib import colormaps

        span = self.best / 2 - self.worst / 2  # the whole may be larger than the largest float
        share = (value / 2 - self.worst / 2) / span if span else 0.5
        red, green, blue, _ = colormaps["Blues"](0.05 + 0.8 * share)
        return red, green, blue


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """Where things stand, in inches; the same for all tables.

    Attributes:
        names: Of the rows, folded.
        heads: Of the columns, folded.
        side: Width of the names.
        above: Height of the heads.
        tile: Width and height of a tile.
    """

    names: tuple[str, ...]
    heads: tuple[str, ...]
    side: float
    above: float
    tile: tuple[float, float]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of all tiles together."""
        return self.tile[0] * len(self.heads), self.tile[1] * len(self.names)

    @property
    def height(self) -> float:
        """Height of a table with what stands above it."""
        return self.size[1] + self.above + style.LINE + _GAP


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
    if sum(len(table.rows) * len(table.columns) for table in tables) > _MOST:
        raise NothingSelected(
            f"{len(cells):,} cells are too many for a matrix of {down} and {across}; select some "
            f"with {flags_of(cells)}"
        )
    if not any(cell.score for cell in cells):
        raise NothingSelected(f"no cell has a mean {cells[0].metric.name}")
    plan = _plan(tables[0], width)
    by_task = "task" in (down, across)
    caption = _caption(cells, by_task=by_task) + in_common(cells)
    figure = style.new_figure(width, len(tables) * plan.height + style.EDGE, caption)
    figure.set_layout_engine("none")
    total = figure.get_figheight()
    left = (width - plan.size[0] + plan.side) / 2 + 0.1
    for number, table in enumerate(tables):
        bottom = total - style.EDGE - (number + 1) * plan.height + _GAP
        size = (plan.size[0] / width, plan.size[1] / total)
        axes = figure.add_axes((left / width, bottom / total, *size))
        _frame(axes, table, plan, (down, across))
        shades = _shades(table)
        for y, row in enumerate(table.rows):
            for x, column in enumerate(table.columns):
                cell = table.cells.get((row, column))
                _tile(axes, (x, y), cell, shades[task_of(cell)] if cell else None)
    return figure


def _plan(table: _Table, width: float) -> _Plan:
    """Fit rows and columns into a width.

    Raises:
        NothingSelected: The columns do not fit.
    """
    names = [lettering.fold(printable(n) or "-", _NAMES * width, style.SIZE) for n in table.rows]
    side = max(lettering.width_of(line, style.SIZE) for n in names for line in n.split("\n"))
    tile = min((width - side - 0.45) / len(table.columns), _WIDEST)
    if tile < _NARROWEST:
        raise NothingSelected(
            f"{len(table.columns)} columns do not fit into {width:g} inches; give --width, turn "
            "--rows and --columns round, or select some"
        )
    heads = [lettering.fold(printable(n) or "-", tile - 0.05, style.SIZE) for n in table.columns]
    return _Plan(
        names=tuple(names),
        heads=tuple(heads),
        side=side,
        above=max(head.count("\n") + 1 for head in heads) * style.LINE,
        tile=(tile, max(_TILE, *(name.count("\n") * style.LINE + 0.25 for name in names))),
    )


def _shades(table: _Table) -> dict[str, _Shades]:
    """Spread the colours over the values of one table, task by task: others have other scales."""
    groups: dict[str, list[Cell]] = {}
    for cell in table.cells.values():
        groups.setdefault(task_of(cell), []).append(cell)
    return {task: _shades_of(group) for task, group in groups.items()}


def _shades_of(cells: Sequence[Cell]) -> _Shades:
    signs = {cell.metric.sign for cell in cells}
    if len(signs) > 1:
        raise NothingSelected("less is better in some cells and more in others: no one colour")
    sign = signs.pop()
    scores = [cell.score for cell in cells]
    values = [sign * score.mid for score in scores if score] or [0.0]
    return _Shades(
        worst=sign * min(values), best=sign * max(values), places=places_by_interval(scores)
    )


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
    usual = sorted(differing, key=lambda name: name == "task")  # the task last: tables of its own
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


def _frame(axes: Axes, table: _Table, plan: _Plan, factors: tuple[str, str]) -> None:
    """Write names and factors around the tiles, and nothing else of an axis."""
    names, heads = plan.names, plan.heads
    axes.set_xlim(0, len(heads))
    axes.set_ylim(len(names), 0)
    axes.set_axis_off()
    for y, name in enumerate(names):
        style.write(axes, name, (0, y + 0.5), away=(-5, 0), align=("right", "center"))
    for x, head in enumerate(heads):
        style.write(axes, head, (x + 0.5, 0), away=(0, 3), align=("center", "bottom"))
    down, across = factors
    style.write(
        axes,
        down,
        (0, len(names) / 2),
        away=(-72 * (plan.side + 0.1), 0),
        align=("right", "center"),
        colour=style.GREY,
        rotation=90,
    )
    style.write(
        axes,
        f"{table.title}: {across}" if table.title else across,
        (len(heads) / 2, 0),
        away=(0, 72 * plan.above + 3),
        align=("center", "bottom"),
        colour=style.GREY,
    )


def _tile(axes: Axes, place: tuple[int, int], cell: Cell | None, shades: _Shades | None) -> None:
    """Draw one cell: its number on its colour, or hatched if there is none."""
    from matplotlib.patches import Rectangle

    x, y = place
    score = cell.score if cell else None
    shade = shades.of(score.mid) if score and shades else (1.0, 1.0, 1.0)
    axes.add_patch(
        Rectangle(
            place,
            1,
            1,
            facecolor=shade,
            edgecolor="white" if score else "#b0b0b0",
            linewidth=1.5 if score else 0,
            hatch=None if score else "/////",
        )
    )
    axes.text(
        x + 0.5,
        y + 0.5,
        _text(cell, shades.places if shades else 0),
        ha="center",
        va="center",
        color="white" if style.luminance(shade) < _DARK else "black",
        linespacing=1.3,
        bbox=None if score else {"fc": "white", "ec": "none", "boxstyle": "square,pad=0.15"},
    )


def _text(cell: Cell | None, places: int) -> str:
    if cell is None or not cell.tried:
        return NOT_RUN
    failed = f"{len(cell.failed)}/{len(cell.tried)} failed" if cell.failed else ""
    if cell.score is None:
        return failed or "no number"
    half = cell.score.half_width
    text = f"{fixed(cell.score.mid, places)}{'*' if failed else ''}"
    if half is None:
        text += " (n=1)" if cell.score.n == 1 else "\nall equal"
    else:
        text += f" ± {fixed(half, places)}"
    return f"{text}\n{failed}" if failed else text


def _caption(cells: Sequence[Cell], *, by_task: bool) -> str:
    metric = cells[0].metric
    seeds = of_seeds(len(cell.tried) for cell in cells if cell.tried)
    within = ", each task by itself" if by_task else ""
    caption = (
        f"{metric.name}: mean over {seeds} ± half of its 95% t interval; the darker the "
        f"better{within}."
    )
    if any(cell.failed for cell in cells):
        caption += " *: failed runs count with the task's floor."
    return caption[0].upper() + caption[1:]
