"""The engine ``local``: every job is a process of its own on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from select import POLLIN, POLLOUT, poll
from typing import IO, TYPE_CHECKING, Any

from rlbench.builtin import wire
from rlbench.errors import RlbenchError, UsageError
from rlbench.types import Job, JobEvent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
MARK = "RLBENCH_FORK_SERVER"  # in the environment of a server and of all that descends from it
STILLBORN = 3  # servers that die one after the other without starting a job, before it is an error
CLOSE_S = 2.0  # how long the server may take to bury its jobs before its guard kills it
READS = 256  # from the server, until what it said is looked at
KILL_S = 2.0  # how long the guard may take for that
START = """\
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from rlbench.builtin.forkserver import main
main(int(sys.argv[1]))
"""  # jobs find the modules that the caller finds, whatever the caller did to its path


class Local:
    """Runs jobs in children of a fork server; see `rlbench.builtin.forkserver`.

    The caller may be a script without a main guard, a notebook, ``python -c`` or standard input:
    its main module is never imported. Each job has one thread for numerical libraries, and nothing
    of it is left when it ends. A server that dies takes its jobs along, which are reported lost;
    the next job gets a new one.
    """

    def __init__(self) -> None:
        self._preload: tuple[str, ...] = ()
        self._server: _Server | None = None
        self._pids: dict[str, int | None] = {}  # of every job in flight; None until it has started
        self._news: list[JobEvent] = []
        self._started = False  # whether this server has started a job
        self._stillborn: list[str] = []  # how the last servers ended, as far as they never did

    def open(self, workers: int, preload: Sequence[str]) -> None:
        """Start the server; it imports the modules while the caller goes on.

        Args:
            workers: The most jobs at once, at least 1. The server needs no number.
            preload: Modules that most jobs import. One that can't be imported fails its jobs later.

        Raises:
            UsageError: If ``workers`` is less than 1.
            RlbenchError: If no process could be started.
        """
        if workers < 1:
            raise UsageError(f"engine 'local': workers={workers}, expected at least 1")
        self.close()
        self._preload = tuple(preload)
        self._server, self._started = _Server(self._preload), False

    def submit(self, job: Job) -> None:
        """Start a job.

        Raises:
            ValueError: If a job with this id is in flight, or its payload is no strict JSON.
            RlbenchError: If the server had died and no new one could be started, or several died
                before they started anything.
        """
        if job.id in self._pids:
            raise ValueError(f"job {job.id!r} is in flight already")
        request = wire.frame(
            {
                "id": job.id,
                "target": job.target,
                "payload": dict(job.payload),
                "timeout_s": job.timeout_s,
            }
        )
        if self._server is None:
            if len(self._stillborn) >= STILLBORN:
                raise RlbenchError(
                    f"engine 'local': its fork server died {len(self._stillborn)} times before it "
                    f"could start a job, the last time with {self._stillborn[-1]}"
                )
            self._server, self._started = _Server(self._preload), False
        self._pids[job.id] = None
        self._server.send(request)

    def events(self, timeout_s: float) -> list[JobEvent]:
        """Give what has happened; wait for it if nothing has, at most ``timeout_s`` seconds."""
        if not self._news:
            if self._server is None:
                time.sleep(timeout_s)
            elif self._server.wait(timeout_s):
                self._collect()
        news, self._news = self._news, []
        return news

    def close(self) -> None:
        """End all jobs at once, with all their children. Safe to call twice."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self._kill_groups()
        self._pids.clear()
        self._news.clear()

    def _collect(self) -> None:
        """Turn what the server has sent into events."""
        if self._server is None:
            return
        messages, alive = self._server.receive()
        for message in messages:
            self._note(message)
        if not alive:
            self._bury_server()

    def _note(self, message: Mapping[str, Any]) -> None:
        job, what = message["job"], message["what"]
        if what == "started":
            self._pids[job] = message["value"]["pid"]
            self._started = True
        elif what != "progress":
            del self._pids[job]
        self._news.append(JobEvent(job=job, what=what, value=message["value"]))

    def _bury_server(self) -> None:
        """Report every job of a dead server lost; the next job will start a new one."""
        server, self._server = self._server, None
        if server is None:
            return
        for message in server.receive()[0]:
            self._note(message)
        end = server.close()
        self._stillborn = [] if self._started else [*self._stillborn, end]
        reason = f"the fork server died ({end})"
        value = {"status": "killed", "reason": reason, "engine_died": True}
        self._kill_groups()
        server.kill_what_it_left()
        for job in list(self._pids):
            self._note({"job": job, "what": "lost", "value": value})

    def _kill_groups(self) -> None:
        """Kill what a dead server left: children of jobs, and jobs that could not die with it."""
        for pid in self._pids.values():
            if pid is not None:
                wire.kill_group(pid)


class _Server:
    """The engine's side of one fork server: its process and the socket to it."""

    def __init__(self, preload: Sequence[str]) -> None:
        self._frames = wire.Frames()
        self._messages: list[dict[str, Any]] = []
        self._unsent = bytearray()
        self._alive = True
        try:
            self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        except OSError as error:
            raise RlbenchError(f"engine 'local' needs a temporary file: {error}") from error
        self._socket, theirs = socket.socketpair()
        self._mark = os.urandom(16).hex()
        path = json.dumps([os.path.abspath(entry) for entry in sys.path])  # noqa: PTH100 - '' too
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter and the code above
                [sys.executable, "-P", "-c", START, str(theirs.fileno()), path],
                stdin=subprocess.DEVNULL,
                stdout=self._said,  # what a job prints must not look like a result of the caller
                stderr=self._said,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1"), MARK: self._mark},
                start_new_session=True,
            )
        except OSError as error:
            self._socket.close()
            self._said.close()
            raise RlbenchError(
                f"engine 'local' could not start {sys.executable or 'python'!r}: {error}"
            ) from error
        finally:
            theirs.close()
        os.set_blocking(self._socket.fileno(), False)
        self.send(wire.frame({"preload": list(preload), "caller": os.getpid()}))

    def send(self, data: bytes) -> None:
        """Send what the server takes now; `wait` sends the rest.

        Waiting here would make the caller deaf to Ctrl-C while the server imports modules.
        """
        self._unsent += data
        try:
            while self._unsent and self._alive:
                del self._unsent[: self._socket.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._alive = False

    def wait(self, timeout_s: float) -> bool:
        """Wait until there is something to receive, or the time is over; send meanwhile."""
        end = time.monotonic() + timeout_s
        while self._alive and not self._messages:
            events = POLLIN | (POLLOUT if self._unsent else 0)
            waiting = poll()  # select would refuse a descriptor above 1023
            waiting.register(self._socket.fileno(), events)
            found = waiting.poll(max(end - time.monotonic(), 0.0) * 1000)
            if not found:
                return False
            if found[0][1] != POLLOUT:
                return True
            self.send(b"")
        return True

    def receive(self) -> tuple[list[dict[str, Any]], bool]:
        """Give the messages that have come, and whether more can come."""
        for _ in range(READS):  # a server that never stops talking holds nobody up
            if not self._read():
                break
        messages, self._messages = self._messages, []
        return messages, self._alive

    def _read(self) -> bool:
        """Read once; False when nothing is there now."""
        try:
            data = self._socket.recv(wire.CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._alive = False
        self._messages += self._frames.feed(data)
        return bool(data)

    def close(self) -> str:
        """End the server and say how it ended, with the last line that it wrote."""
        self._socket.close()
        for patience_s, insist in (
            (CLOSE_S, self._process.terminate),
            (KILL_S, self._process.kill),
        ):
            try:
                self._process.wait(patience_s)
            except subprocess.TimeoutExpired:
                insist()
        self._process.wait()
        code = self._process.returncode
        said = f"signal {-code}" if code < 0 else f"exit code {code}"
        self._said.seek(0)
        lines = self._said.read().decode("utf-8", "replace").split("\n")
        self._said.close()
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"{said}: {last}" if last else said

    def kill_what_it_left(self) -> None:
        """Kill what descends from a dead server, if nobody else could: its guard was killed too.

        Elsewhere than on Linux there is nothing to look at, and nothing happens.
        """
        if self._process.returncode != -signal.SIGKILL:
            return
        wanted = f"{MARK}={self._mark}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it is gone, or somebody else's
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    os.kill(int(folder.name), signal.SIGKILL)
