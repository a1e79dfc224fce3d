"""Which rows of a table no test tells from the best one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.report.pairing import off_footing, task_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.cells import Cell

ALPHA = 0.05  # error rate of the whole table
MOST_PAIRS = 5_000  # 100 rows of one task; a correction for more leaves nothing to find


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a row stands beside the best row of its task.

    Attributes:
        among_best: Whether no test tells it from the best one; None where that is open.
        p: Two-sided p-value against the best row, adjusted for the table; None for the best row
            itself and where there is no test.
        reason: Why it is open; empty where it is not.
    """

    among_best: bool | None
    p: float | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class BestSet:
    """The rows of a table, each with where it stands.

    Attributes:
        standings: One a row, in their order; none where nothing was computed.
        pairs: Number of pairs with a test: the family.
        joint: Whether p was adjusted by max-t, and not by Holm.
        tasks: Number of tasks, each with a best row of its own.
        reason: Why nothing was computed; empty if it was, and where there is nothing to compare.
    """

    standings: tuple[Standing, ...] = ()
    pairs: int = 0
    joint: bool = False
    tasks: int = 1
    reason: str = ""

    @property
    def correction(self) -> str:
        """The method, as data name it."""
        return "max_t" if self.joint else "holm"


def best_set(rows: Sequence[Cell]) -> BestSet:
    """Tell which rows of each task are not separable from its best one.

    The best row of a task is the first with a known value, failures counted at the floor. A row is
    out where the difference to it, at common seeds, is significant after a correction for all
    pairs of rows: the best one is chosen by the same data, so that all pairs are the family.

    A row with failures is never among the best because failures spread its values so far that no
    test can tell: where it is not the best itself, and not shown to be worse, it is open.

    Args:
        rows: Cells, the best of each task first.

    Returns:
        One standing a row; none where there is one row, or more pairs than can be judged.
    """
    groups: dict[str, list[int]] = {}
    for number, cell in enumerate(rows):
        groups.setdefault(task_of(cell), []).append(number)
    pairs = [
        (one, other)
        for group in groups.values()
        for place, one in enumerate(group)
        for other in group[place + 1 :]
    ]
    if len(pairs) > MOST_PAIRS:
        why = f"{len(pairs):,} pairs of rows are more than {MOST_PAIRS:,}; select fewer rows"
        return BestSet(reason=why, tasks=len(groups))
    if not pairs:
        return BestSet(tasks=len(groups))
    tests, joint = _tests(rows, pairs)
    standings: dict[int, Standing] = {}
    for group in groups.values():
        standings |= _of_task(rows, group, tests)
    size = sum(test.p is not None for test in tests.values())
    return BestSet(
        standings=tuple(standings[number] for number in range(len(rows))),
        pairs=size,
        joint=joint,
        tasks=len(groups),
        reason="" if size else "no two rows of a task can be tested",
    )


@dataclass(frozen=True, kw_only=True)
class _Test:
    """What is known of two rows: common seeds, adjusted p if any, lead of the first, or why not."""

    n: int = 0
    p: float | None = None
    lead: float = 0.0  # how much better the first is
    tied: bool = False  # at every common seed
    reason: str = ""


def _tests(
    rows: Sequence[Cell], pairs: Sequence[tuple[int, int]]
) -> tuple[dict[tuple[int, int], _Test], bool]:
    """Test all pairs of rows as one family; tell also whether by max-t."""
    import numpy as np

    from rlbench.stats.pairwise import pair_tests

    numbers = sorted({seed.number for cell in rows for seed in cell.tried})
    place = {number: row for row, number in enumerate(numbers)}
    values = np.zeros((max(len(numbers), 1), len(rows)))
    tried, known = np.zeros(values.shape, dtype=bool), np.zeros(values.shape, dtype=bool)
    for column, cell in enumerate(rows):
        for seed in cell.tried:
            at = place[seed.number], column
            tried[at], known[at] = True, seed.score is not None
            values[at] = seed.score or 0.0
    first, second = np.array(pairs).T
    common = tried[:, first] & tried[:, second]
    unknown = np.any(common & ~(known[:, first] & known[:, second]), axis=0).tolist()
    reasons = [
        off_footing(rows[one], rows[other]) or ("a seed has no known value" if lacks else "")
        for (one, other), lacks in zip(pairs, unknown, strict=True)
    ]
    tests = {pair: _Test(reason=why) for pair, why in zip(pairs, reasons, strict=True) if why}
    asked = [pair for pair in pairs if pair not in tests]
    found = pair_tests(values, np.array(asked, dtype=np.int64), tried & known)
    for number, (one, other) in enumerate(asked):
        tests[one, other] = _Test(
            n=int(found.n[number]),
            p=float(found.adjusted[number]) if found.testable[number] else None,
            lead=rows[one].metric.sign * float(found.difference[number]),
            tied=bool(found.tied[number]),
        )
    return tests, found.joint


def _of_task(
    rows: Sequence[Cell], group: Sequence[int], tests: dict[tuple[int, int], _Test]
) -> dict[int, Standing]:
    """Compare the rows of one task with its best, which comes first."""
    best, *others = group
    against = {number: _standing(rows[number], tests[best, number]) for number in others}
    told = [number for number in others if against[number].among_best is not None]
    if rows[best].score is None or not told:
        # the largest mean alone is no reason to call a row the best
        first = Standing(among_best=None, reason="no row of its task can be tested against it")
    else:
        # one that has other seeds can be ahead of it at the common ones
        beaten = any(_significant(tests[best, number]) < 0 for number in others)
        first = Standing(among_best=not beaten)
    return {best: first, **against}


def _standing(cell: Cell, test: _Test) -> Standing:
    """Judge a row by its test against the best one."""
    if test.reason:
        return Standing(among_best=None, reason=test.reason)
    if _significant(test) > 0:
        return Standing(among_best=False, p=test.p)
    if cell.failed:
        why = f"{len(cell.failed)} of {len(cell.tried)} failed"
        return Standing(among_best=None, p=test.p, reason=why)
    if test.p is None and not (test.tied and test.n > 1):
        counts = {0: "no common seed with the best", 1: "one common seed with the best"}
        why = counts.get(test.n, "all differences from the best are equal")
        return Standing(among_best=None, reason=why)
    return Standing(among_best=True, p=test.p)


def _significant(test: _Test) -> float:
    """Give the lead of the first row where it is significant, else 0."""
    return test.lead if test.p is not None and test.p < ALPHA else 0.0
