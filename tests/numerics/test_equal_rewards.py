"""Equal rewards carry no signal, to the last bit: in any number, at any value, beside any group."""

import pytest
import torch

from rlbench.aggregation import MODES, aggregate
from rlbench.plugin.loading import load
from rlbench.plugin.selection import parse
from rlbench.testing import make_batch, make_rollout

REGISTRY = load()
VALUES = [i / 10 for i in range(1, 50)]  # 0.1 to 4.9, few of them exact in binary
TEXTS = [
    "group",
    "group:eps=0",
    "group:eps=1e-9,kl=after",
    "group:ddof=0,eps=1e-8",
    "group:std=false",
    "group:leave_one_out=true,eps=0",
    "group:kl=per_token",
    "dr_grpo",
    "rloo",
    "opo",
    "group_mean_batch_std:eps=0",
    "group_gae:lam=1,eps=0",
]


def estimate(text, rollout):
    return parse(REGISTRY, "estimator", text).create()(rollout).advantages


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("text", TEXTS)
def test_groups_of_2_to_64_equal_rewards_get_exactly_zero(text, dtype):
    for n in [*range(2, 17), 31, 32, 33, 48, 63, 64]:
        reward = [value for value in VALUES for _ in range(n)]
        group = [i for i in range(len(VALUES)) for _ in range(n)]
        values = [[0.3]] * len(reward)
        rollout = make_rollout(reward=reward, group=group, values=values, dtype=dtype)
        found = estimate(text, rollout)
        bad = found[:, 0].nonzero()[:, 0].tolist()
        assert not bad, f"{n} x {reward[bad[0]]}: {found[bad[0], 0].item()}"


@pytest.mark.parametrize("text", TEXTS)
def test_sixteen_times_4_2_beside_a_group_with_a_signal(text):
    # interleaved, so that no run of equal rows helps
    reward = [x for pair in zip([4.2] * 16, [0.0, 1.0] * 8, strict=True) for x in pair]
    rollout = make_rollout(reward=reward, group=[0, 1] * 16, values=[[0.7]] * 32)
    found = estimate(text, rollout)
    assert torch.equal(found[::2], torch.zeros(16, 1))
    assert (found[1::2] != 0).all()


@pytest.mark.parametrize("text", TEXTS)
def test_groups_of_different_sizes_are_groups_all_the_same(text):
    sizes = [2, 3, 5, 7, 11]
    reward = [0.1 * size for size in sizes for _ in range(size)]
    group = [size for size in sizes for _ in range(size)]
    rollout = make_rollout(reward=reward, group=group, values=[[0.1]] * len(group))
    assert not estimate(text, rollout).any()


@pytest.mark.parametrize("text", TEXTS)
def test_one_reward_in_the_last_digit_is_a_signal(text):
    # the neighbour of 4.2 in float32 is a different reward
    above = torch.nextafter(torch.tensor(4.2), torch.tensor(5.0)).item()
    rollout = make_rollout(reward=[4.2, 4.2, 4.2, above], values=[[0.0]] * 4)
    found = estimate(text, rollout)[:, 0]
    assert found[3] > 0
    assert (found[:3] < 0).all()


@pytest.mark.parametrize("mode", MODES)
def test_a_group_without_signal_has_neither_loss_nor_gradient(mode):
    rollout = make_rollout(reward=[0.1] * 4 + [4.2] * 4, group=[0] * 4 + [1] * 4)
    batch = make_batch(logp=[[-1.0 - i] for i in range(8)], advantages=estimate("group", rollout))
    terms = parse(REGISTRY, "loss", "clip").create()(batch)
    loss = aggregate(terms.per_token, batch.mask, mode, horizon=3, group=rollout.group)
    loss.backward()
    assert loss.item() == 0
    assert not batch.logp.grad.any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "text",
    [
        *("reinforce", "reinforce:std=true,eps=0", "reinforce_pp:eps=0", "reinforce_pp:ddof=0"),
        *("reinforce_pp_baseline:eps=0", "gae:whiten=true,eps=0", "mc_returns:whiten=true,eps=0"),
        *("decoupled_gae:whiten=true,eps=0", "length_adaptive_gae:whiten=true,eps=0"),
    ],
)
def test_a_batch_of_equal_rewards_is_exactly_zero_when_it_is_the_batch_that_counts(text, dtype):
    for n in (2, 3, 7, 16, 64):
        for value in VALUES:
            rollout = make_rollout(reward=[value] * n, values=[[0.0]] * n, dtype=dtype)
            assert not estimate(text, rollout).any(), f"{n} x {value}"
