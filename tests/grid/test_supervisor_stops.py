"""How a grid ends early: by a signal, an error, a kill; and two commands beside each other."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import Counter
from functools import partial

import pytest

from rlbench.grid import signals
from rlbench.grid.supervisor import Outcome

from .acting import Scripted, Watching, command
from .conftest import make_plan


@pytest.fixture(autouse=True)
def hang_up_counts():
    """The tests may have been started with nohup, and the signal be ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", signals.ENDING)
def test_a_signal_keeps_what_is_done_and_the_next_command_does_the_rest(grid, still_alive, number):
    grid.acts(s2="sleep", s3="hold")
    watcher = Watching()
    sent = []

    def signal_twice():
        if len(watcher.pids) == 4 and not sent:  # 0 and 1 are done, 2 and 3 are in flight
            sent.append(True)
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)

    watcher.on_progress = signal_twice
    before = signal.getsignal(number)
    outcome = grid.run("0-5", watcher)
    assert outcome == Outcome(ok=2, failed=0, skipped=0, interrupted=True, exit_code=130)
    assert signal.getsignal(number) is before
    assert not still_alive(watcher.pids)
    states = ["ok", "ok", "interrupted", "interrupted", "missing", "missing"]
    assert grid.statuses("0-5") == states
    assert watcher.calls[-1] == ("end",)
    grid.acts()
    assert grid.run("0-5") == Outcome(ok=4, failed=0, skipped=2, interrupted=False, exit_code=0)
    assert grid.ran == Counter("01223345")


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


def test_two_commands_at_once_share_the_runs_that_both_want(grid):
    both = [
        subprocess.Popen(command(grid, seeds), stdout=subprocess.PIPE, text=True)
        for seeds in ("0-3", "2-5")
    ]
    for process in both:
        assert process.communicate(timeout=60)[0].endswith("exit code 0\n")
    assert grid.statuses("0-5") == ["ok"] * 6
    assert grid.ran == Counter("012345")  # each of them once
    assert len(grid.store.read()) == 6


def test_a_killed_supervisor_leaves_nothing_and_the_next_command_goes_on(grid, still_alive):
    grid.acts(s2="sleep", s3="hold")
    with subprocess.Popen(command(grid, "0-5"), stdout=subprocess.PIPE, text=True) as process:
        pids = [int(process.stdout.readline()) for _ in range(4)]  # 0 and 1 are done, 2 and 3 not
        process.kill()
    assert not still_alive(pids)
    assert grid.statuses("0-5") == ["ok", "ok", *["missing"] * 4]
    grid.acts()
    assert grid.run("0-5") == Outcome(ok=4, failed=0, skipped=2, interrupted=False, exit_code=0)
    assert grid.run("0-5") == Outcome(ok=0, failed=0, skipped=6, interrupted=False, exit_code=0)
    assert grid.ran == Counter("01223345")
    assert [record.status for record in grid.store.read()] == ["ok"] * 6


def test_a_command_beside_one_that_is_at_work_says_so_and_takes_its_result_over(grid):
    grid.acts(s0="wait")
    watcher, waited = Watching(), []
    watcher.waiting = lambda run: (waited.append(run.spec.seed), grid.release())
    with subprocess.Popen(command(grid, "0"), stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()  # it has begun
        outcome = grid.run("0", watcher)
        assert process.communicate(timeout=60)[0].endswith("exit code 0\n")
    assert outcome == Outcome(ok=1, failed=0, skipped=0, interrupted=False, exit_code=0)
    assert (waited, grid.ran) == ([0], Counter("0"))


def test_a_command_that_is_stopped_goes_on_where_it_was(grid, still_alive):
    """Ctrl-Z and fg: runs in flight end meanwhile, in their time; the rest starts afterwards."""
    grid.acts(s1="sleep")
    statuses = partial(grid.statuses, "0,1")
    with subprocess.Popen(
        command(grid, "0-3", timeout_s=2.0), stdout=subprocess.PIPE, text=True
    ) as process:
        [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGSTOP)
        # what a run writes it writes itself; that run 1 took too long is told when it goes on
        assert still_alive.wait_until(lambda: statuses()[0] == "ok")
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=60)
    assert out.endswith("exit code 1\n")
    assert grid.statuses("0-3") == ["ok", "timeout", "ok", "ok"]
    assert grid.ran == Counter("0123")


def test_enough_failures_also_end_the_waiting_for_other_processes(grid):
    run = make_plan("0")[0]
    answers = {"0": {"status": "busy"}, "1": {"status": "failed", "error": None}}
    with grid.store.locked(run.run_id):  # the other process goes on for ever
        outcome = grid.run("0-3", engine=Scripted(answers), workers=1, max_failures=1)
    assert (outcome.failed, outcome.exit_code) == (1, 1)


class Unspeakable:
    """Takes for ever to be written out, as a queue of 100,000 runs does."""

    heard = 0

    def __repr__(self):
        raise AssertionError("written out")

    def hear(self):
        self.heard += 1


def test_a_handler_is_put_in_place_and_replaced_without_writing_out_what_it_is_bound_to():
    owner = Unspeakable()
    before = [signal.getsignal(number) for number in signals.ENDING]
    with signals.handled(owner.hear), signals.handled(owner.hear):
        os.kill(os.getpid(), signal.SIGHUP)
    assert owner.heard == 1
    assert [signal.getsignal(number) for number in signals.ENDING] == before


def test_a_hang_up_that_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals.handled(lambda: pytest.fail("heard")):
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", signals.ENDING)
def test_a_first_signal_interrupts_and_a_second_changes_nothing(number):
    cleaned = []

    def work() -> None:
        try:
            os.kill(os.getpid(), number)
        finally:
            os.kill(os.getpid(), number)
            cleaned.append(True)

    with pytest.raises(KeyboardInterrupt), signals.raised():
        work()
    assert cleaned
    with signals.unheard(when=True):
        os.kill(os.getpid(), number)
    with pytest.raises(KeyboardInterrupt), signals.raised(), signals.unheard(when=False):
        os.kill(os.getpid(), number)
