"""Rewards of ten thousand and ratios of e^100 through one optimiser step of rlbench's trainer.

A sampler reports other log-probabilities than it drew from, a reward says what it is told, and all
between is what a run does.
"""

import math
from dataclasses import replace

import pytest
import torch

from rlbench.errors import Diverged
from rlbench.plugin.loading import load
from rlbench.plugin.selection import parse
from rlbench.testing import make_rollout
from rlbench.training import rollout, trainer
from rlbench.training.settings import Settings
from rlbench.training.spec import DEFAULT_SELECTIONS, RunSpec

REGISTRY = load()
OWN = {
    kind: [c.name for c in REGISTRY.components(kind) if c.owner.distribution == "rlbench-research"]
    for kind in ("estimator", "loss")
}
# Estimators beside a loss without a bound, losses beside an estimator that divides by nothing.
PAIRS = [(estimator, loss) for estimator in OWN["estimator"] for loss in ("importance", "clip")]
PAIRS += [(estimator, loss) for estimator in ("dr_grpo", "group") for loss in OWN["loss"]]
# Of rows in turn, in groups of four: both signs, an unscorable row, and a group of equals.
MIXED = [1e4, -1e4, 0.0, 9e3, -1e4, math.nan, 1e4, -1e4, 5.0, 5.0, 5.0, 5.0, 1e4, 1e4, 1e4, -1e4]
# Of tokens in turn: far off, and just within where ratios are limited.
LOG_RATIOS = torch.tensor([100.0, -100.0, 19.5, 0.0])
SETTINGS = {"prompts": 4, "group_size": 4, "minibatches": 1, "epochs": 1, "base_score": 0.0}


class Recorder:
    """Keeps the metrics of updates."""

    def __init__(self, base_folder):
        self.base_folder, self.rows = base_folder, []

    def update(self, row):
        self.rows.append(row)

    def ignore(self, *told):
        """Whatever else a run tells."""

    timing = evaluation = samples = progress = log = ignore


class Given:
    """A reward that says what it is told, row after row."""

    def __init__(self, said):
        self.said = said

    def score(self, prompts, completions):
        return torch.tensor([self.said[row % len(self.said)] for row in range(len(prompts))])


@pytest.fixture(scope="module")
def base_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("base")


@pytest.fixture
def make_run(base_folder, monkeypatch):
    sample = rollout.sample

    def reported(*given, **named):
        sampled = sample(*given, **named)
        rows, width = sampled.logp.shape
        turn = torch.arange(rows)[:, None] + torch.arange(width)
        shift = LOG_RATIOS[turn % 4]
        shift[::4] = 0.0  # on-policy, where every loss has a gradient
        return replace(sampled, logp=sampled.logp - shift)

    def make(estimator, loss, rewards):
        monkeypatch.setattr(rollout, "sample", reported)
        chosen = {"estimator": estimator, "loss": loss, "task": "sort"}
        texts = DEFAULT_SELECTIONS | chosen | {"model": "lstm:embed=8,hidden=16"}
        spec = RunSpec(
            selections={kind: parse(REGISTRY, kind, text) for kind, text in texts.items()},
            settings=Settings.from_values(SETTINGS),
            seed=0,
        )
        run = trainer.Run(spec, Recorder(base_folder), ())
        run.parts = replace(run.parts, reward=Given(rewards))
        return run

    return make


def take_step(run):
    """Not the first of a run, whose ratios must be 1."""
    run.update(2)
    (row,) = run.recorder.rows
    assert [name for name, x in row.items() if x is not None and not math.isfinite(x)] == []
    weights = list(run.parts.policy.parameters())
    states = [x for state in run.optimiser.state.values() for x in state.values()]
    assert all(x.isfinite().all() for x in [*weights, *(w.grad for w in weights), *states])
    return row


def test_there_is_something_to_try():
    assert {"gpg", "pkpo"} <= set(OWN["estimator"])
    assert {"simple_po", "topr"} <= set(OWN["loss"])


@pytest.mark.parametrize(("estimator", "loss"), PAIRS)
def test_a_step_stays_finite(make_run, estimator, loss):
    row = take_step(make_run(estimator, loss, MIXED))
    assert row["grad_norm"] > 1e-3
    assert row["ratio_clamped"] > 0.2


@pytest.mark.parametrize(("estimator", "loss"), PAIRS)
@pytest.mark.parametrize("reward", [1e4, -1e4])
def test_a_step_without_a_signal_stays_finite(make_run, estimator, loss, reward):
    row = take_step(make_run(estimator, loss, [reward]))
    if loss in ("importance", "clip") and REGISTRY.find("estimator", estimator).group_relative:
        assert row["grad_norm"] == 0


@pytest.mark.parametrize("loss", OWN["loss"])
@pytest.mark.parametrize("broken", [math.nan, -math.inf])
def test_a_log_prob_that_is_no_number_ends_the_run(make_run, monkeypatch, loss, broken):
    run = make_run("group", loss, MIXED)
    collect = trainer.collect

    def collect_and_spoil(*given):
        collected = collect(*given)
        with torch.no_grad():
            run.parts.policy.head.bias[collected.rollout.completion_ids[0, 0]] = broken
        return collected

    monkeypatch.setattr(trainer, "collect", collect_and_spoil)
    with pytest.raises(Diverged, match="log-probability is not finite"):
        run.update(2)


RELATIVE = [e for e in OWN["estimator"] if REGISTRY.find("estimator", e).group_relative]
OPTIONS = {"passk_best": [{"std": False}, {"ddof": 0, "eps": 0.0}], "pkpo": [{"k": 4}]}
OPTIONS |= {"passk_analytic": [{"k": 1}, {"k": 4}]}
EQUAL = [(name, options) for name in RELATIVE for options in [{}, *OPTIONS.get(name, [])]]


@pytest.mark.parametrize(("name", "options"), EQUAL, ids=str)
@pytest.mark.parametrize("value", [0.1, 4.2, 1e-30, 1e4, -3.3, 1e30])
def test_equal_rewards_in_groups_of_any_size_are_exactly_0(name, options, value):
    flat = [size for size in range(2, 65) for _ in range(size)]
    order = torch.randperm(len(flat) + 15, generator=torch.Generator().manual_seed(0))
    group = torch.tensor(flat + [-7] * 15)[order]
    reward = torch.where(group == -7, (order - len(flat)) / 10, value)  # 0 to 1.4, a signal
    mask = torch.arange(3) < 1 + torch.arange(len(group))[:, None] % 3
    estimate = REGISTRY.find("estimator", name).load()
    advantages = estimate(make_rollout(reward=reward, group=group, mask=mask), **options).advantages
    assert advantages.dtype == torch.float32
    assert not advantages[group != -7].any()
    assert advantages[group == -7].any()
