from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rlbench.builtin.engines import THREAD_VARIABLES, Local
from rlbench.errors import RlbenchError, UsageError
from rlbench.types import Job, JobEvent

TARGETS = """
    import itertools, os, signal, subprocess, sys, time

    def echo(payload, report):
        return dict(payload)

    def environment(payload, report):
        return {name: os.environ.get(name) for name in payload["names"]}

    def session(payload, report):
        return {"sid": os.getsid(0), "main": sys.modules["__main__"].__name__}

    def talk(payload, report):
        print("from a job", flush=True)
        os.system("echo from a child of a job")
        for number in range(payload["times"]):
            report({"number": number, "text": "x" * payload["length"]})
        return {"text": "y" * payload["length"]}

    def end(payload, report):
        os._exit(payload["code"])

    def kill_self(payload, report):
        os.kill(os.getpid(), signal.SIGKILL)

    def raise_error(payload, report):
        kinds = {"runtime": RuntimeError, "exit": SystemExit, "memory": MemoryError}
        raise kinds[payload["what"]]("boom")

    def no_json(payload, report):
        return {"value": {"nan": float("nan"), "object": object()}[payload["what"]]}

    def sleep(payload, report):
        report({"pid": os.getpid()})
        time.sleep(600)

    def hold_the_interpreter(payload, report):
        report({"pid": os.getpid()})
        sum(itertools.repeat(0))  # one call into C: no signal handler, no other thread gets a turn

    def leave_children(payload, report):
        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        near = subprocess.Popen(command)
        far = subprocess.Popen(command, start_new_session=True)
        report({"pid": near.pid})
        report({"pid": far.pid})
        if payload.get("stay"):
            time.sleep(600)
        return {"near": near.pid, "far": far.pid}
"""


@pytest.fixture
def engine(module):
    module("engine_targets", TARGETS)
    engine = Local()
    engine.open(2, [])
    yield engine
    engine.close()


def job(name: str, target: str, timeout_s: float | None = None, **payload) -> Job:
    return Job(id=name, target=f"engine_targets:{target}", payload=payload, timeout_s=timeout_s)


def run(engine: Local, jobs: list[Job], workers: int = 2) -> dict[str, JobEvent]:
    """Run jobs to their end, as a supervisor does; exactly one end each."""
    waiting, ends, flight = list(jobs), {}, 0
    while waiting or flight:
        while waiting and flight < workers:
            engine.submit(waiting.pop(0))
            flight += 1
        for event in engine.events(10):
            if event.what in ("returned", "lost"):
                assert event.job not in ends
                ends[event.job] = event
                flight -= 1
    return ends


def first_pids(engine: Local, count: int) -> list[int]:
    pids: list[int] = []
    while len(pids) < count:
        pids += [e.value["pid"] for e in engine.events(10) if e.what == "progress"]
    return pids


def lost(event: JobEvent) -> tuple[str, str]:
    assert event.what == "lost"
    return event.value["status"], event.value["reason"]


def descriptors() -> set[str]:
    return {entry.name for entry in os.scandir("/proc/self/fd")}


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_jobs_return_what_their_target_returns(engine):
    jobs = [job(f"j{i}", "echo", number=i, text="ä, \x00") for i in range(8)]
    ends = run(engine, jobs)
    assert {name: event.value for name, event in ends.items()} == {
        f"j{i}": {"number": i, "text": "ä, \x00"} for i in range(8)
    }


def test_a_job_has_one_thread_and_the_caller_keeps_its_environment(engine, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    second = Local()
    second.open(1, [])
    end = run(second, [job("a", "environment", names=THREAD_VARIABLES)])["a"]
    second.close()
    assert set(end.value.values()) == {"1"}
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_a_job_is_in_another_session_so_that_ctrl_c_does_not_reach_it(engine):
    assert run(engine, [job("a", "session")])["a"].value["sid"] != os.getsid(0)


def test_progress_arrives_in_order_and_large_messages_block_nobody(engine, capfd):
    # 200 messages of 20 kB are more than any buffer on the way holds
    engine.submit(job("a", "talk", times=200, length=20_000))
    events: list[JobEvent] = []
    while not events or events[-1].what != "returned":
        events += engine.events(10)
    assert [e.what for e in events] == ["started", *["progress"] * 200, "returned"]
    assert [e.value["number"] for e in events[1:-1]] == list(range(200))
    assert len(events[-1].value["text"]) == 20_000
    engine.close()
    assert capfd.readouterr() == ("", "")  # what jobs print reaches nobody


def test_a_payload_larger_than_any_buffer_gets_through_while_the_server_talks(engine):
    engine.submit(job("a", "talk", times=200, length=20_000))
    engine.submit(job("b", "echo", text="z" * 2_000_000))
    ends = {}
    while len(ends) < 2:
        ends |= {e.job: e for e in engine.events(10) if e.what in ("returned", "lost")}
    assert len(ends["b"].value["text"]) == 2_000_000


def test_a_job_that_exits_loses_itself_only(engine):
    jobs = [job(f"j{i}", "end", code=9) if i == 2 else job(f"j{i}", "echo", i=i) for i in range(6)]
    ends = run(engine, jobs)
    assert sorted(name for name, end in ends.items() if end.what == "returned") == [
        "j0",
        "j1",
        "j3",
        "j4",
        "j5",
    ]
    status, reason = lost(ends["j2"])
    assert status == "failed"  # nobody killed it
    assert "exited with code 9" in reason


def test_a_job_that_is_killed_is_lost_with_the_signal(engine):
    status, reason = lost(run(engine, [job("a", "kill_self")])["a"])
    assert status == "killed"
    assert "signal 9 (SIGKILL)" in reason


@pytest.mark.parametrize(
    ("target", "payload", "reason"),
    [
        ("raise_error", {"what": "runtime"}, "RuntimeError: boom"),
        ("raise_error", {"what": "exit"}, "SystemExit: boom"),
        ("raise_error", {"what": "memory"}, "MemoryError: boom"),
        ("no_json", {"what": "nan"}, "can't be sent as JSON"),
        ("no_json", {"what": "object"}, "can't be sent as JSON"),
        ("missing", {}, "has no attribute 'missing'"),
    ],
)
def test_an_error_that_leaves_a_target_is_a_loss_that_names_it(engine, target, payload, reason):
    status, text = lost(run(engine, [job("a", target, **payload)])["a"])
    assert status == "failed"
    assert reason in text


def test_a_module_that_can_not_be_preloaded_fails_its_own_jobs_only(module):
    module("engine_targets", TARGETS)
    module("broken_module", "raise SystemExit('broken on purpose')")
    engine = Local()
    engine.open(1, ["broken_module", "no_such_module"])
    wrong = Job(id="b", target="broken_module:f", payload={})
    ends = run(engine, [job("a", "echo"), wrong])
    engine.close()
    assert ends["a"].what == "returned"
    assert lost(ends["b"]) == ("failed", "SystemExit: broken on purpose")


def test_a_job_over_its_time_is_killed_with_its_children(engine, still_alive):
    engine.submit(job("a", "leave_children", timeout_s=1.5, stay=True))
    pids = first_pids(engine, 2)
    end = engine.events(10)[0]
    assert lost(end) == ("timeout", "it ran longer than 1.5 s")
    assert not still_alive(pids)


def test_a_busy_call_into_c_does_not_outlive_its_time(engine, still_alive):
    engine.submit(job("a", "hold_the_interpreter", timeout_s=0.5))
    pids = first_pids(engine, 1)
    assert lost(engine.events(10)[0])[0] == "timeout"
    assert not still_alive(pids)


def test_nothing_of_a_job_is_left_when_it_has_ended(engine, still_alive):
    end = run(engine, [job("a", "leave_children")])["a"]
    assert not still_alive([end.value["near"], end.value["far"]])


def test_close_ends_jobs_and_leaves_no_process_and_no_descriptor(module, still_alive):
    module("engine_targets", TARGETS)
    before, family = descriptors(), children()
    engine = Local()
    engine.open(2, [])
    engine.submit(job("a", "hold_the_interpreter"))
    engine.submit(job("b", "leave_children", stay=True))
    pids = first_pids(engine, 3)
    assert descriptors() != before
    engine.close()
    engine.close()
    assert not still_alive(pids)
    assert descriptors() == before
    assert children() == family  # no zombie either


def test_a_dead_server_loses_its_jobs_and_the_next_job_gets_a_new_one(engine, still_alive):
    engine.submit(job("a", "leave_children", stay=True))
    near, far = first_pids(engine, 2)
    engine.submit(job("b", "sleep"))
    (sleeper,) = first_pids(engine, 1)
    os.kill(engine._server._process.pid, signal.SIGKILL)
    events: list[JobEvent] = []
    while len(events) < 2:
        events += engine.events(10)
    assert {event.job for event in events} == {"a", "b"}
    assert all("the fork server died (signal 9" in lost(event)[1] for event in events)
    assert all(event.value["engine_died"] for event in events)
    assert not still_alive([near, far, sleeper])
    assert run(engine, [job("c", "echo", x=1)])["c"].value == {"x": 1}


def test_misuse_is_refused(engine):
    with pytest.raises(UsageError, match="workers=0, expected at least 1"):
        Local().open(0, [])
    engine.submit(job("a", "sleep"))
    with pytest.raises(ValueError, match="in flight already"):
        engine.submit(job("a", "sleep"))


def test_an_engine_works_in_a_thread_whose_end_does_not_end_its_jobs(module):
    module("engine_targets", TARGETS)
    engine = Local()
    opening = threading.Thread(target=engine.open, args=(1, []))
    opening.start()
    opening.join()
    assert run(engine, [job("a", "echo", x=1)])["a"].value == {"x": 1}
    engine.close()


# --- callers of other kinds -----------------------------------------------------------------------

SCRIPT = """
print("main module", flush=True)
import sys
sys.path.insert(0, {folder!r})
from rlbench.builtin.engines import Local
from rlbench.types import Job
engine = Local()
engine.open(2, {preload!r})
for number in range(2):
    engine.submit(Job(id=str(number), target="engine_targets:{target}", payload={{"stay": True}}))
ended = 0
while ended < 2:
    for event in engine.events(10):
        print(event.what, *event.value.values(), flush=True)
        ended += event.what in ("returned", "lost")
engine.close()
assert "torch" not in sys.modules
"""


@pytest.mark.parametrize("how", ["script", "command", "stdin", "interactive"])
def test_callers_without_a_main_guard_work(module, tmp_path, how):
    folder = str(module("engine_targets", TARGETS).parent)
    code = SCRIPT.format(folder=folder, preload=[], target="echo")
    script = tmp_path / "script.py"
    script.write_text(code)
    arguments = {
        "script": [str(script)],
        "command": ["-c", code],
        "stdin": ["-"],
        "interactive": ["-i", str(script)],
    }[how]
    ended = subprocess.run(
        [sys.executable, *arguments],
        input=code if how == "stdin" else "",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert ended.returncode == 0, ended.stderr
    words = [line.split()[0] for line in ended.stdout.splitlines()]
    assert sorted(words) == ["main", "returned", "returned", "started", "started"]


@pytest.mark.parametrize("target", ["sleep", "hold_the_interpreter", "leave_children"])
def test_a_killed_caller_leaves_no_process(module, tmp_path, still_alive, target):
    folder = str(module("engine_targets", TARGETS).parent)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=folder, preload=[], target=target))
    wanted = {"leave_children": 6}.get(target, 4)  # jobs, and their children
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as caller:
        pids: set[int] = set()
        lines = 0
        while lines < wanted:
            what, *rest = caller.stdout.readline().split()
            if what in ("started", "progress"):
                pids.add(int(rest[0]))
                lines += 1
        pids |= set(map(int, _children_of(caller.pid)))  # the server
        caller.kill()
    assert len(pids) >= 3
    assert not still_alive(pids)


def test_a_caller_killed_while_modules_load_leaves_no_process(module, tmp_path, still_alive):
    folder = str(module("engine_targets", TARGETS).parent)
    loading = tmp_path / "loading"
    module(
        "slow_module",
        f"""
        import pathlib, time
        pathlib.Path({str(loading)!r}).touch()
        time.sleep(600)
        """,
    )
    code = SCRIPT.format(folder=folder, preload=["slow_module"], target="sleep")
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL) as caller:
        assert still_alive.wait_until(loading.exists, 30)
        server = list(map(int, _children_of(caller.pid)))
        caller.kill()
    assert len(server) == 1
    assert not still_alive(server)


def _children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_an_interpreter_that_can_not_be_started_is_a_message(engine, monkeypatch):
    before = descriptors()
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(RlbenchError, match="could not start '/no/such/python'"):
        Local().open(1, [])
    assert descriptors() == before
