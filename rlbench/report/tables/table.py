"""One row a cell, for a terminal, a pull request or a paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rlbench.errors import UsageError
from rlbench.report.cells.cell import Cell, labels_of
from rlbench.report.cells.pairing import task_of
from rlbench.report.tables import columns as _columns
from rlbench.report.tables.best import BestSet, best_set
from rlbench.report.tables.caption import caption
from rlbench.report.tables.columns import Row, score_text
from rlbench.report.tables.data import FORMATS as DATA_FORMATS
from rlbench.report.tables.data import cell_record, data
from rlbench.report.tables.notes import failure_rates, name_of, notes
from rlbench.report.text import layout
from rlbench.report.text.fitting import Sacrifice, fitting, page
from rlbench.report.text.spelling import natural

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
        format: Any of `layout.FORMATS`, or ``csv``, ``tsv`` or ``json``, in full precision; what
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
    columns, left_out = [*_columns.labels(labels), *numbers], list[str]()
    if format not in DATA_FORMATS and width is not None:
        columns, left_out = fitting(
            rows,
            _columns.labels(labels),
            numbers,
            _sacrifice(labels),
            format=format,
            width=width,
        )
    shown = [column.name for column in columns]
    below = caption(rows, labels, shown, best, sign=sign, bold=bold)
    below += [*failure_rates(ordered, labels), *notes(ordered, labels)]
    if format in DATA_FORMATS:
        return data(rows, labels, best, below, format, iqm=iqm)
    return page(rows, columns, below, left_out, format=format, width=width)


def _sacrifice(labels: Sequence[str]) -> Sacrifice[Row]:
    """Give up columns of less weight, then fold the labels into one column."""
    return Sacrifice(
        names=_EXPENDABLE,
        whole=len(_EXPENDABLE),
        title="cell",
        name=lambda row: name_of(row.cell, labels),
        enough=28,
    )


def remarks(cells: Sequence[Cell]) -> list[str]:
    """List what a reader of the bare rows has to know before believing the numbers."""
    ordered, labels = arranged(cells)
    return [*failure_rates(ordered, labels), *notes(ordered, labels)]


def check_format(name: str) -> None:
    """Raise UsageError, with the nearest name, if there is no such format."""
    known = (*layout.FORMATS, *DATA_FORMATS)
    if name not in known:
        raise UsageError.unknown("format", name, known)


def arranged(cells: Sequence[Cell]) -> tuple[list[Cell], list[str]]:
    """Order cells by task, in each the best first, and name the columns in which they differ.

    Returns:
        The same however the cells came. The task is the first of the columns if it is one.
    """
    canonical = sorted(cells, key=lambda cell: sorted((k, str(v)) for k, v in cell.columns.items()))
    labels = sorted(labels_of(canonical), key=lambda name: name != "task")
    return sorted(ranked(canonical, labels), key=lambda cell: natural(task_of(cell))), labels


def ranked(cells: Sequence[Cell], labels: Sequence[str]) -> list[Cell]:
    """Order cells: best score first, unknown scores last.

    Of equal scores, those without failures come first, then labels in natural order.
    """

    def key(cell: Cell) -> tuple[float, bool, list[list[tuple[int, int, str]]]]:
        best_first = math.inf if cell.score is None else -cell.metric.sign * cell.score.mid
        return (
            best_first,
            bool(cell.failed),
            [natural(cell.columns.get(name, "")) for name in labels],
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
