import pytest
import torch

from rlbench.builtin.estimators.reinforce import (
    reinforce,
    reinforce_pp,
    reinforce_pp_baseline,
    remax,
)
from rlbench.errors import UsageError
from rlbench.testing import make_rollout

NAN = float("nan")


def outcomes(advantage):
    """Advantages of the first token of every row."""
    return advantage.advantages[:, 0].tolist()


def close(expected, abs=1e-5):  # noqa: A002 - pytest's own word
    return pytest.approx(expected, abs=abs)


# The batch's mean


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # mean 2, squares 1 + 4 + 9 = 14 without the unscorable row
        ({}, [-1, -2, 0, 3]),
        ({"baseline": "none"}, [1, 0, 0, 5]),
        ({"std": True, "eps": 0.0}, [-1 / 7**0.5, -2 / 7**0.5, 0, 3 / 7**0.5]),
        ({"std": True, "ddof": 0, "eps": 1.0}, [-1 / 3.160247, -2 / 3.160247, 0, 3 / 3.160247]),
        ({"baseline": "none", "std": True, "eps": 0.0}, [1 / 7**0.5, 0, 0, 5 / 7**0.5]),
    ],
)
def test_reinforce_by_hand(options, expected):
    rollout = make_rollout(reward=[1, 0, NAN, 5], group=[0, 1, 2, 3])
    assert outcomes(reinforce(rollout, **options)) == close(expected)


def test_reinforce_without_a_baseline_is_the_reward_at_every_token():
    rollout = make_rollout(reward=[1, 2], mask=[[1, 1, 0], [0, 1, 1]])
    assert reinforce(rollout, baseline="none").advantages.tolist() == [[1, 1, 0], [0, 2, 2]]


@pytest.mark.parametrize("value", [0.1, 4.2, -1e4])
@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_a_batch_of_equal_rewards_has_no_signal(value, n):
    rollout = make_rollout(reward=[value] * n, group=list(range(n)), mask=[[1, 1, 1]] * n)
    for found in (reinforce(rollout, std=True, eps=0.0), reinforce_pp(rollout, eps=0.0)):
        assert not found.advantages.any()


# REINFORCE++


def test_reinforce_pp_returns_by_hand():
    # gamma 0.5, reward on the last token of the mask, penalties on all
    rollout = make_rollout(
        reward=[1, 2],
        token_reward=[[-0.1, NAN, 0.8, 0], [-0.4, 2, NAN, NAN]],
        mask=[[1, 0, 1, 0], [1, 1, 0, 0]],
    )
    # -0.1 + 0.5 * 0.8 = 0.3: the gap costs no discount; -0.4 + 0.5 * 2 = 0.6
    plain = reinforce_pp(rollout, gamma=0.5, whiten=False).advantages
    assert plain.tolist() == [close([0.3, 0, 0.8, 0]), close([0.6, 2, 0, 0])]
    # mean 3.7 / 4 = 0.925; squares 0.390625 + 0.015625 + 0.105625 + 1.155625 = 1.6675
    white = reinforce_pp(rollout, gamma=0.5, eps=0.0).advantages
    sd = (1.6675 / 3) ** 0.5
    assert white[0].tolist() == close([-0.625 / sd, 0, -0.125 / sd, 0])
    assert white[1].tolist() == close([-0.325 / sd, 1.075 / sd, 0, 0])
    population = reinforce_pp(rollout, gamma=0.5, ddof=0, eps=0.5).advantages
    assert population[1, 1].item() == close(1.075 / ((1.6675 / 4) ** 0.5 + 0.5))


def test_reinforce_pp_per_token_penalty_is_not_summed():
    rollout = make_rollout(reward=[1], token_reward=[[-0.1, -0.2, 0.7]])
    # to go: 0.4, 0.5, 0.7; per token: 1 - 0.1, 1 - 0.2, 1 - 0.3
    to_go = reinforce_pp(rollout, whiten=False).advantages
    assert to_go[0].tolist() == close([0.4, 0.5, 0.7])
    own = reinforce_pp(rollout, kl="per_token", whiten=False).advantages
    assert own[0].tolist() == close([0.9, 0.8, 0.7])
    # with a discount, only the reward is discounted: 0.25 - 0.1, 0.5 - 0.2, 1 - 0.3
    own = reinforce_pp(rollout, kl="per_token", gamma=0.5, whiten=False).advantages
    assert own[0].tolist() == close([0.15, 0.3, 0.7])


def test_reinforce_pp_sees_the_reward_before_a_gap():
    # SkyRL starts again at masked tokens: the first turn would get 0
    rollout = make_rollout(reward=[1], mask=[[1, 0, 0, 1]])
    assert reinforce_pp(rollout, whiten=False).advantages.tolist() == [[1, 0, 0, 1]]


@pytest.mark.parametrize("kl", ["before", "after", "per_token"])
def test_reinforce_pp_baseline_by_hand(kl):
    rollout = make_rollout(
        reward=[1, 0], token_reward=[[-0.1, 0.8], [0, -0.1]], dtype=torch.float64
    )
    # before: 0.7 and -0.1 from their mean 0.3. after: 0.5 and -0.5, minus penalties still to come.
    centred = {
        "before": [[0.4, 0.4], [-0.4, -0.4]],
        "after": [[0.5 - 0.3, 0.5 - 0.2], [-0.5 - 0.1, -0.5 - 0.1]],
        "per_token": [[0.5 - 0.1, 0.5 - 0.2], [-0.5, -0.5 - 0.1]],
    }[kl]
    wanted = torch.tensor(centred, dtype=torch.float64)
    plain = reinforce_pp_baseline(rollout, kl=kl, whiten=False).advantages
    torch.testing.assert_close(plain, wanted, rtol=0, atol=1e-7)
    white = reinforce_pp_baseline(rollout, kl=kl, eps=0.0).advantages
    wanted = (wanted - wanted.mean()) / wanted.std()
    torch.testing.assert_close(white, wanted, rtol=0, atol=1e-6)


def test_reinforce_pp_baseline_weighs_tokens_not_completions():
    # centred 0.5 on one token, -0.5 on three: mean -0.25, squares 0.5625 + 3 * 0.0625 = 0.75
    rollout = make_rollout(reward=[1, 0], mask=[[1, 0, 0], [1, 1, 1]])
    white = reinforce_pp_baseline(rollout, eps=0.0).advantages
    assert white.tolist() == [close([1.5, 0, 0]), close([-0.5, -0.5, -0.5])]


def test_reinforce_pp_baseline_has_its_mean_over_groups_from_the_group():
    # groups 10, 12 and 0, 2: all are +-1, sd of +-1 with ddof 0 is 1
    rollout = make_rollout(reward=[10, 0, 12, 2], group=[0, 1, 0, 1])
    white = reinforce_pp_baseline(rollout, ddof=0, eps=0.0)
    assert outcomes(white) == close([-1, -1, 1, 1])


def test_reinforce_pp_baseline_singleton():
    rollout = make_rollout(reward=[0.7, NAN, 1, 0], group=[0, 0, 1, 1])
    found = reinforce_pp_baseline(rollout, whiten=False, singleton="raw")
    assert outcomes(found) == close([0.7, 0, 0.5, -0.5])
    assert outcomes(reinforce_pp_baseline(rollout, whiten=False)) == close([0, 0, 0.5, -0.5])


@pytest.mark.parametrize("estimate", [reinforce_pp, reinforce_pp_baseline])
def test_large_rewards_and_single_tokens_stay_finite(estimate):
    for reward in ([1e4, -1e4, NAN], [1e4, 1e4, 1e4], [NAN, 1e4, NAN], [NAN] * 3):
        assert estimate(make_rollout(reward=reward)).advantages.isfinite().all()


# ReMax


def test_remax_by_hand():
    rollout = make_rollout(reward=[1, 0, 0.5], greedy_reward=[0.25, 0.25, NAN])
    assert outcomes(remax(rollout)) == [0.75, -0.25, 0]


def test_remax_sums_what_is_to_come_undiscounted():
    rollout = make_rollout(
        reward=[1],
        token_reward=[[-0.1, NAN, 0.8]],
        mask=[[1, 0, 1]],
        greedy_reward=[0.5],
    )
    assert remax(rollout).advantages[0].tolist() == close([0.2, 0, 0.3])


def test_remax_of_an_equal_greedy_completion_is_exactly_zero():
    rollout = make_rollout(reward=[4.2, 0.1], greedy_reward=[4.2, 0.1], mask=[[1, 1], [1, 1]])
    assert not remax(rollout).advantages.any()


def test_remax_without_a_greedy_completion_is_no_traceback():
    with pytest.raises(UsageError, match="greedy_reward"):
        remax(make_rollout(reward=[1]))
