"""Whoever is killed, at any moment: no process stays, and no job waits for one that is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rlbench.builtin.engines import Local
from rlbench.errors import RlbenchError
from rlbench.types import Job, JobEvent

TARGETS = """
    import os, subprocess, sys, time

    def family(payload, report):
        '''Starts one process in its group and one that left it, and stays.'''
        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        near = subprocess.Popen(command)
        far = subprocess.Popen(command, start_new_session=True)
        report({"pids": [os.getpid(), near.pid, far.pid]})
        time.sleep(600)

    def talk(payload, report):
        for number in range(payload["times"]):
            report({"text": "x" * payload["length"]})
        open(payload["path"], "w").close()
        return {}

    def sleep(payload, report):
        report({"pids": [os.getpid()]})
        time.sleep(600)

    def echo(payload, report):
        return dict(payload)
"""

CALLER = """
import sys
sys.path.insert(0, {folder!r})
from rlbench.builtin.engines import Local
from rlbench.types import Job
engine = Local()
engine.open(1, [])
engine.submit(Job(id="a", target="guard_targets:family", payload={{}}))
while True:
    for event in engine.events(10):
        if event.what == "progress":
            print(*event.value["pids"], flush=True)
"""


@pytest.fixture
def folder(module):
    return module("guard_targets", TARGETS).parent


@pytest.fixture
def engine(folder):
    engine = Local()
    engine.open(2, [])
    yield engine
    engine.close()


def job(target: str, timeout_s: float | None = None, **payload) -> Job:
    return Job(id=target, target=f"guard_targets:{target}", payload=payload, timeout_s=timeout_s)


def next_of(engine: Local, *kinds: str) -> JobEvent:
    while True:
        for event in engine.events(10):
            if event.what in kinds:
                return event


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def descriptors(pid: int | str) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@pytest.mark.parametrize("killed", [("caller", "server"), ("caller", "guard"), ("caller",)])
def test_children_of_a_job_end_whoever_is_killed_with_the_caller(folder, still_alive, killed):
    code = CALLER.format(folder=str(folder))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as caller:
        pids = [int(word) for word in caller.stdout.readline().split()]
        (guard,) = children(caller.pid)
        (server,) = children(guard)
        named = {"caller": caller.pid, "guard": guard, "server": server}
        # stopped first, so that none of them can do anything about the death of another
        for name in killed:
            os.kill(named[name], signal.SIGSTOP)
        for name in killed:
            os.kill(named[name], signal.SIGKILL)
    assert len(pids) == 3
    assert not still_alive([*pids, guard, server])


def test_children_of_a_job_end_when_server_and_guard_are_killed_in_one_moment(engine, still_alive):
    engine.submit(job("family"))
    pids = next_of(engine, "progress").value["pids"]
    guard = engine._server._process.pid
    (server,) = children(guard)
    for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped, neither can bury for the other
        os.kill(guard, number)
        os.kill(server, number)
    assert "the fork server died (signal 9)" in next_of(engine, "lost").value["reason"]
    assert len(pids) == 3
    assert not still_alive([*pids, server])
    engine.submit(job("echo", x=1))
    assert next_of(engine, "returned").value == {"x": 1}


def test_a_server_that_is_stuck_is_killed_with_its_jobs(engine, still_alive, monkeypatch):
    monkeypatch.setattr("rlbench.builtin.engines.CLOSE_S", 0.2)
    engine.submit(job("family"))
    pids = next_of(engine, "progress").value["pids"]
    (server,) = children(engine._server._process.pid)
    os.kill(server, signal.SIGSTOP)  # it does not see that the engine closes its socket
    engine.close()
    assert not still_alive([*pids, server])


TWIN = """
import os, time
twin = os.fork()
if not twin:
    time.sleep(600)
print(twin, flush=True)
while True:
"""


def test_a_caller_whose_socket_others_hold_open_is_missed_all_the_same(folder, still_alive):
    code = CALLER.format(folder=str(folder)).replace("while True:\n", TWIN)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as caller:
        twin = int(caller.stdout.readline())
        try:
            pids = [int(word) for word in caller.stdout.readline().split()]
            caller.kill()
            caller.wait()
            assert len(pids) == 3
            assert not still_alive(pids)
        finally:
            os.kill(twin, signal.SIGKILL)


def test_jobs_go_on_and_end_in_time_while_nobody_listens(engine, tmp_path, still_alive):
    """A caller that is stopped by Ctrl-Z reads nothing: 4 MB are more than any buffer holds."""
    done = tmp_path / "done"
    engine.submit(job("talk", times=200, length=20_000, path=str(done)))
    engine.submit(job("sleep", timeout_s=0.5))
    assert still_alive.wait_until(done.exists, 20)
    (server,) = children(engine._server._process.pid)
    # both are gone although not a single message has been read
    assert still_alive.wait_until(lambda: not children(server), 20)
    ends = {}
    while len(ends) < 2:
        ends |= {e.job: e for e in engine.events(10) if e.what in ("returned", "lost")}
    assert ends["talk"].what == "returned"
    assert ends["sleep"].value["status"] == "timeout"


def test_a_server_that_loses_its_guard_while_modules_load_ends(module, tmp_path, still_alive):
    loading = tmp_path / "loading"
    text = f"import pathlib, time\npathlib.Path({str(loading)!r}).touch()\ntime.sleep(600)"
    module("slow_module", text)
    engine = Local()
    engine.open(1, ["slow_module"])
    assert still_alive.wait_until(loading.exists, 30)
    (server,) = children(engine._server._process.pid)
    os.kill(engine._server._process.pid, signal.SIGKILL)
    assert not still_alive([server])
    engine.close()


def test_two_hundred_jobs_leave_nothing_behind(engine):
    before = descriptors("self")
    server = None
    for number in range(200):
        engine.submit(Job(id=str(number), target="guard_targets:echo", payload={"n": number}))
        assert next_of(engine, "returned").value == {"n": number}
        if server is None:
            (server,) = children(engine._server._process.pid)
            theirs = descriptors(server)
    assert (engine._pids, engine._news) == ({}, [])
    assert (descriptors("self"), descriptors(server)) == (before, theirs)
    assert children(server) == []


def test_a_job_is_out_of_memory_before_the_server_is(engine):
    engine.submit(job("sleep"))
    (pid,) = next_of(engine, "progress").value["pids"]
    (server,) = children(engine._server._process.pid)
    first, then = (int(Path(f"/proc/{p}/oom_score_adj").read_text()) for p in (pid, server))
    assert first > then


def test_submitting_waits_for_nobody(engine):
    (server,) = children_when_there(engine)
    os.kill(server, signal.SIGSTOP)
    engine.submit(job("echo", text="z" * 2_000_000))  # returns, or this test never ends
    assert engine.events(0.01) == []
    os.kill(server, signal.SIGCONT)
    assert len(next_of(engine, "returned").value["text"]) == 2_000_000


def children_when_there(engine: Local) -> list[int]:
    engine.submit(job("sleep"))
    next_of(engine, "progress")
    return children(engine._server._process.pid)


def test_servers_that_die_before_they_start_anything_are_an_error(folder, module, monkeypatch):
    module("deadly_module", "import os; print('no luck', flush=True); os._exit(3)")
    engine = Local()
    engine.open(1, ["deadly_module"])
    for _ in range(3):
        engine.submit(job("echo"))
        end = next_of(engine, "lost")
        assert "exit code 3: no luck" in end.value["reason"]
    with pytest.raises(RlbenchError, match=r"died 3 times before .* exit code 3: no luck"):
        engine.submit(job("echo"))
    engine.close()
