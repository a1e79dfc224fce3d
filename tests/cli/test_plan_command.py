"""`rlbench plan`, and experiment files given to commands."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

import rlbench
from rlbench.cli import cli
from rlbench.grid import launch as launching
from rlbench.grid.supervisor import Outcome

if TYPE_CHECKING:
    from pathlib import Path

GRID = """
out = "night"
seeds = [0, 1]
workers = 3
[axes]
estimator = ["group", "gae"]
[settings]
lr = [3e-4, 1e-3]
updates = 1
"""
TRACKERS = """
from rlbench import hookimpl


class Track:
    pass


@hookimpl
def rlbench_register_trackers(register):
    register("one", ":Track", summary="One.")
    register("two", ":Track", summary="Another.")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text(GRID, encoding="utf-8")
    return tmp_path


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def test_a_plan_of_a_file_runs_and_writes_nothing(folder: Path) -> None:
    done = invoke("plan", "grid.toml")
    assert done.exit_code == 0
    assert done.stdout.startswith("4 cells, 2 seeds: 8 runs in night\n")
    assert "8 runs: 0 done, 8 missing, 0 failed." in done.stdout
    assert done.stderr == ""
    assert [path.name for path in folder.iterdir()] == ["grid.toml"]


def test_a_plan_takes_the_flags_of_run() -> None:
    done = invoke(
        *("plan", "grid.toml", "-e", "rloo", "-s", "7", "-o", "there", "-j", "1"),
        *("--timeout", "9", "--retry", "--fail-fast", "--set", "updates=2", "--all"),
    )
    assert done.exit_code == 0
    assert done.stdout.startswith("2 cells, 1 seed: 2 runs in there\n")
    assert "updates=2." in done.stdout
    assert done.stderr == (
        "replaced by what was given beside grid.toml: estimator, updates, seeds, out, workers\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gird.toml"], "did you mean 'grid.toml'?"),
        (["grid.toml", "-e", "gea"], "did you mean 'gae'?"),
        (["grid.toml", "--engine", "locl"], "did you mean 'local'?"),
        (["grid.toml", "--track", "nothing"], "unknown tracker 'nothing'"),
        (["grid.toml", "grid.toml"], "unexpected extra argument"),
        ([""], "the name of the experiment file is empty"),
        (["-o", "grid.toml"], "grid.toml is a file"),
        (["--format", "csv"], "No such option"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_end_with_2(arguments: list[str], message: str) -> None:
    done = invoke("plan", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_a_plan_loads_nothing_heavy(folder: Path) -> None:
    watch = """
import sys
from rlbench.cli import main
try:
    main()
except SystemExit as end:
    heavy = ("torch", "numpy", "pandas", "scipy", "matplotlib")
    print(end.code, [name for name in heavy if name in sys.modules], file=sys.stderr)
"""
    arguments = ["plan", "grid.toml", "-k", "adaptive:target=0.3"]
    done = subprocess.run(
        [sys.executable, "-c", watch, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == "0 []\n"


def test_a_plan_is_written_in_any_encoding(folder: Path) -> None:
    name = "Prüfung ±"
    done = subprocess.run(
        [sys.executable, "-m", "rlbench", "plan", "-o", name],
        cwd=folder,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"runs in Pr\xfcfung \xb1" in done.stdout


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Replace what executes runs; hear what it was asked."""
    heard: dict[str, Any] = {}

    def launch(registry: object, planned: list[Any], **options: Any) -> tuple[Any, Outcome]:
        heard.update(options, planned=planned)
        records = launching._read_back(launching.Store(options["out"]), planned)
        return records, Outcome(0, 0, 0, interrupted=False, exit_code=0)

    monkeypatch.setattr(launching, "launch", launch)
    return heard


def test_a_file_reaches_the_grid(asked: dict[str, Any], folder: Path) -> None:
    path = folder / "grid.toml"
    path.write_text(
        "timeout = 60\nretry = true\nfail_fast = true\nengine = 'local'\n"
        f"track = ['one', 'two']\nplugins = 'trackers.py'\n{GRID}",
        encoding="utf-8",
    )
    (folder / "trackers.py").write_text(TRACKERS, encoding="utf-8")
    done = invoke("run", "grid.toml")
    assert done.exit_code == 0, done.stderr
    assert [run.spec.seed for run in asked["planned"]] == [0] * 4 + [1] * 4
    assert str(asked["out"]) == "night"
    assert (asked["workers"], asked["timeout_s"], asked["engine"]) == (3, 60.0, "local")
    assert asked["trackers"] == ("one", "two")
    assert asked["retry"]
    assert asked["fail_fast"]


def test_flags_win_over_a_file_also_where_they_mean_nothing(asked: dict[str, Any]) -> None:
    done = invoke("run", "grid.toml", "-q", "--retries", "0", "-j", "1", "-s", "3")
    assert done.exit_code == 0
    assert done.stderr == ""  # -q
    assert {run.spec.seed for run in asked["planned"]} == {3}
    assert asked["workers"] == 1


def test_python_takes_a_file_too(asked: dict[str, Any]) -> None:
    frame = rlbench.run("grid.toml", estimator={"name": "gae", "lam": 0.9}, seeds=[5])
    assert set(frame["estimator"]) == {"gae:lam=0.9"}
    assert set(frame["seed"]) == {5}
    assert set(frame["lr"]) == {3e-4, 1e-3}
    assert str(asked["out"]) == "night"
    rlbench.run("grid.toml", out="elsewhere", workers=1)
    assert (str(asked["out"]), asked["workers"]) == ("elsewhere", 1)
