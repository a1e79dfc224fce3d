"""Things that lie where results belong: named in one line each, left alone, no run's failure."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import rlbench
from rlbench.cli import cli
from rlbench.grid.launch import plan
from rlbench.grid.request import ask
from rlbench.grid.store import Store, obstacle
from rlbench.plugin.loading import load
from rlbench.training import base_policy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rlbench.grid.attempt import Planned

TINY = {
    "updates": 1,
    "prompts": 2,
    "group_size": 2,
    "minibatches": 1,
    "eval_prompts": 8,
    "base_score": 0,
}
FLAGS = [word for name, value in TINY.items() for word in ("--set", f"{name}={value}")]
COMMAND = [*FLAGS, "-s", "0-8", "-o", "out"]
WHAT_TO_DO = "; move it away, and give the same command again"
ID = "group-clip-s0-0123456789"


def file(path: Path) -> None:
    path.write_text("mine", "utf-8")


def link(path: Path) -> None:
    path.symlink_to("nowhere")


def folder(path: Path) -> None:
    path.mkdir()


def test_other_runs_go_on_and_each_thing_in_the_way_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    grid = planned()
    made, expected = things_in_the_way(tmp_path / "out" / "runs", [run.run_id for run in grid])
    lock = tmp_path / "out" / "base" / f"{base_policy.base_policy_name(grid[7].spec)}.lock"
    lock.mkdir(parents=True)
    policies = (
        f"warning: {lock.relative_to(tmp_path)} is a folder, where the base policy of some runs or "
        f"its lock belongs{WHAT_TO_DO}"
    )
    before = {path: os.lstat(path).st_mode for path in [*made, lock]}

    shown = CliRunner().invoke(cli, ["plan", *COMMAND])
    assert sorted(shown.stderr.splitlines()) == sorted([*expected, policies])
    assert "9 runs: 0 done, 2 missing, 0 failed, 7 blocked. 2 runs to do" in shown.stdout

    done = subprocess.run(
        [sys.executable, "-m", "rlbench", "run", *COMMAND],
        env=os.environ | {"NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    said = done.stderr.splitlines()
    assert sorted(line for line in said if "warning" in line) == sorted([*expected, policies])
    assert "Error" not in done.stderr + done.stdout
    assert "log:" not in done.stderr
    assert said[-len(expected) - 1] == "1 ok; results in out"  # seed 8
    assert "Not run: " in done.stdout
    assert {path: os.lstat(path).st_mode for path in before} == before

    table = CliRunner().invoke(cli, ["table", str(tmp_path / "out")])
    for line in expected:
        assert line.removeprefix("warning: out/") in table.stderr

    for path in (*made, lock):
        path.rmdir() if path.is_dir() else path.unlink()
    assert "1 done, 8 missing, 0 failed." in CliRunner().invoke(cli, ["plan", *COMMAND]).stdout


def things_in_the_way(runs: Path, names: list[str]) -> tuple[list[Path], list[str]]:
    """Put something else where each run or a file of it belongs; give what is to be said of it."""
    runs.mkdir(parents=True)
    places: dict[str, tuple[Callable[[Path], None], str]] = {
        "": (file, "a file"),
        "/": (link, "a link to nowhere"),
        "lock": (folder, "a folder"),
        "result.json": (os.mkfifo, "a FIFO"),
        "spec.json": (link, "a link to nowhere"),
        "metrics.csv": (folder, "a folder"),
        ".result.json.new": (folder, "a folder"),
    }
    made, said = [], []
    for run_id, (name, (make, sort)) in zip(names, places.items(), strict=False):
        place = runs / run_id if name in ("", "/") else runs / run_id / name
        place.parent.mkdir(exist_ok=True)
        make(place)
        made.append(place)
        whole = place.parent == runs
        belongs = "the folder of a run" if whole else "a file of the run"
        shown = place.relative_to(runs.parent.parent)
        said.append(f"warning: {shown} is {sort}, where {belongs} belongs{WHAT_TO_DO}")
    return made, said


def planned() -> list[Planned]:
    """Name the runs of the command, in the order of their seeds."""
    settings = [f"{name}={value}" for name, value in TINY.items()]
    request = ask(None, load=load, axes={}, settings=settings, seeds="0-8", plugins=(), how={})
    return plan(request.specs)


@pytest.mark.parametrize("place", ["out", "out/runs", "out/base"])
@pytest.mark.parametrize(
    ("make", "sort"), [(file, "a file"), (link, "a link to nowhere"), (os.mkfifo, "a FIFO")]
)
def test_what_lies_in_the_place_of_all_results_is_named_and_nothing_runs(
    tmp_path: Path, place: str, make: Callable[[Path], None], sort: str
) -> None:
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    make(path)
    before = sorted(tmp_path.rglob("*"))
    done = CliRunner().invoke(cli, ["run", "-o", str(tmp_path / "out"), *FLAGS])
    said = f"{path} is {sort}; name a folder with -o or move it away"
    if place != "out/base":  # a plan and a table look there too
        shown = CliRunner().invoke(cli, ["table", str(tmp_path / "out")])
        assert (shown.exit_code, f"{path} is {sort}" in shown.stderr) == (2, True)
        said = f"{path} is {sort}"
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_what_is_not_looked_at_is_in_nobodys_way(tmp_path: Path, write_run) -> None:
    done = write_run(tmp_path)
    (done / "lock").mkdir()
    (done / "samples.jsonl").mkdir()
    record = Store(tmp_path).record(done.name)
    assert record.complete
    assert record.problem is record.obstacle is None
    assert Store(tmp_path).blocked([done.name], retry=True) == set()
    (done / "notes").mkdir()
    (done / "lock").rmdir()
    (done / "samples.jsonl").rmdir()
    assert obstacle(done) is None  # a folder of its own name is nobody's


def test_a_failed_run_is_in_the_way_only_of_another_try(tmp_path: Path, write_run) -> None:
    failed = write_run(tmp_path, status="failed")
    (failed / "log.txt").mkdir()
    store = Store(tmp_path)
    assert store.record(failed.name).problem is None
    assert store.blocked([failed.name]) == set()
    assert store.blocked([failed.name], retry=True) == {failed.name}


def test_a_link_to_a_folder_or_a_file_is_as_good_as_they_are(tmp_path: Path, write_run) -> None:
    done = write_run(tmp_path / "elsewhere", status="killed")
    (done / "log.txt").symlink_to(done / "spec.json")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / done.name).symlink_to(done)
    record = Store(tmp_path).record(done.name)
    assert (record.status, record.obstacle) == ("killed", None)


def test_merge_and_rm_leave_what_is_in_the_way(tmp_path: Path, write_run) -> None:
    good, other = (write_run(tmp_path / "from", seed=seed) for seed in range(2))
    place = tmp_path / "to" / "runs" / good.name
    place.parent.mkdir(parents=True)
    place.symlink_to("nowhere")
    done = CliRunner().invoke(cli, ["merge", str(tmp_path / "from"), "-o", str(tmp_path / "to")])
    assert done.exit_code == 0
    assert f"left: {good.name}: {place} is a link to nowhere, where the folder" in done.stderr
    assert "1 left, 1 copied" in done.stderr
    assert place.is_symlink()
    assert Store(tmp_path / "to").record(other.name).status == "ok"

    (other / "lock").mkdir()
    done = CliRunner().invoke(cli, ["rm", str(tmp_path / "from"), other.name, "--yes"])
    assert done.exit_code == 1
    assert f"{other / 'lock'} is a folder, where a file of the run belongs" in done.stderr
    assert (other / "result.json").is_file()


def test_python_hears_of_a_base_policy_that_is_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_policy, "base_policy_name", lambda spec: f"{spec.seed:016x}")
    place = tmp_path / "base" / f"{3:016x}.pt"
    place.mkdir(parents=True)
    (place.parent / "mine").mkdir()
    with pytest.warns(UserWarning, match=f"{place.name} is a folder, where the base policy"):
        frame = rlbench.run(seeds=[3], out=tmp_path)
    assert list(frame["status"]) == ["missing"]
    assert not (tmp_path / "runs").exists()
