"""An estimator that hides a broken number lets the run train on it."""

import unittest

import pytest
import torch

from rlbench import masked
from rlbench.testing import checks
from rlbench.types import Advantage


def failing(component, **more):
    """Message of every rule that an estimator breaks, by the rule's name."""
    found = {}
    for check in checks("estimator", component, **more):
        try:
            check()
        except AssertionError as error:
            found[check.rule.name] = str(error)
        except unittest.SkipTest as skip:
            pytest.fail(str(skip))
    return found


def broadcast(rollout, advantage):
    return Advantage(masked.select(advantage[:, None].expand(rollout.mask.shape), rollout.trained))


def with_critic(rollout, values):
    """To-go sums less the value: all of token_reward and values is read."""
    live = rollout.trained
    to_go = masked.select(rollout.token_reward, live).flip(1).cumsum(1).flip(1)
    return Advantage(masked.select(to_go - values, live), masked.select(to_go, live))


def cleans_values(rollout):
    return with_critic(rollout, rollout.values.nan_to_num())


def cleans_the_result(rollout):
    answer = with_critic(rollout, rollout.values)
    return Advantage(answer.advantages.nan_to_num(), answer.returns)


def cleans_rewards(rollout):
    reward = masked.select(rollout.token_reward, rollout.trained)
    return broadcast(rollout, reward.nansum(1))


def cleans_the_reference(rollout):
    gap = masked.select(rollout.old_logp - rollout.ref_logp, rollout.trained).nan_to_num()
    reward = masked.select(rollout.token_reward, rollout.trained)
    return broadcast(rollout, (reward - 0.1 * gap).sum(1))


def cleans_the_last_value(rollout):
    answer = with_critic(rollout, rollout.values)
    rest = torch.where(rollout.truncated, rollout.last_value, 0.0).nan_to_num()[:, None]
    live = rollout.trained
    advantages = masked.select(answer.advantages + rest, live)
    return Advantage(advantages, masked.select(answer.returns + rest, live))


def calls_nan_worthless(rollout):
    outcome = masked.total(rollout.token_reward, rollout.trained, 1)
    return broadcast(
        rollout, torch.where(outcome > 0, outcome, torch.where(outcome <= 0, outcome, 0))
    )


@pytest.mark.parametrize(
    ("component", "needs", "what"),
    [
        (cleans_values, ("values",), "values at row 0, token 0"),
        (cleans_the_result, ("values",), "values at row 0, token 0"),
        (cleans_rewards, (), "token_reward at row 0, token 0"),
        (cleans_the_reference, ("ref_logp",), "old_logp at row 0, token 0"),
        (cleans_the_last_value, ("values", "last_value"), "last_value at row 3"),
        (calls_nan_worthless, (), "token_reward at row 0, token 0"),
    ],
)
def test_a_nan_that_is_hidden_is_found(component, needs, what):
    found = failing(component, needs=needs)
    assert found.keys() == {"nan_visible"}
    assert f"(module {__name__}) breaks 'nan_visible'" in found["nan_visible"]
    assert (
        f": a NaN in {what} left every advantage finite. Do not replace NaN" in found["nan_visible"]
    )


def reads_everything(rollout):
    return with_critic(rollout, rollout.values)


def refuses_nan(rollout):
    if masked.select(rollout.values, rollout.trained).isnan().any():
        raise ValueError("the critic says NaN")
    return cleans_values(rollout)


def reads_the_outcome_alone(rollout):
    right = torch.where(rollout.reward > 0.5, 1.0, -1.0).to(rollout.token_reward)
    return broadcast(rollout, right)


@pytest.mark.parametrize("component", [reads_everything, refuses_nan])
def test_a_nan_that_shows_or_is_refused_is_no_fault(component):
    assert failing(component, needs=("values",)) == {}


def test_what_is_not_read_may_be_nan():
    assert failing(reads_the_outcome_alone).keys() == {"kl_in_reward"}
