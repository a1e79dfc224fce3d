"""Student t intervals on hand-computed numbers."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlbench.stats import mean_interval


def test_three_seeds() -> None:
    # sd 0.1, t(df 2, .975) = 4.302653: 4.302653 * 0.1 / sqrt(3) = 0.248414
    interval = mean_interval([0.6, 0.7, 0.8])
    assert interval.mid == pytest.approx(0.7)
    assert interval.half_width == pytest.approx(0.248414, abs=1e-6)
    assert interval.low == pytest.approx(0.451586, abs=1e-6)
    assert interval.high == pytest.approx(0.948414, abs=1e-6)
    assert (interval.n, interval.level, interval.method) == (3, 0.95, "Student t")


def test_two_seeds_are_not_hidden() -> None:
    # sd 0.141421, t(df 1, .975) = 12.7062: 12.7062 * 0.141421 / sqrt(2) = 1.27062
    assert mean_interval([0.6, 0.8]).half_width == pytest.approx(1.27062, abs=1e-5)


def test_level_widens() -> None:
    # t(df 2, .95) = 2.919986: 2.919986 * 0.1 / sqrt(3) = 0.168585
    assert mean_interval([0.6, 0.7, 0.8], level=0.9).half_width == pytest.approx(0.168585, abs=1e-6)


def test_one_seed_has_no_interval() -> None:
    interval = mean_interval([0.4])
    assert (interval.low, interval.mid, interval.high) == (None, 0.4, None)
    assert interval.half_width is None


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, -7.0])
def test_equal_values_are_degenerate(value: float) -> None:
    # the mean of three times 0.1 is not 0.1 in floating point; rounding is no spread
    interval = mean_interval([value] * 3)
    assert interval.degenerate
    assert interval.mid == value
    assert interval.half_width is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_failures_must_be_scored_by_the_caller(bad: float) -> None:
    with pytest.raises(ValueError, match=r"1 of 3 values .* failed runs a score"):
        mean_interval([0.5, bad, 0.7])


@pytest.mark.parametrize(
    ("values", "message"),
    [([], "no values"), ([[0.1, 0.2]], r"shape \(1, 2\)"), (0.5, r"shape \(\)")],
)
def test_shapes_are_checked(values: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mean_interval(values)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("level", [0.0, 1.0, 95, math.nan])
def test_level_is_a_probability(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        mean_interval([0.1, 0.2], level=level)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.integers(0, 99))
def test_order_does_not_move_a_bit(values: list[float], seed: int) -> None:
    shuffled = random.Random(seed).sample(values, len(values))
    assert mean_interval(values) == mean_interval(shuffled)


def test_coverage_on_normal_data() -> None:
    """The interval that tables print holds its level at the usual numbers of seeds."""
    rng = np.random.default_rng(0)
    for n in (3, 5, 10):
        intervals = [mean_interval(row) for row in rng.normal(size=(2000, n))]
        covered = [
            i.low is not None and i.high is not None and i.low <= 0 <= i.high for i in intervals
        ]
        # 0.95 less four standard errors, 4 * sqrt(.95 * .05 / 2000) = 0.0195
        assert np.mean(covered) > 0.93
