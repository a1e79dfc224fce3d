"""`rlbench run --verify K`: the flag, its exit code and what it says."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from filelock import FileLock

import rlbench
from rlbench.cli import cli
from rlbench.grid import launch as launching
from rlbench.grid.identity import canonical
from rlbench.grid.store import Store, write_json
from rlbench.grid.supervisor import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.grid.attempt import Planned
    from rlbench.grid.store import Record


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Replace what executes runs by something that writes one number, and hear where."""
    told: dict[str, Any] = {"folders": [], "loss": {}, "interrupt": False}

    def launch(
        registry: object, planned: Sequence[Planned], *, out: Path, **how: Any
    ) -> tuple[list[Record], Outcome]:
        again = bool(told["folders"])
        told["folders"].append(out)
        told["how"] = how
        stopped = again and told["interrupt"]
        for run in () if stopped else planned:
            folder = Store(out).run_folder(run.run_id)
            folder.mkdir(parents=True)
            write_json(folder / "spec.json", canonical(run.spec))
            loss = told["loss"].get(run.spec.seed, 1.0) if again else 1.0
            (folder / "metrics.csv").write_text(f"update,loss\n1,{loss}\n", "utf-8")
            result = {"schema": 1, "run_id": run.run_id, "status": "ok", "score": 0.5}
            write_json(folder / "result.json", result)
        records = list(Store(out).records(run.run_id for run in planned))
        code = 130 if stopped else 0
        return records, Outcome(len(planned), 0, 0, interrupted=stopped, exit_code=code)

    monkeypatch.setattr(launching, "launch", launch)
    monkeypatch.chdir(tmp_path)
    return told


def run(*arguments: str):
    return CliRunner().invoke(cli, ["run", "-s", "0-3", "-o", "out", "-j", "3", *arguments])


def test_the_same_numbers_cost_nothing(played: dict[str, Any]) -> None:
    done = run("--verify", "2", "--timeout", "60")
    assert done.exit_code == 0
    assert "repeating 2 of 4 runs to compare their numbers" in done.stderr
    assert "2 of 2 repeated runs have the same bytes" in done.stderr
    first, second = played["folders"]
    assert second.parent == first
    assert (played["how"]["workers"], played["how"]["timeout_s"]) == (3, 60.0)
    assert not second.exists()


def test_other_numbers_are_a_warning_and_an_exit_code(played: dict[str, Any]) -> None:
    played["loss"] = {2: 1.5}
    done = run("--verify", "4", "-q")
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert "was run again: metrics.csv parts at update 1: loss 1.0 | 1.5" in line
    assert "Same spec, other numbers" in done.stdout
    named = line.rpartition("the repeated run is ")[2]
    (other,) = played["folders"][1].glob("runs/*-s2-*")
    assert named == str(other)
    first = str(played["folders"][0] / "runs" / other.name)
    why = CliRunner().invoke(cli, ["why", first, named])
    assert "numbers: metrics.csv parts at update 1: loss 1.0 | 1.5" in why.stdout
    shown = " ".join(CliRunner().invoke(cli, ["show", "run", first]).stdout.split())
    assert "warning run again with other numbers: metrics.csv parts at update 1" in shown
    assert shown.replace(" ", "").count(named) == 1
    same = str(next(played["folders"][0].glob("runs/*-s1-*")))
    assert "run again" not in CliRunner().invoke(cli, ["show", "run", same]).stdout


def test_quiet_is_quiet_about_what_was_given(played: dict[str, Any]) -> None:
    text = 'seeds = [7]\n[axes]\nestimator = "gae"\n[[exclude]]\nestimator = "gae"\n'
    Path("grid.toml").write_text(text, encoding="utf-8")
    loud = run("grid.toml", "-e", "rloo", "-s", "0", "--set", "updates=1,1")
    for note in ("replaced by what was given", "matches no cell now", "dropped a repeated"):
        assert note in loud.stderr
    played["folders"].clear()
    shutil.rmtree("out")
    quiet = run("grid.toml", "-e", "rloo", "-s", "0", "--set", "updates=1,1", "-q")
    assert (quiet.exit_code, quiet.stderr) == (0, "")


def test_without_the_flag_nothing_is_repeated(played: dict[str, Any]) -> None:
    assert run().exit_code == 0
    assert len(played["folders"]) == 1


def test_an_interrupt_while_verifying_exits_so(played: dict[str, Any]) -> None:
    played["interrupt"] = True
    assert run("--verify", "1").exit_code == 130


@pytest.mark.parametrize("count", ["0", "-1", "x"])
def test_how_many_is_a_positive_number(played: dict[str, Any], count: str) -> None:
    done = run("--verify", count)
    assert (done.exit_code, played["folders"]) == (2, [])
    assert "--verify" in done.stderr


def test_what_a_killed_command_left_goes_and_findings_stay(played: dict[str, Any]) -> None:
    played["loss"] = {0: 2.0}
    run("--verify", "4")
    (kept,) = Path("out").glob("verify-*")
    (abandoned := Path("out/verify-abandoned")).mkdir()
    played["loss"] = {}
    played["folders"].clear()
    shutil.rmtree("out/runs")
    assert run("--verify", "1").exit_code == 0
    assert kept.is_dir()
    assert not abandoned.exists()


def test_a_folder_of_a_command_that_is_at_work_stays(played: dict[str, Any]) -> None:
    working = Path("out/verify-working")
    working.mkdir(parents=True)
    with FileLock(working / "lock"):
        assert run("--verify", "1").exit_code == 0
        assert working.is_dir()


def test_a_file_can_ask_for_it_and_the_flag_counts_more(played: dict[str, Any]) -> None:
    Path("grid.toml").write_text("verify = 3", "utf-8")
    assert "repeating 3 of 4 runs" in run("grid.toml").stderr
    shutil.rmtree("out")
    played["folders"].clear()
    done = run("grid.toml", "--verify", "1")
    assert "repeating 1 of 4 runs" in done.stderr
    assert "replaced by what was given beside grid.toml: verify" in done.stderr
    assert "  verify  3" in CliRunner().invoke(cli, ["plan", "grid.toml"]).stdout.splitlines()


def test_python_is_warned_of_other_numbers(played: dict[str, Any]) -> None:
    played["loss"] = {2: 1.5}
    with pytest.warns(UserWarning, match="was run again: .* loss 1.0 . 1.5") as heard:
        frame = rlbench.run(seeds=range(4), out="out", verify=4)
    assert len(heard) == 1
    assert list(frame["status"]) == ["ok"] * 4
    played["interrupt"] = True
    with pytest.raises(KeyboardInterrupt):
        rlbench.run(seeds=range(9, 11), out="out", verify=1)
