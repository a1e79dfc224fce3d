"""A comparison in a sentence: who is better, by how much, how sure, and what if that is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.report.cells.baseline import baseline_name
from rlbench.report.compare.family import (
    BASELINE,
    BETTER,
    EQUIVALENT,
    NOT_COMPARABLE,
    NOT_TESTABLE,
    UNDECIDED,
    WORSE,
)
from rlbench.report.tables.notes import name_of
from rlbench.report.text.figures import p_text, percents, signed
from rlbench.report.text.layout import places_by_interval

if TYPE_CHECKING:
    from rlbench.report.compare.comparison import Comparison, Row

WORDS = {
    BETTER: "better",
    WORSE: "worse",
    EQUIVALENT: "equivalent",
    UNDECIDED: "undecided",
    NOT_TESTABLE: "not testable",
    NOT_COMPARABLE: "not comparable",
}
CLAIMS = {
    BETTER: "is better than",
    WORSE: "is worse than",
    EQUIVALENT: "is equivalent to",
    UNDECIDED: "is not told apart from",
}


def answer(comparison: Comparison) -> str:
    """Answer what was asked: of one comparison with its numbers, of several by counting them.

    Args:
        comparison: What was compared.

    Returns:
        One sentence or two; the numbers are those of the table.
    """
    rows = [row for row in comparison.rows if row.verdict != BASELINE]
    if len(rows) == 1 and rows[0].verdict in CLAIMS:
        return _of_one(comparison, rows[0])
    counts = {mark: sum(row.verdict == mark for row in rows) for mark in WORDS}
    found = ", ".join(f"{count} {WORDS[mark]}" for mark, count in counts.items() if count)
    return f"Against {_against(comparison)}: {found}."


def _of_one(comparison: Comparison, row: Row) -> str:
    interval = row.difference.interval if row.difference else None
    if interval is None or interval.low is None or interval.high is None or row.p is None:
        return ""
    places = places_by_interval([interval])
    low, mid, high = (
        signed(value, places) for value in (interval.low, interval.mid, interval.high)
    )
    p = p_text(row.p, comparison.family.alpha)
    text = (
        f"{name_of(row.cell, comparison.labels)} {CLAIMS[row.verdict]} {_against(comparison)}: "
        f"{comparison.metric.name} {mid} ({percents(interval.level)} interval {low} to {high}; "
        f"p {p if p.startswith('<') else f'= {p}'}; {_sample(row)})"
    )
    if row.more:
        seeds = "seed" if row.more == 1 else "seeds"
        text += (
            f"; about {row.more:,} more {seeds} would show a difference of "
            f"{comparison.family.effect:g}"
        )
    if row.more == 0:
        text += f"; so many seeds would show a difference of {comparison.family.effect:g}"
    return f"{text}."


def _sample(row: Row) -> str:
    """Say what was compared: pairs, or runs of either side."""
    if row.independent and row.baseline is not None:
        return f"{len(row.cell.tried)} runs against {len(row.baseline.tried)}"
    return f"{len(row.seeds)} pairs"


def _against(comparison: Comparison) -> str:
    each = ", in each task its own" if len(comparison.baselines) > 1 else ""
    unasked = "" if comparison.named else " (the first of two; --baseline names the other)"
    return f"{baseline_name(comparison.baselines, comparison.labels)}{each}{unasked}"
