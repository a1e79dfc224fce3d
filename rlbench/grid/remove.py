"""Remove runs, and nothing but runs: what else lies in their folders stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.grid.store import LOCK, RESULT, SCHEMA, Busy, Store

if TYPE_CHECKING:
    from rlbench.grid.store import Record


def removable(record: Record) -> bool:
    """Whether a folder is that of a run of this version, and not just something beside the runs."""
    content = record.spec or record.result
    return content is not None and content.get("schema") == SCHEMA


def remove(store: Store, record: Record) -> str | None:
    """Remove one run.

    The result goes first: a removal that is interrupted leaves a run that is not complete.

    Args:
        store: Where the run is.
        record: The run.

    Returns:
        What is left of it and why, for people; None if it is gone.
    """
    folder = record.folder
    if folder.is_symlink():
        return f"{folder} is a link; what it points to stays"
    try:
        with store.locked(record.run_id, timeout_s=0):
            (folder / RESULT).unlink(missing_ok=True)
            store.clear(record.run_id)
            # Whoever waits for this lock finds that its file is gone, and makes another one.
            (folder / LOCK).unlink(missing_ok=True)
            left = sorted(path.name for path in folder.iterdir())
            if left:
                return f"{folder} stays: {', '.join(left)} is not of the run"
            folder.rmdir()
    except Busy:
        return f"{record.run_id} is running; nothing of it was removed"
    except OSError as error:
        return f"{folder} can't be removed: {error}"
    return None
