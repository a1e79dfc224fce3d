from itertools import combinations

import pytest
import torch
from rlbench_research.passk import passk_analytic, passk_best, pkpo
from rlbench_research.signed import negatives_only, positives_only, w_reinforce

from rlbench.builtin.estimators.group import group
from rlbench.testing import make_rollout

NAN = float("nan")


def outcomes(advantage):
    return advantage.advantages[:, 0].tolist()


def close(expected):
    return pytest.approx(expected, abs=1e-6)


def exactly(reward, ids=None):
    return make_rollout(reward=reward, group=ids, dtype=torch.float64)


# The best completion


def test_the_best_gets_its_lead_and_the_others_nothing():
    assert outcomes(passk_best(exactly([1, 0, 0, 0.5]), std=False)) == [0.5, 0, 0, 0]
    # sd 0.4787136: 0.5 / 0.4787136
    assert outcomes(passk_best(exactly([1, 0, 0, 0.5]))) == close([1.0444637, 0, 0, 0])
    # ddof 0: 0.4145781
    assert outcomes(passk_best(exactly([1, 0, 0, 0.5]), ddof=0)) == close([1.2060425, 0, 0, 0])


def test_a_tie_for_the_best_a_lone_row_and_unscorable_rows_give_nothing():
    rollout = exactly([1, 1, 0, 5, NAN, 2, -1], [0, 0, 0, 1, 1, 2, 2])
    assert outcomes(passk_best(rollout, std=False)) == [0, 0, 0, 0, 0, 3, 0]


# Groups of k, binary


def test_passk_analytic_by_hand():
    # N = 4, N- = 3, k = 2: 1 - p = 3 / 6, s = 0.5; right 0.5 / 0.5; wrong (0.5 - 2 / 3) / 0.5
    assert outcomes(passk_analytic(exactly([0, 1, 0, 0]))) == close([-1 / 3, 1, -1 / 3, -1 / 3])
    # N- = 2: 1 - p = 1 / 6, s = sqrt(5) / 6; right 1 / sqrt(5); wrong (1 / 6 - 1 / 3) / s
    root = 5**0.5
    assert outcomes(passk_analytic(exactly([0, 1, 1, 0]))) == close(
        [-1 / root, 1 / root, 1 / root, -1 / root]
    )


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("right", range(7))
def test_passk_analytic_agrees_with_counting_the_groups(k, right):
    reward = [1.0] * right + [0.0] * (6 - right)
    sets = list(combinations(range(6), k))
    score = {s: float(any(reward[i] for i in s)) for s in sets}
    mean = sum(score.values()) / len(sets)
    deviation = (mean * (1 - mean)) ** 0.5
    expected = [0.0] * 6
    if 1e-9 < mean < 1 - 1e-9:
        for i in range(6):
            own = [score[s] for s in sets if i in s]
            expected[i] = (sum(own) / len(own) - mean) / deviation
    found = outcomes(passk_analytic(exactly(reward), k=k))
    assert found == close(expected)
    assert sum(found) == close(0)


def test_passk_analytic_with_one_is_the_group_estimator():
    rollout = exactly([1, 0, 0, 1, 0, NAN, 1, 0], [0, 0, 0, 0, 0, 1, 1, 1])
    expected = group(rollout, ddof=0, eps=0.0)
    assert outcomes(passk_analytic(rollout, k=1)) == close(outcomes(expected))


@pytest.mark.parametrize("reward", [[1, 1, 1], [0, 0, 0], [1, 1, 0], [1], [NAN, 0]])
def test_passk_analytic_without_a_signal_is_exactly_zero(reward):
    # [1, 1, 0]: with one wrong, every pair has a success
    assert outcomes(passk_analytic(exactly(reward))) == [0] * len(reward)


# Sets of k, any outcome


def by_sets(reward, k):
    """The published definition: effective reward minus baseline, one set after the other."""
    n = len(reward)
    sets = list(combinations(range(n), k))
    found = []
    for i in range(n):
        own = [s for s in sets if i in s]
        effective = sum(max(reward[j] for j in s) for s in own) / len(sets)
        baseline = sum(max(reward[j] for j in s if j != i) for s in own) / len(sets)
        found.append(effective - baseline)
    return found


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "reward", [[0, 1, 0, 0, 0], [1, 0, 1, 1, 0], [0.3, -2, 5, 0.3, 1, 4.5], [2, 2, 2, 1, 1]]
)
def test_pkpo_agrees_with_its_definition(reward, k):
    assert outcomes(pkpo(exactly(reward), k=k)) == close(by_sets(reward, k))


def test_pkpo_by_hand():
    # n = 4, k = 2, 6 pairs. A lone success adds 1 to its 3 pairs; a failure adds nothing.
    assert outcomes(pkpo(exactly([0, 1, 0, 0]))) == close([0, 0.5, 0, 0])
    # Two successes add 1 to 2 pairs each, with a failure; their own pair has one without either.
    assert outcomes(pkpo(exactly([0, 1, 1, 0]))) == close([0, 1 / 3, 1 / 3, 0])
    # 3 leads 1 and 0: 2 + 3 of 3 pairs; 1 leads 0
    assert outcomes(pkpo(exactly([1, 3, 0]))) == close([1 / 3, 5 / 3, 0])


@pytest.mark.parametrize(("k", "n"), [(2, 2), (2, 3), (3, 4)])
def test_pkpo_is_unbiased(k, n):
    # Draws are right with probability p: the gradient of 1 - (1 - p)^k is k (1 - p)^(k - 1).
    p = 0.3
    gradient = 0.0
    for bits in range(2**n):
        reward = [float(bits >> i & 1) for i in range(n)]
        chance, found = 1.0, outcomes(pkpo(exactly(reward), k=k))
        for r in reward:
            chance *= p if r else 1 - p
        score = [1 / p if r else -1 / (1 - p) for r in reward]
        gradient += chance * sum(a * s for a, s in zip(found, score, strict=True))
    assert gradient == close(k * (1 - p) ** (k - 1))


def test_pkpo_groups_that_are_too_small_get_zero():
    rollout = exactly([1, 0, 1, NAN, 1, 0, 0], [0, 0, 1, 1, 2, 2, 2])
    # the last group is one set: 1 adds 1 to it
    assert outcomes(pkpo(rollout, k=3)) == [0, 0, 0, 0, 1, 0, 0]


@pytest.mark.parametrize("estimate", [passk_best, passk_analytic, pkpo])
@pytest.mark.parametrize("n", [2, 3, 16, 64])
def test_equal_rewards_are_exactly_zero_in_float32(estimate, n):
    for value in (0.1, 4.2, -1e4):
        assert outcomes(estimate(make_rollout(reward=[value] * n))) == [0] * n


def test_large_rewards_stay_finite():
    for estimate in (passk_best, passk_analytic, pkpo):
        found = estimate(make_rollout(reward=[1e4, -1e4, 0, 1e4 - 1, NAN] * 12))
        assert found.advantages.isfinite().all()


# One sign only


def test_signs_by_hand():
    rollout = make_rollout(reward=[1, 0, NAN, 0.5], mask=[[1, 1], [0, 1], [1, 1], [1, 0]])
    assert positives_only(rollout).advantages.tolist() == [[1, 1], [0, 0], [0, 0], [0, 0]]
    assert negatives_only(rollout).advantages.tolist() == [[0, 0], [0, -1], [0, 0], [-1, 0]]
    both = w_reinforce(rollout, weight=0.25, threshold=0.4).advantages
    assert both.tolist() == [[0.25, 0.25], [0, -1], [0, 0], [0.25, 0]]
