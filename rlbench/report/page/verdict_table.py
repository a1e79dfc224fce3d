"""The table of all cells against their baseline, as ``rlbench compare`` shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.report.cells.metric import SCORE
from rlbench.report.cells.pairing import task_of
from rlbench.report.compare.family import BASELINE, NOT_COMPARABLE, NOT_TESTABLE
from rlbench.report.compare.legend import caption, has_failures
from rlbench.report.page.headline import WORDS
from rlbench.report.page.table import MOST_ROWS, Entry, Heading, Table, by_name, by_number, cut
from rlbench.report.tables import columns
from rlbench.report.text import layout
from rlbench.report.text.figures import half_width, p_text, percents, signed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlbench.report.compare.comparison import Comparison, Row
    from rlbench.report.compare.family import Judgement
    from rlbench.report.suite.against import SuiteRow
    from rlbench.stats import Interval

_MARKLESS = (BASELINE, NOT_TESTABLE, NOT_COMPARABLE)  # the word says it all


def verdict_table(comparison: Comparison) -> Table:
    """Lay out a comparison, at most `MOST_ROWS` rows of it; verdicts have their words."""
    shown = comparison.rows[:MOST_ROWS]
    headings = [Heading(text=name, names_rows=True) for name in comparison.labels]
    fields = [
        by_name([row.cell.columns.get(name, layout.MISSING) for row in shown])
        for name in comparison.labels
    ]
    for heading, say in _columns(comparison):
        headings.append(heading)
        fields.append([say(row) for row in shown])
    _, *paragraphs = caption(comparison, [heading.text for heading in headings])
    return Table(
        title="Each cell against the baseline",
        headings=tuple(headings),
        rows=tuple(zip(*fields, strict=True)),
        below=tuple(paragraphs),
        cut=cut(len(comparison.rows)),
    )


def _columns(comparison: Comparison) -> list[tuple[Heading, Callable[[Row], Entry]]]:
    """Choose the columns that are no labels."""
    percent = f"±{percents(comparison.family.level)}"
    coarse = _places(comparison, lambda row: row.score)
    fine = _places(comparison, lambda row: row.difference.interval if row.difference else None)

    def score(row: Row) -> Entry:
        nothing = row.score is None and bool(row.cell.tried) and not row.cell.failed
        text = columns.score_text(row.cell, coarse[task_of(row.cell)])
        return by_number(layout.MISSING if nothing else text, row.score.mid if row.score else None)

    def spread(row: Row) -> Entry:
        return _spread(row.score, coarse[task_of(row.cell)], layout.MISSING)

    def difference(row: Row) -> Entry:
        if row.difference is None:
            return Entry(text="")
        mid = row.difference.interval.mid
        return by_number(signed(mid, fine[task_of(row.cell)]), mid)

    def its_spread(row: Row) -> Entry:
        interval = row.difference.interval if row.difference else None
        return _spread(interval, fine[task_of(row.cell)], "")

    def p(row: Row) -> Entry:
        return by_number("" if row.p is None else p_text(row.p, comparison.family.alpha), row.p)

    def wins(row: Row) -> Entry:
        share = row.improvement.mid if row.improvement else None
        return by_number("" if share is None else f"{share:.2f}", share)

    # what a page is opened for comes first: on a narrow screen the rest is to be scrolled to
    return [
        (Heading(text="verdict", kept=True), verdict_field),
        (Heading(text="p", number=True), p),
        (_number("diff"), difference),
        (_number(percent), its_spread),
        *_chosen(comparison),
        (_number("n"), _n_of_failures if has_failures(comparison) else _n),
        (_number(comparison.metric.name), score),
        (_number(percent), spread),
        *_beside(comparison),
        (_number("wins"), wins),
    ]


def _chosen(comparison: Comparison) -> list[tuple[Heading, Callable[[Row], Entry]]]:
    """Show the value that was chosen for each cell."""
    tuning = comparison.tuning
    if tuning is None:
        return []
    places = {entry.text: entry for entry in by_name([one.value for one in tuning.choices])}
    heading = Heading(text=tuning.axis.name, number=True)
    return [(heading, lambda row: places[tuning.of(row.cell).value])]


def _number(name: str) -> Heading:
    return Heading(text=name, number=True, falling=True)


def _places(comparison: Comparison, of: Callable[[Row], Interval | None]) -> Mapping[str, int]:
    """Choose the places of numbers, for each task its own."""
    return {
        task: layout.places_by_interval(
            of(row) for row in comparison.rows if task_of(row.cell) == task
        )
        for task in comparison.tasks
    }


def _spread(interval: Interval | None, places: int, missing: str) -> Entry:
    if interval is None:
        return Entry(text=missing)
    return by_number(half_width(interval, places), interval.half_width)


def _paired(row: Row) -> set[int]:
    """Name the seeds of the pairs; of a baseline, its own."""
    tried = {seed.number for seed in row.cell.tried}
    return tried if row.verdict == BASELINE else tried & set(row.seeds)


def _n(row: Row) -> Entry:
    if row.verdict == NOT_COMPARABLE:
        return Entry(text=layout.MISSING)
    pairs = len(_paired(row))
    return by_number(str(pairs), float(pairs))


def _n_of_failures(row: Row) -> Entry:
    """Count the pairs, and in how many of them the row's own seed ended well."""
    if row.verdict == NOT_COMPARABLE:
        return Entry(text=layout.MISSING)
    paired = _paired(row)
    well = sum(seed.number in paired for seed in row.cell.ok)
    return by_number(f"{well}/{len(paired)}", float(well))


def _beside(comparison: Comparison) -> list[tuple[Heading, Callable[[Row], Entry]]]:
    """Show the KL beside a score, and the score beside anything else, where anybody has it."""
    name = "kl" if comparison.metric.key == SCORE.key else "score"
    means = [mean for row in comparison.rows if (mean := row.cell.mean(name)) is not None]
    if not means:
        return []
    digits = layout.places_by_size(means)

    def say(row: Row) -> Entry:
        mean = row.cell.mean(name)
        return by_number(layout.MISSING if mean is None else layout.fixed(mean, digits), mean)

    return [(_number({"kl": "KL"}.get(name, name)), say)]


def verdict_field(judged: Judgement | SuiteRow) -> Entry:
    """Write a verdict with its word; an open one with the seeds that would decide it."""
    word, tone, *_ = WORDS[judged.verdict]
    text = word if judged.verdict in _MARKLESS else f"{judged.verdict} {word}"
    if judged.more is not None:
        text += f", {judged.more:,} more"
    return by_number(text, float(list(WORDS).index(judged.verdict)), tone=tone)
