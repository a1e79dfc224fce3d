"""Families of comparisons: Holm and joint sign flips."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from rlbench.stats import holm, max_t, sign_flip_test


def test_holm_by_hand() -> None:
    # .01 * 4 = .04; .02 * 3 = .06; .03 * 2 = .06; .04 * 1 = .04, raised to .06
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_holm_stays_below_one_and_takes_any_size() -> None:
    assert list(holm([0.9, 0.8])) == [1, 1]
    assert list(holm([0.3])) == [0.3]
    assert holm([]).shape == (0,)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_keeps_the_order_and_lies_between_raw_and_bonferroni(p: list[float]) -> None:
    adjusted = holm(p)
    for i, j in itertools.product(range(len(p)), repeat=2):
        assert p[i] > p[j] or adjusted[i] <= adjusted[j]
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(1, len(p) * np.array(p))).all()


@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1, None])
def test_holm_refuses_what_is_no_probability(bad: float | None) -> None:
    with pytest.raises(ValueError, match=r"lies outside \[0, 1\].*can't be tested"):
        holm([0.1, bad])  # type: ignore[arg-type]  # wrong on purpose


def by_hand(d: np.ndarray) -> list[float]:
    """Step down over all flips with scipy's t; slow and plain."""
    n, k = d.shape
    observed = np.abs(ttest_1samp(d, 0).statistic)
    flipped = [
        np.abs(ttest_1samp(d * np.array(signs)[:, None], 0).statistic)
        for signs in itertools.product((1, -1), repeat=n)
    ]
    p, so_far, left = [0.0] * k, 0.0, list(np.argsort(-observed))
    while left:
        strongest = left[0]
        share = np.mean([f[left].max() >= observed[strongest] - 1e-9 for f in flipped])
        so_far = max(so_far, float(share))
        p[strongest] = so_far
        left = left[1:]
    return p


@pytest.mark.parametrize("seed", range(4))
def test_max_t_as_by_hand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = rng.normal([1.5, 0.5, 0, 0], [1, 1, 5, 0.1], size=(7, 4))
    assert max_t(d) == pytest.approx(by_hand(d))


def test_one_comparison_is_the_sign_flip_test() -> None:
    d = np.random.default_rng(0).normal(0.5, 1, size=(9, 1))
    assert max_t(d)[0] == sign_flip_test(d[:, 0])


def test_the_least_p_does_not_grow_with_the_number_of_comparisons() -> None:
    # all seeds agree in all of 40 comparisons: 2 of 2**8 flips, not 40 times as many
    rng = np.random.default_rng(0)
    p = max_t(rng.uniform(1, 2, size=(8, 40)))
    assert p.min() == 2.0**-7


def test_order_of_seeds_and_comparisons() -> None:
    rng = np.random.default_rng(1)
    for n in (8, 18):
        d = rng.normal(0.4, 1, size=(n, 5))
        p = max_t(d, resamples=2000)
        assert list(max_t(d[rng.permutation(n)], resamples=2000)) == list(p)
        assert list(max_t(d * 2.0**600, resamples=2000)) == list(p)
    columns = rng.permutation(5)
    small = d[:8]
    assert list(max_t(small[:, columns])) == list(max_t(small)[columns])


def test_drawn_flips_never_give_zero_and_agree_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    d = np.random.default_rng(1).normal(0.4, 1, size=(10, 3))
    exact = max_t(d)
    for module in ("paired", "multiplicity"):
        monkeypatch.setattr(f"rlbench.stats.{module}.ENUMERATED", 0)
    # three standard errors: 3 * sqrt(.25 / 50,000) = .0067
    assert max_t(d, resamples=50_000) == pytest.approx(exact, abs=0.0067)
    assert max_t(np.ones((30, 2)) + d[:1, :2] * 0, resamples=100) == pytest.approx([1 / 101] * 2)


def test_drawn_flips_do_not_depend_on_signs_or_columns() -> None:
    d = np.random.default_rng(2).normal(0.4, 1, size=(19, 3))
    p = max_t(d)
    assert list(max_t(-d)) == list(p)
    assert list(max_t(d[:, [2, 0, 1]])) == list(p[[2, 0, 1]])
    assert list(max_t(d[:, :1])) == list(max_t(-d[::-1, :1]))


def test_seeds_without_any_difference_do_not_end_the_enumeration() -> None:
    d = np.random.default_rng(2).normal(0.5, 1, size=16)
    padded = np.concatenate([d, np.zeros(4)])[:, None]
    assert max_t(padded)[0] == sign_flip_test(d)
    assert list(max_t(np.zeros((3, 2)))) == [1, 1]


def test_columns_without_difference_claim_nothing() -> None:
    d = np.column_stack([np.zeros(7), np.arange(1, 8)])
    assert list(max_t(d)) == [1, 2.0**-6]
    assert list(max_t([[1.0, 2.0]])) == [1, 1]
    assert max_t(np.empty((3, 0))).shape == (0,)


def test_bad_tables_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(seeds, comparisons\), got shape \(3,\)"):
        max_t([1, 2, 3])
    with pytest.raises(ValueError, match="1 of 4 values are not finite"):
        max_t([[1.0, math.nan], [2.0, 3.0]])


def test_false_claims_in_a_family() -> None:
    """Five null comparisons against one baseline at 8 seeds: any claim at .05."""
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(1000, 8, 6))
    claims = [max_t(c[:, 1:] - c[:, :1]).min() < 0.05 for c in cells]
    # .05 and two standard errors: .05 + 2 * sqrt(.05 * .95 / 1000) = .0638
    assert np.mean(claims) <= 0.0638
