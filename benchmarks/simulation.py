"""Simulate what the statistics promise: coverage, false positives and power at a few seeds.

Run ``python benchmarks/simulation.py``. It prints its tables and writes them to ``statistics.md``
beside this file. (A file named statistics.py here would stand in the way of Python's own module:
torch imports it.) Every number comes from calls of the public functions on made-up data whose truth
is known. It takes about six minutes on one core, and leaves with status 1 when a promise is broken.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import numpy as np
from promises import ALPHA, RHO, Line, report
from scipy.special import ndtri

from rlbench import stats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from rlbench.stats.suite import Statistic

CELLS = 5  # compared with the baseline


def differences(rng: np.random.Generator, n: int, shift: float = 0.0) -> NDArray[np.float64]:
    """Draw cells against one baseline at common seeds: all share the seed's luck.

    Args:
        rng: Generator.
        n: Number of seeds.
        shift: What is added to the first cell, in standard deviations of a cell.

    Returns:
        Differences (n, CELLS) from the baseline.
    """
    luck = rng.normal(size=(n, 1)) * math.sqrt(RHO)
    cells = luck + rng.normal(size=(n, CELLS + 1)) * math.sqrt(1 - RHO)
    cells[:, 1] += shift
    return cells[:, 1:] - cells[:, :1]


def smallest_p(d: NDArray[np.float64]) -> float:
    """Apply the rule of the tables: paired t with Holm below 7 seeds, then max-t."""
    if len(d) < 7:
        p = [stats.paired_difference(column, np.zeros(len(d))).p for column in d.T]
        return float(stats.holm([1.0 if value is None else value for value in p]).min())
    return float(stats.max_t(d).min())


def coverage(runs: int) -> Iterable[Line]:
    """Measure how often printed intervals hold the truth."""
    rng = np.random.default_rng(1)
    for n in (3, 5, 10):
        hits = [_holds(stats.mean_interval(rng.normal(size=n)), 0.0) for _ in range(runs)]
        yield Line(what=f"mean, normal, n = {n}", rate=_share(hits), runs=runs, least=0.93)
    for n in (5, 10):
        hits = [_holds(stats.iqm_interval(rng.normal(size=n)), 0.0) for _ in range(runs)]
        yield Line(what=f"IQM, normal, n = {n}", rate=_share(hits), runs=runs, least=0.93)
    few = max(100, runs // 4)
    for n in (3, 5, 10):
        hits = []
        for _ in range(few):
            scores = {f"task {i}": row for i, row in enumerate(rng.normal(size=(26, n)))}
            hits.append(_holds(stats.suite_interval(scores, resamples=2000, rng=rng), 0.0))
        yield Line(what=f"suite IQM, 26 tasks, n = {n}", rate=_share(hits), runs=few, least=0.93)
    yield from _new_tasks(few)
    for n in (3, 5, 10):
        for truth in (0.5, 0.76, 0.96):
            shift = math.sqrt(2) * float(ndtri(truth))
            hits = [
                _holds(
                    stats.probability_of_improvement(
                        rng.normal(size=n) + shift, rng.normal(size=n)
                    ),
                    truth,
                )
                for _ in range(runs)
            ]
            what = f"probability of improvement {truth}, n = {n}"
            yield Line(what=what, rate=_share(hits), runs=runs, least=0.93)


def _new_tasks(runs: int) -> Iterable[Line]:
    """Measure how often intervals that speak of new tasks hold what all tasks would give."""
    rng = np.random.default_rng(6)
    settings: list[tuple[Statistic, int]] = [("mean", 5), ("mean", 26), ("iqm", 10), ("iqm", 26)]
    for name, many in settings:
        for n in (1, 5):
            hits = []
            for _ in range(runs):
                places = rng.normal(size=(many, 1))
                drawn = places + 0.5 * rng.normal(size=(many, n))
                scores = {f"task {i:02}": row for i, row in enumerate(drawn)}
                found = stats.new_tasks_interval(scores, name, resamples=2000, rng=rng)
                hits.append(_holds(found, 0.0))
            what = f"{name.replace('iqm', 'IQM')} over new tasks, {many} tasks, n = {n}"
            yield Line(what=what, rate=_share(hits), runs=runs, least=0.93)


def false_positives(runs: int) -> Iterable[Line]:
    """Measure how often the rules see a difference where there is none."""
    rng = np.random.default_rng(2)
    for n in (3, 5, 6, 7, 10):
        rule = "paired t, Holm" if n < 7 else "sign flips, max-t"
        hits = [smallest_p(differences(rng, n)) < ALPHA for _ in range(runs)]
        what = f"any of {CELLS} cells, {rule}, n = {n}"
        yield Line(what=what, rate=_share(hits), runs=runs, most=ALPHA)
    for n in (7, 10):
        hits = [stats.sign_flip_test(differences(rng, n)[:, 0]) < ALPHA for _ in range(runs)]
        yield Line(what=f"one pair, sign flips, n = {n}", rate=_share(hits), runs=runs, most=ALPHA)
    for name, look in SEQUENTIAL.items():
        stops = [look(differences(rng, 50)[:, 0]) for _ in range(runs)]
        hits = [stop is not None for stop in stops]
        most = 1.0 if name.startswith("naive") else ALPHA
        note = "why the others exist" if most == 1 else ""
        yield Line(what=name, rate=_share(hits), runs=runs, most=most, note=note)


def suite_claims(runs: int) -> Iterable[Line]:
    """Measure how often two algorithms that are alike over a suite are told apart."""
    rng = np.random.default_rng(7)
    few = max(100, runs // 2)
    for tasks in (3, 10):
        for n in (3, 5, 10):
            for law in ("alike", "unlike spreads", "tasks far apart", "a quarter learns nothing"):
                hits = [
                    (
                        stats.suite_difference(
                            *two_algorithms(rng, tasks, n, law), resamples=1000
                        ).p
                        or 1
                    )
                    < ALPHA
                    for _ in range(few)
                ]
                what = f"IQM of {tasks} tasks, n = {n}, {law}"
                yield Line(what=what, rate=_share(hits), runs=few, most=ALPHA)


def improvements_over_tasks(runs: int) -> Iterable[Line]:
    """Measure how often intervals of improvement over a suite hold the truth."""
    rng = np.random.default_rng(9)
    few = max(100, runs // 8)
    for tasks in (3, 10):
        for n in (3, 5, 10):
            for truth in (0.5, 0.76, 0.96):
                shift = math.sqrt(2) * float(ndtri(truth))
                for paired in (True, False):
                    hits = []
                    for _ in range(few):
                        sides = rng.normal(size=(2, tasks, n))
                        sides[0] += shift
                        one, other = (
                            {f"task {k:02}": row for k, row in enumerate(side)} for side in sides
                        )
                        found = stats.suite_improvement(one, other, paired=paired)
                        hits.append(_holds(found, truth))
                    kind = "pairs, Jeffreys" if paired else "runs, logit t"
                    what = f"{truth} over {tasks} tasks, n = {n}, {kind}"
                    least = 0.85 if paired else 0.93
                    yield Line(what=what, rate=_share(hits), runs=few, least=least)


def swapped_labels(runs: int) -> Iterable[Line]:
    """Measure how often swapping labels would tell such algorithms apart, which is not used."""
    rng = np.random.default_rng(10)
    few = max(100, runs // 16)
    for tasks, n in ((3, 5), (10, 5), (10, 10)):
        for law in ("alike", "unlike spreads", "a quarter learns nothing"):
            hits = [
                _swap_test(rng, *two_algorithms(rng, tasks, n, law)) < ALPHA for _ in range(few)
            ]
            what = f"IQM of {tasks} tasks, n = {n}, {law}"
            note = "why there is no such test" if law == "unlike spreads" else ""
            yield Line(what=what, rate=_share(hits), runs=few, note=note)


def _swap_test(
    rng: np.random.Generator,
    first: dict[str, NDArray[np.float64]],
    second: dict[str, NDArray[np.float64]],
) -> float:
    """Swap the sides of single pairs at random, and compare the differences of the IQM."""
    one, other = np.concatenate(list(first.values())), np.concatenate(list(second.values()))
    swapped = rng.random((400, len(one))) < 0.5
    swapped[0] = False
    sides = np.where(swapped, other, one), np.where(swapped, one, other)
    cut = len(one) // 4
    middles = [np.sort(side, axis=1)[:, cut : len(one) - cut].mean(axis=1) for side in sides]
    d = np.abs(middles[0] - middles[1])
    return float((d >= d[0] - 1e-12).mean())


def middle_of_two_values(runs: int) -> Iterable[Line]:
    """Measure the same where scores are near 0 or 1, each half of the time."""
    rng = np.random.default_rng(8)
    few = max(100, runs // 4)
    for tasks in (2, 3, 10):
        for n in (5, 10):
            hits = []
            for _ in range(few):
                sides = rng.integers(0, 2, (2, tasks, n)) + 0.01 * rng.random((2, tasks, n))
                one, other = ({f"task {k:02}": row for k, row in enumerate(s)} for s in sides)
                found = stats.suite_difference(one, other, resamples=1000)
                hits.append((found.p or 1) < ALPHA)
            note = "no promise: the middle half of two values is hardly there"
            yield Line(
                what=f"IQM of {tasks} tasks, n = {n}", rate=_share(hits), runs=few, note=note
            )


def two_algorithms(
    rng: np.random.Generator, tasks: int, n: int, law: str
) -> tuple[dict[str, NDArray[np.float64]], ...]:
    """Draw two algorithms with equal means in each task, which share the luck of a seed."""
    luck = rng.normal(size=(tasks, n)) * math.sqrt(RHO)
    sides = luck + rng.normal(size=(2, tasks, n)) * math.sqrt(1 - RHO)
    if law == "unlike spreads":
        sides[0] *= 3
    elif law == "tasks far apart":
        sides += 30 * rng.normal(size=(tasks, 1))
    elif law != "alike":
        sides = np.where(sides < ndtri(0.25), -10.0, sides)
    first, second = ({f"task {k:02}": row for k, row in enumerate(side)} for side in sides)
    return first, second


def power(runs: int) -> Iterable[Line]:
    """Measure how often the rules see a difference of one sd, of a cell unless said."""
    rng = np.random.default_rng(3)
    rules: dict[str, Callable[[NDArray[np.float64]], float]] = {
        "one pair, paired t": lambda d: stats.paired_difference(d[:, 0], 0 * d[:, 0]).p or 1.0,
        "one pair, sign flips": lambda d: stats.sign_flip_test(d[:, 0]),
        f"one of {CELLS} cells, max-t": lambda d: float(stats.max_t(d)[0]),
    }
    for name, test in rules.items():
        hits = [test(differences(rng, 10, 1.0)) < ALPHA for _ in range(runs)]
        least = 0.9 if name.startswith("one pair") else 0.0
        yield Line(what=f"{name}, n = 10", rate=_share(hits), runs=runs, least=least)
    # here the unit is the spread of the differences, as in a power calculation
    for name, look in SEQUENTIAL.items():
        if name.startswith("naive"):
            continue
        stops = [look(rng.normal(1.0, 1.0, size=50)) for _ in range(runs)]
        seeds = np.mean([50 if stop is None else stop for stop in stops])
        note = f"{seeds:.1f} seeds on average"
        hits = [stop is not None for stop in stops]
        what = f"{name}, sd of the differences"
        yield Line(what=what, rate=_share(hits), runs=runs, least=0.9, note=note)


def pocock(d: NDArray[np.float64]) -> int | None:
    """Look at 10, 20, 30, 40 and 50 seeds."""
    for n in range(10, 51, 10):
        if (stats.paired_difference(d[:n], np.zeros(n)).p or 1.0) < NOMINAL:
            return n
    return None


def e_values(d: NDArray[np.float64]) -> int | None:
    """Look after every seed, by the e-process."""
    return next((n for n in range(2, 51) if stats.e_process(d[:n]) >= 1 / ALPHA), None)


def wins(d: NDArray[np.float64]) -> int | None:
    """Look after every seed, at wins and losses only."""
    return next((n for n in range(2, 51) if stats.sign_e_process(d[:n]) >= 1 / ALPHA), None)


def naive(d: NDArray[np.float64]) -> int | None:
    """Look after every seed from the third, by the plain test."""
    for n in range(3, 51):
        if (stats.paired_difference(d[:n], np.zeros(n)).p or 1.0) < ALPHA:
            return n
    return None


NOMINAL = stats.pocock_looks(5, ALPHA)
SEQUENTIAL: dict[str, Callable[[NDArray[np.float64]], int | None]] = {
    "five Pocock looks to n = 50": pocock,
    "e-process, every seed to n = 50": e_values,
    "sign e-process, every seed to n = 50": wins,
    "naive: paired t, every seed to n = 50": naive,
}


def _holds(interval: stats.Interval, truth: float) -> bool:
    low, high = interval.low, interval.high
    return low is not None and high is not None and low <= truth <= high


def _share(hits: list[bool]) -> float:
    return sum(hits) / len(hits)


INTRODUCTION = (
    "Written by `python benchmarks/simulation.py`: {runs} simulations a line (a quarter or half "
    f"for suites), alpha {ALPHA}, correlation {RHO} between cells at one seed. A false positive "
    "rate may exceed its promise by two standard errors."
)

if __name__ == "__main__":
    sys.exit(
        report(
            "# What the statistics promise, simulated",
            INTRODUCTION,
            dict.fromkeys(
                (
                    coverage,
                    false_positives,
                    suite_claims,
                    middle_of_two_values,
                    swapped_labels,
                    improvements_over_tasks,
                    power,
                ),
                1.0,
            ),
            runs=4000,
            about=__doc__,
        )
    )
