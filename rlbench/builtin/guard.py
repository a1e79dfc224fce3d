"""The process above the fork server: it cleans up when the server can't.

The server kills what its jobs leave behind. A server that is killed itself leaves that undone: its
jobs die with it, by the kernel, but processes that jobs have started do not. Linux gives orphans to
the next process above them that asked for orphans; the guard does, and kills every one it gets. It
holds a few megabytes and does nothing else, so that nobody has a reason to kill it.

If the guard dies alone, the kernel tells the server to clean up and end. If both are killed in one
moment, the engine looks for a mark in the environment of processes; one that has thrown its
environment away can go on then, and so can any if the engine's process is killed as well.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from select import POLLIN, poll
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import socket
    from collections.abc import Container, Iterator

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # from linux/prctl.h
CALLER_CHECK_S = 1.0  # how long a caller can be gone unnoticed while others hold its socket open
BURIAL_S = 5.0  # how long dying takes at most; a process that waits for a dead disk can't be killed
AWAITED = (signal.SIGCHLD, signal.SIGTERM)


def prctl(option: int, value: int) -> None:
    """Set a process attribute; a system without prctl has the engine to clean up."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def bury_children(patience_s: float) -> None:
    """Kill every child and every orphan that comes after it, until there is none."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            kill_children()
            time.sleep(0.005)


def kill_children(but: Container[int] = ()) -> None:
    """Kill children of this process.

    Args:
        but: Those that stay.
    """
    for child in _own_children():
        if child not in but:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)


def _own_children() -> list[int]:
    """Processes whose parent is this one; none where the system doesn't tell."""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
        return [int(word) for word in text.split()]
    return []


def leave_a_guard(engine: socket.socket, caller: int) -> int:
    """Go on as a child of this process, which becomes the guard; elsewhere than on Linux, as it is.

    Args:
        engine: The socket to the engine, which the guard closes: the engine must see it closed when
            the server dies.
        caller: Process id of the engine's process.

    Returns:
        The process whose child this one is from now on; when it is no more, nobody needs the
        server. The guard never returns.
    """
    if sys.platform != "linux":
        return caller
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    guard = os.getpid()
    server = os.fork()
    if server:
        engine.close()
        _guard(server, caller)
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != guard:  # it died before the request above
        os._exit(1)
    return guard


def _guard(server: int, caller: int) -> NoReturn:
    """Wait for the server's end, bury what it leaves, and end in the same way."""
    asked = False
    while True:
        heard = signal.sigtimedwait(AWAITED, CALLER_CHECK_S)
        with contextlib.suppress(ProcessLookupError):
            if heard is not None and heard.si_signo == signal.SIGTERM:
                os.kill(server, signal.SIGKILL)  # the engine has waited long enough
            elif os.getppid() != caller:
                os.kill(server, signal.SIGKILL if asked else signal.SIGTERM)
                asked = heard is None
        pid, status = os.waitpid(server, os.WNOHANG)
        if pid:
            break
    bury_children(BURIAL_S)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the server has left one, if anybody
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) % 256)


@contextlib.contextmanager
def leave_with(engine: socket.socket) -> Iterator[None]:
    """Exit at once if the engine's end closes while the block runs: an import takes seconds.

    The thread is gone when the block ends, so that no fork ever happens beside a thread.
    """
    reading, writing = os.pipe()

    def watch() -> None:
        watched = poll()
        watched.register(engine.fileno(), 0)  # hang-ups are always told
        watched.register(reading, POLLIN)
        if any(found != reading for found, _ in watched.poll()):
            os._exit(0)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        os.write(writing, b"x")
        thread.join()
        os.close(reading)
        os.close(writing)
