"""Each algorithm over all tasks, as ``rlbench table --suite`` shows it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlbench.errors import UsageError
from rlbench.report.cells.baseline import but_for_task, spell_cell
from rlbench.report.cells.cell import labels_of
from rlbench.report.cells.pairing import task_of
from rlbench.report.page.table import MOST_ROWS, Entry, Heading, Table, by_name, by_number
from rlbench.report.page.verdict_table import verdict_field
from rlbench.report.suite.against import against
from rlbench.report.suite.against_table import against_remarks, answer, caption
from rlbench.report.suite.suite import suite
from rlbench.report.suite.table import suite_table
from rlbench.report.tables.columns import interval_text
from rlbench.report.text import layout
from rlbench.report.text.figures import half_width, p_text, percents, signed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlbench.grid.normalisation import Scale
    from rlbench.report.cells.cell import Cell
    from rlbench.report.compare.comparison import Comparison
    from rlbench.report.suite.against import SuiteComparison, SuiteRow
    from rlbench.report.suite.suite import Algorithm, Suite
    from rlbench.stats import Interval

    _Column = tuple[Heading, Callable[[Algorithm], Entry]]

_PLACES_OF_RANKS = 2
_NEW_TASKS = 3  # tasks from which on an interval speaks of others


@dataclass(frozen=True, kw_only=True)
class OverTasks:
    """Algorithms over tasks.

    Attributes:
        table: One row an algorithm; None where there is none.
        reason: Why there is none; empty where there is one, and of one task, where nobody asks.
        answer: How they compare with the baseline over all tasks, in a sentence; empty without one.
    """

    table: Table | None = None
    reason: str = ""
    answer: str = ""


def collect(
    ordered: Sequence[Cell],
    scales: Mapping[str, Scale] | None = None,
    comparison: Comparison | None = None,
) -> OverTasks:
    """Aggregate over tasks, where every algorithm was run in several.

    Args:
        ordered: Cells in the order of the tables.
        scales: By task, the scores that count as 0 and as 1; None takes scores as they are.
        comparison: How they compare with a baseline; where it is one algorithm in all tasks, the
            others are compared with it over all of them, too.

    Raises:
        UsageError: There are scales and nothing to be put on them, or they don't fit the tasks.
    """
    reason = _unlike_a_suite(ordered)
    if reason or len(set(map(task_of, ordered))) == 1:
        if scales is not None:
            why = reason or "these results have one task"
            raise UsageError(f"--normalise is for the table over several tasks, and {why}")
        return OverTasks(reason=reason)
    try:
        made = suite(ordered, scales)
    except UsageError as error:
        if scales is not None:
            raise
        return OverTasks(reason=str(error))
    compared = _against(made, comparison)
    return OverTasks(table=_table(made, compared), answer=answer(compared) if compared else "")


def _against(made: Suite, comparison: Comparison | None) -> SuiteComparison | None:
    """Compare with the baseline over all tasks; not where it lacks one."""
    if comparison is None:
        return None
    family = comparison.family
    try:
        return against(made, comparison.baselines, level=family.level, margin=family.margin)
    except UsageError:
        return None


def without(found: OverTasks, said: Sequence[str]) -> OverTasks:
    """Take out of the text below the table what is said elsewhere on the page."""
    if found.table is None:
        return found
    below = tuple(text for text in found.table.below if text not in said)
    return replace(found, table=replace(found.table, below=below))


def _unlike_a_suite(ordered: Sequence[Cell]) -> str:
    """Say what was run in one task only; empty if nothing was, and if there is one task."""
    labels = but_for_task(labels_of(ordered))
    tasks: dict[str, set[str]] = {}
    for cell in ordered:
        tasks.setdefault(spell_cell(cell, labels), set()).add(task_of(cell))
    if len(set().union(*tasks.values())) == 1:
        return ""
    alone = [name for name, found in tasks.items() if len(found) == 1]
    if not alone:
        return ""
    if len(alone) == len(tasks):
        return "nothing was run in more than one task"
    more = f" and {len(alone) - 1:,} more were" if len(alone) > 1 else " was"
    return f"{alone[0]}{more} run in one task only"


def _table(made: Suite, compared: SuiteComparison | None) -> Table:
    shown = made.algorithms[:MOST_ROWS]
    headings = [Heading(text=name, names_rows=True) for name in made.labels]
    fields = [
        by_name([one.columns.get(name, layout.MISSING) for one in shown]) for name in made.labels
    ]
    notes = json.loads(suite_table(made, "json"))["notes"]
    if compared is not None:
        notes = [*caption(compared, ["diff"])[1:], *against_remarks(compared), *notes]
        for title, tell in _verdicts(compared):
            headings.append(title)
            fields.append([tell(row) for row in compared.rows[:MOST_ROWS]])
    for heading, say in _columns(made):
        headings.append(heading)
        fields.append([say(one) for one in shown])
    rest = len(made.algorithms) - len(shown)
    return Table(
        title="Each algorithm over all tasks",
        headings=tuple(headings),
        rows=tuple(zip(*fields, strict=True)),
        below=tuple(dict.fromkeys(notes)),
        cut=f"And {rest:,} more; rlbench table --suite shows all." if rest else "",
    )


def _verdicts(compared: SuiteComparison) -> list[tuple[Heading, Callable[[SuiteRow], Entry]]]:
    """Choose the columns of a comparison."""
    alpha, percent = compared.family.alpha, percents(compared.family.level)
    places = layout.places_by_interval(
        row.difference.interval for row in compared.rows if row.difference
    )

    def p(row: SuiteRow) -> Entry:
        return by_number("" if row.p is None else p_text(row.p, alpha), row.p)

    def difference(row: SuiteRow) -> Entry:
        mid = row.difference.interval.mid if row.difference else None
        return by_number("" if mid is None else signed(mid, places), mid)

    def spread(row: SuiteRow) -> Entry:
        if row.difference is None:
            return Entry(text="")
        interval = row.difference.interval
        return by_number(half_width(interval, places), interval.half_width)

    return [
        (Heading(text="verdict", kept=True), verdict_field),
        (_number("p", falling=False), p),
        (_number("diff"), difference),
        (_number(f"±{percent}", falling=False), spread),
    ]


def _columns(made: Suite) -> list[_Column]:
    """Choose the columns that are no labels; what a narrow screen cuts off weighs least."""
    places = layout.places_by_interval(one.iqm for one in made.algorithms)
    columns = _estimate("IQM", lambda one: one.iqm, places, falling=made.higher)
    if made.has_ranks:
        columns += _estimate("rank", _rank, _PLACES_OF_RANKS, falling=False)
        columns.append((_number("P(best)"), _chance))
    columns += _estimate("mean", lambda one: one.mean, places, falling=made.higher)
    columns += _new_tasks(made, "IQM", lambda one: one.new_iqm, places)
    columns += _new_tasks(made, "mean", lambda one: one.new_mean, places)
    if made.has_gap:
        columns += _estimate("gap", lambda one: one.gap, places, falling=False)
    if any(one.missing for one in made.algorithms):
        columns.append((_number("tasks"), _tasks))
    return [*columns, (_number("n"), _n)]


def _number(name: str, *, falling: bool = True) -> Heading:
    return Heading(text=name, number=True, falling=falling)


def _tasks(one: Algorithm) -> Entry:
    there = len(one.cells.keys() - set(one.missing))
    return by_number(f"{there}/{there + len(one.missing)}", float(there))


def _n(one: Algorithm) -> Entry:
    return by_number(f"{one.ok}/{one.tried}", float(one.ok))


def _estimate(
    name: str, of: Callable[[Algorithm], Interval | None], places: int, *, falling: bool
) -> list[_Column]:
    """Make a column of an estimate and one of its interval."""

    def value(one: Algorithm) -> Entry:
        found = of(one)
        if found is None:
            return Entry(text=layout.MISSING)
        failed = "*" if one.tried > one.ok else ""
        return by_number(layout.fixed(found.mid, places) + failed, found.mid)

    return [(_number(name, falling=falling), value), _interval(f"{name} 95%", of, places)]


def _interval(name: str, of: Callable[[Algorithm], Interval | None], places: int) -> _Column:
    def say(one: Algorithm) -> Entry:
        found = of(one)
        if found is None:
            return Entry(text=layout.MISSING)
        return by_number(interval_text(found, places), found.half_width)

    return _number(name, falling=False), say


def _new_tasks(
    made: Suite, name: str, of: Callable[[Algorithm], Interval | None], places: int
) -> list[_Column]:
    """Make a column of the intervals that speak of new tasks, where there are any."""
    found = [of(one) for one in made.algorithms]
    if len(made.tasks) < _NEW_TASKS or not any(one and one.half_width is not None for one in found):
        return []
    return [_interval(f"{name} 95% new tasks", of, places)]


def _rank(one: Algorithm) -> Interval | None:
    """Give the mean rank; that all resamples agree is no lack of spread."""
    return replace(one.rank.interval, degenerate=False) if one.rank else None


def _chance(one: Algorithm) -> Entry:
    best = one.rank.best if one.rank else None
    if best is None:
        return Entry(text=layout.MISSING)
    text = "<0.01" if 0 < best < 0.01 else ">0.99" if 0.99 < best < 1 else f"{best:.2f}"
    return by_number(text, best)
