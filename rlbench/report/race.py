"""A race from its first look to its last: run what a look needs, judge, go on where it is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.errors import UsageError
from rlbench.grid import race
from rlbench.grid.identity import Catalogue
from rlbench.grid.store import Record, Store
from rlbench.report.baseline import spell_cell
from rlbench.report.cells import cells, labels_of

if TYPE_CHECKING:
    from pathlib import Path

    from rlbench.grid.attempt import Planned
    from rlbench.grid.race import Plan, State
    from rlbench.report.cells import Cell

Execute = Callable[[list["Planned"]], bool]
"""Runs some runs; says whether all is well enough to go on."""


@dataclass(frozen=True, kw_only=True)
class Track:
    """The cells of a race.

    Attributes:
        cells: Name to cell, as it is before anything ran.
        runs: Name and seed to the run.
    """

    cells: Mapping[str, Cell]
    runs: Mapping[tuple[str, int], Planned]

    def first_runs(self, seed: int) -> dict[str, str]:
        """Name the run of each cell at one seed."""
        return {name: self.runs[name, seed].run_id for name in self.cells}


@dataclass(frozen=True, kw_only=True)
class Race:
    """How a race ended, or where it stopped.

    Attributes:
        plan: Its plan.
        state: How it stands.
        cells: Name to cell with all results that are there.
        early: Runs that were there before the plan was made.
        out_of_budget: Whether the next look would cost more than is to be spent.
    """

    plan: Plan
    state: State
    cells: Mapping[str, Cell]
    early: int = 0
    out_of_budget: bool = False

    @property
    def full(self) -> int:
        """Runs that the whole grid would take."""
        return len(self.plan.cells) * len(self.plan.seeds)


def lay_out(planned: Sequence[Planned], store: Store) -> Track:
    """Name the cells of a grid, as tables do.

    Args:
        planned: All runs of the grid.
        store: Where they would be.

    Raises:
        UsageError: There are several tasks: scores of two tasks can't be compared.
    """
    catalogue = Catalogue()
    records = [
        Record(run.run_id, store.run_folder(run.run_id), catalogue.canonical(run.spec), None, None)
        for run in planned
    ]
    by_id = {run.run_id: run for run in planned}
    found = cells(records)
    tasks = sorted({cell.columns.get("task", "") for cell in found})
    if len(tasks) > 1:
        raise UsageError(f"a race has one task; there are {', '.join(tasks)}: give one with -t")
    labels = labels_of(found)
    named = {spell_cell(cell, labels): cell for cell in found}
    return Track(
        cells=named,
        runs={
            (name, seed.number): by_id[seed.record.run_id]
            for name, cell in named.items()
            for seed in cell.seeds
        },
    )


def scores_of(track: Track, store: Store) -> dict[str, dict[int, float]]:
    """Read what has ended, failures at the task's floor."""
    return {
        name: {seed.number: seed.score for seed in cell.tried if seed.score is not None}
        for name, cell in results_of(track, store).items()
    }


def results_of(track: Track, store: Store) -> dict[str, Cell]:
    """Read the cells of a race as they are on disk now."""
    names = {run.run_id: name for (name, _), run in track.runs.items()}
    specs = {
        seed.record.run_id: seed.record for cell in track.cells.values() for seed in cell.seeds
    }
    records = [
        record if record.spec is not None else specs[record.run_id]
        for record in store.records(names)
    ]
    return {names[cell.seeds[0].record.run_id]: cell for cell in cells(records)}


def run_race(
    plan: Plan,
    track: Track,
    root: Path,
    execute: Execute,
    *,
    budget: int | None = None,
    tell: Callable[[State], None] | None = None,
) -> Race:
    """Race until all comparisons are decided, the seeds are spent or the budget is gone.

    Args:
        plan: The plan; it is written to the folder before anything runs, see `race.hold`.
        track: The cells.
        root: Folder of results.
        execute: Runs what a look needs. What does not end well scores the task's floor; where a run
            was killed, or something stopped it, the race stops and the same command goes on.
        budget: Runs that may count for looks in all; None sets no limit.
        tell: Hears how it stands after each look.
    """
    store = Store(root)
    store.check_writable()
    before = sum(len(of) for of in scores_of(track, store).values())
    is_new = race.hold(root, plan, track.first_runs(plan.seeds[0]))
    early = before if is_new else 0
    looked: int | None = -1
    while True:
        state = race.decide(plan, scores_of(track, store))
        if tell and state.look != looked:
            tell(state)
        looked = state.look
        if state.look is None:
            return Race(plan=plan, state=state, cells=results_of(track, store), early=early)
        wanted = [track.runs[cell, seed] for cell, seeds in state.missing.items() for seed in seeds]
        over = budget is not None and _cost(plan, state) > budget
        if over or not execute(wanted) or _is_stuck(state, track, store):
            return Race(
                plan=plan,
                state=race.decide(plan, scores_of(track, store)),
                cells=results_of(track, store),
                early=early,
                out_of_budget=over,
            )


def _cost(plan: Plan, state: State) -> int:
    """Runs that have counted once the next look is done."""
    pool = plan.looks[(state.look or 1) - 1]
    last = plan.looks[state.look - 2] if state.look and state.look > 1 else 0
    racing = {cell for one in state.open for cell in one.pair}
    return state.spent + len(racing) * (pool - last)


def _is_stuck(state: State, track: Track, store: Store) -> bool:
    """Whether what was to be run is still not there: it was killed, or its floor is unknown."""
    scores = scores_of(track, store)
    return any(seed not in scores[cell] for cell, seeds in state.missing.items() for seed in seeds)
