"""Each algorithm over several tasks: aggregates, and ranks among those that have all tasks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rlbench.errors import UsageError
from rlbench.report.cells.cell import labels_of
from rlbench.report.cells.metric import SCORE
from rlbench.report.cells.one_scale import on_one_scale, put_on_scales
from rlbench.report.cells.pairing import off_footing, task_of
from rlbench.report.tables.notes import name_of
from rlbench.report.text.spelling import natural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlbench.grid.normalisation import Scale
    from rlbench.report.cells.cell import Cell
    from rlbench.stats import Interval, Rank


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """One algorithm over the tasks.

    Attributes:
        columns: What tells it from the others, the columns of its cells but for the task.
        cells: By the label of their task.
        missing: Tasks without a value: not run, or with a failure whose worth nobody knows. Where
            there is one, there is no aggregate.
        iqm: Mean of the middle half of all runs; the headline.
        mean: Mean over runs, then tasks.
        gap: By how much runs fall short of 1; None too where 1 is no target.
        new_iqm: The IQM with an interval that speaks of new tasks, not only of new seeds.
        new_mean: The mean with such an interval.
        rank: Mean rank over tasks among the algorithms that have all; None too where it is alone.
    """

    columns: Mapping[str, str]
    cells: Mapping[str, Cell]
    missing: tuple[str, ...] = ()
    scores: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    iqm: Interval | None = None
    mean: Interval | None = None
    gap: Interval | None = None
    new_iqm: Interval | None = None
    new_mean: Interval | None = None
    rank: Rank | None = None

    @property
    def unknown(self) -> tuple[str, ...]:
        """The missing tasks in which a run failed whose worth nobody knows."""
        return tuple(t for t in self.missing if t in self.cells and self.cells[t].failed)

    @property
    def ok(self) -> int:
        """Number of runs that ended well, over all tasks."""
        return sum(len(cell.ok) for cell in self.cells.values())

    @property
    def tried(self) -> int:
        """Number of runs that ended, good or bad, over all tasks."""
        return sum(len(cell.tried) for cell in self.cells.values())


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Algorithms over tasks.

    Attributes:
        algorithms: The best IQM first, those without one last.
        labels: Columns that tell them apart.
        tasks: All tasks, in natural order.
        metric: Name of what is aggregated.
        higher: Whether more of the aggregates is better.
        scaled: Whether scores were put on one scale: ``here``, ``imported`` (on import), or empty.
        unit: Whether 0 and 1 mean something on it: scores were scaled so, or all are from 0 to 1.
        footing: Where cells of one task can't be compared, in words.
    """

    algorithms: tuple[Algorithm, ...]
    labels: tuple[str, ...]
    tasks: tuple[str, ...]
    metric: str
    higher: bool
    scaled: str
    unit: bool = False
    footing: tuple[str, ...] = ()

    @property
    def has_gap(self) -> bool:
        """Whether any algorithm has an optimality gap."""
        return any(one.gap is not None for one in self.algorithms)

    @property
    def has_ranks(self) -> bool:
        """Whether algorithms are ranked."""
        return any(one.rank is not None for one in self.algorithms)


def suite(
    cells: Sequence[Cell], scales: Mapping[str, Scale] | None = None, *, level: float = 0.95
) -> Suite:
    """Aggregate cells that differ in nothing but the task, one algorithm at a time.

    Failed seeds score the task's floor, put on the same scale. Intervals are those of
    `rlbench.stats.suite_interval` and `bootstrap_ranks`: new seeds, the same tasks; beside them
    stand those of `rlbench.stats.new_tasks_interval`. Where less is better, a scale has its better
    score as 1, so that more is better after it.

    Args:
        cells: In any order; it changes nothing.
        scales: By task, the scores that count as 0 and as 1. None takes scores as they are.
        level: Confidence level in (0, 1).

    Raises:
        UsageError: There are two cells for an algorithm in a task, tasks that have no scale or one
            that contradicts their direction, or tasks of both directions without a scale.
    """
    if scales is not None:
        cells = put_on_scales(cells, scales)
    canonical = sorted(cells, key=lambda cell: sorted((k, str(v)) for k, v in cell.columns.items()))
    groups = _groups(canonical)
    bare = [replace(one[0], columns=_but_for_task(one[0])) for one in groups]
    labels = tuple(labels_of(bare))
    tasks = tuple(sorted({task_of(cell) for cell in canonical}, key=natural))
    imported = "imported" if canonical and on_one_scale(canonical) else ""
    scaled = imported if scales is None else "here"
    higher = _one_direction(canonical)
    found = []
    for group, one in zip(groups, bare, strict=True):
        by_task = _by_task(group, name_of(one, labels))
        known = {
            task: one_task
            for task, cell in by_task.items()
            if (one_task := _values(cell)) is not None
        }
        missing = tuple(task for task in tasks if task not in known)
        found.append(Algorithm(columns=one.columns, cells=by_task, missing=missing, scores=known))
    target = bool(scaled) or _within_one(found)
    found = [
        one if one.missing else _aggregated(one, level, gap=target and higher) for one in found
    ]
    return Suite(
        algorithms=_ordered(_ranked(found, level, higher=higher), labels, higher=higher),
        labels=labels,
        tasks=tasks,
        metric=canonical[0].metric.name if canonical and scales is None else SCORE.name,
        higher=higher,
        scaled=scaled,
        unit=target,
        footing=_footing(canonical),
    )


def _groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    groups: dict[tuple[tuple[str, str], ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(sorted(_but_for_task(cell).items())), []).append(cell)
    return list(groups.values())


def _but_for_task(cell: Cell) -> dict[str, str]:
    return {name: text for name, text in cell.columns.items() if name.split(".")[0] != "task"}


def _by_task(group: Iterable[Cell], name: str) -> dict[str, Cell]:
    by_task: dict[str, Cell] = {}
    for cell in group:
        first = by_task.setdefault(task_of(cell), cell)
        if first is not cell:
            ours, theirs = cell.columns, first.columns
            names = sorted(n for n in {*ours, *theirs} if ours.get(n) != theirs.get(n))
            raise UsageError(
                f"{name} has two cells in task {task_of(cell)}, which differ in "
                f"{', '.join(names) or 'nothing that is shown'}; rlbench rm removes one"
            )
    return by_task


def _values(cell: Cell) -> dict[int, float] | None:
    """Scores of all tried seeds by number; None if there is none or one is unknown."""
    found = {seed.number: seed.score for seed in cell.tried if seed.score is not None}
    return found if found and len(found) == len(cell.tried) else None


def _one_direction(cells: Sequence[Cell]) -> bool:
    """Tell which way is better for all."""
    by_task = {task_of(cell): cell.metric.higher for cell in cells}
    if len(set(by_task.values())) > 1:
        less = ", ".join(task for task, higher in by_task.items() if not higher)
        raise UsageError(
            f"less is better in {less} and more in the others, so that no mean over them says "
            "anything; --normalise FILE puts all on one scale"
        )
    return all(by_task.values())


def _within_one(algorithms: Iterable[Algorithm]) -> bool:
    """Whether all scores are from 0 to 1, so that 1 is the most there is."""
    every = [x for one in algorithms for task in one.scores.values() for x in task.values()]
    return bool(every) and all(0 <= one <= 1 for one in every)


def _aggregated(one: Algorithm, level: float, *, gap: bool) -> Algorithm:
    from rlbench.stats import new_tasks_interval, suite_interval

    values = {task: list(scores.values()) for task, scores in one.scores.items()}
    return replace(
        one,
        new_iqm=new_tasks_interval(values, "iqm", level),
        new_mean=new_tasks_interval(values, "mean", level),
        iqm=suite_interval(values, "iqm", level),
        mean=suite_interval(values, "mean", level),
        gap=suite_interval(values, "optimality_gap", level) if gap else None,
    )


def _ranked(
    algorithms: Sequence[Algorithm],
    level: float,
    *,
    higher: bool,
) -> list[Algorithm]:
    """Rank the algorithms that have all tasks; nobody is ranked alone."""
    from rlbench.stats import bootstrap_ranks

    complete = [number for number, one in enumerate(algorithms) if not one.missing]
    if len(complete) < 2:
        return list(algorithms)
    sign = 1 if higher else -1
    ranks = bootstrap_ranks(
        {
            f"{number:06}": {
                task: [sign * one for one in scores.values()]
                for task, scores in algorithms[number].scores.items()
            }
            for number in complete
        },
        level,
    )
    return [replace(one, rank=ranks.get(f"{number:06}")) for number, one in enumerate(algorithms)]


def _ordered(
    algorithms: Sequence[Algorithm], labels: Sequence[str], *, higher: bool
) -> tuple[Algorithm, ...]:
    """Put the best IQM first, in full precision; then by labels in natural order."""

    def key(one: Algorithm) -> tuple[bool, float, list[object]]:
        value = 0.0 if one.iqm is None else one.iqm.mid
        names: list[object] = [natural(one.columns.get(name, "")) for name in labels]
        return one.iqm is None, -value if higher else value, names

    return tuple(sorted(algorithms, key=key))


def _footing(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Say where cells of one task can't be compared with each other."""
    first: dict[str, Cell] = {}
    found: dict[str, None] = {}
    for cell in cells:
        task = task_of(cell)
        why = off_footing(cell, first.setdefault(task, cell))
        if why:
            found.setdefault(f"task {task}: {why.replace(', the baseline', ', another')}")
    return tuple(found)
