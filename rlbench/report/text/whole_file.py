"""Files that appear in one step: readers see the old one or the new one, never half of it."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rlbench.errors import RlbenchError, UsageError
from rlbench.grid.reading import what_lies

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = 1 << 20  # bytes of a read


def check_place(path: Path, called: str | None = None) -> None:
    """Refuse a path at which no file can be put, before anything is read. It opens nothing.

    A link to a file stands for that file. Whether a file that is there may be overwritten is up to
    the caller, see `is_marked`.

    Args:
        path: Where the file is to be.
        called: What messages begin with; None means the path.

    Raises:
        UsageError: A folder, a FIFO, a device, a link to nowhere or one in a circle is there, or
            the folder that it would be in is not there or not writable.
    """
    said = str(path) if called is None else called
    if fault := _fault(path):
        raise UsageError(f"{said}: {fault}")
    folder = _target(path).parent
    if not os.path.isdir(folder):  # noqa: PTH112 - that of a path raises where it may not look
        raise UsageError(f"{said}: there is no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{said}: the folder {folder} is not writable")


def is_marked(path: Path, mark: bytes, within: int | None = None) -> bool:
    """Whether a file has a mark in it, or nothing at all; nothing but a file is waited for.

    Args:
        path: The file.
        mark: What is looked for.
        within: Only in so many bytes at its beginning; None means all of it.

    Returns:
        False also where it is no file, or can't be read.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode):
            return False
        left = about.st_size if within is None else min(within, about.st_size)
        tail, empty = b"", left == 0
        while left > 0 and (piece := os.read(number, min(_PIECE, left))):
            left -= len(piece)
            if mark in tail + piece:
                return True
            tail = (tail + piece)[-len(mark) :]
    except OSError:
        return False
    else:
        return empty
    finally:
        os.close(number)


@contextmanager
def in_one_step(path: Path) -> Iterator[Path]:
    """Write a file under another name, and put it in place when all of it is there.

    Where the path is a link to a file, that file is replaced and the link stays.

    Yields:
        The path to write to.

    Raises:
        UsageError: What lies there is no file, see `check_place`; it stays.
        RlbenchError: It can't be written; the disk is full, say. What was there before stays.
    """
    if fault := _fault(path):
        raise UsageError(f"{path}: {fault}")
    target = _target(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        yield partial
        partial.replace(target)
    except OSError as error:
        raise RlbenchError(f"{path} can't be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _fault(path: Path) -> str | None:
    """Say what is in the place of a file and is none; None if a file is there, or nothing."""
    try:
        os.stat(path)  # noqa: PTH116 - it tells errors apart that those of a path swallow
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "it is a link in a circle; name a file"
        if error.errno == errno.ENAMETOOLONG:
            return "the name is too long for a file; name another"
    sort = what_lies(path)
    return f"it is {sort}; name a file" if sort else None


def _target(path: Path) -> Path:
    """Follow links; a path that is no link stays as it was written."""
    is_link = os.path.islink(path)  # noqa: PTH114 - that of a path raises where it may not look
    return Path(os.path.realpath(path)) if is_link else path
