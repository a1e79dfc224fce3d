"""A grid laid out as a race: which cells are compared, by what plan, and what that may cost."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from rlbench.errors import UsageError
from rlbench.grid.identity import Catalogue
from rlbench.grid.race import Pair, RacePlan, key_of, usual_looks
from rlbench.grid.store import Record
from rlbench.report.cells.baseline import but_for_task, find, spell_cell
from rlbench.report.cells.cell import cells, labels_of
from rlbench.report.cells.pairing import off_footing, task_of
from rlbench.report.plan import expected_s, survey
from rlbench.report.progress import count, spell_seconds
from rlbench.report.text.spelling import spell_seeds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlbench.grid.attempt import Planned
    from rlbench.grid.store import Store
    from rlbench.plugin.registry import Registry
    from rlbench.report.cells.cell import Cell


@dataclass(frozen=True, kw_only=True)
class Course:
    """What is raced.

    Attributes:
        plan: The plan.
        cells: Cells by their keys, as they are before anything runs; those of the plan.
        runs: The runs of each cell, in the order of the pool.
        labels: Columns that tell the cells apart.
        baselines: What the others are compared with, by task; none where all pairs are compared.
        left_out: What of the grid is in no comparison, and why; a line each.
    """

    plan: RacePlan
    cells: Mapping[str, Cell]
    runs: Mapping[str, tuple[Planned, ...]]
    labels: tuple[str, ...]
    baselines: Mapping[str, Cell]
    left_out: tuple[str, ...] = ()

    @property
    def planned(self) -> list[Planned]:
        """All runs that it may take, those of one seed together."""
        return [run for seed in zip(*self.runs.values(), strict=True) for run in seed]


def course(
    planned: Sequence[Planned],
    store: Store,
    *,
    baseline: str | None = None,
    load: Callable[[], Registry],
    anytime: bool = False,
    looks: int | None = None,
    alpha: float = 0.05,
    margin: float | None = None,
) -> Course:
    """Lay out a grid as a race.

    Args:
        planned: Its runs; the order of seeds is that of the pool.
        store: Where their results are or will be.
        baseline: The cell that others are compared with, as `rlbench.report.cells.baseline.find`
            reads it; None compares all pairs of each task.
        load: Gives the registry, for spellings that no cell has.
        anytime: Look after every seed, not at planned looks.
        looks: Number of planned looks; None chooses.
        alpha: Error rate of the whole race.
        margin: Differences within it are equivalent.

    Raises:
        UsageError: There is nothing to compare, no such baseline, or no plan for so many seeds.
    """
    runs: dict[tuple[int, int], list[Planned]] = {}
    for run in planned:
        key = (id(run.spec.selections), id(run.spec.settings))
        runs.setdefault(key, []).append(run)
    catalogue = Catalogue()
    records = [
        Record(run.run_id, store.run_folder(run.run_id), catalogue.canonical(run.spec), None, None)
        for run, *_ in runs.values()
    ]
    found = cells(records)
    labels = labels_of(found)
    keys = {record.run_id: key_of(record.spec or {}) for record in records}
    of_cell = {id(cell): keys[cell.seeds[0].record.run_id] for cell in found}
    names = {of_cell[id(cell)]: spell_cell(cell, labels) for cell in found}
    baselines = {} if baseline is None else find(found, baseline, load)
    pairs, left_out = _pairs(found, baselines, labels)
    seeds = tuple(run.spec.seed for run in next(iter(runs.values())))
    plan = RacePlan(
        pairs=tuple(
            Pair(cell=of_cell[id(one)], other=of_cell[id(other)], sign=one.metric.sign)
            for one, other in pairs
        ),
        seeds=seeds,
        looks=None if anytime else looks or usual_looks(len(seeds)),
        alpha=alpha,
        margin=margin,
        names=names,
    )
    in_order = {keys[of_key[0].run_id]: tuple(of_key) for of_key in runs.values()}
    return Course(
        plan=plan,
        cells={of_cell[id(cell)]: cell for cell in found if of_cell[id(cell)] in plan.cells},
        runs={key: of_key for key, of_key in in_order.items() if key in plan.cells},
        labels=tuple(labels),
        baselines=baselines,
        left_out=left_out,
    )


def scores(records: Sequence[Record]) -> dict[str, float | None]:
    """Give the scores of runs that were tried, by name: failures at the task's floor.

    None where a failed run has no known floor.
    """
    return {seed.record.run_id: seed.score for cell in cells(records) for seed in cell.tried}


def forecast(made: Course, store: Store, *, workers: int, seen: int = 0) -> list[str]:
    """Say what a race will take at most.

    Args:
        made: The race.
        store: The results.
        workers: Runs at the same time.
        seen: Runs that were complete before the plan was.

    Returns:
        Lines.
    """
    plan = made.plan
    n, comparisons = len(plan.seeds), count(len(plan.pairs), "comparison")
    in_order = plan.seeds == tuple(range(plan.seeds[0], plan.seeds[-1] + 1))
    which = spell_seeds(plan.seeds) if in_order else ",".join(map(str, plan.seeds))
    against = ""
    if made.baselines:
        names = but_for_task(made.labels) if len(made.baselines) > 1 else made.labels
        spelled = (spell_cell(cell, names) for cell in made.baselines.values())
        against = f" with {' or '.join(dict.fromkeys(spelled))}"
    if plan.looks is None:
        looks = f"a look after every seed from the {_ordinal(plan.stops.start)} on"
    else:
        looks = f"{count(plan.looks, 'look')}, one after every {n // plan.looks}"
    total = len(plan.cells) * n
    surveyed = survey(made.planned, store)
    to_do = [cell.to_do(retry=False) + cell.states["running"] for cell in surveyed]
    text = f"at most {count(total, 'run')}"
    if sum(to_do) < total:
        text += f", {total - sum(to_do):,} of them there already"
    if sum(to_do):
        others = map(store.record, store.names())
        text += f", {_time(to_do, expected_s(surveyed, others), workers)}"
    lines = [
        f"{comparisons}{against}; pool of {count(n, 'seed')} ({which}): {looks}",
        text,
        *made.left_out,
    ]
    if seen:
        lines.append(f"warning: {seen_text(seen)}")
    return lines


def seen_text(seen: int) -> str:
    """Say what results from before a plan mean for it."""
    them = "was" if seen == 1 else "were"
    return (
        f"{count(seen, 'run')} of this race {them} there before its plan. If cells, seeds, looks "
        "or margin were chosen by what they showed, the error rate does not hold: race over seeds "
        "that nobody has looked at (-s)."
    )


def _pairs(
    found: Sequence[Cell], baselines: Mapping[str, Cell], labels: Sequence[str]
) -> tuple[list[tuple[Cell, Cell]], tuple[str, ...]]:
    """Pair cells on one footing; and name what is in no pair, with the reason."""
    if baselines:
        chosen = list(baselines.values())
        wanted = [
            (cell, baselines.get(task_of(cell)))
            for cell in found
            if not any(cell is one for one in chosen)
        ]
    else:
        wanted = [(a, b) for a, b in combinations(found, 2) if task_of(a) == task_of(b)]
    pairs, left_out = [], []
    for one, other in wanted:
        why = off_footing(one, other) if other else "no baseline in its task"
        if other is not None and not why:
            pairs.append((one, other))
        else:
            against = f" - {spell_cell(other, labels)}" if other else ""
            left_out.append(f"not raced: {spell_cell(one, labels)}{against}: {why}")
    if not pairs:
        names = ", ".join(spell_cell(cell, labels) for cell in found)
        why = f" ({left_out[0]})" if left_out else ""
        raise UsageError(f"nothing to race: no two cells can be compared of {names}{why}")
    return pairs, tuple(left_out)


def _time(to_do: Sequence[int], seconds: Sequence[float | None], workers: int) -> str:
    """Say how long runs take, as `rlbench plan` does."""
    known = [(n, s) for n, s in zip(to_do, seconds, strict=True) if n and s is not None]
    if not known:
        return "no timing yet"
    work = sum(n * s for n, s in known) / workers
    text = f"about {spell_seconds(max(work, *(s for _, s in known)))} at {workers} at a time"
    unknown = sum(to_do) - sum(n for n, _ in known)
    return f"{text}, and {unknown:,} without timing yet" if unknown else text


def _ordinal(n: int) -> str:
    ending = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"
