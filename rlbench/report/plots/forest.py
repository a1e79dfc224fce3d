"""Rows of intervals below each other, as medical reviews draw them: name, interval, numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.report.plots import lettering, style
from rlbench.report.plots.keys import marker_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rlbench.report.plots.style import Look

_NAMES = 0.4  # share of the width that names may take
_NUMBERS_FROM = 4.5  # inches of width from which numbers stand at the right
_PAD = 0.07  # inches between rows
_AXIS = 0.42  # inches of an axis with its numbers and title
_TITLE = 0.22


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row.

    Attributes:
        name: At the left.
        look: Its colour and marker.
        mid: The estimate; None if there is none.
        low: Lower bound; None if there is no interval.
        high: Upper bound, likewise.
        dots: Single values.
        crosses: Values of what failed.
        reference: A value to be marked with a thin bar; None if there is none.
        text: At the right, where there is room.
    """

    name: str
    look: Look
    mid: float | None
    low: float | None = None
    high: float | None = None
    dots: tuple[float, ...] = ()
    crosses: tuple[float, ...] = ()
    reference: float | None = None
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Block:
    """Rows on one axis.

    Attributes:
        title: Above them; empty for none.
        rows: From top to bottom.
        line: A value at which a line crosses all rows; None for none.
        label: What the line is called.
    """

    title: str
    rows: tuple[Row, ...]
    line: float | None = None
    label: str = ""


def draw(
    blocks: Sequence[Block],
    *,
    width: float,
    axis: str,
    header: str,
    caption: str,
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Draw blocks below each other.

    Args:
        blocks: At least one, each with a row.
        width: In inches.
        axis: Title of the axis.
        header: Above the numbers at the right.
        caption: Below the figure.
        limits: Of the axis; None leaves it to the data.
    """
    names = {
        row.name: lettering.fold(row.name, _NAMES * width, style.SIZE)
        for block in blocks
        for row in block.rows
    }
    heights = [
        sum(_height(names[row.name]) for row in block.rows) + (_TITLE if block.title else 0.0)
        for block in blocks
    ]
    total = sum(heights) + _AXIS * len(blocks) + _TITLE
    figure = style.new_figure(width, total, caption)
    grid = figure.subplots(len(blocks), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    for number, (axes, block) in enumerate(zip(grid.flat, blocks, strict=True)):
        _block(axes, block, names, header if width >= _NUMBERS_FROM else "")
        axes.set_title(block.title)
        if limits:
            axes.set_xlim(*limits)
        if number == len(blocks) - 1:
            axes.set_xlabel(axis)
    return figure


def _height(name: str) -> float:
    return (name.count("\n") + 1) * style.LINE + _PAD


def _block(axes: Axes, block: Block, names: dict[str, str], header: str) -> None:
    style.quiet_axes(axes, grid="x")
    axes.spines["left"].set_visible(False)
    axes.yaxis.set_visible(False)
    place = 0.0
    beside = axes.get_yaxis_transform()
    for row in block.rows:
        height = _height(names[row.name])
        middle = place + height / 2
        _row(axes, row, middle)
        axes.text(-0.015, middle, names[row.name], transform=beside, ha="right", va="center")
        if header:
            axes.text(1.015, middle, row.text, transform=beside, ha="left", va="center")
        place += height
    axes.set_ylim(place, 0)
    if header:
        axes.text(1.015, 0, header, transform=beside, ha="left", va="bottom", color=style.GREY)
    if block.line is not None:
        axes.axvline(block.line, color=style.GREY, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
        axes.annotate(
            block.label,
            (block.line, 0),
            xycoords=("data", "data"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            color=style.GREY,
            annotation_clip=False,
        )


def _row(axes: Axes, row: Row, middle: float) -> None:
    colour = row.look.colour
    step = 0.028  # inches that equal values are moved apart
    for values, marker, size in ((row.dots, "o", 3.0), (row.crosses, "x", 5.0)):
        for number, value in enumerate(sorted(values)):
            offset = step * ((number % 3) - 1) + 0.05
            axes.plot(
                [value],
                [middle + offset],
                marker=marker,
                markersize=size,
                markeredgewidth=1.2 if marker == "x" else 0,
                color=colour,
                alpha=1 if marker == "x" else 0.55,
                linestyle="none",
                clip_on=False,
            )
    if row.reference is not None:
        axes.plot([row.reference] * 2, [middle - 0.06, middle + 0.06], color=style.GREY, lw=0.8)
    if row.mid is None:
        return
    if row.low is not None and row.high is not None:
        axes.plot([row.low, row.high], [middle - 0.03] * 2, color=colour, linewidth=1.6)
    axes.plot([row.mid], [middle - 0.03], **marker_of(row.look, 5.5), clip_on=False)
