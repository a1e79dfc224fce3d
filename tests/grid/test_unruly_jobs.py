"""Jobs that end by signals of their own or talk nonsense: they are to blame, and nobody notices."""

from __future__ import annotations

import json
import signal
import struct

import pytest

from rlbench.builtin.engines import Local
from rlbench.types import Job, JobEvent

TARGETS = """
    import os, resource, signal, stat, threading, time

    def echo(payload, report):
        return dict(payload)

    def sleep(payload, report):
        time.sleep(600)

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

    def pipe():
        '''The descriptor of the process's reports; a component finds it by guessing.'''
        for number in range(3, 256):
            try:
                if stat.S_ISFIFO(os.fstat(number).st_mode) and os.write(number, b"") == 0:
                    return number
            except OSError:
                continue

    def write_raw(payload, report):
        report({"before": 1})
        os.write(pipe(), bytes.fromhex(payload["hex"]))
        report({"after": 1})
        if payload.get("stay"):
            time.sleep(600)
        return {}

    def flood(payload, report):
        while True:
            report({"text": "x" * 1000})

    def leave_a_flood(payload, report):
        '''A process that ignores the end of its job, in another group, and never stops writing.'''
        report({})
        if not os.fork():
            os.setsid()
            while True:
                report({"text": "x" * 1000})
        time.sleep(0.1)
        os._exit(9)

    def close_all(payload, report):
        os.closerange(3, 256)
        if payload.get("reopen"):
            for _ in range(20):
                os.open(payload["reopen"], os.O_RDWR | os.O_CREAT)
        report({})
        return {}

    def too_long(payload, report):
        return {"text": "x" * (1 << 26)}

    def no_object(payload, report):
        return payload["value"]

    def long_error(payload, report):
        raise ValueError("x" * (1 << 26))
"""


@pytest.fixture
def engine(module):
    module("unruly_targets", TARGETS)
    engine = Local()
    engine.open(2, [])
    yield engine
    engine.close()


def job(target: str, timeout_s: float | None = None, **payload) -> Job:
    return Job(id=target, target=f"unruly_targets:{target}", payload=payload, timeout_s=timeout_s)


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


# --- nonsense -------------------------------------------------------------------------------------


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


NONSENSE = {
    "text": b"hello, world\n",
    "a large length": b"\xff\xff\xff\xff",
    "a length and not enough behind it": b"\0\0\0\5abc",  # the next message becomes its end
    "no bytes": framed(b""),
    "no JSON": framed(b"{hello}"),
    "no UTF-8": framed(b'{"what": "\xff"}'),
    "too deep": framed(b"[" * 100_000),
    "deep": framed(b'{"what": "progress", "value": {"x": ' + b"[" * 990 + b"]" * 990 + b"}}"),
    "a number": framed(b"7"),
    "a list": framed(b"[]"),
    "an empty object": framed(b"{}"),
    "an unknown word": framed(b'{"what": "started", "value": {"pid": 1}}'),
    "a word that is a list": framed(b'{"what": [], "value": {}}'),
    "progress without a value": framed(b'{"what": "progress"}'),
    "progress that is a list": framed(b'{"what": "progress", "value": []}'),
    "progress of NaN": framed(b'{"what": "progress", "value": {"x": NaN}}'),
    "progress of infinity": framed(b'{"what": "progress", "value": {"x": 1e999}}'),
    "a result that is text": framed(b'{"what": "returned", "value": "ok"}'),
    "a failure without a reason": framed(b'{"what": "failed"}'),
}


@pytest.mark.parametrize("name", sorted(set(NONSENSE) - {"deep"}))
def test_nonsense_in_the_pipe_of_its_reports_fails_that_job_alone(engine, name):
    engine.submit(Job(id="neighbour", target="unruly_targets:sleep", payload={}))
    event = end_of(engine, job("write_raw", hex=NONSENSE[name].hex(), stay=True))
    assert (event.job, event.what, event.value["status"]) == ("write_raw", "lost", "failed")
    assert "into the pipe of its reports what is no message: " in event.value["reason"]
    assert engine._pids.keys() == {"neighbour"}  # it goes on, under the same server
    assert end_of(engine, job("echo", x=1)).value == {"x": 1}


def test_what_was_written_is_shown(engine):
    event = end_of(engine, job("write_raw", hex=b"hello, world".hex()))
    assert "what is no message: b'hello, world" in event.value["reason"]


def test_json_as_deep_as_a_reader_takes_it_costs_the_server_nothing(engine):
    """Whether it is a message depends on how deep this Python goes; the next job works anyway."""
    end_of(engine, job("write_raw", hex=NONSENSE["deep"].hex()))
    assert end_of(engine, job("echo", x=1)).value == {"x": 1}


def test_a_message_that_ends_in_the_middle_is_part_of_the_reason(engine):
    half = struct.pack(">I", 1 << 20) + json.dumps({"what": "returned"}).encode()
    event = end_of(engine, job("write_raw", hex=half.hex()))
    assert event.value["status"] == "failed"
    assert (
        "exited with code 0 before it returned a result; its last message"
        in (event.value["reason"])
    )


def test_a_job_that_never_stops_reporting_ends_in_time_and_others_go_on(engine):
    engine.submit(job("flood", timeout_s=0.5))
    ends: dict[str, JobEvent] = {}
    engine.submit(job("echo", x=1))
    while len(ends) < 2:
        ends |= {e.job: e for e in engine.events(10) if e.what in ("returned", "lost")}
    assert ends["echo"].value == {"x": 1}
    assert ends["flood"].value == {"status": "timeout", "reason": "it ran longer than 0.5 s"}


def test_what_a_dead_job_left_can_not_keep_its_end_from_being_told(engine):
    event = end_of(engine, job("leave_a_flood"))
    assert event.value["status"] == "failed"
    assert "exited with code 9" in event.value["reason"]
    assert end_of(engine, job("echo", x=1)).value == {"x": 1}


@pytest.mark.parametrize("reopen", [False, True])
def test_a_job_that_closes_the_pipe_of_its_reports_fails_and_writes_nowhere_else(
    engine, tmp_path, reopen
):
    other = tmp_path / "other"
    event = end_of(engine, job("close_all", **({"reopen": str(other)} if reopen else {})))
    assert event.value["status"] == "failed"
    if reopen:
        assert other.read_bytes() == b""
    assert end_of(engine, job("echo", x=1)).value == {"x": 1}


@pytest.mark.parametrize(
    ("target", "payload", "reason"),
    [
        ("too_long", {}, "its result can't be sent as JSON: it has 67,108,"),
        ("no_object", {"value": None}, "its result can't be sent as JSON: 'NoneType'"),
        ("no_object", {"value": 7}, "its result can't be sent as JSON: 'int'"),
        ("long_error", {}, "ValueError: xxx"),
    ],
)
def test_what_is_too_long_or_no_object_is_refused_before_it_is_sent(
    engine, target, payload, reason
):
    event = end_of(engine, job(target, **payload))
    assert event.value["status"] == "failed"
    assert event.value["reason"].startswith(reason)
    assert len(event.value["reason"]) <= 10_000
