"""A fault is told once, by the rule whose advice mends it; the others wait for that."""

import math
import random
import unittest

import pytest
import torch

from rlbench import masked
from rlbench.testing import checks
from rlbench.types import Advantage, LossTerms


def judge(kind, component, **more):
    """What fails and what waits: two dictionaries from a rule's name to its message."""
    failed, waiting = {}, {}
    for check in checks(kind, component, **more):
        try:
            check()
        except AssertionError as error:
            failed[check.rule.name] = str(error)
        except unittest.SkipTest as skip:
            waiting[check.rule.name] = str(skip)
    return failed, waiting


def outcome(rollout):
    return masked.total(rollout.token_reward, rollout.trained, 1)


def broadcast(rollout, advantage):
    return Advantage(masked.select(advantage[:, None].expand(rollout.mask.shape), rollout.trained))


def plain(rollout):
    return broadcast(rollout, outcome(rollout))


def ratio_loss(batch):
    ratio = masked.select((batch.logp - batch.old_logp).clamp(-20, 20), batch.mask).exp()
    return -ratio * masked.select(batch.advantages, batch.mask)


# Estimators


def half_precision(rollout):
    return Advantage(plain(rollout).advantages.half())


def one_number_a_row(rollout):
    return Advantage(outcome(rollout))


def no_advantage(rollout):
    return plain(rollout).advantages


def misspells_a_field(rollout):
    return broadcast(rollout, rollout.rewards)


def forgets_to_declare_values(rollout):
    advantages = masked.select(rollout.token_reward - rollout.values, rollout.trained)
    return Advantage(advantages, advantages)


def forgets_to_declare_two(rollout):
    last = rollout.last_value[:, None] + 0 * masked.select(rollout.values, rollout.trained)
    return Advantage(masked.select(rollout.token_reward - last, rollout.trained), last)


def option_without_default(rollout, *, lam):
    return plain(rollout)


def nothing_but_options(*, lam=0.9):
    return None


def fours(rollout):
    reward, order = outcome(rollout), rollout.group.argsort(stable=True)
    mean = reward[order].reshape(-1, 4).mean(1).repeat_interleave(4)
    return broadcast(rollout, reward - mean[order.argsort()])


def one_unscorable_row_spoils_all(rollout):
    reward = masked.total(rollout.token_reward, rollout.mask, 1)
    return broadcast(rollout, reward - reward.mean())


def random_estimator(rollout):
    return broadcast(rollout, outcome(rollout) + random.random())


# Losses


def reduces_itself(batch):
    return LossTerms(ratio_loss(batch).mean())


def double_precision(batch):
    return LossTerms(ratio_loss(batch).to(torch.bfloat16))


def returns_the_tensor(batch):
    return ratio_loss(batch)


def detaches(batch):
    return LossTerms(ratio_loss(batch).detach())


def reads_the_old_policy_only(batch):
    other = batch.old_logp.clone().requires_grad_()
    return LossTerms(-masked.select(other * batch.advantages, batch.mask))


def forgets_to_declare_ref_logp(batch):
    pull = masked.select(batch.logp - batch.ref_logp, batch.mask).square()
    return LossTerms(ratio_loss(batch) + pull - pull.detach())


def misspells_an_input(batch):
    return LossTerms(-batch.log_probs * batch.advantages)


def random_loss(batch):
    return LossTerms(ratio_loss(batch) * (0.5 + random.random()))


# Controllers


class Sound:
    coef = 0.5

    def update(self, kl, *, samples):
        pass


class WithoutSamples(Sound):
    def update(self, kl):
        pass


class WithoutUpdate:
    coef = 0.5


class TakesALog(Sound):
    def update(self, kl, *, samples):
        self.nats = math.log(kl)


class NamedOtherwise(Sound):
    coef = None
    beta = 0.5


class TensorAfterTheFirst(Sound):
    def update(self, kl, *, samples):
        self.coef = torch.tensor(0.5)


class NeedsATarget(Sound):
    def __init__(self, *, target):
        self.target = target


class FailsAtStart(Sound):
    def __init__(self, *, target: float = 0.0):
        self.gain = 1 / target


class Random(Sound):
    def update(self, kl, *, samples):
        self.coef = random.random()


@pytest.mark.parametrize(
    ("kind", "component", "rule", "found", "cure"),
    [
        ("estimator", half_precision, "output", "dtype torch.float16", "x.to(dtype)"),
        ("estimator", one_number_a_row, "output", "shape (12,) instead", "[:, None].expand("),
        ("estimator", no_advantage, "output", "a Tensor instead of", "Return Advantage("),
        ("estimator", misspells_a_field, "output", "AttributeError: 'Rollout'", "'rewards'."),
        (
            *("estimator", forgets_to_declare_values, "output"),
            "it reads values, which it does not declare: it raised TypeError",
            "Register it with needs=('values',)",
        ),
        (
            *("estimator", forgets_to_declare_two, "output"),
            "it reads values and last_value, which it does not declare",
            "Register it with needs=('values', 'last_value')",
        ),
        ("estimator", option_without_default, "options", "lam has no default", ": float = 1.0"),
        ("estimator", nothing_but_options, "options", "0 positional", "Write f(rollout, *"),
        ("estimator", fours, "group_sizes", "shape '[-1, 4]' is invalid", "by rollout.group"),
        (
            *("estimator", one_unscorable_row_spoils_all, "unscorable_rows"),
            "with a reward of NaN, advantages is nan",
            "Use rollout.scored in every statistic",
        ),
        ("estimator", random_estimator, "determinism", "two calls", "Draw nothing at random"),
        ("loss", reduces_itself, "unreduced", "shape () instead of", "the host aggregates"),
        ("loss", double_precision, "unreduced", "dtype torch.bfloat16", "x.to(dtype)"),
        ("loss", returns_the_tensor, "unreduced", "a Tensor instead of", "Return LossTerms("),
        ("loss", detaches, "trainable", "no gradient reaches logp", "without detach"),
        ("loss", reads_the_old_policy_only, "trainable", "no gradient", "from batch.logp itself"),
        ("loss", misspells_an_input, "unreduced", "AttributeError: 'PolicyBatch'", "'log_probs'."),
        (
            *("loss", forgets_to_declare_ref_logp, "unreduced"),
            "it reads ref_logp, which it does not declare: it raised TypeError",
            "Register it with needs=('ref_logp',)",
        ),
        ("loss", random_loss, "determinism", "two calls", "Draw nothing at random"),
        ("kl", WithoutSamples, "update", "keyword argument 'samples'", "Write update(self, kl, *"),
        ("kl", WithoutUpdate, "update", "it has no update", "Write update(self, kl, *, samples)"),
        ("kl", TakesALog, "update", "ValueError: math domain error", "0 and less among them"),
        ("kl", NamedOtherwise, "start", "coef is None", "Set self.coef in __init__"),
        ("kl", TensorAfterTheFirst, "update", "coef is tensor(0.5000)", "leave coef a float"),
        ("kl", NeedsATarget, "options", "target has no default", "Write __init__(self, *"),
        ("kl", FailsAtStart, "start", "ZeroDivisionError", "division by zero."),
        ("kl", Random, "determinism", "two controllers", "Draw nothing at random"),
    ],
)
def test_one_rule_tells_the_fault_and_its_cure(kind, component, rule, found, cure):
    failed, waiting = judge(kind, component)
    assert failed.keys() == {rule}
    told, advice = failed[rule].split(f"breaks '{rule}'")
    assert told == f"{kind} {component.__name__} (module {__name__}) "
    assert found in advice
    assert advice.index(found) < advice.index(cure)
    assert waiting
    for name, reason in waiting.items():
        assert reason == f"{name}: it can't be judged before {rule!r} holds; see there"


@pytest.mark.parametrize(
    ("kind", "component", "ends"),
    [
        ("estimator", misspells_a_field, "'Rollout' object has no attribute 'rewards'."),
        ("loss", misspells_an_input, "'PolicyBatch' object has no attribute 'log_probs'."),
        ("kl", FailsAtStart, "it raised ZeroDivisionError: float division by zero."),
    ],
)
def test_an_error_that_speaks_for_itself_gets_no_advice(kind, component, ends):
    failed, _ = judge(kind, component)
    (message,) = failed.values()
    assert message.endswith(ends)


def test_a_rule_that_is_broken_on_purpose_hides_nothing():
    failed, waiting = judge("loss", detaches, exceptions={"trainable": "it trains nothing"})
    assert "no gradient reaches logp" in failed["on_policy_gradient"]
    assert waiting == {"trainable": "trainable: it trains nothing"}
