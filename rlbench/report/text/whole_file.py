"""Files that appear in one step: readers see the old one or the new one, never half of it."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rlbench.errors import RlbenchError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def in_one_step(path: Path) -> Iterator[Path]:
    """Write a file under another name, and put it in place when all of it is there.

    Yields:
        The path to write to.

    Raises:
        RlbenchError: It can't be written; the disk is full, say. What was there before stays.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        raise RlbenchError(f"{path} can't be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
