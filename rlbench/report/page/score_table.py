"""The table of all cells, as ``rlbench table`` shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.report.page.table import MOST_ROWS, Heading, Table, by_name, by_number, cut
from rlbench.report.tables import columns
from rlbench.report.tables.caption import caption
from rlbench.report.text import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlbench.report.cells.cell import Cell
    from rlbench.report.tables.best import BestSet

# what stands beside the metric: header, and key in ``result.json``
_BESIDE = {
    "start": "score_start",
    "score": "score",
    "KL": "kl",
    "entropy": "entropy",
    "length": "length",
    "s": "wall_s",
}
_STANDINGS = {True: 2.0, None: 1.0, False: 0.0}


def score_table(ordered: Sequence[Cell], labels: Sequence[str], best: BestSet) -> Table:
    """Lay out cells, at most `MOST_ROWS` of them.

    Args:
        ordered: Task by task, the best first; at least one.
        labels: Columns in which they differ.
        best: Where they stand.
    """
    standings = best.standings or [None] * len(ordered)
    rows = [
        columns.Row(cell=cell, standing=standing)
        for cell, standing in zip(ordered, standings, strict=True)
    ]
    marked = bool(best.standings) and not best.reason
    numbers = columns.numbers(rows, "±", marked=marked, iqm=False)
    shown = rows[:MOST_ROWS]
    metric = ordered[0].metric.name
    headings = [Heading(text=name, names_rows=True) for name in labels]
    fields = [by_name([r.cell.columns.get(name, layout.MISSING) for r in shown]) for name in labels]
    for column in numbers:
        key = _sorted_by(column.name, metric)
        headings.append(Heading(text=column.name, number=column.number, falling=True))
        fields.append(
            [
                by_number(
                    column.say(row), key(row), strong=column.bold is not None and column.bold(row)
                )
                for row in shown
            ]
        )
    return Table(
        title=f"The {metric} of each cell",
        headings=tuple(headings),
        rows=tuple(zip(*fields, strict=True)),
        below=tuple(caption(rows, labels, [heading.text for heading in headings], best)),
        cut=cut(len(rows)),
    )


def _sorted_by(name: str, metric: str) -> Callable[[columns.Row], float | None]:
    """Tell what a column is sorted by, in full precision; None comes last."""
    if name == metric:
        return lambda row: row.cell.score.mid if row.cell.score else None
    if name in _BESIDE:
        return lambda row: row.cell.mean(_BESIDE[name])
    if name == "n":
        return lambda row: float(len(row.cell.ok)) if row.cell.tried else None
    if name == "best":
        return lambda row: _STANDINGS[row.standing.among_best] if row.standing else None
    return lambda row: row.cell.score.half_width if row.cell.score else None
