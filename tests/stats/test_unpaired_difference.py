"""Differences of cells whose runs have nothing in common."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_ind

from rlbench.stats import unpaired_difference

A, B = [3.0, 4.0, 8.0, 5.0], [1.0, 2.0, 2.5]


def test_it_is_welchs() -> None:
    # means 5 and 11/6; variances 14/3 over 4 and 7/12 over 3
    found = unpaired_difference(A, B)
    expected = ttest_ind(A, B, equal_var=False)
    low, high = expected.confidence_interval(0.95)
    assert found.interval.mid == pytest.approx(5 - 11 / 6)
    assert (found.t, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))
    assert found.sd == pytest.approx(math.sqrt(14 / 3 + 7 / 12))
    assert (found.interval.n, found.interval.method) == (3, "Welch t")


def test_sides_and_order_turn_nothing_but_the_sign() -> None:
    one, other = unpaired_difference(A, B), unpaired_difference(B[::-1], A[::-1])
    assert one.interval.low is not None
    assert (other.interval.high, other.p) == (-one.interval.low, one.p)


def test_one_side_without_spread_is_a_test_of_the_other() -> None:
    found = unpaired_difference([1.0, 2.0, 4.0], [0.5, 0.5])
    # 7/3 - 1/2 over sqrt(7/3 / 3), 2 degrees of freedom
    assert found.t == pytest.approx((7 / 3 - 0.5) / math.sqrt(7 / 9))
    assert found.p == pytest.approx(2 * student.sf(found.t, 2))


def test_nothing_to_test_is_no_test() -> None:
    alone = unpaired_difference([1.0], [2.0, 3.0])
    assert (alone.p, alone.interval.low, alone.interval.mid) == (None, None, -1.5)
    constant = unpaired_difference([1.0, 1.0], [2.0, 2.0, 2.0])
    assert (constant.p, constant.interval.mid, constant.interval.degenerate) == (None, -1.0, True)
    residue = unpaired_difference([0.3, 0.3], [0.1 + 0.2] * 2)
    assert (residue.p, residue.interval.mid) == (None, 0.0)


def test_scale_changes_nothing_but_the_scale() -> None:
    plain = unpaired_difference(A, B)
    for scale in (2.0**900, 2.0**-900):
        found = unpaired_difference(np.array(A) * scale, np.array(B) * scale)
        assert found.p == plain.p
        assert plain.interval.low is not None
        assert found.interval.low == plain.interval.low * scale


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        unpaired_difference([1.0, math.nan], B)
    with pytest.raises(ValueError, match="level"):
        unpaired_difference(A, B, 1.0)
    with pytest.raises(ValueError, match="larger than a float"):
        unpaired_difference([1.7e308, 1.7e308, 1.6e308], [-1.7e308, -1.7e308])


def test_at_the_null_it_errs_at_its_rate() -> None:
    rng = np.random.default_rng(0)
    for n, m, ratio in ((3, 3, 1), (5, 5, 3), (10, 4, 1)):
        wrong = sum(
            (unpaired_difference(rng.normal(size=n), ratio * rng.normal(size=m)).p or 1) < 0.05
            for _ in range(1000)
        )
        # 50 expected at most, two standard errors are 13.8; Welch's is a little off at few runs
        assert wrong <= 68, (n, m, ratio)
