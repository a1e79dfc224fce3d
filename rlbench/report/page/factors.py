"""What single factors of a grid do, as ``rlbench effects`` has it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlbench.errors import RlbenchError
from rlbench.report.compare.family import BETTER, WORSE
from rlbench.report.effects.contrasts import effects
from rlbench.report.effects.data import contrast_name, effect_name
from rlbench.report.effects.prose import answers, legend, title
from rlbench.report.effects.remarks import remarks
from rlbench.report.page.table import MOST_ROWS, Entry, Heading, Table, by_name, by_number
from rlbench.report.page.verdict_table import verdict_field
from rlbench.report.text import layout
from rlbench.report.text.figures import half_width, p_text, percents, signed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.cells.cell import Cell
    from rlbench.report.compare.family import Family
    from rlbench.report.effects.contrasts import Contrast, TaskEffects

MOST_CELLS = 60  # contrasts of larger grids are too many to read


@dataclass(frozen=True, kw_only=True)
class OfTask:
    """The effects in one task.

    Attributes:
        title: Its factors, what they act on, and the seeds.
        answers: One sentence an effect.
        contrasts: All contrasts.
        means: Marginal means of all factors.
    """

    title: str
    answers: tuple[str, ...]
    contrasts: Table
    means: Table


@dataclass(frozen=True, kw_only=True)
class Factors:
    """The effects in all tasks.

    Attributes:
        of_tasks: One a task in which cells differ in two factors or more.
        legend: How to read the tables.
        remarks: What to know besides.
        reason: Why there is none; empty if there are.
    """

    of_tasks: tuple[OfTask, ...] = ()
    legend: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    reason: str = ""


def collect(cells: Sequence[Cell], *, level: float, margin: float | None) -> Factors:
    """Compute the effects of two factors or more; of one, the verdicts say all there is.

    Args:
        cells: The cells, in any order.
        level: Confidence level.
        margin: Effects below it count as none; None if none is declared.
    """
    if len(cells) > MOST_CELLS:
        return Factors(
            reason=f"{len(cells):,} cells have too many contrasts to read; choose some with -e, "
            "-l, -k, -t and --set, or see rlbench effects"
        )
    try:
        found = effects(cells, level=level, margin=margin)
    except RlbenchError as error:
        return Factors(reason=str(error))
    shown = [one for one in found.tasks if len(one.grid.factors) > 1]
    if not shown:
        return Factors(reason="cells differ in one factor only, of which the other tables say all")
    return Factors(
        of_tasks=tuple(_of_task(one, found.family) for one in shown),
        legend=tuple(legend(found, contrasts_only=True)),
        remarks=tuple(remarks(found)),
    )


def _of_task(found: TaskEffects, family: Family) -> OfTask:
    return OfTask(
        title=title(found),
        answers=tuple(answers(found, family)),
        contrasts=_contrasts(found, family),
        means=_means(found, family),
    )


def _contrasts(found: TaskEffects, family: Family) -> Table:
    """Lay out all contrasts; where they are too many, the surest."""
    every = [(effect_name(effect), one) for effect in found.effects for one in effect.contrasts]
    shown = every if len(every) <= MOST_ROWS else sorted(every, key=_by_p)[:MOST_ROWS]
    places = layout.places_by_interval(
        one.judgement.difference.interval for _, one in every if one.judgement.difference
    )
    numbers = [_numbers(one, family, places) for _, one in shown]
    return Table(
        title="Contrasts",
        headings=(
            Heading(text="effect", names_rows=True),
            Heading(text="contrast", names_rows=True),
            Heading(text="diff", number=True, falling=True),
            Heading(text=f"±{percents(family.level)}", number=True, falling=True),
            Heading(text="p", number=True),
            Heading(text="verdict"),
        ),
        rows=tuple(
            (name, contrast, *of_contrast)
            for name, contrast, of_contrast in zip(
                by_name([name for name, _ in shown]),
                by_name([contrast_name(one) for _, one in shown]),
                numbers,
                strict=True,
            )
        ),
        cut=f"These are the surest {MOST_ROWS} of {len(every):,}." if shown is not every else "",
    )


def _by_p(named: tuple[str, Contrast]) -> float:
    p = named[1].judgement.p
    return 2.0 if p is None else p


def _numbers(contrast: Contrast, family: Family, places: int) -> tuple[Entry, ...]:
    judged = contrast.judgement
    verdict = _verdict(contrast)
    if judged.difference is None:
        return Entry(text=""), Entry(text=""), Entry(text=""), verdict
    interval = judged.difference.interval
    return (
        by_number(signed(interval.mid, places), interval.mid),
        by_number(half_width(interval, places), interval.half_width),
        by_number("" if judged.p is None else p_text(judged.p, family.alpha), judged.p),
        verdict,
    )


def _verdict(contrast: Contrast) -> Entry:
    """Write a verdict with its word; of an interaction nothing is better or worse, but smaller."""
    judged = contrast.judgement
    entry = verdict_field(judged)
    if len(contrast.levels) == 1 or judged.verdict not in (BETTER, WORSE) or not judged.difference:
        return entry
    size = "larger" if judged.difference.interval.mid > 0 else "smaller"
    return replace(entry, text=f"{judged.verdict} {size}", tone="")


def _means(found: TaskEffects, family: Family) -> Table:
    """Lay out the means of the levels of each factor alone."""
    percent = percents(family.level)
    means = [mean for mean in found.means if len(mean.factors) == 1][:MOST_ROWS]
    places = layout.places_by_interval(mean.interval for mean in means)
    missing = Entry(text=layout.MISSING)
    return Table(
        title="Means of levels",
        headings=(
            Heading(text="factor", names_rows=True),
            Heading(text="level", names_rows=True),
            Heading(text="mean", number=True, falling=True),
            Heading(text=f"±{percent}", number=True, falling=True),
        ),
        rows=tuple(
            zip(
                by_name([mean.factors[0] for mean in means]),
                by_name([mean.levels[0] for mean in means]),
                [
                    by_number(layout.fixed(mean.interval.mid, places), mean.interval.mid)
                    if mean.interval
                    else missing
                    for mean in means
                ],
                [
                    by_number(half_width(mean.interval, places), mean.interval.half_width)
                    if mean.interval
                    else missing
                    for mean in means
                ],
                strict=True,
            )
        ),
        below=(
            "mean: over the levels of all other factors with equal weights, within each seed; then "
            f"over seeds, ±{percent}: half of its {percent} t interval.",
        ),
    )
