"""Some finished runs once more, to see whether the same specification gives the same numbers."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from rlbench.grid import compare
from rlbench.grid.store import LOCK, METRICS, SCHEMA, VERIFIED, Busy, Store, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlbench.grid.attempt import Planned
    from rlbench.grid.store import Record

KEPT = "differs"  # a file that says why the folder of repeated runs stays
PREFIX = "verify-"  # of the folder, below that of the results, in which runs are repeated


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What came of repeating one run.

    Attributes:
        run_id: The run.
        same: Whether ``metrics.csv`` has the same bytes; None if that can't be told.
        where: The first update at which it parts, or why it can't be told; empty where it is same.
        folder: The repeated run, which is kept where numbers differ; None where it is not.
    """

    run_id: str
    same: bool | None
    where: str = ""
    folder: Path | None = None

    @property
    def text(self) -> str:
        """What was found, for people, of a run that did not come to the same numbers."""
        kept = f" (first | again); the repeated run is {self.folder}" if self.folder else ""
        return f"{self.where}{kept}"


def verify(
    planned: Sequence[Planned],
    records: Sequence[Record],
    count: int,
    *,
    out: Path,
    repeat: Callable[[Sequence[Planned], Path], Sequence[Record]],
) -> list[Verified]:
    """Repeat some of the runs that ended well, and compare their curves byte by byte.

    What was found is written beside each run, as ``verified.json``, so that later tables show it.
    The folder of repeated runs is removed unless numbers differ.

    Args:
        planned: The runs of a grid.
        records: What is on disk of each, in the same order.
        count: How many to repeat, chosen evenly; all if there are fewer.
        out: The folder of results.
        repeat: Executes runs in another folder, with nothing taken from this one.

    Returns:
        One finding a repeated run.
    """
    ended = [
        (run, record)
        for run, record in zip(planned, records, strict=True)
        if record.status == "ok" and (record.folder / METRICS).is_file()
    ]
    chosen = [ended[i * len(ended) // count] for i in range(count)] if count < len(ended) else ended
    if not chosen:
        return []
    _remove_abandoned(out)
    scratch = out / Path(tempfile.mkdtemp(prefix=PREFIX, dir=out)).name
    found: list[Verified] = []
    with FileLock(scratch / LOCK):
        try:
            again = repeat([run for run, _ in chosen], scratch)
            for (_, record), other in zip(chosen, again, strict=True):
                found.append(_compared(record, other))
                _note(Store(out), found[-1])
        finally:
            if all(one.same is not False for one in found):
                shutil.rmtree(scratch, ignore_errors=True)
            else:
                (scratch / KEPT).touch()
    return found


def _remove_abandoned(out: Path) -> None:
    """Remove what commands left that were killed while they repeated runs."""
    for folder in out.glob(f"{PREFIX}*"):
        if (folder / KEPT).exists():
            continue
        try:
            with FileLock(folder / LOCK, timeout=0):
                shutil.rmtree(folder, ignore_errors=True)
        except (Timeout, OSError):
            pass  # a command is at work there


def _compared(record: Record, other: Record) -> Verified:
    name = record.run_id
    if other.status != "ok":
        where = f"the repeated run ended as {other.status}"
        tried = other.status in ("failed", "diverged")  # the first one did not
        folder = other.folder if tried else None
        return Verified(run_id=name, same=False if tried else None, where=where, folder=folder)
    where = compare.of_files(record.folder / METRICS, other.folder / METRICS) or ""
    kept = other.folder if where else None
    return Verified(run_id=name, same=not where, where=where, folder=kept)


def _note(store: Store, found: Verified) -> None:
    """Write a finding beside its run, unless somebody is at work there."""
    if found.same is None:
        return
    content: dict[str, Any] = {"schema": SCHEMA, "run_id": found.run_id, "same": found.same}
    content["where"] = found.where
    if found.folder is not None:  # below the folder of results, which may be moved
        content["again"] = found.folder.relative_to(store.root).as_posix()
    try:
        with store.locked(found.run_id, timeout_s=1.0) as folder:
            write_json(folder / VERIFIED, content)
    except (Busy, OSError):
        pass  # it is said now, and only later tables lack it
