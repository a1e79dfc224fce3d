"""Files of plain values and tensors that are whole or not used: a digest stands in front.

torch alone does not notice a flipped bit, and would go on with other weights.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DIGEST_BYTES = 32


class Torn(Exception):  # noqa: N818 - what the file is; nobody made a mistake
    """A file is there and is not what was written."""


def read(path: Path) -> dict[str, Any]:
    """Read what `write` wrote; nothing in the file is executed.

    Raises:
        FileNotFoundError: There is no file.
        Torn: It is no file of this kind, or not a whole one.
    """
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise Torn("it is no file")
    content = path.read_bytes()
    digest, content = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != digest:
        raise Torn("it is torn, or nothing of rlbench")
    found: dict[str, Any] = torch.load(io.BytesIO(content), weights_only=True)
    return found


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Put a file in place in one step, also under a power cut.

    Raises:
        OSError: The disk is full, say; the file that was there stays.
    """
    blob = io.BytesIO()  # torch's own writer hides that a disk is full
    torch.save(dict(content), blob)
    new = path.with_name(f".{path.name}.new")
    try:
        with new.open("wb") as file:
            file.write(hashlib.sha256(blob.getbuffer()).digest())
            file.write(blob.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
