from __future__ import annotations

import json
import math
import multiprocessing
import os

import numpy as np
import pytest

from rlbench.errors import UsageError
from rlbench.grid import store as store_module
from rlbench.grid.store import Busy, Store, strict, write_json

NAME = "group-clip-none-addition-s0-0123456789"


def write(store: Store, run_id: str = NAME, **files: object) -> None:
    folder = store.run_folder(run_id)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


def spec(run_id: str = NAME, **more: object) -> dict[str, object]:
    content = {"schema": 1, "run_id": run_id, "seed": 0, "components": {}, "settings": {}}
    return content | more


def result(status: str = "ok", **more: object) -> dict[str, object]:
    numbers = {"score": 0.25} if status == "ok" else {}
    return {"schema": 1, "run_id": NAME, "status": status, "error": None} | numbers | more


def test_nothing_is_there_before_something_is_written(tmp_path):
    store = Store(tmp_path / "out")
    assert store.read() == []
    record = store.record(NAME)
    assert (record.status, record.complete, record.problem) == ("missing", False, None)
    store.check_writable()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("status", "complete"),
    [
        ("ok", True),
        ("failed", True),
        ("diverged", True),
        ("timeout", True),
        ("killed", False),
        ("interrupted", False),
    ],
)
def test_the_status_says_whether_a_run_is_to_be_done_again(tmp_path, status, complete):
    store = Store(tmp_path)
    write(store, spec=spec(), result=result(status, score=0.5))
    (record,) = store.read()
    assert (record.status, record.complete, record.problem) == (status, complete, None)
    assert record.result["score"] == 0.5


def test_a_run_without_a_result_is_missing(tmp_path):
    store = Store(tmp_path)
    write(store, spec=spec())
    (record,) = store.read()
    assert (record.status, record.complete, record.problem) == ("missing", False, None)
    assert record.spec == spec()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "can't be read"),
        ('{"schema": 1, "status": "o', "can't be read"),
        ("[1]", "holds list, expected an object"),
        ("\x00\x01", "can't be read"),
        ("[" * 100_000, "can't be read"),
        ('{"schema": 1}', "has status None"),
        ('{"schema": 1, "status": "splendid"}', "has status 'splendid'"),
        ('{"schema": 1, "status": "ok", "score": NaN}', "NaN is no number in JSON"),
        ('{"schema": 1, "status": "ok", "score": -Infinity}', "-Infinity is no number"),
        ('{"schema": 1, "status": "ok", "score": 1e999}', "1e999 is too large"),
        ('{"schema": 1, "status": "ok", "score": true}', "has score='True', expected a finite"),
        ('{"schema": 1, "status": "ok", "score": 0.5, "kl": "a"}', "has kl='a', expected a finite"),
        ('{"schema": 1, "status": "ok", "score": [0.5]}', "has score='[0.5]', expected a finite"),
        (f'{{"schema": 1, "status": "ok", "score": 1{"0" * 400}}}', "expected a finite number"),
        ('{"schema": 1, "status": "failed", "floor": "0"}', "has floor='0', expected a finite"),
    ],
)
def test_a_torn_result_is_named_and_not_complete(tmp_path, text, reason):
    store = Store(tmp_path)
    write(store, spec=spec(), result=text)
    (record,) = store.read()
    assert (record.status, record.complete) == ("unreadable", False)
    assert reason in record.problem
    assert "result.json" in record.problem


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"seed": "7"}, "has seed '7', expected a whole number"),
        ({"seed": True}, "has seed True"),
        ({"seed": 7.5}, "has seed 7.5"),
        ({"components": {"loss": {"name": "clip"}}}, "which components"),
        ({"components": []}, "which components"),
        ({"settings": None}, "which settings"),
    ],
)
def test_a_specification_that_describes_no_run_is_named_and_the_run_done_again(
    tmp_path, more, reason
):
    store = Store(tmp_path)
    write(store, spec=spec(**more), result=result())
    (record,) = store.read()
    assert reason in record.problem
    assert record.spec is None
    assert not record.complete


def test_ok_without_a_score_is_named_and_kept(tmp_path):
    store = Store(tmp_path)
    write(store, spec=spec(), result=result(score=None))
    (record,) = store.read()
    assert "says ok without a score; it counts as failed" in record.problem
    assert record.complete


def test_what_is_not_there_is_not_looked_for_one_by_one(tmp_path, monkeypatch):
    store = Store(tmp_path)
    write(store, spec=spec(), result=result())
    opened = []
    monkeypatch.setattr(store, "record", opened.append)
    others = [f"group-clip-none-addition-s{seed}-aaaaaaaaaa" for seed in range(3)]
    assert [r and r.status for r in store.records([*others, NAME])] == ["missing"] * 3 + [None]
    assert opened == [NAME]


@pytest.mark.parametrize("place", ["out", "out/runs"])
def test_reading_a_folder_that_is_a_file_says_so(tmp_path, place):
    blocking = tmp_path / place
    blocking.parent.mkdir(parents=True, exist_ok=True)
    blocking.write_text("x")
    with pytest.raises(UsageError, match=f"{place} is a file"):
        Store(tmp_path / "out").read()


def test_a_torn_specification_does_not_hide_the_result(tmp_path):
    store = Store(tmp_path)
    write(store, spec="{", result=result())
    (record,) = store.read()
    assert (record.status, record.spec) == ("ok", None)
    assert "spec.json can't be read" in record.problem


def test_foreign_files_and_folders_are_named_and_disturb_nobody(tmp_path):
    store = Store(tmp_path)
    write(store, spec=spec(), result=result())
    (store.runs_folder / "notes.txt").write_text("x")
    (store.runs_folder / "old stuff").mkdir()
    (store.runs_folder / ".hidden").touch()
    other = "group-clip-none-addition-s0-aaaaaaaaaa"
    write(store, other, spec=spec(), result=result())  # a copy under another name
    problems = {record.run_id: record.problem for record in store.read()}
    assert problems.keys() == {NAME, other, "notes.txt", "old stuff"}
    assert problems[NAME] is None
    assert "is not the folder of a run" in problems["notes.txt"]
    assert "is not the folder of a run" in problems["old stuff"]
    assert f"belongs to run '{NAME}'" in problems[other]
    assert [record.run_id for record in store.read() if record.complete] == [NAME]


def test_another_schema_is_kept_and_marked(tmp_path):
    store = Store(tmp_path)
    write(store, spec=spec(), result=result(score=0.5) | {"schema": 2})
    (record,) = store.read()
    assert record.complete
    assert record.result["score"] == 0.5
    assert "has schema 2; this version of rlbench writes 1" in record.problem


@pytest.mark.parametrize("place", ["a", "a/out", "a/out/runs"])
def test_a_folder_that_is_a_file_is_refused_and_nothing_is_made(tmp_path, place):
    blocking = tmp_path / place
    blocking.parent.mkdir(parents=True, exist_ok=True)
    blocking.write_text("x")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match="is a file; name a folder with -o"):
        Store(tmp_path / "a" / "out").check_writable()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    with pytest.raises(UsageError, match="not writable"):
        Store(tmp_path / "out").check_writable()


def test_odd_folder_names_work(tmp_path):
    store = Store(tmp_path / "a b" / "ü 'quoted'\n")
    store.check_writable()
    with store.locked(NAME) as folder:
        write_json(folder / "result.json", result())
    assert [record.status for record in store.read()] == ["ok"]


def test_json_is_strict_and_in_utf_8(tmp_path):
    write_json(tmp_path / "a.json", {"text": "größer ≥"})
    assert "größer ≥" in (tmp_path / "a.json").read_bytes().decode("utf-8")
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"x": math.nan})
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == {"text": "größer ≥"}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_full_disk_leaves_no_half_written_file(tmp_path, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store_module.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_json(tmp_path / "result.json", result())
    assert list(tmp_path.iterdir()) == []


def test_values_become_strict_with_a_reason_for_each_that_is_lost():
    reasons: list[str] = []
    value = {
        "score": np.float32(0.5),
        "loss": math.nan,
        "phases": {"rollout": math.inf, "n": np.int64(3)},
        "list": (1, True, None, -math.inf),
        "path": NAME,
    }
    assert strict(value, reasons) == {
        "score": 0.5,
        "loss": None,
        "phases": {"rollout": None, "n": 3},
        "list": [1, True, None, None],
        "path": NAME,
    }
    assert reasons == ["loss was nan", "phases.rollout was inf", "list[3] was -inf"]


def _hold(root, started, release):
    with Store(root).locked(NAME):
        started.set()
        release.wait(30)


def test_a_run_has_one_writer_and_the_kernel_frees_the_lock_of_a_dead_one(tmp_path):
    context = multiprocessing.get_context("spawn")
    started, release = context.Event(), context.Event()
    owner = context.Process(target=_hold, args=(tmp_path, started, release))
    owner.start()
    try:
        assert started.wait(30)
        with (
            pytest.raises(Busy, match="belongs to another process"),
            Store(tmp_path).locked(NAME, timeout_s=0),
        ):
            pass
        owner.kill()
        with Store(tmp_path).locked(NAME):  # waits for the dying owner
            pass
    finally:
        owner.kill()
        owner.join()


def test_clearing_removes_an_attempt_and_keeps_the_lock(tmp_path):
    store = Store(tmp_path)
    with store.locked(NAME) as folder:
        for name in store_module.ATTEMPT:
            (folder / name).touch()
        (folder / ".result.json.new").touch()
        store.clear(NAME)
        assert [path.name for path in folder.iterdir()] == ["lock"]
