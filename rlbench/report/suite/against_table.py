"""Algorithms of a suite against one of them, as a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rlbench.report.cells.baseline import spell_cell
from rlbench.report.compare.answer import CLAIMS, WORDS
from rlbench.report.compare.family import (
    BASELINE,
    NOT_COMPARABLE,
    NOT_TESTABLE,
    POWER,
    UNDECIDED,
)
from rlbench.report.compare.legend import UNTUNED, all_foreign
from rlbench.report.compare.tests import of_claims
from rlbench.report.progress import count
from rlbench.report.suite.table import listed, remarks, scale_text
from rlbench.report.tables.caption import common
from rlbench.report.tables.columns import interval_text
from rlbench.report.tables.data import FORMATS as DATA_FORMATS
from rlbench.report.tables.data import bounds, separated
from rlbench.report.tables.table import check_format
from rlbench.report.text import layout
from rlbench.report.text.figures import half_width, p_text, percents, signed
from rlbench.report.text.fitting import Column, Sacrifice, fitting, page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.suite.against import SuiteComparison, SuiteRow
    from rlbench.report.suite.suite import Algorithm

_INTERVALS = 3  # so many columns are left out before names are folded


def against_table(
    made: SuiteComparison,
    format: str = "simple",  # noqa: A002 - as in `tables.table.table`
    width: int | None = None,
    *,
    ascii_only: bool = False,
) -> str:
    """Show algorithms against one of them, the best IQM first.

    Args:
        made: What to show.
        format: Any of `layout.FORMATS`, or ``csv``, ``tsv`` or ``json``, in full precision.
        width: The most columns of the terminal; what is left out to fit is named. None means no
            limit.
        ascii_only: Write ``+/-`` for a plus-minus sign.

    Returns:
        The table with its caption and notes, without a newline at the end. ``csv`` and ``tsv`` hold
        the rows only; `against_remarks` are what a reader of them has to know besides.

    Raises:
        UsageError: There is no such format.
    """
    check_format(format)
    sign = "+/-" if ascii_only else "±"
    labels, numbers = _labels(made), _numbers(made, sign)
    columns, left_out = [*labels, *numbers], list[str]()
    if format not in DATA_FORMATS and width is not None:
        columns, left_out = fitting(
            made.rows, labels, numbers, _sacrifice(made, sign), format=format, width=width
        )
    shown = [column.name for column in columns]
    below = [*caption(made, shown, sign), *against_remarks(made)]
    if format in DATA_FORMATS:
        return _data(made, below, format)
    return page(made.rows, columns, below, left_out, format=format, width=width)


def against_remarks(made: SuiteComparison) -> list[str]:
    """List what has no test and which runs make no pair, and what else to know of the suite."""
    lines = []
    apart = [_name(made, row) for row in made.rows if row.independent]
    if apart:
        whose = "" if made.independent else f"{'; '.join(apart)}: "
        lines.append(
            f"{whose}Seeds were numbered on import, for the file names none: runs of one number "
            "have nothing in common and are not paired."
        )
    reasons: dict[tuple[str, str], list[str]] = {}
    unpaired: dict[int, list[str]] = {}
    for row in made.rows:
        name = _name(made, row)
        if row.reason and not row.algorithm.missing:  # which is said below
            reasons.setdefault((row.verdict, row.reason), []).append(name)
        if row.unpaired:
            unpaired.setdefault(row.unpaired, []).append(name)
    lines += [f"{mark}: {'; '.join(names)}: {why}." for (mark, why), names in reasons.items()]
    lines += [
        f"{'; '.join(names)}: {number} runs of either side make no pair, for their seeds did not "
        "run on both; they are in the IQM, not in diff."
        for number, names in unpaired.items()
    ]
    return [*lines, *remarks(made.suite)]


def _sacrifice(made: SuiteComparison, sign: str) -> Sacrifice[SuiteRow]:
    percent = percents(made.family.level)
    return Sacrifice(
        names=(
            f"wins {percent}",
            f"mean diff {sign}{percent}",
            f"IQM {percent}",
            "mean diff",
            "wins",
            "n",
        ),
        whole=_INTERVALS,
        title="algorithm",
        name=lambda row: _name(made, row),
        enough=20,
    )


def _name(made: SuiteComparison, row: SuiteRow) -> str:
    return _spelled(made, row.algorithm)


def _spelled(made: SuiteComparison, one: Algorithm) -> str:
    """Name an algorithm as --baseline reads it."""
    return spell_cell(next(iter(one.cells.values())), made.suite.labels)


def _labels(made: SuiteComparison) -> list[Column[SuiteRow]]:
    def label(name: str) -> Column[SuiteRow]:
        return Column(
            name=name,
            say=lambda row: row.algorithm.columns.get(name, layout.MISSING),
            number=False,
        )

    return [label(name) for name in made.suite.labels]


def _numbers(made: SuiteComparison, sign: str) -> list[Column[SuiteRow]]:
    """Choose the columns that are no labels."""
    percent, alpha = percents(made.family.level), made.family.alpha
    places = layout.places_by_interval(row.algorithm.iqm for row in made.rows)
    finer = layout.places_by_interval(
        row.difference.interval for row in made.rows if row.difference
    )
    coarse = layout.places_by_interval(row.of_means for row in made.rows)

    def iqm(row: SuiteRow) -> str:
        one = row.algorithm
        if one.iqm is None:
            return layout.MISSING
        return layout.fixed(one.iqm.mid, places) + ("*" if one.tried > one.ok else "")

    def its_interval(row: SuiteRow) -> str:
        found = row.algorithm.iqm
        return layout.MISSING if found is None else interval_text(found, places)

    def wins(row: SuiteRow) -> str:
        return f"{row.difference.improvement.mid:.2f}" if row.difference else ""

    return [
        Column(name="n", say=lambda row: str(row.n) if row.n else layout.MISSING),
        Column(name="IQM", say=iqm),
        Column(name=f"IQM {percent}", say=its_interval),
        Column(
            name="diff",
            say=lambda row: signed(row.difference.interval.mid, finer) if row.difference else "",
        ),
        Column(
            name=f"{sign}{percent}",
            say=lambda row: half_width(row.difference.interval, finer) if row.difference else "",
        ),
        Column(name="p", say=lambda row: "" if row.p is None else p_text(row.p, alpha)),
        Column(name="wins", say=wins),
        Column(name=f"wins {percent}", say=_wins_interval),
        Column(
            name="mean diff",
            say=lambda row: signed(row.of_means.mid, coarse) if row.of_means else "",
        ),
        Column(
            name=f"mean diff {sign}{percent}",
            say=lambda row: half_width(row.of_means, coarse) if row.of_means else "",
        ),
        Column(name="verdict", say=_mark, number=False),
    ]


def _wins_interval(row: SuiteRow) -> str:
    found = row.difference.improvement if row.difference else None
    if found is None:
        return ""
    if found.degenerate or found.low is None or found.high is None:
        return layout.MISSING
    return f"{found.low:.2f}-{found.high:.2f}"


def _mark(row: SuiteRow) -> str:
    """The verdict; an open one with the seeds that would show a difference of interest."""
    return row.verdict if row.more is None else f"{row.verdict} {row.more:,} more"


def caption(made: SuiteComparison, shown: Sequence[str], sign: str = "±") -> list[str]:
    """Say what was found, what the numbers are and how they were tested.

    Args:
        made: The comparison.
        shown: The columns of the table; no other is explained.
        sign: How a plus-minus sign is written.
    """
    cells = [cell for row in made.rows for cell in row.algorithm.cells.values()]
    return [
        answer(made),
        _of_numbers(made, shown, sign),
        _of_p(made),
        _of_verdicts(made, sign),
        *([] if all_foreign(cells) else [UNTUNED]),
        f"Tasks: {listed(made.suite.tasks)}.",
        *common(cells),
    ]


def answer(made: SuiteComparison) -> str:
    """Answer what was asked: of one comparison with its numbers, of several by counting them."""
    rows = [row for row in made.rows if row.verdict != BASELINE]
    unasked = "" if made.named else " (the first of two; --baseline names the other)"
    base = _spelled(made, made.baseline) + unasked
    tasks = f"over {count(len(made.suite.tasks), 'task')}"
    difference = rows[0].difference if len(rows) == 1 else None
    if difference is None or rows[0].p is None:
        names = {mark: [_name(made, row) for row in rows if row.verdict == mark] for mark in WORDS}
        found = ", ".join(
            f"{len(some)} {WORDS[mark]} ({listed(some)})" for mark, some in names.items() if some
        )
        return f"Against {base}, {tasks}, by the IQM: {found}."
    (row,), interval = rows, difference.interval
    places = layout.places_by_interval([interval])
    low, mid, high = (
        signed(value, places)
        for value in (interval.low, interval.mid, interval.high)
        if value is not None
    )
    p = p_text(rows[0].p, made.family.alpha)
    runs = "runs of a side" if made.independent else "pairs"
    text = (
        f"{_name(made, row)} {CLAIMS[row.verdict]} {base} {tasks}: IQM {mid} "
        f"({percents(interval.level)} interval {low} to {high}; "
        f"p {p if p.startswith('<') else f'= {p}'}; {row.n} {runs})"
    )
    if row.more is not None:
        many = f"about {row.more:,} more seeds a task" if row.more else "so many seeds"
        text += f"; {many} would show a difference of {made.family.effect:g}"
    return f"{text}."


def _of_numbers(made: SuiteComparison, shown: Sequence[str], sign: str) -> str:
    suite, percent = made.suite, percents(made.family.level)
    sides = "runs, of the side that has fewer" if made.independent else "pairs"
    sentences = [] if "n" not in shown else [f"n: {sides}, over all tasks."]
    if "IQM" in shown:
        sentences.append(
            f"IQM: mean of the middle half of all runs over {count(len(suite.tasks), 'task')}; "
            f"{suite.metric} {scale_text(suite)}."
        )
    way = "positive" if suite.higher else "negative"
    of_runs = "over all runs" if made.independent else "over the pairs"
    sentences.append(
        f"diff: of both IQMs {of_runs}, row less baseline, {way} is better, {sign} half of its "
        f"{percent} interval (t, with the error of a stratified bootstrap), of one comparison "
        "alone; it speaks of new seeds on the same tasks."
    )
    if "wins" in shown:
        games = "all pairs of a run from each" if made.independent else "pairs"
        sentences.append(
            f"wins: share of {games} in which the row does better, ties one half, mean over tasks."
        )
    if any(one.tried > one.ok for one in suite.algorithms):
        sentences.append(
            "Failed runs are in all of it at the floor, also in p: they can hide much."
        )
    if "mean diff" in shown:
        sentences.append("mean diff: of the means over runs, then tasks; in no test.")
    return " ".join(sentences)


def _of_p(made: SuiteComparison) -> str:
    size = made.family.size
    if not size:
        return "p: no comparison can be tested."
    holm = f", adjusted by Holm over the {size:,} comparisons with the baseline" if size > 1 else ""
    return f"p: two-sided, of diff over its error with Satterthwaite's degrees of freedom{holm}."


def _of_verdicts(made: SuiteComparison, sign: str) -> str:
    family, found = made.family, {row.verdict for row in made.rows}
    parts = of_claims(family, "diff", sign)
    if UNDECIDED in found and any(row.more is not None for row in made.rows):
        parts.append(
            f"{UNDECIDED} undecided, with about how many more seeds a task would find a difference "
            f"of {family.effect:g} (power {100 * POWER:g}%)"
        )
    elif UNDECIDED in found:
        parts.append(f"{UNDECIDED} undecided")
    if NOT_TESTABLE in found:
        parts.append(f"{NOT_TESTABLE} not testable")
    if NOT_COMPARABLE in found:
        parts.append(f"{NOT_COMPARABLE} not comparable")
    return f"{'; '.join(parts)}."


def _data(made: SuiteComparison, below: Sequence[str], format: str) -> str:  # noqa: A002 - as above
    records = [_record(made, row) for row in made.rows]
    if format != "json":
        return separated(records, made.suite.labels, format)
    family = made.family
    document = {
        "baseline": _spelled(made, made.baseline),
        "metric": made.suite.metric,
        "statistic": "iqm",
        "tasks": list(made.suite.tasks),
        "scaled": made.suite.scaled or None,
        "higher_is_better": made.suite.higher,
        "level": family.level,
        "margin": family.margin,
        "planned_for": family.effect,
        "comparisons": family.size,
        "correction": "holm" if family.size else None,
        "independent": made.independent,
        "rows": records,
        "notes": list(below),
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)


def _record(made: SuiteComparison, row: SuiteRow) -> dict[str, Any]:
    one, difference, simultaneous = row.algorithm, row.difference, row.simultaneous
    simultaneous_bounds = bounds("simultaneous", simultaneous)
    return {
        **{name: one.columns.get(name) for name in made.suite.labels},
        "ok": one.ok,
        "tried": one.tried,
        "pairs": row.n,
        "unpaired_runs": row.unpaired,
        **bounds("iqm", one.iqm),
        **bounds("difference", difference.interval if difference else None),
        "simultaneous_low": simultaneous_bounds["simultaneous_low"],
        "simultaneous_high": simultaneous_bounds["simultaneous_high"],
        "p": difference.p if difference else None,
        "p_adjusted": row.p,
        **bounds("improvement", difference.improvement if difference else None),
        **bounds("mean_difference", row.of_means),
        "verdict": row.verdict,
        "more_seeds": row.more,
        "reason": row.reason or None,
    }
