"""One row a cell, for a terminal, a pull request or a paper."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from rlbench.errors import UsageError
from rlbench.report import columns as _columns
from rlbench.report import layout
from rlbench.report.best import BestSet, best_set
from rlbench.report.caption import caption
from rlbench.report.cell_data import FORMATS as DATA_FORMATS
from rlbench.report.cell_data import cell_record, data
from rlbench.report.cells import Cell, labels_of
from rlbench.report.columns import Column, Row, score_text
from rlbench.report.folding import fold, width_of
from rlbench.report.notes import failure_rates, name_of, notes
from rlbench.report.pairing import task_of
from rlbench.report.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.stats import Interval

__all__ = [
    "DATA_FORMATS",
    "arranged",
    "cell_record",
    "check_format",
    "ranked",
    "remarks",
    "score_text",
    "table",
]

# columns that may be left out, the first one first, where a table is too wide
_EXPENDABLE = ("s", "length", "entropy", "start")
_ENOUGH = 28  # columns for a name that is folded; for fewer, a number is left out


def table(
    cells: Sequence[Cell],
    format: str = "simple",  # noqa: A002 - what everybody calls it, tabulate included
    width: int | None = None,
    *,
    ascii_only: bool = False,
    iqm: bool = False,
) -> str:
    """Show cells, task by task, in each the best first.

    The columns are what differs between the cells (estimator, loss and KL controller if nothing
    does), the seeds that ended well out of those that were tried, the score before training, the
    metric at the end with its 95% interval, whether the row is among the best (see
    `best.best_set`; in bold where the format has bold), KL, entropy, length and seconds; those of
    which no row has a number are left out. Failed seeds count with the task's floor. Order goes by
    the metric in full precision, see `ranked`.

    Args:
        cells: What to show.
        format: Any format of tabulate, or ``csv``, ``tsv`` or ``json``, in full precision; what
            these hold: `cell_data.data`.
        width: The most columns of the terminal; columns of less weight are left out, and named, to
            fit. Where that is not enough, ``simple`` names each row in one column, folded, as the
            notes name it. Nothing is ever cut. None means no limit.
        ascii_only: Write ``+/-`` for a plus-minus sign.
        iqm: Show the interquartile mean too, with its interval, from 5 seeds on.

    Returns:
        The table with its caption and notes, without a newline at the end. ``csv`` and ``tsv`` hold
        the rows only; `remarks` are what a reader of them has to know besides. The order of the
        cells changes nothing.

    Raises:
        UsageError: There is no such format.
    """
    check_format(format)
    ordered, labels = arranged(cells)
    best = best_set(ordered)
    rows = _rows(ordered, best, iqm=iqm)
    bold = layout.has_strong(format)
    sign = "+/-" if ascii_only else "±"
    numbers = _columns.numbers(
        rows, sign, marked=bool(best.standings) and not best.reason and not bold, iqm=iqm
    )
    columns = [*_columns.labels(labels), *numbers]
    left_out: list[str] = []
    if format not in DATA_FORMATS and width is not None:
        columns, left_out = _fitting(rows, labels, numbers, format, width)
    shown = [column.name for column in columns]
    below = caption(rows, labels, shown, best, sign=sign, bold=bold)
    below += [*failure_rates(ordered, labels), *notes(ordered, labels)]
    if format in DATA_FORMATS:
        return data(rows, labels, best, below, format, iqm=iqm)
    if left_out:
        below.append(f"Left out for width: {', '.join(left_out)} (--max-width 0 shows all).")
    prose_width = min(width or layout.PROSE_WIDTH, layout.PROSE_WIDTH)
    return layout.page(
        *_texts(rows, columns, format), below=below, format=format, width=prose_width
    )


def remarks(cells: Sequence[Cell]) -> list[str]:
    """List what a reader of the bare rows has to know before believing the numbers."""
    ordered, labels = arranged(cells)
    return [*failure_rates(ordered, labels), *notes(ordered, labels)]


def check_format(name: str) -> None:
    """Raise UsageError, with the nearest name, if there is no such format."""
    if name in DATA_FORMATS:
        return
    from tabulate import tabulate_formats

    if name not in tabulate_formats:
        raise UsageError.unknown("format", name, [*tabulate_formats, *DATA_FORMATS])


def arranged(cells: Sequence[Cell]) -> tuple[list[Cell], list[str]]:
    """Order cells by task, in each the best first, and name the columns in which they differ.

    Returns:
        The same however the cells came. The task is the first of the columns if it is one.
    """
    canonical = sorted(cells, key=lambda cell: sorted((k, str(v)) for k, v in cell.columns.items()))
    labels = sorted(labels_of(canonical), key=lambda name: name != "task")
    return sorted(ranked(canonical, labels), key=lambda cell: _natural(task_of(cell))), labels


def ranked(cells: Sequence[Cell], labels: Sequence[str]) -> list[Cell]:
    """Order cells: best score first, unknown scores last.

    Of equal scores, those without failures come first, then labels in natural order.
    """

    def key(cell: Cell) -> tuple[float, bool, list[list[tuple[int, int, str]]]]:
        best_first = math.inf if cell.score is None else -cell.metric.sign * cell.score.mid
        return (
            best_first,
            bool(cell.failed),
            [_natural(cell.columns.get(name, "")) for name in labels],
        )

    return sorted(cells, key=key)


def _rows(cells: Sequence[Cell], best: BestSet, *, iqm: bool) -> list[Row]:
    standings = best.standings or [None] * len(cells)
    return [
        Row(cell=cell, standing=standing, iqm=_iqm(cell) if iqm else None)
        for cell, standing in zip(cells, standings, strict=True)
    ]


def _iqm(cell: Cell) -> Interval | None:
    """Compute the interquartile mean of all tried seeds; None where one is unknown, or for few."""
    from rlbench.stats import iqm_interval
    from rlbench.stats.robust import FEWEST

    values = [seed.score for seed in cell.tried if seed.score is not None]
    if cell.score is None or len(values) < FEWEST:
        return None
    return iqm_interval(values)


def _fitting(
    rows: Sequence[Row],
    labels: Sequence[str],
    numbers: list[Column],
    format: str,  # noqa: A002 - as in `table`
    width: int,
) -> tuple[list[Column], list[str]]:
    """Choose the columns that fit, and name those that are left out."""
    columns = [*_columns.labels(labels), *numbers]
    left_out: list[str] = []
    for name in _EXPENDABLE:
        if _width(rows, columns, format) <= width:
            return columns, left_out
        if any(column.name == name for column in columns):
            columns = [column for column in columns if column.name != name]
            left_out.append(name)
    if format == "simple" and _width(rows, columns, format) > width:
        return _with_names_folded(rows, labels, numbers, width)
    return columns, left_out


def _with_names_folded(
    rows: Sequence[Row], labels: Sequence[str], numbers: list[Column], width: int
) -> tuple[list[Column], list[str]]:
    """Put all labels into one column that takes what the numbers leave; name what is left out."""
    longest = max(width_of(printable(name_of(row.cell, labels))) for row in rows)
    left_out: list[str] = []
    for name in ("", *_EXPENDABLE):
        if any(column.name == name for column in numbers):
            numbers = [column for column in numbers if column.name != name]
            left_out.append(name)
        room = width - _width(rows, numbers, "simple") - 2
        if room >= min(longest, _ENOUGH):
            break

    def say(row: Row) -> str:
        return fold(printable(name_of(row.cell, labels)), room)

    return [Column(name="cell", say=say, number=False, folded=True), *numbers], left_out


def _width(rows: Sequence[Row], columns: Sequence[Column], format: str) -> int:  # noqa: A002 - as in `table`
    return layout.widest(layout.lay_out(*_texts(rows, columns, format), format))


def _texts(
    rows: Sequence[Row],
    columns: Sequence[Column],
    format: str,  # noqa: A002 - as in `table`
) -> tuple[list[str], list[list[str]], list[bool]]:
    """Write the header, the texts of all rows, and which columns stand flush right."""

    def text(row: Row, column: Column) -> str:
        if column.folded:
            return column.say(row)
        escaped = layout.escape(column.say(row), format)
        among_best = row.standing is not None and bool(row.standing.among_best)
        return layout.strong(escaped, format) if column.bold and among_best else escaped

    return (
        [layout.escape(column.name, format) for column in columns],
        [[text(row, column) for column in columns] for row in rows],
        [column.number for column in columns],
    )


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Sort key by which run2 comes before run10."""
    parts = re.split(r"([0-9]+)", text)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]
