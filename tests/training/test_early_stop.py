"""Ending an update early when the policy has moved too far from the one that sampled."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from rlbench.errors import ComponentError
from rlbench.training import trainer
from rlbench.training.distribution import chosen
from rlbench.training.objective import backward
from rlbench.training.parts import assemble
from rlbench.training.rollout import collect
from rlbench.training.sampling import log_probs_of
from rlbench.training.trainer import train
from rlbench.types import Advantage


def plant(monkeypatch: pytest.MonkeyPatch, controller: Any) -> None:
    """Put another KL controller in the place of a run's own."""
    monkeypatch.setattr(
        trainer, "assemble", lambda *given: replace(assemble(*given), controller=controller)
    )


class Watching:
    """Writes down what it is shown and stops when it has been asked so often."""

    coef = 0.0

    def __init__(self, statistic: str = "token", limit: int = 10**9) -> None:
        self.statistic, self.limit = statistic, limit
        self.seen: list[float] = []

    def update(self, kl: float, *, samples: int) -> None:
        """See nothing."""

    def stop(self, kl_old: float) -> bool:
        self.seen.append(kl_old)
        return len(self.seen) % self.limit == 0


def test_the_rest_of_the_update_is_left_out(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 epochs of 4 minibatches; the third step of each update is stopped: 6 of 8 are left out."""
    steps = []
    step = trainer._step
    monkeypatch.setattr(trainer, "_step", lambda *given: steps.append(1) or step(*given))
    plant(monkeypatch, Watching(limit=3))
    train(make_spec(minibatches=4, epochs=2, estimator="group"), recorder)
    assert [row["stopped"] for row in recorder.updates] == [0.75, 0.75]
    assert [row["skipped_steps"] for row in recorder.updates] == [0, 0]
    assert len(steps) == 4


def test_the_critic_stops_with_the_policy(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    step = trainer._step
    monkeypatch.setattr(trainer, "_step", lambda *given: steps.append(1) or step(*given))
    plant(monkeypatch, Watching(limit=3))
    train(make_spec(minibatches=4, epochs=2, estimator="gae", updates=1), recorder)
    assert len(steps) == 4  # two of each network


def test_the_kl_is_0_before_the_first_step_and_grows(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = Watching()
    plant(monkeypatch, watching)
    train(make_spec(task="sort", updates=1, minibatches=1, epochs=4, lr=5e-3), recorder)
    assert watching.seen[0] == pytest.approx(0.0, abs=1e-10)
    assert 0 < watching.seen[1] < watching.seen[3]
    assert recorder.updates[0]["kl_old"] == pytest.approx(sum(watching.seen) / 4)
    assert recorder.updates[0]["stopped"] == 0.0


def test_the_kl_of_a_sequence_is_that_of_its_tokens_added_up(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    for statistic in ("token", "sequence"):
        watching = Watching(statistic)
        plant(monkeypatch, watching)
        train(make_spec(task="sort", updates=1, minibatches=1, epochs=2, lr=5e-3), recorder)
        seen.append(watching.seen[1])
    assert seen[1] == pytest.approx(seen[0] * recorder.updates[0]["length"])


def test_the_estimate_is_k3_of_the_tokens_of_the_step(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    parts = assemble(make_spec(task="sort", precision="float64", microbatches=2), recorder)
    collected = collect(parts, 1, 0.0)
    rollout = collected.rollout
    rollout.reward[5] = float("nan")  # a row that could not be scored
    with torch.no_grad():
        for weight in parts.policy.parameters():
            weight.mul_(1.1)
    groups = torch.tensor([1, 3])
    silent = Advantage(torch.zeros_like(rollout.old_logp))
    report = backward(parts, collected, silent, groups, 0.0)
    logp = chosen(
        log_probs_of(
            parts.policy,
            collected.prompts,
            rollout.completion_ids,
            distribution=parts.distribution,
            group_size=4,
        ),
        rollout.completion_ids,
    )
    total = 0.0
    rows = [4, 6, 7, 12, 13, 14, 15]  # groups 1 and 3 without row 5
    for row in rows:
        for t in range(int(rollout.mask[row].sum())):
            gap = float(logp[row, t].detach() - rollout.old_logp[row, t])
            total += torch.tensor(gap, dtype=torch.float64).exp().item() - 1 - gap
    assert total > 1e-3
    assert report.sums["kl_old"] == pytest.approx(total, rel=1e-9)
    assert report.rows == 7
    assert report.tokens == int(rollout.mask[rows].sum())


def test_a_target_that_is_never_reached_changes_nothing(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    found = []
    for text in ("none", "target_stop:target=1000"):
        recorder.updates = []
        result = train(make_spec(kl=text, task="sort", base_seed=0), recorder)
        result.pop("phases")
        found.append((result, [dict(row) for row in recorder.updates]))
    assert all(row.pop("stopped") == 0.0 for row in found[1][1])
    assert found[0] == found[1]


def test_a_target_of_next_to_nothing_leaves_one_step(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    spec = make_spec(kl="target_stop:target=1e-8", task="sort", minibatches=2, epochs=2, lr=5e-3)
    train(spec, recorder)
    assert [row["stopped"] for row in recorder.updates] == [0.75, 0.75]
    assert all(abs(row["kl_old"]) < 1e-8 for row in recorder.updates)


def test_a_stop_needs_no_reference(make_spec: Callable[..., Any], recorder: Any) -> None:
    spec = make_spec(kl="target_stop")
    assert not spec.needs("ref_logp")
    train(spec, recorder)
    assert not any(name.startswith("kl_k") for name in recorder.updates[0])
    assert [row["coef"] for row in recorder.updates] == [0.0, 0.0]


def test_a_controller_that_can_not_stop_has_no_such_column(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    train(make_spec(kl="fixed"), recorder)
    assert "stopped" not in recorder.updates[0]
    assert recorder.updates[0]["kl_old"] >= 0


def test_an_answer_that_is_neither_yes_nor_no_is_the_controllers_fault(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Undecided(Watching):
        def stop(self, kl_old: float) -> Any:
            return None

    plant(monkeypatch, Undecided())
    with pytest.raises(ComponentError, match=r"kl 'none' .*stop returned NoneType, expected True"):
        train(make_spec(), recorder)


@pytest.mark.parametrize(
    ("text", "coefs"),
    [
        ("schedule:start=0.2,end=0.1,updates=2", [0.2, 0.15, 0.1]),
        ("pid:kp=0,kd=0,ki=1,coef=1", [1.0, 0.5, pytest.approx(0.0, abs=1e-3)]),
    ],
)
def test_the_new_controllers_steer_a_run(
    make_spec: Callable[..., Any], recorder: Any, text: str, coefs: list[float]
) -> None:
    """Of PID: the KL is 0 at first, and next to it then, so e = -0.5 each time."""
    train(make_spec(kl=text, updates=3, lr=1e-5), recorder)
    assert [row["coef"] for row in recorder.updates] == [
        pytest.approx(c) if isinstance(c, float) else c for c in coefs
    ]
