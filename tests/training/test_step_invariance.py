"""A step is the same however its rows are cut, ordered and padded.

Eight groups of four completions of unequal lengths: some have gaps, one is masked out and one could
not be scored. What is compared is the whole objective: estimator, policy loss, KL and entropy.
"""

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
import torch

from rlbench.aggregation import MODES
from rlbench.plugin.loading import load
from rlbench.training import border
from rlbench.training.objective import StepReport, backward, value_loss
from rlbench.training.parts import Parts, assemble
from rlbench.training.rollout import Collected, collect, token_rewards
from rlbench.types import Prompts, Rollout

PROMPTS, GROUP, ROWS = 8, 4, 32
REGISTRY = load()
ESTIMATORS = [c.name for c in REGISTRY.components("estimator")]
LOSSES = [c.name for c in REGISTRY.components("loss")]
# Options with which a step as small as this has something to select, or to clip and to leave.
OPTIONS = {
    "clip_cov": "clip_cov:fraction=0.1,cov_low=0.02,cov_high=50",
    "kl_cov": "kl_cov:fraction=0.05",
    "gspo": "gspo:eps=0.1,eps_high=0.1",
    "gspo_token": "gspo_token:eps=0.1,eps_high=0.1",
}
ALLOWED = {"float32": 1e-6, "float64": 1e-12}

Step = tuple[Parts, Collected]


def needs_the_whole_step(loss: str) -> bool:
    return "whole_step" in REGISTRY.find("loss", loss).needs


@pytest.fixture(scope="module")
def base_folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("base")


@pytest.fixture
def make_step(
    make_spec: Callable[..., Any], recorder: Any, base_folder: Any
) -> Callable[..., Step]:
    """A rollout with all that a mask can have, and a policy that moved since it was sampled."""
    recorder.base_folder = base_folder

    def make(**chosen: Any) -> Step:
        usual = {
            "prompts": PROMPTS,
            "task": "sort",
            "model": "lstm:embed=8,hidden=16",
            "kl": "fixed",
            "entropy_coef": 0.01,
        }
        parts = assemble(make_spec(**usual | chosen), recorder)
        collected = collect(parts, 1, coef=0.0)
        draw = torch.Generator().manual_seed(5)
        with torch.no_grad():
            for weight in parts.policy.parameters():
                noise = torch.randn(weight.shape, generator=draw, dtype=torch.float64)
                weight.add_(0.2 * noise.to(weight.dtype))
        return parts, replace(collected, rollout=with_gaps(collected.rollout, draw))

    return make


def with_gaps(rollout: Rollout, draw: torch.Generator) -> Rollout:
    mask = rollout.mask.clone()
    mask[1::5, 1] = False  # what a tool said, say
    assert bool(mask[1::5, 2].any())  # so that it lies between others
    mask[9] = False
    reward = torch.rand(ROWS, generator=draw, dtype=torch.float64).to(rollout.reward.dtype)
    reward[14] = math.nan
    return replace(
        rollout, mask=mask, reward=reward, token_reward=token_rewards(reward, mask, None, 0.0)
    )


def reordered(collected: Collected) -> Collected:
    """Other places for the groups, and other places for the rows within each."""
    groups = torch.tensor([5, 0, 7, 2, 6, 1, 3, 4])
    rows = (groups[:, None] * GROUP + torch.tensor([2, 0, 3, 1])).reshape(-1)

    def move(x: Any) -> Any:
        return None if x is None else x[rows]

    rollout = {
        field.name: move(getattr(collected.rollout, field.name)) for field in fields(Rollout)
    }
    return replace(
        collected,
        rollout=Rollout(**rollout),
        prompts=collected.prompts.rows(groups.tolist()),
        support=move(collected.support),
        ref_log_probs=move(collected.ref_log_probs),
    )


def widened(collected: Collected) -> Collected:
    """Thirteen more cells for completions, with anything in them, and five for prompts."""
    rollout, prompts = collected.rollout, collected.prompts

    def widen(x: Any, value: float) -> Any:
        """(B, T) or (B, T, V), from T to T + 13."""
        behind = [0, 0] * (x.ndim - 2) if x is not None else []
        return None if x is None else torch.nn.functional.pad(x, [*behind, 0, 13], value=value)

    def longer(x: torch.Tensor, value: float) -> torch.Tensor:
        return torch.nn.functional.pad(x, [0, 5], value=value)

    numbers = ("token_reward", "old_logp", "ref_logp", "values")
    wide = replace(
        rollout,
        prompt_ids=longer(rollout.prompt_ids, 1),
        prompt_mask=longer(rollout.prompt_mask, 0),
        completion_ids=widen(rollout.completion_ids, 1),
        mask=widen(rollout.mask, 0),
        **{name: widen(getattr(rollout, name), math.nan) for name in numbers},
    )
    return replace(
        collected,
        rollout=wide,
        prompts=Prompts(longer(prompts.ids, 1), longer(prompts.mask, 0), prompts.references),
        support=widen(collected.support, 1),
        ref_log_probs=widen(collected.ref_log_probs, math.nan),
    )


def both(collected: Collected) -> Collected:
    return widened(reordered(collected))


def gradient(network: Any) -> torch.Tensor:
    return torch.cat([weight.grad.reshape(-1) for weight in network.parameters()])


def take_step(
    parts: Parts, collected: Collected, microbatches: int
) -> tuple[StepReport, torch.Tensor]:
    """One step over all groups, advantages included: what it saw, and its gradient."""
    settings = replace(parts.spec.settings, microbatches=microbatches)
    parts = replace(parts, spec=replace(parts.spec, settings=settings))
    selection = parts.spec.selections["estimator"]
    advantage = border.estimate(selection, parts.estimator, collected.rollout)
    parts.policy.zero_grad()
    report = backward(parts, collected, advantage, torch.arange(PROMPTS), 0.2)
    return report, gradient(parts.policy)


def check_same(
    found: tuple[StepReport, torch.Tensor],
    expected: tuple[StepReport, torch.Tensor],
    allowed: float,
) -> None:
    """Loss and metrics, and gradients in units of the largest one."""
    size = float(expected[1].abs().max())
    assert size > 1e-3
    assert found[0].tokens == expected[0].tokens
    assert found[0].loss == pytest.approx(expected[0].loss, rel=allowed, abs=allowed)
    assert torch.allclose(found[1], expected[1], rtol=0, atol=allowed * size)
    assert found[0].sums == pytest.approx(expected[0].sums, rel=10 * allowed, abs=10 * allowed)


def check_step(parts: Parts, collected: Collected, allowed: float) -> StepReport:
    """Compare a step in one piece with the same step cut, reordered and padded."""
    whole = take_step(parts, collected, 1)
    for microbatches, changed in (
        (1, reordered(collected)),
        (1, widened(collected)),
        (2, collected),
        (3, collected),
        (8, collected),
        (3, both(collected)),
        (8, both(collected)),
    ):
        check_same(take_step(parts, changed, microbatches), whole, allowed)
    return whole[0]


@pytest.mark.parametrize("count_masked_rows", [False, True])
@pytest.mark.parametrize(
    "aggregation",
    [mode for mode in MODES if mode != "token_mean_local"],  # depends on the split by definition
)
def test_every_aggregation(
    make_step: Callable[..., Step], aggregation: str, *, count_masked_rows: bool
) -> None:
    parts, collected = make_step(aggregation=aggregation, count_masked_rows=count_masked_rows)
    check_step(parts, collected, ALLOWED["float32"])


@pytest.mark.parametrize("count_masked_rows", [False, True])
def test_a_local_mean_knows_of_the_split_and_of_nothing_else(
    make_step: Callable[..., Step], *, count_masked_rows: bool
) -> None:
    parts, collected = make_step(
        aggregation="token_mean_local", count_masked_rows=count_masked_rows, precision="float64"
    )
    whole = take_step(parts, collected, 1)
    check_same(take_step(parts, both(collected), 1), whole, ALLOWED["float64"])
    split = take_step(parts, collected, 3)
    check_same(take_step(parts, widened(collected), 3), split, ALLOWED["float64"])
    assert split[0].loss != pytest.approx(whole[0].loss, rel=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss(make_step: Callable[..., Step], loss: str) -> None:
    parts, collected = make_step(loss=OPTIONS.get(loss, loss))
    report = check_step(parts, collected, ALLOWED["float32"])
    if "selected_fraction" in report.sums:  # there is something to tell apart
        assert 0 < report.sums["selected_fraction"] < report.tokens / 4


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if needs_the_whole_step(loss)])
def test_what_is_selected_is_the_same_to_the_last_digits(
    make_step: Callable[..., Step], loss: str
) -> None:
    parts, collected = make_step(loss=OPTIONS.get(loss, loss), precision="float64")
    check_step(parts, collected, ALLOWED["float64"])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator(make_step: Callable[..., Step], estimator: str) -> None:
    parts, collected = make_step(estimator=estimator)
    check_same(
        take_step(parts, both(collected), 3), take_step(parts, collected, 1), ALLOWED["float32"]
    )


@pytest.mark.parametrize(
    "chosen", [{"kl": "fixed:estimator=full"}, {"top_p": 0.8}, {"top_k": 3, "kl": "none"}], ids=str
)
def test_what_needs_the_whole_vocabulary(
    make_step: Callable[..., Step], chosen: dict[str, Any]
) -> None:
    parts, collected = make_step(**chosen, precision="float64")
    check_step(parts, collected, ALLOWED["float64"])


@pytest.mark.parametrize(("precision", "allowed"), ALLOWED.items())
def test_the_critic(make_step: Callable[..., Step], precision: str, allowed: float) -> None:
    """Its loss is taken in one pass, so there is no split."""
    parts, collected = make_step(estimator="gae", precision=precision)
    found = []
    for changed in (collected, reordered(collected), widened(collected), both(collected)):
        selection = parts.spec.selections["estimator"]
        returns = border.estimate(selection, parts.estimator, changed.rollout).returns
        assert returns is not None
        parts.critic.zero_grad()
        loss, tokens = value_loss(parts, changed, returns, torch.arange(PROMPTS))
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        found.append((float(loss.detach()), gradient(parts.critic), tokens))
    for loss, slope, tokens in found[1:]:
        assert tokens == found[0][2]
        assert loss == pytest.approx(found[0][0], rel=allowed)
        size = float(found[0][1].abs().max())
        assert torch.allclose(slope, found[0][1], rtol=0, atol=allowed * size)
