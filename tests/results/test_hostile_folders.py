"""Whatever lies where results are: named, and in nobody's way."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlbench.cli import cli
from rlbench.grid import reading
from rlbench.grid.store import Store

if TYPE_CHECKING:
    from pathlib import Path

ID = "group-clip-s0-0123456789"


def test_a_fifo_is_not_waited_for(tmp_path: Path, write_run) -> None:
    write_run(tmp_path, seed=1)
    folder = tmp_path / "runs" / ID
    folder.mkdir()
    os.mkfifo(folder / "spec.json")
    os.mkfifo(folder / "result.json")
    record = Store(tmp_path).record(ID)
    assert record.status == "unreadable"
    assert "result.json is a FIFO, where a file of the run belongs" in (record.problem or "")
    done = CliRunner().invoke(cli, ["table", str(tmp_path)])
    assert (done.exit_code, "1/1" in done.stdout) == (0, True)


@pytest.mark.parametrize("name", ["metrics.csv", "verified.json"])
def test_a_fifo_among_the_files_of_a_run_is_not_waited_for(
    tmp_path: Path, write_run, name: str
) -> None:
    folder = write_run(tmp_path)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    assert CliRunner().invoke(cli, ["table", str(tmp_path)]).exit_code == 0
    done = CliRunner().invoke(cli, ["export", str(tmp_path), "--curves"])
    assert done.exit_code == (3 if name == "metrics.csv" else 0)
    assert reading.digest(folder / name) is None


def test_folders_links_in_a_circle_and_links_to_nowhere(tmp_path: Path, write_run) -> None:
    good = write_run(tmp_path, seed=1)
    (good / "notes").mkdir()  # inside of a run
    runs = tmp_path / "runs"
    (runs / "old" / "deep").mkdir(parents=True)
    (runs / ID).symlink_to(ID)
    (runs / ID.replace("s0", "s2")).symlink_to("nowhere")
    looped = runs / ID.replace("s0", "s3")
    looped.mkdir()
    (looped / "spec.json").symlink_to("spec.json")
    (looped / "result.json").mkdir()
    records = {record.run_id: record for record in Store(tmp_path).read()}
    assert records.pop(good.name).problem is None
    assert len(records) == 4
    assert all(record.problem and not record.complete for record in records.values())
    done = CliRunner().invoke(cli, ["table", str(tmp_path)])
    assert (done.exit_code, done.exception) == (0, None)
    assert len(done.stderr.splitlines()) == 4


@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_may_not_be_read_is_named(
    tmp_path: Path, write_run, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The system's refusal is played: whoever tests as root is refused nothing."""
    good, locked = write_run(tmp_path, seed=0), write_run(tmp_path, seed=1)
    opened, looked = os.open, type(locked).stat

    def refuse_open(path, *rest, **named):
        if str(path).startswith(str(locked)):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *rest, **named)

    def refuse_stat(path, *rest, **named):
        if what == "folder" and path.is_relative_to(locked):
            raise PermissionError(13, "Permission denied", str(path))
        return looked(path, *rest, **named)

    monkeypatch.setattr(os, "open", refuse_open)
    monkeypatch.setattr(type(locked), "stat", refuse_stat)
    records = {record.run_id: record for record in Store(tmp_path).read()}
    assert records[good.name].status == "ok"
    assert str(locked) in (records[locked.name].problem or "")
    assert not records[locked.name].complete


def test_what_seeds_share_is_one_object_and_says_the_same(tmp_path: Path, write_run) -> None:
    folders = [write_run(tmp_path, seed=seed) for seed in range(2)]
    read = [reading.read_object(folder / "spec.json")[0] for folder in folders]
    assert read == [json.loads((folder / "spec.json").read_text()) for folder in folders]
    assert read[0]["components"] is read[1]["components"]


def test_what_seeds_share_is_judged_once_and_every_seed_hears_of_it(
    tmp_path: Path, write_run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_judged", {})
    judged: list[object] = []
    plain = reading._is_plain
    monkeypatch.setattr(reading, "_is_plain", lambda found: judged.append(found) or plain(found))
    good = [write_run(tmp_path, seed=seed) for seed in range(3)]
    bad = [write_run(tmp_path, seed=seed, settings={"lr": [1]}) for seed in range(3)]
    records = {record.run_id: record for record in Store(tmp_path).read()}
    # two cells: their settings, and options and owners of six kinds, each looked at once
    assert len(judged) == 2 * (1 + 6 * 2)
    assert all(records[folder.name].problem is None for folder in good)
    problem = "does not say which settings the run has"
    assert all(problem in (records[folder.name].problem or "") for folder in bad)


@pytest.mark.parametrize(
    "text",
    [
        '{"schema": 1, "run_id": "a-0123456789", "seed": 0, "seed": 7, "schema": 2}',
        '{"schema": 1, "run_id": "a-0123456789", "seed": 3, "run_id": "b"}',
        '{"seed": 3, "schema": 1, "run_id": "a"}',
        '{"schema": 1, "run_id": "\\u0061", "seed": 3, "b": [1.5]}',
    ],
)
def test_the_quick_way_of_reading_reads_what_json_says(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, "utf-8")
    assert reading.read_object(tmp_path / "x.json") == (json.loads(text), None)


@pytest.mark.parametrize(
    "text",
    [
        '{"schema": 1, "run_id": "a", "seed": 007, "b": 1}',
        '{"schema": 1, "run_id": "a", "seed": 7,}',
        '{"schema": 1, "run_id": "a", "seed": 7, "b": NaN}',
        '{"schema": 1, "run_id": "a", "seed": 7, "b": 1} x',
    ],
)
def test_the_quick_way_of_reading_refuses_what_is_no_json(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, "utf-8")
    content, problem = reading.read_object(tmp_path / "x.json")
    assert content is None
    assert "can't be read" in (problem or "")


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("spec.json", {"settings": {"lr": {"a": 1}}}),
        ("spec.json", {"settings": {"lr": [1]}}),
        ("spec.json", {"torch": 2}),
        ("spec.json", {"components": {"loss": {"label": 1}}}),
        ("spec.json", {"components": {"loss": {"label": "clip", "options": {"eps": []}}}}),
        ("spec.json", {"components": {"loss": {"label": "clip", "owner": "me"}}}),
        ("result.json", {"provenance": "x"}),
        ("result.json", {"error": "x"}),
        ("result.json", {"phases": 1}),
        ("result.json", {"tokens": 1.5}),
        ("result.json", {"tokens": 2**70}),
    ],
)
def test_a_value_of_another_shape_costs_nothing_but_its_run(
    tmp_path: Path, write_run, file: str, change: dict[str, object]
) -> None:
    write_run(tmp_path, seed=1)
    edited = write_run(tmp_path)
    content = json.loads((edited / file).read_text("utf-8")) | change
    (edited / file).write_text(json.dumps(content), "utf-8")
    for command in (["table", str(tmp_path)], ["export", str(tmp_path)]):
        done = CliRunner().invoke(cli, command)
        assert done.exit_code == 0, done.exception
        assert f"{edited / file} " in done.stderr + done.stdout
    shown = CliRunner().invoke(cli, ["show", "run", "-o", str(tmp_path), edited.name])
    assert isinstance(shown.exception, (SystemExit, type(None)))


CURVE = "update,loss\n1,0.5\n"


def test_a_curve_that_was_changed_is_named_and_goes_nowhere(tmp_path: Path, write_run) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    digest = hashlib.sha256(CURVE.encode()).hexdigest()
    good = write_run(out, seed=1, metrics=CURVE, result={"metrics_sha256": digest})
    bad = write_run(out, seed=2, metrics=CURVE, result={"metrics_sha256": digest})
    gone = write_run(out, seed=3, result={"metrics_sha256": digest}, metrics=None)
    (bad / "metrics.csv").write_text(CURVE.replace("0.5", "0.7"), "utf-8")
    problem = f"{bad / 'metrics.csv'} is not what the run wrote"
    done = CliRunner().invoke(cli, ["export", str(out), "--curves"])
    assert f"without a curve: {problem}" in done.stderr
    assert good.name in done.stdout
    assert bad.name not in done.stdout
    done = CliRunner().invoke(cli, ["merge", str(out), "-o", str(other)])
    assert problem in done.stderr
    assert {folder.name for folder in (other / "runs").iterdir()} == {good.name, gone.name}
    shown = CliRunner().invoke(cli, ["show", "run", "-o", str(out), bad.name])
    assert " ".join(problem.split("/")[-1:]) in " ".join(shown.stdout.split())
