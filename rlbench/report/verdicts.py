"""Comparisons with a baseline as text: the table, what stands below it, and data for programs."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlbench.report import layout, tables
from rlbench.report.baseline import spell_cell
from rlbench.report.cells import KINDS
from rlbench.report.comparison import (
    BASELINE,
    EQUIVALENT,
    MAX_T_FROM,
    NOT_COMPARABLE,
    NOT_TESTABLE,
    UNDECIDED,
    Comparison,
    Row,
)
from rlbench.report.notes import name_of, notes, shared
from rlbench.report.spelling import spell_seeds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlbench.stats import Interval

# columns that may be left out, the first one first, where a table is too wide
_EXPENDABLE = ("wins±", "wins")


@dataclass(frozen=True)
class _Column:
    """One column: its header, what it says of a row, and a key by which it may be left out."""

    name: str
    say: Callable[[Row], str]
    number: bool = True
    key: str = ""


def comparison_table(
    comparison: Comparison,
    format: str = "simple",  # noqa: A002 - as in `tables.table`
    width: int | None = None,
    *,
    ascii_only: bool = False,
) -> str:
    """Show a comparison, the best cell first.

    Args:
        comparison: What to show.
        format: Any format of tabulate, or ``csv``, ``tsv`` or ``json``, in full precision.
        width: The most columns of the terminal; those of the wins are left out, and named, to fit.
            None means no limit.
        ascii_only: Write ``+/-`` for a plus-minus sign.

    Returns:
        The table with its caption and notes, without a newline at the end. ``csv`` and ``tsv`` hold
        the rows only; `remarks` are what a reader of them has to know besides.

    Raises:
        UsageError: There is no such format.
    """
    tables.check_format(format)
    below = [*_caption(comparison, "+/-" if ascii_only else "±"), *remarks(comparison)]
    if format in tables.DATA_FORMATS:
        return _data(comparison, below, format)
    columns = _columns(comparison, "+/-" if ascii_only else "±")
    body = _body(comparison.rows, columns, format)
    dropped: list[str] = []
    for key in _EXPENDABLE:
        if width is None or layout.widest(body) <= width:
            break
        dropped += [column.name for column in columns if column.key == key]
        columns = [column for column in columns if column.key != key]
        body = _body(comparison.rows, columns, format)
    if dropped:
        below.append(f"Left out for width: {', '.join(dropped)} (--max-width 0 shows all).")
    return f"{body}\n\n{layout.prose(below, format)}"


def remarks(comparison: Comparison) -> list[str]:
    """List what is in no pair or has no test, and what else to know before believing a verdict."""
    return [
        *_pairs_used(comparison),
        *_untested(comparison),
        *notes([row.cell for row in comparison.rows], comparison.labels),
    ]


def _caption(comparison: Comparison, sign: str) -> list[str]:
    """Say what the numbers are, how they were tested and what the rows have in common."""
    same = shared([row.cell for row in comparison.rows])
    common = [f"{kind} {same[kind]}" for kind in KINDS if kind in same]
    return [
        _of_numbers(comparison, sign),
        _of_tests(comparison),
        _of_verdicts(comparison, sign),
        "Equal settings are not equal tuning: a verdict is about these settings. Give a piece its "
        "own learning rate, chosen on other seeds, before you call it worse.",
        *([f"All rows: {', '.join(common)}."] if common else []),
        *([f"Left out: {comparison.left_out}."] if comparison.left_out else []),
    ]


def _of_numbers(comparison: Comparison, sign: str) -> str:
    percent = _percent(comparison.level)
    baseline = spell_cell(comparison.baseline, comparison.labels)
    unasked = "" if comparison.named else " (the first of two; --baseline names the other)"
    return (
        f"Baseline: {baseline}{unasked}. n: pairs, seeds that both have tried (of the baseline: "
        f"its seeds). score: mean over the row's seeds, {sign} the half-width of its {percent} "
        "Student t interval. KL (nats a completion, from the base policy): mean over the seeds "
        "that ended well. diff: mean difference from the baseline over the pairs, positive is "
        f"better, {sign} the half-width of its {percent} paired t interval, which is of one "
        "comparison alone. wins: share of pairs in which the row does better, ties one half, "
        "failures last, with Jeffreys' interval."
    )


def _of_tests(comparison: Comparison) -> str:
    count = comparison.family
    if not count:
        return "p: no comparison can be tested."
    if comparison.joint:
        return (
            f"p: two-sided, max-t with joint sign flips over {_comparisons(count)} with the "
            f"baseline (Westfall and Young; from {MAX_T_FROM} pairs)."
        )
    few = (
        f"; {comparison.fewest} pairs are not testable without assuming near normal differences"
        if (comparison.fewest or 0) < 6
        else ""
    )
    return (
        f"p: two-sided paired t test, adjusted by Holm over {_comparisons(count)} with the "
        f"baseline (the smallest n is below {MAX_T_FROM}{few})."
    )


def _of_verdicts(comparison: Comparison, sign: str) -> str:
    text = f"verdict: + better, - worse (p < {comparison.alpha:g})"
    if comparison.margin is None:
        text += "; nothing is called equivalent without --margin"
    else:
        text += (
            f"; {EQUIVALENT} equivalent: the {_percent(comparison.level)} interval of the "
            f"difference, simultaneous by Bonferroni, lies inside {sign}{comparison.margin:g}"
        )
    text += (
        f"; {UNDECIDED} undecided, with about how many more seeds would find a difference of "
        f"{comparison.effect:g} (power 80%, level by Bonferroni, upper 80% limit of the sd); "
        f"{NOT_TESTABLE} not testable"
    )
    if any(row.verdict == NOT_COMPARABLE for row in comparison.rows):
        text += f"; {NOT_COMPARABLE} not comparable"
    return f"{text}."


def _pairs_used(comparison: Comparison) -> list[str]:
    """Say which seeds are in no pair."""
    lines = []
    theirs = {seed.number for seed in comparison.baseline.tried}
    for row in comparison.rows:
        alone = {seed.number for seed in row.cell.tried} ^ theirs
        if row.verdict != BASELINE and alone and row.seeds:
            name = name_of(row.cell, comparison.labels)
            lines.append(
                f"{name}: {len(row.seeds)} of {len(row.seeds) + len(alone)} seeds make pairs; "
                f"{spell_seeds(alone)} did not run on both sides."
            )
    return lines


def _untested(comparison: Comparison) -> list[str]:
    """Say why there is no test; such comparisons are not in the family."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in comparison.rows:
        if row.reason:
            name = name_of(row.cell, comparison.labels)
            reasons.setdefault((row.verdict, row.reason), []).append(name)
    return [f"{mark}: {'; '.join(names)}: {why}." for (mark, why), names in reasons.items()]


def _columns(comparison: Comparison, sign: str) -> list[_Column]:
    rows, percent = comparison.rows, _percent(comparison.level)
    places = layout.places_by_interval(row.score for row in rows)
    finer = layout.places_by_interval(row.difference.interval for row in rows if row.difference)
    means = [mean for row in rows if (mean := row.cell.mean("kl")) is not None]
    kl_places = layout.places_by_size(means)

    def kl(row: Row) -> str:
        mean = row.cell.mean("kl")
        return layout.MISSING if mean is None else layout.fixed(mean, kl_places)

    def label(name: str) -> _Column:
        return _Column(name, lambda row: row.cell.columns.get(name, layout.MISSING), number=False)

    return [
        *map(label, comparison.labels),
        _Column("n", lambda row: str(_pairs_of(row))),
        _Column("score", lambda row: tables.score_text(row.cell, places)),
        _Column(
            f"{sign}{percent}",
            lambda row: layout.MISSING if not row.score else _half(row.score, places),
        ),
        _Column("KL", kl),
        _Column("diff", lambda row: _difference(row, finer)),
        _Column(
            f"{sign}{percent}",
            lambda row: _half(row.difference.interval, finer) if row.difference else "",
        ),
        _Column("p", lambda row: "" if row.p is None else _p(row.p, comparison.alpha)),
        _Column(
            "wins", lambda row: f"{row.improvement.mid:.2f}" if row.improvement else "", key="wins"
        ),
        _Column(f"wins {percent}", _wins_interval, key="wins±"),
        _Column("verdict", _mark, number=False),
    ]


def _pairs_of(row: Row) -> int:
    return len(row.cell.tried) if row.verdict == BASELINE else len(row.seeds)


def _mark(row: Row) -> str:
    """The verdict; an open one with the seeds that would decide it."""
    return row.verdict if row.more is None else f"{row.verdict} +{row.more:,}"


def _difference(row: Row, places: int) -> str:
    if row.difference is None:
        return ""
    text = layout.fixed(row.difference.interval.mid, places)
    return text if text.startswith("-") or float(text) == 0 else f"+{text}"


def _half(interval: Interval, places: int) -> str:
    """Half the width, or why there is none."""
    if interval.n == 1:
        return "n=1"
    half = interval.half_width
    return "all equal" if half is None else layout.fixed(half, places)


def _wins_interval(row: Row) -> str:
    wins = row.improvement
    if wins is None:
        return ""
    if wins.degenerate or wins.low is None or wins.high is None:
        return layout.MISSING
    return f"{wins.low:.2f}-{wins.high:.2f}"


def _p(p: float, alpha: float) -> str:
    """A p-value in three places, or so many that rounding does not carry it across alpha."""
    if p < 0.001 < alpha:
        return "<0.001"
    places = 3
    while places < 12 and (round(p, places) < alpha) != (p < alpha):
        places += 1
    return f"{p:.{places}f}"


def _percent(level: float) -> str:
    return f"{100 * level:g}%"


def _comparisons(count: int) -> str:
    return "the one comparison" if count == 1 else f"the {count:,} comparisons"


def _body(rows: Sequence[Row], columns: Sequence[_Column], format: str) -> str:  # noqa: A002 - as in `tables.table`
    header = [layout.escape(column.name, format) for column in columns]
    texts = [[layout.escape(column.say(row), format) for column in columns] for row in rows]
    return layout.lay_out(header, texts, [column.number for column in columns], format)


def _data(comparison: Comparison, below: Sequence[str], format: str) -> str:  # noqa: A002 - as above
    """Write rows for programs: every digit, nothing marked; gaps are empty or null."""
    records = [_record(comparison, row) for row in comparison.rows]
    if format == "json":
        document = {
            "baseline": spell_cell(comparison.baseline, comparison.labels),
            "level": comparison.level,
            "margin": comparison.margin,
            "comparisons": comparison.family,
            "correction": _correction(comparison),
            "rows": records,
            "shared": shared([row.cell for row in comparison.rows]),
            "notes": below,
        }
        return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    buffer = io.StringIO()
    delimiter = "," if format == "csv" else "\t"
    writer = csv.DictWriter(buffer, list(records[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow(
            {k: " ".join(map(str, v)) if isinstance(v, list) else v for k, v in record.items()}
        )
    return buffer.getvalue().removesuffix("\n")


def _correction(comparison: Comparison) -> str | None:
    if not comparison.family:
        return None
    return "max_t" if comparison.joint else "holm"


def _record(comparison: Comparison, row: Row) -> dict[str, Any]:
    """One row as plain data."""
    difference, simultaneous = row.difference, row.simultaneous
    return {
        **tables.cell_record(row.cell, comparison.labels),
        **_bounds("score", row.score),
        "pairs": len(row.seeds),
        "paired_seeds": list(row.seeds),
        **_bounds("difference", difference.interval if difference else None),
        "simultaneous_low": simultaneous.low if simultaneous else None,
        "simultaneous_high": simultaneous.high if simultaneous else None,
        "sd": difference.sd if difference else None,
        "effect": difference.effect if difference else None,
        "p_paired_t": difference.p if difference else None,
        "p_adjusted": row.p,
        "correction": None if row.p is None else _correction(comparison),
        **_bounds("improvement", row.improvement),
        "verdict": row.verdict,
        "more_seeds": row.more,
        "reason": row.reason or None,
    }


def _bounds(name: str, interval: Interval | None) -> dict[str, float | None]:
    """An estimate with its bounds; a degenerate interval has none."""
    certain = interval is not None and interval.half_width is not None
    return {
        name: interval.mid if interval else None,
        f"{name}_low": interval.low if interval and certain else None,
        f"{name}_high": interval.high if interval and certain else None,
    }
