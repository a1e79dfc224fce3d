"""A race on its way: what a look needs is run, all is judged, and what is open goes on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rlbench.grid.race import Standing, decide, wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlbench.grid.attempt import Planned
    from rlbench.grid.race import RacePlan, Scores
    from rlbench.grid.store import Record
    from rlbench.grid.supervisor import Outcome

    Execute = Callable[[Sequence[Planned], int | None], tuple[list[Record], Outcome]]
    Score = Callable[[Sequence[Record]], Mapping[str, float | None]]


@dataclass(frozen=True, kw_only=True)
class Raced:
    """How a race stands when the command ends.

    Attributes:
        plan: What was planned.
        standings: One for each comparison, in the order of the plan.
        records: What is on disk, by cell, for each seed of the pool in its order.
        stopped: Why it goes no further though something is open: ``interrupted``, ``budget``,
            ``failures`` (as many as were allowed, or all runs so far) or ``incomplete`` (a run did
            not come to its end); empty where all is decided, or the pool is used up.
        missing: Number of runs that the next look would take.
    """

    plan: RacePlan
    standings: tuple[Standing, ...]
    records: Mapping[str, Sequence[Record]]
    stopped: str = ""
    missing: int = 0

    @cached_property
    def used(self) -> dict[str, int]:
        """Seeds of each cell that some standing rests on."""
        used = dict.fromkeys(self.plan.cells, 0)
        for standing in self.standings:
            for key in (standing.pair.cell, standing.pair.other):
                used[key] = max(used[key], standing.n)
        return used

    @property
    def complete(self) -> int:
        """Number of the race's runs that are on disk."""
        return _complete(self.records)

    @property
    def ok(self) -> int:
        """Number of those that ended well."""
        return _ok(self.records)

    @property
    def exit_code(self) -> int:
        """0; 1 if a run failed, or is missing for the next look; 130 if interrupted."""
        if self.stopped == "interrupted":
            return 130
        failed = any(_bad(record) for records in self.records.values() for record in records)
        return int(failed or self.stopped in ("incomplete", "failures"))


def race(
    plan: RacePlan,
    runs: Mapping[str, Sequence[Planned]],
    read: Callable[[Sequence[Planned]], Sequence[Record]],
    execute: Execute,
    score: Score,
    *,
    budget: int | None = None,
    most_failures: int | None = None,
    retry: bool = False,
    step: int = 1,
    tell: Callable[[Sequence[Standing], Sequence[Standing]], None] = lambda *_: None,
) -> Raced:
    """Run look after look until all is decided, the pool is used up, or something stops it.

    Args:
        plan: What was planned.
        runs: The runs of each cell, one for each seed of the pool, in its order.
        read: Gives what is on disk of some runs, in their order.
        execute: Does runs, of which so many may fail (None: any number), see
            `rlbench.grid.launch.launch`.
        score: Gives the scores of runs that were tried, by their names; failures at the floor.
        budget: The most runs of the race that there may be, those on disk included.
        most_failures: Start nothing more after so many new failures.
        retry: Repeat what failed before, first; all looks are judged by what comes of it.
        step: As in `RacePlan.after`.
        tell: Hears the standings before and after each look.

    Returns:
        How it stands.
    """
    on_disk = _by_cell(runs, read([run for cell in runs.values() for run in cell]))
    before: tuple[Standing, ...] = tuple(Standing(pair=pair) for pair in plan.pairs)
    failed, stopped = 0, ""

    def do(todo: Sequence[Planned]) -> str:
        nonlocal failed, on_disk
        done, outcome = execute(todo, None if most_failures is None else most_failures - failed)
        failed += outcome.failed
        on_disk = _replaced(on_disk, done)
        if outcome.interrupted:
            return "interrupted"
        if most_failures is not None and failed >= most_failures:
            return "failures"
        return "" if all(record.complete for record in done) else "incomplete"

    bad = {record.run_id for records in on_disk.values() for record in records if _bad(record)}
    if retry and bad:
        stopped = do([run for cell in runs.values() for run in cell if run.run_id in bad])
    while True:
        standings = decide(plan, _scores(plan, on_disk, score), _failed(plan, on_disk))
        tell(before, standings)
        before, need = standings, wanted(plan, standings, step)
        todo = [
            runs[key][number]
            for number in range(len(plan.seeds))
            for key in plan.cells
            if number < need.get(key, 0) and not on_disk[key][number].complete
        ]
        if not need:
            stopped = ""
        elif not todo:  # what is complete and yet has no score can't be read
            stopped = stopped or "incomplete"
        elif _complete(on_disk) and not _ok(on_disk):  # no seed mends what is broken
            stopped = stopped or "failures"
        elif budget is not None and _complete(on_disk) + len(todo) > budget:
            stopped = stopped or "budget"
        if stopped or not need:
            break
        stopped = do(todo)
    return Raced(
        plan=plan, standings=standings, records=on_disk, stopped=stopped, missing=len(todo)
    )


def _scores(
    plan: RacePlan,
    on_disk: Mapping[str, Sequence[Record]],
    score: Score,
) -> Scores:
    known = score([record for records in on_disk.values() for record in records])
    return {
        key: {
            seed: known[record.run_id]
            for seed, record in zip(plan.seeds, records, strict=True)
            if record.run_id in known
        }
        for key, records in on_disk.items()
    }


def _failed(plan: RacePlan, on_disk: Mapping[str, Sequence[Record]]) -> dict[str, set[int]]:
    return {
        key: {seed for seed, record in zip(plan.seeds, records, strict=True) if _bad(record)}
        for key, records in on_disk.items()
    }


def _by_cell(
    runs: Mapping[str, Sequence[Planned]], records: Sequence[Record]
) -> dict[str, list[Record]]:
    named = {record.run_id: record for record in records}
    return {key: [named[run.run_id] for run in cell] for key, cell in runs.items()}


def _replaced(
    on_disk: Mapping[str, Sequence[Record]], new: Sequence[Record]
) -> dict[str, list[Record]]:
    named = {record.run_id: record for record in new}
    return {key: [named.get(r.run_id, r) for r in records] for key, records in on_disk.items()}


def _complete(on_disk: Mapping[str, Sequence[Record]]) -> int:
    return sum(record.complete for records in on_disk.values() for record in records)


def _ok(on_disk: Mapping[str, Sequence[Record]]) -> int:
    return sum(record.status == "ok" for records in on_disk.values() for record in records)


def _bad(record: Record) -> bool:
    """Whether a run was tried to its end and did not end well."""
    return record.complete and record.status != "ok"
