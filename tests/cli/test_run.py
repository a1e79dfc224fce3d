"""`rlbench run` and `rlbench.run` from end to end, on runs of one update."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import rlbench
from rlbench.cli import cli
from rlbench.errors import UsageError
from rlbench.grid import launch as launching
from rlbench.grid.supervisor import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from rlbench.grid.store import Record

TINY = {
    "updates": 1,
    "prompts": 2,
    "group_size": 2,
    "minibatches": 1,
    "eval_prompts": 8,
    "base_score": 0,
}
TINY_FLAGS = [word for name, value in TINY.items() for word in ("--set", f"{name}={value}")]
PLUGIN = """
from rlbench import hookimpl
from rlbench.types import LossTerms


def good(batch, *, scale: float = 1.0):
    return LossTerms(-scale * batch.advantages * batch.logp)


def bad(batch):
    raise ValueError("this loss | always fails\\nsecond line")


@hookimpl
def rlbench_register_losses(register):
    register("good", ":good", summary="Works.")
    register("bad", ":bad", summary="Fails.")
"""


@dataclass(frozen=True)
class Grid:
    """A grid of two losses of a loose file, one of which fails, at two seeds."""

    folder: Path
    done: subprocess.CompletedProcess[str]

    def again(self, *more: str) -> subprocess.CompletedProcess[str]:
        return command(self.folder, *more)


def command(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    arguments = ["run", "-l", "good", "-l", "bad", "--plugin", "my_losses.py", "-s", "0,1,1"]
    return subprocess.run(
        [sys.executable, "-m", "rlbench", *arguments, *TINY_FLAGS, "-o", "out", "-j", "2", *more],
        cwd=folder,
        env=os.environ | {"NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Grid:
    folder = tmp_path_factory.mktemp("grid")
    (folder / "my_losses.py").write_text(PLUGIN, encoding="utf-8")
    return Grid(folder, command(folder))


def test_data_go_to_stdout_and_progress_to_stderr(grid: Grid) -> None:
    assert grid.done.returncode == 1  # some runs failed
    assert grid.done.stdout.startswith("loss ")
    assert "Traceback" not in grid.done.stdout + grid.done.stderr
    first, second, *middle, last = grid.done.stderr.splitlines()
    assert first == "dropped a repeated seed: 1"
    assert second == "4 runs to do (2 cells, 2 seeds); 2 at a time"
    assert sum(line.startswith("failed: ") for line in middle) == 2
    assert last == "2 ok, 2 failed; results in out; add --retry to try the failed ones again"


def test_the_table_names_failures_with_seed_error_and_log(grid: Grid) -> None:
    rows = grid.done.stdout.splitlines()[2:4]
    assert [row.split()[:2] for row in rows] == [["good", "2/2"], ["bad", "0/2"]]
    flat = " ".join(grid.done.stdout.split())
    assert "- seeds 0,1 failed: ComponentError: loss 'bad' (file my_losses.py) raised" in flat
    assert "ValueError: this loss | always fails" in flat
    assert "second line" not in flat
    logs = [word.strip("()") for word in flat.split() if "log.txt" in word]
    assert len(logs) == 1  # one error of two seeds
    assert all("second line" in (grid.folder / log).read_text(encoding="utf-8") for log in logs)


def test_again_does_nothing_and_prints_the_same_table(grid: Grid) -> None:
    again = grid.again()
    assert again.stdout == grid.done.stdout
    assert "nothing left to run: 4 runs already there in out" in again.stderr
    assert again.returncode == 1  # two of the requested runs are failures still


def test_quiet_says_nothing_and_json_is_strict(grid: Grid) -> None:
    again = grid.again("-q", "--format", "json")
    assert again.stderr == ""
    rows = json.loads(again.stdout)["rows"]
    assert [(row["loss"], row["ok"], row["tried"]) for row in rows] == [
        ("good", 2, 2),
        ("bad", 0, 2),
    ]


def test_table_shows_results_of_a_plugin_that_is_gone(
    grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(grid.folder)
    done = CliRunner().invoke(cli, ["table", "out", "-l", "good"])
    assert done.exit_code == 0
    assert "good" in done.stdout
    assert "loss bad" not in done.stdout


def test_python_gets_one_row_a_run(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(grid.folder)
    frame = rlbench.results("out")
    assert len(frame) == 4
    again = rlbench.run(
        loss="good", seeds=range(2), settings=TINY, out="out", plugins=["my_losses.py"], workers=1
    )
    assert sorted(again["run_id"]) == sorted(frame[frame["loss"] == "good"]["run_id"])
    assert list(again["status"]) == ["ok", "ok"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"estimator": "gea"}, "did you mean 'gae'"),
        ({"settings": {"updtes": 1}}, "did you mean 'updates'"),
        ({"seeds": []}, "no seed"),
        ({"workers": 0}, "^workers=0: expected an integer in"),
        ({"retries": -1}, "^retries=-1: expected an integer in"),
        ({"timeout": math.inf}, "^timeout=inf: expected a number in"),
        ({"verify": 0}, "^verify=0: expected an integer in"),
        ({"fail_fast": True, "max_failures": 2}, "give one of them"),
    ],
)
def test_python_mistakes_are_usage_errors(
    wrong: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        rlbench.run(out=tmp_path / "out", **wrong)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Replace what executes runs; hear what it was asked."""
    monkeypatch.chdir(tmp_path)
    heard: dict[str, Any] = {}

    def launch(
        registry: object, planned: list[Any], **options: Any
    ) -> tuple[list[Record], Outcome]:
        heard.update(options, planned=planned)
        records = launching._read_back(launching.Store(options["out"]), planned)
        return records, heard.get("outcome") or Outcome(0, 0, 0, interrupted=True, exit_code=130)

    monkeypatch.setattr(launching, "launch", launch)
    return heard


def test_flags_reach_the_grid(asked: dict[str, Any]) -> None:
    arguments = ["run", "-e", "gae:lam=0.9", "-e", "grpo", "-k", "fixed", "-s", "007"]
    arguments += ["-j", "3", "--timeout", "60", "--retry", "--fail-fast", "--set", "lr=1e-3"]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 130
    assert [run.spec.selections["estimator"].label for run in asked["planned"]] == [
        "gae:lam=0.9",
        "group",
    ]
    assert {run.spec.seed for run in asked["planned"]} == {7}
    assert {run.spec.settings.lr for run in asked["planned"]} == {0.001}
    assert (asked["workers"], asked["timeout_s"]) == (3, 60.0)
    assert asked["retry"]
    assert asked["fail_fast"]
    assert str(asked["out"]) == os.path.join("results", "local")  # noqa: PTH118 - as typed


def test_keywords_reach_the_grid_and_win_over_a_file(asked: dict[str, Any], tmp_path: Path) -> None:
    asked["outcome"] = Outcome(0, 0, 0, interrupted=False, exit_code=0)
    (tmp_path / "grid.toml").write_text("retries = 9\nmax_failures = 4\nverify = 5", "utf-8")
    how = {"timeout": 60, "retry": True, "retries": 0, "checkpoint_every": 7}
    rlbench.run("grid.toml", seeds=[0], workers=2, **how)
    names = ("timeout_s", "retry", "retries", "checkpoint_every", "max_failures", "workers")
    assert [asked[name] for name in names] == [60.0, True, 0, 7, 4, 2]
    assert "verify" not in asked
    rlbench.run(seeds=[0], fail_fast=True)
    assert [asked[name] for name in ("fail_fast", "retry", "timeout_s")] == [True, False, None]


def test_repeated_seeds_are_joined(asked: dict[str, Any]) -> None:
    done = CliRunner().invoke(cli, ["run", "-s", "3", "-s", "0-1", "-s", "1"])
    assert [run.spec.seed for run in asked["planned"]] == [3, 0, 1]
    assert "dropped a repeated seed: 1" in done.stderr


def test_an_interrupted_grid_still_shows_its_table(asked: dict[str, Any]) -> None:
    done = CliRunner().invoke(cli, ["run", "-e", "gae", "-e", "rloo", "-s", "0-1"])
    assert done.exit_code == 130
    assert "not run" in done.stdout
    assert "Not run: gae, seeds 0,1." in done.stdout


def test_defaults_of_the_command(asked: dict[str, Any]) -> None:
    CliRunner().invoke(cli, ["run"])
    assert [run.spec.seed for run in asked["planned"]] == [0, 1, 2, 3, 4]
    assert asked["workers"] == launching.cores()
    assert asked["timeout_s"] is None
