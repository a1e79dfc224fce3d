"""What the engine ``local`` and its fork server share: messages, and words for how a job ended.

A job writes its messages into a pipe that code of strangers can write into too: what is read there
is taken for a message only if it is one.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HEADER = struct.Struct(">I")
CHUNK = 1 << 16  # bytes read at once
LONGEST = 1 << 26  # bytes of a message; a result has some thousand
SHOWN = 40  # bytes of what is no message that are shown
# What people and systems send to end a process; any other signal is the doing of the job itself.
FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
HINTS = {
    signal.SIGKILL: "; the system may have run out of memory",
    signal.SIGXCPU: "; it reached its limit of processor time",
    signal.SIGXFSZ: "; it reached its limit of the size of a file",
}


class Garbled(ValueError):  # noqa: N818 - what the bytes are; who reads them did nothing wrong
    """What was read is no message."""


def frame(message: Mapping[str, Any]) -> bytes:
    """Encode one message: its length in four bytes, then strict JSON in UTF-8.

    Raises:
        TypeError: The message holds something that JSON has no word for.
        ValueError: It holds NaN or an infinity, refers to itself, or is longer than `LONGEST`.
    """
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    if len(body) > LONGEST:
        raise ValueError(f"it has {len(body):,} bytes as JSON; the most is {LONGEST:,}")
    return HEADER.pack(len(body)) + body


class Frames:
    """Joins chunks of bytes back into messages."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Take some bytes and give every message that is whole by now.

        Raises:
            Garbled: What comes next is no message, so that nothing behind it can be read either.
        """
        self._rest += data
        while len(self._rest) >= HEADER.size:
            (length,) = HEADER.unpack_from(self._rest)
            if length > LONGEST:
                raise Garbled(self.shown)
            end = HEADER.size + length
            if len(self._rest) < end:
                return
            try:
                message = json.loads(self._rest[HEADER.size : end])
            except (ValueError, RecursionError) as error:
                raise Garbled(self.shown) from error
            if not isinstance(message, dict):
                raise Garbled(self.shown)
            del self._rest[:end]
            yield message

    @property
    def shown(self) -> str:
        """The beginning of what has come and is no whole message; empty if there is nothing."""
        cut = "..." if len(self._rest) > SHOWN else ""
        return f"{bytes(self._rest[:SHOWN])!r}{cut}" if self._rest else ""


class Pipe:
    """A job's way to the server, where code of strangers closes and opens files.

    Args:
        descriptor: The end to write to.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._known = descriptor, _which(descriptor)
        self._lock = threading.Lock()

    def send(self, message: Mapping[str, Any]) -> None:
        """Write a message.

        Raises:
            TypeError, ValueError: It is no message; see `frame`.
            OSError: The pipe is closed, or its number belongs to another file by now.
        """
        data = memoryview(frame(message))
        with self._lock:
            if _which(self._descriptor) != self._known:
                raise OSError(
                    f"file descriptor {self._descriptor}, which this run reports through, was "
                    "closed by code in its process; a component may close what it opened, no more"
                )
            while data:
                data = data[os.write(self._descriptor, data) :]


def _which(descriptor: int) -> tuple[int, int] | None:
    """Tell one file from another; None for one that is closed."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def kill_group(pid: int) -> None:
    """Send SIGKILL to a job and to every process of its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def lost(job: str, status: str, reason: str) -> dict[str, Any]:
    """Make the message that ends a job without a result."""
    return {"what": "lost", "job": job, "value": {"status": status, "reason": reason}}


def blame(status: int) -> str:
    """Say whether a process that left no result was ``killed``, or ``failed`` by its own doing.

    Args:
        status: Its wait status.
    """
    outside = os.WIFSIGNALED(status) and os.WTERMSIG(status) in FROM_OUTSIDE
    return "killed" if outside else "failed"


def describe_exit(status: int) -> str:
    """Say in words how a process ended, from its wait status."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"its process exited with code {code} before it returned a result"
    try:
        number = signal.Signals(-code)
    except ValueError:
        return f"its process was ended by signal {-code} (unnamed)"
    return f"its process was ended by signal {-code} ({number.name}){HINTS.get(number, '')}"
