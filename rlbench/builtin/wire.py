"""What the engine ``local`` and its fork server share: messages, and words for how a job ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HEADER = struct.Struct(">I")
CHUNK = 1 << 16  # bytes read at once
# What people and systems send to end a process; any other signal is the doing of the job itself.
FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
HINTS = {
    signal.SIGKILL: "; the system may have run out of memory",
    signal.SIGXCPU: "; it reached its limit of processor time",
    signal.SIGXFSZ: "; it reached its limit of the size of a file",
}


def frame(message: Mapping[str, Any]) -> bytes:
    """Encode one message: its length in four bytes, then strict JSON in UTF-8.

    Raises:
        TypeError: The message holds something that JSON has no word for.
        ValueError: It holds NaN or an infinity, or refers to itself.
    """
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    return HEADER.pack(len(body)) + body


class Frames:
    """Joins chunks of bytes back into messages."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Take some bytes and give every message that is whole by now."""
        self._rest += data
        while len(self._rest) >= HEADER.size:
            (length,) = HEADER.unpack_from(self._rest)
            end = HEADER.size + length
            if len(self._rest) < end:
                return
            body = bytes(self._rest[HEADER.size : end])
            del self._rest[:end]
            yield json.loads(body)


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
