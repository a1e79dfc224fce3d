"""What a worker does with a checkpoint that it finds; the trainer is replaced."""

from __future__ import annotations

import json
import shutil

import pytest

from rlbench.grid import worker
from rlbench.grid.attempt import Flight, history, job_maker
from rlbench.grid.store import Store

from .conftest import make_plan

NUMBERS = {"score": 0.75, "score_start": 0.5, "kl": 0.125, "phases": {"base": 1.0}}


class Attempts:
    """A run that is tried again and again; `trained` says what the trainer does."""

    def __init__(self, root, monkeypatch):
        self.root, self.monkeypatch = root, monkeypatch
        self.store, self.run = Store(root), make_plan("3")[0]
        self.folder = self.store.run_folder(self.run.run_id)
        self.checkpoint = self.folder / "checkpoint.pt"

    def execute(self, trained=lambda *_: NUMBERS, **more):
        self.monkeypatch.setattr(worker, "train", trained)
        seen = self.store.stamp(self.run.run_id)
        flight = Flight(self.run, seen, history(self.store, self.run.run_id, seen))
        payload = job_maker(self.store, (), (), None, checkpoint_every=2)(flight).payload
        return worker.execute(json.loads(json.dumps(payload)) | more, lambda _: None)

    def log(self):
        return (self.folder / "log.txt").read_text("utf-8")


class Killed(BaseException):
    """As a signal would, without a result of the run's own."""


def killed_after(update, monkeypatch):
    """Train and save up to an update; the worker gets to write nothing more."""

    def train(spec, recorder, trackers, checkpoints):
        recorder.update({"update": update, "loss": 0.5})
        monkeypatch.setattr(worker, "_failure", lambda error: {"status": "killed", "error": None})
        write_checkpoint(checkpoints, recorder, update)
        raise Killed

    return train


def write_checkpoint(checkpoints, recorder, update):
    from rlbench.training import sealed

    content = {
        "identity": checkpoints._identity,
        "update": update,
        "spent_s": 100.0,
        "position": recorder.position(),
    }
    sealed.write(checkpoints._path, content)


@pytest.fixture
def attempts(tmp_path, monkeypatch):
    return Attempts(tmp_path, monkeypatch)


def test_what_was_written_is_still_there_for_a_run_that_goes_on(attempts, monkeypatch):
    attempts.execute(killed_after(4, monkeypatch))

    def train(spec, recorder, trackers, checkpoints):
        assert checkpoints.update == 4
        assert (attempts.folder / "metrics.csv").read_text() == "update,loss\n4,0.5\n"
        assert not attempts.store.record(attempts.run.run_id).complete
        recorder.rewind(checkpoints._found["position"])
        recorder.update({"update": 5, "loss": 0.25})
        return NUMBERS

    result = attempts.execute(train)
    assert result["status"] == "ok"
    assert (attempts.folder / "metrics.csv").read_text() == "update,loss\n4,0.5\n5,0.25\n"
    assert "going on after update 4" in attempts.log()
    assert 99 <= result["wall_s"] <= 130  # 100 s before, and none for the base policy


@pytest.mark.parametrize("error", [None, ValueError("no such thing")])
def test_a_complete_run_keeps_no_checkpoint(attempts, monkeypatch, error):
    attempts.execute(killed_after(4, monkeypatch))
    assert attempts.checkpoint.exists()
    monkeypatch.undo()

    def train(*_):
        if error:
            raise error
        return NUMBERS

    result = attempts.execute(train)
    assert result["status"] == ("failed" if error else "ok")
    assert not attempts.checkpoint.exists()


def test_a_torn_checkpoint_is_named_in_the_log_and_the_run_starts_anew(attempts, monkeypatch):
    attempts.execute(killed_after(4, monkeypatch))
    attempts.checkpoint.write_bytes(attempts.checkpoint.read_bytes()[:-9])
    monkeypatch.undo()

    def train(spec, recorder, trackers, checkpoints):
        assert checkpoints.update is None
        assert not (attempts.folder / "metrics.csv").exists()
        assert not attempts.checkpoint.exists()
        return NUMBERS

    result = attempts.execute(train)
    assert result["status"] == "ok"
    assert "the checkpoint can't be used: it is torn" in attempts.log()
    assert "going on" not in attempts.log()
    assert result["wall_s"] < 50


@pytest.mark.parametrize("what", ["run_id", "cpu_capability", "numpy", "schema"])
def test_a_checkpoint_of_another_run_or_machine_is_not_used(attempts, monkeypatch, what):
    attempts.execute(killed_after(4, monkeypatch))
    monkeypatch.undo()
    machine = worker.provenance.machine()
    if what == "schema":
        monkeypatch.setattr(worker, "SCHEMA", 99)
    elif what == "run_id":
        other = Attempts(attempts.root / "other", monkeypatch)
        other.run = make_plan("4")[0]
        other.folder = other.store.run_folder(other.run.run_id)
        other.folder.mkdir(parents=True)
        (other.folder / "checkpoint.pt").write_bytes(attempts.checkpoint.read_bytes())
        attempts = other
    else:
        monkeypatch.setattr(worker.provenance, "machine", lambda: {**machine, what: "another"})
    attempts.execute()
    assert f"the checkpoint can't be used: its {what} is" in attempts.log()


def test_a_folder_is_cleared_with_its_checkpoint(attempts, monkeypatch):
    attempts.execute(killed_after(4, monkeypatch))
    attempts.store.clear(attempts.run.run_id)
    assert [path.name for path in attempts.folder.iterdir()] == ["lock"]


def test_a_run_that_took_too_long_goes_on_when_it_is_asked_for_again(attempts, monkeypatch):
    result = attempts.execute(killed_after(4, monkeypatch))
    monkeypatch.undo()
    worker.write_json(attempts.folder / "result.json", result | {"status": "timeout"})
    assert attempts.store.record(attempts.run.run_id).complete
    told = []

    def train(spec, recorder, trackers, checkpoints):
        told.append(checkpoints.update)
        return NUMBERS

    assert attempts.execute(train)["status"] == "ok"
    assert told == [4]


def test_earlier_attempts_are_known_when_the_power_goes_in_the_middle_of_another(
    attempts, tmp_path
):
    """Nobody is left to write anything: what is on the disk while the run trains has to do."""
    run_id, disks = attempts.run.run_id, []

    def train(*_):
        disks.append(tmp_path / f"disk{len(disks)}")
        shutil.copytree(attempts.root / "runs", disks[-1] / "runs")
        raise ValueError(f"attempt {len(disks)}")

    for _ in range(3):
        attempts.execute(train)
    found = []
    for disk in disks:
        store = Store(disk)
        record = store.record(run_id)
        assert not record.complete
        assert record.problem is None
        found.append(history(store, run_id, store.stamp(run_id)))
    failures = [f"attempt {number}" for number in (1, 2)]
    gone = "its process was gone before it ended"
    told = [[e["error"]["message"] for e in one.get("earlier", [])] for one in found]
    assert told == [[], [*failures[:1], gone], [*failures, gone]]
    assert [one["attempts"] for one in found] == [1, 3, 4]
    assert found[2]["earlier"][-1]["status"] == "killed"


def test_a_first_attempt_leaves_no_result_before_it_ends(attempts):
    def train(*_):
        assert attempts.store.record(attempts.run.run_id).status == "missing"
        return NUMBERS

    assert attempts.execute(train)["status"] == "ok"
