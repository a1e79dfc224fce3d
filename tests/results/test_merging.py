"""`rlbench merge`: every run once, whole, and never in place of other numbers."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli
from rlbench.grid import merge as merging
from rlbench.grid.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

OTHER = "update,loss,reward\n1,0.5,0.25\n2,0.25,0.75\n"


@pytest.fixture
def a(tmp_path: Path) -> Path:
    return tmp_path / "a"


@pytest.fixture
def b(tmp_path: Path) -> Path:
    return tmp_path / "b"


def merge(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["merge", *map(str, arguments)])


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def test_runs_and_base_policies_of_two_folders_come_together(
    tmp_path: Path, a: Path, b: Path, write_run: Callable[..., Path]
) -> None:
    write_run(a, seed=0)
    write_run(a, seed=1)
    write_run(b, seed=1)
    write_run(b, seed=2, status="failed", metrics=None)
    (a / "base").mkdir()
    (a / "base" / "0123.pt").write_bytes(b"weights")
    before = files(a), files(b)
    done = merge(a, b, "-o", tmp_path / "all")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"3 copied, 1 there already; results in {tmp_path / 'all'}\n"
    assert files(tmp_path / "all") == before[0] | before[1]
    assert (files(a), files(b)) == before
    again = merge(a, b, "-o", tmp_path / "all")
    assert again.stderr.startswith("4 there already")
    assert files(tmp_path / "all") == before[0] | before[1]


def test_one_specification_with_other_numbers_is_named_and_not_mixed(
    a: Path, b: Path, write_run: Callable[..., Path]
) -> None:
    ours, theirs = write_run(a), write_run(b, metrics=OTHER)
    assert ours.name == theirs.name
    before = files(b)
    done = merge(a, "-o", b)
    assert done.exit_code == 1
    assert f"conflict: {ours.name}: the same specification gave different numbers" in done.stderr
    assert "metrics.csv parts at update 2: reward 0.75 | 0.5" in done.stderr
    assert files(b) == before


def test_times_and_machines_make_no_conflict(
    a: Path, b: Path, write_run: Callable[..., Path]
) -> None:
    write_run(a)
    write_run(b, result={"wall_s": 99.0, "provenance": {"cpu": "Other"}})
    assert "1 there already" in merge(a, "-o", b).stderr


def test_a_conflict_says_what_else_differs(
    a: Path, b: Path, write_run: Callable[..., Path]
) -> None:
    write_run(a, metrics=OTHER)
    write_run(b, result={"provenance": {"cpu": "Other CPU", "threads": 1, "rlbench": "0.1.0"}})
    assert "made with other cpu" in merge(a, "-o", b).stderr


@pytest.mark.parametrize(
    ("there", "given", "stays"),
    [
        (None, "ok", False),
        ("killed", "ok", False),
        ("killed", "failed", False),
        ("failed", "ok", False),
        ("ok", "failed", True),
        ("ok", None, True),
        ("failed", "killed", True),
        ("killed", None, True),
    ],
)
def test_the_better_run_stays(
    *,
    a: Path,
    b: Path,
    write_run: Callable[..., Path],
    there: str | None,
    given: str | None,
    stays: bool,
) -> None:
    present, other = write_run(b, status=there), write_run(a, status=given)
    (present / "log.txt").write_text("of the first", "utf-8")
    expected = files(present) if stays else files(other)
    assert merge(a, "-o", b).exit_code == 0
    assert files(present) == expected


def test_a_run_that_is_not_complete_comes_along_where_there_is_nothing(
    a: Path, b: Path, write_run: Callable[..., Path]
) -> None:
    killed = write_run(a, status="killed")
    (killed / "checkpoint.pt").write_bytes(b"state")
    done = merge(a, "-o", b)
    assert f"copied: {killed.name}: killed" in done.stderr
    assert files(b) == files(a)


def test_a_run_that_is_running_is_left(a: Path, b: Path, write_run: Callable[..., Path]) -> None:
    run = write_run(a, status=None)
    with Store(a).locked(run.name):
        done = merge(a, "-o", b)
    assert "it is running" in done.stderr
    assert not Store(b).record(run.name).spec


def test_foreign_things_and_other_versions_are_named_and_left(
    a: Path, b: Path, write_run: Callable[..., Path]
) -> None:
    good, old = write_run(a), write_run(a, schema=7)
    (a / "runs" / "notes.txt").write_text("mine", "utf-8")
    done = merge(a, "-o", b)
    assert done.exit_code == 0
    assert f"left: {old.name}" in done.stderr
    assert "has schema 7" in done.stderr
    assert "left: notes.txt" in done.stderr
    assert [path.name for path in (b / "runs").iterdir()] == [good.name]


def test_an_interrupted_merge_leaves_no_half_run_and_is_repeated(
    a: Path, b: Path, write_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(a)
    written: list[str] = []
    write = merging._write

    def fail_at_the_second(path: Path, content: bytes) -> None:
        written.append(path.name)
        if len(written) == 2:
            raise KeyboardInterrupt
        write(path, content)

    monkeypatch.setattr(merging, "_write", fail_at_the_second)
    assert merge(a, "-o", b).exit_code != 0
    assert not Store(b).record(run.name).complete
    monkeypatch.setattr(merging, "_write", write)
    # and as a kill leaves it, which cleans nothing up
    half = b / "runs" / f".merging-{run.name}"
    half.mkdir()
    (half / "metrics.csv").write_text("update,lo", "utf-8")
    assert merge(a, "-o", b).exit_code == 0
    assert files(b) == files(a)


def test_the_result_is_put_into_place_last(
    a: Path, b: Path, write_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(a)
    moved: list[str] = []
    replace = Path.replace

    def watch(self: Path, target: Path) -> Path:
        moved.append(Path(target).name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watch)
    merge(a, "-o", b)
    assert moved[-1] == "result.json"
    assert sorted(moved) == sorted(path.name for path in run.iterdir() if path.name != "lock")


def test_a_read_only_source_is_enough(
    a: Path, b: Path, write_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(a, status="killed")
    monkeypatch.setattr(merging.os, "access", lambda path, mode: False)
    step = list(merging.merge([Store(a)], _writable(b)))
    assert [one.what for one in step] == ["copied"]
    assert not (run / "lock").exists()


def _writable(out: Path) -> Store:
    store = Store(out)
    store.check_writable = lambda: None  # type: ignore[method-assign]  # os.access says no to all
    return store


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a"], "name the folder to merge into with -o"),
        (["a", "-o", "a"], "is the folder to merge into"),
        (["a", "-o", "file"], "is a file"),
        (["", "-o", "b"], "is empty"),
    ],
)
def test_mistakes_are_usage_errors_and_write_nothing(
    *,
    tmp_path: Path,
    a: Path,
    write_run: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    write_run(a)
    (tmp_path / "file").write_text("", "utf-8")
    before = files(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = merge(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert files(tmp_path) == before


@pytest.mark.parametrize("empty", ["nowhere", "empty"])
def test_a_folder_without_results_is_no_usage_error(
    tmp_path: Path, a: Path, write_run: Callable[..., Path], empty: str
) -> None:
    write_run(a)
    (tmp_path / "empty").mkdir()
    done = merge(a, tmp_path / empty, "-o", tmp_path / "b")
    shown = CliRunner().invoke(cli, ["table", str(tmp_path / empty)])
    assert (done.exit_code, shown.exit_code) == (3, 3)
    assert done.stderr == f"rlbench: no results in {tmp_path / empty}\n"
    assert not (tmp_path / "b").exists()


def test_a_merged_folder_does_not_run_again(
    a: Path, b: Path, write_run: Callable[..., Path]
) -> None:
    run = write_run(a)
    merge(a, "-o", b)
    shutil.rmtree(a)
    record = Store(b).record(run.name)
    assert record.complete
    assert json.loads((b / "runs" / run.name / "result.json").read_text())["score"] == 0.75


def test_a_full_disk_is_told_with_what_was_done(
    a: Path, b: Path, write_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(3):
        write_run(a, seed=seed)
    copied: list[str] = []

    def full(record: object, target: object) -> None:
        if copied:
            raise OSError(errno.ENOSPC, "No space left on device")
        copied.append("one")

    monkeypatch.setattr(merging, "_copy", full)
    done = merge(a, "-o", b)
    assert done.exit_code == 1
    assert "stopped: No space left on device; mend that, and the same command does" in done.stderr
    assert "so far 1 " in done.stderr
