"""A token whose log-ratio is out of all proportion: finite, counted, and alone affected."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from rlbench.errors import Diverged
from rlbench.training import objective
from rlbench.training.objective import backward
from rlbench.training.parts import assemble
from rlbench.training.rollout import collect
from rlbench.training.trainer import train
from rlbench.types import Advantage

LOSSES = [
    *("pg", "clip", "clip:dual=3", "importance", "penalty", "two_sided", "cispo", "sapo"),
    *("gspo", "gspo_token", "gmpo", "clip_cov", "kl_cov"),
]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("gap", [100.0, -100.0])
def test_the_step_is_finite_and_the_token_is_counted(
    make_spec: Callable[..., Any], recorder: Any, loss: str, gap: float
) -> None:
    """In float32, with an advantage of 0 there: exp(100) is inf, and inf times 0 is NaN."""
    parts = assemble(make_spec(loss=loss, kl="fixed", entropy_coef=0.01, task="sort"), recorder)
    collected = collect(parts, 1, 0.2)
    rollout = collected.rollout
    assert rollout.ref_logp is not None
    rollout.old_logp[2, 0] -= gap
    rollout.ref_logp[5, 0] -= gap
    advantages = torch.ones_like(rollout.old_logp)
    advantages[2] = 0.0
    report = backward(parts, collected, Advantage(advantages), torch.arange(4), 0.2)
    assert report.sums["ratio_clamped"] == 1
    assert torch.tensor(report.loss).isfinite()
    assert all(bool(weight.grad.isfinite().all()) for weight in parts.policy.parameters())
    assert max(float(weight.grad.abs().max()) for weight in parts.policy.parameters()) > 0


def test_no_ordinary_ratio_is_counted(make_spec: Callable[..., Any], recorder: Any) -> None:
    train(make_spec(task="sort", lr=5e-3), recorder)
    assert [row["ratio_clamped"] for row in recorder.updates] == [0.0, 0.0]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_nan_log_probability_fails_the_step(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch, loss: str
) -> None:
    parts = assemble(make_spec(loss=loss, task="sort"), recorder)
    collected = collect(parts, 1, 0.0)
    honest = objective.log_probs_of

    def broken(*given: Any, **named: Any) -> torch.Tensor:
        found = honest(*given, **named)
        spot = torch.zeros_like(found, dtype=torch.bool)
        spot[0, 0] = True
        return found.masked_fill(spot, float("nan"))

    monkeypatch.setattr(objective, "log_probs_of", broken)
    advantages = torch.zeros_like(collected.rollout.old_logp)
    with pytest.raises(Diverged, match=r"not finite on 1 of"):
        backward(parts, collected, Advantage(advantages), torch.arange(4), 0.0)


def test_clipped_tokens_are_averaged_over_the_trained_ones(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    """Ratios 1.5, 0.5, 0.5, 1.5 with A of 1, 1, -1, -1: the first and the third are clipped."""
    parts = assemble(make_spec(prompts=1, group_size=4, minibatches=1), recorder)
    collected = collect(parts, 1, 0.0)
    rollout = collected.rollout
    rollout.mask[:] = torch.arange(rollout.mask.shape[1]) == 0  # one token of each is trained
    ratios = torch.tensor([1.5, 0.5, 0.5, 1.5])
    rollout.old_logp[:, 0] -= ratios.log()
    rollout.old_logp[:, 1:] -= 5.0  # far beyond every bound, under the mask
    advantages = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]]).expand_as(rollout.mask).clone()
    report = backward(parts, collected, Advantage(advantages), torch.arange(1), 0.0)
    assert report.tokens == 4
    assert report.sums["clip_fraction"] == 2
    # (-1.2 - 0.5 + 0.8 + 1.5) / 4
    assert report.loss == pytest.approx(0.15, abs=1e-6)
