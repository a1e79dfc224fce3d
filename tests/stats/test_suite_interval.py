"""Aggregates over tasks, their intervals and profiles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import norm, t, trim_mean

from rlbench.stats import (
    iqm_interval,
    mean_interval,
    optimality_gap,
    performance_profile,
    suite_interval,
)
from rlbench.stats.suite import expanded_by_tasks

if TYPE_CHECKING:
    from rlbench.stats.suite import Statistic

STATISTICS: tuple[Statistic, ...] = ("iqm", "mean", "optimality_gap")
SUITE = {"sort": [0.2, 0.4, 0.9], "add": [1.0, 1.5, 2.0]}


def test_iqm_pools_all_runs() -> None:
    # sorted .2 .4 .9 1 1.5 2; 6 // 4 = 1 on either side: (.4 + .9 + 1 + 1.5) / 4 = .95
    interval = suite_interval(SUITE)
    assert interval.mid == pytest.approx(0.95)
    assert interval.n == 6


def test_mean_averages_within_tasks_first() -> None:
    # task means 1 and 4, whatever their numbers of runs: 2.5
    assert suite_interval({"a": [0, 2], "b": [3, 4, 5]}, "mean").mid == 2.5


def test_optimality_gap() -> None:
    # sort: (.8 + .6 + .1) / 3 = .5; add: 0 beyond the target; (.5 + 0) / 2 = .25
    assert optimality_gap(SUITE) == pytest.approx(0.25)
    # gamma 2, add: (1 + .5 + 0) / 3 = .5; sort: (1.8 + 1.6 + 1.1) / 3 = 1.5
    assert optimality_gap(SUITE, gamma=2) == pytest.approx(1.0)
    interval = suite_interval(SUITE, "optimality_gap")
    assert interval.mid == pytest.approx(0.25)
    assert interval.low is not None
    assert interval.low >= 0


def test_profile_is_strictly_above() -> None:
    # above .4: sort 1 of 3, add 3 of 3: (1/3 + 1) / 2 = 2/3; above 1: 0 and 2/3: 1/3
    shares = performance_profile(SUITE, [0, 0.4, 1, 2])
    assert shares == pytest.approx([1, 2 / 3, 1 / 3, 0])


def test_profile_keeps_the_order_of_thresholds_and_weighs_tasks_alike() -> None:
    shares = performance_profile({"a": [1, 1, 1, 1], "b": [0]}, [2, 0.5])
    assert list(shares) == [0, 0.5]


def plain_bootstrap(scores: dict[str, list[float]], resamples: int) -> np.ndarray:
    """Draw the values themselves, task by task, and trim with scipy."""
    rng = np.random.default_rng(5)
    drawn = [rng.choice(runs, (resamples, len(runs))) for runs in scores.values()]
    return np.asarray(trim_mean(np.concatenate(drawn, axis=1), 0.25, axis=1))


@pytest.mark.parametrize("sizes", [(8, 8, 8), (5, 8, 12)])
def test_quantiles_are_those_of_resampled_values(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    scores = {f"t{i}": list(rng.normal(i, 1 + i, size)) for i, size in enumerate(sizes)}
    interval = suite_interval(scores, level=0.8, resamples=20_000)
    v = np.array([np.var(runs, ddof=1) / len(runs) for runs in scores.values()])
    n = np.array(sizes)
    df = v.sum() ** 2 / (v**2 / (n - 1)).sum()
    inflation = v.sum() / (v * (n - 1) / n).sum()
    tail = norm.cdf(-math.sqrt(inflation) * t.ppf(0.9, df))
    low, high = np.quantile(plain_bootstrap(scores, 20_000), [tail, 1 - tail])
    # the Monte-Carlo error of either is below .02
    assert interval.low == pytest.approx(low, abs=0.06)
    assert interval.high == pytest.approx(high, abs=0.06)
    assert ("weighted by their 5 to 12 runs" in interval.method) == (len(set(sizes)) > 1)


def test_the_level_is_expanded_by_the_tasks_own_spread() -> None:
    # variances 8 of 2 runs and 3 of 3, of the means v = 4 and 1: df = 25 / (16 / 1 + 1 / 2) =
    # 1.515152, inflation = 5 / (4 / 2 + 1 * 2 / 3) = 1.875
    groups = [np.array([0.0, 4.0]), np.array([-math.sqrt(3), 0.0, math.sqrt(3)])]
    expected = norm.cdf(-math.sqrt(1.875) * t.ppf(0.9, 25 / 16.5))
    assert expanded_by_tasks(groups, 0.8) == pytest.approx(expected)


def test_bounds_of_a_mean_weigh_tasks_alike() -> None:
    # at so low a level both bounds are near the middle of the resamples: (0 + 10) / 2 = 5, not
    # near the mean of all runs, 2.3
    scores = {"a": [-1, 1] * 10, "b": [9, 10, 10, 10, 11, 10]}
    interval = suite_interval(scores, "mean", level=0.1)
    assert interval.mid == 5
    assert not interval.degenerate
    assert interval.low == pytest.approx(5, abs=0.1)
    assert interval.high == pytest.approx(5, abs=0.1)


def test_bounds_of_the_gap_keep_to_the_target() -> None:
    # to 10: gaps of task a are 9, 8, 7, of task b 6, 5, 4; their mean lies in [5.5, 7.5]
    interval = suite_interval({"a": [1, 2, 3], "b": [4, 5, 6]}, "optimality_gap", gamma=10)
    assert interval.mid == 6.5
    assert interval.low is not None
    assert interval.high is not None
    assert 5.5 <= interval.low < 6.5 < interval.high <= 7.5


def test_order_of_tasks_and_runs_moves_no_bit() -> None:
    shuffled = {"add": [2.0, 1.0, 1.5], "sort": [0.9, 0.2, 0.4]}
    for statistic in STATISTICS:
        assert suite_interval(shuffled, statistic) == suite_interval(SUITE, statistic)


def test_same_seed_same_interval_other_seed_another() -> None:
    rng = np.random.default_rng(0)
    scores = {name: rng.normal(size=6) for name in "abcd"}
    first = suite_interval(scores, resamples=500)
    assert suite_interval(scores, resamples=500, rng=np.random.default_rng(0)) == first
    assert suite_interval(scores, resamples=500, rng=1) != first


def test_scale_moves_nothing_but_the_scale() -> None:
    rng = np.random.default_rng(0)
    scores = {name: rng.normal(size=6) for name in "abcd"}
    plain = suite_interval(scores)
    for scale in (2.0**900, 2.0**-900):
        scaled = suite_interval({name: values * scale for name, values in scores.items()})
        assert plain.low is not None
        assert scaled.low == plain.low * scale


def test_one_task_is_one_sample() -> None:
    values = [0.1, 0.5, 0.7, 0.8, 1.2, 1.3]
    assert suite_interval({"a": values}) == iqm_interval(values)
    assert suite_interval({"a": values}, "mean") == mean_interval(values)


def test_a_task_with_one_run_leaves_the_spread_unknown() -> None:
    interval = suite_interval({"a": [1, 2, 3], "b": [5]})
    assert interval.low is None
    assert interval.method == "none: one run of task 'b'"


def test_suites_without_spread_are_degenerate() -> None:
    assert suite_interval({"a": [1, 1, 1], "b": [5, 5, 5]}).degenerate
    # a tenth of the runs of one task differs; the middle half never sees it
    still = suite_interval({"a": [0] * 10, "b": [0] * 10, "c": [0] * 9 + [1]})
    assert still.degenerate
    assert still.half_width is None


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({}, "no tasks"),
        ([[1, 2], [3, 4]], "a bare array does not say which axis is the task"),
        ({"a": [1, 2], "b": [1, math.nan]}, "task 'b': 1 of 2 values are not finite"),
        ({"a": [1, 2], "b": []}, "task 'b': no values"),
    ],
)
def test_bad_suites_name_the_task(scores: object, message: str) -> None:
    for call in (suite_interval, optimality_gap, lambda s: performance_profile(s, [0.5])):
        with pytest.raises(ValueError, match=message):
            call(scores)  # type: ignore[arg-type]  # wrong on purpose


def test_a_median_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match=r"'median'.*biased"):
        suite_interval(SUITE, "median")  # type: ignore[arg-type]  # wrong on purpose


def test_infinite_targets_are_refused() -> None:
    with pytest.raises(ValueError, match="gamma inf"):
        optimality_gap(SUITE, gamma=math.inf)


def test_coverage_of_the_suite_interval() -> None:
    """Three runs a task, where plain percentiles cover 87 %."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        scores = {f"{i}": row for i, row in enumerate(rng.normal(size=(10, 3)))}
        interval = suite_interval(scores, resamples=1000, rng=rng)
        assert interval.low is not None
        assert interval.high is not None
        hits += interval.low <= 0 <= interval.high
    # .95 less three standard errors: .95 - 3 * sqrt(.95 * .05 / 400) = .917
    assert hits / 400 > 0.917


def test_names_of_tasks_choose_nothing() -> None:
    rng = np.random.default_rng(1)
    values = [rng.normal(size=size) for size in (3, 5, 4, 5, 3, 4, 5, 3, 4, 5, 4, 3)]
    plain = suite_interval({f"{n:02}": one for n, one in enumerate(values)})
    assert suite_interval({f"{-n:02}": one for n, one in enumerate(values)}) == plain
