"""What a page says first: what is better than what, by how much, how sure, and what is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.report.cells.baseline import LISTED, baseline_name, but_for_task, spell_cell
from rlbench.report.cells.cell import labels_of
from rlbench.report.cells.pairing import task_of
from rlbench.report.compare.family import (
    BASELINE,
    BETTER,
    EQUIVALENT,
    NOT_COMPARABLE,
    NOT_TESTABLE,
    UNDECIDED,
    WORSE,
)
from rlbench.report.progress import count
from rlbench.report.text.figures import p_text, percents, signed
from rlbench.report.text.layout import fixed, places_by_interval
from rlbench.report.text.spelling import spell_seeds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlbench.report.cells.cell import Cell
    from rlbench.report.compare.comparison import Comparison, Row
    from rlbench.report.compare.family import Family
    from rlbench.report.compare.tuning import Tuning
    from rlbench.report.tables.best import BestSet

SHOWN = 12  # claims that are written out
# mark, style, and what is said of one cell and of several
WORDS = {
    BETTER: ("better", "better", "is better", "are better"),
    WORSE: ("worse", "worse", "is worse", "are worse"),
    EQUIVALENT: ("equivalent", "equivalent", "is equivalent", "are equivalent"),
    UNDECIDED: ("undecided", "undecided", "is undecided", "are undecided"),
    NOT_TESTABLE: ("not testable", "open", "cannot be tested", "cannot be tested"),
    NOT_COMPARABLE: ("not comparable", "open", "is not comparable", "are not comparable"),
    BASELINE: ("baseline", "", "is the baseline", "are baselines"),
}
_LINKS = {BETTER: " than ", WORSE: " than ", EQUIVALENT: " to "}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What is said of one cell.

    Attributes:
        name: The cell, as ``--baseline`` reads it.
        at: The value that was chosen for it, ``lr 0.001``; empty if none was.
        says: The verdict as a verb: ``is better``.
        because: The numbers behind it, or why there are none; empty if nothing is to be said.
        next_step: What would decide it; empty where it is decided.
        tone: Name of a style.
    """

    name: str
    at: str = ""
    says: str
    because: str
    next_step: str = ""
    tone: str = ""


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The answer of a page.

    Attributes:
        sentence: The answer in a sentence.
        claims: Cell by cell, what is decided first, the largest difference first.
        more: What is not among the claims, in words; empty if nothing.
        notes: How to read it, and what to do where there is no answer.
        try_baselines: Cells that could be named as a baseline, where none was and one is needed.
        more_baselines: Which of them are left out, in words; empty if none.
    """

    sentence: str
    claims: tuple[Claim, ...] = ()
    more: str = ""
    notes: tuple[str, ...] = ()
    try_baselines: tuple[str, ...] = ()
    more_baselines: str = ""


def of_comparison(comparison: Comparison) -> Headline:
    """Say what a comparison found."""
    rows = sorted(
        (row for row in comparison.rows if row.verdict != BASELINE),
        key=lambda row: (list(WORDS).index(row.verdict), -_size(row)),
    )
    places = {
        task: places_by_interval(
            row.difference.interval
            for row in rows
            if row.difference is not None and task_of(row.cell) == task
        )
        for task in comparison.tasks
    }
    claims = tuple(_claim(comparison, row, places[task_of(row.cell)]) for row in rows[:SHOWN])
    rest = len(rows) - len(claims)
    family = comparison.family
    notes = list(_of_tuning(comparison.tuning))
    if family.size > 1:
        notes.append(
            f"Verdicts and p are for all {family.size:,} comparisons together, so that the chance "
            f"of any false one is {family.alpha:g}. Intervals are of one comparison alone."
        )
    if family.effect is None and any(row.verdict == UNDECIDED for row in rows):
        notes.append("With --margin, the page says how many more seeds would decide what is open.")
    if not comparison.named:
        notes.append("Nobody named a baseline; of two cells it is the first in the table.")
    return Headline(
        sentence=_counts(comparison, rows),
        claims=claims,
        more=f"And {count(rest, 'cell')} more, in the table below." if rest else "",
        notes=tuple(notes),
    )


def of_cells(ordered: Sequence[Cell], best: BestSet) -> Headline:
    """Say what can be said without a baseline: which cells no test tells from the best.

    Args:
        ordered: Cells, task by task, the best first.
        best: Where they stand.
    """
    labels = labels_of(ordered)
    tried = [cell for cell in ordered if cell.tried]
    if not any(cell.ok for cell in ordered):
        runs = sum(len(cell.tried) for cell in ordered)
        if not runs:
            return Headline(sentence="No run has come to its end yet.")
        what = "The one run failed" if runs == 1 else f"All {runs:,} runs failed"
        return Headline(sentence=f"{what}: there is nothing to compare.")
    if len(ordered) == 1:
        return Headline(
            sentence=f"One cell, {spell_cell(ordered[0], labels)}: {_level(ordered[0])}.",
            notes=("There is no other cell to compare it with.",),
        )
    but_task = but_for_task(labels) if best.tasks > 1 else labels
    names = list(dict.fromkeys(spell_cell(cell, but_task) for cell in tried))
    return Headline(
        sentence=_without_baseline(tried, best, labels),
        notes=(
            "This page has no baseline, so it does not say what is better than what. The best row "
            "is none: it was chosen after looking at the results. Name the cell that was there "
            "before, and the page compares all others with it, seed by seed.",
        ),
        try_baselines=tuple(names[:LISTED]),
        more_baselines=f"and {len(names) - LISTED:,} more" if len(names) > LISTED else "",
    )


def _size(row: Row) -> float:
    return abs(row.difference.interval.mid) if row.difference else 0.0


def _counts(comparison: Comparison, rows: Sequence[Row]) -> str:
    """Count verdicts in a sentence; of one comparison say what it is."""
    against = baseline_name(comparison.baselines, comparison.labels)
    against += " (each task has its own)" if len(comparison.baselines) > 1 else ""
    found = {mark: sum(row.verdict == mark for row in rows) for mark in WORDS if mark != BASELINE}
    found = {mark: number for mark, number in found.items() if number}
    if len(found) == 1:
        mark = next(iter(found))
        one = len(rows) == 1
        others = "Both others" if len(rows) == 2 else f"All {len(rows):,} others"
        who = spell_cell(rows[0].cell, comparison.labels) if one else others
        return f"{who} {WORDS[mark][2 if one else 3]}{_LINKS.get(mark, ', against ')}{against}."
    better = found.pop(BETTER, 0)
    parts = [f"{better or 'none'} {WORDS[BETTER][3 if better > 1 else 2]} than {against}"]
    parts += [f"{n:,} {WORDS[mark][3 if n > 1 else 2]}" for mark, n in found.items()]
    listed = f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"Of the {len(rows):,} others, {listed}."


def _of_tuning(tuning: Tuning | None) -> Iterator[str]:
    """Say how a value was chosen for each cell, the baseline too."""
    if tuning is not None:
        name, values = tuning.axis.name, ", ".join(tuning.values)
        chosen, compared = map(spell_seeds, (tuning.chosen_on, tuning.compared_on))
        yield (
            f"Each cell has its own {name}, the baseline too: seeds {chosen} chose it among "
            f"{values}, and all verdicts come from the other seeds, {compared}."
        )


def _claim(comparison: Comparison, row: Row, places: int) -> Claim:
    _, tone, verb, _ = WORDS[row.verdict]
    tuning = comparison.tuning
    return Claim(
        name=spell_cell(row.cell, comparison.labels),
        at=f"{tuning.axis.name} {tuning.of(row.cell).value}" if tuning else "",
        says=verb,
        because=_numbers(comparison, row, places),
        next_step=_next_step(comparison.family, row),
        tone=tone,
    )


def _numbers(comparison: Comparison, row: Row, places: int) -> str:
    if row.difference is None or row.p is None:
        return row.reason
    interval = row.difference.interval
    p = p_text(row.p, comparison.family.alpha)
    parts = []
    if interval.low is not None and interval.high is not None:
        low, high = signed(interval.low, places), signed(interval.high, places)
        parts.append(f"{percents(interval.level)} interval {low} to {high}")
    parts += [f"p {p if p.startswith('<') else f'= {p}'}", *_of_runs(row, interval.n)]
    mid = signed(interval.mid, places)
    return f"{comparison.metric.name} {mid} ({', '.join(parts)})"


def _of_runs(row: Row, pairs: int) -> Iterator[str]:
    """Say how many pairs there are, or runs where nothing is paired, and how many failed."""
    if row.independent and row.baseline is not None:
        yield f"{len(row.cell.tried):,} and {len(row.baseline.tried):,} runs, not paired"
        if row.failures:
            yield f"of which {row.failures:,} failed, at the floor"
        return
    yield count(pairs, "pair")
    if row.failures:
        yield f"of which {row.failures:,} with a failed run, at the floor"


def _next_step(family: Family, row: Row) -> str:
    """Say how many more seeds would decide what is open."""
    if row.verdict != UNDECIDED or family.effect is None:
        return ""
    if row.more is None:
        return f"No number of seeds in reach would find a difference of {family.effect:g}."
    if row.more == 0:
        return f"So many seeds would have found a difference of {family.effect:g}, most likely."
    return f"About {count(row.more, 'more seed')} would find a difference of {family.effect:g}."


def _level(cell: Cell) -> str:
    """Say what a cell reached, with its interval."""
    score = cell.score
    if score is None:
        return f"its {cell.metric.name} is unknown"
    places = places_by_interval([score])
    text = f"{cell.metric.name} {fixed(score.mid, places)}"
    if score.half_width is not None and score.low is not None and score.high is not None:
        low, high = fixed(score.low, places), fixed(score.high, places)
        return f"{text} (95% interval {low} to {high}, {count(score.n, 'seed')})"
    return f"{text} ({count(score.n, 'seed')}, no interval)"


def _without_baseline(tried: Sequence[Cell], best: BestSet, labels: Sequence[str]) -> str:
    """Say which row has the best mean, and how many no test tells from it."""
    if best.tasks > 1:
        return f"{len(tried):,} cells over {best.tasks:,} tasks, and no baseline."
    first = next((cell for cell in tried if cell.score is not None), None)
    if first is None:
        return f"{len(tried):,} cells, of which none has a known {tried[0].metric.name}."
    text = f"The best mean is that of {spell_cell(first, labels)}: {_level(first)}."
    if best.reason or not best.standings:
        return text
    among = sum(standing.among_best is True for standing in best.standings)
    worse = sum(standing.among_best is False for standing in best.standings)
    total = len(best.standings)
    if not worse:
        return f"{text} No test shows any of the {total:,} cells to be worse than another."
    be = "is" if worse == 1 else "are"
    rest = total - among - worse
    unknown = f", of {rest:,} that is open" if rest else ""
    return (
        f"{text} Of {total:,} cells, {worse:,} {be} shown to be worse than another; {among:,} may "
        f"be the best{unknown}."
    )
