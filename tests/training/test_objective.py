"""One optimiser step against the same step done the long way."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from rlbench.aggregation import MODES
from rlbench.training import border
from rlbench.training.objective import backward, value_loss
from rlbench.training.parts import Parts, assemble
from rlbench.training.rollout import Collected, collect
from rlbench.types import Advantage

Step = tuple[Parts, Collected, Advantage]


def gradients(network: Any) -> torch.Tensor:
    return torch.cat([weight.grad.reshape(-1) for weight in network.parameters()])


@pytest.fixture
def step(make_spec: Callable[..., Any], recorder: Any) -> Callable[..., Step]:
    """Everything an optimiser step starts from; the policy has moved off the one that sampled."""

    def make(**chosen: Any) -> Step:
        chosen = {"prompts": 6, "precision": "float64"} | chosen
        parts = assemble(make_spec(**chosen), recorder)
        collected = collect(parts, 1, coef=0.2)
        rewards = torch.rand(24, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
        rows = [
            [(i + j) % 5 / 5 for j in range(collected.rollout.mask.shape[1])] for i in range(24)
        ]
        advantages = torch.tensor(rows, dtype=torch.float64) - rewards[:, None]
        with torch.no_grad():
            for weight in parts.policy.parameters():
                weight.mul_(1.05)
        return parts, collected, Advantage(advantages.to(collected.rollout.old_logp.dtype))

    return make


def by_hand(parts: Parts, collected: Collected, advantage: Advantage, groups: list[int]) -> None:
    """PPO-clip, k3 with ratio weight and an entropy bonus, row by row over whole sequences."""
    rollout, objective, tokens = collected.rollout, torch.zeros((), dtype=torch.float64), 0
    for row in [g * 4 + j for g in groups for j in range(4)]:
        prompt = rollout.prompt_ids[row][rollout.prompt_mask[row]]
        length = int(rollout.mask[row].sum())
        text = torch.cat([prompt, rollout.completion_ids[row, :length]])[None]
        hidden, _ = parts.policy.lstm(parts.policy.embedding(text))
        # the output at position i scores token i + 1
        logits = parts.policy.head(hidden)[0, len(prompt) - 1 : -1]
        log_probs = logits.log_softmax(-1)
        logp = log_probs[range(length), text[0, len(prompt) :]]
        with torch.no_grad():
            base_hidden, _ = parts.base.lstm(parts.base.embedding(text))
            base = parts.base.head(base_hidden)[0, len(prompt) - 1 : -1].log_softmax(-1)
            ref = base[range(length), text[0, len(prompt) :]]
        ratio = (logp - rollout.old_logp[row, :length]).exp()
        gain = advantage.advantages[row, :length]
        surrogate = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
        d = logp - ref
        penalty = ratio * ((-d).exp() - 1 + d)
        entropy = -(log_probs.exp() * log_probs).sum(-1)
        objective = objective + (-surrogate + 0.2 * penalty - 0.01 * entropy).sum()
        tokens += length
    (objective / tokens).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped


@pytest.mark.parametrize("task", ["addition", "sort"])
def test_shared_prompts_give_the_gradients_of_full_sequences(
    step: Callable[..., Step], task: str
) -> None:
    parts, collected, advantage = step(task=task, kl="fixed:coef=0.2", entropy_coef=0.01)
    groups = [4, 0, 3]
    report = backward(parts, collected, advantage, torch.tensor(groups), 0.2)
    found = gradients(parts.policy)
    parts.policy.zero_grad()
    by_hand(parts, collected, advantage, groups)
    assert report.tokens == int(collected.rollout.mask.reshape(6, -1)[groups].sum())
    assert torch.allclose(found, gradients(parts.policy), atol=1e-12, rtol=1e-9)
    assert found.abs().max().item() > 1e-3


def test_shared_prompts_give_the_same_gradients_in_float32_to_1e_6(
    step: Callable[..., Step],
) -> None:
    parts, collected, advantage = step(
        task="sort", kl="fixed:coef=0.2", entropy_coef=0.01, precision="float32"
    )
    backward(parts, collected, advantage, torch.arange(6), 0.2)
    found = gradients(parts.policy)
    parts.policy.zero_grad()
    by_hand(parts, collected, advantage, [0, 1, 2, 3, 4, 5])
    assert torch.allclose(found, gradients(parts.policy), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    "aggregation",
    [mode for mode in MODES if mode != "token_mean_local"],  # depends on the split by definition
)
@pytest.mark.parametrize("microbatches", [2, 3, 6, 50])
def test_microbatches_change_neither_loss_nor_gradient(
    step: Callable[..., Step], aggregation: str, microbatches: int
) -> None:
    found = []
    for count in (1, microbatches):
        parts, collected, advantage = step(
            task="sort", kl="fixed", aggregation=aggregation, microbatches=count
        )
        report = backward(parts, collected, advantage, torch.arange(6), 0.2)
        found.append((report.loss, gradients(parts.policy)))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-12)
    assert torch.allclose(found[0][1], found[1][1], atol=1e-12, rtol=1e-9)


def test_the_order_of_groups_does_not_matter(step: Callable[..., Step]) -> None:
    parts, collected, advantage = step(task="sort")
    backward(parts, collected, advantage, torch.tensor([0, 1, 2, 3, 4, 5]), 0.0)
    found = gradients(parts.policy)
    parts.policy.zero_grad()
    backward(parts, collected, advantage, torch.tensor([5, 2, 0, 4, 1, 3]), 0.0)
    assert torch.allclose(found, gradients(parts.policy), atol=1e-12)


def test_a_row_without_a_reward_takes_no_part(step: Callable[..., Step]) -> None:
    """Not in the loss, the KL or the entropy; its tokens are not counted."""
    parts, collected, advantage = step(kl="fixed", entropy_coef=0.01)
    rollout = collected.rollout
    rollout.reward[5] = float("nan")
    backward(parts, collected, advantage, torch.arange(6), 0.2)
    found = gradients(parts.policy)
    parts.policy.zero_grad()
    # what the row holds can't matter now
    rollout.old_logp[5] = float("nan")
    assert rollout.ref_logp is not None
    rollout.ref_logp[5] = float("inf")
    advantage.advantages[5] = float("nan")
    report = backward(parts, collected, advantage, torch.arange(6), 0.2)
    assert report.tokens == int(rollout.mask.sum() - rollout.mask[5].sum())
    assert torch.equal(found, gradients(parts.policy))


def test_a_step_without_a_trainable_token_has_no_gradient(step: Callable[..., Step]) -> None:
    parts, collected, advantage = step()
    collected.rollout.reward[:4] = float("nan")  # the whole first group
    report = backward(parts, collected, advantage, torch.tensor([0]), 0.0)
    assert report.tokens == 0
    assert all(weight.grad is None for weight in parts.policy.parameters())


def test_the_entropy_bonus_raises_the_entropy(step: Callable[..., Step]) -> None:
    parts, collected, advantage = step(entropy_coef=1.0)
    silent = Advantage(torch.zeros_like(advantage.advantages))
    entropies = []
    for _ in range(3):
        parts.policy.zero_grad()
        report = backward(parts, collected, silent, torch.arange(6), 0.0)
        entropies.append(report.sums["entropy"] / report.tokens)
        with torch.no_grad():
            for weight in parts.policy.parameters():
                weight.sub_(0.1 * weight.grad)
    assert entropies[0] < entropies[1] < entropies[2]


def test_a_larger_coefficient_pulls_harder_towards_the_base_policy(
    step: Callable[..., Step],
) -> None:
    """Raising the coefficient lowers the KL that one step leaves."""
    left = []
    for coef in (0.0, 0.5, 5.0):
        parts, collected, advantage = step(kl="fixed")
        silent = Advantage(torch.zeros_like(advantage.advantages))
        backward(parts, collected, silent, torch.arange(6), coef)
        with torch.no_grad():
            for weight in parts.policy.parameters():
                weight.sub_(0.5 * weight.grad)
        gap = sum(
            float((a.detach() - b).square().sum())
            for a, b in zip(parts.policy.parameters(), parts.base.parameters(), strict=True)
        )
        left.append(gap)
    assert left[0] > left[1] > left[2]


def test_the_value_loss_is_half_the_mean_squared_error(step: Callable[..., Step]) -> None:
    parts, collected, _ = step(estimator="gae")
    returns = torch.full_like(collected.rollout.old_logp, 2.0)
    returns[~collected.rollout.mask] = float("nan")
    loss, tokens = value_loss(parts, collected, returns, torch.arange(6))
    # the critic says 0 everywhere: (0 - 2)^2 / 2 = 2
    assert float(loss.detach()) == pytest.approx(2.0)
    assert tokens == int(collected.rollout.mask.sum())
    loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    assert bool(gradients(parts.critic).isfinite().all())


def test_estimator_output_is_checked_before_it_is_used(step: Callable[..., Step]) -> None:
    parts, collected, _ = step()
    selection = parts.spec.selections["estimator"]
    found = border.estimate(selection, parts.estimator, collected.rollout)
    assert found.advantages.shape == collected.rollout.mask.shape
