import pytest
import torch

from rlbench.builtin.estimators.group import dr_grpo, group, group_mean_batch_std, opo, rloo
from rlbench.testing import make_rollout

NAN = float("nan")


def outcomes(advantage):
    """Advantages of the first token of every row."""
    return advantage.advantages[:, 0].tolist()


def close(expected, abs=1e-5):  # noqa: A002 - pytest's own word
    return pytest.approx(expected, abs=abs)


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


# Where libraries disagree under the name "grpo"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # mean 0.375, deviations 0.625, -0.375, -0.375, 0.125, their squares sum to 0.6875
        # verl, slime, SkyRL, ROLL: sd sqrt(0.6875 / 3) = 0.47871355
        ({}, [1.30557969, -0.78334782, -0.78334782, 0.26111594]),
        # TRL, torchtune: over 0.47881355
        ({"eps": 1e-4}, [1.30530975, -0.78318585, -0.78318585, 0.26106195]),
        # OpenRLHF's group_norm, and torchrl's floor under the sd: 0.625 / 0.47871355
        ({"eps": 1e-9}, [1.30558240, -0.78334944, -0.78334944, 0.26111648]),
        ({"eps": 0.0}, [1.30558241, -0.78334945, -0.78334945, 0.26111648]),
        # open-instruct "standard": sd sqrt(0.6875 / 4) = 0.41457810
        ({"ddof": 0, "eps": 1e-8}, [1.50755669, -0.90453401, -0.90453401, 0.30151134]),
        # open-instruct "centered", Dr. GRPO, prime-rl
        ({"std": False}, [0.625, -0.375, -0.375, 0.125]),
        # NeMo-RL. First: others 0, 0, 0.5 with mean 1/6, sd 0.28867513: 0.8333333 / 0.28867613.
        # Second and third: others 1, 0, 0.5 with mean 0.5, sd 0.5: -0.5 / 0.500001.
        # Fourth: others 1, 0, 0 with mean 1/3, sd 0.57735027: 0.1666667 / 0.57735127.
        ({"leave_one_out": True}, [2.88674135, -0.999998, -0.999998, 0.28867463]),
        # The same, sd from n: 0.23570226, 0.40824829, 0.47140452
        (
            {"leave_one_out": True, "ddof": 0, "eps": 0.0},
            [3.53553391, -1.22474487, -1.22474487, 0.35355339],
        ),
        ({"leave_one_out": True, "std": False}, [0.833333333, -0.5, -0.5, 0.166666667]),
    ],
)
def test_every_meaning_of_grpo_by_hand(options, expected):
    rollout = make_rollout(reward=[1, 0, 0, 0.5], dtype=torch.float64)
    assert outcomes(group(rollout, **options)) == close(expected, abs=2e-8)


@pytest.mark.parametrize("reward", [[1, 0, 0, 0], [0.4] + [0.3] * 7, [1e4] + [0.1] * 15])
def test_a_lone_winner_whose_rivals_are_equal_is_not_divided(reward):
    # NeMo-RL's E[x²] - E[x]² leaves residue for 0.3, and an advantage of 1061
    result = outcomes(group(make_rollout(reward=reward), leave_one_out=True))
    assert result[0] == close(reward[0] - reward[1], abs=1e-3)
    # The others: mean and sd (m = n - 1) of one winner among m: (R - W) / m over (W - R) / sqrt(m)
    assert result[1:] == close([-((len(reward) - 1) ** -0.5)] * (len(reward) - 1), abs=1e-4)


def test_leave_one_out_in_a_pair_is_the_difference():
    assert outcomes(group(make_rollout(reward=[3, 1]), leave_one_out=True)) == [2, -2]


@pytest.mark.parametrize("n", [2, 3, 7, 64])
@pytest.mark.parametrize("estimate", [lambda r: group(r, leave_one_out=True, eps=0.0), dr_grpo])
def test_other_forms_of_equal_rewards_leave_no_residue_either(estimate, n):
    for value in (4.2, 0.1, 1e4, -1 / 3):
        assert outcomes(estimate(make_rollout(reward=[value] * n))) == [0] * n


@pytest.mark.parametrize("estimate", [group, dr_grpo, rloo, opo])
def test_a_singleton_is_zero_or_raw(estimate):
    # verl and SkyRL: raw. TRL, slime, NeMo-RL: 0. The second group is not touched.
    rollout = make_rollout(reward=[0.7, NAN, 1, 0], group=[0, 0, 1, 1])
    zero, raw = outcomes(estimate(rollout)), outcomes(estimate(rollout, singleton="raw"))
    assert zero[:2] == [0, 0]
    assert raw[:2] == close([0.7, 0])
    assert zero[2:] == raw[2:]


def test_dr_grpo_is_group_without_its_divisor():
    rollout = make_rollout(reward=[1, 0, 0, 0.5, 3, 1], group=[0, 0, 0, 0, 1, 1])
    assert outcomes(dr_grpo(rollout)) == [0.625, -0.375, -0.375, 0.125, 1, -1]
    assert torch.equal(dr_grpo(rollout).advantages, group(rollout, std=False).advantages)


# KL in the reward, before or after the baseline


def penalised(reward, kl):
    """Rewards on the last token, minus the given penalties on every token."""
    token_reward = [[-x for x in row] for row in kl]
    for row, outcome in zip(token_reward, reward, strict=True):
        row[-1] += outcome
    return make_rollout(reward=reward, token_reward=token_reward, dtype=torch.float64)


@pytest.mark.parametrize(
    ("estimate", "factor"),
    [(dr_grpo, 1), (rloo, 2), (lambda r, kl: group(r, kl=kl, eps=0.0), 2**0.5)],
)
@pytest.mark.parametrize(
    ("kl", "expected"),
    [
        # before: outcomes 1 - 0.3 = 0.7 and 0 - 0.1, mean 0.3. TRL's RLOO, verl.
        ("before", [[0.4, 0.4], [-0.4, -0.4]]),
        # after: rewards 0.5 and -0.5 from their mean; then minus what is still to come. OpenRLHF.
        ("after", [[-0.3, -0.2], [-0.1, -0.1]]),
        # per_token: then minus a token's own. slime.
        ("per_token", [[-0.1, -0.2], [0, -0.1]]),
    ],
)
def test_a_penalty_meets_the_baseline_before_or_after(estimate, factor, kl, expected):
    result = estimate(penalised([1, 0], [[0.1, 0.2], [0.0, 0.1]]), kl=kl).advantages
    if kl == "before":
        # for a pair: leave-one-out doubles, and the sd of +-a is a sqrt(2), so A = +-1 / sqrt(2)
        scaled = {1: 1, 2: 2, 2**0.5: 1 / 0.4 / 2**0.5}[factor]
        wanted = torch.tensor(expected) * scaled
    else:
        base = {1: 0.5, 2: 1.0, 2**0.5: 0.5**0.5}[factor]
        wanted = torch.tensor(expected) + torch.tensor([[base], [-base]])
    torch.testing.assert_close(result, wanted.double(), rtol=0, atol=1e-7)


@pytest.mark.parametrize("kl", ["after", "per_token"])
@pytest.mark.parametrize("estimate", [group, dr_grpo, rloo])
def test_without_a_penalty_the_order_does_not_matter(estimate, kl):
    rollout = make_rollout(
        reward=[0.1, 4.2, NAN, 0.3, 0.3, 0.3],
        group=[0, 0, 0, 1, 1, 1],
        mask=[[1, 1, 0], [0, 1, 1], [1, 1, 1], [1, 0, 1], [1, 1, 1], [1, 0, 0]],
    )
    assert torch.equal(estimate(rollout, kl=kl).advantages, estimate(rollout).advantages)


# Other baselines


def test_opo_weighs_outcomes_by_length():
    # lengths 1, 3: b = (1 * 1 + 3 * 0) / 4 = 0.25
    rollout = make_rollout(reward=[1, 0], mask=[[1, 0, 0], [1, 1, 1]])
    assert opo(rollout).advantages.tolist() == [[0.75, 0, 0], [-0.25, -0.25, -0.25]]


def test_opo_counts_tokens_of_the_mask_not_cells():
    # lengths 2, 1, and a completion without tokens: b = (2 * 1 + 1 * 4) / 3 = 2
    rollout = make_rollout(reward=[1, 4, 9], mask=[[1, 0, 1], [0, 1, 0], [0, 0, 0]])
    assert opo(rollout).advantages.tolist() == [[-1, 0, -1], [0, 2, 0], [0, 0, 0]]


@pytest.mark.parametrize("n", [2, 3, 16, 64])
def test_opo_of_equal_rewards_is_exactly_zero(n):
    mask = [[1] * (i + 1) + [0] * (n - i - 1) for i in range(n)]
    assert not opo(make_rollout(reward=[4.2] * n, mask=mask)).advantages.any()


@pytest.mark.parametrize(
    ("spread_of", "ddof", "deviation"),
    [
        # outcomes 1, 0, 5, 5: mean 2.75, squares 3.0625 + 7.5625 + 5.0625 + 5.0625 = 20.75
        ("outcomes", 1, (20.75 / 3) ** 0.5),
        ("outcomes", 0, (20.75 / 4) ** 0.5),
        # centred 0.5, -0.5, 0, 0: mean 0, squares 0.5
        ("centred", 1, (0.5 / 3) ** 0.5),
        ("centred", 0, (0.5 / 4) ** 0.5),
    ],
)
def test_group_mean_batch_std_by_hand(spread_of, ddof, deviation):
    rollout = make_rollout(reward=[1, 0, 5, 5], group=[0, 0, 1, 1], dtype=torch.float64)
    result = group_mean_batch_std(rollout, spread_of=spread_of, ddof=ddof, eps=1e-4)
    wanted = 0.5 / (deviation + 1e-4)
    assert outcomes(result) == pytest.approx([wanted, -wanted, 0, 0], abs=1e-12)


def test_group_mean_batch_std_of_groups_that_are_all_equal_is_zero():
    rollout = make_rollout(reward=[4.2] * 3 + [0.1] * 3 + [NAN], group=[0] * 3 + [1] * 4)
    for spread_of in ("outcomes", "centred"):
        assert outcomes(group_mean_batch_std(rollout, spread_of=spread_of, eps=0.0)) == [0] * 7
