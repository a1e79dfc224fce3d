from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

from rlbench.errors import ComponentError, Diverged, RunError, UsageError
from rlbench.training import trainer
from rlbench.training.spec import check
from rlbench.training.trainer import train
from rlbench.types import Advantage, LossTerms

COMBINATIONS: list[dict[str, Any]] = [
    {},
    {"estimator": "gae", "loss": "pg"},
    {"estimator": "gae:truncation=bootstrap,whiten=true", "kl": "adaptive"},
    {"estimator": "group_gae", "kl": "proportional:place=reward", "task": "sort"},
    {"estimator": "rloo", "kl": "fixed:place=reward", "task": "sort", "top_p": 0.9},
    {"kl": "fixed", "entropy_coef": 0.01, "microbatches": 2, "temperature": 0.5, "task": "sort"},
    {"precision": "float64", "lr_schedule": "cosine", "warmup": 1, "aggregation": "prompt_mean"},
    {"model": "lstm:embed=8,hidden=16,layers=2", "epochs": 1, "minibatches": 4, "top_k": 3},
]


@pytest.mark.parametrize("chosen", COMBINATIONS, ids=str)
def test_every_combination_trains_and_tells_the_same_story_twice(
    make_spec: Callable[..., Any], recorder: Any, chosen: dict[str, Any]
) -> None:
    found = []
    for _ in range(2):
        recorder.updates, recorder.evaluations = [], []
        spec = make_spec(**chosen)
        check(spec)
        result = train(spec, recorder)
        result.pop("phases")
        found.append((result, recorder.updates, recorder.evaluations))
    assert found[0] == found[1]
    assert [row["update"] for row in recorder.updates] == [1, 2]
    assert [row["update"] for row in recorder.evaluations] == [0, 2]
    for row in recorder.updates:
        assert list(row) == list(recorder.updates[0])
        assert row["first_ratio_error"] < 1e-6
    assert recorder.steps[-1] == (2, 2, "training")


def test_seeds_differ(make_spec: Callable[..., Any], recorder: Any) -> None:
    results = [train(make_spec(seed=seed, task="sort"), recorder) for seed in (0, 1)]
    assert results[0]["entropy"] != results[1]["entropy"]


def test_training_improves_the_policy(make_spec: Callable[..., Any], recorder: Any) -> None:
    """On a task that a short run can learn; a wrong sign would lower the score."""
    spec = make_spec(
        task="sort:shortest=3,longest=3",
        base_score=0.4,
        updates=40,
        prompts=16,
        group_size=8,
        lr=2e-3,
        eval_prompts=200,
    )
    result = train(spec, recorder)
    assert result["score"] > result["score_start"] + 0.1
    assert result["kl"] > 0.01
    assert result["tokens"] == recorder.updates[-1]["tokens"]


def plant(monkeypatch: pytest.MonkeyPatch, **replaced: Any) -> None:
    """Put other functions in the place of a run's components."""
    assemble = trainer.assemble

    def planted(*arguments: Any) -> Any:
        from dataclasses import replace

        return replace(assemble(*arguments), **replaced)

    monkeypatch.setattr(trainer, "assemble", planted)


def test_a_loss_that_turns_nan_ends_the_run_and_names_its_owner(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, loss=lambda batch, **_: LossTerms(batch.logp * float("nan")))
    with pytest.raises(Diverged, match=r"loss 'clip' \(rlbench .*not finite"):
        train(make_spec(), recorder)


def test_weights_that_explode_end_the_run(make_spec: Callable[..., Any], recorder: Any) -> None:
    with pytest.raises(Diverged, match="not finite"):
        train(make_spec(task="sort", lr=1e37, updates=40), recorder)


def test_a_policy_that_samples_and_scores_differently_is_found_at_once(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlbench.builtin.models import LSTMNetwork

    honest = LSTMNetwork.run
    monkeypatch.setattr(
        LSTMNetwork, "run", lambda self, state, ids: honest(self, state, ids).mul(1.01)
    )
    with pytest.raises(
        RunError, match=r"first ratios differ from 1.*Sampling and scoring disagree"
    ):
        train(make_spec(task="sort"), recorder)


def test_a_minibatch_without_a_reward_is_skipped_and_counted(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One group in an optimiser step, and one group of four without a reward."""
    from rlbench.builtin.rewards import TrueReward

    def score(self: Any, prompts: Any, completions: Any) -> Any:
        found = self._task.score(prompts, completions)
        if len(prompts) == 16:  # training, not evaluation
            found[4:8] = float("nan")
        return found

    monkeypatch.setattr(TrueReward, "score", score)
    train(make_spec(task="sort", minibatches=4, epochs=2), recorder)
    assert [row["skipped_steps"] for row in recorder.updates] == [2, 2]
    assert [row["unscored"] for row in recorder.updates] == [4, 4]


def test_groups_without_signal_are_counted(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One group of equal rewards beside three with a winner."""
    from rlbench.builtin.rewards import TrueReward

    def score(self: Any, prompts: Any, completions: Any) -> Any:
        return [1.0] * 4 + [0.0, 1.0, 0.0, 1.0] * (len(prompts) // 4 - 1)

    monkeypatch.setattr(TrueReward, "score", score)
    train(make_spec(), recorder)
    assert recorder.updates[0]["flat_groups"] == 0.25
    assert recorder.updates[0]["reward"] == pytest.approx((4 + 6) / 16)


def test_the_controller_sees_one_kl_a_rollout_and_acts_on_the_next(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The KL summed over a completion, averaged over completions, before the steps."""

    class Watching:
        coef = 0.5

        def __init__(self) -> None:
            self.seen: list[tuple[float, int]] = []

        def update(self, kl: float, *, samples: int) -> None:
            self.seen.append((kl, samples))
            self.coef += 1

    controller = Watching()
    plant(monkeypatch, controller=controller)
    train(make_spec(kl="fixed", task="sort", updates=3), recorder)
    assert [row["coef"] for row in recorder.updates] == [0.5, 1.5, 2.5]
    assert controller.seen == [(row["kl_k3_ratio"], 16) for row in recorder.updates]
    assert controller.seen[0][0] == pytest.approx(0.0, abs=1e-9)
    assert controller.seen[2][0] > 0


def test_a_tracker_that_fails_costs_a_line_in_the_log(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    class Broken:
        def log(self, update: int, metrics: Mapping[str, float]) -> None:
            raise OSError("no network")

    train(make_spec(), recorder, [Broken()])  # type: ignore[list-item]  # the trainer only calls log
    assert any(
        "tracker Broken failed at update 1: OSError: no network" in x for x in recorder.lines
    )


def test_an_estimator_may_draw_from_the_global_generators(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each seed has its own numbers, and the same ones each time."""
    import numpy as np

    def noisy(rollout: Any, **_: Any) -> Advantage:
        return Advantage(torch.full_like(rollout.old_logp, float(np.random.randn())))

    plant(monkeypatch, estimator=noisy)
    losses = []
    for seed in (0, 0, 1):
        recorder.updates = []
        train(make_spec(seed=seed, base_seed=0), recorder)
        losses.append([row["loss"] for row in recorder.updates])
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"group_size": 1}, "group_size=1 with estimator 'group': .* at least 2"),
        ({"group_size": 1, "estimator": "rloo"}, "'rloo'"),
        ({"minibatches": 5}, "minibatches=5 with prompts=4: .* 1 to 4"),
        ({"warmup": 2}, "warmup=2 with updates=2"),
        ({"horizon": 4}, "horizon=4 with aggregation=token_mean: .* leave horizon out"),
        ({"task": "sort:shortest=9"}, "task 'sort' .*: shortest=9 is above longest=8"),
        ({"kl": "adaptive:min_coef=0.5"}, "kl 'adaptive' .*: coef=0.1: expected a start within"),
    ],
)
def test_settings_that_can_not_work_together_are_refused_first(
    make_spec: Callable[..., Any], chosen: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        check(make_spec(**chosen))


def test_one_completion_a_prompt_is_fine_for_a_critic(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    spec = make_spec(estimator="gae", group_size=1)
    check(spec)
    train(spec, recorder)
    assert len(recorder.updates) == 2


def test_a_component_error_is_not_swallowed(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("bad plugin")

    plant(monkeypatch, estimator=broken)
    with pytest.raises(ComponentError, match="raised ValueError: bad plugin"):
        train(make_spec(), recorder)
