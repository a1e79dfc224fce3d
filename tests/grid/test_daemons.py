"""What a job leaves behind ends with the job, however far it went; what others leave goes on."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from rlbench.builtin.engines import Local
from rlbench.types import Job, JobEvent

from .conftest import alive

if TYPE_CHECKING:
    from pathlib import Path

TARGETS = """
    import os, signal, subprocess, sys, time

    def note(path):
        with open(path, "a") as stream:
            stream.write(f"{os.getpid()}\\n")

    def detach(path, work):
        '''Go on in a process whose parent is dead, in a session of its own.'''
        if os.fork():
            return os.wait()
        os.setsid()
        if os.fork():
            os._exit(0)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        note(path)
        work(path)
        os._exit(0)

    def rest(path):
        time.sleep(600)

    def forget_the_environment(path):
        os.execve("/bin/sleep", ["sleep", "600"], {})

    def close_everything(path):
        os.closerange(0, 4096)
        time.sleep(600)

    def have_daemons(path):
        detach(path, rest)
        time.sleep(600)

    def flee(path):
        '''A process that is there for a moment only, and then another.'''
        while True:
            time.sleep(0.005)
            if os.fork():
                os._exit(0)
            os.setsid()
            if os.getpid() % 10 == 0:
                note(path)

    def daemons(payload, report):
        path = payload["path"]
        works = {
            "rest": rest,
            "forget": forget_the_environment,
            "close": close_everything,
            "have daemons": have_daemons,
            "flee": flee,
        }
        detach(path, works[payload["work"]])
        while payload.get("wait_for", 1) > open(path).read().count("\\n"):
            time.sleep(0.005)
        report({})
        end = payload["end"]
        if end == "error":
            raise ValueError("boom")
        if end == "exit":
            os._exit(9)
        if end == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if end == "late":
            time.sleep(600)
        while end == "asked" and not os.path.exists(payload["until"]):
            time.sleep(0.01)
        return {}

    def echo(payload, report):
        return dict(payload)
"""


@pytest.fixture
def engine(module):
    module("daemon_targets", TARGETS)
    engine = Local()
    engine.open(2, [])
    yield engine
    engine.close()


def daemons(
    path: Path, end: str = "well", work: str = "rest", timeout_s: float | None = None, **more
) -> Job:
    path.touch()
    payload = {"path": str(path), "end": end, "work": work, **more}
    return Job(id=path.name, target="daemon_targets:daemons", payload=payload, timeout_s=timeout_s)


def wait_for(engine: Local, job: str, *kinds: str) -> JobEvent:
    while True:
        for event in engine.events(10):
            if event.job == job and event.what in kinds:
                return event


def noted(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()]


@pytest.mark.parametrize("end", ["well", "error", "exit", "kill", "late"])
def test_a_daemon_ends_with_its_job_however_that_ends(engine, tmp_path, still_alive, end):
    job = daemons(tmp_path / "a", end, timeout_s=1.0 if end == "late" else None)
    engine.submit(job)
    wait_for(engine, "a", "returned", "lost")
    assert len(noted(tmp_path / "a")) == 1
    assert not still_alive(noted(tmp_path / "a"))


@pytest.mark.parametrize(
    ("work", "many"), [("forget", 1), ("close", 1), ("have daemons", 2), ("flee", 3)]
)
def test_a_daemon_ends_whatever_it_does_to_go_on(engine, tmp_path, still_alive, work, many):
    engine.submit(daemons(tmp_path / "a", work=work, wait_for=many))
    assert wait_for(engine, "a", "returned", "lost").what == "returned"
    assert not still_alive(noted(tmp_path / "a"))
    before = (tmp_path / "a").read_text()
    for number in range(30):  # 30 jobs take longer than one that flees needs to tell of itself
        engine.submit(Job(id=str(number), target="daemon_targets:echo", payload={}))
        wait_for(engine, str(number), "returned")
    if work == "flee":
        assert (tmp_path / "a").read_text() == before


def test_daemons_of_a_job_that_goes_on_go_on(engine, tmp_path, still_alive):
    until = tmp_path / "until"
    engine.submit(daemons(tmp_path / "stays", "asked", until=str(until)))
    wait_for(engine, "stays", "progress")
    (theirs,) = noted(tmp_path / "stays")
    for end in ("well", "exit", "kill"):
        engine.submit(daemons(tmp_path / end, end))
        wait_for(engine, end, "returned", "lost")
        assert not still_alive(noted(tmp_path / end))
    assert alive(theirs)
    until.touch()
    wait_for(engine, "stays", "returned")
    assert not still_alive([theirs])


def test_a_daemon_of_a_job_that_somebody_kills_ends(engine, tmp_path, still_alive):
    engine.submit(daemons(tmp_path / "a", "late"))
    pid = wait_for(engine, "a", "started").value["pid"]
    wait_for(engine, "a", "progress")
    os.kill(pid, signal.SIGKILL)
    assert wait_for(engine, "a", "lost").value["status"] == "killed"
    assert not still_alive(noted(tmp_path / "a"))
