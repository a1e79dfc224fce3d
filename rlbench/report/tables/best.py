"""Which rows of a table no test tells from the best one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

from rlbench.report.cells.pairing import independent, off_footing, task_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.report.cells.cell import Cell

ALPHA = 0.05  # error rate of the whole table
MOST_PAIRS = 5_000  # 100 rows of one task: a correction for more leaves nothing to find


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Whether a row may be the best of its task.

    Attributes:
        among_best: False where a test shows another row to be better; None where it is open.
        p: The least two-sided p-value against a row that does better at common seeds, adjusted for
            the table; None where there is no such test. ``among_best`` is False just where it is
            below `ALPHA`.
        p_first: The same against the first row of its task that has a test; None for this row
            itself and where there is none.
        reason: Why it is open; empty where it is not.
        separated: Whether a test shows any row of its task to be worse than another. Where none
            does, to be among the best says nothing.
    """

    among_best: bool | None
    p: float | None = None
    p_first: float | None = None
    reason: str = ""
    separated: bool = True

    @property
    def marked(self) -> bool:
        """Whether it is among the best, and not all rows of its task are."""
        return bool(self.among_best) and self.separated


@dataclass(frozen=True, kw_only=True)
class BestSet:
    """The rows of a table, each with where it stands.

    Attributes:
        standings: One a row, in their order; none where nothing was computed.
        pairs: Number of pairs with a test; those of one task are a family.
        untested: Number of pairs without one.
        correction: How p was adjusted: ``max_t``, ``holm``, or ``max_t and holm``; empty where
            nothing was.
        apart: Whether runs were compared that are no pairs, by Welch's test.
        tasks: Number of tasks, each with a best row of its own.
        reason: Why nothing was computed; empty if it was, and where there is nothing to compare.
    """

    standings: tuple[Standing, ...] = ()
    pairs: int = 0
    untested: int = 0
    correction: str = ""
    apart: bool = False
    tasks: int = 1
    reason: str = ""


def best_set(rows: Sequence[Cell]) -> BestSet:
    """Tell which rows of each task are not separable from the best one.

    Which cell is truly the best nobody knows; a row can't be it where a test shows another row of
    its task to be better, at common seeds (of independent runs, over all of them), after a
    correction for all pairs of rows of the task. The largest mean is the first of the best only
    where something can be tested against it.

    A row with failures is never among the best because failures spread its values so far that no
    test can tell: where it is not the first itself, and not shown to be worse, it is open.

    Args:
        rows: Cells, the best of each task first.

    Returns:
        One standing a row; none where there is one row, or more pairs than can be judged.
    """
    groups: dict[str, list[int]] = {}
    for number, cell in enumerate(rows):
        groups.setdefault(task_of(cell), []).append(number)
    size = sum(comb(len(group), 2) for group in groups.values())
    largest = max((comb(len(group), 2) for group in groups.values()), default=0)
    if largest > MOST_PAIRS:
        why = f"{largest:,} pairs of rows are more than {MOST_PAIRS:,}; select fewer rows"
        return BestSet(reason=why, tasks=len(groups))
    if not size:
        return BestSet(tasks=len(groups))
    standings: dict[int, Standing] = {}
    methods: set[str] = set()
    family, apart = 0, False
    for group in groups.values():
        pairs = list(combinations(group, 2))
        tests, found = _tests(rows, pairs) if pairs else ({}, set())
        standings |= _of_task(rows, group, tests)
        methods |= found
        family += sum(test.p is not None for test in tests.values())
        apart = apart or any(test.apart for test in tests.values())
    return BestSet(
        standings=tuple(standings[number] for number in range(len(rows))),
        pairs=family,
        untested=size - family,
        correction=" and ".join(sorted(methods, reverse=True)),
        apart=apart,
        tasks=len(groups),
        reason="" if family else "no two rows of a task can be tested",
    )


@dataclass(frozen=True, kw_only=True)
class _Test:
    """What is known of two rows: common seeds, adjusted p if any, lead of the first, or why not."""

    n: int = 0
    p: float | None = None
    lead: float = 0.0  # how much better the first is
    tied: bool = False  # at every common seed
    apart: bool = False  # no pairs
    reason: str = ""


def _tests(
    rows: Sequence[Cell], pairs: Sequence[tuple[int, int]]
) -> tuple[dict[tuple[int, int], _Test], set[str]]:
    """Test all pairs of rows of a task as one family; tell also by which corrections."""
    import numpy as np

    from rlbench.stats.pairwise import pair_tests

    numbers = sorted({seed.number for cell in rows for seed in cell.tried})
    place = {number: row for row, number in enumerate(numbers)}
    values = np.zeros((max(len(numbers), 1), len(rows)))
    tried, known, failed = (np.zeros(values.shape, dtype=bool) for _ in range(3))
    for column, cell in enumerate(rows):
        for seed in cell.tried:
            at = place[seed.number], column
            tried[at], known[at], failed[at] = True, seed.score is not None, not seed.ok
            values[at] = cell.metric.sign * (seed.score or 0.0)
    first, second = np.array(pairs).T
    common = tried[:, first] & tried[:, second]
    unknown = np.any(common & ~(known[:, first] & known[:, second]), axis=0).tolist()
    reasons = [
        off_footing(rows[one], rows[other]) or ("a seed has no known value" if lacks else "")
        for (one, other), lacks in zip(pairs, unknown, strict=True)
    ]
    tests = {pair: _Test(reason=why) for pair, why in zip(pairs, reasons, strict=True) if why}
    asked = [pair for pair in pairs if pair not in tests]
    apart = [independent(rows[one], rows[other]) for one, other in asked]
    found = pair_tests(values, np.array(asked, dtype=np.int64), tried & known, apart, failed)
    for number, (one, other) in enumerate(asked):
        tests[one, other] = _Test(
            n=int(found.n[number]),
            p=float(found.adjusted[number]) if found.testable[number] else None,
            lead=float(found.difference[number]),
            tied=bool(found.tied[number]),
            apart=apart[number],
        )
    tested = bool(found.testable.any())
    methods = {"max_t"} if found.joint else {"max_t", "holm"} if found.mixed else {"holm"}
    return tests, methods if tested else set()


def _of_task(
    rows: Sequence[Cell], group: Sequence[int], tests: Mapping[tuple[int, int], _Test]
) -> dict[int, Standing]:
    """Judge the rows of one task, which come best first."""
    against: dict[int, dict[int, _Test]] = {number: {} for number in group}
    for one, other in combinations(group, 2):
        test = tests[one, other]
        against[other][one] = test
        against[one][other] = replace(test, lead=-test.lead)
    tested = (n for n in group if any(test.p is not None for test in against[n].values()))
    first = next(tested, None)
    found = {number: _standing(rows[number], number, first, against[number]) for number in group}
    separated = any(one.among_best is False for one in found.values())
    return {number: replace(one, separated=separated) for number, one in found.items()}


def _standing(cell: Cell, number: int, first: int | None, against: Mapping[int, _Test]) -> Standing:
    """Judge a row by its tests; a lead is that of the other."""
    p = min(
        (test.p for test in against.values() if test.p is not None and test.lead > 0), default=None
    )
    if number == first:
        return Standing(among_best=p is None or p >= ALPHA, p=p)
    if not against:
        return Standing(among_best=None, reason="the only row of its task")
    if all(test.n < 2 and not test.reason for test in against.values()):
        return Standing(among_best=None, reason="fewer than two common seeds with any row")
    test = against[first] if first is not None else next(iter(against.values()))
    judged = Standing(among_best=True, p=p, p_first=test.p)
    if p is not None and p < ALPHA:
        return replace(judged, among_best=False)
    if test.reason:
        return replace(judged, among_best=None, reason=test.reason)
    if cell.failed:
        why = f"{len(cell.failed)} of {len(cell.tried)} failed"
        return replace(judged, among_best=None, reason=why)
    if test.p is None and not (first is not None and test.tied and test.n > 1):
        counts = {0: "no common seed with the first", 1: "one common seed with the first"}
        why = counts.get(test.n, "all differences from the first are equal")
        return replace(judged, among_best=None, reason=why)
    return judged
