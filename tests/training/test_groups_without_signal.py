"""A group whose rewards are equal moves nothing, unless something else asks for it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from rlbench.builtin.rewards import TrueReward
from rlbench.training import border
from rlbench.training.objective import backward
from rlbench.training.parts import assemble
from rlbench.training.rollout import collect
from rlbench.training.trainer import train
from rlbench.types import Advantage

# penalty pulls back to the policy that sampled, whatever the advantage
BY_ADVANTAGE = (
    *("pg", "clip", "importance", "two_sided", "cispo", "sapo"),
    *("gspo", "gspo_token", "gmpo", "clip_cov"),
)


@pytest.fixture
def moved_step(make_spec: Callable[..., Any], recorder: Any) -> Callable[..., torch.Tensor]:
    """Gradient of a step on equal rewards, the policy moved off the one that sampled."""

    def take(coef: float = 0.0, groups: tuple[int, ...] = (0, 1, 2, 3), **chosen: Any) -> Any:
        parts = assemble(make_spec(**{"precision": "float64"} | chosen), recorder)
        parts.reward._reward.score = lambda prompts, _: [4.2] * 4 + [0.0, 1.0] * 6
        collected = collect(parts, 1, coef)
        with torch.no_grad():
            for weight in parts.policy.parameters():
                weight.mul_(1.05)
        estimator = parts.spec.selections["estimator"]
        advantage = border.estimate(estimator, parts.estimator, collected.rollout)
        backward(parts, collected, advantage, torch.tensor(groups), coef)
        return torch.cat([weight.grad.reshape(-1) for weight in parts.policy.parameters()])

    return take


@pytest.mark.parametrize("loss", BY_ADVANTAGE)
def test_without_a_penalty_its_gradient_is_exactly_zero(
    moved_step: Callable[..., torch.Tensor], loss: str
) -> None:
    assert not moved_step(groups=(0,), loss=loss).any()
    assert moved_step(groups=(0, 1), loss=loss).any()


@pytest.mark.parametrize("estimator", ["group", "dr_grpo", "rloo", "opo", "group_mean_batch_std"])
def test_so_it_is_for_every_estimator_of_groups(
    moved_step: Callable[..., torch.Tensor], estimator: str
) -> None:
    assert not moved_step(groups=(0,), estimator=estimator).any()


def test_with_a_penalty_it_keeps_the_gradient_of_the_kl(
    moved_step: Callable[..., torch.Tensor],
) -> None:
    once = moved_step(coef=0.1, groups=(0,), kl="fixed:coef=0.1")
    assert once.abs().max() > 1e-6
    # the whole gradient is the penalty's: in proportion to the coefficient
    twice = moved_step(coef=0.2, groups=(0,), kl="fixed:coef=0.1")
    torch.testing.assert_close(twice, 2 * once)
    assert not moved_step(coef=0.0, groups=(0,), kl="fixed:coef=0.1").any()


def test_a_run_of_equal_rewards_leaves_the_policy_where_it_was(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrueReward, "score", lambda self, prompts, _: [0.7] * len(prompts))
    result = train(make_spec(task="sort"), recorder)
    assert result["kl"] == 0.0
    assert [row["flat_groups"] for row in recorder.updates] == [1.0, 1.0]
    assert [row["grad_norm"] for row in recorder.updates] == [0.0, 0.0]
    assert [row["skipped_steps"] for row in recorder.updates] == [0, 0]


def test_half_of_the_groups_are_counted_when_half_carry_no_signal(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewards = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    monkeypatch.setattr(
        TrueReward, "score", lambda self, prompts, _: (rewards * len(prompts))[: len(prompts)]
    )
    train(make_spec(), recorder)
    assert [row["flat_groups"] for row in recorder.updates] == [0.5, 0.5]


def test_a_loss_of_zero_can_have_a_gradient(make_spec: Callable[..., Any], recorder: Any) -> None:
    """Centred advantages: the value on-policy is minus their mean, the gradient is not."""
    parts = assemble(make_spec(loss="clip", prompts=1, minibatches=1), recorder)
    collected = collect(parts, 1, 0.0)
    tokens = collected.rollout.mask
    advantages = torch.where(tokens, torch.tensor([[1.0], [-1.0], [1.0], [-1.0]]), 0.0)
    advantages = torch.where(tokens, advantages - advantages.sum() / tokens.sum(), 0.0)
    report = backward(parts, collected, Advantage(advantages), torch.arange(1), 0.0)
    assert report.loss == pytest.approx(0, abs=1e-6)
    assert max(float(w.grad.abs().max()) for w in parts.policy.parameters()) > 1e-3
