"""Real runs, killed and interrupted on their way, against the same runs left alone."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from rlbench.builtin.engines import Local
from rlbench.grid import worker
from rlbench.grid.attempt import Flight, Planned, job_maker
from rlbench.grid.launch import plan
from rlbench.grid.store import Store
from rlbench.grid.supervisor import supervise
from rlbench.grid.watcher import Silent

from .conftest import make_specs

TINY = (
    "updates=8",
    "prompts=4",
    "group_size=4",
    "minibatches=2",
    "eval_every=3",
    "eval_prompts=8",
    "base_score=0",
    "lr=3e-3",
    "lr_schedule=cosine",
    "warmup=2",
    "temperature=0.8",
    "top_p=0.95",
)
SMALL = "lstm:embed=8,hidden=16"
CASES = {
    "critic": {"estimator": "gae", "loss": "clip_cov", "kl": "adaptive"},
    "pid": {"estimator": "group", "loss": "clip", "kl": "pid:target=1e-5,kp=10"},
    "schedule": {"estimator": "rloo", "loss": "pg", "kl": "schedule:start=0.2,updates=6"},
    "stop": {"estimator": "group", "loss": "clip", "kl": "target_stop:target=1e-4"},
    "plugin": {"estimator": "gae", "loss": "noisy", "kl": "moody", "reward": "learning"},
}
PLUGIN = Path(__file__).with_name("stateful_plugin.py")
SAME = ("metrics.csv", "evals.csv", "samples.jsonl", "spec.json")


class Grids:
    """The same grid twice: left alone, and with every run killed several times."""

    def __init__(self, folder: Path) -> None:
        self.alone, self.disturbed = Store(folder / "alone"), Store(folder / "disturbed")
        self.kills = folder / "kills"
        self.kills.mkdir()
        self.runs = {
            name: plan(make_specs("0", TINY, (str(PLUGIN),), task="sort", model=SMALL, **chosen))[0]
            for name, chosen in CASES.items()
        }
        (self.kills / "supervisor").write_text(str(os.getpid()))
        for run in self.runs.values():
            flight = Flight(run, None, {"attempts": 1})
            job = job_maker(self.alone, (str(PLUGIN),), (), None)(flight)
            worker.execute(job.payload, lambda _: None)
        draws = random.Random(20)
        for run in self.runs.values():
            # The tracker ends its process at its so manieth call: anywhere between two updates.
            calls = [("kill", draws.randint(3, 8)) for _ in range(2)]
            (self.kills / run.run_id).write_text(json.dumps(calls))
        first = self.runs["critic"].run_id
        (self.kills / first).write_text(json.dumps([("kill", 6), ("interrupt", 5)]))
        self.outcomes = [self.command() for _ in range(2)]

    def command(self):
        return supervise(
            list(self.runs.values()),
            self.disturbed,
            Local(),
            workers=2,
            watcher=Silent(),
            plugins=(str(PLUGIN),),
            trackers=(f"unruly:folder={self.kills}",),
            timeout_s=120,
            retries=9,
            checkpoint_every=2,
        )

    def told(self, run: Planned) -> list[int | None]:
        """What trackers were told, attempt by attempt."""
        return json.loads((self.kills / f"{run.run_id}.told").read_text())


@pytest.fixture(scope="module")
def grids(tmp_path_factory):
    return Grids(tmp_path_factory.mktemp("grids"))


def test_a_grid_that_is_interrupted_is_finished_by_the_same_command(grids):
    exits = [outcome.exit_code for outcome in grids.outcomes]
    assert exits == [130, 0]


@pytest.mark.parametrize("case", CASES)
def test_a_run_that_was_killed_ends_with_the_same_bytes(grids, case):
    run = grids.runs[case]
    alone, disturbed = (store.record(run.run_id) for store in (grids.alone, grids.disturbed))
    for name in SAME:
        assert (alone.folder / name).read_bytes() == (disturbed.folder / name).read_bytes(), name
    assert (alone.status, disturbed.status) == ("ok", "ok")
    for name in ("score_start", "score", "kl", "entropy", "tokens", "metrics_sha256"):
        assert alone.result[name] == disturbed.result[name]
    told = grids.told(run)
    assert told[0] is None
    assert told[-1] in (2, 4, 6), "no attempt went on from a checkpoint: nothing was tested"
    assert "going on after update" in (disturbed.folder / "log.txt").read_text("utf-8")
    assert not list(disturbed.folder.glob("*checkpoint*"))


def test_time_adds_up_over_attempts(grids):
    for run in grids.runs.values():
        result = grids.disturbed.record(run.run_id).result
        spent = sum(s for phase, s in result["phases"].items() if phase != "base")
        assert result["wall_s"] >= spent - 0.01
        lines = (grids.disturbed.run_folder(run.run_id) / "timings.csv").read_text().splitlines()
        assert [line.partition(",")[0] for line in lines] == ["update", *map(str, range(1, 9))]
        rollouts = sum(float(line.split(",")[3]) for line in lines[1:])
        assert lines[0].split(",")[3] == "rollout"
        assert result["phases"]["rollout"] == pytest.approx(rollouts, abs=2e-3)
