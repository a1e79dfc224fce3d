"""Runs that are tried again, by one command; how many failures are enough; engines that die."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest

from rlbench.grid.attempt import Flight, history, worth_another
from rlbench.grid.store import Store, write_json
from rlbench.grid.supervisor import Outcome
from rlbench.types import JobEvent

from .acting import Scripted, Watching
from .conftest import make_plan


class Counting(Watching):
    """Also writes down what is tried again."""

    def again(self, run, result):
        self.calls.append(("again", run.spec.seed, result["status"]))


def result_of(grid, seed: str) -> dict:
    return grid.store.record(make_plan(seed)[0].run_id).result


@pytest.mark.parametrize(
    ("act", "status", "options"),
    [
        ("fail", "failed", {}),
        ("exit", "failed", {}),
        ("kill self", "killed", {}),
        ("sleep", "timeout", {"timeout_s": 0.5}),
    ],
)
def test_a_run_that_does_not_end_well_is_tried_again(grid, act, status, options):
    grid.acts(s1=f"{act},{act},ok")
    watcher = Counting()
    outcome = grid.run("0-2", watcher, retries=2, **options)
    assert outcome == Outcome(ok=3, failed=0, skipped=0, interrupted=False, exit_code=0)
    assert grid.ran == Counter("01112")
    assert watcher.calls.count(("again", 1, status)) == 2
    assert watcher.calls.count(("ended", 1)) == 1


def test_a_result_counts_attempts_and_keeps_what_ended_the_earlier_ones(grid):
    grid.acts(s0="fail,exit,ok")
    grid.run("0,1", retries=2)
    assert result_of(grid, "1")["attempts"] == 1
    assert "earlier" not in result_of(grid, "1")
    result = result_of(grid, "0")
    assert (result["status"], result["attempts"]) == ("ok", 3)
    first, second = result["earlier"]
    assert first == {"status": "failed", "error": {"type": "ValueError", "message": "x"}}
    assert "exited with code 9" in second["error"]["message"]


def test_attempts_are_counted_over_commands_too(grid):
    grid.acts(s0="fail,fail,exit,ok")
    for attempts in (1, 2, 3):  # the third is noted by the supervisor, for a worker that is gone
        grid.run("0", retry=True)
        assert result_of(grid, "0")["attempts"] == attempts
        assert len(result_of(grid, "0").get("earlier", [])) == attempts - 1
    grid.run("0", retry=True)
    result = result_of(grid, "0")
    assert (result["status"], result["attempts"], len(result["earlier"])) == ("ok", 4, 3)


def test_a_run_that_keeps_failing_ends_with_its_last_failure(grid):
    grid.acts(s0="fail")
    watcher = Counting()
    outcome = grid.run("0,1", watcher, retries=2)
    assert (outcome.ok, outcome.failed, outcome.exit_code) == (1, 1, 1)
    assert grid.ran == Counter("0001")
    assert watcher.results[0]["attempts"] == 3


def test_a_run_that_diverged_would_diverge_again(grid):
    grid.acts(s0="diverge")
    assert grid.run("0", retries=3).failed == 1
    assert grid.ran == Counter("0")


def test_without_retries_nothing_is_tried_again(grid):
    grid.acts(s0="fail")
    grid.run("0")
    assert grid.ran == Counter("0")


@pytest.mark.parametrize(("most", "ran"), [(1, "0"), (2, "01"), (5, "01234"), (None, "012345")])
def test_nothing_more_is_started_after_so_many_failures(grid, most, ran):
    grid.acts(**{f"s{seed}": "fail" for seed in range(6)})
    outcome = grid.run("0-5", workers=1, max_failures=most)
    assert (outcome.failed, outcome.exit_code) == (len(ran), 1)
    assert grid.ran == Counter(ran)


def test_failures_are_counted_before_others_are_started(grid):
    grid.acts(s0="fail", s1="fail", s2="fail", s3="fail")
    outcome = grid.run("0-3", workers=1, retries=1, max_failures=1)
    assert grid.ran == Counter("00")
    assert (outcome.failed, outcome.exit_code) == (1, 1)


def test_a_failure_that_a_retry_mends_is_none(grid):
    grid.acts(s0="fail,ok", s1="fail,ok")
    assert grid.run("0-3", workers=1, max_failures=1, retries=1).ok == 4


def interrupt_when(watcher: Watching, condition) -> None:
    """Press Ctrl-C once, as soon as it is so."""

    def look():
        if condition():
            watcher.on_progress = lambda: None
            os.kill(os.getpid(), signal.SIGINT)

    watcher.on_progress = look


@pytest.mark.parametrize(
    ("act", "status", "message"),
    [
        ("fail", "failed", "x"),
        ("exit", "failed", "exited with code 9"),
        ("kill self", "killed", "signal 9 (SIGKILL)"),
    ],
)
def test_a_run_that_waits_to_be_tried_again_is_interrupted_like_one_in_flight(
    grid, act, status, message
):
    """Its failure was not its end yet; the same command goes on with it."""
    grid.acts(s0=f"{act},ok", s1="sleep")
    watcher = Counting()
    interrupt_when(watcher, lambda: ("again", 0, status) in watcher.calls)  # and 1 sleeps
    outcome = grid.run("0-2", watcher, workers=1, retries=2)
    assert (outcome.failed, outcome.interrupted, outcome.exit_code) == (0, True, 130)
    assert {seed: watcher.results[seed]["status"] for seed in watcher.results} == {
        0: "interrupted",
        1: "interrupted",
    }
    assert watcher.calls.count(("ended", 0)) == 1
    result = result_of(grid, "0")
    assert (result["status"], result["attempts"]) == ("interrupted", 1)
    assert message in result["error"]["message"]
    grid.acts()
    assert grid.run("0-2") == Outcome(ok=3, failed=0, skipped=0, interrupted=False, exit_code=0)
    result = result_of(grid, "0")
    assert result["attempts"] == 2
    assert message in result["earlier"][0]["error"]["message"]


# --- an engine that dies --------------------------------------------------------------------------


def test_a_dead_engine_costs_its_runs_nothing_but_time(grid):
    grid.acts(s1="kill server,ok")
    watcher = Counting()
    outcome = grid.run("0-4", watcher)
    assert outcome == Outcome(ok=5, failed=0, skipped=0, interrupted=False, exit_code=0)
    assert ("again", 1, "killed") in watcher.calls
    result = result_of(grid, "1")
    assert result["attempts"] == 2
    assert "the fork server died" in result["earlier"][0]["error"]["message"]


def test_a_run_that_takes_the_engine_down_is_named_and_its_neighbours_are_done(grid):
    grid.acts(s1="kill server", s2="ok")
    watcher = Counting()
    outcome = grid.run("0-5", watcher, workers=3)
    assert (outcome.ok, outcome.failed) == (5, 1)
    assert watcher.results[1]["status"] == "killed"
    assert "the fork server died" in watcher.results[1]["error"]["message"]
    assert grid.ran["1"] in (2, 3)  # the second time it may have had company
    grid.acts()
    assert grid.run("0-5").ok == 1  # killed is not complete


class Dying(Scripted):
    """Dies as told: the seeds that are in flight when it does, one list for each death."""

    def __init__(self, *deaths: set[str]) -> None:
        super().__init__({})
        self.deaths = list(deaths)
        self.company: list[set[str]] = []

    def events(self, timeout_s):
        seeds = {str(job.payload["spec"]["seed"]) for job in self.jobs}
        self.company.append(seeds)
        if self.deaths and seeds == self.deaths[0]:
            self.deaths.pop(0)
            jobs, self.jobs = self.jobs, []
            return [lost(job.id) for job in jobs]
        return super().events(timeout_s)


def lost(job: str):
    value = {"status": "killed", "reason": "the engine died", "engine_died": True}
    return JobEvent(job=job, what="lost", value=value)


def test_after_two_deaths_runs_go_one_by_one_and_the_innocent_are_done(grid):
    engine = Dying({"0", "1"}, {"0", "1"}, {"1"})
    watcher = Counting()
    outcome = grid.run("0-3", watcher, engine)
    assert not engine.deaths
    assert (outcome.ok, outcome.failed) == (3, 1)
    assert watcher.results[1]["status"] == "killed"
    # in pairs twice, then alone until it is known whose fault it is, then in pairs again
    seen = [seeds for seeds in engine.company if seeds]
    assert seen[:2] == [{"0", "1"}, {"0", "1"}]
    assert {"0"} in seen
    assert {"1"} in seen
    assert {"2", "3"} in seen


def test_a_run_alone_is_to_blame_at_its_second_death(grid):
    engine = Dying({"0"}, {"0"})
    outcome = grid.run("0,1", Watching(), engine, workers=1)
    assert (outcome.ok, outcome.failed) == (1, 1)
    assert Counter(engine.submitted) == Counter("001")


def test_dead_engines_are_not_counted_as_retries(grid):
    engine = Dying({"0"})
    engine.answers = Scripted({"0": [{"status": "failed"}, {"status": "ok"}]}).answers
    outcome = grid.run("0", Watching(), engine, workers=1, retries=1)
    assert outcome.ok == 1
    assert engine.submitted == ["0"] * 3


# --- what is known of earlier attempts -----------------------------------------------------------


def test_only_the_last_attempts_are_kept(tmp_path):
    store, (run,) = Store(tmp_path), make_plan("0")
    flight = Flight(run, None, history(store, run.run_id, None))
    assert flight.history == {"attempts": 1}
    with store.locked(run.run_id) as folder:
        for number in range(1, 31):
            error = {"type": "ValueError", "message": str(number), "where": None}
            result = {"schema": 1, "run_id": run.run_id, "status": "failed", "error": error}
            write_json(folder / "result.json", result | flight.history)
            flight.history = history(store, run.run_id, store.stamp(run.run_id))
    assert flight.history["attempts"] == 31
    assert [e["error"]["message"] for e in flight.history["earlier"]] == [
        str(number) for number in range(21, 31)
    ]


@pytest.mark.parametrize("attempts", ["many", None, -3, 0, True])
def test_a_count_that_somebody_edited_is_no_obstacle(tmp_path, attempts):
    store, (run,) = Store(tmp_path), make_plan("0")
    with store.locked(run.run_id) as folder:
        result = {"schema": 1, "run_id": run.run_id, "status": "failed", "attempts": attempts}
        write_json(folder / "result.json", result | {"earlier": "none"})
    found = history(store, run.run_id, store.stamp(run.run_id))
    assert found == {"attempts": 2, "earlier": [{"status": "failed", "error": None}]}


def test_changed_sources_stay_changed(grid):
    changed = {"status": "killed", "error": {"type": "SourceChanged", "message": "x"}}
    assert not worth_another(changed)
    assert worth_another(changed | {"error": None})
