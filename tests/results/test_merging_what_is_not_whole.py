"""`rlbench merge` of runs that are not whole, of races, and cut short: nothing is lost unsaid."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli
from rlbench.errors import UsageError
from rlbench.grid import merge as merging
from rlbench.grid.race import Pair, RacePlan, key_of
from rlbench.grid.race_file import bring, enter, races_of, spent_by_race
from rlbench.grid.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def a(tmp_path: Path) -> Path:
    return tmp_path / "a"


@pytest.fixture
def b(tmp_path: Path) -> Path:
    return tmp_path / "b"


def merge(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["merge", *map(str, arguments)])


def names(out: Path) -> list[str]:
    return sorted(path.name for path in (out / "runs").iterdir())


@pytest.mark.parametrize("file", ["evals.csv", "metrics.csv", "samples.jsonl"])
@pytest.mark.parametrize(
    ("make", "sort"),
    [(os.mkfifo, "a FIFO"), (os.mkdir, "a folder"), (lambda p: p.symlink_to("x"), "a link to no")],
)
def test_what_is_no_file_of_a_run_leaves_the_run_and_is_named(
    *, a: Path, b: Path, write_run: Callable[..., Path], file: str, make: Any, sort: str
) -> None:
    good, odd = write_run(a, seed=0), write_run(a, seed=1)
    (odd / file).unlink(missing_ok=True)
    make(odd / file)
    for count in ("1 copied", "1 there already"):
        done = merge(a, "-o", b)
        assert done.exit_code == 1
        assert f"not whole: {odd.name}: {odd / file} is {sort}" in done.stderr
        last = done.stderr.splitlines()[-1]
        assert sorted(last.partition(";")[0].split(", ")) == sorted([count, "1 left as not whole"])
        assert names(b) == [good.name]
    (odd / file).rmdir() if sort == "a folder" else (odd / file).unlink()
    assert merge(a, "-o", b).exit_code == 0
    assert names(b) == sorted([good.name, odd.name])


@pytest.mark.parametrize("file", ["evals.csv", "spec.json", "result.json"])
@pytest.mark.parametrize("there", [False, True])
def test_a_file_that_may_not_be_read_is_named_and_the_others_are_copied(
    *,
    a: Path,
    b: Path,
    write_run: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    there: bool,
) -> None:
    """The system's refusal is played: whoever tests as root is refused nothing."""
    runs = sorted(write_run(a, seed=seed) for seed in range(3))
    for run in runs:
        (run / "evals.csv").write_text("update,score\n2,0.75\n", "utf-8")
    if there:  # then it is no conflict either: nobody knows what is in the file
        merge(a, "-o", b)
    opened = os.open

    def refuse(path: Any, *rest: Any, **named: Any) -> int:
        if str(path) == str(runs[0] / file):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)
    done = merge(a, "-o", b)
    assert done.exit_code == 1
    said = f"not whole: {runs[0].name}: {runs[0] / file} can't be read: "
    (line,) = (line for line in done.stderr.splitlines() if line.startswith(said))
    assert "Permission denied" in line
    count = "2 there already" if there else "2 copied"
    assert done.stderr.splitlines()[-1].startswith(f"1 left as not whole, {count};")
    assert names(b) == [run.name for run in runs[0 if there else 1 :]]


def test_what_else_lies_beside_a_run_is_named_and_the_run_copied(
    a: Path, b: Path, write_run: Callable[..., Path]
) -> None:
    run = write_run(a)
    (run / "notes").mkdir()
    os.mkfifo(run / "pipe")
    (run / "mine.txt").write_text("mine", "utf-8")
    done = merge(a, "-o", b)
    assert done.exit_code == 0
    assert f"copied: {run.name}: without notes, a folder, pipe, a FIFO" in done.stderr
    assert (b / "runs" / run.name / "mine.txt").read_text("utf-8") == "mine"


def test_a_folder_that_is_full_is_named(
    a: Path, b: Path, write_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(a)

    def full(path: Path, content: bytes) -> None:
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr(merging, "_write", full)
    done = merge(a, "-o", b)
    assert done.exit_code == 1
    assert f"stopped: Read-only file system ({b / 'runs'}" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_told_with_what_was_done(
    a: Path,
    b: Path,
    write_run: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
) -> None:
    for seed in range(3):
        write_run(a, seed=seed)
    copy = merging._copy

    def hear(record: Any, target: Any) -> None:
        if len(list((b / "runs").glob("*/result.json"))) == 2:
            os.kill(os.getpid(), number)
        copy(record, target)

    monkeypatch.setattr(merging, "_copy", hear)
    done = merge(a, "-o", b)
    assert done.exit_code == 130
    assert done.stderr == (
        f"interrupted; the same command does the rest; so far 2 copied; results in {b}\n"
    )
    monkeypatch.setattr(merging, "_copy", copy)
    assert "2 there already, 1 copied" in merge(a, "-o", b).stderr


def test_a_run_without_a_result_that_was_cut_short_is_copied_again(
    a: Path, b: Path, write_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its specification comes last: a run that has one but not the rest would stay as it is."""
    run = write_run(a, status=None)
    (run / "checkpoint.pt").write_bytes(b"state")
    moved: list[str] = []
    replace = Path.replace

    def cut(self: Path, target: Path) -> Path:
        moved.append(Path(target).name)
        if len(moved) == 2:
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", cut)
    assert merge(a, "-o", b).exit_code == 130
    monkeypatch.setattr(Path, "replace", replace)
    assert merge(a, "-o", b).exit_code == 0
    there = sorted(path.name for path in (b / "runs" / run.name).iterdir() if path.name != "lock")
    assert there == ["checkpoint.pt", "metrics.csv", "spec.json"]


# --- races ----------------------------------------------------------------------------------------


@pytest.fixture
def raced(a: Path, write_run: Callable[..., Path]) -> RacePlan:
    """Race two cells at seeds 0 to 5 in a, with one run seen before."""
    clip = write_run(a)
    pg = write_run(a, components={"loss": {"name": "pg", "label": "pg"}})
    keys = [key_of(Store(a).record(run.name).spec or {}) for run in (pg, clip)]
    plan = RacePlan(pairs=(Pair(cell=keys[0], other=keys[1]),), seeds=tuple(range(6)), looks=2)
    enter(a, plan, {0: 1})
    return plan


def specs(out: Path) -> list[dict[str, Any]]:
    return [record.spec for record in Store(out).read() if record.spec]


def test_the_plan_of_a_race_comes_along(a: Path, b: Path, raced: RacePlan) -> None:
    done = merge(a, "-o", b)
    assert done.exit_code == 0
    assert f"copied: {a / 'race.json'}: 1 plan of a race" in done.stderr
    assert "2 copied;" in done.stderr
    assert [(entry.plan, entry.seen) for entry in races_of(b)] == [(raced, 1)]
    assert spent_by_race(b, specs(b))
    before = (b / "race.json").read_bytes()
    assert merge(a, "-o", b).stderr == f"2 there already; results in {b}\n"
    assert (b / "race.json").read_bytes() == before
    shown = CliRunner().invoke(cli, ["compare", str(b), "--baseline", "clip"])
    assert f"{b} has a race: its seeds were spent" in " ".join(shown.output.split())


def test_the_plan_is_there_before_the_first_run(
    a: Path, b: Path, raced: RacePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(merging, "_run", cut)
    done = merge(a, "-o", b)
    assert (done.exit_code, "so far no run" in done.stderr) == (130, True)
    assert [entry.plan for entry in races_of(b)] == [raced]


def test_where_nobody_raced_no_plan_is_made(
    a: Path, b: Path, write_run: Callable[..., Path]
) -> None:
    write_run(a)
    merge(a, "-o", b)
    assert [path.name for path in b.iterdir()] == ["runs"]


def test_other_plans_for_the_same_are_both_kept_and_named(
    a: Path, b: Path, raced: RacePlan
) -> None:
    other = RacePlan(pairs=raced.pairs, seeds=tuple(range(9)), looks=3, margin=0.5)
    enter(b, other, {})
    done = merge(a, "-o", b)
    assert done.exit_code == 0
    said = "3 looks there, 2 looks here; seeds 0-8 there, 0-5 here; margin 0.5 there, no margin"
    assert f"{a / 'race.json'}: of a race that was planned otherwise there: {said}" in done.stderr
    assert [entry.plan for entry in races_of(b)] == [other, raced]
    merge(a, "-o", b)
    assert [entry.plan for entry in races_of(b)] == [other, raced]


def test_of_one_race_the_longer_pool_and_the_more_that_was_seen_count(a: Path, b: Path) -> None:
    pairs = (Pair(cell="x", other="y"),)
    short, long = (RacePlan(pairs=pairs, seeds=tuple(range(n)), looks=None) for n in (20, 50))
    enter(a, long, {0: 1})
    enter(b, short, {0: 2, 1: 2})
    assert bring(a, b) == (0, [])
    assert [(entry.plan, entry.seen) for entry in races_of(b)] == [(long, 4)]
    assert [(entry.plan, entry.seen) for entry in races_of(a)] == [(long, 1)]


@pytest.mark.parametrize("torn", ["a", "b"])
def test_plans_that_can_t_be_read_stop_a_merge_before_anything_is_copied(
    tmp_path: Path, a: Path, b: Path, write_run: Callable[..., Path], torn: str
) -> None:
    write_run(a)
    (tmp_path / torn).mkdir(exist_ok=True)
    (tmp_path / torn / "race.json").write_text("{", "utf-8")
    done = merge(a, "-o", b)
    assert done.exit_code == 2
    assert f"{tmp_path / torn / 'race.json'}: no plans of races can be read there" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (b / "runs").exists()
    with pytest.raises(UsageError, match=r"race\.json"):
        bring(a, b)
