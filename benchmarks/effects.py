"""Simulate `rlbench effects`: how often it claims an effect, where there is one and where not.

Run ``python benchmarks/effects.py``. Runs are made up in memory and go the whole way: `cells`
groups them and `effects` lays them out as grids and judges all contrasts as one family. A claim is
any ``+`` or ``-``. The tables are printed and written to ``statistics.md`` beside this file, as a
section of their own. It takes about three minutes on one core, and leaves with status 1 when a
promise is broken.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from promises import ALPHA, RHO, Line, report

from rlbench.grid.store import Record
from rlbench.report.cells.cell import cells
from rlbench.report.effects.contrasts import effects
from rlbench.report.effects.design import grids
from rlbench.report.effects.partners import best_partners
from rlbench.stats import mean_interval
from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from rlbench.stats import Interval

SPREAD = 0.05  # standard deviation of a cell's scores over its seeds
KINDS = ("estimator", "loss", "kl")
OTHERS = {"reward": "true", "model": "lstm"}


@dataclass(frozen=True, kw_only=True)
class Design:
    """What is simulated.

    Attributes:
        sizes: Levels of each factor.
        seeds: Seeds of each cell.
        tasks: Number of tasks, each with its own luck of the seeds.
        main: What the first level of the first factor has more, in standard deviations.
        interaction: What it has more only with the first level of the second factor.
        turning: What each level of the first factor has more with a level of the second of its own,
            in standard deviations: all are alike at their best.
        uneven: How much more the scores of each level of the first factor spread than those of the
            level before.
        failing: Chance that a run fails, each for itself; a failure scores 0, the floor.
    """

    sizes: tuple[int, ...]
    seeds: int
    tasks: int = 1
    main: float = 0.0
    interaction: float = 0.0
    turning: float = 0.0
    uneven: float = 1.0
    failing: float = 0.0


class Runs:
    """Makes the records of one grid again and again; what they share is made once."""

    def __init__(self, design: Design) -> None:
        self.design = design
        names = KINDS[: len(design.sizes)]
        places = product(*(range(size) for size in design.sizes))
        levels = [dict(zip(names, (f"level{n}" for n in at), strict=True)) for at in places]
        self.specs = [
            self._spec(at | {"task": f"task{task}"})
            for task in range(design.tasks)
            for at in levels
        ]

    def _spec(self, levels: dict[str, str]) -> dict[str, Any]:
        labels = dict.fromkeys(KINDS, "same") | OTHERS | levels
        return {
            "schema": 1,
            "components": {
                kind: {"name": label, "label": label, "options": {}, "owner": {}, "source": "a"}
                for kind, label in labels.items()
            },
            "settings": Settings().values(),
            "torch": "2",
            "training": "a",
        }

    def draw(self, rng: np.random.Generator) -> list[Record]:
        """Draw scores: all cells of a task share the luck of a seed."""
        scores = [self._task(rng) for _ in range(self.design.tasks)]
        found = np.concatenate(scores)
        return list(self._records(found, rng.random(found.shape) < self.design.failing))

    def _task(self, rng: np.random.Generator) -> NDArray[np.float64]:
        design = self.design
        luck = rng.normal(size=design.seeds) * math.sqrt(RHO)
        z = luck + rng.normal(size=(*design.sizes, design.seeds)) * math.sqrt(1 - RHO)
        for level in range(design.sizes[0]):
            z[level] *= design.uneven**level
        z[0] += design.main
        if design.interaction:
            z[0, 0] += design.interaction
        if design.turning:
            for level in range(design.sizes[0]):
                z[level, level % design.sizes[1]] += design.turning
        return (0.5 + SPREAD * z).reshape(-1, design.seeds)

    def _records(self, scores: NDArray[np.float64], failed: NDArray[np.bool_]) -> Iterator[Record]:
        for number, spec in enumerate(self.specs):
            for seed in range(self.design.seeds):
                run_id = f"{number}-s{seed}"
                ended: dict[str, Any] = {"status": "diverged", "floor": 0.0}
                if not failed[number, seed]:
                    ended = {"status": "ok", "floor": 0.0, "score": float(scores[number, seed])}
                yield Record(run_id, Path(run_id), spec | {"seed": seed}, ended, None)


def claims(runs: Runs, rng: np.random.Generator, *factors: str) -> bool:
    """Draw and judge: is any contrast called a difference; with factors, any of this effect."""
    return any(
        one.judgement.verdict in ("+", "-")
        for of_task in effects(cells(runs.draw(rng))).tasks
        for effect in of_task.effects
        if not factors or effect.factors == factors
        for one in effect.contrasts
    )


GRIDS = {"2 x 3": (2, 3), "3 x 3 x 2": (3, 3, 2)}


def nulls(runs: int) -> Iterable[Line]:
    """Measure how often a grid claims any effect where there is none."""
    for number, ((name, sizes), n) in enumerate(product(GRIDS.items(), (3, 5, 6, 7, 10))):
        rng = np.random.default_rng([8, number])
        made = Runs(Design(sizes=sizes, seeds=n))
        rate = sum(claims(made, rng) for _ in range(runs)) / runs
        yield Line(what=f"{name}, n = {n}", rate=rate, runs=runs, most=ALPHA)
    for number, n in enumerate((5, 10)):
        rng = np.random.default_rng([9, number])
        made = Runs(Design(sizes=(3, 2), seeds=n, uneven=3.0))
        rate = sum(claims(made, rng) for _ in range(runs)) / runs
        what = f"3 x 2, each level spreads 3 times as much as the one before, n = {n}"
        yield Line(what=what, rate=rate, runs=runs, most=ALPHA)
    for number, n in enumerate((5, 10)):
        rng = np.random.default_rng([12, number])
        made = Runs(Design(sizes=(2, 3), seeds=n, tasks=3))
        rate = sum(claims(made, rng) for _ in range(runs)) / runs
        yield Line(what=f"2 x 3 in each of 3 tasks, n = {n}", rate=rate, runs=runs, most=ALPHA)
    for number, (n, failing) in enumerate(product((5, 10), (0.05, 0.2))):
        rng = np.random.default_rng([13, number])
        made = Runs(Design(sizes=(2, 3), seeds=n, failing=failing))
        rate = sum(claims(made, rng) for _ in range(runs)) / runs
        yield Line(what=f"2 x 3, {failing:g} fail, n = {n}", rate=rate, runs=runs, most=ALPHA)


def other_effects(runs: int) -> Iterable[Line]:
    """Measure how often an interaction is claimed where there is only a main effect of 3 sd."""
    for number, ((name, sizes), n) in enumerate(product(GRIDS.items(), (5, 10))):
        rng = np.random.default_rng([10, number])
        made = Runs(Design(sizes=sizes, seeds=n, main=3.0))
        hits = [claims(made, rng, "estimator", "loss") for _ in range(runs)]
        yield Line(what=f"{name}, n = {n}", rate=sum(hits) / runs, runs=runs, most=ALPHA)


def power(runs: int) -> Iterable[Line]:
    """Measure how often an effect is claimed that is there, by any of its contrasts."""
    sizes_of_effects = [("interaction", 1.0), ("interaction", 2.0), ("main", 1.0)]
    for number, ((what, size), sizes, n) in enumerate(
        product(sizes_of_effects, ((2, 2), (2, 3), (3, 3, 2)), (5, 10))
    ):
        rng = np.random.default_rng([11, number])
        if what == "main":
            design, factors = Design(sizes=sizes, seeds=n, main=size), ["estimator"]
        else:
            design, factors = Design(sizes=sizes, seeds=n, interaction=size), ["estimator", "loss"]
        made = Runs(design)
        hits = [claims(made, rng, *factors) for _ in range(runs)]
        name = "level" if what == "main" else "cell"
        grid = " x ".join(map(str, sizes))
        label = f"{grid}, one {name} is better by {size:g} sd: {' x '.join(factors)}, n = {n}"
        yield Line(what=label, rate=sum(hits) / runs, runs=runs)


def partners(runs: int) -> Iterable[Line]:
    """Measure how often the interval of a best partner holds the truth, where all are alike."""
    for number, n in enumerate((4, 5, 10)):
        rng = np.random.default_rng([13, number])
        made = Runs(Design(sizes=(3, 3, 2), seeds=n))
        held, naive = 0, 0
        for _ in range(runs):
            (grid,), _ = grids(cells(made.draw(rng)))
            one = best_partners(grid, level=1 - ALPHA)[0].levels[0]
            held += _holds(one.interval, 0.5)
            of_level = [grid.values[place] for place in grid.at({0: one.level}).values()]
            naive += _holds(mean_interval(max(of_level, key=sum), 1 - ALPHA), 0.5)
        what = f"3 x 3 x 2, the best of 6 partners, n = {n}"
        yield Line(what=what, rate=held / runs, runs=runs, least=0.93)
        what = f"naive: the largest mean of 6, n = {n}"
        yield Line(what=what, rate=naive / runs, runs=runs, note="why seeds choose for others")


def best_against_best(runs: int) -> Iterable[Line]:
    """Measure how often the interval between two best partners holds 0, where these are alike."""
    for number, (turning, n) in enumerate(product((0.0, 1.0, 2.0), (4, 5, 10))):
        rng = np.random.default_rng([14, number])
        made = Runs(Design(sizes=(2, 3), seeds=n, turning=turning))
        held = 0
        for _ in range(runs):
            (grid,), _ = grids(cells(made.draw(rng)))
            (difference,) = best_partners(grid, level=1 - ALPHA)[0].differences.values()
            held += _holds(difference.interval, 0.0)
        alike = f"the best of a level {turning:g} sd above its others" if turning else "all alike"
        note = "a little narrow at 95%, as is said below the tables" if turning < 2 else ""
        what = f"2 x 3, {alike}, n = {n}"
        yield Line(what=what, rate=held / runs, runs=runs, least=0.88, note=note)


def _holds(interval: Interval, truth: float) -> bool:
    return (
        interval.low is not None
        and interval.high is not None
        and interval.low <= truth <= interval.high
    )


INTRODUCTION = (
    "Written by `python benchmarks/effects.py`: {runs} made-up grids a line (half as many for "
    "effects that are there, ten times as many for best partners), the whole way from records "
    "of runs to verdicts; all contrasts of a grid are one family. "
    f"Correlation {RHO} between cells at one seed."
)

if __name__ == "__main__":
    sys.exit(
        report(
            "## What `rlbench effects` makes of it",
            INTRODUCTION,
            {
                nulls: 1,
                other_effects: 1,
                power: 0.5,
                partners: 10,  # a rate near its bound: cheap, and needs precision
                best_against_best: 10,
            },
            runs=400,
            about=__doc__,
        )
    )
