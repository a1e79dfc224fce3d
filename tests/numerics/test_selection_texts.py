"""What each text that a user can write computes: the meanings that libraries give to one name.

Every row goes through the selection grammar, so an option that is read but not obeyed shows here.
"""

import math

import pytest
import torch

from rlbench.plugin.loading import load
from rlbench.plugin.selection import parse
from rlbench.plugin.signature import options
from rlbench.testing import make_batch, make_rollout

NAN = float("nan")
REGISTRY = load()


def run(kind, text, data):
    """What the text does with a rollout or a batch."""
    return parse(REGISTRY, kind, text).create()(data)


def advantages(text, rollout):
    return run("estimator", text, rollout).advantages.tolist()


def close(expected, abs=1e-5):  # noqa: A002 - pytest's own word
    return pytest.approx(expected, abs=abs)


FOUR = [1.0, 0.0, 0.0, 0.5]  # mean 0.375, deviations 0.625, -0.375, -0.375, 0.125
SPREAD_1 = (0.6875 / 3) ** 0.5  # 0.478714; squared deviations add up to 0.6875
SPREAD_0 = (0.6875 / 4) ** 0.5  # 0.414578


def over(divisor):
    return [0.625 / divisor, -0.375 / divisor, -0.375 / divisor, 0.125 / divisor]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("group", [1.30558, -0.783348, -0.783348, 0.261116]),
        ("grpo", [1.30558, -0.783348, -0.783348, 0.261116]),
        ("dr_grpo", [0.625, -0.375, -0.375, 0.125]),
        ("rloo", [0.833333, -0.5, -0.5, 0.166667]),
        # verl, SkyRL; slime, ROLL, tunix: 1e-6 beside sigma
        ("group:singleton=raw", over(SPREAD_1 + 1e-6)),
        ("group:ddof=1,eps=1e-6", over(SPREAD_1 + 1e-6)),
        # TRL, torchtune, ms-swift
        ("group:eps=1e-4", over(SPREAD_1 + 1e-4)),
        # OpenRLHF
        ("group:eps=1e-9,kl=after", over(SPREAD_1 + 1e-9)),
        # understand-r1-zero with its divisor switched on
        ("group:eps=1e-8", over(SPREAD_1 + 1e-8)),
        # torchrl: sigma no less than 1e-6, which is sigma
        ("group:eps=0", over(SPREAD_1)),
        # open-instruct: standard, and centred
        ("group:ddof=0,eps=1e-8", over(SPREAD_0 + 1e-8)),
        ("group:std=false", over(1)),
        # AReaL: sigma of the population, eps 1e-5
        ("group:ddof=0,eps=1e-5", over(SPREAD_0 + 1e-5)),
        # an eps as large as life shows where it is added
        ("group:eps=1", over(SPREAD_1 + 1)),
        # NeMo-RL: the others are 0, 0, 0.5 (mean 1/6, sd 0.288675); 1, 0, 0.5 twice (0.5, 0.5);
        # and 1, 0, 0 (1/3, 0.577350)
        ("group:leave_one_out=true", [2.886741, -0.999998, -0.999998, 0.288675]),
        ("group:leave_one_out=true,std=false", [0.833333, -0.5, -0.5, 0.166667]),
        # one group: the batch is the group
        ("reinforce", over(1)),
        ("reinforce:std=true", over(SPREAD_1 + 1e-6)),
        ("reinforce:std=true,ddof=0,eps=1e-5", over(SPREAD_0 + 1e-5)),
        ("reinforce:baseline=none", FOUR),
        ("group_mean_batch_std:eps=1e-4", over(SPREAD_1 + 1e-4)),
        ("group_mean_batch_std:ddof=0,eps=0", over(SPREAD_0)),
        # completions of one token: the tokens are the completions
        ("reinforce_pp", over(SPREAD_1 + 1e-6)),
        ("reinforce_pp:ddof=0,eps=0", over(SPREAD_0)),
        ("reinforce_pp:whiten=false", FOUR),
        ("reinforce_pp_baseline:ddof=0,eps=0", over(SPREAD_0)),
        ("reinforce_pp_baseline:kl=after,whiten=false", over(1)),
    ],
)
def test_four_rewards(text, expected):
    rollout = make_rollout(reward=FOUR, dtype=torch.float64)
    found = [row[0] for row in advantages(text, rollout)]
    assert found == close(expected, abs=1e-6)


ONE_WINNER = [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("group:ddof=1,eps=0", [1.5, -0.5, -0.5, -0.5]),
        ("group:ddof=0,eps=0", [1.7320508, -0.5773503, -0.5773503, -0.5773503]),
        ("reinforce:std=true,ddof=1,eps=0", [1.5, -0.5, -0.5, -0.5]),
        ("group_mean_batch_std:ddof=1,eps=0", [1.5, -0.5, -0.5, -0.5]),
        ("reinforce_pp:ddof=1,eps=0", [1.5, -0.5, -0.5, -0.5]),
        ("reinforce_pp_baseline:ddof=1,eps=0", [1.5, -0.5, -0.5, -0.5]),
        # without a value the advantage is the reward
        ("gae:whiten=true,ddof=1,eps=0", [1.5, -0.5, -0.5, -0.5]),
        ("gae:whiten=true,ddof=0,eps=0", [1.7320508, -0.5773503, -0.5773503, -0.5773503]),
        ("mc_returns:whiten=true,ddof=1,eps=0", [1.5, -0.5, -0.5, -0.5]),
        ("decoupled_gae:whiten=true,ddof=1,eps=0", [1.5, -0.5, -0.5, -0.5]),
        ("length_adaptive_gae:whiten=true,ddof=1,eps=0", [1.5, -0.5, -0.5, -0.5]),
        ("group_gae:ddof=1,eps=0", [1.5, -0.5, -0.5, -0.5]),
        ("group_gae:ddof=0,eps=0", [1.7320508, -0.5773503, -0.5773503, -0.5773503]),
        # nothing is divided: a winner's rivals are equal
        ("group:leave_one_out=true,eps=0", [1, -(3**-0.5), -(3**-0.5), -(3**-0.5)]),
    ],
)
def test_one_standard_deviation_for_all(text, expected):
    rollout = make_rollout(reward=ONE_WINNER, values=[[0.0]] * 4, dtype=torch.float64)
    assert [row[0] for row in advantages(text, rollout)] == close(expected, abs=1e-7)


def test_whoever_divides_by_a_standard_deviation_has_the_same_ddof_and_eps():
    found = {}
    for component in REGISTRY.components("estimator"):
        if not component.target.startswith("rlbench.builtin"):
            continue  # an installed plugin may have its reasons
        known = {option.name: option for option in options(component)}
        assert ("ddof" in known) == ("eps" in known), component.title
        assert "ddof" in known or not {"std", "whiten"} & set(known), component.title
        if "ddof" in known:
            found[component.name] = known["ddof"].default, known["eps"].default
    assert set(found.values()) == {(1, 1e-6)}
    assert {"group", "group_mean_batch_std", "reinforce", "reinforce_pp", "gae"} <= set(found)


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        *((name, 0.0) for name in ("group", "dr_grpo", "rloo", "opo")),
        *((f"{name}:singleton=raw", 0.7) for name in ("group", "dr_grpo", "rloo", "opo")),
        ("group:singleton=zero,leave_one_out=true", 0.0),
        ("group:singleton=raw,std=false", 0.7),
        ("reinforce_pp_baseline:whiten=false", 0.0),
        ("reinforce_pp_baseline:whiten=false,singleton=raw", 0.7),
        ("group_mean_batch_std", 0.0),
    ],
)
def test_a_completion_left_alone_in_its_group(text, alone):
    rollout = make_rollout(reward=[0.7, NAN, 1, 0], group=[0, 0, 1, 1])
    found = [row[0] for row in advantages(text, rollout)]
    assert found[:2] == close([alone, 0])
    assert found[2] == close(-found[3])
    assert found[2] > 0.4


# Penalties 0.1, 0.2 on the first completion and 0, 0.1 on the second; rewards 1 and 0.
PENALISED = {"reward": [1, 0], "token_reward": [[-0.1, 0.8], [0, -0.1]], "dtype": torch.float64}
HALF = 0.5**0.5  # a pair's advantage over its sd with ddof 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # before: outcomes 0.7 and -0.1. TRL's RLOO, verl.
        ("rloo:kl=before", [[0.8, 0.8], [-0.8, -0.8]]),
        ("dr_grpo:kl=before", [[0.4, 0.4], [-0.4, -0.4]]),
        ("group:eps=0", [[HALF, HALF], [-HALF, -HALF]]),
        # after: from the rewards alone, less what is still to be paid. OpenRLHF.
        ("rloo:kl=after", [[1 - 0.3, 1 - 0.2], [-1 - 0.1, -1 - 0.1]]),
        ("dr_grpo:kl=after", [[0.5 - 0.3, 0.5 - 0.2], [-0.5 - 0.1, -0.5 - 0.1]]),
        ("group:eps=0,kl=after", [[HALF - 0.3, HALF - 0.2], [-HALF - 0.1, -HALF - 0.1]]),
        # each token its own. slime, NeMo-RL.
        ("rloo:kl=per_token", [[1 - 0.1, 1 - 0.2], [-1, -1 - 0.1]]),
        ("group:eps=0,kl=per_token", [[HALF - 0.1, HALF - 0.2], [-HALF, -HALF - 0.1]]),
        ("reinforce_pp_baseline:kl=per_token,whiten=false", [[0.4, 0.3], [-0.5, -0.6]]),
        ("reinforce_pp_baseline:kl=after,whiten=false", [[0.2, 0.3], [-0.6, -0.6]]),
        # to go: 0.7, 0.8 and -0.1, -0.1
        ("reinforce_pp:whiten=false", [[0.7, 0.8], [-0.1, -0.1]]),
        ("reinforce_pp:whiten=false,kl=per_token", [[0.9, 0.8], [0, -0.1]]),
    ],
)
def test_where_the_penalty_meets_the_baseline(text, expected):
    found = advantages(text, make_rollout(**PENALISED))
    assert found == [close(row, abs=1e-9) for row in expected]


@pytest.mark.parametrize(
    ("text", "advantage", "returns"),
    [
        # delta 0.1, -0.2, 0.6
        ("gae:gamma=1,lam=0.95", [0.4515, 0.37, 0.6], [0.9515, 0.97, 1]),
        # verl, OpenRLHF, slime, SkyRL: the reward minus the value
        ("gae:lam=1", [0.5, 0.4, 0.6], [1, 1, 1]),
        ("mc_returns", [0.5, 0.4, 0.6], [1, 1, 1]),
        ("gae:lam=0", [0.1, -0.2, 0.6], [0.6, 0.4, 1]),
        # 0.54 - 0.5, 0.36 - 0.6, 0.6
        ("gae:gamma=0.9,lam=0", [0.04, -0.24, 0.6], [0.54, 0.36, 1]),
        # NeMo-RL's gae_lambda_policy and gae_lambda_value
        ("decoupled_gae:lam_policy=0.95,lam_critic=1", [0.4515, 0.37, 0.6], [1, 1, 1]),
        ("decoupled_gae:lam_policy=0,lam_critic=0.95", [0.1, -0.2, 0.6], [0.9515, 0.97, 1]),
        # lambda 1 - 1 / (alpha 3): 0 up to alpha = 1/3, 0.5 at 2/3
        ("length_adaptive_gae:alpha=0.05", [0.1, -0.2, 0.6], [1, 1, 1]),
        ("length_adaptive_gae:alpha=0.6666666666666666", [0.15, 0.1, 0.6], [1, 1, 1]),
        # mean 0.5, squares 0.01 + 0.01
        ("gae:lam=1,whiten=true,eps=0", [0, -1, 1], [1, 1, 1]),
        ("gae:lam=1,whiten=true,ddof=0,eps=0", [0, -(1.5**0.5), 1.5**0.5], [1, 1, 1]),
    ],
)
def test_three_tokens_with_a_critic(text, advantage, returns):
    rollout = make_rollout(reward=[1], values=[[0.5, 0.6, 0.4]], dtype=torch.float64)
    found = run("estimator", text, rollout)
    assert found.advantages[0].tolist() == close(advantage, abs=1e-9)
    assert found.returns[0].tolist() == close(returns, abs=1e-9)


@pytest.mark.parametrize("name", ["gae", "mc_returns", "decoupled_gae"])
@pytest.mark.parametrize(
    ("truncated", "truncation", "expected"),
    [
        (True, "bootstrap", [3.5, 2.5]),  # 1 + 2 - 0.5 at the end, 1 + 1 + 2 - 0.5 before
        (False, "bootstrap", [1.5, 0.5]),
        (True, "terminal", [1.5, 0.5]),
    ],
)
def test_a_cut_completion_is_terminal_or_goes_on(name, truncated, truncation, expected):
    rollout = make_rollout(
        token_reward=[[1, 1]], values=[[0.5, 0.5]], last_value=[2.0], truncated=[truncated]
    )
    lam = {"gae": ",lam=1", "decoupled_gae": ",lam_policy=1", "mc_returns": ""}[name]
    text = f"{name}:truncation={truncation}{lam}"
    assert advantages(text, rollout)[0] == close(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A2 = 1 - 0.4, A0 = 0.5 * 0.4 - 0.5 + 0.5 * 0.6
        ("gae:gamma=0.5,lam=1,gaps=carry", [0, 0, 0.6]),
        # the gap is a state of value 0: 0.5 * 0.4 + 0.5 * 0.6 = 0.5; A0 = -0.5 + 0.5 * 0.5
        ("gae:gamma=0.5,lam=1,gaps=zero", [-0.25, 0, 0.6]),
    ],
)
def test_a_token_of_the_environment_is_stepped_over_or_stepped_through(text, expected):
    rollout = make_rollout(reward=[1], mask=[[1, 0, 1]], values=[[0.5, NAN, 0.4]])
    assert advantages(text, rollout)[0] == close(expected)


def test_normalised_advantages_cost_nothing_on_policy():
    # 1, 2, 3 become -1, 0, 1; both surrogate terms are the same at ratio 1
    rollout = make_rollout(token_reward=[[1, 2, 3]], values=[[0, 0, 0]], dtype=torch.float64)
    found = run("estimator", "gae:gamma=0,whiten=true,eps=0", rollout).advantages
    assert found[0].tolist() == close([-1, 0, 1], abs=1e-12)
    batch = make_batch(logp=[[-1.0, -2, -3]], advantages=found, dtype=torch.float64)
    terms = run("loss", "clip", batch)
    assert terms.per_token.sum().item() == close(0, abs=1e-12)
    assert terms.metrics["clip_fraction"].sum() == 0


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("cispo:eps_high=0.272", 0, 1.272),  # open-instruct
        ("cispo", 0, 5),  # SkyRL, whose lower bound is 1 - 1
        ("cispo:eps=1,eps_high=4", 0, 5),  # SkyRL as it writes it; slime with its advice
        ("cispo:eps=0.2,eps_high=0.2", 0.8, 1.2),  # verl, NeMo-RL
        ("cispo:eps=0.2,eps_high=0.28", 0.8, 1.28),  # verl with a higher upper bound
        ("cispo:eps=0.1,eps_high=0.1", 0.9, 1.1),  # ROLL
        ("cispo:eps_high=0.2,bound=absolute", 0, 0.2),  # TRL, Liger, ms-swift untouched
        ("cispo:eps_high=5,bound=absolute", 0, 5),  # the same as advised
        ("cispo:eps_high=4,bound=absolute", 0, 4),  # tinker
    ],
)
def test_the_range_of_cispo_weights_in_each_library(text, low, high):
    ratios = [1e-6, low + 1e-6, (low + high) / 2, high - 1e-6, 1e6]
    batch = make_batch(
        logp=[[-20 + math.log(r)] for r in ratios],
        old_logp=[[-20.0]] * 5,
        advantages=[[-1.0]] * 5,
        dtype=torch.float64,
    )
    (gradient,) = torch.autograd.grad(run("loss", text, batch).per_token.sum(), batch.logp)
    bounded = [min(max(r, low), high) for r in ratios]
    assert gradient.flatten().tolist() == close(bounded, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A = 1 at ratios 1.25 and 0.5, A = -1 at ratios 0.7 and 4
        ("ppo_clip", [-1.2, -0.5, 0.8, 4]),
        ("clip:eps=0.1", [-1.1, -0.5, 0.9, 4]),  # torchtune
        ("clip:eps=0.2,eps_high=0.28", [-1.25, -0.5, 0.8, 4]),  # DAPO
        ("clip:dual=3", [-1.2, -0.5, 0.8, 3]),  # verl
        ("clip:eps=0.2,dual=1.4", [-1.2, -0.5, 0.8, 1.4]),  # ROLL: 1 + 2 eps
        ("two_sided:delta=3", [-1.2, -0.5, 0.8, 3]),  # TRL's delta
        ("importance", [-1.25, -0.5, 0.7, 4]),
        ("gspo:eps=0.2,eps_high=0.2", [-1.2, -0.5, 0.8, 4]),  # verl's and TRL's eps
        # ratios of 1 + 4e-4 and 1 - 3e-4 at most
        ("gspo", [-1.0004, -0.5, 0.9997, 4]),
        ("gmpo:eps=0.2", [-math.exp(0.2), -0.5, math.exp(-0.2), 4]),  # verl
        ("gmpo", [-1.25, -0.5, 0.7, 4]),  # 0.4 in nats: 0.67 to 1.49
    ],
)
def test_losses_at_four_ratios(text, expected):
    batch = make_batch(
        logp=[[-5 + math.log(r)] for r in (1.25, 0.5, 0.7, 4)],
        old_logp=[[-5.0]] * 4,
        advantages=[[1.0], [1], [-1], [-1]],
        dtype=torch.float64,
    )
    assert run("loss", text, batch).per_token.flatten().tolist() == close(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "kl", "samples", "expected"),
    [
        ("proportional:coef=0.2,target=6", 12, 256, 0.201024),
        ("ziegler:coef=0.2,target=6", 3, 256, 0.198976),
        ("proportional:coef=0.2,target=6,horizon=10000", 12, 64, 0.200256),
        ("proportional:coef=0.2,target=6,horizon=10000", 3, 64, 0.199744),
        ("proportional:coef=0.2,target=6,horizon=10000", 6.3, 64, 0.20006400),
        ("adaptive:coef=0.2,target=6", 12, 64, 0.4),
        ("adaptive:coef=0.2,target=6", 3, 64, 0.1),
        ("adaptive:coef=0.2,target=6", 6.3, 64, 0.2),
        ("fixed:coef=0.2", 12, 64, 0.2),
        ("none", 12, 64, 0.0),
    ],
)
def test_one_update_of_a_controller(text, kl, samples, expected):
    controller = parse(REGISTRY, "kl", text).create()
    controller.update(float(kl), samples=samples)
    assert controller.coef == pytest.approx(expected, rel=1e-12)
