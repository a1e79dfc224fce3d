"""Differences at common seeds: the t test, sign flips, contrasts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import permutation_test, ttest_rel

from rlbench.stats import contrast, contrast_values, paired_difference, sign_flip_test

VALUES = st.lists(st.integers(-50, 50), min_size=2, max_size=9)


def test_three_pairs() -> None:
    # d = 1, 2, 3: mean 2, sd 1, t = 2 / (1 / sqrt 3) = 3.4641; half 4.302653 / sqrt 3 = 2.484138
    found = paired_difference([3, 4, 5], [2, 2, 2])
    assert found.interval.mid == 2
    assert found.interval.half_width == pytest.approx(2.484138, abs=1e-6)
    assert found.t == pytest.approx(math.sqrt(12))
    assert found.sd == 1
    # Hedges' factor at df 2: Gamma(1) / (sqrt(1) Gamma(.5)) = 1 / sqrt(pi) = .564190
    assert found.effect == pytest.approx(2 / math.sqrt(math.pi))
    assert found.testable


@given(VALUES, st.integers(0, 99))
def test_as_scipy_and_in_any_order(values: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = np.array(values, dtype=float), rng.normal(size=len(values))
    found = paired_difference(a, b)
    expected = ttest_rel(a, b)
    low, high = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.t == pytest.approx(expected.statistic, rel=1e-9)
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))
    order = rng.permutation(len(values))
    assert paired_difference(a[order], b[order]) == found


def test_swapped_cells_change_the_sign_only() -> None:
    there, back = paired_difference([1, 5, 2], [0, 3, 3]), paired_difference([0, 3, 3], [1, 5, 2])
    assert there.t is not None
    assert there.effect is not None
    assert (back.t, back.p, back.effect) == (-there.t, there.p, -there.effect)
    assert there.interval.mid == -back.interval.mid


def test_one_pair_has_no_test() -> None:
    found = paired_difference([3], [1])
    assert found.interval.mid == 2
    assert (found.interval.low, found.t, found.p, found.sd, found.effect) == (None,) * 5
    assert not found.testable


@pytest.mark.parametrize(
    ("a", "b", "mid"),
    [
        ([1, 2, 3], [1, 2, 3], 0),
        ([2, 3, 4], [1, 2, 3], 1),
        # rounding is no spread: .1 + .2 is not .3 in floats, nor 1.1 - 1 what 2.1 - 2 is
        ([0.1 + 0.2, 0.3, 0.3], [0.3, 0.3, 0.3], 0),
        ([1.1, 2.1, 3.1], [1, 2, 3], pytest.approx(0.1)),
    ],
)
def test_equal_differences_are_degenerate(a: list[float], b: list[float], mid: float) -> None:
    found = paired_difference(a, b)
    assert found.interval.degenerate
    assert found.interval.mid == mid
    assert found.interval.half_width is None
    assert (found.t, found.p, found.testable) == (None, None, False)


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="3 values against 2: pairs are formed by seed"):
        paired_difference([1, 2, 3], [1, 2])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_failures_are_the_callers_decision(bad: float) -> None:
    for call in (lambda x: paired_difference(x, [1, 2, 3]), sign_flip_test):
        with pytest.raises(ValueError, match="failed runs a score"):
            call([1, bad, 3])


def test_sign_flips_of_three() -> None:
    # sums of +-1 +-2 +-3 over 8 flips: 6 4 2 0 0 -2 -4 -6; |4| or more: 4 of 8
    assert sign_flip_test([-1, 2, 3]) == 0.5
    assert sign_flip_test([1, 2, 3]) == 0.25


@pytest.mark.parametrize(("n", "least"), [(3, 0.25), (4, 0.125), (5, 0.0625), (10, 2.0**-9)])
def test_the_least_p_of_sign_flips(n: int, least: float) -> None:
    assert sign_flip_test(np.arange(1, n + 1)) == least


@given(VALUES)
def test_sign_flips_as_all_flips_by_hand(values: list[int]) -> None:
    sums = [
        abs(sum(s * v for s, v in zip(signs, values, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(values))
    ]
    expected = sum(total >= abs(sum(values)) for total in sums) / len(sums)
    assert sign_flip_test(values) == expected
    assert expected >= 2 ** (1 - len(values))


def test_sign_flips_as_scipy() -> None:
    d = np.random.default_rng(2).normal(0.4, 1, size=9)
    expected = permutation_test(
        (d,), np.mean, permutation_type="samples", n_resamples=10_000
    ).pvalue
    assert sign_flip_test(d) == pytest.approx(expected)


def test_ties_survive_rounding() -> None:
    # every flip with sum 0 ties with the data's sum of rounding residues: all flips count
    assert sign_flip_test([0.1, 0.2, -0.3]) == 1.0


def test_many_seeds_are_drawn_and_never_give_zero() -> None:
    d = np.random.default_rng(0).normal(0.3, 1, size=20)
    p = sign_flip_test(d)
    assert sign_flip_test(d[::-1]) == p
    assert sign_flip_test(-d) == p
    assert sign_flip_test(d, rng=1) != p
    assert sign_flip_test(d, rng=1) == pytest.approx(p, abs=0.02)
    # no flip of 10,000 is as extreme: (1 + 0) / (10,000 + 1)
    assert sign_flip_test(np.arange(1, 40)) == pytest.approx(1 / 10_001)


def test_drawn_flips_agree_with_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    d = np.random.default_rng(4).normal(0.4, 1, size=12)
    exact = sign_flip_test(d)
    monkeypatch.setattr("rlbench.stats.paired.ENUMERATED", 0)
    # three standard errors: 3 * sqrt(.25 / 100,000) = .0047
    assert sign_flip_test(d, resamples=100_000) == pytest.approx(exact, abs=0.0047)


def test_nothing_but_ties_is_no_evidence() -> None:
    assert sign_flip_test([0, 0, 0]) == 1.0
    assert sign_flip_test([5]) == 1.0


def test_interaction_per_seed() -> None:
    # seed 1: 4 - 3 - 2 + 1 = 0; seed 2: 9 - 2 - 3 + 1 = 5; seed 3: 8 - 2 - 1 + 0 = 5
    y = [[4, 3, 2, 1], [9, 2, 3, 1], [8, 2, 1, 0]]
    assert list(contrast_values(y, [1, -1, -1, 1])) == [0, 5, 5]
    found = contrast(y, [1, -1, -1, 1])
    # mean 10 / 3, sd sqrt((2 * (5/3)**2 + (10/3)**2) / 2) = 2.886751, t = 2
    assert found.interval.mid == pytest.approx(10 / 3)
    assert found.t == pytest.approx(2)


def test_a_difference_of_two_cells_is_the_paired_one() -> None:
    y = np.random.default_rng(0).normal(size=(6, 2))
    by_contrast, paired = contrast(y, [1, -1]), paired_difference(y[:, 0], y[:, 1])
    assert by_contrast.p == pytest.approx(paired.p)
    assert by_contrast.effect == pytest.approx(paired.effect)


def test_what_all_cells_share_at_a_seed_drops_out() -> None:
    y = np.random.default_rng(0).normal(size=(6, 4))
    luck = np.array([[0.0], [8.0], [-4.0], [2.0], [16.0], [1.0]])
    by = [0.5, 0.5, -0.5, -0.5]
    assert contrast_values(y + luck, by) == pytest.approx(contrast_values(y, by))


def test_contrasts_without_spread_are_degenerate() -> None:
    found = contrast([[0.3, 0.2, 0.1], [1.3, 1.2, 1.1], [0.3, 0.2, 0.1]], [1, -2, 1])
    assert found.interval.degenerate
    assert found.interval.mid == 0


@pytest.mark.parametrize(
    ("y", "weights", "message"),
    [
        ([[1, 2], [3, 4], [5, 6]], [1, -1, 0], "3 weights for 2 cells: y has one row per seed"),
        ([[1, 2], [3, 4]], [1, 1], "add up to 2: those of a contrast add up to 0"),
        ([[1, 2], [3, 4]], [0, 0], "not all 0"),
        ([[1, math.nan], [3, 4]], [1, -1], "1 of 4 values are not finite"),
        ([1, 2, 3], [1, -1], r"shape \(seeds, cells\), got shape \(3,\)"),
        (np.empty((0, 2)), [1, -1], "has no seed"),
    ],
)
def test_bad_contrasts(y: object, weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        contrast(y, weights)  # type: ignore[arg-type]  # wrong on purpose
