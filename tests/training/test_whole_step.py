"""Losses that select tokens see the whole optimiser step, whatever the microbatches."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from rlbench.training.objective import StepReport, backward, microbatches_of
from rlbench.training.parts import assemble
from rlbench.training.rollout import collect
from rlbench.types import Advantage

# Options under which some tokens are selected in a rollout as small as this.
SELECTING = (
    "clip_cov:fraction=0.1,cov_low=0.05,cov_high=50",
    "kl_cov:fraction=0.05",
)
OTHERS = ("gspo:eps=0.2", "gspo_token:eps=0.2", "gmpo", "cispo", "sapo", "penalty", "two_sided")


@pytest.fixture
def take_step(make_spec: Callable[..., Any], recorder: Any) -> Callable[..., Any]:
    """One optimiser step of a policy that has moved: its report and its gradient."""

    def take(groups: list[int], **chosen: Any) -> tuple[StepReport, torch.Tensor]:
        parts = assemble(make_spec(**{"prompts": 6, "task": "sort"} | chosen), recorder)
        collected = collect(parts, 1, coef=0.0)
        dtype = collected.rollout.old_logp.dtype
        rows = torch.rand(24, 1, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
        advantages = (4 * rows - 2).to(dtype).expand_as(collected.rollout.old_logp).clone()
        with torch.no_grad():
            for weight in parts.policy.parameters():
                weight.mul_(1.05)
        report = backward(parts, collected, Advantage(advantages), torch.tensor(groups), 0.0)
        return report, torch.cat([w.grad.reshape(-1) for w in parts.policy.parameters()])

    return take


@pytest.mark.parametrize("loss", [*SELECTING, *OTHERS])
@pytest.mark.parametrize(("precision", "allowed"), [("float32", 1e-6), ("float64", 1e-12)])
def test_microbatches_change_neither_loss_nor_gradient(
    take_step: Callable[..., Any], loss: str, precision: str, allowed: float
) -> None:
    whole, gradient = take_step(list(range(6)), loss=loss, precision=precision)
    split, found = take_step(list(range(6)), loss=loss, precision=precision, microbatches=3)
    assert split.loss == pytest.approx(whole.loss, abs=allowed)
    assert torch.allclose(found, gradient, atol=allowed, rtol=0)
    assert found.abs().max().item() > 1e-3
    if loss in SELECTING:
        assert 0 < whole.sums["selected_fraction"] < whole.tokens / 5


@pytest.mark.parametrize("loss", SELECTING)
def test_the_order_of_groups_does_not_matter(take_step: Callable[..., Any], loss: str) -> None:
    report, gradient = take_step([0, 1, 2, 3, 4, 5], loss=loss, precision="float64")
    moved, found = take_step([5, 2, 0, 4, 1, 3], loss=loss, precision="float64")
    assert moved.loss == pytest.approx(report.loss, abs=1e-12)
    assert torch.allclose(found, gradient, atol=1e-12)


def test_only_a_loss_that_asks_for_it_gets_the_whole_step(make_spec: Callable[..., Any]) -> None:
    groups = torch.arange(6)
    for loss, sizes in (("clip", [2, 2, 2]), ("kl_cov", [6])):
        spec = make_spec(prompts=6, microbatches=3, loss=loss)
        assert [len(part) for part in microbatches_of(spec, groups)] == sizes


@pytest.mark.parametrize("unscored", [0, 1])
def test_a_local_mean_is_that_of_the_microbatches(
    make_spec: Callable[..., Any], recorder: Any, unscored: int
) -> None:
    """With -A as the loss on-policy: the mean over microbatches of their mean over tokens."""
    parts = assemble(
        make_spec(
            prompts=6,
            loss="importance",
            aggregation="token_mean_local",
            microbatches=3,
            task="sort",
        ),
        recorder,
    )
    collected = collect(parts, 1, coef=0.0)
    rollout = collected.rollout
    rollout.reward[: 8 * unscored] = float("nan")  # the first microbatch has no token then
    advantages = torch.arange(24.0)[:, None].expand_as(rollout.old_logp).clone()
    report = backward(parts, collected, Advantage(advantages), torch.arange(6), 0.0)
    means = [
        advantages[rows][rollout.mask[rows]].mean()
        for rows in (slice(0, 8), slice(8, 16), slice(16, 24))
    ]
    expected = -torch.stack(means[unscored:]).mean()
    assert report.loss == pytest.approx(float(expected), rel=1e-5)
