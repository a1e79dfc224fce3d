import math

import pytest
import torch
from rlbench_research.estimators import gpg, max_rl
from rlbench_research.losses import simple_po
from rlbench_research.signed import w_reinforce

from rlbench.testing import make_batch, make_rollout

NAN = float("nan")


def outcomes(advantage):
    return pytest.approx(advantage.advantages[:, 0].tolist(), abs=1e-6)


def test_gpg_scales_by_the_share_of_rows_with_signal():
    rollout = make_rollout(reward=[1, 0, 0, 0.5, 1, 1, 1, 1], group=[0] * 4 + [1] * 4)
    # alpha = 8 / (8 - 4) = 2; mean 0.375 in the first group
    assert outcomes(gpg(rollout)) == [1.25, -0.75, -0.75, 0.25, 0, 0, 0, 0]


def test_gpg_without_idle_groups_is_plain_centring():
    assert outcomes(gpg(make_rollout(reward=[1, 0, 0, 0.5]))) == [0.625, -0.375, -0.375, 0.125]


def test_gpg_counts_scored_rows_only():
    rollout = make_rollout(reward=[1, 0, NAN, 3, 3, NAN], group=[0, 0, 0, 1, 1, 1])
    # alpha = 4 / (4 - 2) = 2
    assert outcomes(gpg(rollout)) == [1, -1, 0, 0, 0, 0]


@pytest.mark.parametrize("estimate", [gpg, max_rl])
def test_a_batch_without_any_signal_gives_zero(estimate):
    rollout = make_rollout(reward=[4.2] * 3 + [0] * 3 + [NAN], group=[0, 0, 0, 1, 1, 1, 2])
    assert estimate(rollout).advantages.tolist() == [[0]] * 7


def test_max_rl_divides_by_the_mean():
    rollout = make_rollout(reward=[1, 0, 0, 0, 1, 1, 1, 0], group=[0, 1, 0, 1, 0, 1, 1, 0])
    # group 0: 1, 0, 1, 0 with mean 0.5; group 1: 0, 0, 1, 1 with mean 0.5
    assert outcomes(max_rl(rollout)) == [1, -1, -1, -1, 1, 1, 1, -1]
    # mean 0.25: a lone success weighs more
    assert outcomes(max_rl(make_rollout(reward=[1, 0, 0, 0]))) == [3, -1, -1, -1]


@pytest.mark.parametrize("reward", [[-1, 0], [-1, 1], [0.1, 0.2, -0.3]])
def test_max_rl_is_zero_where_the_mean_is_not_positive(reward):
    assert outcomes(max_rl(make_rollout(reward=reward))) == [0] * len(reward)


def test_simple_po_by_hand():
    ratios = [1.5, 0.5, 1.0, 1.2]
    batch = make_batch(
        logp=[math.log(r) - 1 for r in ratios],
        old_logp=[-1.0] * 4,
        advantages=[1, -2, 3, 1],
        dtype=torch.float64,
    )
    terms = simple_po(batch, eps=0.2)
    # -(1.5 - 0.25 / 0.4), -(-1 - 2 * 0.25 / 0.4), -3, -(1.2 - 0.04 / 0.4)
    assert terms.per_token[0].tolist() == pytest.approx([-0.875, 2.25, -3, -1.1])
    assert terms.metrics["outside_fraction"][0, :3].tolist() == [1, 1, 0]


def test_simple_po_pulls_back_beyond_the_edge():
    ratios = [1.1, 1.2, 1.5, 0.7, 0.8, 0.9]
    batch = make_batch(
        logp=[math.log(r) for r in ratios],
        old_logp=[0.0] * 6,
        advantages=[1, 1, 1, -1, -1, -1],
        dtype=torch.float64,
    )
    simple_po(batch).per_token.sum().backward()
    # d loss / d logp = -r (A - |A| (r - 1) / eps)
    expected = [-1.1 * 0.5, 0, 1.5 * 1.5, -0.7 * 0.5, 0, 0.9 * 0.5]
    assert batch.logp.grad[0].tolist() == pytest.approx(expected, abs=1e-9)


def test_double_precision_stays_double():
    rollout = make_rollout(
        reward=[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], group=[0, 0, 0, 1, 1, 1], dtype=torch.float64
    )
    weighted = w_reinforce(rollout, weight=0.1).advantages[:, 0]
    assert weighted.tolist() == [0.1, -1, -1, 0.1, 0.1, 0.1]
    # half of the completions lie in a group with a signal: 2 (R - 1/3)
    scaled = gpg(rollout).advantages[:3, 0]
    assert scaled.tolist() == pytest.approx([4 / 3, -2 / 3, -2 / 3], rel=1e-15)
