from __future__ import annotations

import os
import threading
import time
from collections import Counter

import pytest

from rlbench.builtin.engines import Local
from rlbench.grid import supervisor
from rlbench.grid.experiment import build
from rlbench.grid.launch import plan
from rlbench.grid.store import write_json
from rlbench.grid.supervisor import Outcome, supervise
from rlbench.grid.watcher import Silent
from rlbench.plugin.loading import load

from .acting import Scripted, Watching
from .conftest import make_plan


def test_all_runs_are_done_once_and_the_watcher_hears_of_each(grid):
    watcher = Watching()
    outcome = grid.run("0-5", watcher)
    assert outcome == Outcome(ok=6, failed=0, skipped=0, interrupted=False, exit_code=0)
    assert grid.ran == Counter("012345")
    assert watcher.calls[0] == ("begin", 6, 0, 0)
    assert watcher.calls[-1] == ("end",)
    for seed in range(6):
        assert watcher.calls.index(("started", seed)) < watcher.calls.index(("ended", seed))
    assert all(record.status == "ok" for record in grid.store.read())


def test_the_same_again_does_nothing_and_starts_no_engine(grid):
    grid.run("0-2")
    watcher = Watching()

    class NoEngine:
        """Has no method at all."""

    outcome = grid.run("0-2", watcher, NoEngine())
    assert outcome == Outcome(ok=0, failed=0, skipped=3, interrupted=False, exit_code=0)
    assert watcher.calls == [("begin", 0, 3, 0), ("end",)]
    assert grid.ran == Counter("012")


def test_a_repeated_run_counts_once(grid):
    runs = make_plan("0") * 3
    outcome = supervise(
        runs,
        grid.store,
        Local(),
        workers=2,
        watcher=Silent(),
    )
    assert (outcome.ok, grid.ran) == (1, Counter("0"))


def test_only_what_is_missing_is_done(grid):
    grid.run("0-2")
    assert grid.run("0-4").ok == 2
    assert grid.ran == Counter("01234")


def test_failed_runs_are_complete_until_a_retry(grid):
    grid.acts(s1="fail")
    assert grid.run("0-2") == Outcome(ok=2, failed=1, skipped=0, interrupted=False, exit_code=1)
    assert grid.statuses("0-2") == ["ok", "failed", "ok"]
    grid.acts()
    # not every requested run is ok, so the command does not say that all is well
    assert grid.run("0-2") == Outcome(ok=0, failed=0, skipped=3, interrupted=False, exit_code=1)
    assert grid.run("0-2", retry=True) == Outcome(
        ok=1, failed=0, skipped=2, interrupted=False, exit_code=0
    )
    assert grid.ran == Counter("0112")


def test_a_worker_that_exits_fails_its_run_only_and_counts_as_tried(grid):
    """It must not vanish from the mean, nor run again with every command."""
    grid.acts(s2="exit")
    watcher = Watching()
    outcome = grid.run("0-5", watcher)
    assert (outcome.ok, outcome.failed, outcome.exit_code) == (5, 1, 1)
    lost = watcher.results[2]
    assert lost["status"] == "failed"
    assert lost["error"]["type"] == "Lost"
    assert "exited with code 9" in lost["error"]["message"]
    record = grid.store.record(make_plan("2")[0].run_id)
    assert record.result == lost
    assert record.spec["seed"] == 2  # although the worker had no time to write it
    assert record.result["floor"] == 0.25
    grid.acts()
    assert grid.run("0-5").exit_code == 1
    assert grid.ran == Counter("012345")
    assert grid.run("0-5", retry=True).ok == 1
    assert grid.ran == Counter("0122345")


def test_a_worker_that_is_killed_loses_its_run_only_and_it_runs_again(grid):
    grid.acts(s2="kill self")
    watcher = Watching()
    outcome = grid.run("0-5", watcher)
    assert outcome == Outcome(ok=5, failed=1, skipped=0, interrupted=False, exit_code=1)
    assert grid.statuses("0-5") == ["ok", "ok", "killed", "ok", "ok", "ok"]
    assert "ended by signal 9 (SIGKILL)" in watcher.results[2]["error"]["message"]
    grid.acts()
    assert grid.run("0-5") == Outcome(ok=1, failed=0, skipped=5, interrupted=False, exit_code=0)
    assert grid.ran == Counter("0122345")


def test_a_run_that_ends_by_a_signal_of_its_own_counts_as_tried(grid):
    """As one that was killed it would run again with every command, for ever."""
    grid.acts(s0="alarm")
    for skipped in (0, 1):
        assert grid.run("0").skipped == skipped
        result = grid.store.record(make_plan("0")[0].run_id).result
        assert result["status"] == "failed"
        assert "ended by signal 14 (SIGALRM)" in result["error"]["message"]
    assert grid.ran == Counter("0")


def test_a_worker_that_dies_after_its_last_word_has_done_its_run(grid):
    grid.acts(s0="die late")
    assert grid.run("0").ok == 1
    assert grid.statuses("0") == ["ok"]


@pytest.mark.parametrize("act", ["sleep", "hold"])
def test_a_run_over_its_time_is_complete_with_status_timeout(grid, act):
    grid.acts(s0=act)
    watcher = Watching()
    outcome = grid.run("0,1", watcher, timeout_s=0.5)
    assert (outcome.ok, outcome.failed) == (1, 1)
    assert watcher.results[0]["status"] == "timeout"
    assert watcher.results[0]["error"]["type"] == "Timeout"
    assert grid.statuses("0,1") == ["timeout", "ok"]
    assert grid.run("0,1", timeout_s=0.5).skipped == 2


def test_fail_fast_starts_nothing_more(grid):
    grid.acts(s0="fail")
    outcome = grid.run("0-5", workers=1, fail_fast=True)
    assert (outcome.failed, outcome.exit_code) == (1, 1)
    assert grid.ran == Counter("0")


def test_a_run_of_another_process_is_waited_for_and_taken_over(grid, monkeypatch):
    monkeypatch.setattr(supervisor, "POLL_S", 0.05)
    run = make_plan("0")[0]
    engine, watcher = Scripted({"0": {"status": "busy"}}), Watching()
    heard = threading.Event()
    watcher.waiting = lambda _: heard.set()
    outcomes = []
    with grid.store.locked(run.run_id) as folder:  # this thread is the other process
        thread = threading.Thread(target=lambda: outcomes.append(grid.run("0,1", watcher, engine)))
        thread.start()
        assert heard.wait(30)
        write_json(folder / "spec.json", supervisor.identity.canonical(run.spec))
        write_json(folder / "result.json", {"schema": 1, "run_id": run.run_id, "status": "ok"})
    thread.join()
    assert outcomes == [Outcome(ok=2, failed=0, skipped=0, interrupted=False, exit_code=0)]
    assert engine.submitted == ["0", "1"]
    assert watcher.results[0]["status"] == "ok"


def test_what_another_command_finished_meanwhile_is_taken_over_not_done_again(grid):
    """Its result came after the plan was made, before the run was started here."""
    run = make_plan("1")[0]

    class Late(Scripted):
        def submit(self, job):
            if not self.submitted:
                folder = grid.store.run_folder(run.run_id)
                folder.mkdir(parents=True)
                write_json(folder / "spec.json", supervisor.identity.canonical(run.spec))
                write_json(
                    folder / "result.json", {"schema": 1, "run_id": run.run_id, "status": "ok"}
                )
            self.seen = job.payload["seen"]
            super().submit(job)

    engine = Late({})
    grid.run("0,1", Watching(), engine, workers=1)
    # the worker compares this stamp with the result it finds, and hands that one back
    assert engine.submitted == ["0", "1"]
    assert engine.seen is None
    assert grid.store.stamp(run.run_id) is not None


def test_a_run_whose_sources_changed_is_not_started_under_its_old_name(grid, monkeypatch):
    engine, watcher = Scripted({}), Watching()
    real = supervisor.identity.canonical
    renamed = make_plan("0")[0].run_id

    def canonical(spec):
        found = real(spec)
        return found | {"run_id": "other"} if found["run_id"] == renamed else found

    monkeypatch.setattr(supervisor.identity, "canonical", canonical)
    outcome = grid.run("0,1", watcher, engine)
    assert engine.submitted == ["1"]
    assert (outcome.failed, outcome.renamed, outcome.exit_code) == (0, 1, 1)
    assert ("renamed", [0], []) in watcher.calls
    assert 0 not in watcher.results
    assert not grid.store.run_folder(renamed).exists()


class Editing(Scripted):
    """An engine that edits a source file as the first run begins."""

    def __init__(self, answers, file):
        super().__init__(answers)
        self.file = file

    def submit(self, job):
        if not self.submitted:
            text = self.file.read_text(encoding="utf-8")
            self.file.write_text(text.replace("return batch", "return 2 * batch"), encoding="utf-8")
            later = time.time() + 60  # whatever the clock of the file system is worth
            os.utime(self.file, (later, later))
        super().submit(job)


@pytest.fixture
def two_losses(tmp_path):
    """Three seeds of a loss that is edited, then two of one that is not."""
    file = tmp_path / "my_loss.py"
    file.write_text(
        "from rlbench import hookimpl\n\ndef mine(batch):\n    return batch\n\n"
        "@hookimpl\ndef rlbench_register_losses(register):\n"
        "    register('mine', ':mine', summary='A loss.')\n",
        encoding="utf-8",
    )
    registry = load([str(file)])
    mine = build(registry, selections={"loss": ["mine"]}, settings=[], seeds="0-2")
    return file, plan([*mine, *build(registry, selections={}, settings=[], seeds="3,4")])


def test_an_edited_plugin_is_told_once_and_the_rest_goes_on(grid, two_losses):
    file, runs = two_losses
    engine, watcher = Editing({}, file), Watching()
    outcome = supervise(runs, grid.store, engine, workers=1, watcher=watcher)
    assert engine.submitted == ["0", "3", "4"]
    assert [call for call in watcher.calls if call[0] == "renamed"] == [
        ("renamed", [1, 2], ["my_loss.py"])
    ]
    assert outcome == Outcome(ok=3, failed=0, skipped=0, interrupted=False, exit_code=1, renamed=2)


def test_a_run_whose_worker_finds_other_sources_is_no_failure(grid, two_losses):
    file, runs = two_losses
    changed = {"status": "killed", "error": {"type": "SourceChanged", "message": "x"}}
    engine, watcher = Editing({"0": changed}, file), Watching()
    outcome = supervise(runs, grid.store, engine, workers=1, watcher=watcher, retries=1)
    assert engine.submitted == ["0", "3", "4"]
    assert ("renamed", [0, 1, 2], ["my_loss.py"]) in watcher.calls
    assert (outcome.ok, outcome.failed, outcome.renamed, outcome.exit_code) == (2, 0, 3, 1)


def test_a_run_that_failed_before_its_sources_changed_is_a_failure_still(grid, two_losses):
    file, runs = two_losses
    engine, watcher = Editing({"0": {"status": "failed", "error": None}}, file), Watching()
    outcome = supervise(runs, grid.store, engine, workers=1, watcher=watcher, retries=1)
    assert (outcome.ok, outcome.failed, outcome.renamed) == (2, 1, 2)
    assert watcher.results[0]["status"] == "failed"


def test_a_result_without_a_readable_specification_is_done_again(grid):
    grid.run("0,1")
    folder = grid.store.run_folder(make_plan("0")[0].run_id)
    (folder / "spec.json").write_text('{"torn')
    assert grid.run("0,1") == Outcome(ok=1, failed=0, skipped=1, interrupted=False, exit_code=0)


def test_a_folder_that_can_not_be_written_can_be_read(grid, monkeypatch):
    grid.run("0")
    monkeypatch.setattr(type(grid.store), "check_writable", lambda _: 1 / 0)
    assert grid.run("0").skipped == 1


def test_a_run_whose_other_owner_died_is_done_here(grid, monkeypatch):
    monkeypatch.setattr(supervisor, "POLL_S", 0.0)
    engine = Scripted({"0": [{"status": "busy"}, {"status": "ok"}]})
    watcher = Watching()
    assert grid.run("0,1", watcher, engine).ok == 2
    assert ("waiting", 0) in watcher.calls
    assert Counter(engine.submitted) == Counter("001")


def test_a_result_that_could_not_be_written_is_told(grid):
    answer = {
        "status": "failed",
        "error": {"type": "OSError", "message": "No space left on device", "where": None},
        "stored": False,
    }
    watcher = Watching()
    outcome = grid.run("0", watcher, Scripted({"0": answer}))
    assert (outcome.failed, outcome.exit_code) == (1, 1)
    assert "No space left" in watcher.results[0]["error"]["message"]


def test_hundreds_of_runs_leave_nothing_in_memory(grid, monkeypatch):
    grids = []
    original = supervisor._Grid
    monkeypatch.setattr(
        supervisor, "_Grid", lambda **parts: grids.append(original(**parts)) or grids[0]
    )
    engine = Scripted({})
    assert grid.run("0-199", engine=engine, workers=3).ok == 200
    assert engine.most == 3
    for place in (grids[0].queue, grids[0].flight, grids[0].busy):
        assert not place


def test_a_result_that_its_worker_could_not_write_is_written_for_it(grid):
    grid.acts(s1="can't write")
    outcome = grid.run("0,1")
    assert (outcome.ok, outcome.failed) == (1, 1)
    record = grid.store.record(make_plan("1")[0].run_id)
    assert (record.status, record.complete) == ("failed", True)
    assert record.result["error"]["message"] == "x"
    assert "stored" not in record.result
    grid.run("0,1")
    assert grid.ran == Counter("01")  # it counts as tried
