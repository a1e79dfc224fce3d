"""How many seeds: power, planned looks, e-processes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import chi2, nct, t

from rlbench.stats import (
    confidence_sequence,
    e_process,
    mean_interval,
    pairs_needed,
    pocock_looks,
    sign_e_process,
)


@pytest.mark.parametrize(("effect", "pairs"), [(2, 5), (1, 10), (0.8, 15), (0.5, 34), (-1, 10)])
def test_pairs_for_common_effects(effect: float, pairs: int) -> None:
    assert pairs_needed(effect, 1) == pairs
    assert pairs_needed(effect * 1e-200, 1e-200) == pairs


def power(n: int, ratio: float) -> float:
    critical = t.ppf(0.975, n - 1)
    away = nct.sf(critical, n - 1, ratio * math.sqrt(n))
    return float(away + nct.cdf(-critical, n - 1, ratio * math.sqrt(n)))


@pytest.mark.parametrize("ratio", [0.3, 0.7, 1.5])
def test_one_pair_fewer_is_too_few(ratio: float) -> None:
    n = pairs_needed(ratio, 1)
    assert power(n, ratio) >= 0.8 > power(n - 1, ratio)


@pytest.mark.parametrize(
    ("effect", "alpha", "pairs"),
    # by numerical integration over the chi distribution; scipy's noncentral t gives NaN there
    [(3, 0.05 / 31, 7), (2, 0.05 / 250, 12), (0.05, 0.0002, 8327)],
)
def test_small_levels_need_more_pairs(effect: float, alpha: float, pairs: int) -> None:
    assert pairs_needed(effect, 1, alpha=alpha) == pairs


@pytest.mark.parametrize("effect", [0.3, 1, 3, 10])
def test_a_smaller_level_never_needs_fewer_pairs(effect: float) -> None:
    needed = [pairs_needed(effect, 1, alpha=0.05 / k) for k in range(1, 400, 7)]
    assert needed == sorted(needed)


def test_a_pilots_sd_is_taken_at_its_upper_limit() -> None:
    # sd 1 from 5 pairs: limit sqrt(4 / chi2(.2, 4)) = sqrt(4 / 1.648777) = 1.557567
    limit = math.sqrt(4 / chi2.ppf(0.2, 4))
    assert limit == pytest.approx(1.557567, abs=1e-5)
    assert pairs_needed(1, 1, pilot_n=5) == pairs_needed(1, limit) > pairs_needed(1, 1)


def test_extremes_of_effects() -> None:
    assert pairs_needed(1e300, 1e-300) == 2
    # (1.959964 + .841621)**2 / .001**2 = 7,848,880 by the normal distribution
    assert pairs_needed(1e-3, 1) == pytest.approx(7_848_880, rel=1e-5)
    with pytest.raises(ValueError, match="more than 1000000000 pairs"):
        pairs_needed(1e-300, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"effect": 0, "sd": 1}, "effect 0"),
        ({"effect": math.nan, "sd": 1}, "effect nan"),
        ({"effect": 1, "sd": 0}, "sd 0"),
        ({"effect": 1, "sd": math.nan}, "sd nan"),
        ({"effect": 1, "sd": 1, "power": 0.05}, "power 0.05"),
        ({"effect": 1, "sd": 1, "alpha": 0}, "alpha 0"),
        ({"effect": 1, "sd": 1, "pilot_n": 1}, "pilot_n 1"),
    ],
)
def test_bad_plans(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pairs_needed(**arguments)  # type: ignore[arg-type]  # wrong on purpose


# Pocock's table at .05: the constant bound 1.960, 2.178, 2.289, 2.361, 2.413, 2.555
@pytest.mark.parametrize(
    ("looks", "level"),
    [(1, 0.05), (2, 0.0294), (3, 0.0221), (4, 0.0182), (5, 0.0158), (10, 0.0106)],
)
def test_pococks_table(looks: int, level: float) -> None:
    assert pocock_looks(looks) == pytest.approx(level, abs=5e-5)


def test_pocock_holds_its_level_on_a_random_walk() -> None:
    walk = np.random.default_rng(0).normal(size=(40_000, 4)).cumsum(axis=1)
    from scipy.stats import norm

    bound = norm.isf(pocock_looks(4, 0.1) / 2)
    crossed = (np.abs(walk) / np.sqrt([1, 2, 3, 4]) > bound).any(axis=1).mean()
    # three standard errors: 3 * sqrt(.1 * .9 / 40,000) = .0045
    assert crossed == pytest.approx(0.1, abs=0.0045)


@pytest.mark.parametrize("looks", [0, 101])
def test_bad_looks(looks: int) -> None:
    with pytest.raises(ValueError, match=f"looks {looks}"):
        pocock_looks(looks)
    with pytest.raises(TypeError):
        pocock_looks(2.5)  # type: ignore[arg-type]  # wrong on purpose


def test_e_value_by_hand() -> None:
    # d = 1, 2, 3: S = 2, M = 12, r = 1 + 3 = 4
    # log E = -log(4) / 2 - 1.5 * (log(2 + 3) - log(14)) = -.693147 + 1.544429 = .851282
    assert e_process([1, 2, 3]) == pytest.approx(math.exp(0.8512819), rel=1e-6)


def test_e_value_is_the_likelihood_ratio_of_t() -> None:
    """The mixture over the mean, of noncentral t against t, by numerical integration."""
    d = np.random.default_rng(1).normal(0.7, 1, size=6)
    statistic = d.mean() / d.std(ddof=1) * math.sqrt(6)

    def weighed(delta: float) -> float:
        density = nct.pdf(statistic, 5, delta * math.sqrt(6))
        return float(density * math.exp(-(delta**2) / 2) / math.sqrt(2 * math.pi))

    mixture = quad(weighed, -6, 6, points=[0, 0.7])[0]
    assert e_process(d) == pytest.approx(mixture / t.pdf(statistic, 5), rel=1e-6)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=12), st.integers(0, 9))
def test_e_value_ignores_order_and_scale(values: list[float], seed: int) -> None:
    e = e_process(values)
    assert e >= 0
    shuffled = np.random.default_rng(seed).permutation(values)
    assert e_process(shuffled) == e
    assert e_process(np.array(values) * 2.0**20) == pytest.approx(e)
    assert e_process(-np.array(values)) == pytest.approx(e)


def test_no_spread_is_no_evidence() -> None:
    assert e_process([1]) == 1
    assert e_process([1] * 30) == 1
    assert e_process([0.3 - (0.1 + 0.2), 0, 0]) <= 1
    # t = 0: (1 + 4)**-.5
    assert e_process([0, 0, 0, 0]) == pytest.approx(5**-0.5)


def test_huge_evidence_stays_a_number() -> None:
    rng = np.random.default_rng(0)
    assert e_process(1 + 1e-6 * rng.normal(size=1000)) == pytest.approx(np.finfo(float).max)
    assert sign_e_process(np.ones(3000)) == pytest.approx(np.finfo(float).max)


def test_seven_straight_wins() -> None:
    # 2**7 B(7.5, .5) / pi = C(14, 7) / 2**7 = 3432 / 128 = 26.8125; six: 924 / 64 = 14.4375
    assert sign_e_process([1] * 7) == pytest.approx(26.8125)
    assert sign_e_process([-3] * 6) == pytest.approx(14.4375)
    assert sign_e_process([1] * 7 + [0] * 9) == pytest.approx(26.8125)
    assert sign_e_process([0, 0]) == 1


def test_sign_e_value_averages_to_one_under_the_null() -> None:
    # all 2**5 outcomes of fair coins: sum of E / 32 = 1
    values = [
        sign_e_process([1.0 if code >> i & 1 else -1.0 for i in range(5)]) for code in range(32)
    ]
    assert sum(values) / 32 == pytest.approx(1)


def test_confidence_sequence_by_hand() -> None:
    # n = 5, d = 1 .. 5: mean 3, sd sqrt(2.5); r = 6, c = (sqrt(6) / .05)**(-.4) = .210843
    # t*^2 = 4 * (1 - c) / (c - 1/6) = 3.156629 / .044176 = 71.4557, t* = 8.45315
    # half = 8.45315 * sqrt(2.5) / sqrt(5) = 5.97728
    found = confidence_sequence([1, 2, 3, 4, 5])
    assert found.mid == 3
    assert found.half_width == pytest.approx(5.97728, rel=1e-4)
    assert found.level == 0.95


@pytest.mark.parametrize(("n", "ratio"), [(5, 3.0), (10, 1.7), (20, 1.6)])
def test_what_looking_at_every_seed_costs(n: int, ratio: float) -> None:
    d = np.random.default_rng(0).normal(size=n)
    sequence, fixed = confidence_sequence(d).half_width, mean_interval(d).half_width
    assert sequence is not None
    assert fixed is not None
    assert sequence / fixed == pytest.approx(ratio, abs=0.05)


def test_sequence_and_e_process_agree() -> None:
    """The interval holds exactly the means that the e-process does not reject."""
    d = np.random.default_rng(2).normal(size=9)
    found = confidence_sequence(d, alpha=0.1)
    assert found.low is not None
    assert e_process(d - found.low) == pytest.approx(10)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_few_seeds_bound_nothing(n: int) -> None:
    found = confidence_sequence(list(range(n)))
    assert (found.low, found.high) == (None, None)
    assert found.method.startswith("none: ")


def test_a_sequence_without_spread_is_degenerate() -> None:
    assert confidence_sequence([0.1] * 8).degenerate


@pytest.mark.parametrize("tau2", [0, -1, math.inf, math.nan])
def test_bad_priors(tau2: float) -> None:
    for call in (e_process, confidence_sequence):
        with pytest.raises(ValueError, match="tau2"):
            call([1, 2, 3], tau2=tau2)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_missing_differences_are_refused(bad: float) -> None:
    for call in (e_process, sign_e_process, confidence_sequence):
        with pytest.raises(ValueError, match="not finite"):
            call([1, bad])


def test_false_positives_of_looking_after_every_seed() -> None:
    rng = np.random.default_rng(0)
    crossed = [
        any(e_process(d[:n]) >= 20 for n in range(2, 31)) for d in rng.normal(size=(500, 30))
    ]
    # .05 and two standard errors: .05 + 2 * sqrt(.05 * .95 / 500) = .0695
    assert np.mean(crossed) <= 0.0695
