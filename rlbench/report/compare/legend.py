"""What stands below a comparison: what was computed, by what rule, and what to beware of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.grid.importing import is_foreign
from rlbench.report.cells.metric import SCORE
from rlbench.report.cells.pairing import cautions, task_of
from rlbench.report.compare.answer import answer
from rlbench.report.compare.family import (
    BETTER,
    NOT_COMPARABLE,
    NOT_TESTABLE,
    UNDECIDED,
    WORSE,
)
from rlbench.report.compare.tests import of_claims, of_tests
from rlbench.report.tables.caption import common
from rlbench.report.tables.notes import name_of, notes
from rlbench.report.text.figures import percents
from rlbench.report.text.spelling import spell_seeds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rlbench.report.cells.cell import Cell
    from rlbench.report.compare.comparison import Comparison, Row
    from rlbench.stats import Interval

UNTUNED = (
    "Equal settings are not equal tuning: a verdict is about these settings. Give a piece its own "
    "learning rate, chosen on other seeds (--tune lr), before you call it worse."
)

# what diff is, its interval, what wins are shares of, and their interval
_OF_PAIRS = ("mean over the pairs", "paired t", "pairs", "Jeffreys'")
_OF_RUNS = ("difference of the means", "Welch t", "all pairs of a run from each", "its logit-t")

# where what the interval beside diff suggests is not what the verdict says
_DISAGREEMENTS = {
    "open": "In {rows} the interval of diff excludes 0 and p does not reject: the interval is of "
    "one comparison alone, p is for all of the table",
    "sharp": "In {rows} the interval of diff holds 0 and p rejects: the interval assumes normal "
    "differences, flips of signs do not, nor are all failures in p",
    "inside": "In {rows} marked ? the interval of diff lies inside the margin, "
    "but not the simultaneous one, which counts",
    "small": "In {rows} there is a difference, but one that lies inside the margin",
}


def caption(comparison: Comparison, shown: Collection[str], sign: str = "±") -> list[str]:
    """Say what was found, what the numbers are, how they were tested and what the rows share.

    Args:
        comparison: The table.
        shown: Its columns; no other is explained.
        sign: How a plus-minus sign is written.

    Returns:
        Paragraphs.
    """
    cells = [row.cell for row in comparison.rows]
    return [
        answer(comparison),
        _of_numbers(comparison, shown, sign),
        *_of_tuning(comparison),
        _of_p(comparison),
        _of_verdicts(comparison, sign),
        *([UNTUNED] if not comparison.tuning and not all_foreign(cells) else []),
        *common(cells),
        *([f"Left out: {comparison.left_out}."] if comparison.left_out else []),
    ]


def remarks(comparison: Comparison) -> list[str]:
    """List what is in no pair or has no test, and what else to know before believing a verdict."""
    return [
        *_of_the_baseline(comparison),
        *_of_independence(comparison),
        *_pairs_used(comparison),
        *_untested(comparison),
        *_disagreements(comparison),
        *_hanging_on_failures(comparison),
        *_other_code(comparison),
        *_choices(comparison),
        *notes([row.cell for row in comparison.rows], comparison.labels),
    ]


def _of_numbers(comparison: Comparison, shown: Collection[str], sign: str) -> str:
    percent = percents(comparison.family.level)
    name = comparison.metric.name
    sentences = [
        _of_n(comparison),
        f"{name}: mean over the row's seeds, {sign} half of its {percent} Student t interval"
        f"{_direction(comparison)}.",
    ]
    if "KL" in shown:
        sentences.append(
            "KL (nats a completion, from the base policy): mean over the seeds that ended well."
        )
    elif "score" in shown and name != SCORE.name:
        sentences.append("score: mean over the seeds that ended well.")
    pairs, test, of_wins, in_wins = _OF_PAIRS
    if every_independent(comparison):
        pairs, test, of_wins, in_wins = _OF_RUNS
    sentences.append(
        f"diff: {pairs}, row less baseline, {_better_sign(comparison)} is "
        f"better, {sign} half of its {percent} {test} interval, of one comparison alone."
    )
    if "wins" in shown:
        with_interval = f", with {in_wins} {percent} interval" if f"wins {percent}" in shown else ""
        sentences.append(
            f"wins: share of {of_wins} in which the row does better, ties one half, failures last"
            f"{with_interval}."
        )
    return " ".join(sentences)


def _of_n(comparison: Comparison) -> str:
    n = "n: pairs, seeds tried on both sides (of a baseline: its seeds)"
    if every_independent(comparison):
        n = "n: runs of the row"
    if has_failures(comparison):
        n += ", as those that ended well in the row/all"
    return f"{n}."


def every_independent(comparison: Comparison) -> bool:
    """Whether nothing in the table is paired."""
    return 0 < comparison.family.apart == comparison.family.size


def _of_the_baseline(comparison: Comparison) -> list[str]:
    """Say what a baseline is worth that was picked from the top of the table."""
    if not comparison.named or not comparison.led_by_baselines:
        return []
    return [
        "The baseline has the best mean here. If that is why it was named, p is too small: best in "
        "rlbench table is corrected for all pairs of rows."
    ]


def _of_independence(comparison: Comparison) -> list[str]:
    """Say why runs are not paired."""
    if not comparison.family.apart:
        return []
    where = "" if every_independent(comparison) else f" of {comparison.family.apart} comparisons"
    return [
        f"The seeds{where} were counted on import, so runs of one number have nothing in common: "
        "all runs of a row stand against all of the baseline, and nothing is paired. Where the "
        "results have a column of seeds, it makes pairs."
    ]


def _direction(comparison: Comparison) -> str:
    tasks = _tasks_where_less_is_better(comparison)
    if not tasks:
        return ""
    where = f" in {', '.join(tasks)}" if len(tasks) < len(comparison.tasks) else ""
    return f"; less is better{where}"


def _better_sign(comparison: Comparison) -> str:
    tasks = _tasks_where_less_is_better(comparison)
    if not tasks:
        return "positive"
    if len(tasks) == len(comparison.tasks):
        return "negative"
    return f"positive (in {', '.join(tasks)} negative)"


def _tasks_where_less_is_better(comparison: Comparison) -> list[str]:
    less = (task_of(row.cell) for row in comparison.rows if row.cell.metric.sign < 0)
    return list(dict.fromkeys(less))


def _of_tuning(comparison: Comparison) -> list[str]:
    tuning = comparison.tuning
    if tuning is None:
        return []
    return [
        f"{tuning.axis.name}: chosen for each row among {', '.join(tuning.values)} by its mean on "
        f"seeds {spell_seeds(tuning.chosen_on)}, failures at the task's floor. All other numbers "
        f"and all verdicts come from the other seeds, {spell_seeds(tuning.compared_on)}."
    ]


def _of_p(comparison: Comparison) -> str:
    """Say how p was computed, and what failures weigh in it."""
    text = of_tests(comparison.family, "comparison", "with the baseline")
    if any(row.failures and row.p is not None for row in comparison.rows):
        text += (
            " Where runs failed: a row that leads is tested without the seeds at which the "
            "baseline failed, one that trails without those at which it failed itself. They would "
            "only speak for the claim, but by their size they hide it. Where too few are left, "
            "all count."
        )
    return text


def _of_verdicts(comparison: Comparison, sign: str) -> str:
    family, found = comparison.family, {row.verdict for row in comparison.rows}
    parts = of_claims(family, "the difference", sign)
    if UNDECIDED in found and family.effect is None:
        parts.append(
            f"{UNDECIDED} undecided (with --margin: how many more seeds would find so much)"
        )
    elif UNDECIDED in found and all(row.more is None for row in comparison.rows):
        parts.append(f"{UNDECIDED} undecided")
    elif UNDECIDED in found:
        enough = any(row.more == 0 for row in comparison.rows)
        none_more = "; 0: there are enough for that" if enough else ""
        named = "" if family.margin is not None else "--margin names another; "
        both = "; half of them to choose" if comparison.tuning else ""
        parts.append(
            f"{UNDECIDED} undecided, with about how many more seeds would find a difference of "
            f"{family.effect:g} ({named}power 80%, level by Bonferroni, upper 80% limit of the sd"
            f"{none_more}{both})"
        )
    if NOT_TESTABLE in found:
        parts.append(f"{NOT_TESTABLE} not testable")
    if NOT_COMPARABLE in found:
        parts.append(f"{NOT_COMPARABLE} not comparable")
    return f"{'; '.join(parts)}."


def _pairs_used(comparison: Comparison) -> list[str]:
    """Say which seeds are in no pair, once for all rows of which it is true."""
    rows: dict[tuple[int, tuple[int, ...]], list[Row]] = {}
    for row in comparison.rows:
        if row.baseline is None or row.verdict == NOT_COMPARABLE or row.independent:
            continue
        theirs = {seed.number for seed in row.baseline.tried}
        alone = {seed.number for seed in row.cell.tried} ^ theirs
        if alone and row.seeds:
            rows.setdefault((len(row.seeds), tuple(sorted(alone))), []).append(row)
    return [
        f"{_names(comparison, found)}: {pairs} of {pairs + len(alone)} seeds make pairs; "
        f"{spell_seeds(alone)} did not run on both sides."
        for (pairs, alone), found in rows.items()
    ]


def _untested(comparison: Comparison) -> list[str]:
    """Say why there is no test; such comparisons are not in the family."""
    reasons: dict[tuple[str, str], list[Row]] = {}
    for row in comparison.rows:
        if row.reason:
            reasons.setdefault((row.verdict, row.reason), []).append(row)
    return [f"{mark}: {_names(comparison, rows)}: {why}." for (mark, why), rows in reasons.items()]


def _disagreements(comparison: Comparison) -> list[str]:
    """Say where the printed interval and the verdict seem to say different things."""
    family = comparison.family
    counts = dict.fromkeys(_DISAGREEMENTS, 0)
    for row in comparison.rows:
        if row.difference is None or row.p is None or row.simultaneous is None:
            continue
        decided = row.verdict in (BETTER, WORSE)
        excludes = _excludes_0(row.difference.interval)
        counts["open"] += excludes and not decided
        counts["sharp"] += decided and not excludes
        if family.margin is not None:
            inside = _within(row.difference.interval, family.margin)
            counts["inside"] += inside and row.verdict == UNDECIDED
            counts["small"] += decided and _within(row.simultaneous, family.margin)
    return [
        f"{_DISAGREEMENTS[name].format(rows='1 row' if count == 1 else f'{count} rows')}."
        for name, count in counts.items()
        if count
    ]


def _excludes_0(interval: Interval) -> bool:
    low, high = interval.low, interval.high
    return low is not None and high is not None and (low > 0 or high < 0)


def _within(interval: Interval, margin: float) -> bool:
    low, high = interval.low, interval.high
    return low is not None and high is not None and -margin < low and high < margin


def _hanging_on_failures(comparison: Comparison) -> list[str]:
    """Name the verdicts that would be others if failed seeds were left out."""
    changed = [
        f"{name_of(row.cell, comparison.labels)}: {row.of_ok.verdict} on {len(row.seeds_of_ok)}, "
        f"not {row.verdict}"
        for row in comparison.hanging_on_failures
        if row.of_ok
    ]
    if not changed:
        return []
    return [
        "Verdicts that hang on failures; on the pairs alone that ended well on both sides: "
        f"{'; '.join(changed)}."
    ]


def _other_code(comparison: Comparison) -> list[str]:
    """Name what may be behind a difference and is neither component nor setting."""
    rows: dict[tuple[str, ...], list[Row]] = {}
    for row in comparison.rows:
        if row.baseline is not None and row.difference is not None:
            found = cautions(row.cell, row.baseline)
            if found:
                rows.setdefault(found, []).append(row)
    return [
        f"{_names(comparison, found)}: not the baseline's {', '.join(what)}, which may be why "
        "results differ."
        for what, found in rows.items()
    ]


def _choices(comparison: Comparison) -> list[str]:
    """Say what to beware of in the values that were chosen."""
    tuning = comparison.tuning
    if tuning is None:
        return []
    name, lines = tuning.axis.name, []
    edges: dict[tuple[str, str], list[Row]] = {}
    gaps: dict[tuple[str, ...], list[Row]] = {}
    for row in comparison.rows:
        choice = tuning.of(row.cell)
        if choice.edge:
            edges.setdefault((choice.value, choice.edge), []).append(row)
        missing = tuple(value for value in tuning.values if value not in choice.means)
        if missing:
            gaps.setdefault(missing, []).append(row)
    lines += [
        f"{_names(comparison, rows)}: the best {name}, {value}, is the {which} tried: a better one "
        "may lie beyond."
        for (value, which), rows in edges.items()
    ]
    lines += [
        f"{_names(comparison, rows)}: not tried at {name} {', '.join(missing)}."
        if missing != tuning.values
        else f"{_names(comparison, rows)}: there is no {name} to choose."
        for missing, rows in gaps.items()
    ]
    if tuning.unused:
        lines.append(f"Seeds {spell_seeds(tuning.unused)} are not used: not tried everywhere.")
    return lines


def _names(comparison: Comparison, rows: Iterable[Row]) -> str:
    return "; ".join(name_of(row.cell, comparison.labels) for row in rows)


def all_foreign(cells: Collection[Cell]) -> bool:
    """Whether all was made elsewhere, where nothing can be tuned any more."""
    return all(is_foreign(cell.seeds[0].record) for cell in cells)


def has_failures(comparison: Comparison) -> bool:
    """Whether a seed of any row failed."""
    return any(row.cell.failed for row in comparison.rows)
