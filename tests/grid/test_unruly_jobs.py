"""Jobs that end by a signal of their own making: they are to blame, and nobody else notices."""

from __future__ import annotations

import signal

import pytest

from rlbench.builtin.engines import Local
from rlbench.types import Job, JobEvent

TARGETS = """
    import os, resource, signal, time

    def echo(payload, report):
        return dict(payload)

    def end_by(payload, report):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if payload["number"] != signal.SIGKILL:
            signal.signal(payload["number"], signal.SIG_DFL)
        os.kill(os.getpid(), payload["number"])
        time.sleep(600)

    def ring(payload, report):
        signal.setitimer(payload["which"], 0.01)
        while True:
            pass

    def burn(payload, report):
        resource.setrlimit(resource.RLIMIT_CPU, (1, 60))
        while True:
            pass

    def wait_for_interrupt(payload, report):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(600)
"""


@pytest.fixture
def engine(module):
    module("unruly_targets", TARGETS)
    engine = Local()
    engine.open(2, [])
    yield engine
    engine.close()


def job(target: str, **payload) -> Job:
    return Job(id=target, target=f"unruly_targets:{target}", payload=payload)


def end_of(engine: Local, job: Job) -> JobEvent:
    engine.submit(job)
    while True:
        for event in engine.events(10):
            if event.what in ("returned", "lost"):
                return event


# --- signals --------------------------------------------------------------------------------------

OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT}
FATAL = [
    number
    for number in sorted(signal.valid_signals())
    if number
    not in {
        signal.SIGCHLD,  # these four are ignored
        signal.SIGCONT,
        signal.SIGURG,
        signal.SIGWINCH,
        signal.SIGSTOP,  # and these stop a process, but don't end it
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
        *range(signal.SIGRTMIN + 1, signal.SIGRTMAX),  # like the two at the ends
    }
]


def test_only_what_people_and_systems_send_counts_as_killed_from_outside(engine):
    """A run that was killed runs again with each command; one that ends itself would for ever."""
    told = {number: end_of(engine, job("end_by", number=int(number))) for number in FATAL}
    assert {event.what for event in told.values()} == {"lost"}
    killed = {number for number, event in told.items() if event.value["status"] == "killed"}
    assert killed == OUTSIDE
    assert {event.value["status"] for event in told.values()} == {"killed", "failed"}
    for number, event in told.items():
        name = number.name if isinstance(number, signal.Signals) else "unnamed"
        assert f"was ended by signal {int(number)} ({name})" in event.value["reason"]


@pytest.mark.parametrize(
    ("which", "name"),
    [
        (signal.ITIMER_REAL, "SIGALRM"),
        (signal.ITIMER_VIRTUAL, "SIGVTALRM"),
        (signal.ITIMER_PROF, "SIGPROF"),
    ],
)
def test_a_timer_that_nobody_handles_fails_its_job(engine, which, name):
    event = end_of(engine, job("ring", which=which))
    assert event.value["status"] == "failed"
    assert name in event.value["reason"]


def test_a_job_that_uses_up_its_processor_time_fails_and_says_so(engine):
    event = end_of(engine, job("burn"))
    assert event.value["status"] == "failed"
    assert "SIGXCPU" in event.value["reason"]
    assert "limit of processor time" in event.value["reason"]


def test_an_interrupt_from_outside_kills_a_job_and_is_no_error_of_its_code(engine):
    """As an exception it would be caught, and noted as a failure of whatever code was running."""
    assert end_of(engine, job("wait_for_interrupt")).value["status"] == "killed"


def test_the_next_job_has_no_timer_of_the_last(engine):
    end_of(engine, job("ring", which=signal.ITIMER_REAL))
    assert end_of(engine, job("echo", x=1)).value == {"x": 1}
