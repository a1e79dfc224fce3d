import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlbench.builtin.estimators.critic import gae, group_gae
from rlbench.builtin.estimators.group import group, rloo
from rlbench.errors import UsageError
from rlbench.testing import make_rollout

NAN = float("nan")


def outcomes(advantage):
    """Advantages of the first token of every row."""
    return advantage.advantages[:, 0].tolist()


def close(expected, abs=1e-5):  # noqa: A002 - pytest's own word
    return pytest.approx(expected, abs=abs)


# Group-relative estimators


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        # mean 0.375, sd (ddof 1) 0.4787136
        (group, [1.30558, -0.783348, -0.783348, 0.261116]),
        (lambda r: group(r, std=False), [0.625, -0.375, -0.375, 0.125]),
        # 4 / 3 of the line above
        (rloo, [0.833333, -0.5, -0.5, 0.166667]),
    ],
)
def test_outcome_estimators_by_hand(estimate, expected):
    rollout = make_rollout(reward=[1, 0, 0, 0.5], mask=[[1, 1, 0]] * 4)
    advantages = estimate(rollout).advantages
    assert advantages[:, 0].tolist() == close(expected)
    assert torch.equal(advantages[:, 0], advantages[:, 1])
    assert advantages[:, 2].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("ddof", "expected"),
    [(1, [-0.866025, -0.866025, 0.866025, 0.866025]), (0, [-1, -1, 1, 1])],
)
def test_a_group_without_signal_gets_exactly_zero_and_its_neighbour_does_not(ddof, expected):
    rollout = make_rollout(reward=[1, 1, 1, 1, 0, 0, 1, 1], group=[0] * 4 + [1] * 4)
    result = outcomes(group(rollout, ddof=ddof))
    assert result[:4] == [0, 0, 0, 0]
    assert result[4:] == close(expected)


@pytest.mark.parametrize("estimate", [group, rloo])
@pytest.mark.parametrize("value", [4.2, 0.1, 1 / 3, -7.7])
@pytest.mark.parametrize("n", [2, 3, 7, 16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_rewards_leave_no_rounding_residue(estimate, value, n, dtype):
    rollout = make_rollout(reward=[value] * n, mask=[[1, 1, 1]] * n, dtype=dtype)
    assert torch.equal(estimate(rollout).advantages, torch.zeros(n, 3, dtype=dtype))
    exact = group(rollout, eps=0.0).advantages
    assert torch.equal(exact, torch.zeros(n, 3, dtype=dtype))


@pytest.mark.parametrize(
    ("ddof", "expected"),
    [(1, [1.5, -0.5, -0.5, -0.5]), (0, [1.7320508, -0.5773503, -0.5773503, -0.5773503])],
)
def test_ddof_says_which_standard_deviation(ddof, expected):
    rollout = make_rollout(reward=[1, 0, 0, 0])
    assert outcomes(group(rollout, ddof=ddof, eps=0.0)) == close(expected)


def test_ddof_is_one_by_default():
    rollout = make_rollout(reward=[1, 0, 0, 0])
    assert outcomes(group(rollout)) == outcomes(group(rollout, ddof=1))


def test_statistics_are_those_of_the_group_not_of_the_batch():
    rollout = make_rollout(reward=[10, 12, 0, 2], group=[0, 0, 1, 1])
    assert outcomes(group(rollout)) == close([-0.707106, 0.707106] * 2)


@pytest.mark.parametrize("estimate", [group, rloo])
def test_interleaved_rows_are_grouped_by_their_ids(estimate):
    rollout = make_rollout(reward=[0, 1] * 4, group=[0, 1] * 4)
    assert outcomes(estimate(rollout)) == [0] * 8


@pytest.mark.parametrize("estimate", [group, rloo])
def test_two_draws_of_one_prompt_are_two_groups(estimate):
    rollout = make_rollout(reward=[1, 0, 0, 0, 1, 1, 1, 0], group=[3] * 4 + [4] * 4)
    result = outcomes(estimate(rollout))
    assert sum(result[:4]) == close(0)
    assert sum(result[4:]) == close(0)
    assert result[0] == close(-result[7])


def test_an_unscorable_row_leaves_its_group_alone():
    rollout = make_rollout(reward=[1, NAN, 0, 1])
    # mean 2 / 3, sd 0.57735
    assert outcomes(group(rollout)) == close([0.577350, 0, -1.154700, 0.577350], abs=2e-6)
    # 3 / 2 (R - 2 / 3)
    assert outcomes(rloo(rollout)) == close([0.5, 0, -1, 0.5])


@pytest.mark.parametrize("estimate", [group, rloo])
def test_a_group_that_is_all_unscorable_contributes_nothing(estimate):
    rollout = make_rollout(reward=[NAN, NAN, 1, 0], group=[0, 0, 1, 1])
    result = outcomes(estimate(rollout))
    assert result[:2] == [0, 0]
    assert result[2] > 0 > result[3]


@pytest.mark.parametrize("estimate", [group, rloo])
def test_a_group_of_one_scored_row_gets_zero(estimate):
    assert outcomes(estimate(make_rollout(reward=[0.7, NAN], group=[0, 0]))) == [0, 0]


def test_a_kl_in_the_reward_is_seen_by_group_estimators():
    # outcomes 1 - 0.2 - 0.3 = 0.5 and 1 - 0.1 = 0.9, although both rewards are 1
    rollout = make_rollout(
        reward=[1, 1], token_reward=[[-0.2, 0.7, NAN], [-0.1, 0, 1]], mask=[[1, 1, 0], [1, 1, 1]]
    )
    # mean 0.7: -0.2, 0.2
    assert outcomes(group(rollout, std=False)) == close([-0.2, 0.2])


def test_a_row_without_tokens_has_no_say():
    rollout = make_rollout(reward=[1, 0, 1], mask=[[1], [1], [0]])
    assert outcomes(group(rollout, std=False)) == close([0.5, -0.5, 0])


# Generalised advantage estimation


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
