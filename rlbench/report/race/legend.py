"""What stands below the table of a race: what it decided, by what rule, and what to beware of."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rlbench.grid.axes import parse_seeds
from rlbench.grid.race import BETTER, EQUIVALENT, UNDECIDED, WORSE
from rlbench.report.cells.baseline import baseline_name
from rlbench.report.cells.cell import Cell, cells
from rlbench.report.progress import count
from rlbench.report.race.course import seen_text
from rlbench.report.tables.caption import common
from rlbench.report.text.figures import percents
from rlbench.report.text.spelling import spell_seeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.grid.race import RacePlan, Standing
    from rlbench.grid.race_loop import Raced
    from rlbench.grid.store import Record
    from rlbench.report.race.course import Course

VERDICTS = (BETTER, WORSE, EQUIVALENT, UNDECIDED)


def caption(made: Course, raced: Raced, shown: Sequence[str], sign: str = "±") -> list[str]:
    """Say what was found, what it took, and by what rule.

    Args:
        made: The race.
        raced: How it stands.
        shown: Columns of the table; no other is explained.
        sign: How a plus-minus sign is written.

    Returns:
        Paragraphs.
    """
    total = len(raced.plan.cells) * len(raced.plan.seeds)
    used = sum(raced.used.values())
    cost = f"It took {used:,} runs of the {total:,} of the whole grid"
    if raced.complete > used:
        cost += f" ({raced.complete - used:,} more are there and count for no look)"
    return [
        f"{_answer(made, raced)} {cost}.",
        _of_numbers(made, raced.plan, shown),
        _of_the_rule(raced.plan, sign),
        "rlbench compare does not hold for these seeds: what they showed decided how many there "
        "are.",
        *common(list(made.cells.values())),
    ]


def remarks(made: Course, raced: Raced, *, seen: int = 0, budget: int | None = None) -> list[str]:
    """List what to know before believing a verdict, and how an open one goes on."""
    return [
        *_how_it_goes_on(made, raced, budget),
        *_untested(made, raced),
        *_failed(made, raced),
        *(f"{text[0].upper()}{text[1:]}." for text in made.left_out),
        *([f"Beware: {seen_text(seen)}"] if seen else []),
    ]


def pair_name(made: Course, row: Standing) -> str:
    """Name a comparison: ``rloo+clip - group+clip``."""
    names = made.plan.names
    return f"{names[row.pair.cell]} - {names[row.pair.other]}"


def percent_of(plan: RacePlan) -> str:
    """Write the level at which all intervals of a race hold together."""
    return percents(round(1 - plan.alpha, 12))


def cell_of(records: Sequence[Record]) -> Cell | None:
    """Make a cell of runs that differ in the seed only; None where there is none."""
    found = cells(records)
    return found[0] if len(found) == 1 else None


def _answer(made: Course, raced: Raced) -> str:
    found = [row.verdict for row in raced.standings]
    said = ", ".join(f"{n} {verdict}" for verdict in VERDICTS if (n := found.count(verdict)))
    if not made.baselines:
        return f"Of {count(len(found), 'pair')}: {said}."
    return f"Against {baseline_name(made.baselines, made.labels)}: {said}."


def _of_numbers(made: Course, plan: RacePlan, shown: Sequence[str]) -> str:
    rows = "row less baseline" if made.baselines else "first less second"
    way = "" if any(pair.sign < 0 for pair in plan.pairs) else ", positive is better"
    over = "at all looks" if len(plan.pairs) == 1 else "for all comparisons at all looks"
    parts = ["n: pairs of seeds at the look that decided, or at the last one."]
    if "failed" in shown:
        parts.append(
            "failed: pairs with a failed run; it scores the task's floor. Better is tested without "
            "failures of the other side, worse without own ones: by their size they would hide it."
        )
    if "score" in shown:
        parts.append("score: the row's mean over its pairs.")
    parts += [
        f"diff: mean difference, {rows}{way}; where a race stops early it tends to be too large.",
        f"{percent_of(plan)} interval: right {over} together, also where it stops early.",
    ]
    return " ".join(parts)


def _of_the_rule(plan: RacePlan, sign: str) -> str:
    m = len(plan.pairs)
    if plan.margin is None:
        equivalent = "; nothing is called equivalent without --margin"
    else:
        equivalent = f", equivalent where it lies inside {sign}{plan.margin:g}"
    shared = f"; Bonferroni over {m} comparisons" if m > 1 else ""
    if plan.looks is not None:
        level = percents(round(1 - plan.nominal, 4))
        rule = (
            f"{plan.looks} looks are planned, one after every {plan.stops.step} seeds; each takes "
            f"the paired t interval at {level} (Pocock's rule, exact for t{shared})"
        )
    else:
        rule = (
            "It looks after every seed, by a confidence sequence that excludes 0 where the e-value "
            f"exceeds {m / plan.alpha:g} (Gaussian mixture{shared})"
        )
    return (
        f"verdict: better or worse where the interval excludes 0{equivalent}; the first look that "
        f"decides counts. {rule}. Chance of any wrong claim in the whole race: at most "
        f"{plan.alpha:g} for differences that are near normal; failures so rare that none has "
        "shown are in no interval."
    )


def _how_it_goes_on(made: Course, raced: Raced, budget: int | None) -> list[str]:
    """Say why something is undecided, and what would decide it."""
    still = [row for row in raced.standings if not row.decided]
    if not still:
        return []
    runs = count(raced.missing, "more run")
    if raced.stopped == "interrupted":
        return [f"Interrupted: the next look takes {runs}; the same command goes on."]
    if raced.stopped == "budget":
        return [
            f"Stopped by the budget of {budget or 0:,} runs: the next look takes {runs}. The "
            "same command with a larger --budget goes on, and the error rate holds."
        ]
    if raced.stopped == "failures":
        return [
            f"Stopped by failures: {raced.ok:,} of {raced.complete:,} runs ended well. The next "
            f"look takes {runs}; --retry repeats what failed."
        ]
    if raced.stopped:
        return [
            f"Not over: {count(raced.missing, 'run')} of the next look came to no end; the same "
            "command goes on."
        ]
    n = len(raced.plan.seeds)
    if raced.plan.looks is None:
        rest = "with more of them behind these the same command goes on, and the error rate holds"
    else:
        fresh = max(raced.plan.seeds) + 1
        rest = f"this plan has no more looks; another race needs seeds from {fresh} on"
    return [f"Undecided after all {n} seeds: {rest}.", *_seeds_needed(made, raced)]


def _seeds_needed(made: Course, raced: Raced) -> list[str]:
    """Say how many seeds would show a difference that matters, where somebody said what does."""
    from rlbench.stats import pairs_needed

    plan, said = raced.plan, []
    for row in raced.standings:
        if row.decided or row.sd is None or plan.margin is None:
            continue
        alpha = plan.alpha / len(plan.pairs)
        with suppress(ValueError):  # more than a billion
            needed = pairs_needed(plan.margin, row.sd, alpha=alpha, pilot_n=row.n)
            said.append(f"{needed:,} for {pair_name(made, row)}")
    if not said:
        return []
    return [
        f"Fresh seeds that would show a difference of {plan.margin:g} (power 80%, one look): about "
        f"{', '.join(said)}."
    ]


def _untested(made: Course, raced: Raced) -> list[str]:
    untested = [row for row in raced.standings if row.reason]
    return [f"{pair_name(made, row)}: no test, {row.reason}." for row in untested]


def _failed(made: Course, raced: Raced) -> list[str]:
    """Say what failed among the seeds that counted, once for cells that failed alike."""
    from rlbench.stats import failure_interval

    alike: dict[tuple[int, str, str], list[str]] = {}
    for key, used in raced.used.items():
        cell = cell_of(raced.records[key][:used])
        if cell and cell.failed:
            seeds = spell_seeds(seed.number for seed in cell.failed)
            why = cell.failed[0].error() or cell.failed[0].status
            alike.setdefault((len(cell.tried), seeds, why), []).append(made.plan.names[key])
    lines = []
    for (tried, seeds, why), names in alike.items():
        failed = len(parse_seeds(seeds))
        rate = failure_interval(failed, tried)
        lines.append(
            f"{', '.join(names)}: {failed} of {tried} failed (seeds {seeds}; rate {rate.mid:.2f}, "
            f"Jeffreys' 95% interval {rate.low:.2f} to {rate.high:.2f}), the first by {why}"
        )
    return lines
