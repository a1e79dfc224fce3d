"""The seeds of a cell beside those of its baseline: the pairs, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.report.cells.cell import KINDS, VERSIONS
from rlbench.report.cells.metric import SCORE

if TYPE_CHECKING:
    from rlbench.report.cells.cell import Cell, Seed

# on these stands what every run of a task is measured by, and what it starts from
_FOOTING = ("eval_prompts", "base_score", "base_updates", "base_seed")


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """What a cell and its baseline reached at their common seeds.

    Attributes:
        seeds: Numbers of the seeds that both have tried, in ascending order.
        ours: What the cell reached there; empty where there is a `reason`.
        theirs: What the baseline reached.
        outcomes: 1 where the cell does better, -1 where the baseline does, 0 for a tie.
        failures: How many of the pairs hold a failed run.
        sign: 1 where more is better, -1 where less is.
        reason: Why nothing can be subtracted; empty where it can.
        comparable: Whether both are on one footing, so that more seeds would help.
    """

    seeds: tuple[int, ...] = ()
    ours: tuple[float, ...] = ()
    theirs: tuple[float, ...] = ()
    outcomes: tuple[int, ...] = ()
    failures: int = 0
    sign: int = 1
    reason: str = ""
    comparable: bool = True


def task_of(cell: Cell) -> str:
    """Name the task of a cell; empty where it has none."""
    return cell.columns.get("task", "")


def pair(cell: Cell, baseline: Cell, *, ended_well: bool = False) -> Pairs:
    """Pair by seed, never by position.

    A failed seed counts as `Seed.score` says: with the task's floor. Of another metric than the
    score no floor is known, so that a failure leaves no test there.

    Args:
        cell: What is compared.
        baseline: What it is compared with.
        ended_well: Only the seeds that ended well on both sides.
    """
    ours = {seed.number: seed for seed in (cell.ok if ended_well else cell.tried)}
    theirs = {seed.number: seed for seed in (baseline.ok if ended_well else baseline.tried)}
    common = tuple(sorted(ours.keys() & theirs.keys()))
    sign = cell.metric.sign
    why = off_footing(cell, baseline)
    if why:
        return Pairs(seeds=common, sign=sign, reason=why, comparable=False)
    both = [(ours[number], theirs[number]) for number in common]
    failures = sum(not (one.ok and other.ok) for one, other in both)
    known = [
        (one.score, other.score)
        for one, other in both
        if one.score is not None and other.score is not None
    ]
    if not common or len(known) < len(common):
        reason = _unknown(cell, both) if common else "no common seed"
        return Pairs(seeds=common, failures=failures, sign=sign, reason=reason)
    return Pairs(
        seeds=common,
        ours=tuple(float(one) for one, _ in known),
        theirs=tuple(float(other) for _, other in known),
        outcomes=tuple(_outcome(one, other, sign) for one, other in both),
        failures=failures,
        sign=sign,
    )


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


def _outcome(one: Seed, other: Seed, sign: int) -> int:
    """Say who does better; failures tie with each other and lose to the rest."""
    ours, theirs = (
        (seed.ok, sign * seed.score if seed.ok and seed.score is not None else 0.0)
        for seed in (one, other)
    )
    return int(ours > theirs) - int(ours < theirs)


def _unknown(cell: Cell, both: list[tuple[Seed, Seed]]) -> str:
    """Say why a common seed has no number."""
    of_failures = all(seed.ok is False for pair in both for seed in pair if seed.score is None)
    if not of_failures:
        return f"not every result has {cell.metric.name}"
    if cell.metric.key == SCORE.key:
        return "a failed seed has no known floor"
    return f"a failed seed has no {cell.metric.name}"
