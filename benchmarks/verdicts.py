"""Simulate what ``rlbench compare`` claims where there is nothing to claim, and where there is.

Run ``python benchmarks/verdicts.py``. Runs are made up in memory and go the whole way: `cells`
groups them, `tuning.tune` chooses a value where one is tuned, `baseline.find` finds the baseline of
each task, `comparison.compare` judges, and what counts are the marks that the table prints. A claim
is any ``+`` or ``-`` in a table without differences. The tables are printed and written to
``statistics.md`` beside this file, as a section of their own. It takes about three minutes on one
core, and leaves with status 1 when a promise is broken.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from promises import ALPHA, RHO, Line, report

from rlbench.grid.importing import SEEDS_COUNTED
from rlbench.grid.store import Record
from rlbench.report.cells.baseline import find
from rlbench.report.cells.cell import cells
from rlbench.report.cells.metric import metric
from rlbench.report.cells.pairing import Pairs
from rlbench.report.compare.comparison import compare
from rlbench.report.compare.family import judge
from rlbench.report.compare.tuning import Axis, tune
from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from rlbench.plugin.registry import Registry

SPREAD = 0.05  # standard deviation of a cell's scores over its seeds
RATES = (1e-4, 5e-4, 1e-3)
KINDS = {"loss": "clip", "kl": "none", "reward": "true", "model": "lstm"}


@dataclass(frozen=True, kw_only=True)
class Table:
    """What is simulated.

    Attributes:
        seeds: Seeds of each cell.
        others: Cells beside the baseline, in each task.
        tasks: Number of tasks.
        tuned: Whether each cell has three learning rates, and one is chosen for it.
        failing: Chance that a run fails; a failure scores 0.
        lower: Whether less is better.
        shift: What the first cell beside the baseline has more, in standard deviations.
        few: Seeds of the last cell, where it has fewer than the others.
        apart: Whether the runs of all cells are independent, their seeds counted on import.
        rate_matters: What the best learning rate gives, in standard deviations; which one is best
            differs between cells.
    """

    seeds: int
    others: int = 5
    tasks: int = 1
    tuned: bool = False
    failing: float = 0.0
    lower: bool = False
    shift: float = 0.0
    few: int | None = None
    apart: bool = False
    rate_matters: float = 0.0


class Runs:
    """Makes the records of one table again and again; what they share is made once."""

    def __init__(self, table: Table) -> None:
        self.table = table
        rates = RATES if table.tuned else RATES[1:2]
        names = ["base", *(f"other{n}" for n in range(table.others))]
        self.specs = [
            self._spec(task, name, rate)
            for task in range(table.tasks)
            for name in names
            for rate in rates
        ]
        self.shape = (table.tasks, len(names), len(rates))

    def _spec(self, task: int, name: str, rate: float) -> dict[str, Any]:
        labels = KINDS | {"estimator": name, "task": f"task{task}"}
        return {
            "schema": 1,
            "components": {
                kind: {"name": label, "label": label, "options": {}, "owner": {}, "source": "a"}
                for kind, label in labels.items()
            },
            "settings": Settings().values() | {"lr": rate},
            "torch": "2",
            "training": "a",
        }

    def draw(self, rng: np.random.Generator) -> list[Record]:
        """Draw scores: the luck of a seed is that of all cells of a task."""
        table = self.table
        sharing = self.shape if table.apart else (table.tasks, 1, 1)
        luck = rng.normal(size=(*sharing, table.seeds)) * math.sqrt(RHO)
        own = rng.normal(size=(*self.shape, table.seeds)) * math.sqrt(1 - RHO)
        z = luck + own
        z[:, 1] += table.shift
        if table.rate_matters:
            for cell in range(self.shape[1]):
                z[:, cell, cell % self.shape[2]] += table.rate_matters
        scores = (0.5 + SPREAD * z).reshape(-1, table.seeds)
        failed = rng.random(scores.shape) < table.failing
        return list(self._records(scores, failed))

    def _records(self, scores: NDArray[np.float64], failed: NDArray[np.bool_]) -> Iterator[Record]:
        for number, spec in enumerate(self.specs):
            last = number == len(self.specs) - 1
            seeds = self.table.few if last and self.table.few else self.table.seeds
            for seed in range(seeds):
                run_id = f"{number}-s{seed}"
                ended: dict[str, Any] = {"status": "diverged", "floor": 0.0}
                if not failed[number, seed]:
                    ended = {"status": "ok", "floor": 0.0, "score": float(scores[number, seed])}
                if self.table.apart:
                    ended["provenance"] = {SEEDS_COUNTED: True}
                yield Record(run_id, Path(run_id), spec | {"seed": seed}, ended, None)


def verdicts(runs: Runs, rng: np.random.Generator) -> list[str]:
    """Draw one table and judge it: the marks of all rows but the baselines, first cell first."""
    found = cells(runs.draw(rng), metric("score", "lower" if runs.table.lower else "higher"))
    if runs.table.tuned:
        found = tune(found, Axis(name="lr")).cells
    made = compare(found, find(found, "base", _no_registry))
    marks = {
        (row.cell.columns["task"], row.cell.columns["estimator"]): row.verdict for row in made.rows
    }
    return [mark for (_, name), mark in sorted(marks.items()) if name != "base"]


def one_more_failure(runs: int) -> Iterable[Line]:
    """Measure how often one failure more of a cell makes it better that was not before."""
    for number, apart in enumerate((False, True)):
        rng = np.random.default_rng([14, number])
        hits = sum(_made_better(rng, apart=apart) for _ in range(5 * runs))
        what = f"{'independent runs' if apart else 'pairs'}, 3 to 12, a quarter fails"
        note = "see rlbench.stats.crashes"
        yield Line(what=what, rate=hits / (5 * runs), runs=5 * runs, most=0.01, note=note)


def _made_better(rng: np.random.Generator, *, apart: bool) -> bool:
    """Draw two sides with failures, let one run more fail, and judge before and after."""
    n = int(rng.integers(3, 13))
    ours, theirs = rng.normal(size=n) + rng.choice([0.0, 1.0, 2.0]), rng.normal(size=n)
    failed, lost = rng.random((2, n)) < 0.25
    more = failed.copy()
    more[rng.integers(n)] = True
    floor = min(-5.0, ours.min(), theirs.min())
    marks = []
    for gone in (failed, more):
        pairs = Pairs(
            seeds=tuple(range(n)),
            ours=tuple(np.where(gone, floor, ours).tolist()),
            theirs=tuple(np.where(lost, floor, theirs).tolist()),
            failed=(tuple(gone.tolist()), tuple(lost.tolist())),
            failures=int((gone | lost).sum()),
            independent=apart,
        )
        _, judged = judge({0: pairs}, level=1 - ALPHA, margin=None, effect=None)
        marks.append(judged[0].verdict)
    return marks[1] == "+" != marks[0]


def _no_registry() -> Registry:
    raise AssertionError("all is there letter for letter")


NULLS = {
    "5 cells, n = 3": Table(seeds=3),
    "5 cells, n = 5": Table(seeds=5),
    "5 cells, n = 6": Table(seeds=6),
    "5 cells, n = 7": Table(seeds=7),
    "5 cells, n = 10": Table(seeds=10),
    "5 cells, n = 10, less is better": Table(seeds=10, lower=True),
    "2 cells in each of 3 tasks, n = 5": Table(seeds=5, others=2, tasks=3),
    "2 cells in each of 3 tasks, n = 10": Table(seeds=10, others=2, tasks=3),
    "2 cells, a tenth of the runs fails, n = 5": Table(seeds=5, others=2, failing=0.1),
    "2 cells, a tenth of the runs fails, n = 10": Table(seeds=10, others=2, failing=0.1),
    "2 cells, a quarter of the runs fails, n = 5": Table(seeds=5, others=2, failing=0.25),
    "2 cells, a quarter of the runs fails, n = 10": Table(seeds=10, others=2, failing=0.25),
    "1 cell, half of the runs fails, n = 5": Table(seeds=5, others=1, failing=0.5),
    "1 cell, half of the runs fails, n = 10": Table(seeds=10, others=1, failing=0.5),
    "5 cells, n = 10, one of 5": Table(seeds=10, few=5),
    "5 cells, independent runs, n = 5": Table(seeds=5, apart=True),
    "5 cells, independent runs, a tenth fails, n = 10": Table(seeds=10, apart=True, failing=0.1),
    "3 cells, lr tuned, all alike, n = 4": Table(seeds=4, others=3, tuned=True),
    "3 cells, lr tuned, all alike, n = 10": Table(seeds=10, others=3, tuned=True),
    "3 cells, lr tuned, all alike, n = 20": Table(seeds=20, others=3, tuned=True),
}
EFFECTS = {
    "1 cell, n = 5": Table(seeds=5, others=1, shift=1.0),
    "1 cell, n = 10": Table(seeds=10, others=1, shift=1.0),
    "5 cells, n = 5": Table(seeds=5, shift=1.0),
    "5 cells, n = 10": Table(seeds=10, shift=1.0),
    "3 cells, lr tuned, n = 10": Table(seeds=10, others=3, tuned=True, shift=1.0),
    "3 cells, lr tuned, n = 20": Table(seeds=20, others=3, tuned=True, shift=1.0),
}


def claims(runs: int) -> Iterable[Line]:
    """Measure how often a table claims any difference where there is none."""
    for number, (name, table) in enumerate(NULLS.items()):
        rng = np.random.default_rng([4, number])
        made = Runs(table)
        hits = [bool({"+", "-"} & set(verdicts(made, rng))) for _ in range(runs)]
        yield Line(what=name, rate=sum(hits) / runs, runs=runs, most=ALPHA)


def untuned(runs: int) -> Iterable[Line]:
    """Measure how often best values that were chosen and compared on the same seeds mislead."""
    for number, n in enumerate((5, 10)):
        rng = np.random.default_rng([5, number])
        made = Runs(Table(seeds=n, others=1, tuned=True))
        hits = [_best_against_one(made, rng) for _ in range(runs)]
        what = f"best of 3 lr against the default lr of the baseline, same seeds, n = {n}"
        note = "why --tune halves the seeds"
        yield Line(what=what, rate=sum(hits) / runs, runs=runs, note=note)


def _best_against_one(made: Runs, rng: np.random.Generator) -> bool:
    """Do what --tune does not: take the best value of all, and compare it where it was best."""
    found = cells(made.draw(rng))
    base = next(
        cell
        for cell in found
        if cell.columns["estimator"] == "base" and cell.columns["lr"] == "0.0005"
    )
    tuned = [cell for cell in found if cell.columns["estimator"] != "base"]
    best = max(tuned, key=lambda cell: cell.score.mid if cell.score else 0.0)
    return any(row.verdict in ("+", "-") for row in compare([base, best], base).rows)


def mistuned(runs: int) -> Iterable[Line]:
    """Measure how often tuned cells are told apart that are alike at their best values only."""
    for number, n in enumerate((10, 20)):
        rng = np.random.default_rng([7, number])
        made = Runs(Table(seeds=n, others=3, tuned=True, rate_matters=1.0))
        hits = [bool({"+", "-"} & set(verdicts(made, rng))) for _ in range(runs)]
        what = f"3 cells, each one sd better at an lr of its own, n = {n}"
        note = "true of the values that were chosen: half of the seeds can choose wrongly"
        yield Line(what=what, rate=sum(hits) / runs, runs=runs, note=note)


def power(runs: int) -> Iterable[Line]:
    """Measure how often a cell that is better by one standard deviation is called so."""
    for number, (name, table) in enumerate(EFFECTS.items()):
        rng = np.random.default_rng([6, number])
        made = Runs(table)
        hits = [verdicts(made, rng)[0] == "+" for _ in range(runs)]
        yield Line(what=name, rate=sum(hits) / runs, runs=runs)


INTRODUCTION = (
    "Written by `python benchmarks/verdicts.py`: {runs} made-up tables a line, the whole way "
    "from records of runs to the marks in the table."
)

if __name__ == "__main__":
    sys.exit(
        report(
            "## What `rlbench compare` makes of it",
            INTRODUCTION,
            dict.fromkeys((claims, one_more_failure, untuned, mistuned, power), 1.0),
            runs=2000,
            about=__doc__,
        )
    )
