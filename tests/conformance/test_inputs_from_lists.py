import pytest
import torch

from rlbench.testing import make_batch, make_rollout

NAN = float("nan")


def test_the_reward_sits_on_the_last_token_of_the_mask():
    rollout = make_rollout(reward=[1, 2, NAN, 4], mask=[[1, 1, 0], [1, 0, 1], [1], []])
    assert rollout.mask.tolist() == [
        [True, True, False],
        [True, False, True],
        [True, False, False],
        [False] * 3,
    ]
    assert rollout.token_reward[[0, 1, 3]].tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    assert rollout.token_reward[2].isnan().tolist() == [True, False, False]


def test_what_is_left_out_is_harmless():
    rollout = make_rollout(reward=[1, 0])
    assert rollout.mask.tolist() == [[True], [True]]
    assert rollout.group.tolist() == [0, 0]
    assert not rollout.truncated.any()
    assert rollout.old_logp.tolist() == [[-1], [-1]]
    assert rollout.values is rollout.last_value is rollout.ref_logp is rollout.greedy_reward is None


def test_token_rewards_add_up_to_the_reward():
    rollout = make_rollout(token_reward=[[0, 0.5, 1], [2]])
    assert rollout.reward.tolist() == [1.5, 2]
    assert rollout.token_reward.tolist() == [[0, 0.5, 1], [2, 0, 0]]


def test_flat_lists_are_one_row():
    assert make_rollout(reward=[1], values=[0.1, 0.2]).values.shape == (1, 2)
    assert make_batch(logp=[-1.0, -2.0]).logp.shape == (1, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_have_the_dtype_that_was_asked_for(dtype):
    rollout = make_rollout(reward=[1], values=[[0.5]], last_value=[1], dtype=dtype)
    batch = make_batch(logp=[[-1]], ref_logp=[[-2]], dtype=dtype)
    for tensor in (rollout.reward, rollout.token_reward, rollout.values, rollout.last_value):
        assert tensor.dtype == dtype
    for tensor in (batch.logp, batch.old_logp, batch.advantages, batch.ref_logp, batch.entropy):
        assert tensor.dtype == dtype
    assert rollout.group.dtype == batch.group.dtype == torch.int64


def test_only_logp_carries_a_gradient():
    batch = make_batch(logp=[[-1.0, -2.0]])
    assert batch.logp.requires_grad
    assert not batch.old_logp.requires_grad
    assert torch.equal(batch.old_logp, batch.logp.detach())
    assert batch.old_logp.data_ptr() != batch.logp.data_ptr()


def test_a_rollout_without_any_reward_is_refused():
    with pytest.raises(ValueError, match="reward or token_reward"):
        make_rollout(values=[[1.0]])


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="group: shape"):
        make_rollout(reward=[1, 2], group=[0])
