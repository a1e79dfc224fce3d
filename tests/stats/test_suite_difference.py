"""Two algorithms over a suite: by hand, against plain resampling, and at the edges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from rlbench import stats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlbench.stats.suite import Statistic

    Scores = dict[str, list[float]]

# of d: x has mean 0.2 and variance 0.01 / 3, y has mean 0.4 and variance 0.04 / 3
A: Scores = {"x": [0.3, 0.5, 0.7], "y": [0.9, 0.7, 0.5]}
B: Scores = {"x": [0.2, 0.3, 0.4], "y": [0.3, 0.3, 0.3]}


def drawn(rng: np.random.Generator, tasks: int = 4, n: int = 5) -> tuple[Scores, Scores]:
    places = rng.normal(size=(tasks, 1))
    sides = places + rng.normal(size=(2, tasks, n))
    one, other = ({f"t{k}": row.tolist() for k, row in enumerate(side)} for side in sides)
    return one, other


def test_the_difference_of_means_is_that_by_hand() -> None:
    found = stats.suite_difference(A, B, "mean")
    error = (0.01 / 3 + 0.04 / 3) ** 0.5 / 2
    df = (0.05 / 3) ** 2 / ((0.01 / 3) ** 2 / 2 + (0.04 / 3) ** 2 / 2)
    assert df == pytest.approx(2.941, abs=1e-3)
    half = scipy_stats.t.ppf(0.975, df) * error
    interval = found.interval
    assert interval.mid == pytest.approx(0.3)
    assert (interval.low, interval.high) == (pytest.approx(0.3 - half), pytest.approx(0.3 + half))
    assert found.p == pytest.approx(2 * scipy_stats.t.sf(0.3 / error, df))
    assert interval.n == 6


def test_the_gap_is_that_of_what_is_short_of_the_target() -> None:
    lacking = {task: [max(0.6 - x, 0.0) for x in values] for task, values in A.items()}
    others = {task: [max(0.6 - x, 0.0) for x in values] for task, values in B.items()}
    found = stats.suite_difference(A, B, "optimality_gap", gamma=0.6)
    means = stats.suite_difference(lacking, others, "mean")
    assert found.interval.mid == pytest.approx(means.interval.mid)
    assert found.p == pytest.approx(means.p)
    assert found.interval.mid < 0  # the first falls less short


@pytest.mark.parametrize("paired", [True, False])
def test_the_mean_of_one_task_is_that_of_two_cells(*, paired: bool) -> None:
    one, other = [0.3, 0.9, 0.4, 0.8], [0.1, 0.6, 0.5, 0.2]
    whole = stats.suite_difference({"x": one}, {"x": other}, "mean", paired=paired)
    cells = stats.paired_difference if paired else stats.unpaired_difference
    alone = cells(one, other)
    assert whole.p == pytest.approx(alone.p)
    assert whole.interval.low == pytest.approx(alone.interval.low)


@pytest.mark.parametrize("paired", [True, False])
def test_the_error_of_the_iqm_is_that_of_plain_resampling(*, paired: bool) -> None:
    one, other = drawn(np.random.default_rng(3), tasks=5, n=6)
    found = stats.suite_difference(one, other, paired=paired)
    assert found.interval.high is not None
    assert found.p is not None
    rng = np.random.default_rng(8)
    resampled = []
    for _ in range(4000):
        sides: tuple[list[float], list[float]] = ([], [])
        for task in one:
            picks = rng.integers(0, 6, size=(2, 6))
            sides[0].extend(np.array(one[task])[picks[0]])
            sides[1].extend(np.array(other[task])[picks[0 if paired else 1]])
        resampled.append(stats.iqm(sides[0]) - stats.iqm(sides[1]))
    # every task has 6 runs a side, so that the inflation is 6 / 5
    error = np.std(resampled, ddof=1) * (6 / 5) ** 0.5
    mid = found.interval.mid
    assert mid == pytest.approx(
        stats.iqm(np.ravel(list(one.values()))) - stats.iqm(np.ravel(list(other.values())))
    )
    t = (found.interval.high - mid) / error
    df = next(df for df in np.arange(1, 60, 0.01) if scipy_stats.t.ppf(0.975, df) < t * 1.04)
    assert 2 * scipy_stats.t.sf(abs(mid) / error, df) == pytest.approx(found.p, abs=0.02)
    assert df > 4


def test_tasks_that_are_cut_away_have_no_say_in_the_degrees_of_freedom() -> None:
    rng = np.random.default_rng(0)
    apart = {"low": -100.0, "middle": 0.0, "other": 0.0, "high": 100.0}
    one, other = (
        {task: (place + rng.normal(size=4)).tolist() for task, place in apart.items()}
        for _ in range(2)
    )
    found = stats.suite_difference(one, other, resamples=2000)
    # 16 runs: the middle half are the 8 of both tasks between, with 6 degrees of freedom at most
    middle = [np.subtract(one[task], other[task]) for task in ("middle", "other")]
    v = [np.var(d, ddof=1) for d in middle]
    df = sum(v) ** 2 / sum(x**2 / 3 for x in v)
    interval = found.interval
    assert interval.high is not None
    assert found.p is not None
    error = (interval.high - interval.mid) / scipy_stats.t.ppf(0.975, df)
    assert found.p == pytest.approx(2 * scipy_stats.t.sf(abs(interval.mid) / error, df))
    # and what the tasks at the ends differ by says nothing
    one["high"] = [x + 50 for x in one["high"]]
    assert stats.suite_difference(one, other, resamples=2000).interval.mid == interval.mid


@pytest.mark.parametrize("statistic", ["iqm", "mean", "optimality_gap"])
@pytest.mark.parametrize("paired", [True, False])
def test_swapping_the_sides_turns_the_sign_and_no_order_changes_a_bit(
    statistic: Statistic, *, paired: bool
) -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        one, other = drawn(rng, n=4)
        found = stats.suite_difference(one, other, statistic, paired=paired)
        turned = stats.suite_difference(other, one, statistic, paired=paired)
        interval = found.interval
        assert interval.low is not None
        assert interval.high is not None
        assert turned.p == found.p
        assert turned.interval == replace(
            interval, low=-interval.high, mid=-interval.mid, high=-interval.low
        )
        order = rng.permutation(4)
        mixed = [
            {f"z{task}": [side[task][k] for k in order] for task in reversed(side)}
            for side in (one, other)
        ]
        assert stats.suite_difference(mixed[0], mixed[1], statistic, paired=paired) == found


def test_p_and_the_interval_agree() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        one, other = drawn(rng, tasks=3, n=3)
        for statistic in ("iqm", "mean"):
            found = stats.suite_difference(one, other, statistic, resamples=200)
            assert found.p is not None
            assert found.interval.low is not None
            assert found.interval.high is not None
            assert (found.p < 0.05) == (found.interval.low > 0 or found.interval.high < 0)


def test_numbers_of_any_size_give_the_same_verdict() -> None:
    plain = stats.suite_difference(A, B)
    for power in (-990, 900):
        one, other = (
            {task: np.ldexp(values, power).tolist() for task, values in side.items()}
            for side in (A, B)
        )
        found = stats.suite_difference(one, other)
        assert found.p == plain.p
        assert found.interval.mid == np.ldexp(plain.interval.mid, power)


def test_what_can_t_be_tested_is_said() -> None:
    single = stats.suite_difference({"x": [1.0, 2.0], "y": [1.0]}, {"x": [0.0, 0.0], "y": [0.5]})
    assert (single.interval.low, single.p, single.testable) == (None, None, False)
    assert single.interval.method == "none: one run of a task on a side"
    same = stats.suite_difference(A, A)
    assert (same.interval.mid, same.interval.degenerate, same.p) == (0.0, True, None)


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({}, {}, "no tasks"),
        ({"x": [1.0]}, {"y": [1.0]}, "task 'x' is on one side only"),
        ({"x": [1.0, 2.0]}, {"x": [1.0]}, "task 'x': 2 runs beside 1; pairs need the same seeds"),
        ({"x": [float("nan")]}, {"x": [1.0]}, "task 'x': "),
        ([1.0], {"x": [1.0]}, "expected mappings from task to the scores"),
    ],
)
def test_what_is_no_pair_of_suites_is_refused(one: Any, other: Any, said: str) -> None:
    for function in (stats.suite_difference, stats.suite_improvement):
        with pytest.raises(ValueError, match=said):
            function(one, other)


# how often


def test_improvement_is_the_mean_over_tasks() -> None:
    one = {"x": [3.0, 1.0, 2.0], "y": [1.0, 1.0]}
    other = {"x": [2.0, 1.0, 3.0], "y": [0.0, 0.0]}
    # at x a win, a tie and a loss of pairs; at y two wins
    assert stats.suite_improvement(one, other).mid == pytest.approx((0.5 + 1) / 2)
    # at x of nine games: 3 beats two and ties one, 1 ties one, 2 beats one and ties one
    unpaired = stats.suite_improvement(one, other, paired=False)
    assert unpaired.mid == pytest.approx((4.5 / 9 + 1) / 2)


def test_improvement_over_one_task_is_that_of_two_cells() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        a, b = rng.normal(size=5), rng.normal(size=7)
        whole = stats.suite_improvement({"x": a}, {"x": b}, paired=False)
        alone = stats.probability_of_improvement(a, b)
        assert whole.mid == pytest.approx(alone.mid)
        assert (whole.low, whole.high) == (pytest.approx(alone.low), pytest.approx(alone.high))
        pairs = stats.suite_improvement({"x": a}, {"x": b[:5]})
        alone = stats.probability_of_improvement(a, b[:5], paired=True)
        assert (pairs.low, pairs.high) == (pytest.approx(alone.low), pytest.approx(alone.high))


@pytest.mark.parametrize("paired", [True, False])
def test_all_wins_leave_room_for_doubt(*, paired: bool) -> None:
    one: Mapping[str, list[float]] = {"x": [2.0, 2.5], "y": [2.0, 3.0]}
    found = stats.suite_improvement(one, {"x": [0.0, 1.0], "y": [0.0, 1.0]}, paired=paired)
    assert (found.mid, found.high) == (1.0, 1.0)
    assert found.low is not None
    assert 0.05 < found.low < 0.95


def test_nothing_but_ties_is_degenerate() -> None:
    assert stats.suite_improvement({"x": [1, 1]}, {"x": [1, 1]}).degenerate


@pytest.mark.parametrize("statistic", ["iqm", "mean"])
def test_another_level_needs_no_other_resamples(statistic: Statistic) -> None:
    one, other = drawn(np.random.default_rng(6))
    found = stats.suite_difference(one, other, statistic)
    asked = stats.suite_difference(one, other, statistic, 0.99).interval
    given = found.at(0.99)
    assert (given.low, given.high) == (pytest.approx(asked.low), pytest.approx(asked.high))
    assert (given.level, given.method) == (0.99, asked.method)
    single = stats.suite_difference({"x": [1.0]}, {"x": [0.5]}).at(0.9)
    assert (single.low, single.level) == (None, 0.9)
