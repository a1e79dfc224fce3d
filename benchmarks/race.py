"""Simulate what ``rlbench race`` promises: false claims over all of its looks, and what it saves.

Run ``python benchmarks/race.py``. Scores are made up, and `decide` judges them as the command does.
It gets those of the whole pool at once, and stops each comparison at the look that decides it. A
claim is any comparison that is better or worse. The tables are printed and written to the end of
``statistics.md`` beside this file. It takes about five minutes on one core, and leaves with status
1 when a promise is broken.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from promises import ALPHA, RHO, Line, report
from scipy.special import ndtr
from simulation import CELLS

from rlbench.grid.race import BETTER, EQUIVALENT, WORSE, Pair, RacePlan, decide

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rlbench.grid.race import Standing

SEEDS = 25
BASE = "base"
FLOOR = -10.0  # standard deviations of a cell
FAILING = 0.25  # share of the seeds in the lower mode of bimodal scores, or of runs that crash
# a difference of two cells at one seed has this many standard deviations of a cell
SD = (2 * (1 - RHO)) ** 0.5


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is simulated.

    Attributes:
        others: Cells beside the baseline.
        looks: Number of planned looks; None looks after every seed.
        seeds: Seeds of the pool.
        law: ``normal``; ``bimodal``, a quarter of the seeds, much the same ones in all cells, fail
            to learn; ``skewed``, lognormal; ``crashing``, normal, but a quarter of the runs, each
            for itself, crash and score a floor 10 standard deviations below; or ``unlike``, a
            quarter of the seeds fails in all cells but the baseline, which never fails and has
            their mean.
        shift: Of the first cell beside the baseline, in standard deviations of a difference.
        shifted: Number of cells that are shifted so, from the first on.
        margin: Margin of equivalence, in the same unit.
    """

    others: int = 1
    looks: int | None = 5
    seeds: int = SEEDS
    law: str = "normal"
    shift: float = 0.0
    shifted: int = 1
    margin: float | None = None

    def __str__(self) -> str:
        cells = f"{self.others} cell{'s' if self.others > 1 else ''}"
        cells += f" ({self.shifted} better)" if self.shift else ""
        looks = (
            f"{self.looks} looks at {self.seeds}" if self.looks else f"every of {self.seeds} seeds"
        )
        return f"{looks}, {cells}, {self.law}"

    def plan(self) -> RacePlan:
        """Plan the race."""
        return RacePlan(
            pairs=tuple(Pair(cell=f"other{n}", other=BASE) for n in range(self.others)),
            seeds=tuple(range(self.seeds)),
            looks=self.looks,
            alpha=ALPHA,
            margin=None if self.margin is None else self.margin * SD,
        )


def draw(
    case: Case, plan: RacePlan, rng: np.random.Generator
) -> tuple[dict[str, dict[int, float]], dict[str, set[int]]]:
    """Draw the scores of all cells at all seeds, and what crashes: cells share a seed's luck."""
    luck = rng.normal(size=case.seeds)
    scores: dict[str, dict[int, float]] = {}
    crashed: dict[str, set[int]] = {}
    for number, cell in enumerate(plan.cells):
        z = RHO**0.5 * luck + (1 - RHO) ** 0.5 * rng.normal(size=case.seeds)
        if case.law == "skewed":
            z = np.exp(0.8 * z)
        elif case.law in ("bimodal", "unlike"):
            learned = 0.8 * (ndtr(z) >= FAILING)
            if case.law == "unlike" and cell == BASE:
                learned = np.full(case.seeds, 0.8 * (1 - FAILING))
            z = learned + 0.02 * rng.normal(size=case.seeds)
        shift = case.shift * SD if 1 <= number <= case.shifted else 0.0
        gone = rng.random(case.seeds) < FAILING if case.law == "crashing" else np.zeros(0, bool)
        crashed[cell] = set(np.flatnonzero(gone).tolist())
        reached = enumerate((z + shift).tolist())
        scores[cell] = {seed: FLOOR if seed in crashed[cell] else value for seed, value in reached}
    return scores, crashed


def ends(case: Case, runs: int, seed: Iterable[int]) -> Iterator[tuple[Standing, ...]]:
    """Race again and again."""
    rng, plan = np.random.default_rng(list(seed)), case.plan()
    for _ in range(runs):
        yield decide(plan, *draw(case, plan, rng))


def spent(race: Sequence[Standing]) -> int:
    """Count the runs that it took: the baseline's as many as those of the last comparison."""
    return sum(one.n for one in race) + max(one.n for one in race)


NULLS = [
    Case(looks=looks, others=others, law=law)
    for law in ("normal", "bimodal", "skewed")
    for looks in (5, None)
    for others in (1, CELLS)
] + [Case(seeds=15), Case(seeds=15, others=CELLS), Case(seeds=10, looks=2)]
# at the end: the number of a line is the seed of its random numbers
NULLS += [
    Case(looks=looks, others=others, law="crashing") for looks in (5, None) for others in (1, CELLS)
]
EFFECTS = [
    Case(looks=looks, others=others, shift=1.0, shifted=shifted)
    for others, shifted in ((1, 1), (CELLS, 1), (CELLS, CELLS))
    for looks in (5, None)
]


def claims(runs: int) -> Iterable[Line]:
    """Measure how often a race claims any difference where there is none."""
    for number, case in enumerate(NULLS):
        found = list(ends(case, runs, (8, number)))
        hits = sum(any(one.decided for one in race) for race in found)
        mean = np.mean([spent(race) for race in found])
        full = (case.others + 1) * case.seeds
        note = f"{mean:.0f} of {full} runs"
        yield Line(what=str(case), rate=hits / runs, runs=runs, most=ALPHA, note=note)


def far_from_normal(runs: int) -> Iterable[Line]:
    """Measure how often a race misleads where cells have one mean and quite different spreads."""
    for number, case in enumerate((Case(law="unlike"), Case(law="unlike", looks=None))):
        hits = sum(race[0].decided for race in ends(case, runs, (11, number)))
        note = "no promise: five seeds may show none of the failures"
        yield Line(what=str(case), rate=hits / runs, runs=runs, note=note)


def false_equivalence(runs: int) -> Iterable[Line]:
    """Measure how often a difference as large as the margin is called equivalent, or worse."""
    for number, looks in enumerate((5, None)):
        case = Case(looks=looks, shift=1.0, margin=1.0)
        wrong = [race[0].verdict in (EQUIVALENT, WORSE) for race in ends(case, runs, (9, number))]
        yield Line(what=str(case), rate=sum(wrong) / runs, runs=runs, most=ALPHA)


def power(runs: int) -> Iterable[Line]:
    """Measure how often a cell that is better by one sd of the differences is called so."""
    for number, case in enumerate(EFFECTS):
        found = list(ends(case, runs, (10, number)))
        hits = sum(race[0].verdict == BETTER for race in found)
        mean = np.mean([spent(race) for race in found])
        seeds = np.mean([race[0].n for race in found])
        full = (case.others + 1) * case.seeds
        note = f"{mean:.0f} of {full} runs; its verdict after {seeds:.1f} seeds"
        yield Line(what=str(case), rate=hits / runs, runs=runs, note=note)


INTRODUCTION = (
    "Written by `python benchmarks/race.py`: {runs} made-up races a line, through the function "
    "that judges them in the command."
)

if __name__ == "__main__":
    sys.exit(
        report(
            "## What `rlbench race` makes of it",
            INTRODUCTION,
            dict.fromkeys((claims, far_from_normal, false_equivalence, power), 1.0),
            runs=2000,
            about=__doc__,
        )
    )
