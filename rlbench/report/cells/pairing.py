"""The seeds of a cell beside those of its baseline: the pairs, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlbench.grid.importing import seeds_are_counted
from rlbench.report.cells.cell import KINDS, VERSIONS
from rlbench.report.cells.metric import SCORE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.cells.cell import Cell, Seed
    from rlbench.stats.crashes import Samples

LARGEST = 2.0**1020  # of numbers whose differences and their sums a float can hold
# on these stands what every run of a task is measured by, and what it starts from
_FOOTING = ("eval_prompts", "base_score", "base_updates", "base_seed")


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """What a cell and its baseline reached at their common seeds.

    Attributes:
        seeds: Numbers of the seeds that both have tried, in ascending order; of independent runs
            those of the cell.
        ours: What the cell reached there; empty where there is a `reason`.
        theirs: What the baseline reached.
        failed: Which of either side failed, in the order of their numbers; empty where none did.
        means: Whether a side is a mean over several cells, so that a failure is a part of it.
        independent: Whether the runs of both sides have nothing in common: there are no pairs, and
            both sides are whole.
        failures: How many of the pairs, or of the runs of both sides, failed.
        sign: 1 where more is better, -1 where less is.
        reason: Why nothing can be subtracted; empty where it can.
        comparable: Whether both are on one footing, so that more seeds would help.
    """

    seeds: tuple[int, ...] = ()
    ours: tuple[float, ...] = ()
    theirs: tuple[float, ...] = ()
    failed: tuple[tuple[bool, ...], tuple[bool, ...]] = ((), ())
    means: bool = False
    independent: bool = False
    failures: int = 0
    sign: int = 1
    reason: str = ""
    comparable: bool = True

    @property
    def tested(self) -> tuple[dict[int, float], Samples]:
        """What p is computed from, the larger the better; see `rlbench.stats.crashes`.

        Returns:
            The difference of each pair by its seed, none where runs are independent; and the two
            samples of a t test, of pairs the differences beside zeros.
        """
        from rlbench.stats import crashes

        if self.independent:
            return {}, crashes.weighed((self.ours, self.theirs), self._failed, self.sign)
        found = crashes.weighed_pairs(
            (self.ours, self.theirs), self._failed, self.sign, means=self.means
        )
        by_seed = {s: d for s, d in zip(self.seeds, found, strict=True) if d is not None}
        return by_seed, (tuple(by_seed.values()), (0.0,) * len(by_seed))

    @property
    def outcomes(self) -> Samples:
        """Two samples to count wins in: a failure is the worst of all; the larger is the better."""
        from rlbench.stats import crashes

        if self.means:
            first, second = (
                tuple(self.sign * x for x in side) for side in (self.ours, self.theirs)
            )
            return first, second
        return crashes.ranked((self.ours, self.theirs), self._failed, self.sign)

    @property
    def _failed(self) -> tuple[Sequence[bool], Sequence[bool]]:
        none = [False] * len(self.ours), [False] * len(self.theirs)
        return self.failed if any(self.failed) else none


def task_of(cell: Cell) -> str:
    """Name the task of a cell; empty where it has none."""
    return cell.columns.get("task", "")


def independent(cell: Cell, baseline: Cell) -> bool:
    """Whether seeds of one number have nothing in common: rlbench counted them on import."""
    return any(seeds_are_counted(seed.record) for side in (cell, baseline) for seed in side.tried)


def pair(cell: Cell, baseline: Cell, *, ended_well: bool = False) -> Pairs:
    """Pair by seed, never by position.

    A failed seed counts as `Seed.score` says: with the task's floor. Of another metric than the
    score no floor is known, so that a failure leaves no test there. Where the seeds were counted on
    import, nothing is paired: all runs of one side stand against all of the other.

    Args:
        cell: What is compared.
        baseline: What it is compared with.
        ended_well: Only the seeds that ended well, of pairs on both sides.
    """
    ours = {seed.number: seed for seed in (cell.ok if ended_well else cell.tried)}
    theirs = {seed.number: seed for seed in (baseline.ok if ended_well else baseline.tried)}
    apart = independent(cell, baseline)
    common = tuple(sorted(ours if apart else ours.keys() & theirs.keys()))
    sign = cell.metric.sign
    why = off_footing(cell, baseline)
    if why:
        return Pairs(seeds=common, sign=sign, reason=why, comparable=False)
    first = [ours[number] for number in common]
    second = [theirs[number] for number in (sorted(theirs) if apart else common)]
    failed = [[not seed.ok for seed in side] for side in (first, second)]
    failures = sum(map(sum, failed)) if apart else sum(map(any, zip(*failed, strict=True)))
    known = [[seed.score for seed in side if seed.score is not None] for side in (first, second)]
    if max((abs(score) for side in known for score in side), default=0.0) > LARGEST:
        why = "numbers beyond 1e307 can't be subtracted; use a larger unit"
        return Pairs(seeds=common, sign=sign, reason=why, failures=failures)
    if not (first and second) or any(map(_lacks, (first, second), known)):
        nothing = "no common seed" if not apart else "no run on one side"
        reason = _unknown(cell, [*first, *second]) if first and second else nothing
        found = Pairs(seeds=common, failures=failures, sign=sign, reason=reason)
    else:
        ours_known, theirs_known = (tuple(map(float, side)) for side in known)
        found = Pairs(
            seeds=common,
            ours=ours_known,
            theirs=theirs_known,
            failed=(tuple(failed[0]), tuple(failed[1])),
            failures=failures,
            sign=sign,
        )
    return replace(found, independent=apart)


def _lacks(side: list[Seed], known: list[float]) -> bool:
    return len(known) < len(side)


def off_footing(cell: Cell, baseline: Cell) -> str:
    """Say why two cells can't be compared by any number of seeds; empty if they can.

    Components and settings of the trainer may differ: they are what is compared. The task, the
    held-out prompts and the base policy may not, nor what is counted as reward where that is the
    metric. What one side does not say (it was made elsewhere) is not held against it, see
    `cautions`.
    """
    if task_of(cell) != task_of(baseline):
        return "another task"
    if _both_say("task.contents", cell, baseline):
        return "another task: the files that it reads differ"
    if cell.metric.sign != baseline.metric.sign:
        return "less is better on one side, more on the other"
    for name in _FOOTING:
        if _both_say(name, cell, baseline):
            ours, theirs = cell.columns[name], baseline.columns[name]
            return f"{name} is {ours}, the baseline's {theirs}"
    of_the_reward = cell.metric.key == "reward"
    if of_the_reward and cell.columns.get("reward") != baseline.columns.get("reward"):
        return f"{cell.metric.name} is measured by another reward"
    return ""


def cautions(cell: Cell, baseline: Cell) -> tuple[str, ...]:
    """Name what differs besides components and settings, and may be why results do.

    Returns:
        Versions (``torch``, ``training``) and parts of components of one name (``loss.source``).
    """
    names = [name for name in VERSIONS if _both_say(name, cell, baseline)]
    for kind in KINDS:
        ours, theirs = (side.columns.get(kind, "").partition(":")[0] for side in (cell, baseline))
        if ours and ours == theirs:
            parts = (f"{kind}.{part}" for part in ("version", "source", "contents"))
            names += [name for name in parts if _both_say(name, cell, baseline)]
    if ("algorithm" in cell.columns) != ("algorithm" in baseline.columns):
        names.append("the program that made the results")
    return tuple(names)


def _both_say(name: str, cell: Cell, baseline: Cell) -> bool:
    """Whether both sides say something, and not the same."""
    ours, theirs = cell.columns.get(name), baseline.columns.get(name)
    return bool(ours and theirs and ours != theirs)


def _unknown(cell: Cell, seeds: list[Seed]) -> str:
    """Say why a seed has no number."""
    if not all(seed.ok is False for seed in seeds if seed.score is None):
        return f"not every result has {cell.metric.name}"
    if cell.metric.key == SCORE.key:
        return "a failed seed has no known floor"
    return f"a failed seed has no {cell.metric.name}"
