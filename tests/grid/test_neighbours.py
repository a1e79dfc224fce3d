"""No number of a run depends on who ran beside, before or instead of whom."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from rlbench.builtin.engines import Local
from rlbench.grid.attempt import Planned
from rlbench.grid.identity import run_id
from rlbench.grid.store import Store
from rlbench.grid.supervisor import PRELOAD, supervise
from rlbench.grid.watcher import Silent

from .conftest import make_specs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Bytes = Mapping[str, tuple[bytes, ...]]

SETTINGS = (
    "updates=2",
    "prompts=4",
    "group_size=2",
    "minibatches=1",
    "epochs=1",
    "eval_prompts=4",
    "base_score=0",
)
SMALL = "lstm:embed=8,hidden=16"
# It seeds everybody's generators when it is imported, and tells what it draws when it is called.
PLUGIN = """
    import random
    import numpy as np
    import torch
    from rlbench import hookimpl
    from rlbench.types import Advantage, LossTerms

    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(0)

    def rude(batch):
        drawn = (random.random(), float(np.random.rand()), float(torch.rand(())))
        metrics = {f"drawn_{i}": torch.full_like(batch.logp, x) for i, x in enumerate(drawn)}
        return LossTerms(-batch.advantages * batch.logp * sum(drawn), metrics)

    def resampled(rollout):
        '''Its baseline is the mean of a bootstrap sample of the rewards.'''
        rows = np.random.randint(len(rollout.reward), size=len(rollout.reward))
        advantage = rollout.reward - rollout.reward[torch.as_tensor(rows)].mean()
        noise = float(np.random.rand())
        print("drawn", *rows, noise)  # goes to the log of the run
        return Advantage((advantage[:, None] + noise).expand(rollout.mask.shape).clone())

    @hookimpl
    def rlbench_register_losses(register):
        register("rude", f"{__name__}:rude", summary="Seeds what is not its own.")

    @hookimpl
    def rlbench_register_estimators(register):
        register("resampled", f"{__name__}:resampled", summary="A bootstrap baseline.")
"""


class Warm(Local):
    """An engine that grids share: importing torch is what takes the time."""

    def open(self, workers, preload):
        if self._server is None:
            super().open(workers, preload)

    def close(self):
        assert not self._pids, "jobs are left"


@pytest.fixture(scope="module")
def warm():
    engine = Warm()
    engine.open(1, PRELOAD)
    yield engine
    Local.close(engine)


@pytest.fixture
def plugin(module) -> str:
    return str(module("rude_plugin", PLUGIN))


@pytest.fixture
def plan(plugin) -> Callable[..., list[Planned]]:
    def make(seeds: str, **selections: str) -> list[Planned]:
        chosen = {"loss": "clip", "model": SMALL} | selections
        specs = make_specs(seeds, settings=SETTINGS, plugins=(plugin,), **chosen)
        return [Planned(run_id(spec), spec) for spec in specs]

    return make


@pytest.fixture
def numbers(tmp_path: Path, plugin: str, warm: Warm) -> Callable[..., Bytes]:
    """Run a grid in a folder of its own, and give the bytes of its numbers."""

    def run(name: str, runs: list[Planned], workers: int, engine: Local = warm) -> Bytes:
        store = Store(tmp_path / name)
        options = {"workers": workers, "watcher": Silent(), "plugins": (plugin,)}
        assert supervise(runs, store, engine, **options).ok == len(runs)
        return {
            run.run_id: tuple(
                (store.run_folder(run.run_id) / file).read_bytes()
                for file in ("metrics.csv", "evals.csv", "samples.jsonl")
            )
            for run in runs
        }

    return run


def test_the_same_bytes_alone_in_any_company_in_any_order_with_any_number_of_workers(plan, numbers):
    polite, rude = plan("0,1"), plan("0,1", loss="rude")
    alone = numbers("alone", polite, workers=1, engine=Local())
    together = numbers("together", [*polite, *rude], workers=8)
    assert numbers("reversed", [*rude, *polite][::-1], workers=1) == together
    assert numbers("rude-first", [*rude, *polite], workers=2) == together
    assert together.items() >= alone.items()
    # what the plugin draws is the run's own: from no generator the same number at both seeds
    rows = [next(csv.DictReader(together[run.run_id][0].decode().splitlines())) for run in rude]
    drawn = [[v for name, v in row.items() if "drawn_" in name] for row in rows]
    assert [len(values) for values in drawn] == [3, 3]
    assert not set(drawn[0]) & set(drawn[1])


def test_an_estimator_is_the_same_alone_before_another_and_after_it(plan, numbers):
    gae, grpo = (plan("0", estimator=name) for name in ("gae", "grpo"))
    alone = numbers("alone", gae, workers=1)
    assert len(alone) == 1
    before = numbers("before", [*gae, *grpo], workers=1)
    assert before == numbers("after", [*grpo, *gae], workers=1)
    assert before.items() > alone.items()


def test_six_runs_are_the_same_with_one_two_or_four_workers_and_every_time(plan, numbers, tmp_path):
    """Four of them draw from the global generator of numpy, which a fork would copy."""
    drawing = plan("0-3", estimator="resampled")
    six = [*drawing, *plan("0,1", estimator="gae")]

    def drawn(name: str) -> list[str]:
        logs = [Store(tmp_path / name).run_folder(run.run_id) / "log.txt" for run in drawing]
        lines = [log.read_text("utf-8").splitlines() for log in logs]
        return ["\n".join(line for line in one if line.startswith("drawn ")) for one in lines]

    one = numbers("one", six, workers=1)
    assert len(one) == 6
    streams = drawn("one")
    assert [text.count("drawn") for text in streams] == [2] * 4  # once an update
    assert len(set(streams)) == 4
    for name, workers in (("two", 2), ("four", 4), ("four-again", 4)):
        assert numbers(name, six, workers=workers) == one
        assert drawn(name) == streams
