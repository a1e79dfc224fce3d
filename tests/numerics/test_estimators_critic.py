import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlbench.builtin.estimators.critic import (
    decoupled_gae,
    gae,
    group_gae,
    length_adaptive_gae,
    mc_returns,
)
from rlbench.errors import UsageError
from rlbench.testing import make_rollout

NAN = float("nan")


def close(expected, abs=1e-5):  # noqa: A002 - pytest's own word
    return pytest.approx(expected, abs=abs)


def test_gae_by_hand():
    # delta = [0.6 - 0.5, 0.4 - 0.6, 1 - 0.4]; A2 = 0.6, A1 = -0.2 + 0.57, A0 = 0.1 + 0.3515
    rollout = make_rollout(reward=[1], values=[[0.5, 0.6, 0.4]])
    result = gae(rollout)
    assert result.advantages[0].tolist() == close([0.4515, 0.37, 0.6])
    assert result.returns[0].tolist() == close([0.9515, 0.97, 1.0])


@pytest.mark.parametrize("junk", [50.0, NAN, math.inf])
def test_values_under_the_mask_do_not_leak(junk):
    rollout = make_rollout(
        token_reward=[[0, 0, 2, 0, 0]],
        mask=[[1, 1, 1, 0, 0]],
        values=[[0.5, 0.5, 0.5, junk, -7]],
    )
    result = gae(rollout, lam=0.9)
    # A2 = 1.5, A1 = 0.9 * 1.5, A0 = 0.9 * 1.35
    assert result.advantages[0].tolist() == close([1.215, 1.35, 1.5, 0, 0])
    assert result.returns[0].tolist() == close([1.715, 1.85, 2, 0, 0])


def test_gae_steps_over_masked_tokens_in_the_middle():
    dense = gae(make_rollout(reward=[1], values=[[0.5, 0.6, 0.4]]), gamma=0.9)
    gaps = make_rollout(reward=[1], mask=[[1, 0, 0, 1, 1]], values=[[0.5, NAN, 9, 0.6, 0.4]])
    result = gae(gaps, gamma=0.9)
    assert torch.equal(result.advantages[:, [0, 3, 4]], dense.advantages)
    assert result.advantages[0, 1:3].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("truncated", "truncation", "expected"),
    [
        (True, "bootstrap", [3.5, 2.5]),  # delta1 = 1 + 2 - 0.5, delta0 = 1 + 0.5 - 0.5
        (False, "bootstrap", [1.5, 0.5]),
        (True, "terminal", [1.5, 0.5]),
    ],
)
def test_truncated_is_not_terminated(truncated, truncation, expected):
    rollout = make_rollout(
        token_reward=[[1, 1]], values=[[0.5, 0.5]], last_value=[2.0], truncated=[truncated]
    )
    assert gae(rollout, lam=1.0, truncation=truncation).advantages[0].tolist() == close(expected)


def test_no_value_of_another_sequence_enters():
    # V is 2 everywhere in the first, which is cut before a state worth 2, and 50 in the second.
    both = make_rollout(
        reward=[0, 0],
        values=[[2, 2, 2], [50, 50, 50]],
        last_value=[2, NAN],
        truncated=[True, False],
    )
    result = gae(both, lam=1.0, truncation="bootstrap").advantages
    assert result.tolist() == [[0, 0, 0], [-50, -50, -50]]


def test_bootstrap_ignores_the_last_value_of_unscorable_rows():
    rollout = make_rollout(
        reward=[1, NAN], values=[[0.5], [0.5]], last_value=[0, NAN], truncated=[True, True]
    )
    result = gae(rollout, truncation="bootstrap")
    assert result.advantages.tolist() == [[0.5], [0]]
    assert result.returns.tolist() == [[1], [0]]


def test_whitening_is_over_tokens_and_leaves_the_returns():
    rollout = make_rollout(
        token_reward=[[1, 3, 0, 0], [5, 0, 0, 0]],
        mask=[[1, 1, 0, 0], [1, 0, 0, 0]],
        values=[[0] * 4] * 2,
    )
    # gamma 0: advantages are the rewards 1, 3, 5; sd (ddof 0) 1.632993
    result = gae(rollout, gamma=0.0, whiten=True, ddof=0, eps=0.0)
    assert result.advantages.tolist() == [close([-1.224745, 0, 0, 0]), close([1.224745, 0, 0, 0])]
    assert result.returns.tolist() == [[1, 3, 0, 0], [5, 0, 0, 0]]


def test_whitening_one_token_gives_zero():
    result = gae(make_rollout(reward=[1, NAN], values=[[0.5], [0.5]]), whiten=True)
    assert result.advantages.tolist() == [[0], [0]]


def test_whitening_does_not_cross_rows_when_batch_equals_length():
    reward, values = [1.0, 0.0, 2.0, 0.5], torch.linspace(0, 1, 16).reshape(4, 4)
    square = gae(make_rollout(reward=reward, values=values), whiten=True).advantages
    wide = torch.cat([values, torch.full((4, 1), 9.0)], dim=1)
    mask = [[1, 1, 1, 1, 0]] * 4
    oblong = gae(make_rollout(reward=reward, values=wide, mask=mask), whiten=True).advantages
    torch.testing.assert_close(oblong[:, :4], square)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_gae_agrees_with_its_definition(data):
    rows, width = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 6))
    number = st.floats(-5, 5)
    wide = st.lists(st.lists(number, min_size=width, max_size=width), min_size=rows, max_size=rows)
    mask = torch.tensor(
        data.draw(
            st.lists(
                st.lists(st.booleans(), min_size=width, max_size=width),
                min_size=rows,
                max_size=rows,
            )
        )
    )
    reward, values = data.draw(wide), data.draw(wide)
    last = data.draw(st.lists(number, min_size=rows, max_size=rows))
    gamma, lam = data.draw(st.floats(0, 1)), data.draw(st.floats(0, 1))
    rollout = make_rollout(
        token_reward=reward,
        values=values,
        mask=mask,
        last_value=last,
        truncated=[True] * rows,
        dtype=torch.float64,
    )
    result = gae(rollout, gamma=gamma, lam=lam, truncation="bootstrap").advantages
    for row in range(rows):
        live = [t for t in range(width) if mask[row, t]]
        v = [values[row][t] for t in live] + [last[row]]
        delta = [reward[row][t] + gamma * v[k + 1] - v[k] for k, t in enumerate(live)]
        for k, t in enumerate(live):
            expected = sum((gamma * lam) ** (j - k) * delta[j] for j in range(k, len(live)))
            assert result[row, t].item() == pytest.approx(expected, abs=1e-9)


def test_missing_values_are_named():
    with pytest.raises(UsageError, match="no values"):
        gae(make_rollout(reward=[1]))
    with pytest.raises(UsageError, match="last_value"):
        gae(make_rollout(reward=[1], values=[[0.5]]), truncation="bootstrap")


# The hybrid


def test_group_gae_standardises_each_position_over_the_rows_that_live_there():
    rollout = make_rollout(
        reward=[1, 3, 4],
        mask=[[1, 1, 0], [1, 1, 0], [1, 1, 1]],
        values=[[0, 0, NAN], [0, 0, NAN], [0, 0, 0]],
    )
    result = group_gae(rollout, lam=1.0, eps=0.0)
    # At tokens 0 and 1 the advantages are 1, 3, 4: mean 8 / 3, sd 1.527525
    expected = [-1.091089, 0.218218, 0.872872]
    assert result.advantages[:, 0].tolist() == close(expected)
    assert result.advantages[:, 1].tolist() == close(expected)
    assert result.advantages[:, 2].tolist() == [0, 0, 0]  # the third row is alone
    assert result.returns.tolist() == [[1, 1, 0], [3, 3, 0], [4, 4, 4]]


def test_group_gae_has_mean_zero_and_sd_one_in_every_group():
    draw = torch.Generator().manual_seed(1)
    rollout = make_rollout(
        reward=torch.rand(8, generator=draw),
        group=[0, 1] * 4,
        values=torch.rand(8, 3, generator=draw),
    )
    result = group_gae(rollout).advantages
    for rows in (slice(0, 8, 2), slice(1, 8, 2)):
        torch.testing.assert_close(result[rows].mean(0), torch.zeros(3), rtol=0, atol=1e-6)
        torch.testing.assert_close(result[rows].std(0), torch.ones(3), rtol=0, atol=1e-4)


def test_group_gae_of_identical_rows_is_exactly_zero():
    rollout = make_rollout(reward=[4.2] * 16, values=[[0.3, 0.1, 0.7]] * 16)
    assert torch.equal(group_gae(rollout, eps=0.0).advantages, torch.zeros(16, 3))


# Masked tokens between others


def test_gaps_may_be_states_of_value_zero():
    # carry, lam 1, gamma 0.5: A2 = 1 - 0.4 = 0.6, A0 = 0.5 * 0.4 - 0.5 + 0.5 * 0.6 = 0
    # zero: A2 = 0.6; the gap: 0.5 * 0.4 + 0.5 * 0.6 = 0.5; A0 = 0 - 0.5 + 0.5 * 0.5 = -0.25
    rollout = make_rollout(reward=[1], mask=[[1, 0, 1, 0]], values=[[0.5, NAN, 0.4, 9]])
    carry = gae(rollout, gamma=0.5, lam=1.0)
    assert carry.advantages[0].tolist() == close([0, 0, 0.6, 0])
    zero = gae(rollout, gamma=0.5, lam=1.0, gaps="zero")
    assert zero.advantages[0].tolist() == close([-0.25, 0, 0.6, 0])
    assert zero.returns[0].tolist() == close([0.25, 0, 1, 0])


def test_zero_gaps_and_a_bootstrap_pay_no_discount_for_padding():
    rollout = make_rollout(
        token_reward=[[0, 0, 1, 0, 0]],
        mask=[[1, 0, 1, 0, 0]],
        values=[[0.5, 7, 0.5, 7, 7]],
        last_value=[2.0],
        truncated=[True],
    )
    result = gae(rollout, gamma=0.5, lam=1.0, gaps="zero", truncation="bootstrap")
    # A2 = 1 + 0.5 * 2 - 0.5 = 1.5; gap: 0.5 * 0.5 + 0.5 * 1.5 = 1; A0 = -0.5 + 0.5 * 1 = 0
    assert result.advantages[0].tolist() == close([0, 0, 1.5, 0, 0])


# Two lambdas, and one for each length


def test_mc_returns_by_hand():
    # G = 1 + 0.5 * (2 + 0.5 * 4) = 3, 2 + 0.5 * 4 = 4, 4
    rollout = make_rollout(token_reward=[[1, 2, 4]], values=[[0.5, 1, 3]])
    result = mc_returns(rollout, gamma=0.5)
    assert result.advantages[0].tolist() == close([2.5, 3, 1])
    assert result.returns[0].tolist() == close([3, 4, 4])


def test_mc_returns_go_on_after_a_cut():
    # G = 1 + 0.5 * (2 + 0.5 * 8) = 4, 6
    rollout = make_rollout(token_reward=[[1, 2]], values=[[0, 0]], last_value=[8], truncated=[True])
    result = mc_returns(rollout, gamma=0.5, truncation="bootstrap")
    assert result.returns[0].tolist() == close([4, 6])


def test_decoupled_gae_takes_targets_from_the_other_lambda():
    # advantages as in test_gae_by_hand; targets with lambda 1 are the reward at the end
    rollout = make_rollout(reward=[1], values=[[0.5, 0.6, 0.4]])
    result = decoupled_gae(rollout)
    assert result.advantages[0].tolist() == close([0.4515, 0.37, 0.6])
    assert result.returns[0].tolist() == close([1, 1, 1])
    # and with lambda 0: the next value
    other = decoupled_gae(rollout, lam_policy=1.0, lam_critic=0.0)
    assert other.advantages[0].tolist() == close([0.5, 0.4, 0.6])
    assert other.returns[0].tolist() == close([0.6, 0.4, 1])


def test_length_adaptive_gae_by_hand():
    # alpha 0.5: 4 tokens give lambda 1 - 1 / 2 = 0.5, 2 tokens 1 - 1 / 1 = 0, and a single one,
    # which would have 1 - 1 / 0.5 = -1, has 0 too
    rollout = make_rollout(
        reward=[1, 1, 1],
        mask=[[1, 1, 1, 0, 1], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]],
        values=[[0.5] * 5] * 3,
    )
    result = length_adaptive_gae(rollout, alpha=0.5)
    # delta is 0 until the last token, where it is 0.5
    assert result.advantages.tolist() == [
        close([0.0625, 0.125, 0.25, 0, 0.5]),
        close([0, 0.5, 0, 0, 0]),
        close([0.5, 0, 0, 0, 0]),
    ]
    assert result.returns[0].tolist() == close([1, 1, 1, 0, 1])


@pytest.mark.parametrize("estimate", [gae, mc_returns, decoupled_gae, length_adaptive_gae])
def test_whitening_touches_the_advantages_only(estimate):
    draw = torch.Generator().manual_seed(0)
    rollout = make_rollout(
        reward=torch.rand(5, generator=draw),
        values=torch.rand(5, 9, generator=draw),
        mask=torch.rand(5, 9, generator=draw) > 0.3,
        dtype=torch.float64,
    )
    plain, white = estimate(rollout), estimate(rollout, whiten=True, ddof=0, eps=0.0)
    inside = white.advantages[rollout.mask]
    assert inside.mean().item() == close(0)
    assert inside.std(correction=0).item() == close(1)
    assert torch.equal(plain.returns, white.returns)


@pytest.mark.parametrize(
    "estimate", [gae, mc_returns, decoupled_gae, length_adaptive_gae, group_gae]
)
def test_no_critic_is_no_traceback(estimate):
    with pytest.raises(UsageError, match="no values"):
        estimate(make_rollout(reward=[1]))
