"""A page as a file: in one step, and never over somebody else's file unless that is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.errors import UsageError
from rlbench.report.page.render import MARK
from rlbench.report.text.whole_file import check_place, in_one_step, is_marked

if TYPE_CHECKING:
    from pathlib import Path

_HEAD = 4096  # bytes in which a page says whose it is


def check_path(path: Path, *, force: bool = False) -> None:
    """Refuse a file that can't or must not be written, before anything is read.

    Raises:
        UsageError: It is a folder or a device, its folder is not there or not writable, or it is a
            file that is no page of rlbench and ``force`` is not given.
    """
    check_place(path, f"--to {path}")
    if path.exists() and not force and not is_marked(path, MARK.encode(), within=_HEAD):
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
