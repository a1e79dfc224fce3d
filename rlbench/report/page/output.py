"""A page as a file: in one step, and never over somebody else's file unless that is asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rlbench.errors import UsageError
from rlbench.grid.reading import what_lies
from rlbench.report.page.render import MARK
from rlbench.report.text.whole_file import in_one_step

if TYPE_CHECKING:
    from pathlib import Path

_HEAD = 4096  # bytes in which a page says whose it is


def check_path(path: Path, *, force: bool = False) -> None:
    """Refuse a file that can't or must not be written, before anything is read.

    Raises:
        UsageError: It is a folder or a device, its folder is not there or not writable, or it is a
            file that is no page of rlbench and ``force`` is not given.
    """
    if odd := what_lies(path):
        raise UsageError(f"--to {path}: it is {odd}; name a file")
    folder = path.parent
    if not folder.is_dir():
        raise UsageError(f"--to {path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"--to {path}: the folder {folder} is not writable")
    if path.exists() and not force and not _is_ours(path):
        raise UsageError(
            f"--to {path}: it is there already and no report of rlbench; --force overwrites it"
        )


def write(text: str, path: Path, *, force: bool = False) -> None:
    """Write a page; the file appears in one step.

    Args:
        text: What `render.render` made.
        path: Where to; a page that rlbench wrote there before is overwritten.
        force: Overwrite whatever is there.

    Raises:
        UsageError: See `check_path`.
        RlbenchError: It can't be written; the disk is full, say. What was there before stays.
    """
    check_path(path, force=force)
    with in_one_step(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def _is_ours(path: Path) -> bool:
    """Whether a file says that it is a page of ours, or has nothing in it."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return False
    return not head or MARK.encode() in head
