"""The entropy term: its value, its sign, and that it is in the loss."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from rlbench.training import objective
from rlbench.training.evaluation import evaluate
from rlbench.training.objective import backward
from rlbench.training.parts import Parts, assemble
from rlbench.training.rollout import Collected, collect
from rlbench.types import Advantage


def silent(collected: Collected) -> Advantage:
    return Advantage(torch.zeros_like(collected.rollout.old_logp))


def uniform(parts: Parts, tokens: int) -> None:
    """A policy that gives the first so many tokens the same chance, and the rest none."""
    with torch.no_grad():
        parts.policy.head.weight.zero_()
        parts.policy.head.bias[:] = -1e4
        parts.policy.head.bias[:tokens] = 0


@pytest.mark.parametrize("width", [4, 12, 60])
@pytest.mark.parametrize("aggregation", ["token_mean", "seq_mean_token_mean"])
def test_a_uniform_policy_over_four_tokens_has_1_386_nats_whatever_the_padding(
    make_spec: Callable[..., Any],
    recorder: Any,
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    aggregation: str,
) -> None:
    parts = assemble(make_spec(entropy_coef=0.01, aggregation=aggregation), recorder)
    uniform(parts, 4)
    collected = collect(parts, 1, 0.0)
    rollout = collected.rollout
    cells = (16, width)
    mask = torch.arange(width).expand(cells) < 3
    wide = replace(
        collected,
        rollout=replace(
            rollout,
            completion_ids=torch.zeros(cells, dtype=torch.int64),
            mask=mask,
            token_reward=torch.zeros(cells),
            old_logp=torch.full(cells, -math.log(4)),
        ),
    )
    honest = objective.log_probs_of

    def sure_of_padding(*given: Any, **named: Any) -> torch.Tensor:
        found = honest(*given, **named)
        sure = torch.where(torch.arange(found.shape[-1]) == 0, 0.0, -math.inf)
        return torch.where(mask[..., None], found, sure)

    monkeypatch.setattr(objective, "log_probs_of", sure_of_padding)
    report = backward(parts, wide, silent(wide), torch.arange(4), 0.0)
    assert report.tokens == 48
    assert report.sums["entropy"] / report.tokens == pytest.approx(1.386294, abs=1e-5)
    # it is minimised with the sign that raises it
    assert report.loss == pytest.approx(-0.01 * 1.386294, abs=1e-7)


def test_the_entropy_is_that_of_the_distribution_that_is_sampled(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    """Logits 2, 1, 0 at temperature 0.5 are 4, 2, 0: 0.867, 0.117, 0.016."""
    parts = assemble(make_spec(temperature=0.5, precision="float64"), recorder)
    uniform(parts, 3)
    with torch.no_grad():
        parts.policy.head.bias[:3] = torch.tensor([2.0, 1.0, 0.0])
    p = torch.tensor([4.0, 2.0, 0.0], dtype=torch.float64).softmax(0)
    expected = float(-(p * p.log()).sum())
    assert expected == pytest.approx(0.4411, abs=1e-3)
    collected = collect(parts, 1, 0.0)
    report = backward(parts, collected, silent(collected), torch.arange(4), 0.0)
    assert report.sums["entropy"] / report.tokens == pytest.approx(expected, rel=1e-9)
    assert report.sums["kl_old"] == pytest.approx(0, abs=1e-12)
    assert report.log_ratio_error < 1e-6
    assert evaluate(parts, 0).row["entropy"] == pytest.approx(expected, rel=1e-9)
    chosen = collected.rollout.old_logp[collected.rollout.mask].exp()
    assert {round(x, 4) for x in chosen.tolist()} <= {round(x, 4) for x in p.tolist()}


def test_a_larger_coefficient_leaves_more_entropy_after_a_step(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    left = []
    for coef in (0.0, 0.5, 5.0):
        parts = assemble(make_spec(entropy_coef=coef, task="sort"), recorder)
        with torch.no_grad():
            parts.policy.head.weight.mul_(5)  # sure of something, so that there is a way up
        collected = collect(parts, 1, 0.0)
        backward(parts, collected, silent(collected), torch.arange(4), 0.0)
        with torch.no_grad():
            for weight in parts.policy.parameters():
                weight.sub_(0.1 * weight.grad)
        left.append(evaluate(parts, 1).row["entropy"])
    assert left[0] < left[1] < left[2]


def test_without_a_coefficient_the_gradient_is_that_of_the_policy_loss_alone(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    """And with one, the entropy's share is in proportion to it."""
    gradients, losses = [], []
    for coef in (0.0, 0.1, 0.2):
        spec = make_spec(entropy_coef=coef, task="sort", loss="importance", precision="float64")
        parts = assemble(spec, recorder)
        collected = collect(parts, 1, 0.0)
        advantages = torch.linspace(-1, 2, 16, dtype=torch.float64)[:, None]
        advantage = Advantage(advantages.expand_as(collected.rollout.old_logp).clone())
        report = backward(parts, collected, advantage, torch.arange(4), 0.0)
        gradients.append(torch.cat([w.grad.reshape(-1) for w in parts.policy.parameters()]))
        losses.append(report.loss)
    tokens = collected.rollout.mask.sum(1)
    alone = -(advantages[:, 0] * tokens).sum() / tokens.sum()  # on-policy: -A, over tokens
    assert losses[0] == pytest.approx(float(alone))
    share = gradients[1] - gradients[0]
    assert share.abs().max() > 1e-6
    torch.testing.assert_close(gradients[2] - gradients[0], 2 * share)
