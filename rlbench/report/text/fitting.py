"""Columns of any table, and which of them fit a screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from rlbench.report.text import layout
from rlbench.report.text.folding import fold, width_of
from rlbench.report.text.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class Column(Generic[R]):
    """One column.

    Attributes:
        name: Its header.
        say: What it says of a row.
        number: Whether it stands flush right.
        folded: Whether its text has line breaks that are meant.
        bold: Says of a row whether this column is bold in it, where the format has bold.
    """

    name: str
    say: Callable[[R], str]
    number: bool = True
    folded: bool = False
    bold: Callable[[R], bool] | None = None


@dataclass(frozen=True, kw_only=True)
class Sacrifice(Generic[R]):
    """What a table gives up to fit, in order.

    Attributes:
        names: Columns that may be left out, the first one first.
        whole: How many of them are left out before the names of rows are folded into one column.
        title: The header of that column.
        name: What it says of a row, in one line.
        enough: Columns of the screen for it; for fewer, one more number is left out.
    """

    names: Sequence[str]
    whole: int
    title: str
    name: Callable[[R], str]
    enough: int


def fitting(
    rows: Sequence[R],
    labels: list[Column[R]],
    numbers: list[Column[R]],
    sacrifice: Sacrifice[R],
    *,
    format: str,  # noqa: A002 - as in `layout.lay_out`
    width: int,
) -> tuple[list[Column[R]], list[str]]:
    """Choose the columns of a table that is not wider than this.

    Args:
        rows: The rows.
        labels: Columns that name them.
        numbers: The others.
        sacrifice: What may go.
        format: Only ``simple`` can fold names.
        width: The most columns of the screen.

    Returns:
        The columns, and the names of those that are left out. Where nothing more may go, the table
        is wider than asked: nothing is ever cut.
    """
    folds = format == "simple"
    last = sacrifice.whole if folds else len(sacrifice.names)
    kept, gone = numbers, list[str]()
    for count in range(last + 1):
        kept, gone = _without(numbers, sacrifice.names[:count])
        if _width(rows, [*labels, *kept], format) <= width:
            return [*labels, *kept], gone
    if not folds:
        return [*labels, *kept], gone
    names = (printable(sacrifice.name(row)) for row in rows)
    longest = max(map(width_of, [sacrifice.title, *names]))
    room = 0
    for count in range(len(sacrifice.names) + 1):
        kept, gone = _without(numbers, sacrifice.names[:count])
        room = width - _width(rows, kept, format) - 2
        if room >= min(longest, sacrifice.enough):
            break

    def say(row: R) -> str:
        return fold(printable(sacrifice.name(row)), room)

    return [Column(name=sacrifice.title, say=say, number=False, folded=True), *kept], gone


def page(
    rows: Sequence[R],
    columns: Sequence[Column[R]],
    below: Sequence[str],
    left_out: Sequence[str],
    *,
    format: str,  # noqa: A002 - as in `layout.lay_out`
    width: int | None,
) -> str:
    """Lay out a table that was fitted to a width, with what stands below it.

    Args:
        rows: The rows.
        columns: Those that are shown.
        below: Paragraphs.
        left_out: Names of the columns that are not shown; they are named below all else.
        format: Any of `layout.FORMATS`.
        width: The most columns of the screen; None means no limit.
    """
    said = list(below)
    if left_out:
        said.append(f"Left out for width: {', '.join(left_out)} (--max-width 0 shows all).")
    prose_width = min(width or layout.PROSE_WIDTH, layout.PROSE_WIDTH)
    return layout.page(*texts(rows, columns, format), below=said, format=format, width=prose_width)


def texts(
    rows: Sequence[R],
    columns: Sequence[Column[R]],
    format: str,  # noqa: A002 - as in `layout.lay_out`
) -> tuple[list[str], list[list[str]], list[bool]]:
    """Write a table, escaped for its format.

    Returns:
        The header, the texts of all rows, and which columns stand flush right.
    """

    def text(row: R, column: Column[R]) -> str:
        if column.folded:
            return column.say(row)
        escaped = layout.escape(column.say(row), format)
        bold = column.bold is not None and column.bold(row)
        return layout.strong(escaped, format) if bold else escaped

    return (
        [layout.escape(column.name, format) for column in columns],
        [[text(row, column) for column in columns] for row in rows],
        [column.number for column in columns],
    )


def _width(rows: Sequence[R], columns: Sequence[Column[R]], format: str) -> int:  # noqa: A002 - as above
    return layout.widest(layout.lay_out(*texts(rows, columns, format), format))


def _without(columns: list[Column[R]], names: Sequence[str]) -> tuple[list[Column[R]], list[str]]:
    """Leave out the columns of these names, and name those that there were."""
    kept = [column for column in columns if column.name not in names]
    there = {column.name for column in columns}
    return kept, [name for name in names if name in there]
