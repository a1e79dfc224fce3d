"""Optimiser steps of one completion, rollouts that divide into nothing, and one value for all."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from rlbench.builtin.rewards import TrueReward
from rlbench.training.objective import backward
from rlbench.training.parts import assemble
from rlbench.training.rollout import collect
from rlbench.training.spec import check
from rlbench.training.trainer import train
from rlbench.types import Advantage


@pytest.mark.parametrize(
    ("estimator", "prompts", "minibatches"),
    [
        ("gae:whiten=true", 9, 4),
        ("gae:whiten=true", 9, 9),
        ("gae:whiten=true", 1, 1),
        ("mc_returns:whiten=true", 9, 4),
        ("reinforce:std=true", 9, 9),
        ("reinforce_pp", 2, 2),
        ("reinforce_pp", 1, 1),
    ],
)
def test_steps_of_one_completion_are_like_any_other(
    make_spec: Callable[..., Any], recorder: Any, estimator: str, prompts: int, minibatches: int
) -> None:
    """Nine in four steps are 3, 2, 2, 2; advantages were whitened over all nine before."""
    spec = make_spec(
        estimator=estimator,
        prompts=prompts,
        group_size=1,
        minibatches=minibatches,
        task="sort",
        updates=1,
    )
    check(spec)
    train(spec, recorder)
    row = recorder.updates[0]
    assert row["skipped_steps"] == 0
    assert all(math.isfinite(value) for value in row.values() if value is not None)


def test_whitening_over_one_valid_token_changes_nothing_and_breaks_nothing(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four completions one has a reward, and it ends at once."""
    from rlbench.builtin.models import LSTMNetwork

    honest = LSTMNetwork.output

    def ends_at_once(self: Any, state: Any) -> Any:
        said = torch.zeros_like(honest(self, state))
        said[:, 1] = 50.0
        return said

    spec = make_spec(
        estimator="gae:whiten=true,lam=1", group_size=1, minibatches=1, epochs=1, updates=1
    )
    monkeypatch.setattr(TrueReward, "score", lambda self, p, c: [1.0] + [None] * (len(p) - 1))
    parts = assemble(spec, recorder)
    collected = collect(parts, 1, 0.0)
    monkeypatch.setattr(LSTMNetwork, "output", ends_at_once)
    short = collect(parts, 1, 0.0)
    assert collected.rollout.mask.shape[1] > 1
    assert short.rollout.trained.sum() == 1
    found = parts.estimator(short.rollout, **spec.selections["estimator"].options)
    assert not found.advantages.any()
    report = backward(parts, short, found, torch.arange(4), 0.0)
    assert report.tokens == 1
    assert report.loss == 0
    assert all(not weight.grad.any() for weight in parts.policy.parameters())


def test_evaluations_know_nothing_of_groups(make_spec: Callable[..., Any], recorder: Any) -> None:
    """Ten held-out prompts, and five prompts in steps of 3 and 2, with groups of four."""
    spec = make_spec(eval_prompts=10, group_size=4, prompts=5, minibatches=2)
    check(spec)
    train(spec, recorder)
    assert len(recorder.updates) == 2
    assert recorder.updates[0]["skipped_steps"] == 0


def test_the_same_prompt_drawn_twice_makes_two_groups(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score(self: Any, prompts: Any, completions: Any) -> Any:
        return [1.0, 0, 0, 0, 1, 1, 1, 0]

    monkeypatch.setattr(TrueReward, "score", score)
    parts = assemble(make_spec(prompts=2, estimator="group:eps=0"), recorder)
    draw = parts.task._task.prompts
    parts.task._task.prompts = lambda n, generator, split: draw(1, generator, split).rows([0, 0])
    rollout = collect(parts, 1, 0.0).rollout
    assert torch.equal(rollout.prompt_ids[:4], rollout.prompt_ids[4:])
    assert rollout.group[:4].unique().numel() == rollout.group[4:].unique().numel() == 1
    assert rollout.group[0] != rollout.group[4]
    found = parts.estimator(rollout, **parts.spec.selections["estimator"].options)
    assert found.advantages[:, 0].tolist() == pytest.approx(
        [1.5, -0.5, -0.5, -0.5, 0.5, 0.5, 0.5, -1.5]
    )


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("token_mean", 7 / 5),
        ("token_mean_local", 7 / 5),  # one microbatch
        ("token_sum", 7.0),
        ("seq_mean_token_mean", (1 + 3) / 2),
        ("seq_mean_token_sum", (4 + 3) / 2),
        ("seq_mean_token_sum_norm", (4 + 3) / 2 / 4),  # a completion has up to 4 tokens
        ("seq_mean_token_sum_norm horizon=7", (4 + 3) / 2 / 7),
        ("token_sum_norm", (4 + 3) / 4),
        ("token_sum_norm horizon=7", (4 + 3) / 7),
        ("prompt_mean", (1 + 3) / 2),
    ],
)
def test_four_tokens_of_loss_1_beside_one_of_loss_3(
    make_spec: Callable[..., Any], recorder: Any, chosen: str, expected: float
) -> None:
    """On-policy the loss of a token is minus its advantage."""
    aggregation, _, horizon = chosen.partition(" horizon=")
    gradients = []
    for microbatches in (1, 2):
        spec = make_spec(
            prompts=2,
            group_size=1,
            minibatches=1,
            microbatches=microbatches,
            estimator="gae",
            loss="importance",
            aggregation=aggregation,
            horizon=int(horizon) if horizon else None,
        )
        check(spec)
        parts = assemble(spec, recorder)
        assert parts.task.completion_limit == 4
        collected = collect(parts, 1, 0.0)
        rollout = collected.rollout
        rollout.mask[:] = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0]]).bool()
        advantages = -torch.tensor([[1.0], [3.0]]).expand(2, 4).clone()
        report = backward(parts, collected, Advantage(advantages), torch.arange(2), 0.0)
        gradients.append(torch.cat([w.grad.reshape(-1) for w in parts.policy.parameters()]))
        # a token mean inside each microbatch, averaged, is the other number
        local = microbatches == 2 and aggregation == "token_mean_local"
        assert report.loss == pytest.approx(2.0 if local else expected, rel=1e-5)
    same = torch.allclose(gradients[0], gradients[1], rtol=0, atol=1e-6)
    assert same == (aggregation != "token_mean_local")


@pytest.mark.parametrize(
    ("aggregation", "left_out", "counted"),
    [
        ("seq_mean_token_mean", 1.0, 0.5),
        ("seq_mean_token_sum", 4.0, 2.0),
        ("seq_mean_token_sum_norm", 1.0, 0.5),
        ("prompt_mean", 1.0, 0.5),
        ("token_mean", 1.0, 1.0),
        ("token_sum", 4.0, 4.0),
        ("token_sum_norm", 1.0, 1.0),
    ],
)
def test_a_completion_without_a_reward_counts_in_the_divisor_only_on_request(
    make_spec: Callable[..., Any], recorder: Any, aggregation: str, left_out: float, counted: float
) -> None:
    for count, expected in ((False, left_out), (True, counted)):
        spec = make_spec(
            prompts=2,
            group_size=1,
            minibatches=1,
            estimator="gae",
            loss="importance",
            aggregation=aggregation,
            count_masked_rows=count,
        )
        parts = assemble(spec, recorder)
        collected = collect(parts, 1, 0.0)
        collected.rollout.mask[:] = torch.tensor([[True] * 4] * 2)
        collected.rollout.reward[1] = float("nan")
        advantages = torch.full((2, 4), -1.0)
        report = backward(parts, collected, Advantage(advantages), torch.arange(2), 0.0)
        assert report.loss == pytest.approx(expected, rel=1e-5)
