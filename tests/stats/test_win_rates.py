"""Rates: probability of improvement, failures, ranks."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logit
from scipy.stats import beta, brunnermunzel, mannwhitneyu, rankdata, t

from rlbench.stats import bootstrap_ranks, failure_interval, probability_of_improvement

SMALL = st.lists(st.integers(0, 5), min_size=2, max_size=8)


def test_all_pairs_with_ties_as_halves() -> None:
    # 1 against (1, 2): half a win of 2; 3 against (1, 2): 2 wins of 2: 2.5 of 4
    assert probability_of_improvement([1, 3], [1, 2]).mid == 0.625


@given(SMALL, SMALL)
def test_as_mann_whitney(a: list[int], b: list[int]) -> None:
    found = probability_of_improvement(a, b)
    u = mannwhitneyu(a, b, method="asymptotic").statistic if len({*a, *b}) > 1 else None
    if u is None:
        assert found.degenerate
        assert found.mid == 0.5
        return
    assert found.mid == pytest.approx(u / (len(a) * len(b)))
    swapped = probability_of_improvement(b, a)
    assert swapped.mid == pytest.approx(1 - found.mid)
    assert found.low is not None
    assert swapped.high == pytest.approx(1 - found.low)
    assert 0 <= found.low <= found.mid
    assert probability_of_improvement(sorted(a), sorted(b, reverse=True)) == found


def test_the_interval_by_hand() -> None:
    # shares beaten by a: 3 over 1, 2: 2/3 ... of b = (1, 2, 5): a = 0, 3, 6 beats 0, 2/3, 1
    # variance (0, 2/3, 1): mean 5/9, S10 = ((5/9)**2 + (1/9)**2 + (4/9)**2) / 2 = 7/27
    # b's are beaten by a: 1 by 2/3, 2 by 2/3, 5 by 1/3: S01 = 1/27
    # var = (7/27 + 1/27) / 3 = .098765; df = var**2 / (((7/81)**2 + (1/81)**2) / 2) = 2.56
    # logit(5/9) = .223144; t(2.56, .975) = 3.5205; half = 3.5205 * .314270 / (20/81) = 4.4808
    found = probability_of_improvement([0, 3, 6], [1, 2, 5])
    assert found.mid == pytest.approx(5 / 9)
    assert found.low == pytest.approx(1 / (1 + math.exp(4.4808 - 0.223144)), abs=1e-4)
    assert found.high == pytest.approx(1 / (1 + math.exp(-4.4808 - 0.223144)), abs=1e-4)


def test_degrees_of_freedom_and_variance_as_brunner_munzel() -> None:
    a, b = [1, 4, 6, 8, 9], [2, 3, 5, 7]
    found, theirs = probability_of_improvement(a, b), brunnermunzel(b, a)
    sd = (found.mid - 0.5) / float(theirs.statistic)
    v10 = np.var([np.mean([x > y for y in b]) for x in a], ddof=1) / 5
    v01 = np.var([np.mean([x > y for x in a]) for y in b], ddof=1) / 4
    df = (v10 + v01) ** 2 / (v10**2 / 4 + v01**2 / 3)
    assert abs(sd) == pytest.approx(math.sqrt(v10 + v01))
    assert 2 * t.sf(abs(theirs.statistic), df) == pytest.approx(theirs.pvalue)
    # the same spread and degrees of freedom, on the logit scale
    half = t.ppf(0.975, df) * abs(sd) / (found.mid * (1 - found.mid))
    assert found.high is not None
    assert logit(found.high) - logit(found.mid) == pytest.approx(half)


def test_all_wins_are_no_certainty() -> None:
    # half a win from 1: inner = 1 - 1 / 18, logit log(17) = 2.833213, sd = sqrt(1 / 162) = .078567,
    # df 4: 2.776445 * .078567 / (17 / 324) = 4.157429; low = 1 / (1 + exp(1.324216)) = .210109
    three = probability_of_improvement([4, 5, 6], [1, 2, 3])
    assert (three.mid, three.high) == (1, 1)
    assert three.low == pytest.approx(0.210109, abs=1e-5)
    five = probability_of_improvement(range(5, 10), range(5))
    assert five.low is not None
    assert 0.5 < five.low < 0.8


def test_paired_wins() -> None:
    # wins, tie, wins, loses: 2.5 of 4; Jeffreys: quantiles of Beta(3, 2)
    found = probability_of_improvement([2, 1, 5, 0], [1, 1, 4, 3], paired=True)
    assert found.mid == 0.625
    assert found.low == pytest.approx(beta.ppf(0.025, 3, 2))
    assert found.high == pytest.approx(beta.ppf(0.975, 3, 2))


def test_paired_all_wins_and_all_ties() -> None:
    found = probability_of_improvement([2, 3, 4], [1, 2, 3], paired=True)
    assert (found.mid, found.high) == (1, 1)
    assert found.low == pytest.approx(beta.ppf(0.025, 3.5, 0.5))
    assert probability_of_improvement([1, 2], [1, 2], paired=True).degenerate


def test_one_run_has_no_interval() -> None:
    assert probability_of_improvement([3], [1, 2, 4]).mid == pytest.approx(2 / 3)
    assert probability_of_improvement([3], [1, 2, 4]).low is None
    assert probability_of_improvement([3], [1], paired=True).low is None


def test_failed_runs_are_not_losses_by_themselves() -> None:
    for paired in (False, True):
        with pytest.raises(ValueError, match="not finite"):
            probability_of_improvement([1, math.nan], [1, 2], paired=paired)


def test_unequal_lengths_have_no_pairs() -> None:
    with pytest.raises(ValueError, match="3 values against 2"):
        probability_of_improvement([1, 2, 3], [1, 2], paired=True)


def test_failure_rates() -> None:
    # Jeffreys, 1 of 10: quantiles of Beta(1.5, 9.5)
    found = failure_interval(1, 10)
    assert found.mid == 0.1
    assert (found.low, found.high) == pytest.approx(
        (beta.ppf(0.025, 1.5, 9.5), beta.ppf(0.975, 1.5, 9.5))
    )


def test_no_failure_leaves_room_for_some() -> None:
    # Beta(.5, 5.5) at .975 = .379377
    none, every = failure_interval(0, 5), failure_interval(5, 5)
    assert (none.low, none.mid) == (0, 0)
    assert none.high == pytest.approx(0.379377, abs=1e-6)
    assert every.low == pytest.approx(1 - 0.379377, abs=1e-6)
    assert every.high == 1
    assert not none.degenerate


@pytest.mark.parametrize(("k", "n"), [(0, 0), (-1, 5), (6, 5)])
def test_impossible_counts(k: int, n: int) -> None:
    with pytest.raises(ValueError, match=r"runs|at least one run"):
        failure_interval(k, n)


def test_counts_are_whole_numbers() -> None:
    assert failure_interval(np.int64(1), np.int64(4)).mid == 0.25
    with pytest.raises(TypeError):
        failure_interval(0.5, 4)  # type: ignore[arg-type]  # wrong on purpose


RUNS = {
    "a": {"x": [3, 4, 5], "y": [1, 1, 1]},
    "b": {"x": [1, 2, 3], "y": [1, 1, 1]},
    "c": {"x": [0, 0, 1], "y": [0, 0, 0]},
}


def test_mean_ranks_with_ties() -> None:
    # x: 1, 2, 3; y: (1 + 2) / 2 twice, 3
    found = bootstrap_ranks(RUNS)
    assert [rank.interval.mid for rank in found.values()] == [1.25, 1.75, 3]
    assert found["c"].interval.degenerate
    assert found["c"].best == 0
    assert sum(rank.best or 0 for rank in found.values()) == pytest.approx(1)


def test_share_of_best_by_enumeration() -> None:
    # one task, two runs each: a's means 1, 2, 2, 3 (of 1 and 3), b's 2 always
    # a first: 3 (1/4); tie: 2 (1/2), shared; so .25 + .25 = .5
    found = bootstrap_ranks({"a": {"x": [1, 3]}, "b": {"x": [2, 2]}}, resamples=40_000)
    assert found["a"].best == pytest.approx(0.5, abs=0.01)
    assert (found["a"].interval.low, found["a"].interval.high) == (1, 2)


def test_the_level_of_rank_intervals() -> None:
    # b's resampled mean beats a's in 1 of 4: rank 1 in a quarter of the resamples, outside an
    # interval that leaves out .3 on either side, inside one that leaves out .2
    scores = {"a": {"x": [0, 0]}, "b": {"x": [1, -2]}}
    assert bootstrap_ranks(scores, level=0.4)["b"].interval.degenerate
    assert bootstrap_ranks(scores, level=0.6)["b"].interval.low == 1


@pytest.mark.parametrize("sizes", [(3, 3, 3), (2, 3, 4)])
def test_ranks_as_scipy(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    scores = {
        name: {task: rng.integers(0, 3, size=size) for task in "xyz"}
        for name, size in zip("abc", sizes, strict=True)
    }
    means = np.array([[np.mean(scores[name][task]) for task in "xyz"] for name in "abc"])
    expected = rankdata(-means.round(12), axis=0).mean(axis=1)
    assert [rank.interval.mid for rank in bootstrap_ranks(scores).values()] == pytest.approx(
        list(expected)
    )


def test_ranks_do_not_depend_on_order_or_rounding() -> None:
    first = bootstrap_ranks(RUNS)
    names = ["c", "a", "b"]
    shuffled = {
        name: {task: random.Random(2).sample(RUNS[name][task], 3) for task in ("y", "x")}
        for name in names
    }
    assert bootstrap_ranks(shuffled) == first
    assert list(bootstrap_ranks(shuffled)) == names
    # .1 three times and .1 ten times average to the same, but not to the same float; 1 stands by
    # so that scaling leaves the .1 uneven
    tie = bootstrap_ranks({"a": {"x": [0.1] * 3}, "b": {"x": [0.1] * 10}, "c": {"x": [1, 1]}})
    del tie["c"]
    assert [rank.interval.mid for rank in tie.values()] == [2.5, 2.5]


def test_one_run_gives_ranks_without_interval() -> None:
    found = bootstrap_ranks({"a": {"x": [1]}, "b": {"x": [2, 3]}})
    assert found["a"].interval.mid == 2
    assert (found["a"].interval.low, found["a"].best) == (None, None)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"a": {"x": [1, 2]}}, "1 algorithms: ranks need at least two"),
        (
            {"a": {"x": [1], "z": [1]}, "b": {"x": [1], "y": [2]}},
            "'a' and 'b' differ in tasks y, z",
        ),
        ({"a": {"x": [1]}, "b": {"x": [math.nan]}}, "algorithm 'b': task 'x': 1 of 1"),
    ],
)
def test_bad_pools(scores: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bootstrap_ranks(scores)  # type: ignore[arg-type]  # wrong on purpose


def test_coverage_near_the_end_of_the_scale() -> None:
    """A percentile bootstrap collapses here: it covers 41 % at five runs."""
    rng = np.random.default_rng(0)
    truth, shift = 0.96, math.sqrt(2) * 1.750686  # Phi(1.750686) = .96
    hits = []
    for _ in range(500):
        found = probability_of_improvement(rng.normal(size=5) + shift, rng.normal(size=5))
        assert found.low is not None
        assert found.high is not None
        hits.append(found.low <= truth <= found.high)
    assert np.mean(hits) > 0.93


def test_every_win_pattern_has_a_proper_interval() -> None:
    for wins in itertools.product((0, 1), repeat=4):
        found = probability_of_improvement(wins, [0.5] * 4)
        paired = probability_of_improvement(wins, [0.5] * 4, paired=True)
        for interval in (found, paired):
            assert interval.low is not None
            assert interval.high is not None
            assert 0 <= interval.low <= interval.mid <= interval.high <= 1
            assert interval.high - interval.low > 0.1
