"""A task or a reward is a stranger, too: what it returns is checked, what it gets is a copy."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from rlbench.builtin.models import LSTMNetwork
from rlbench.builtin.rewards import TrueReward
from rlbench.builtin.tasks import Addition
from rlbench.errors import ComponentError, Diverged
from rlbench.training.guarded import GuardedTask
from rlbench.training.seeding import stream
from rlbench.training.trainer import train
from rlbench.types import Prompts


def spoil(scorer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = scorer.score

    def score(self: Any, prompts: Any, completions: Any) -> Any:
        found = honest(self, prompts, completions)
        prompts.ids[:] = 5
        prompts.mask[:, 1:] = False
        completions.ids[:] = 5
        completions.mask[:, 1:] = False
        completions.truncated[:] = True
        return found

    monkeypatch.setattr(scorer, "score", score)


@pytest.mark.parametrize("scorer", [Addition, TrueReward])
def test_a_scorer_that_writes_into_its_arguments_changes_no_number(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch, scorer: Any
) -> None:
    results = []
    for spoilt in (False, True):
        recorder.updates, recorder.evaluations, recorder.shown = [], [], []
        if spoilt:
            spoil(scorer, monkeypatch)
        train(make_spec(), recorder)
        results.append((recorder.updates, recorder.evaluations, recorder.shown))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("method", "fault", "message"),
    [
        ("prompts", lambda *_, **__: 1 / 0, "raised ZeroDivisionError"),
        ("prompts", lambda *_, **__: None, "prompts did not return Prompts"),
        ("demonstrations", lambda *_, **__: None, "demonstrations returned NoneType"),
        ("demonstrations", lambda *_, **__: (None, None), "did not return Completions of 3 rows"),
        (
            "prompts",
            lambda *_, **__: Prompts(torch.zeros(2, 1), torch.ones(2, 1), ((), ())),
            "3 prompts were asked for, 2 came",
        ),
    ],
)
def test_a_faulty_task_is_named(
    make_spec: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    fault: Any,
    message: str,
) -> None:
    monkeypatch.setattr(Addition, method, fault)
    task = GuardedTask(make_spec().selections["task"])
    given = (3, stream("test", 1), "train")[: 3 if method == "prompts" else 2]
    with pytest.raises(ComponentError, match=rf"task 'addition' \(rlbench .*{message}"):
        getattr(task, method)(*given)


@pytest.mark.parametrize(
    ("name", "value"),
    [("vocabulary", None), ("completion_limit", 0), ("floor", float("nan")), ("floor", "low")],
)
def test_a_task_must_have_what_a_task_has(
    make_spec: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, name: str, value: Any
) -> None:
    build = Addition.__init__

    def faulty(self: Any, **options: Any) -> None:
        build(self, **options)
        setattr(self, name, value)

    monkeypatch.setattr(Addition, "__init__", faulty)
    with pytest.raises(ComponentError, match=f"task 'addition' .*{name}"):
        GuardedTask(make_spec().selections["task"])


def test_a_policy_without_a_gradient_is_the_models_fault(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = LSTMNetwork.run
    monkeypatch.setattr(LSTMNetwork, "run", lambda self, *given: honest(self, *given).detach())
    with pytest.raises(ComponentError, match=r"model 'lstm' .* carries no gradient"):
        train(make_spec(), recorder)


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (lambda values: values.expand(*values.shape[:2], 3), ComponentError, "expected .* one val"),
        (lambda values: values * float("nan"), Diverged, "a value of its critic is not finite"),
    ],
)
def test_a_faulty_critic_is_the_models_fault(
    make_spec: Callable[..., Any],
    recorder: Any,
    monkeypatch: pytest.MonkeyPatch,
    *,
    fault: Any,
    error: type[Exception],
    message: str,
) -> None:
    honest = LSTMNetwork.run

    def run(self: Any, *given: Any) -> Any:
        said = honest(self, *given)
        return fault(said) if said.shape[-1] == 1 else said

    monkeypatch.setattr(LSTMNetwork, "run", run)
    with pytest.raises(error, match=rf"model 'lstm' .*{message}"):
        train(make_spec(estimator="gae"), recorder)


@pytest.mark.parametrize("value", [1e39, -4e38])
def test_a_reward_that_is_too_large_for_the_precision_is_the_rewards_fault(
    make_spec: Callable[..., Any],
    recorder: Any,
    monkeypatch: pytest.MonkeyPatch,
    *,
    value: float,
) -> None:
    def score(self: Any, prompts: Any, completions: Any) -> torch.Tensor:
        return torch.full((len(prompts),), value, dtype=torch.float64)

    monkeypatch.setattr(TrueReward, "score", score)
    with pytest.raises(
        ComponentError, match=r"^reward 'true' \(rlbench .*returned .*too large for"
    ):
        train(make_spec(), recorder)
    train(make_spec(precision="float64", updates=1), recorder)


def test_every_column_of_the_trainer_is_reserved(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    """A loss could hide a number of the trainer's under its own otherwise."""
    from rlbench.training.border import RESERVED

    own = {"entropy", "ratio_clamped"}  # refused as well, where they are computed
    for chosen in ({"estimator": "gae", "loss": "pg", "kl": "fixed"}, {"loss": "pg"}):
        recorder.updates = []
        train(make_spec(**chosen), recorder)
        columns = {name for name in recorder.updates[0] if not name.startswith("kl_")}
        assert columns <= RESERVED | own
