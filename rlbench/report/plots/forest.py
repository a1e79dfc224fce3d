"""Rows of intervals below each other, as medical reviews draw them: name, interval, numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlbench.report.plots import lettering, style
from rlbench.report.plots.keys import marker_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rlbench.report.plots.style import Look

_NAMES = 0.4  # share of the width that names may take
_PAD = 0.08  # inches between rows
_AXIS = 0.2  # inches of an axis with its numbers
_TITLE = 0.2  # of its title, and of what stands above rows
_GAP = 0.08  # between the axes and what stands beside them
_NARROWEST = 1.0  # of the title of the axis
_APART = 0.03  # that dots of one row are moved apart


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row.

    Attributes:
        name: At the left.
        look: Its colour and marker.
        mid: The estimate; None if there is none.
        low: Lower bound; None if there is no interval.
        high: Upper bound, likewise.
        outer: Bounds of a wider interval, drawn thin; None for none.
        dots: Single values.
        crosses: Values of what failed.
        reference: A value to be marked with a thin bar; None if there is none.
        texts: Beside the axes, where there is room.
    """

    name: str
    look: Look
    mid: float | None
    low: float | None = None
    high: float | None = None
    outer: tuple[float, float] | None = None
    dots: tuple[float, ...] = ()
    crosses: tuple[float, ...] = ()
    reference: float | None = None
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Block:
    """Rows on one axis.

    Attributes:
        title: Above them; empty for none.
        rows: From top to bottom.
        line: A value at which a line crosses all rows; None for none.
        label: What the line is called.
        band: Values between which the ground is grey; None for none.
        backwards: Whether less is to the right.
    """

    title: str
    rows: tuple[Row, ...]
    line: float | None = None
    label: str = ""
    band: tuple[float, float] | None = None
    backwards: bool = False


def on_one_axis(blocks: Sequence[Block]) -> list[Block]:
    """Make rows of one block of blocks that have one row each, named by their titles.

    Args:
        blocks: As they would be drawn; all on one scale.

    Returns:
        One block; the same blocks where some has several rows.
    """
    alike = len({(block.band, block.backwards) for block in blocks}) == 1
    if len(blocks) < 2 or not alike or any(len(block.rows) > 1 for block in blocks):
        return list(blocks)
    same = len({(block.line, block.label) for block in blocks}) == 1
    rows = [
        replace(
            block.rows[0],
            name=block.title,
            reference=block.rows[0].reference if same or block.line is None else block.line,
        )
        for block in blocks
    ]
    first = blocks[0]
    return [
        replace(
            first,
            title="",
            rows=tuple(rows),
            line=first.line if same else None,
            label=first.label if same else "",
        )
    ]


def draw(
    blocks: Sequence[Block],
    *,
    width: float,
    axis: str,
    header: tuple[str, ...],
    caption: str,
    limits: tuple[float, float] | None = None,
    narrow: int = 0,
) -> Figure:
    """Draw blocks below each other.

    Args:
        blocks: At least one, each with a row.
        width: In inches.
        axis: Title of the axis.
        header: Above the texts beside the axes.
        caption: Below the figure.
        limits: Of the axis; None leaves it to the data.
        narrow: How many of the texts stand beside the axes where these are as wide as a column.
    """
    names = {
        row.name: lettering.fold(row.name, _NAMES * width, style.SIZE)
        for block in blocks
        for row in block.rows
    }
    heights = [sum(_height(names[row.name]) for row in block.rows) for block in blocks]
    above = sum(_TITLE if block.title or number == 0 else 0 for number, block in enumerate(blocks))
    *offsets, end = _offsets(blocks, header if width >= style.WIDE else header[:narrow])
    side = max(
        lettering.width_of(t, style.SIZE) for name in names.values() for t in name.split("\n")
    )
    title = lettering.fold(axis, max(width - side - end - 3 * _GAP, _NARROWEST), style.SIZE)
    total = sum(heights) + above + (_AXIS + 0.06) * len(blocks) + _TITLE + 2 * style.EDGE
    total += title.count("\n") * style.LINE
    figure = style.new_figure(width, total, caption)
    grid = figure.subplots(len(blocks), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    for number, (axes, block) in enumerate(zip(grid.flat, blocks, strict=True)):
        _block(axes, block, names)
        axes.set_title(lettering.fold(block.title, width / 2, style.SIZE))
        if limits:
            axes.set_xlim(*limits)
        if block.backwards:
            axes.invert_xaxis()
        _texts(axes, block, names, offsets, header if number == 0 else ())
    grid.flat[-1].set_xlabel(title)
    return figure


def _height(name: str) -> float:
    return (name.count("\n") + 1) * style.LINE + _PAD


def _middles(block: Block, names: dict[str, str]) -> list[float]:
    """Where the rows stand: inches from the top of the axes."""
    middles, place = [], 0.0
    for row in block.rows:
        middles.append(place + _height(names[row.name]) / 2)
        place += _height(names[row.name])
    return middles


def _block(axes: Axes, block: Block, names: dict[str, str]) -> None:
    style.quiet_axes(axes, grid="x")
    axes.spines["left"].set_visible(False)
    axes.yaxis.set_visible(False)
    axes.set_ylim(sum(_height(names[row.name]) for row in block.rows), 0)
    for row, middle in zip(block.rows, _middles(block, names), strict=True):
        _row(axes, row, middle)
        style.write(
            axes,
            names[row.name],
            (0, middle),
            coords=("axes fraction", "data"),
            away=(-72 * _GAP, 0),
            align=("right", "center"),
        )
    if block.band is not None:
        axes.axvspan(*block.band, color=style.FAINT, linewidth=0, zorder=0.5)
    if block.line is not None:
        axes.axvline(block.line, color=style.GREY, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    if block.line is not None and block.label:
        style.write(
            axes,
            block.label,
            (block.line, 0),
            away=(0, 2),
            align=("center", "bottom"),
            colour=style.GREY,
        )


def _offsets(blocks: Sequence[Block], header: tuple[str, ...]) -> list[float]:
    """Place columns of text, alike in all blocks: inches from the axes, and where the last ends."""
    offsets, place = [], _GAP
    for column, head in enumerate(header):
        offsets.append(place)
        texts = [head, *(row.texts[column] for block in blocks for row in block.rows)]
        place += max(lettering.width_of(text, style.SIZE) for text in texts) + 2 * _GAP
    return [*offsets, place]


def _texts(
    axes: Axes,
    block: Block,
    names: dict[str, str],
    offsets: Sequence[float],
    header: tuple[str, ...],
) -> None:
    """Write the columns of text beside the axes."""
    beside: dict[str, Any] = {"coords": ("axes fraction", "data")}
    for column, offset in enumerate(offsets):
        for row, middle in zip(block.rows, _middles(block, names), strict=True):
            away = (72 * offset, 0.0)
            text = row.texts[column]
            style.write(axes, text, (1, middle), away=away, align=("left", "center"), **beside)
        if header:
            style.write(
                axes,
                header[column],
                (1, 0),
                away=(72 * offset, 2),
                align=("left", "bottom"),
                colour=style.GREY,
                **beside,
            )


def _row(axes: Axes, row: Row, middle: float) -> None:
    """Draw the interval, and single values a little below it, apart from each other."""
    colour = row.look.colour
    above = middle - (0.03 if row.dots or row.crosses else 0)
    dots, crosses = (sorted(values) for values in (row.dots, row.crosses))
    if dots:  # a line without a point would count as one in the corner of the figure
        axes.plot(dots, _apart(dots, middle), color=colour, clip_on=False, **style.dots(len(dots)))
    if row.reference is not None:
        axes.plot([row.reference] * 2, [middle - 0.06, middle + 0.06], color=style.GREY, lw=0.9)
    if row.outer is not None:
        axes.plot(row.outer, [above, above], color=colour, linewidth=0.7)
    if row.mid is not None and row.low is not None and row.high is not None:
        axes.plot(
            [row.low, row.high], [above, above], color=colour, linewidth=2.2 if row.outer else 1.6
        )
    if row.mid is not None:
        axes.plot([row.mid], [above], clip_on=False, zorder=3, **marker_of(row.look, 5.5))
    if crosses:
        places = _apart(crosses, middle)
        axes.plot(crosses, places, zorder=4, clip_on=False, **style.cross(colour, 6.5))


def _apart(values: Sequence[float], middle: float) -> list[float]:
    """Place single values a little below the interval, neighbours not at one height."""
    return [middle + 0.05 + _APART * (number % 3 - 1) for number in range(len(values))]
