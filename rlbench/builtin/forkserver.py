"""The process that forks one child for each job of the engine ``local``.

It runs apart from the caller: another session, so that Ctrl-C in a terminal does not reach it, and
another interpreter, so that the caller's main module is never imported. It imports heavy modules
once; a job is then a fork, which costs milliseconds. `multiprocessing` has such a server too, but
its children import the caller's main module and outlive a caller that is killed.

These rules keep a machine clean whatever dies:

- A job leads a process group of its own; when it ends, the whole group is killed.
- What leaves the group is no longer found by it, but by its parents (Linux): a process whose parent
  has died gets the next one above that asked for orphans. Each job asks, so that its orphans are
  its children as long as it runs, and the server's when it has ended: a child of the server that is
  no job is what an ended job left, and of no other.
- The server exits, and kills every group, when the socket to the engine closes: the kernel closes
  it even for a caller that gets SIGKILL.
- A job asks the kernel to be killed when the server dies (Linux), and a guard above the server
  kills what jobs have started (`rlbench.builtin.guard`); the engine kills the groups of a server
  that died under it.

The server never waits for the engine: jobs go on, and end in time, while the caller is stopped
(Ctrl-Z) or busy.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rlbench.builtin.guard import (
    CALLER_CHECK_S,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    bury_children,
    kill_children,
    leave_a_guard,
    leave_with,
    prctl,
)
from rlbench.builtin.wire import (
    CHUNK,
    HEADER,
    SHOWN,
    Frames,
    Garbled,
    Pipe,
    blame,
    describe_exit,
    frame,
    kill_group,
    lost,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

MOST_UNSENT = 1 << 24  # bytes that wait for the engine; beyond that, progress is not told
PIPEFUL = 64  # reads that empty any pipe, unless somebody fills it meanwhile
NO_MESSAGE = "code in its process wrote into the pipe of its reports what is no message"
LONGEST_REASON = 10_000  # characters
FIRST_TO_GO = "300"  # of 1000: out of memory, the kernel kills a job rather than the server
SENT_BY_PEOPLE = (signal.SIGINT, signal.SIGTERM)


# --- in the child ---------------------------------------------------------------------------------


def _resolve(target: str) -> Callable[..., Any]:
    module, _, attribute = target.partition(":")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]  # whatever the job names; calling it will tell


def _run_job(job: Mapping[str, Any], descriptor: int) -> NoReturn:
    """Call the job's target, send what it returns, and leave without the server's clean-up."""
    pipe = Pipe(descriptor)

    def report(value: Mapping[str, Any]) -> None:
        pipe.send({"what": "progress", "value": dict(value)})

    try:
        value = _resolve(job["target"])(job["payload"], report)
        try:
            pipe.send({"what": "returned", "value": dict(value)})
        except (TypeError, ValueError) as error:
            reason = f"its result can't be sent as JSON: {error}"
            pipe.send({"what": "failed", "reason": reason[:LONGEST_REASON]})
    except BaseException as error:  # noqa: BLE001 - a job's end must reach the caller, whatever it is
        traceback.print_exc()
        reason = f"{type(error).__name__}: {error}"
        with contextlib.suppress(OSError):
            pipe.send({"what": "failed", "reason": reason[:LONGEST_REASON]})
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(0)


# --- in the server --------------------------------------------------------------------------------


@dataclass
class _Child:
    """A job that runs."""

    job: str
    pid: int
    pipe: int
    deadline: float | None
    timeout_s: float | None
    frames: Frames = field(default_factory=Frames)
    end: bytes | None = None  # the message that ends the job, once it is known


class _Gone(Exception):  # noqa: N818 - no error: the caller closed the socket, or asks for the end
    """The caller needs the server no more."""


class Server:
    """The loop between the engine's socket and the pipes of the jobs.

    Args:
        engine: The socket to the engine.
        parent: Process id of the process above; the server ends with it.
    """

    def __init__(self, engine: socket.socket, parent: int) -> None:
        self._engine, self._parent = engine, parent
        engine.setblocking(False)  # noqa: FBT003 - it has no keyword
        self._unsent = bytearray()
        self._requests = Frames()
        self._children: dict[int, _Child] = {}  # by process id
        self._selector = selectors.DefaultSelector()
        self._wake, self._waker = socket.socketpair()
        for end in (self._wake, self._waker):
            os.set_blocking(end.fileno(), False)
        self._selector.register(engine, selectors.EVENT_READ)
        self._selector.register(self._wake, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._terminate)

    @staticmethod
    def _terminate(*_: object) -> NoReturn:
        raise _Gone

    def serve(self) -> None:
        """Start, watch and bury jobs until the engine closes the socket or its process is gone."""
        try:
            while True:
                for key, events in self._selector.select(self._patience()):
                    if key.fileobj is self._engine:
                        self._serve_engine(events)
                    elif key.fileobj is self._wake:
                        with contextlib.suppress(BlockingIOError):
                            self._wake.recv(CHUNK)
                    else:
                        self._read_child(key.data)
                self._kill_late()
                self._bury()
                if os.getppid() != self._parent:
                    return
        except (_Gone, BrokenPipeError, ConnectionResetError):
            return
        finally:
            self._end_all()

    def _patience(self) -> float:
        """Seconds until something has to be looked at without being called."""
        now = time.monotonic()
        late = [child.deadline - now for child in self._children.values() if child.deadline]
        return max(0.0, min([CALLER_CHECK_S, *late]))

    def _send(self, message: bytes) -> None:
        """Send what the engine takes now; the rest when it reads again."""
        self._unsent += message
        self._flush()

    def _flush(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._unsent:
                del self._unsent[: self._engine.send(self._unsent)]
        writing = selectors.EVENT_WRITE if self._unsent else 0
        self._selector.modify(self._engine, selectors.EVENT_READ | writing)

    def _serve_engine(self, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._flush()
        if not events & selectors.EVENT_READ:
            return
        data = self._engine.recv(CHUNK)
        if not data:
            raise _Gone
        for request in self._requests.feed(data):
            self._start(request)

    def _start(self, job: dict[str, Any]) -> None:
        """Fork a child for a job."""
        ours, theirs = os.pipe()
        server = os.getpid()
        # A signal that comes before the child's own handlers are set would run the server's there.
        signal.pthread_sigmask(signal.SIG_BLOCK, SENT_BY_PEOPLE)
        try:
            pid = os.fork()
        except OSError as error:
            os.close(ours)
            os.close(theirs)
            reason = f"no process could be started for it: {error}"
            self._send(frame(lost(job["id"], "killed", reason)))
            return
        else:
            if pid == 0:
                self._be_child(job, server, ours, theirs)
            self._adopt(job, pid, ours)
            os.close(theirs)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SENT_BY_PEOPLE)

    def _adopt(self, job: Mapping[str, Any], pid: int, ours: int) -> None:
        """Keep an eye on a new child."""
        os.set_blocking(ours, False)
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)  # the child does the same; whoever is first
        timeout_s = job["timeout_s"]
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        child = _Child(job["id"], pid, ours, deadline, timeout_s)
        self._children[pid] = child
        self._selector.register(ours, selectors.EVENT_READ, child)
        self._send(frame({"what": "started", "job": job["id"], "value": {"pid": pid}}))

    def _be_child(self, job: Mapping[str, Any], server: int, ours: int, theirs: int) -> NoReturn:
        """Run the job, in a new child; nothing ever returns into the server's loop."""
        try:
            self._disown(server, ours)
            _run_job(job, theirs)
        finally:
            os._exit(1)

    def _disown(self, server: int, ours: int) -> None:
        """Give up, in a new child, all that belongs to the server."""
        os.setpgid(0, 0)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        if os.getppid() != server:  # it died before the request above
            os._exit(1)
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(FIRST_TO_GO)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        # No KeyboardInterrupt: the job would take it for an error of the code that was running.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SENT_BY_PEOPLE)
        # Kept open here, the engine's socket or another job's pipe would hide that its owner died.
        self._selector.close()
        for end in (self._engine, self._wake, self._waker):
            end.close()
        for pipe in (ours, *(child.pipe for child in self._children.values())):
            os.close(pipe)

    def _read_child(self, child: _Child) -> bool:
        """Pass on what a job wrote; False when nothing more can come."""
        try:
            data = os.read(child.pipe, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._stop_reading(child)
            return False
        try:
            for message in child.frames.feed(data):
                self._take(child, message)
        except Garbled as found:
            self._stop_reading(child)
            self._end(child, "failed", f"{NO_MESSAGE}: {found}")
            return False
        return True

    def _stop_reading(self, child: _Child) -> None:
        if child.pipe in self._selector.get_map():
            self._selector.unregister(child.pipe)

    def _take(self, child: _Child, message: Mapping[str, Any]) -> None:
        """Pass one message on, or keep it if it is the last one.

        Raises:
            Garbled: No job sends such a message.
        """
        what, value, reason = (message.get(name) for name in ("what", "value", "reason"))
        try:
            if what in ("progress", "returned") and isinstance(value, dict):
                told = frame({"what": what, "job": child.job, "value": value})
            elif what == "failed" and isinstance(reason, str):
                told = frame(lost(child.job, what, reason))
            else:
                raise Garbled(f"a message without sense, {str(message)[:SHOWN]}")
        except (ValueError, RecursionError) as error:  # NaN can be read, but not be sent
            raise Garbled(str(error)) from error
        if what != "progress":
            child.end = child.end or told
        elif len(self._unsent) < MOST_UNSENT:
            self._send(told)

    def _end(self, child: _Child, status: str, reason: str) -> None:
        """End a job that may be running, unless it has told its own end."""
        child.deadline = None
        child.end = child.end or frame(lost(child.job, status, reason))
        kill_group(child.pid)

    def _empty_pipe(self, child: _Child) -> None:
        """Read what has come of a job by now; one that never stops writing holds nobody up."""
        for _ in range(PIPEFUL):
            if not self._read_child(child):
                break

    def _kill_late(self) -> None:
        now = time.monotonic()
        for child in self._children.values():
            if child.deadline is not None and now >= child.deadline:
                self._empty_pipe(child)
                self._end(child, "timeout", f"it ran longer than {child.timeout_s:g} s")

    def _bury(self) -> None:
        """End the jobs of dead children, with all that they left behind."""
        ended = list(self._reap())
        if ended:  # a dead orphan counts too: its own children are the server's now
            kill_children(but=self._children)
        for message in ended:
            self._send(message)

    def _reap(self) -> Iterator[bytes]:
        """Reap dead children; give what is to be told of each, which is nothing of an orphan."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is not None:
                self._empty_pipe(child)
                shown = child.frames.shown
                torn = f"; its last message is torn: {shown}" if shown else ""
                self._end(child, blame(status), describe_exit(status) + torn)
                self._stop_reading(child)
                os.close(child.pipe)
            yield child.end or b"" if child else b""

    def _end_all(self) -> None:
        """Kill every job with its group, and what left its group but not the server; reap them."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for pid in self._children:
            kill_group(pid)
        bury_children(patience_s=1.0)


def _preload(modules: Sequence[str]) -> None:
    for name in modules:
        try:
            importlib.import_module(name)
        except (Exception, SystemExit):  # noqa: BLE001 - the job that needs it will fail with the cause
            traceback.print_exc()


def main(descriptor: int) -> None:
    """Serve the engine at the other end of a socket; called in a fresh interpreter."""
    engine = socket.socket(fileno=descriptor)
    engine.set_inheritable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    header = engine.recv(HEADER.size, socket.MSG_WAITALL)
    if len(header) < HEADER.size:
        return  # the caller is gone already
    (length,) = HEADER.unpack(header)
    setup = json.loads(engine.recv(length, socket.MSG_WAITALL))
    parent = leave_a_guard(engine, setup["caller"])
    with leave_with(engine):
        _preload(setup["preload"])
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page it touches
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    Server(engine, parent).serve()
