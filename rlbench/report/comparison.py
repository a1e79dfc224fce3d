"""Every cell against one baseline, at common seeds: the numbers of ``rlbench compare``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlbench.report.cells import labels_of
from rlbench.report.tables import ranked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.report.cells import Cell, Seed
    from rlbench.stats import Difference, Interval

BASELINE, BETTER, WORSE, EQUIVALENT = "baseline", "+", "-", "="
UNDECIDED, NOT_TESTABLE, NOT_COMPARABLE = "?", "n/a", "x"

MAX_T_FROM = 7  # pairs; below, flipping signs leaves no room for a correction
SMALLEST_OF_INTEREST = 0.05  # where no margin is declared
POWER = 0.8


@dataclass(frozen=True, kw_only=True)
class Row:
    """One cell against the baseline.

    Attributes:
        cell: The cell.
        score: Its mean over all of its own seeds, failures at the task's floor; None if no seed was
            tried or a failed one has no known floor.
        seeds: The seeds that it shares with the baseline, both tried: the pairs.
        verdict: One of the marks above.
        reason: Why there is no test; empty where there is one.
        difference: Its mean less the baseline's over the pairs, in the unit of the score, with the
            paired t interval; positive means better. None where there is nothing to subtract.
        simultaneous: The same difference with an interval for the whole family.
        p: Two-sided p-value, adjusted for the family; None where there is no test.
        improvement: Share of pairs in which it does better, ties one half.
        more: About how many more seeds would decide, where it is undecided; None elsewhere, and
            where no number of seeds in reach would.
    """

    cell: Cell
    score: Interval | None
    seeds: tuple[int, ...] = ()
    verdict: str = BASELINE
    reason: str = ""
    difference: Difference | None = None
    simultaneous: Interval | None = None
    p: float | None = None
    improvement: Interval | None = None
    more: int | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All cells against one of them.

    Attributes:
        rows: Best first, the baseline among them.
        labels: Columns in which the cells differ.
        baseline: What the others are compared with.
        level: Confidence level of all intervals; the tests' error rate is the rest to 1.
        margin: Differences within it are equivalent, in the unit of the score; None if none is.
        family: Number of comparisons with a test.
        fewest: Pairs of the one that has fewest; None if there is no test.
        named: Whether somebody chose the baseline.
        left_out: What of the results is not among the cells, in words; empty if nothing.
    """

    rows: tuple[Row, ...]
    labels: tuple[str, ...]
    baseline: Cell
    level: float
    margin: float | None
    family: int
    fewest: int | None
    named: bool = True
    left_out: str = ""

    @property
    def alpha(self) -> float:
        """Error rate of the whole family of tests."""
        return round(1 - self.level, 12)  # 1 - 0.95 is a little more than 0.05

    @property
    def joint(self) -> bool:
        """Whether the p-values are those of max-t, and not Holm's."""
        return self.fewest is not None and self.fewest >= MAX_T_FROM

    @property
    def effect(self) -> float:
        """The difference that numbers of seeds are planned for."""
        return SMALLEST_OF_INTEREST if self.margin is None else self.margin


@dataclass(frozen=True, kw_only=True)
class _Pairs:
    """What a cell and the baseline scored at their common seeds; no score where none is known."""

    seeds: tuple[int, ...]
    ours: tuple[float, ...] = ()
    theirs: tuple[float, ...] = ()
    outcomes: tuple[int, ...] = ()  # 1 where the cell does better, -1 where the baseline does
    verdict: str = NOT_TESTABLE
    reason: str = ""


def in_order(cells: Sequence[Cell]) -> list[Cell]:
    """Order cells as tables do, the best first; ties and all in one order, however they came."""
    canonical = sorted(cells, key=lambda cell: sorted((k, str(v)) for k, v in cell.columns.items()))
    return ranked(canonical, labels_of(canonical))


def compare(
    cells: Sequence[Cell], baseline: Cell, *, level: float = 0.95, margin: float | None = None
) -> Comparison:
    """Compare every cell with the baseline at common seeds.

    A failed seed scores the task's floor, and in the share of wins it loses to any seed that ended
    well. The family is all comparisons that have a test. Its p-values are Holm's on the paired t
    tests while any comparison has 6 pairs or fewer, and those of max-t with joint sign flips from
    7 on: the smallest number of pairs rules. A seed that one comparison lacks is 0 there under
    every flip, so that it adds nothing. Simultaneous intervals are Bonferroni's. Seeds to come are
    planned at the level of one comparison after Bonferroni, by the upper limit of the standard
    deviation, see `rlbench.stats.pairs_needed`.

    Args:
        cells: What to compare, the baseline among them.
        baseline: One of them.
        level: Confidence level in [0.5, 1).
        margin: Largest difference, in the unit of the score, that counts as none; None calls
            nothing equivalent.

    Returns:
        One row a cell, the best first. The order of ``cells`` changes nothing.
    """
    from rlbench.stats import paired_difference

    ordered = in_order(cells)
    labels = tuple(labels_of(ordered))
    numbered = [(n, cell) for n, cell in enumerate(ordered) if cell is not baseline]
    pairs = {n: _pairs(cell, baseline) for n, cell in numbered}
    differences = {
        n: paired_difference(pair.ours, pair.theirs, level)
        for n, pair in pairs.items()
        if pair.ours
    }
    tested = [n for n, difference in differences.items() if difference.testable]
    comparison = Comparison(
        rows=(),
        labels=labels,
        baseline=baseline,
        level=level,
        margin=margin,
        family=len(tested),
        fewest=min((len(pairs[n].seeds) for n in tested), default=None),
    )
    family = {n: pairs[n] for n in tested}
    adjusted = _adjusted(comparison, family, [differences[n].p or 0.0 for n in tested])
    rows = []
    for n, cell in enumerate(ordered):
        row = Row(cell=cell, score=_score(cell, level))
        if n in pairs:
            row = _row(comparison, row, pairs[n], differences.get(n), adjusted.get(n))
        rows.append(row)
    return replace(comparison, rows=tuple(rows))


def _score(cell: Cell, level: float) -> Interval | None:
    """Compute the mean of a cell's own seeds at any level; None where the cell has none."""
    if cell.score is None:
        return None
    from rlbench.stats import mean_interval

    return mean_interval([seed.score for seed in cell.tried if seed.score is not None], level)


def _pairs(cell: Cell, baseline: Cell) -> _Pairs:
    """Pair by seed, never by position."""
    ours = {seed.number: seed for seed in cell.tried}
    theirs = {seed.number: seed for seed in baseline.tried}
    common = tuple(sorted(ours.keys() & theirs.keys()))
    if cell.columns.get("task") != baseline.columns.get("task"):
        return _Pairs(seeds=common, verdict=NOT_COMPARABLE, reason="another task")
    if not common:
        return _Pairs(seeds=(), reason="no common seed")
    scores = [(ours[seed].score, theirs[seed].score) for seed in common]
    known = [(one, other) for one, other in scores if one is not None and other is not None]
    if len(known) < len(scores):
        return _Pairs(seeds=common, reason="a failed seed has no known floor")
    return _Pairs(
        seeds=common,
        ours=tuple(float(one) for one, _ in known),
        theirs=tuple(float(other) for _, other in known),
        outcomes=tuple(_outcome(ours[seed], theirs[seed]) for seed in common),
    )


def _outcome(one: Seed, other: Seed) -> int:
    """Say who does better; failures tie with each other and lose to the rest."""
    ours, theirs = ((seed.ok, seed.score if seed.ok else 0.0) for seed in (one, other))
    return int(ours > theirs) - int(ours < theirs)


def _adjusted(
    comparison: Comparison, family: Mapping[int, _Pairs], p: Sequence[float]
) -> dict[int, float]:
    """Adjust for the family, by the method that the smallest number of pairs allows."""
    from rlbench.stats import holm, max_t

    if not family:
        return {}
    if not comparison.joint:
        return dict(zip(family, map(float, holm(p)), strict=True))
    seeds = sorted({seed for pair in family.values() for seed in pair.seeds})
    found = []
    for pair in family.values():
        both = zip(pair.ours, pair.theirs, strict=True)
        at = dict(zip(pair.seeds, (one - other for one, other in both), strict=True))
        found.append([at.get(seed, 0.0) for seed in seeds])
    return dict(zip(family, map(float, max_t(list(zip(*found, strict=True)))), strict=True))


def _row(
    comparison: Comparison,
    row: Row,
    pairs: _Pairs,
    difference: Difference | None,
    p: float | None,
) -> Row:
    """Judge one cell."""
    from rlbench.stats import paired_difference, probability_of_improvement

    if difference is None:
        return replace(row, seeds=pairs.seeds, verdict=pairs.verdict, reason=pairs.reason)
    improvement = probability_of_improvement(
        pairs.outcomes, [0] * len(pairs.outcomes), paired=True, level=comparison.level
    )
    row = replace(row, seeds=pairs.seeds, difference=difference, improvement=improvement)
    if p is None:
        one = len(pairs.seeds) == 1
        reason = "one common seed" if one else "all differences are equal"
        return replace(row, verdict=NOT_TESTABLE, reason=reason)
    level = 1 - comparison.alpha / comparison.family
    simultaneous = paired_difference(pairs.ours, pairs.theirs, level).interval
    verdict = _verdict(comparison, simultaneous, p)
    return replace(
        row,
        p=p,
        simultaneous=simultaneous,
        verdict=verdict,
        more=_more(comparison, difference, len(pairs.seeds)) if verdict == UNDECIDED else None,
    )


def _verdict(comparison: Comparison, simultaneous: Interval, p: float) -> str:
    if p < comparison.alpha:
        return BETTER if simultaneous.mid > 0 else WORSE
    low, high, margin = simultaneous.low, simultaneous.high, comparison.margin
    if margin is None or low is None or high is None:
        return UNDECIDED
    return EQUIVALENT if -margin < low and high < margin else UNDECIDED


def _more(comparison: Comparison, difference: Difference, n: int) -> int | None:
    """Plan seeds; 0 where those there would have shown the difference of interest."""
    from rlbench.stats import pairs_needed

    if not difference.sd:
        return None
    alpha = comparison.alpha / comparison.family
    try:
        needed = pairs_needed(comparison.effect, difference.sd, POWER, alpha, pilot_n=n)
    except ValueError:  # more than a billion
        return None
    return max(needed - n, 0)
