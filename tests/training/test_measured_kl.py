"""The KL that is logged, steered by and penalised: one number, of the right direction."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from rlbench.training import trainer
from rlbench.training.evaluation import evaluate
from rlbench.training.objective import backward
from rlbench.training.parts import Parts, assemble
from rlbench.training.rollout import Collected, collect
from rlbench.training.trainer import rollout_metrics, sequence_kl, train
from rlbench.types import Advantage

NAN = float("nan")


def moved(parts: Parts, factor: float = 1.2) -> None:
    with torch.no_grad():
        for weight in parts.policy.parameters():
            weight.mul_(factor)


def silent(collected: Collected) -> Advantage:
    return Advantage(torch.zeros_like(collected.rollout.old_logp))


@pytest.mark.parametrize(
    ("text", "column", "value"),
    [
        ("fixed", "kl_k3_ratio", lambda d: torch.expm1(-d) + d),
        ("fixed:estimator=k3", "kl_k3", lambda d: torch.expm1(-d) + d),
        ("fixed:estimator=low_var_kl", "kl_k3", lambda d: torch.expm1(-d) + d),
        ("fixed:estimator=k2", "kl_k2", lambda d: d * d / 2),
        ("fixed:estimator=k3_plus", "kl_k3_plus", lambda d: torch.expm1(-d) + d),
        ("adaptive:estimator=k1_plus", "kl_k1_plus", lambda d: d),
        ("fixed:place=reward", "kl_k1", lambda d: d),
        ("fixed:place=reward,estimator=kl", "kl_k1", lambda d: d),
        ("fixed:place=reward,estimator=abs", "kl_abs", lambda d: d.abs()),
    ],
)
def test_the_column_names_the_estimate_that_is_in_the_objective(
    make_spec: Callable[..., Any],
    recorder: Any,
    text: str,
    column: str,
    value: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    """With d = log policy - log base on the tokens that the policy wrote, not the other way."""
    parts = assemble(make_spec(kl=text, task="sort", precision="float64"), recorder)
    moved(parts)
    collected = collect(parts, 1, 0.1)
    row = rollout_metrics(collected, parts, silent(collected))
    assert [name for name in row if name.startswith("kl")] == [column]
    rollout = collected.rollout
    assert rollout.ref_logp is not None
    d = rollout.old_logp - rollout.ref_logp
    totals = [float(value(d[i][rollout.mask[i]]).sum()) for i in range(16)]
    assert row[column] == pytest.approx(sum(totals) / 16)
    assert abs(sum(totals)) > 1e-3


def test_what_the_reward_is_charged_is_what_is_logged(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    parts = assemble(make_spec(kl="fixed:place=reward", task="sort"), recorder)
    moved(parts)
    collected = collect(parts, 1, 0.25)
    rollout = collected.rollout
    charged = float((rollout.reward - rollout.token_reward.sum(1)).mean())
    row = rollout_metrics(collected, parts, silent(collected))
    assert row["kl_k1"] is not None
    assert charged == pytest.approx(0.25 * row["kl_k1"], rel=1e-4)


def test_a_negative_k1_is_a_bonus_and_no_error(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    parts = assemble(make_spec(kl="fixed:place=reward", task="sort"), recorder)
    moved(parts)
    collected = collect(parts, 1, 0.25)
    kl, rollout = collected.kl, collected.rollout
    assert kl is not None
    last = rollout.mask.sum(1)[:, None] - 1 == torch.arange(rollout.mask.shape[1])
    below = (kl < 0) & rollout.mask & ~last
    assert below.any()
    assert (rollout.token_reward[below] > 0).all()
    train(make_spec(kl="proportional:place=reward", task="sort", lr=3e-3, updates=3), recorder)
    assert len(recorder.updates) == 3


@pytest.mark.parametrize("width", [60])
def test_padding_changes_no_measured_kl(
    make_spec: Callable[..., Any], recorder: Any, width: int
) -> None:
    parts = assemble(make_spec(kl="fixed", task="sort"), recorder)
    moved(parts)
    collected = collect(parts, 1, 0.1)
    rollout = collected.rollout
    assert collected.kl is not None

    def wide(x: torch.Tensor, fill: float) -> torch.Tensor:
        more = torch.full((len(x), width - x.shape[1]), fill, dtype=x.dtype)
        return torch.cat([x, more], 1)

    padded = replace(
        collected,
        kl=wide(collected.kl, NAN),
        rollout=replace(
            rollout,
            mask=wide(rollout.mask, 0),
            completion_ids=wide(rollout.completion_ids, 0),
            token_reward=wide(rollout.token_reward, NAN),
            old_logp=wide(rollout.old_logp, NAN),
            ref_logp=None,
        ),
    )
    assert sequence_kl(padded) == pytest.approx(sequence_kl(collected), rel=1e-6)
    assert sequence_kl(collected) > 1e-3


class Watching:
    """A controller that writes down what it is shown."""

    coef = 0.5

    def __init__(self, statistic: str) -> None:
        self.statistic = statistic
        self.seen: list[tuple[float, int]] = []

    def update(self, kl: float, *, samples: int) -> None:
        self.seen.append((kl, samples))


def test_a_controller_sees_a_token_mean_or_a_mean_of_sums_once_a_rollout(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the epochs, minibatches and microbatches; completions differ in length."""
    found = {}
    for statistic in ("token", "sequence"):
        watching = Watching(statistic)
        monkeypatch.setattr(
            trainer,
            "assemble",
            lambda *given, w=watching: replace(assemble(*given), controller=w),
        )
        recorder.updates = []
        spec = make_spec(
            kl="fixed", task="sort", updates=3, epochs=3, minibatches=4, microbatches=2, lr=5e-3
        )
        train(spec, recorder)
        found[statistic] = watching.seen
    assert len(found["token"]) == len(found["sequence"]) == 3
    tokens = [row["length"] for row in recorder.updates]  # a completion
    assert tokens[0] != int(tokens[0])
    for (mean, n), (total, m), length in zip(
        found["token"], found["sequence"], tokens, strict=True
    ):
        assert (n, m) == (16, 16)
        assert total == pytest.approx(mean * length, rel=1e-5, abs=1e-9)
    assert found["token"][2][0] > 0


@pytest.mark.parametrize("kind", ["k2", "k3", "k3_ratio", "k1_plus", "k3_plus", "full"])
def test_a_larger_coefficient_leaves_a_smaller_kl_after_one_step(
    make_spec: Callable[..., Any], recorder: Any, kind: str
) -> None:
    left = []
    for coef in (0.0, 0.3, 3.0):
        parts = assemble(make_spec(kl=f"fixed:estimator={kind}", task="sort"), recorder)
        moved(parts)
        collected = collect(parts, 1, coef)
        backward(parts, collected, silent(collected), torch.arange(4), coef)
        with torch.no_grad():
            for weight in parts.policy.parameters():
                weight.sub_(0.1 * weight.grad)
        left.append(evaluate(parts, 1).row["kl"])
    assert left[0] > left[1] > left[2] > 0


@pytest.mark.parametrize("place", ["loss", "reward"])
def test_a_larger_coefficient_keeps_a_run_closer_to_its_base_policy(
    make_spec: Callable[..., Any], recorder: Any, place: str
) -> None:
    """On a task that pulls away from it; a penalty of the wrong sign would push further."""
    left = [
        train(
            make_spec(
                kl=f"fixed:place={place},coef={coef}",
                estimator="rloo",
                task="sort",
                updates=6,
                prompts=16,
                minibatches=4,
                lr=3e-3,
            ),
            recorder,
        )["kl"]
        for coef in (0, 3)
    ]
    assert left[0] > 2 * left[1]
