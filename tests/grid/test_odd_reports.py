"""What a process tells of its run is looked at before it is believed: strangers' code ran there."""

from __future__ import annotations

import math

import pytest

from rlbench.grid.supervisor import Outcome
from rlbench.types import JobEvent

from .acting import Scripted, Watching
from .conftest import make_plan


class Reporting(Scripted):
    """Says something before each result."""

    def __init__(self, reports, answers=None):
        super().__init__(answers or {})
        self.reports = reports

    def events(self, timeout_s):
        job = self.jobs[0].id if self.jobs else None
        events = super().events(timeout_s)
        told = [JobEvent(job=job, what="progress", value=value) for value in self.reports]
        return [*told, *events] if job else events


class Writing(Watching):
    """Writes down how far runs are."""

    def __init__(self):
        super().__init__()
        self.told: list[tuple] = []

    def progress(self, run, done, total, phase):
        self.told.append((done, total, phase))


def test_reports_that_tell_nothing_are_passed_over(grid):
    sense = {"done": 1, "total": 2, "phase": "training"}
    nonsense = [
        {},
        {"done": 1},
        {"hello": "world"},
        *({name: value for name, value in sense.items() if name != left} for left in sense),
        *(sense | {name: odd} for name in ("done", "total") for odd in ("1", None, 1.5, [1])),
        *(sense | {"phase": odd} for odd in (None, 7, {})),
    ]
    watcher = Writing()
    assert grid.run("0,1", watcher, Reporting([*nonsense, sense]), workers=1) == Outcome(
        ok=2, failed=0, skipped=0, interrupted=False, exit_code=0
    )
    assert watcher.told == [(1, 2, "training")] * 2


@pytest.mark.parametrize(
    "odd", ["low", [], {}, True, math.nan, math.inf, pytest.param(10**400, id="huge")]
)
def test_a_floor_that_is_no_number_is_not_taken(grid, odd):
    answers = {"0": {"status": "nonsense"}}  # so that the supervisor writes the result
    grid.run("0", Watching(), Reporting([{"floor": 0.5}, {"floor": odd}], answers))
    record = grid.store.record(make_plan("0")[0].run_id)
    assert record.result["floor"] == 0.5
    assert record.complete


@pytest.mark.parametrize(
    ("odd", "fault"),
    [
        ({}, "has status None"),
        ({"hello": "world"}, "has status None"),
        ({"status": "splendid"}, "has status 'splendid'"),
        ({"status": ["ok"]}, "has status ['ok']"),
        ({"status": "ok", "score": "high"}, "has score='high'"),
        ({"status": "failed", "error": "x"}, "has error='x'"),
    ],
)
def test_a_return_that_is_no_result_fails_its_run_alone(grid, odd, fault):
    watcher = Watching()
    outcome = grid.run("0-3", watcher, Scripted({"1": odd}))
    assert (outcome.ok, outcome.failed, outcome.exit_code) == (3, 1, 1)
    error = watcher.results[1]["error"]
    assert error["message"].startswith(f"what its process returned is no result: it {fault}")
    assert grid.statuses("1") == ["failed"]
    assert grid.run("1").skipped == 1  # it counts as tried


def test_a_run_that_writes_into_every_pipe_fails_and_the_others_do_not_notice(grid):
    grid.acts(s1="scribble")
    watcher = Watching()
    outcome = grid.run("0-3", watcher)
    assert outcome == Outcome(ok=3, failed=1, skipped=0, interrupted=False, exit_code=1)
    assert "no message: b'hello, world'" in watcher.results[1]["error"]["message"]
    assert grid.ran == dict.fromkeys("0123", 1)  # nobody had to begin again
