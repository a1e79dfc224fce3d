"""Each algorithm of a suite against one of them: ``rlbench compare --suite``."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rlbench.errors import UsageError
from rlbench.report.cells.pairing import LARGEST, independent, off_footing
from rlbench.report.compare.comparison import SMALLEST_OF_INTEREST
from rlbench.report.compare.family import (
    BASELINE,
    NOT_COMPARABLE,
    NOT_TESTABLE,
    POWER,
    UNDECIDED,
    Family,
    decide,
)
from rlbench.report.tables.notes import named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.report.cells.cell import Cell
    from rlbench.report.suite.suite import Algorithm, Suite
    from rlbench.stats import Interval, SuiteDifference

_MOST = 1e9  # seeds


@dataclass(frozen=True, kw_only=True)
class SuiteRow:
    """One algorithm, judged against the baseline.

    Attributes:
        algorithm: The algorithm.
        verdict: One of the marks of `rlbench.report.compare.family`.
        reason: Why there is no test; empty where there is one.
        n: Pairs over all tasks; of independent runs, the fewer of both sides.
        independent: Whether runs are not paired, since seeds of a side were numbered on import.
        unpaired: Runs of either side at seeds that the other lacks; they are in no difference.
        difference: Of the IQM, row less baseline, with its interval and unadjusted p; and how often
            the row does better. None where nothing can be subtracted.
        simultaneous: The same difference with an interval for the whole family.
        p: Two-sided p-value, adjusted by Holm; None where there is no test.
        of_means: The difference of the means over tasks, in no family of tests.
        more: About how many more seeds a task would show a difference of interest, where it is
            undecided; None elsewhere, where runs failed and where none is known.
    """

    algorithm: Algorithm
    verdict: str = BASELINE
    reason: str = ""
    n: int = 0
    independent: bool = False
    unpaired: int = 0
    difference: SuiteDifference | None = None
    simultaneous: Interval | None = None
    p: float | None = None
    of_means: Interval | None = None
    more: int | None = None


@dataclass(frozen=True, kw_only=True)
class SuiteComparison:
    """All algorithms of a suite against one of them.

    Attributes:
        suite: The suite.
        rows: In the order of the suite, the baseline among them.
        baseline: What the others are compared with.
        family: All comparisons that have a test, with the levels.
        named: Whether somebody chose the baseline.
    """

    suite: Suite
    rows: tuple[SuiteRow, ...]
    baseline: Algorithm
    family: Family
    named: bool = True

    @property
    def independent(self) -> bool:
        """Whether no runs are paired, since seeds were numbered on import."""
        compared = [row for row in self.rows if row.difference is not None]
        return bool(compared) and all(row.independent for row in compared)


def against(
    suite: Suite,
    cells: Mapping[str, Cell],
    *,
    level: float = 0.95,
    margin: float | None = None,
) -> SuiteComparison:
    """Compare every algorithm of a suite with one of them, over all tasks.

    The difference is that of the IQM at the seeds that both have in each task, with the test of
    `rlbench.stats.suite_difference`; p is adjusted by Holm for all algorithms with a test. Where
    seeds were numbered on import, runs are taken as independent. An algorithm that lacks a task has
    no aggregate, and none to compare.

    Args:
        suite: The algorithms.
        cells: Of the baseline, by task, as `rlbench.report.cells.baseline.find` gives them.
        level: Confidence level in [0.5, 1).
        margin: Largest difference of the IQM that counts as none; None calls nothing equivalent.
            Seeds to come are planned for it, or where there is none and scores are on a scale from
            0 to 1, for 0.05.

    Raises:
        UsageError: There is one task; the cells are of several algorithms, or of one without an
            aggregate.
    """
    from rlbench.stats import holm

    if len(suite.tasks) < 2:
        raise UsageError("these results have one task; compare them without --suite")
    baseline = _baseline(suite, list(cells.values()))
    effect = margin or (SMALLEST_OF_INTEREST if suite.unit else None)
    others = [one for one in suite.algorithms if one is not baseline]
    sides = [_sides(suite, one, baseline) for one in others]
    found = [_difference(suite, one, level) for one in sides]
    tested = {n: one.p for n, one in enumerate(found) if one is not None and one.p is not None}
    family = Family(
        level=level,
        margin=margin,
        effect=effect,
        size=len(tested),
        apart=sum(not sides[n].paired for n in tested),
        fewest=min((sides[n].n for n in tested), default=None),
    )
    adjusted = dict(zip(tested, holm(list(tested.values())).tolist(), strict=True))
    rows = {
        id(one): _row(suite, one, sides[n], difference=found[n], p=adjusted.get(n), family=family)
        for n, one in enumerate(others)
    }
    rows[id(baseline)] = SuiteRow(algorithm=baseline, n=baseline.tried)
    return SuiteComparison(
        suite=suite,
        rows=tuple(rows[id(one)] for one in suite.algorithms),
        baseline=baseline,
        family=family,
    )


def _baseline(suite: Suite, cells: Sequence[Cell]) -> Algorithm:
    """Find the algorithm whose cells these are; they may be those of some of its tasks."""
    owners = [
        one
        for one in suite.algorithms
        if any(cell.columns == mine.columns for mine in one.cells.values() for cell in cells)
    ]
    if len(owners) != 1:
        names = ", ".join(named(one.columns, suite.labels) for one in owners)
        raise UsageError(
            f"--baseline names cells of {len(owners)} algorithms{f' ({names})' if names else ''}; "
            "over a suite it is one"
        )
    (baseline,) = owners
    if baseline.missing:
        some = ", ".join([*baseline.missing[:5], *(["..."] if baseline.missing[5:] else [])])
        floors = "; failed runs there have no known floor" if baseline.unknown else ""
        raise UsageError(
            f"--baseline {named(baseline.columns, suite.labels)}: it has no value in "
            f"{len(baseline.missing)} of {len(suite.tasks)} tasks ({some}{floors}), so there is "
            "nothing to compare with over all; select the tasks that it has (-t)"
        )
    return baseline


@dataclass(frozen=True, kw_only=True)
class _Sides:
    """What an algorithm and the baseline reached in each task, at the seeds that count."""

    ours: Mapping[str, Sequence[float]] = field(default_factory=dict)
    theirs: Mapping[str, Sequence[float]] = field(default_factory=dict)
    paired: bool = True
    unpaired: int = 0
    failures: bool = False
    reason: str = ""
    comparable: bool = True

    @property
    def n(self) -> int:
        """Pairs over all tasks, or runs of the side that has fewer."""
        return min(sum(map(len, side.values())) for side in (self.ours, self.theirs))

    @property
    def fewest(self) -> int:
        """Pairs, or runs of a side, of the task that has fewest."""
        return min(len(runs) for side in (self.ours, self.theirs) for runs in side.values())


def _sides(suite: Suite, one: Algorithm, baseline: Algorithm) -> _Sides:
    """Put both sides beside each other, or say why that can't be."""
    apart = any(independent(cell, baseline.cells[task]) for task, cell in one.cells.items())
    for task, cell in one.cells.items():
        why = off_footing(cell, baseline.cells[task])
        if why:
            return _Sides(reason=f"task {task}: {why}", comparable=False)
    if one.missing:
        noun = "task has" if len(one.missing) == 1 else "tasks have"
        return _Sides(reason=f"{len(one.missing)} {noun} no value")
    ours: dict[str, list[float]] = {}
    theirs: dict[str, list[float]] = {}
    unpaired, failures = 0, False
    for task in suite.tasks:
        mine, its = one.scores[task], baseline.scores[task]
        seeds = [sorted(mine), sorted(its)] if apart else [sorted(mine.keys() & its.keys())] * 2
        if not all(seeds):
            return _Sides(reason=f"no common seed in task {task}")
        ours[task] = [mine[seed] for seed in seeds[0]]
        theirs[task] = [its[seed] for seed in seeds[1]]
        unpaired += len(mine) + len(its) - len(seeds[0]) - len(seeds[1])
        if max(map(abs, [*mine.values(), *its.values()])) > LARGEST:
            return _Sides(reason="numbers beyond 1e307 can't be subtracted; use a larger unit")
        failures = failures or bool(one.cells[task].failed or baseline.cells[task].failed)
    return _Sides(ours=ours, theirs=theirs, paired=not apart, unpaired=unpaired, failures=failures)


def _difference(suite: Suite, sides: _Sides, level: float) -> SuiteDifference | None:
    """Subtract the IQMs in their unit; wins count the way that is better."""
    from rlbench.stats import suite_difference, suite_improvement

    if not sides.ours:
        return None
    found = suite_difference(sides.ours, sides.theirs, "iqm", level, paired=sides.paired)
    if suite.higher:
        return found
    less, more = (
        {task: [-x for x in runs] for task, runs in side.items()}
        for side in (sides.ours, sides.theirs)
    )
    return replace(found, improvement=suite_improvement(less, more, level, paired=sides.paired))


def _row(
    suite: Suite,
    one: Algorithm,
    sides: _Sides,
    *,
    difference: SuiteDifference | None,
    p: float | None,
    family: Family,
) -> SuiteRow:
    """Judge one comparison."""
    from rlbench.stats import suite_difference

    if difference is None:
        verdict = NOT_TESTABLE if sides.comparable else NOT_COMPARABLE
        return SuiteRow(algorithm=one, verdict=verdict, reason=sides.reason)
    mean = suite_difference(sides.ours, sides.theirs, "mean", family.level, paired=sides.paired)
    row = SuiteRow(
        algorithm=one,
        n=sides.n,
        independent=not sides.paired,
        unpaired=sides.unpaired,
        difference=difference,
        of_means=mean.interval,
    )
    if p is None:
        run = "common seed" if sides.paired else "run on a side"
        single = f"one {run} in a task"
        why = single if sides.fewest == 1 else "the difference has no spread"
        return replace(row, verdict=NOT_TESTABLE, reason=why)
    simultaneous = difference.at(1 - family.alpha / family.size)
    verdict = decide(family, simultaneous, p, 1 if suite.higher else -1)
    more = None if verdict != UNDECIDED or sides.failures else _more(simultaneous, family, sides)
    return replace(row, verdict=verdict, simultaneous=simultaneous, p=p, more=more)


def _more(simultaneous: Interval, family: Family, sides: _Sides) -> int | None:
    """Plan seeds for each task: the error falls with the root of their number.

    With the half width h of the simultaneous interval, which is z errors wide or a little more, an
    effect is shown with the power asked for once ``h (1 + z_power / z)`` has shrunk to it.
    """
    from scipy.special import ndtri

    if family.effect is None or simultaneous.half_width is None:
        return None
    z = float(ndtri(1 - family.alpha / family.size / 2))
    width = simultaneous.half_width * (1 + float(ndtri(POWER)) / z)
    needed = sides.fewest * (width / family.effect) ** 2
    return max(math.ceil(needed) - sides.fewest, 0) if needed < _MOST else None
