"""Completions that could not be scored, from the reward to the controller: absent, not zero."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from rlbench.builtin.rewards import TrueReward
from rlbench.errors import RunError
from rlbench.training import border, trainer
from rlbench.training.objective import backward
from rlbench.training.parts import assemble
from rlbench.training.rollout import collect
from rlbench.training.trainer import rollout_metrics, sequence_kl, train
from rlbench.types import Advantage

NAN = float("nan")
LOSSES = [
    *("pg", "clip", "importance", "penalty", "two_sided", "cispo", "sapo"),
    *("gspo", "gspo_token", "gmpo", "clip_cov", "kl_cov"),
]


class Watching:
    """A controller that writes down what it is shown."""

    def __init__(self, statistic: str = "sequence") -> None:
        self.coef, self.statistic = 0.5, statistic
        self.seen: list[tuple[float, int]] = []

    def update(self, kl: float, *, samples: int) -> None:
        self.seen.append((kl, samples))


def reward_of_each_group(monkeypatch: pytest.MonkeyPatch, *groups: list[Any]) -> None:
    """Rewards of a rollout of 16, the groups repeated in turn; evaluations get 0."""

    def score(self: Any, prompts: Any, completions: Any) -> Any:
        if len(prompts) != 16:
            return [0.0] * len(prompts)
        return [groups[i % len(groups)][j] for i in range(4) for j in range(4)]

    monkeypatch.setattr(TrueReward, "score", score)


@pytest.mark.parametrize("missing", [None, NAN])
def test_one_of_four_leaves_the_statistics_of_the_other_three(
    make_spec: Callable[..., Any],
    recorder: Any,
    monkeypatch: pytest.MonkeyPatch,
    missing: float | None,
) -> None:
    reward_of_each_group(monkeypatch, [1.0, missing, 0.0, 1.0])
    parts = assemble(make_spec(), recorder)
    collected = collect(parts, 1, 0.0)
    found = border.estimate(
        parts.spec.selections["estimator"], parts.estimator, collected.rollout
    ).advantages[:4, 0]
    # mean 2/3, sd 0.577350 + 1e-6
    assert found.tolist() == pytest.approx([0.577350, 0, -1.154700, 0.577350], abs=2e-6)
    row = rollout_metrics(collected, parts, Advantage(torch.zeros_like(collected.rollout.old_logp)))
    assert row["unscored"] == 4
    assert row["reward"] == pytest.approx(2 / 3)  # not 1/2, as if it were 0
    # 12 rewards, 8 of them 1: 4 (2/3)^2 + 8 (1/3)^2 = 24/9, over 11
    assert row["reward_sd"] == pytest.approx((24 / 9 / 11) ** 0.5)
    assert row["flat_groups"] == 0


def test_a_group_with_one_reward_or_none_is_counted_as_flat(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reward_of_each_group(
        monkeypatch, [NAN] * 4, [NAN, 1.0, NAN, NAN], [1.0, NAN, 1.0, NAN], [0.0, NAN, NAN, 1.0]
    )
    train(make_spec(), recorder)
    assert [row["flat_groups"] for row in recorder.updates] == [0.75, 0.75]
    assert [row["unscored"] for row in recorder.updates] == [4 + 3 + 2 + 2] * 2


@pytest.mark.parametrize("estimator", ["group", "rloo", "gae", "reinforce_pp"])
def test_a_rollout_without_any_reward_fails_the_run_with_a_reason(
    make_spec: Callable[..., Any],
    recorder: Any,
    monkeypatch: pytest.MonkeyPatch,
    estimator: str,
) -> None:
    reward_of_each_group(monkeypatch, [None] * 4)
    with pytest.raises(RunError, match="update 1: none of 16 completions could be scored"):
        train(make_spec(estimator=estimator), recorder)


def test_measured_kl_and_sample_count_are_those_of_scored_rows(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    parts = assemble(make_spec(kl="fixed", task="sort"), recorder)
    collected = collect(parts, 1, 0.1)
    rollout = collected.rollout
    rollout.reward[3] = NAN
    # 2 nats on each token of the others, and nonsense on the row that has no reward
    kl = torch.full_like(rollout.old_logp, 2.0)
    kl[3] = 1e6
    collected = replace(collected, kl=torch.where(rollout.mask, kl, NAN))
    tokens = int(rollout.mask.sum() - rollout.mask[3].sum())
    assert sequence_kl(collected) == pytest.approx(2 * tokens / 15)
    for statistic, expected in (("sequence", 2 * tokens / 15), ("token", 2.0)):
        run = trainer.Run(make_spec(kl="fixed", task="sort"), recorder, ())
        watching = Watching(statistic)
        run.parts = replace(run.parts, controller=watching)
        run._steer(collected)
        assert watching.seen == [(pytest.approx(expected), 15)]


@pytest.mark.parametrize(
    ("loss", "aggregation"),
    [
        *((loss, "token_mean") for loss in LOSSES),
        *(("clip", mode) for mode in ("seq_mean_token_mean", "seq_mean_token_sum", "prompt_mean")),
    ],
)
def test_no_loss_kl_or_entropy_comes_from_it(
    make_spec: Callable[..., Any], recorder: Any, loss: str, aggregation: str
) -> None:
    """The step is the same bits whatever the row holds, and its counts leave the row out."""
    spec = make_spec(loss=loss, kl="fixed", entropy_coef=0.1, task="sort", aggregation=aggregation)
    found = []
    for junk in (0.0, NAN, 1e9):
        parts = assemble(spec, recorder)
        collected = collect(parts, 1, 0.2)
        rollout = collected.rollout
        with torch.no_grad():
            for weight in parts.policy.parameters():
                weight.mul_(1.05)
        advantages = torch.linspace(-1, 1, 16)[:, None].expand_as(rollout.old_logp).clone()
        rollout.reward[6] = NAN
        assert rollout.ref_logp is not None
        for tensor in (rollout.old_logp, rollout.ref_logp, advantages):
            tensor[6] = junk
        report = backward(parts, collected, Advantage(advantages), torch.arange(4), 0.2)
        gradient = torch.cat([w.grad.reshape(-1) for w in parts.policy.parameters()])
        assert report.tokens == int(rollout.mask.sum() - rollout.mask[6].sum())
        assert report.rows == 15
        found.append((report.loss, dict(report.sums), gradient))
    assert found[0][2].abs().max() > 1e-4
    for other in found[1:]:
        assert other[:2] == found[0][:2]
        assert torch.equal(other[2], found[0][2])
