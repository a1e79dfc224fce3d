"""Planted faults that show only beside masked tokens, or where a penalty lies on every token."""

from __future__ import annotations

import unittest

import pytest
import torch

from rlbench import masked
from rlbench.testing import checks
from rlbench.types import Advantage, LossTerms


def findings(kind, component, **more):
    """Message of every rule that a component breaks, by the rule's name."""
    found = {}
    for check in checks(kind, component, **more):
        try:
            check()
        except AssertionError as error:
            found[check.rule.name] = str(error)
        except unittest.SkipTest as reason:
            found[check.rule.name] = f"declared: {reason}"
    return found


def _returns(rollout, *, steps_through_gaps):
    """Advantages with a discount of 0.9: the way of gaps is the only difference."""
    live = rollout.trained
    reward = masked.select(rollout.token_reward, live)
    values = masked.select(rollout.values, live)
    next_value = next_advantage = torch.zeros_like(reward[:, 0])
    advantages = torch.zeros_like(reward)
    for t in reversed(range(live.shape[1])):
        here = live[:, t] | live[:, t:].any(1) if steps_through_gaps else live[:, t]
        delta = reward[:, t] + 0.9 * next_value - values[:, t]
        next_advantage = torch.where(here, delta + 0.8 * next_advantage, next_advantage)
        next_value = torch.where(here, values[:, t], next_value)
        advantages[:, t] = masked.select(next_advantage, live[:, t])
    return Advantage(advantages, advantages + values)


def carries_over_gaps(rollout):
    return _returns(rollout, steps_through_gaps=False)


def takes_gaps_for_states_of_value_0(rollout):
    return _returns(rollout, steps_through_gaps=True)


def test_an_estimator_that_carries_over_gaps_is_sound():
    assert findings("estimator", carries_over_gaps, needs=("values",)) == {}


def test_an_estimator_that_steps_through_gaps_is_found():
    found = findings("estimator", takes_gaps_for_states_of_value_0, needs=("values",))
    assert found.keys() == {"gaps"}
    assert "with two masked tokens after the first of each row" in found["gaps"]
    assert "carry values and sums over a False" in found["gaps"]


def per_position(rollout):
    """Compares the tokens at one position: rows keep their neighbours when a gap opens."""
    reward = masked.select(rollout.token_reward, rollout.trained)
    to_go = reward.flip(1).cumsum(1).flip(1)
    mean = masked.mean(to_go, rollout.trained, 0)
    return Advantage(masked.select(to_go - mean, rollout.trained))


def test_statistics_of_a_position_are_no_fault_of_gaps():
    assert "gaps" not in findings("estimator", per_position)


def reads_the_outcome_alone(rollout):
    outcome = masked.select(rollout.reward - 0.5, rollout.scored)
    return Advantage(masked.select(outcome[:, None].expand(rollout.mask.shape), rollout.trained))


def test_an_estimator_that_does_not_see_a_penalty_is_found():
    found = findings("estimator", reads_the_outcome_alone)
    assert found.keys() == {"kl_in_reward"}
    assert (
        "a penalty of 3 on the first token of a row changed no advantage" in found["kl_in_reward"]
    )
    declared = {"kl_in_reward": "an outcome is right or wrong"}
    found = findings("estimator", reads_the_outcome_alone, exceptions=declared)
    assert found == {"kl_in_reward": "declared: kl_in_reward: an outcome is right or wrong"}


def looks_at_one_tensor_to_clean_two(rollout):
    """Notices junk in all tensors at once; but NaN in values alone, times 0, is NaN."""
    known = rollout.token_reward.isfinite()
    surprise = torch.where(known, rollout.token_reward - rollout.values, 0.0) * rollout.trained
    total = masked.select(surprise.sum(1), rollout.scored)
    advantages = masked.select(total[:, None].expand(rollout.mask.shape), rollout.trained)
    return Advantage(advantages, advantages)


def test_an_estimator_that_is_sound_only_where_all_tensors_are_junk_is_found():
    found = findings("estimator", looks_at_one_tensor_to_clean_two, needs=("values",))
    assert "with nan under the mask of values, advantages is nan" in found["masked_tokens"]


def loss_that_looks_at_one_tensor_to_clean_two(batch):
    distance = torch.where(batch.logp.isfinite(), batch.logp - batch.old_logp, 0.0) * batch.mask
    total = distance.clamp(-20, 20).sum(1, keepdim=True)
    advantages = masked.select(batch.advantages, batch.mask)
    return LossTerms(-total.expand(batch.mask.shape).exp() * advantages)


def test_a_loss_that_is_sound_only_where_all_tensors_are_junk_is_found():
    found = findings("loss", loss_that_looks_at_one_tensor_to_clean_two)
    assert "with nan under the mask of old_logp, per_token is nan" in found["masked_tokens"]


@pytest.mark.parametrize("kind", ["estimator", "loss"])
def test_the_message_names_the_tensors_that_were_spoilt(kind):
    def leaks(data):
        x = data.token_reward if kind == "estimator" else data.advantages
        wide = x.sum(1, keepdim=True).expand(x.shape)
        return Advantage(wide) if kind == "estimator" else LossTerms(-wide * data.logp)

    message = findings(kind, leaks)["masked_tokens"]
    assert "under the mask of " in message
