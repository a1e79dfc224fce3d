"""Each planted fault must be found by its rule, with a message that helps."""

import contextlib
import math
import random
import unittest

import pytest
import torch

from rlbench import masked
from rlbench.errors import UsageError
from rlbench.testing import checks
from rlbench.types import Advantage, LossTerms


def findings(kind, component, **more):
    """Message of every rule that a component breaks, by the rule's name."""
    found = {}
    for check in checks(kind, component, **more):
        try:
            with contextlib.suppress(unittest.SkipTest):  # told by an earlier rule
                check()
        except AssertionError as error:
            found[check.rule.name] = str(error)
    return found


def broadcast(rollout, advantage):
    return Advantage(masked.select(advantage[:, None].expand(rollout.mask.shape), rollout.trained))


def sound_estimator(rollout):
    outcome = masked.total(rollout.token_reward, rollout.trained, 1)
    return broadcast(rollout, masked.select(outcome - 0.5, rollout.scored))


def sound_loss(batch):
    ratio = (batch.logp - batch.old_logp).clamp(-20, 20)
    ratio = masked.select(ratio, batch.mask).exp()
    return LossTerms(-ratio * masked.select(batch.advantages, batch.mask))


class SoundController:
    coef = 0.5

    def update(self, kl, *, samples):
        if not math.isnan(kl):
            self.coef = 1.0 if kl > 1 else 0.1


@pytest.mark.parametrize(
    ("kind", "component"),
    [("estimator", sound_estimator), ("loss", sound_loss), ("kl", SoundController)],
)
def test_a_sound_component_passes(kind, component):
    assert findings(kind, component) == {}


# Estimators


def centres_with_padding(rollout):
    everywhere = rollout.scored[:, None].expand(rollout.mask.shape)
    centred = rollout.token_reward - masked.mean(rollout.token_reward, everywhere)
    return Advantage(masked.select(centred, rollout.trained))


def multiplies_by_the_mask(rollout):
    outcome = (rollout.token_reward * rollout.mask).sum(1)
    return broadcast(rollout, masked.select(outcome, rollout.scored))


def divides_by_the_width(rollout):
    outcome = masked.select(rollout.reward, rollout.scored)
    return broadcast(rollout, outcome / rollout.mask.shape[1])


def groups_by_reshape(rollout):
    reward = masked.select(rollout.reward, rollout.scored)
    size = 4 if len(reward) % 4 == 0 else 1
    mean = reward.reshape(-1, size).mean(1).repeat_interleave(size)
    return broadcast(rollout, masked.select(reward - mean, rollout.scored))


def takes_ids_for_numbers(rollout):
    return broadcast(rollout, masked.select(rollout.reward + rollout.group, rollout.scored))


def divides_by_n_minus_one(rollout):
    reward, scored = rollout.reward, rollout.scored
    n = masked.group_count(scored, rollout.group)
    total = masked.group_total(reward, scored, rollout.group)
    return broadcast(rollout, masked.select(reward - (total - reward) / (n - 1), scored))


def counts_unscorable_as_zero(rollout):
    reward = rollout.reward.nan_to_num()
    everyone = torch.ones_like(rollout.scored)
    return broadcast(rollout, reward - masked.group_mean(reward, everyone, rollout.group))


def trains_unscorable_rows(rollout):
    return Advantage(rollout.reward.nan_to_num(1.0)[:, None].expand(rollout.mask.shape))


def divides_rounding_residue(rollout):
    reward, scored, group = rollout.reward, rollout.scored, rollout.group
    centred = reward - masked.group_mean(reward, scored, group)
    spread = masked.group_standard_deviation(reward, scored, group, ddof=1)
    return broadcast(rollout, masked.select(centred / (spread + 1e-9), scored))


def changes_its_input(rollout):
    rollout.token_reward.nan_to_num_()
    return sound_estimator(rollout)


def has_it_the_wrong_way_round(rollout):
    return broadcast(rollout, masked.select(0.5 - rollout.reward, rollout.scored))


def overflows(rollout):
    reward = masked.select(rollout.reward, rollout.scored)
    return broadcast(rollout, reward.exp())


def draws_at_random(rollout):
    noise = 1e-3 * random.random()
    return broadcast(rollout, masked.select(rollout.reward + noise, rollout.scored))


def option_without_default(rollout, *, lam):
    return sound_estimator(rollout)


def option_by_position(rollout, lam=0.9):
    return sound_estimator(rollout)


def takes_any_option(rollout, **options):
    return sound_estimator(rollout)


def default_that_is_no_literal(rollout, *, device=torch.device("cpu")):  # noqa: B008 - the fault
    return sound_estimator(rollout)


def one_number_a_row(rollout):
    return Advantage(rollout.reward.nan_to_num())


def bare_tensor(rollout):
    return sound_estimator(rollout).advantages


def other_dtype(rollout):
    return Advantage(sound_estimator(rollout).advantages.half())


def carries_a_gradient(rollout):
    return Advantage(sound_estimator(rollout).advantages.clone().requires_grad_())


def reads_undeclared_values(rollout):
    return Advantage(rollout.token_reward - rollout.values)


@pytest.mark.parametrize(
    ("component", "rule", "told"),
    [
        (centres_with_padding, "masked_tokens", "with nan under the mask"),
        (centres_with_padding, "padding", "instead of"),
        (multiplies_by_the_mask, "masked_tokens", "NaN \\* 0 is NaN"),
        (divides_by_the_width, "padding", "never over the width"),
        (groups_by_reshape, "row_order", "not by reshape"),
        (takes_ids_for_numbers, "group_labels", "group ids are only names"),
        (divides_by_n_minus_one, "group_sizes", "give a group of one 0"),
        (counts_unscorable_as_zero, "unscorable_rows", "take no part"),
        (trains_unscorable_rows, "unscorable_rows", "an advantage other than 0"),
        (changes_its_input, "inputs", "token_reward was changed in place"),
        (has_it_the_wrong_way_round, "sign", "rewards 0, 1, 0, 0"),
        (overflows, "large_rewards", "advantages is inf"),
        (draws_at_random, "determinism", "two calls"),
        (option_without_default, "options", "option lam has no default"),
        (option_by_position, "options", "2 positional arguments \\(rollout, lam\\)"),
        (takes_any_option, "options", "a misspelt option is no error"),
        (default_that_is_no_literal, "options", "is no literal"),
        (one_number_a_row, "output", "shape \\(12,\\) instead of \\(12, 5\\)"),
        (bare_tensor, "output", "a Tensor instead of an Advantage"),
        (other_dtype, "output", "dtype torch.float16"),
        (carries_a_gradient, "output", "carry a gradient"),
        (reads_undeclared_values, "output", "TypeError.*needs=\\('values',\\)"),
    ],
)
def test_faults_of_estimators_are_found(component, rule, told):
    message = findings("estimator", component)[rule]
    assert component.__name__ in message
    assert __name__ in message  # the owner
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(message)


def test_rounding_residue_is_found_in_group_relative_estimators_only():
    assert "equal_rewards" not in findings("estimator", divides_rounding_residue)
    found = findings("estimator", divides_rounding_residue, group_relative=True)
    assert "equal rewards of" in found["equal_rewards"]


def test_an_estimator_with_a_critic_must_teach_it():
    found = findings("estimator", sound_estimator, needs=("values",))
    assert "no returns" in found["output"]


# Losses


def reduces_itself(batch):
    return LossTerms(sound_loss(batch).per_token.mean())


def has_the_wrong_sign(batch):
    return LossTerms(-sound_loss(batch).per_token)


def exponentiates_first(batch):
    ratio = torch.exp(batch.logp - batch.old_logp)
    return LossTerms(-ratio * masked.select(batch.advantages, batch.mask))


def masks_by_multiplying(batch):
    return LossTerms(-batch.logp * batch.advantages * batch.mask)


def hides_nan(batch):
    return LossTerms(-masked.select(batch.advantages, batch.mask) * batch.logp.nan_to_num())


def detaches_the_policy(batch):
    return LossTerms(sound_loss(batch).per_token.detach())


def weighs_twice(batch):
    return LossTerms(2 * sound_loss(batch).per_token)


def hides_a_weight(batch):
    ratio = masked.select((batch.logp - batch.old_logp).clamp(-20, 20), batch.mask).exp()
    logp = masked.select(batch.logp, batch.mask)
    return LossTerms(-ratio.detach() * masked.select(batch.advantages, batch.mask) * logp)


def centres_over_the_width(batch):
    terms = sound_loss(batch).per_token
    return LossTerms(terms / batch.mask.shape[1])


def pairs_neighbours(batch):
    place = torch.arange(len(batch.mask), dtype=batch.logp.dtype)[:, None]
    return LossTerms(sound_loss(batch).per_token * (1 + place))


def holds_down_what_is_above_the_mean(batch):
    high = batch.logp > masked.mean(batch.logp, batch.mask)
    return LossTerms(sound_loss(batch).per_token * torch.where(high.detach(), 0.5, 1.0))


def weighs_by_group_id(batch):
    return LossTerms(sound_loss(batch).per_token * batch.group[:, None])


def scales_advantages_in_place(batch):
    batch.advantages.mul_(2)
    return sound_loss(batch)


def scalar_metric(batch):
    terms = sound_loss(batch)
    return LossTerms(terms.per_token, {"mean": terms.per_token.detach().mean()})


def metric_with_gradient(batch):
    terms = sound_loss(batch)
    return LossTerms(terms.per_token, {"loss": terms.per_token})


def drops_tokens_at_random(batch):
    return LossTerms(sound_loss(batch).per_token * (0.5 + random.random()))


def loss_option_without_default(batch, *, eps):
    return sound_loss(batch)


@pytest.mark.parametrize(
    ("component", "rule", "told"),
    [
        (reduces_itself, "unreduced", "shape \\(\\) instead of \\(6, 4\\).*the host aggregates"),
        (has_the_wrong_sign, "sign", "what is to be minimised"),
        (has_the_wrong_sign, "on_policy_gradient", "instead of"),
        (exponentiates_first, "extreme_ratios", "at log-ratio 100.*importance_ratio"),
        (exponentiates_first, "masked_tokens", "under the mask"),
        (masks_by_multiplying, "masked_tokens", "with nan under the mask"),
        (hides_nan, "nan_visible", "a NaN log-prob became a loss of"),
        (detaches_the_policy, "trainable", "no gradient reaches logp"),
        (weighs_twice, "on_policy_gradient", "the gradient is -2 instead of -1"),
        (hides_a_weight, "value_gradient", "exceptions="),
        (centres_over_the_width, "padding", "never over the width"),
        (pairs_neighbours, "row_order", "not by reshape"),
        (holds_down_what_is_above_the_mean, "microbatches", "needs=\\('whole_step',\\)"),
        (weighs_by_group_id, "group_labels", "only names"),
        (scales_advantages_in_place, "inputs", "advantages was changed in place"),
        (scalar_metric, "unreduced", "metric mean has shape"),
        (metric_with_gradient, "unreduced", "metric loss carries a gradient"),
        (drops_tokens_at_random, "determinism", "two calls"),
        (loss_option_without_default, "options", "option eps has no default"),
    ],
)
def test_faults_of_losses_are_found(component, rule, told):
    message = findings("loss", component)[rule]
    assert component.__name__ in message
    assert __name__ in message  # the owner
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(message)


def test_a_loss_that_asks_for_the_whole_step_may_compare_all_its_tokens():
    loss = holds_down_what_is_above_the_mean
    assert "microbatches" not in findings("loss", loss, needs=("whole_step",))


# Controllers


class GoesNegative:
    coef = 0.1

    def update(self, kl, *, samples):
        self.coef += 0.1 * (min(kl, 10) - 1) if not math.isnan(kl) else 0


class Unbounded:
    coef = 0.1

    def update(self, kl, *, samples):
        self.coef *= 1.5 if kl > 1 else 1


class PoisonedByNaN:
    coef = 0.1

    def update(self, kl, *, samples):
        self.coef = min(max(self.coef + 0.01 * (kl - 1), 0.0), 10.0)


class MovedByNaN:
    coef = 0.1

    def update(self, kl, *, samples):
        self.coef = 0.1 if kl > 1 else 0.05


class Backwards:
    coef = 0.1

    def update(self, kl, *, samples):
        self.coef = 0.05 if kl > 1 else 0.1


class NoCoefficient:
    def update(self, kl, *, samples):
        pass


class WithoutSamples(SoundController):
    def update(self, kl):
        pass


class OddStatistic(SoundController):
    statistic = "median"


class TargetWithoutDefault(SoundController):
    def __init__(self, *, target):
        self.target = target


class Restless(SoundController):
    def update(self, kl, *, samples):
        self.coef = random.random()


class OverItsBound(SoundController):
    max_coef = 0.5


class StopsAtOnce(SoundController):
    def stop(self, kl_old):
        return kl_old >= 0


class StopsBackwards(SoundController):
    def stop(self, kl_old):
        return 0.01 < kl_old < 1


class StopsForTwo(SoundController):
    def stop(self, kl_old, samples):
        return False


class StopsPerhaps(SoundController):
    def stop(self, kl_old):
        return True if kl_old > 1 else None


@pytest.mark.parametrize(
    ("component", "rule", "told"),
    [
        (GoesNegative, "not_negative", "coef is -"),
        (Unbounded, "bounded", "coef is inf"),
        (PoisonedByNaN, "not_finite", "coef is nan"),
        (MovedByNaN, "nan_ignored", "a NaN measurement after one of 12"),
        (Backwards, "monotone", "sign of the error"),
        (NoCoefficient, "start", "coef is None"),
        (WithoutSamples, "update", "unexpected keyword argument 'samples'"),
        (OddStatistic, "start", "statistic is 'median'"),
        (TargetWithoutDefault, "options", "option target has no default"),
        (Restless, "determinism", "two controllers"),
        (OverItsBound, "within_bounds", "coef is 1.0 .* bounds are 0.0 and 0.5"),
        (StopsAtOnce, "stopping", "stops at a KL of 0"),
        (StopsBackwards, "stopping", "and not at a larger one"),
        (StopsForTwo, "stopping", "raised TypeError"),
        (StopsPerhaps, "stopping", "is None, neither True nor False"),
    ],
)
def test_faults_of_controllers_are_found(component, rule, told):
    message = findings("kl", component)[rule]
    assert component.__name__ in message
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(message)


# The kit itself


def test_a_declared_exception_is_a_skip_with_its_reason():
    reason = "a detached weight is the point"
    (check,) = (
        check
        for check in checks("loss", hides_a_weight, exceptions={"value_gradient": reason})
        if check.rule.name == "value_gradient"
    )
    with pytest.raises(unittest.SkipTest, match=reason):
        check()


def test_an_exception_from_an_unknown_rule_is_refused():
    with pytest.raises(UsageError, match="did you mean 'value_gradient'"):
        checks("loss", sound_loss, exceptions={"value_gradent": "typo"})


def test_an_unknown_kind_is_refused():
    with pytest.raises(UsageError, match="did you mean 'loss'"):
        checks("losses", sound_loss)


def test_an_unknown_name_is_refused():
    with pytest.raises(UsageError, match="did you mean 'group'"):
        checks("estimator", "groupe")


def test_checks_read_as_sentences():
    names = [str(check) for check in checks("estimator", "gae", options={"whiten": True})]
    assert "estimator gae:whiten=True: masked tokens do not matter" in names
    assert len(set(names)) == len(names)


def test_an_alias_is_tested_under_its_name():
    assert str(checks("estimator", "grpo")[0]).startswith("estimator group:")


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state()
    for check in checks("estimator", "gae"):
        check()
    assert torch.equal(torch.get_rng_state(), before)
