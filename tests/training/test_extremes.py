"""Rewards of ten thousand and ratios of e^100 through one optimiser step of the trainer itself.

What is extreme comes in at the two ends: a sampler that reports other log-probabilities than it
drew from, and a reward that says what it is told. All between is what a run does.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import torch

from rlbench import masked
from rlbench.errors import Diverged
from rlbench.plugin.loading import load
from rlbench.testing import make_rollout
from rlbench.training import rollout as rollout_module
from rlbench.training import trainer
from rlbench.types import Rollout

NAN = math.nan
REGISTRY = load()
# Plugins that happen to be installed have tests of their own.
OWN = [
    c
    for kind in ("estimator", "loss")
    for c in REGISTRY.components(kind)
    if c.owner.distribution == "rlbench"
]
ESTIMATORS = [c.name for c in OWN if c.kind == "estimator"]
LOSSES = [c.name for c in OWN if c.kind == "loss"]
# Every estimator beside a loss without a bound, every loss beside an estimator that divides by
# nothing: the numbers are as large as they come. Then both beside what is usual.
LARGEST = sorted({(e, "importance") for e in ESTIMATORS} | {("dr_grpo", loss) for loss in LOSSES})
USUAL = sorted({(e, "clip") for e in ESTIMATORS} | {("group", loss) for loss in LOSSES})
# Of rows in turn, in groups of four: both signs, an unscorable row, and a group of equals.
MIXED = (1e4, -1e4, 0.0, 9e3, -1e4, NAN, 1e4, -1e4, 5.0, 5.0, 5.0, 5.0, 1e4, 1e4, 1e4, -1e4)
# Of tokens in turn: far off in each direction, and just within where ratios are limited, which is
# where their gradient is the largest.
FAR = (100.0, -100.0, 19.5, 0.0)

Run = Any


def needs_values(estimator: str) -> bool:
    return "values" in REGISTRY.find("estimator", estimator).needs


class Given:
    """A reward that says what it is told, row after row."""

    def __init__(self, said: Sequence[float]) -> None:
        self.said = said

    def score(self, prompts: Any, completions: Any) -> torch.Tensor:
        rows = [self.said[row % len(self.said)] for row in range(len(prompts))]
        return torch.tensor(rows, dtype=torch.float64)


def shifts(mask: torch.Tensor, log_ratios: Sequence[float]) -> torch.Tensor:
    """Log-ratios of tokens in turn; every fourth row is left on-policy: (B, T)."""
    rows, width = mask.shape
    turn = torch.arange(rows)[:, None] + torch.arange(width)
    found = torch.tensor(log_ratios)[turn % len(log_ratios)]
    found[::4] = 0.0
    return found


@pytest.fixture(scope="module")
def base_folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("base")


@pytest.fixture
def make_run(
    make_spec: Callable[..., Any],
    recorder: Any,
    base_folder: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Run]:
    """A run whose sampler reports log-ratios, and whose rewards are given."""
    recorder.base_folder = base_folder
    sample = rollout_module.sample

    def make(
        *,
        rewards: Sequence[float],
        log_ratios: Sequence[float] = FAR,
        padding: float = 0.0,
        **chosen: Any,
    ) -> Run:
        def reported(*given: Any, **named: Any) -> Any:
            sampled = sample(*given, **named)
            if named["generator"] is None:
                return sampled
            mask = sampled.completions.mask
            logp = (sampled.logp - shifts(mask, log_ratios)).to(sampled.logp.dtype)
            return replace(sampled, logp=masked.select(logp, mask, padding))

        monkeypatch.setattr(rollout_module, "sample", reported)
        settings = {
            "minibatches": 1,
            "epochs": 1,
            "task": "sort",
            "model": "lstm:embed=8,hidden=16",
        }
        run = trainer.Run(make_spec(**settings | chosen), recorder, ())
        run.parts = replace(run.parts, reward=Given(rewards))
        return run

    return make


def tensors(run: Run) -> Iterator[tuple[str, torch.Tensor]]:
    """Gradients, weights and optimiser states of all networks of a run."""
    networks = {"policy": run.parts.policy, "critic": run.parts.critic}
    for network, module in networks.items():
        for name, weight in module.named_parameters() if module is not None else ():
            yield f"{network} {name}", weight
            yield f"{network} {name}.grad", weight.grad
    for optimiser in (run.optimiser, run.critic_optimiser):
        for state in optimiser.state.values() if optimiser is not None else ():
            yield from state.items()


def take_step(run: Run) -> dict[str, Any]:
    """One rollout and its one optimiser step, not the first of a run; nothing may be infinite."""
    run.update(2)
    row: dict[str, Any] = run.recorder.updates[-1]
    assert [name for name, x in row.items() if x is not None and not math.isfinite(x)] == []
    assert [name for name, x in tensors(run) if not bool(x.isfinite().all())] == []
    return row


def after_collecting(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], None]) -> None:
    """Change something between the rollout and the optimiser step."""
    collect = trainer.collect

    def collect_and_change(*given: Any) -> Any:
        collected = collect(*given)
        with torch.no_grad():
            change(collected)
        return collected

    monkeypatch.setattr(trainer, "collect", collect_and_change)


@pytest.mark.parametrize(("estimator", "loss"), sorted({*LARGEST, *USUAL}))
def test_a_step_stays_finite(make_run: Callable[..., Run], estimator: str, loss: str) -> None:
    row = take_step(make_run(estimator=estimator, loss=loss, rewards=MIXED))
    # every fourth row is on-policy, where every loss has a gradient
    assert row["grad_norm"] > 1e-3
    assert row["ratio_clamped"] > 0.2


@pytest.mark.parametrize(("estimator", "loss"), LARGEST)
@pytest.mark.parametrize("reward", [1e4, -1e4])
def test_a_step_without_a_signal_stays_finite(
    make_run: Callable[..., Run], estimator: str, loss: str, reward: float
) -> None:
    run = make_run(estimator=estimator, loss=loss, rewards=(reward,))
    before = [weight.clone() for weight in run.parts.policy.parameters()]
    take_step(run)
    component = REGISTRY.find("estimator", estimator)
    silent = component.group_relative and not component.needs and not component.exceptions
    if silent and loss == "importance":
        after = run.parts.policy.parameters()
        assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_policy_that_fell_by_a_hundred_nats_stays_finite(
    make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, loss: str
) -> None:
    """Its own log-probs are at -100 here, with the gradient that softmax has there."""
    run = make_run(estimator="dr_grpo", loss=loss, rewards=MIXED, log_ratios=(0.0,))

    def fall(collected: Any) -> None:
        token = collected.rollout.completion_ids[collected.rollout.mask].mode().values
        run.parts.policy.head.bias[token] -= 100.0

    after_collecting(monkeypatch, fall)
    assert take_step(run)["ratio_clamped"] > 0.05


PENALTIES = [(kind, "loss") for kind in ("k2", "k3", "k3_ratio", "k1_plus", "k3_plus", "full")]
PENALTIES += [(kind, "reward") for kind in ("k1", "k2", "k3", "abs", "full")]


@pytest.mark.parametrize(("kind", "place"), PENALTIES)
def test_a_penalty_stays_finite_a_hundred_nats_from_the_reference(
    make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, kind: str, place: str
) -> None:
    """Even tokens are 100 nats above the reference, odd ones fall 100 nats below it."""
    run = make_run(kl=f"fixed:estimator={kind},place={place}", rewards=MIXED)
    with torch.no_grad():
        run.parts.base.head.bias[::2] -= 100.0

    def fall(_: Any) -> None:
        run.parts.policy.head.bias[1::2] -= 100.0

    after_collecting(monkeypatch, fall)
    row = take_step(run)
    assert abs(row[f"kl_{kind}"]) > 10
    assert row["grad_norm"] > 1e-3


@pytest.mark.parametrize("estimator", [e for e in ESTIMATORS if needs_values(e)])
def test_a_critic_learns_from_large_rewards(make_run: Callable[..., Run], estimator: str) -> None:
    run = make_run(estimator=estimator, rewards=(1e4, -1e4))
    # the critic says 0 and the returns are up to 1e4 in size: half of the mean square is 5e7 less
    # what lambda takes from early tokens
    assert take_step(run)["value_loss"] == pytest.approx(5e7, rel=0.5)
    assert all(bool(weight.grad.any()) for weight in run.parts.critic.head.parameters())


HUGE = {
    "rewards": {"rewards": (1e30, -1e30, 0.0, 9e29)},
    "ratios": {"rewards": MIXED, "log_ratios": (1e6, -1e6, 0.0)},
    "ratios that fell": {"rewards": MIXED, "log_ratios": (-1e30,)},
}


@pytest.mark.parametrize("chosen", HUGE.values(), ids=HUGE)
@pytest.mark.parametrize(("estimator", "loss"), LARGEST)
def test_what_float32_cannot_square_gives_numbers_or_ends_the_run(
    make_run: Callable[..., Run], estimator: str, loss: str, chosen: dict[str, Any]
) -> None:
    run = make_run(estimator=estimator, loss=loss, **chosen)
    with suppress(Diverged):
        take_step(run)


def test_a_gradient_that_float32_cannot_square_is_clipped(make_run: Callable[..., Run]) -> None:
    run = make_run(estimator="dr_grpo", loss="pg", rewards=(1e30, -1e30), log_ratios=(0.0,))
    assert 1e28 < take_step(run)["grad_norm"] < 1e32
    left = [weight.grad for weight in run.parts.policy.parameters()]
    assert torch.nn.utils.get_total_norm(left).item() == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("broken", [math.nan, -math.inf])
def test_a_log_prob_that_is_no_number_ends_the_run(
    make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, loss: str, broken: float
) -> None:
    """Of one token, after sampling: the limit on ratios would make a number of -inf."""
    run = make_run(loss=loss, rewards=MIXED, log_ratios=(0.0,))

    def spoil(collected: Any) -> None:
        run.parts.policy.head.bias[collected.rollout.completion_ids[0, 0]] = broken

    after_collecting(monkeypatch, spoil)
    before = [weight.clone() for weight in run.parts.policy.lstm.parameters()]
    with pytest.raises(
        Diverged, match=r"log-probability is not finite on \d+ of \d+ trained tokens"
    ):
        run.update(2)
    after = run.parts.policy.lstm.parameters()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize(
    "chosen",
    [{"estimator": "gae"}, {"kl": "fixed:place=reward"}, {"kl": "fixed", "loss": "gspo"}],
    ids=str,
)
def test_what_lies_under_padding_does_not_matter(
    make_run: Callable[..., Run], chosen: dict[str, Any]
) -> None:
    found = []
    for padding in (0.0, NAN, math.inf):
        run = make_run(rewards=MIXED, padding=padding, **chosen)
        row = take_step(run)
        found.append((row, [x.clone() for _, x in tensors(run)]))
    for row, after in found[1:]:
        assert row == found[0][0]
        assert all(torch.equal(a, b) for a, b in zip(after, found[0][1], strict=True))


VALUES = (0.1, 4.2, 1e-30, 1e4, -3.3, 1e30, 0.0)
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "group": [
        {"std": False},
        {"ddof": 0, "eps": 0.0},
        {"leave_one_out": True},
        {"leave_one_out": True, "ddof": 0, "eps": 0.0},
        {"kl": "after"},
        {"kl": "per_token"},
    ],
    "dr_grpo": [{"kl": "after"}, {"singleton": "raw"}],
    "rloo": [{"kl": "per_token"}, {"singleton": "raw"}],
    "group_mean_batch_std": [{"spread_of": "centred", "ddof": 0, "eps": 0.0}],
    "reinforce_pp_baseline": [{"whiten": False}],
    "group_gae": [{"ddof": 0, "eps": 0.0}, {"lam": 1.0, "truncation": "bootstrap"}],
}
# What a component declares to give for equal rewards is its own.
EQUAL = [
    (c.name, options)
    for c in OWN
    if c.group_relative
    for options in [*([] if "equal_rewards" in c.exceptions else [{}]), *OPTIONS.get(c.name, [])]
]


def equal_groups(value: float, *, ragged: bool, values: bool) -> Rollout:
    """Groups of 2 to 64 equal rewards, their rows among those of a group that has a signal."""
    group = [size for size in range(2, 65) for _ in range(size)]
    reward = [value] * len(group) + [x / 4 for x in range(15)]
    group += [-7] * 15
    order = torch.randperm(len(group), generator=torch.Generator().manual_seed(0))
    rows = len(group)
    length = 1 + torch.arange(rows) % 3 if ragged else torch.full((rows,), 3)
    return make_rollout(
        reward=torch.tensor(reward)[order],
        group=torch.tensor(group)[order],
        mask=torch.arange(3) < length[:, None],
        values=torch.full((rows, 3), 0.3) if values else None,
        last_value=torch.full((rows,), 0.3) if values else None,
    )


@pytest.mark.parametrize(("name", "options"), EQUAL, ids=str)
def test_equal_rewards_in_groups_of_any_size_are_exactly_0(
    name: str, options: dict[str, Any]
) -> None:
    component = REGISTRY.find("estimator", name)
    critic = needs_values(name)
    for value in VALUES:
        # a critic's advantage at a place depends on how far away the end is
        rollout = equal_groups(value, ragged=not critic, values=critic)
        advantages = component.load()(rollout, **options).advantages
        flat = rollout.group != -7
        assert advantages.dtype == torch.float32
        assert not bool(advantages[flat].any()), (value, advantages[flat].abs().max())
        assert bool(advantages[~flat].any())
