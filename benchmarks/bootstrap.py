"""Time the interval of a suite's IQM, beside rliable where it is installed.

Run ``python benchmarks/bootstrap.py``. Five algorithms of 10 runs on 26 tasks, 50,000 resamples
each. Estimates must agree to rounding, and percentile intervals within Monte-Carlo error: for this
comparison both take plain percentiles, because rliable knows no others. The two take turns in one
process, so that a busy machine slows both; neither uses a second thread. Results go to
``bootstrap.md`` beside this file.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rlbench import stats
from rlbench.stats.robust import resampled_iqms

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

ALGORITHMS, RUNS, TASKS = 5, 10, 26
TARGET = Path(__file__).with_name("bootstrap.md")


def scores() -> dict[str, Array]:
    """Draw skewed scores (RUNS, TASKS) of each algorithm, tasks unlike in size and spread."""
    rng = np.random.default_rng(0)
    centre, spread = rng.lognormal(-0.5, 1.0, TASKS), rng.uniform(0.1, 0.6, TASKS)
    return {
        f"algorithm {i}": centre * (1 + 0.1 * i) * rng.lognormal(0, spread, (RUNS, TASKS))
        for i in range(ALGORITHMS)
    }


def by_rlbench(array: Array, resamples: int) -> stats.Interval:
    """Compute the printed interval: expanded percentiles."""
    tasks = {f"task {i:02}": array[:, i] for i in range(TASKS)}
    return stats.suite_interval(tasks, resamples=resamples)


def by_rliable(array: Array, resamples: int) -> tuple[float, Array]:
    """Compute rliable's percentile interval of one algorithm."""
    from rliable import library, metrics  # type: ignore[import-not-found]  # optional

    def iqm(runs: object) -> object:
        return np.array([metrics.aggregate_iqm(runs)])

    points, intervals = library.get_interval_estimates({"": array}, iqm, reps=resamples)
    return float(points[""][0]), intervals[""][:, 0]


def percentiles(array: Array, resamples: int) -> tuple[Array, Array]:
    """Compute our plain percentile interval, and the Monte-Carlo error of either bound."""
    groups = [np.sort(array[:, i]) for i in range(TASKS)]
    found = [
        np.percentile(resampled_iqms(groups, resamples, np.random.default_rng(seed)), [2.5, 97.5])
        for seed in range(5)
    ]
    return np.mean(found, axis=0), np.std(found, axis=0, ddof=1)


def main() -> None:
    """Print the table and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resamples", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5, help="of ours; the best one counts")
    parser.add_argument("--output", type=Path, default=TARGET)
    arguments = parser.parse_args()
    rliable = importlib.util.find_spec("rliable") is not None
    text = [
        "# Interval of a suite's IQM: time",
        "",
        f"Written by `python benchmarks/bootstrap.py`: {RUNS} runs x {TASKS} tasks, "
        f"{arguments.resamples} resamples, one thread, both in one process, on a busy machine: "
        "read the ratios.",
        "",
        "| algorithm | rlbench s | rliable s | ratio | estimates differ by | bounds differ by, in "
        "Monte-Carlo standard errors |",
        "|---|---|---|---|---|---|",
    ]
    ours_s = theirs_s = 0.0
    for name, array in scores().items():
        best = min(timed(by_rlbench, array, arguments.resamples) for _ in range(arguments.repeats))
        ours_s += best
        if not rliable:
            text.append(f"| {name} | {best:.3f} | | | | |")
            continue
        start = time.perf_counter()
        mid, bounds = by_rliable(array, arguments.resamples)
        theirs = time.perf_counter() - start
        theirs_s += theirs
        # rliable has one draw, ours is the mean of five
        ours, error = percentiles(array, arguments.resamples)
        apart = np.abs(ours - bounds) / (error * np.sqrt(1 + 1 / 5))
        gap = abs(mid - by_rlbench(array, 100).mid)
        text.append(
            f"| {name} | {best:.3f} | {theirs:.2f} | {theirs / best:.1f} | {gap:.1e} | "
            f"{apart[0]:.1f}, {apart[1]:.1f} |"
        )
    ratio = f" | {theirs_s:.2f} | {theirs_s / ours_s:.1f}" if rliable else " | | "
    text.append(f"| all | {ours_s:.3f}{ratio} | | |")
    sys.stdout.write("\n".join(text) + "\n")
    arguments.output.write_text("\n".join(text) + "\n", encoding="utf-8")


def timed(call: Callable[[Array, int], object], array: Array, resamples: int) -> float:
    """Time one call in seconds."""
    start = time.perf_counter()
    call(array, resamples)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
