"""Aggregates with intervals that speak of new tasks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm, t, trim_mean

from rlbench.stats import mean_interval, new_tasks_interval, suite_interval

RNG = np.random.default_rng(3)
SUITE = {f"t{task:02}": RNG.normal(task, 1, 5) for task in range(12)}


def test_the_estimate_is_that_of_the_suite() -> None:
    for statistic in ("iqm", "mean", "optimality_gap"):
        assert (
            new_tasks_interval(SUITE, statistic).mid  # type: ignore[arg-type] - a loop over names
            == suite_interval(SUITE, statistic).mid  # type: ignore[arg-type] - as above
        )


def test_the_mean_is_students_over_the_means_of_tasks() -> None:
    # task means 1, 4, 7 whatever their runs: 4 ± t(2, .975) * 3 / sqrt(3) = 4 ± 7.4524
    interval = new_tasks_interval({"a": [0, 2], "b": [4], "c": [6, 7, 8]}, "mean")
    assert interval.mid == 4
    assert interval.n == 3
    assert interval.low == pytest.approx(4 - 7.452413)
    assert interval.high == pytest.approx(4 + 7.452413)
    assert interval.method == "Student t over tasks"


def test_the_gap_is_that_of_what_tasks_lack() -> None:
    # to 1: task a lacks 1 and 0, b 0.5 and 0.5, c nothing: means .5, .5, 0
    interval = new_tasks_interval({"a": [0, 3], "b": [0.5, 0.5], "c": [1, 2]}, "optimality_gap")
    expected = mean_interval([0.5, 0.5, 0.0])
    assert (interval.mid, interval.low) == (expected.mid, expected.low)


@pytest.mark.parametrize("sizes", [[5] * 12, [3, 4, 5, 6] * 3])
def test_quantiles_of_the_iqm_are_those_of_tasks_drawn_whole(sizes: list[int]) -> None:
    rng = np.random.default_rng(1)
    tasks = [rng.normal(place, 1, size) for place, size in enumerate(sizes)]
    interval = new_tasks_interval({f"{n:02}": v for n, v in enumerate(tasks)}, level=0.8)
    drawn = rng.integers(0, 12, (20_000, 12))
    resampled = [trim_mean(np.concatenate([tasks[k] for k in row]), 0.25) for row in drawn]
    tail = norm.cdf(-math.sqrt(12 / 11) * t.ppf(0.9, 11))
    low, high = np.quantile(resampled, [tail, 1 - tail])
    # the Monte-Carlo error of either is below .03
    assert interval.low == pytest.approx(low, abs=0.09)
    assert interval.high == pytest.approx(high, abs=0.09)
    assert interval.n == 12


def test_it_is_wider_than_that_of_new_seeds_where_tasks_differ() -> None:
    new, same = new_tasks_interval(SUITE), suite_interval(SUITE)
    assert new.half_width is not None
    assert same.half_width is not None
    assert new.half_width > 3 * same.half_width


def test_runs_of_a_task_are_no_replicas() -> None:
    more = {task: np.repeat(values, 20) for task, values in SUITE.items()}
    few, many = new_tasks_interval(SUITE, "mean"), new_tasks_interval(more, "mean")
    assert few.low == pytest.approx(many.low)


def test_few_tasks_have_no_interval() -> None:
    one = {"a": [1.0, 2.0]}
    nine = {name: values for name, values in SUITE.items() if name < "t09"}
    assert new_tasks_interval(one, "mean").method == "none: one task"
    assert new_tasks_interval(one).method == "none: one task"
    assert new_tasks_interval(nine).low is None
    assert new_tasks_interval(nine).method == "none: the IQM of new tasks needs 10 tasks"
    assert new_tasks_interval(nine, "mean").low is not None


def test_no_spread_is_degenerate() -> None:
    same = {f"{n:02}": [0.5, 0.5] for n in range(12)}
    for statistic in ("iqm", "mean"):
        interval = new_tasks_interval(same, statistic)  # type: ignore[arg-type] - a loop over names
        assert interval.degenerate
        assert (interval.low, interval.high) == (0.5, 0.5)


def test_order_and_scale_move_no_bit() -> None:
    plain = new_tasks_interval(SUITE)
    other = {task: SUITE[task][::-1] for task in reversed(SUITE)}
    assert new_tasks_interval(other) == plain
    assert plain.low is not None
    for scale in (2.0**900, 2.0**-900):
        scaled = new_tasks_interval({task: v * scale for task, v in SUITE.items()})
        assert scaled.low == plain.low * scale


def test_one_run_a_task_is_enough() -> None:
    single = {task: values[:1] for task, values in SUITE.items()}
    assert new_tasks_interval(single).low is not None


@pytest.mark.parametrize(
    ("scores", "more", "message"),
    [
        ({}, {}, "no task"),
        ({"a": [1, math.nan]}, {}, "'a'"),
        ({"a": [1, 2]}, {"level": 1.0}, "level"),
        ({"a": [1, 2]}, {"resamples": 5}, "resamples"),
        ({"a": [1, 2]}, {"statistic": "median"}, "median"),
    ],
)
def test_bad_input_is_named(
    scores: dict[str, list[float]], more: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        new_tasks_interval(scores, **more)  # type: ignore[arg-type] - wrong on purpose


def test_names_of_tasks_choose_nothing() -> None:
    rng = np.random.default_rng(1)
    values = [rng.normal(size=size) for size in (3, 5, 4, 5, 3, 4, 5, 3, 4, 5, 4, 3)]
    plain = new_tasks_interval({f"{n:02}": one for n, one in enumerate(values)})
    assert new_tasks_interval({f"{-n:02}": one for n, one in enumerate(values)}) == plain
