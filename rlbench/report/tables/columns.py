"""The columns of a table of cells: what each is called and what it says of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.report.cells.cell import NOT_RUN, Cell
from rlbench.report.cells.metric import SCORE
from rlbench.report.cells.pairing import task_of
from rlbench.report.text import layout
from rlbench.report.text.figures import half_width
from rlbench.report.text.fitting import Column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.report.tables.best import Standing
    from rlbench.stats import Interval

AMONG_BEST, OPEN = "yes", "?"

# title, and key in ``result.json``, of what stands beside the score
_BESIDE = {"KL": "kl", "entropy": "entropy", "length": "length", "s": "wall_s"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A cell with what was found out about it.

    Attributes:
        cell: The cell.
        standing: Where it stands beside the best one; None where that was not asked.
        iqm: Its interquartile mean; None where that was not asked, and where there is none.
    """

    cell: Cell
    standing: Standing | None = None
    iqm: Interval | None = None


def labels(names: Sequence[str]) -> list[Column[Row]]:
    """Make the columns that tell rows apart."""

    def label(name: str) -> Column[Row]:
        return Column(
            name=name, say=lambda row: row.cell.columns.get(name, layout.MISSING), number=False
        )

    return [label(name) for name in names]


def numbers(rows: Sequence[Row], sign: str, *, marked: bool, iqm: bool) -> list[Column[Row]]:
    """Make the columns that are no labels; one that is empty in all rows is left out.

    Args:
        rows: The rows.
        sign: How a plus-minus sign is written.
        marked: Whether a column says which rows are among the best.
        iqm: Whether the interquartile mean is shown.
    """
    metric = rows[0].cell.metric if rows else SCORE
    places = _places(rows)

    def mean(row: Row) -> str:
        return score_text(row.cell, places[task_of(row.cell)])

    def spread(row: Row) -> str:
        return _spread(row.cell, places[task_of(row.cell)])

    of_score = metric.key == SCORE.key
    shown = [
        Column(name="n", say=lambda row: f"{len(row.cell.ok)}/{len(row.cell.tried)}"),
        *(_means("start", "score_start", rows, places) if of_score else []),
        Column(name=metric.name, say=mean, bold=_is_best),
        Column(name=f"{sign}95%", say=spread),
        *([Column(name="best", say=_mark, number=False)] if marked else []),
        *(_iqm(places) if iqm else []),
        *([] if of_score else _means("score", "score", rows)),
    ]
    for title, key in _BESIDE.items():
        if key != metric.key:
            shown += _means(title, key, rows)
    return shown


def score_text(cell: Cell, places: int) -> str:
    """The score, with a mark if failures are in it."""
    if not cell.tried:
        return NOT_RUN
    if cell.score is None:
        # what ended well may still have no number of that name
        return "failed" if cell.failed else layout.MISSING
    return layout.fixed(cell.score.mid, places) + ("*" if cell.failed else "")


def _places(rows: Sequence[Row]) -> dict[str, int]:
    """Choose places for the scores of each task: tasks have scales of their own."""
    of_task: dict[str, list[Interval | None]] = {}
    for row in rows:
        of_task.setdefault(task_of(row.cell), []).append(row.cell.score)
    return {task: layout.places_by_interval(scores) for task, scores in of_task.items()}


def _means(
    title: str, key: str, rows: Sequence[Row], places: Mapping[str, int] | None = None
) -> list[Column[Row]]:
    """Make a column of means over the seeds that ended well; none if no row has one."""
    means = [mean for row in rows if (mean := row.cell.mean(key)) is not None]
    if not means:
        return []
    digits = layout.places_by_size(means)

    def say(row: Row) -> str:
        mean = row.cell.mean(key)
        if mean is None:
            return layout.MISSING
        return layout.fixed(mean, places[task_of(row.cell)] if places else digits)

    return [Column(name=title, say=say)]


def _spread(cell: Cell, places: int) -> str:
    """Half the width of the interval, or why there is none."""
    if not cell.tried:
        return layout.MISSING
    if not cell.ok:
        return "failed"
    if cell.score is None:
        return layout.MISSING
    return half_width(cell.score, places)


def _is_best(row: Row) -> bool:
    return row.standing is not None and row.standing.marked


def _mark(row: Row) -> str:
    if row.standing is None or row.standing.among_best is None:
        return OPEN
    if not row.standing.among_best:
        return ""
    return AMONG_BEST if row.standing.marked else OPEN


def _iqm(places: Mapping[str, int]) -> list[Column[Row]]:
    def value(row: Row) -> str:
        if row.iqm is None:
            return layout.MISSING
        star = "*" if row.cell.failed else ""
        return layout.fixed(row.iqm.mid, places[task_of(row.cell)]) + star

    def bounds(row: Row) -> str:
        if row.iqm is None:
            return layout.MISSING
        return interval_text(row.iqm, places[task_of(row.cell)])

    return [Column(name="IQM", say=value), Column(name="IQM 95%", say=bounds)]


def interval_text(interval: Interval, places: int) -> str:
    """Write the bounds of an interval, or why there are none."""
    if interval.degenerate:
        return "all equal"
    if interval.low is None or interval.high is None:
        return "n=1" if interval.n == 1 else layout.MISSING
    return f"[{layout.fixed(interval.low, places)}, {layout.fixed(interval.high, places)}]"
