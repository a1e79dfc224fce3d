"""What a person sees while runs are on their way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rlbench.grid.experiment import build
from rlbench.grid.launch import plan
from rlbench.plugin.loading import load
from rlbench.report.progress import (
    Display,
    Lines,
    Remaining,
    short_names,
    spell_seconds,
)

if TYPE_CHECKING:
    from rlbench.grid.attempt import Planned

OUT = Path("out")


class Clock:
    """Seconds that pass when told."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def planned() -> list[Planned]:
    axes = {"estimator": ["gae", "group"]}
    return plan(build(load(), selections=axes, settings=["lr=1e-3,2e-3"], seeds="0-1"))


def test_lines_tell_start_failures_and_end(planned: list[Planned]) -> None:
    said: list[str] = []
    lines = Lines(out=OUT, workers=16, say=said.append)
    lines.begin(planned, done=3, failed=0)
    assert said == ["8 runs to do (4 cells, 2 seeds), 3 already there; 8 at a time"]
    lines.ended(planned[0], {"status": "ok"})
    assert len(said) == 1
    error = {"type": "Diverged", "message": "loss is NaN\nmore"}
    lines.ended(planned[1], {"status": "diverged", "error": error})
    assert said[1] == f"diverged: {planned[1].run_id}: Diverged: loss is NaN"
    assert said[2].endswith(f"{planned[1].run_id}/log.txt")
    lines.ended(planned[2], {"status": "interrupted"})
    lines.end()
    assert said[3] == (
        "1 ok, 1 failed, 6 not run; results in out; the same command does the rest; "
        "add --retry to try the failed ones again"
    )


@pytest.mark.parametrize(
    ("status", "rest"),
    [
        ("ok", ""),
        ("timeout", "; add --retry to try the failed ones again"),
        ("killed", "; the same command does the rest"),  # runs again by itself
    ],
)
def test_the_end_tells_how_to_go_on(planned: list[Planned], status: str, rest: str) -> None:
    said: list[str] = []
    lines = Lines(out=OUT, workers=1, say=said.append)
    lines.begin(planned[:1], done=0, failed=0)
    lines.ended(planned[0], {"status": status, "error": None})
    lines.end()
    assert said[-1].endswith(f"; results in out{rest}")


@pytest.mark.parametrize("quiet", [False, True])
def test_runs_under_old_code_are_one_line_and_not_failures(
    planned: list[Planned], *, quiet: bool
) -> None:
    said: list[str] = []
    lines = Lines(out=OUT, workers=1, say=said.append, quiet=quiet)
    lines.begin(planned, done=0, failed=0)
    del said[:]
    lines.ended(planned[0], {"status": "ok"})
    lines.ended(planned[1], {"status": "ok"})
    lines.renamed(planned[2:], ["my_loss.py"])
    told = "my_loss.py changed; 6 runs not started under the old code; give the command again"
    assert said == [told]
    lines.end()
    end = "2 ok, 6 not run; results in out; the same command does the rest"
    assert said == ([told] if quiet else [told, end])


def test_a_change_without_a_known_file_is_told_too(planned: list[Planned]) -> None:
    said: list[str] = []
    Lines(out=OUT, workers=1, say=said.append).renamed(planned[:1], [])
    assert said == [
        "source files changed; 1 run not started under the old code; give the command again"
    ]


def test_quiet_lines_tell_failures_only(planned: list[Planned]) -> None:
    said: list[str] = []
    lines = Lines(out=OUT, workers=1, say=said.append, quiet=True)
    lines.begin(planned, done=0, failed=0)
    lines.waiting(planned[0])
    lines.ended(planned[0], {"status": "ok"})
    lines.end()
    assert said == []
    lines.ended(planned[1], {"status": "killed", "error": None})
    assert said[0] == f"killed: {planned[1].run_id}"


def test_nothing_to_do_is_one_line() -> None:
    said: list[str] = []
    lines = Lines(out=OUT, workers=1, say=said.append)
    lines.begin([], done=5, failed=2)
    lines.end()
    assert said == [
        "nothing left to run: 5 runs already there in out, 2 of them failed (--retry repeats those)"
    ]


def test_time_left_is_unknown_then_extrapolated_then_measured() -> None:
    clock = Clock()
    left = Remaining(workers=2, clock=clock)
    left.started("a")
    assert left.seconds(waiting=3) is None
    clock.now += 5
    left.progress("a", 0.5)
    # a run takes 10 s: 3 * 10 waiting and 5 in flight, on 2 workers
    assert left.seconds(waiting=3) == pytest.approx((30 + 5) / 2)
    clock.now += 3
    left.ended("a")
    # it took 8 s; nothing in flight
    assert left.seconds(waiting=3) == pytest.approx(24 / 2)


def test_time_left_starts_from_earlier_runs() -> None:
    left = Remaining(workers=1, earlier_s=20, clock=Clock())
    assert left.seconds(waiting=2) == 40


def test_the_last_run_is_not_shared_between_workers() -> None:
    clock = Clock()
    left = Remaining(workers=8, earlier_s=20, clock=clock)
    left.started("a")
    clock.now += 5
    assert left.seconds(waiting=0) == 15


def test_a_run_of_another_process_says_nothing_about_time() -> None:
    left = Remaining(workers=1, clock=Clock())
    left.started("a")
    left.forget("a")
    assert left.seconds(waiting=1) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (40, "40 s"), (300, "5 min"), (9000, "2.5 h")],
)
def test_time_left_in_words(seconds: float, text: str) -> None:
    assert spell_seconds(seconds) == text


def test_names_hold_what_differs(planned: list[Planned]) -> None:
    names = short_names(planned)
    assert names[planned[0].run_id] == "gae lr=0.001 seed 0"
    assert len(set(names.values())) == len(planned)
    axes = {"estimator": ["gae"]}
    coefs = build(load(), selections=axes, settings=["entropy_coef=0,0.1"], seeds="0")
    assert set(short_names(plan(coefs)).values()) == {
        "entropy_coef=0 seed 0",  # not 0.0: as tables write it
        "entropy_coef=0.1 seed 0",
    }
    alone = planned[:1]
    assert short_names(alone)[alone[0].run_id] == "gae clip seed 0"


def test_display_shows_runs_in_flight_and_the_whole(
    planned: list[Planned], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then draws although stderr is a pipe
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    said: list[str] = []
    display = Display(out=OUT, workers=2, say=said.append, earlier_s=30)
    display.begin(planned, done=0, failed=0)
    display.started(planned[0])
    display.progress(planned[0], 3, 10, "training")
    display.started(planned[1])
    display.waiting(planned[1])
    display.ended(
        planned[0], {"status": "failed", "error": {"type": "E", "message": "[no] markup"}}
    )
    display.end()
    out, err = capfd.readouterr()
    assert out == ""
    assert "gae lr=0.001 seed 0" in err
    assert "training 3/10" in err
    assert "1/8, 1 failed" in err
    assert "E: [no] markup" in err
    assert said[-1].startswith("0 ok, 1 failed, 7 not run; results in out; ")


def test_a_log_hears_every_half_a_minute_how_far_it_is(planned: list[Planned]) -> None:
    said: list[str] = []
    clock = Clock()
    lines = Lines(out=OUT, workers=1, say=said.append, clock=clock)
    runs = [planned[0]] * 5
    lines.begin(runs, 0, 0)
    del said[:]
    for seconds in (110.0, 131.0, 140.0, 162.0, 200.0):
        clock.now = seconds
        lines.ended(runs[0], {"status": "ok"})
    assert said == ["2 of 5 runs done", "4 of 5 runs done"]  # and of the last the end tells
    quiet = Lines(out=OUT, workers=1, say=said.append, clock=clock, quiet=True)
    quiet.begin(runs, 0, 0)
    clock.now = 300.0
    quiet.ended(runs[0], {"status": "ok"})
    assert len(said) == 2
