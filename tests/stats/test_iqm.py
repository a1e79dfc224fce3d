"""The interquartile mean and its exact and drawn bootstraps."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import trim_mean

from rlbench.stats import iqm, iqm_interval
from rlbench.stats.bootstrap import expanded_tail, tail_values


def test_middle_half_of_eight() -> None:
    # 8 // 4 = 2 on either side go: (2 + 3 + 4 + 5) / 4 = 3.5
    assert iqm([100, 3, 1, 4, 6, 5, 2, -50]) == 3.5


def test_it_is_the_mean_below_four_and_the_middle_two_at_four() -> None:
    assert iqm([0, 0, 9]) == 3
    assert iqm([0, 1, 2, 99]) == 1.5


def test_one_failure_of_five_does_not_show() -> None:
    """Why the share of failures stands in a column of its own."""
    # int(5 / 4) = 1 on either side: (8 + 9 + 9) / 3 both times
    assert iqm([0, 8, 9, 9, 9]) == iqm([8, 8, 9, 9, 9])


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_as_scipy_trims(values: list[float]) -> None:
    assert iqm(values) == pytest.approx(float(trim_mean(values, 0.25)), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, None])
def test_a_failure_never_raises_an_iqm(bad: float | None) -> None:
    with pytest.raises(ValueError, match="1 of 5 values are not finite"):
        iqm([0.1, 0.2, bad, 0.4, 0.5])  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ValueError, match="1 of 5 values are not finite"):
        iqm_interval([0.1, 0.2, bad, 0.4, 0.5])  # type: ignore[arg-type]  # wrong on purpose


def test_a_masked_value_is_a_missing_one() -> None:
    masked = np.ma.masked_array([1, 2, 3], mask=[False, True, False])
    with pytest.raises(ValueError, match="1 of 3 values are not finite"):
        iqm(masked)


def brute_force(values: list[float], tail: float) -> tuple[float, float]:
    """Take both quantiles over all n**n ordered resamples."""
    all_iqms = sorted(iqm(resample) for resample in itertools.product(values, repeat=len(values)))
    least = math.ceil(tail * len(all_iqms)) - 1
    return all_iqms[least], all_iqms[-1 - least]


@pytest.mark.parametrize("level", [0.95, 0.5, 0.1])
def test_enumeration_is_what_all_resamples_give(level: float) -> None:
    values = [0.3, -1.0, 2.0, 5.0, 5.5]
    interval = iqm_interval(values, level)
    expected = brute_force(values, expanded_tail(level, df=4, inflation=5 / 4))
    assert (interval.low, interval.high) == pytest.approx(expected, abs=1e-12)


def test_five_values_at_95_percent_reach_from_end_to_end() -> None:
    # tail Phi(-sqrt(5 / 4) * 2.776) = Phi(-3.104) = .00095; the lowest value fills the middle three
    # in (1 + 5 * 4) / 5**5 = .0067 of the resamples, which is more
    interval = iqm_interval([1, 2, 3, 4, 10])
    assert (interval.low, interval.mid, interval.high) == (1, 3, 10)
    assert interval.method == "exact bootstrap, expanded percentile"


def test_expanded_tail() -> None:
    # n = 10: t(9, .975) = 2.262157, times sqrt(10 / 9) = 2.384525; Phi(-2.384525) = .008551
    assert expanded_tail(0.95, df=9, inflation=10 / 9) == pytest.approx(0.008551, abs=1e-6)


def test_tail_values_leave_the_same_number_out_on_either_side() -> None:
    # 5 % of 100 on either side: 0 to 4 and 95 to 99 go
    assert tail_values(np.arange(100.0)[::-1], 0.05) == (5, 94)


def test_drawn_resamples_agree_with_the_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    values = list(np.random.default_rng(3).normal(size=10))
    exact = iqm_interval(values)
    monkeypatch.setattr("rlbench.stats.robust.ENUMERATED", 0)
    drawn = iqm_interval(values, resamples=200_000)
    assert "200000 resamples" in drawn.method
    assert drawn.low == pytest.approx(exact.low, abs=0.02)
    assert drawn.high == pytest.approx(exact.high, abs=0.02)


@pytest.mark.parametrize("n", [5, 6, 9])
def test_negated_data_give_the_mirrored_interval(n: int) -> None:
    values = np.random.default_rng(n).normal(size=n)
    there, back = iqm_interval(values, 0.5), iqm_interval(-values, 0.5)
    assert back.mid == -there.mid
    assert back.low == pytest.approx(-there.high)  # type: ignore[operator]  # n >= 5 has one
    assert back.high == pytest.approx(-there.low)  # type: ignore[operator]  # n >= 5 has one


@pytest.mark.parametrize("n", [7, 14])
def test_order_moves_no_bit_and_the_seed_decides(n: int) -> None:
    values = list(np.random.default_rng(n).normal(size=n))
    first = iqm_interval(values)
    assert iqm_interval(random.Random(1).sample(values, n)) == first
    assert iqm_interval(values, rng=np.random.default_rng(0)) == first
    assert (iqm_interval(values, rng=1) == first) == (n <= 10)


def test_more_values_than_a_byte_counts() -> None:
    interval = iqm_interval(range(300))
    # the IQM's spread is about 300 / sqrt(12) / sqrt(300) = 5 around 149.5
    assert interval.low == pytest.approx(139, abs=6)
    assert interval.high == pytest.approx(160, abs=6)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_few_values_have_no_interval(n: int) -> None:
    interval = iqm_interval(list(range(n)))
    assert (interval.low, interval.high, interval.half_width) == (None, None, None)
    assert interval.method.startswith("none: ")


def test_ties_that_leave_no_width_are_marked() -> None:
    assert iqm_interval([0.1] * 6).degenerate
    # one 1 among 40: it enters the middle 20 when drawn 11 times, which never happens
    interval = iqm_interval([0] * 39 + [1])
    assert interval.degenerate
    assert interval.half_width is None
    assert interval.method == "degenerate: too many values are equal"


def test_too_few_resamples_are_refused() -> None:
    with pytest.raises(ValueError, match="resamples 1: "):
        iqm_interval(range(20), resamples=1)
