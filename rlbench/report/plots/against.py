"""Cells against a baseline, for the figures that show pairs: who is compared with whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected
from rlbench.report.cells.baseline import but_for_task, only_pair
from rlbench.report.cells.cell import labels_of
from rlbench.report.compare.comparison import compare, in_order
from rlbench.report.plots.panels import arrange, by_task, spell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlbench.report.cells.cell import Cell
    from rlbench.report.compare.comparison import Comparison, Row
    from rlbench.report.plots.panels import Entry


def baselines(
    cells: Sequence[Cell], given: Mapping[str, Cell] | Cell | None
) -> Mapping[str, Cell] | Cell:
    """Tell what cells are compared with: what was given, or the first of two.

    Args:
        cells: What is compared.
        given: A cell, or one for each task; None leaves it to the cells.

    Raises:
        NothingSelected: There is one cell alone, in each task.
        UsageError: There are more than two and nothing was given; shows how to name one.
    """
    if len(cells) < 2:
        raise NothingSelected("one cell alone: there is nothing to compare it with")
    if given is not None:
        return given
    labels = but_for_task(labels_of(cells))
    if len({spell(cell, labels) for cell in cells}) == 1:
        raise NothingSelected(
            f"the {len(cells)} cells differ in nothing but the task: there is nothing to compare "
            "them with"
        )
    return only_pair(in_order(cells))


def compared(
    cells: Sequence[Cell],
    given: Mapping[str, Cell] | Cell | None,
    *,
    margin: float | None = None,
) -> tuple[Comparison, list[tuple[str, list[tuple[Entry, Row]]]]]:
    """Compare cells with their baselines, in the order of the table.

    Args:
        cells: What is compared.
        given: See `baselines`.
        margin: See `compare`.

    Returns:
        The comparison, and for each task its title and its rows but for the baseline, the best
        first.
    """
    against = baselines(cells, given)
    panels = by_task(arrange(cells))
    made = compare(cells, against, margin=margin)
    of_task = []
    for panel in panels:
        entries = {id(entry.cell): entry for entry in panel.entries}
        rows = [row for row in made.rows if id(row.cell) in entries]
        against_one = [row for row in rows if row.baseline is not None or row.reason]
        of_task.append((panel.title, [(entries[id(row.cell)], row) for row in against_one]))
    return made, of_task


def shown(
    rows: Sequence[tuple[Entry, Row]], has: Callable[[Row], bool], leave: Callable[[str, str], None]
) -> list[tuple[Entry, Row]]:
    """Keep the rows that have what a figure shows; the others are told with their reason."""
    for entry, row in rows:
        if not has(row):
            leave(entry.name, row.reason)
    return [pair for pair in rows if has(pair[1])]
