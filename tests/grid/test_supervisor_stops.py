"""How a grid ends early: by a signal, an error, a kill; and two commands beside each other."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import Counter

import pytest

from rlbench.grid.supervisor import Outcome

from .acting import Watching, command


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_what_is_done_and_the_next_command_does_the_rest(grid, still_alive, number):
    grid.acts(s1="sleep", s2="hold")
    watcher = Watching()
    sent = []

    def signal_twice():
        if len(watcher.pids) == 3 and not sent:  # seed 0 is done, 1 and 2 are in flight
            sent.append(True)
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)

    watcher.on_progress = signal_twice
    before = signal.getsignal(number)
    outcome = grid.run("0-5", watcher)
    assert outcome == Outcome(ok=1, failed=0, skipped=0, interrupted=True, exit_code=130)
    assert signal.getsignal(number) is before
    assert not still_alive(watcher.pids)
    assert grid.statuses("0-5") == ["ok", "interrupted", "interrupted", *["missing"] * 3]
    assert watcher.calls[-1] == ("end",)
    grid.acts()
    assert grid.run("0-5").ok == 5
    assert grid.ran == Counter("01122345")


def test_outside_of_the_main_thread_it_works_without_handlers(grid):
    outcomes = []
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=lambda: outcomes.append(grid.run("0-1")))
    thread.start()
    thread.join()
    assert outcomes[0].ok == 2
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_of_the_watcher_leaves_no_process(grid, still_alive):
    grid.acts(s0="sleep", s1="sleep")
    watcher = Watching()

    def fail_at_second():
        if len(watcher.pids) == 2:
            raise RuntimeError("the display is broken")

    watcher.on_progress = fail_at_second
    with pytest.raises(RuntimeError, match="the display is broken"):
        grid.run("0,1", watcher)
    assert not still_alive(watcher.pids)
    assert watcher.calls[-1] == ("end",)


def test_two_commands_at_once_share_the_runs(grid):
    both = [
        subprocess.Popen(command(grid, "0-5"), stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for process in both:
        assert process.communicate(timeout=60)[0].endswith("exit code 0\n")
    assert grid.statuses("0-5") == ["ok"] * 6


def test_a_killed_supervisor_leaves_nothing_and_the_next_command_goes_on(grid, still_alive):
    grid.acts(s1="sleep", s2="hold")
    with subprocess.Popen(command(grid, "0-3"), stdout=subprocess.PIPE, text=True) as process:
        pids = [int(process.stdout.readline()) for _ in range(3)]  # 0 is done, 1 and 2 go on
        process.kill()
    assert not still_alive(pids)
    assert grid.statuses("0-3") == ["ok", "missing", "missing", "missing"]
    grid.acts()
    assert grid.run("0-3") == Outcome(ok=3, failed=0, skipped=1, interrupted=False, exit_code=0)
    assert grid.run("0-3").skipped == 4
    assert grid.ran == Counter("011223")
