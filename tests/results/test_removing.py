"""`rlbench rm`: only runs, only those that were meant, and never without asking."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli
from rlbench.cli import results as command
from rlbench.grid.experiment import build
from rlbench.grid.identity import canonical
from rlbench.grid.store import Store
from rlbench.plugin.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def filled(tmp_path: Path, write_run: Callable[..., Path]) -> Path:
    for seed in range(3):
        write_run(tmp_path, seed=seed)
    write_run(tmp_path, seed=3, status="failed")
    write_run(tmp_path, seed=4, status="diverged")
    write_run(tmp_path, seed=5, status="killed")
    return tmp_path


def rm(*arguments: str | Path, answer: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["rm", *map(str, arguments)], input=answer)


def seeds(out: Path) -> list[int]:
    return sorted(int(path.name.split("-s")[1][0]) for path in (out / "runs").iterdir())


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (["--failed"], [0, 1, 2, 5]),
        (["-s", "0-1"], [2, 3, 4, 5]),
        (["-s", "0-3", "--failed"], [0, 1, 2, 4, 5]),
        (["-l", "clip", "--set", "lr=5e-4"], []),
        (["--all"], []),
    ],
)
def test_what_was_selected_goes_and_the_rest_stays(
    filled: Path, arguments: list[str], left: list[int]
) -> None:
    done = rm(filled, *arguments, "--yes")
    assert (done.exit_code, done.stdout) == (0, "")
    assert f"removed {6 - len(left)} run" in done.stderr
    assert seeds(filled) == left


def test_runs_are_named_by_beginning_or_end(filled: Path) -> None:
    names = [record.run_id for record in Store(filled).read()]
    assert rm(filled, names[0][-10:], "group-clip-s1", "-y").exit_code == 0
    assert rm(names[2], "-o", filled, "-y").exit_code == 0
    assert seeds(filled) == [3, 4, 5]


def test_without_a_terminal_and_without_yes_nothing_goes(filled: Path) -> None:
    done = rm(filled, "--failed")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "to remove 2 runs (1 diverged, 1 failed)" in done.stderr
    assert "--yes" in done.stderr
    assert len(seeds(filled)) == 6


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 4), ("n\n", 1, 6), ("\n", 1, 6)])
def test_on_a_terminal_it_asks_with_counts(
    *, filled: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, left: int
) -> None:
    monkeypatch.setattr(command, "is_terminal", lambda stream: True)
    done = rm(filled, "--failed", answer=answer)
    assert (done.exit_code, len(seeds(filled))) == (code, left)
    assert f"remove 2 runs (1 diverged, 1 failed) from {filled}? [y/N]" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "say which runs to remove"),
        (["--all", "--failed"], 2, "leave it out beside"),
        (["--all", "-e", "group"], 2, "leave it out beside"),
        (["group-clip"], 2, "6 runs in"),
        (["nothing"], 2, "unknown run"),
        (["-s", "9"], 3, "no result with seed 9"),
        (["-s", "0", "--failed"], 3, "no run to remove"),
        (["-e", "gae"], 3, "no result with estimator gae"),
    ],
)
def test_mistakes_remove_nothing(
    filled: Path, arguments: list[str], code: int, message: str
) -> None:
    done = rm(filled, *arguments, "--yes")
    assert done.exit_code == code
    assert message in done.stderr
    assert len(seeds(filled)) == 6


def test_a_running_run_stays(filled: Path) -> None:
    run = next(record for record in Store(filled).read() if record.status == "killed")
    with Store(filled).locked(run.run_id):
        done = rm(filled, "--all", "--yes")
        assert done.exit_code == 1
        assert f"left: {run.run_id} is running; nothing of it was removed" in done.stderr
        assert (run.folder / "result.json").exists()
    assert seeds(filled) == [5]


def test_foreign_files_are_never_touched(filled: Path) -> None:
    runs = filled / "runs"
    mine = [runs / "notes.txt", runs / "other" / "data.csv", filled / "base" / "0.pt"]
    run = next(record for record in Store(filled).read() if record.status == "ok").folder
    mine.append(run / "my-plot.png")
    for file in mine:
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine", "utf-8")
    (runs / "linked-0123456789").symlink_to(run)
    done = rm(filled, "--all", "--yes")
    assert done.exit_code == 1
    assert f"{run} stays: my-plot.png is not of the run" in done.stderr
    assert all(file.read_text("utf-8") == "mine" for file in mine)
    assert sorted(path.name for path in run.iterdir()) == ["my-plot.png"]


def test_what_a_link_points_to_stays(filled: Path) -> None:
    run = Store(filled).read()[0].folder
    elsewhere = filled / run.name
    run.rename(elsewhere)
    run.symlink_to(elsewhere)
    done = rm(filled, run.name, "--yes")
    assert done.exit_code == 1
    assert f"{run} is a link; what it points to stays" in done.stderr
    assert (elsewhere / "result.json").exists()


def test_everything_of_a_run_goes(filled: Path) -> None:
    run = Store(filled).read()[0].folder
    for name in ("log.txt", "checkpoint.pt", "verified.json", ".result.json.new"):
        (run / name).write_text("", "utf-8")
    assert rm(filled, run.name, "--yes").exit_code == 0
    assert not run.exists()


def test_the_result_goes_first(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removal that is interrupted leaves a run that runs again, not one without its files."""

    def stop(self: Store, run_id: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "clear", stop)
    run = Store(filled).read()[0]
    assert rm(filled, run.run_id, "--yes").exit_code != 0
    assert Store(filled).record(run.run_id).status == "missing"


def test_outdated_runs_are_those_that_would_have_another_name(tmp_path: Path) -> None:
    registry = load()
    specs = build(registry, selections={"loss": ["clip", "pg"]}, settings=[], seeds="0-1")
    for number, spec in enumerate(specs):
        description = canonical(spec)
        if number == 1:  # as an earlier source would have named it
            description["components"]["loss"]["source"] = "0123456789abcdef"
            description["run_id"] = description["run_id"][:-10] + "0123456789"
        if number == 2:  # of a plugin that is gone
            description["components"]["loss"] |= {"name": "gone", "label": "gone"}
        folder = tmp_path / "runs" / description["run_id"]
        folder.mkdir(parents=True)
        (folder / "spec.json").write_text(json.dumps(description), "utf-8")
        result = {"schema": 1, "run_id": description["run_id"], "status": "ok", "score": 0.5}
        (folder / "result.json").write_text(json.dumps(result), "utf-8")
    done = rm(tmp_path, "--outdated", "--yes")
    assert done.exit_code == 0
    assert "removed 1 run\n" in done.stderr
    assert "1 run that can't be judged: unknown loss 'gone'" in done.stderr
    left = {record.run_id for record in Store(tmp_path).read()}
    assert len(left) == 3
    assert not any(name.endswith("0123456789") for name in left)


PLUGIN = """
from rlbench import hookimpl


def scaled(batch, *, scale: float = 1.0):
    pass


@hookimpl
def rlbench_register_losses(register):
    register("scaled", ":scaled", summary="Scaled.")
"""


def test_outdated_runs_of_a_loose_file_are_judged_by_the_file_they_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.py"
    file.write_text(PLUGIN, "utf-8")
    (spec,) = build(load([file]), selections={"loss": ["scaled"]}, settings=[], seeds="0")
    description = canonical(spec)
    folder = tmp_path / "out" / "runs" / description["run_id"]
    folder.mkdir(parents=True)
    (folder / "spec.json").write_text(json.dumps(description), "utf-8")
    result = {"schema": 1, "run_id": description["run_id"], "status": "ok", "score": 0.5}
    result["provenance"] = {"plugins": ["mine.py"]}
    (folder / "result.json").write_text(json.dumps(result), "utf-8")
    assert "can't be judged" not in rm("out", "--outdated", "--yes").stderr
    file.rename(tmp_path / "moved.py")
    gone = rm("out", "--outdated", "--yes")
    assert "can't be judged: mine.py is not here; add --plugin FILE\n" in gone.stderr
    (tmp_path / "moved.py").rename(file)
    file.write_text(PLUGIN.replace("= 1.0", "= 2.0"), "utf-8")
    assert "removed 1 run\n" in rm("out", "--outdated", "--yes").stderr


def test_an_unknown_name_lists_the_nearest_runs_and_a_count(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    for seed in range(30):
        write_run(tmp_path, seed=seed)
    done = rm(tmp_path, "group-clp-s7-", "-y")
    assert done.exit_code == 2
    assert f"there are 30 runs in {tmp_path}, such as group-clip-s7-" in done.stderr
    assert done.stderr.count("group-clip-s") == 3


def test_a_path_without_results_is_the_one_that_is_named(filled: Path) -> None:
    nope = filled / "nope"
    done = rm(nope, "--failed", "-y")
    assert (done.exit_code, done.stderr) == (3, f"rlbench: no results in {nope}\n")
    run = Store(filled).read()[0]
    one = rm(run.folder, "-y")
    assert one.exit_code == 2
    assert f"write rlbench rm -o {filled} {run.run_id}" in one.stderr
    assert len(seeds(filled)) == 6


def test_it_names_the_first_runs_before_it_asks(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "is_terminal", lambda stream: True)
    done = rm(filled, "--all", answer="n\n")
    names = [record.run_id for record in Store(filled).read()]
    assert sum(f"  {name}\n" in done.stderr for name in names) == 5
    assert "  ... and 1 more\n" in done.stderr
