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


def describe_exit(status: int) -> str:
    """Say in words how a process ended, from its wait status."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"its process exited with code {code} before it returned a result"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unnamed"
    hint = "; the system may have run out of memory" if -code == signal.SIGKILL else ""
    return f"its process was ended by signal {-code} ({name}){hint}"
