"""Runs of several folders in one: each once and whole, and none in place of other numbers."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rlbench.errors import UsageError
from rlbench.grid import compare
from rlbench.grid.reading import COMPLETE, read_bytes
from rlbench.grid.store import LOCK, RESULT, SCHEMA, Busy, Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rlbench.grid.store import Record

What = Literal["copied", "equal", "kept", "left", "conflict"]
WORDS = {
    "copied": "copied",
    "equal": "there already",
    "kept": "not as good as what is there",
    "left": "left",
    "conflict": "with other numbers",
}
"""How many runs are spoken of, by what became of them."""
BASE_POLICY = "base policy"
MARK = ".merging-"  # names that begin with a dot are nobody's run


@dataclass(frozen=True, kw_only=True)
class Step:
    """What became of one run, or of one base policy.

    Attributes:
        name: Of the run's folder, or of the file.
        what: ``copied``; ``equal``, the same is there already; ``kept``, what is there is as good
            or better; ``left``, it can't be taken; ``conflict``, the same run has other numbers.
        why: For people; empty where ``what`` says it all.
    """

    name: str
    what: What
    why: str = ""


def merge(sources: Sequence[Store], target: Store) -> Iterator[Step]:
    """Copy the runs and base policies of some folders into another one.

    A run that is there with the same bytes is kept once. With other numbers it stays where it is
    and is named: the same specification gave different numbers. A complete run takes the place of
    an incomplete one, and one that ended well that of one that did not. Each run appears in one
    step, so an interrupted merge is repeated with the same command.

    Args:
        sources: Where runs come from; nothing is changed there.
        target: Where they go.

    Yields:
        A step for each run, and for each base policy that was copied, as it happens.

    Raises:
        UsageError: A source has no results, or is the target, which must be writable.
    """
    for source in sources:
        if source.root.resolve() == target.root.resolve():
            raise UsageError(f"{source.root} is the folder to merge into; name others")
        if not source.names():
            raise UsageError(f"no results in {source.root}")
    target.check_writable()
    for source in sources:
        for name in source.names():
            yield _run(source, target, name)
        yield from _base_policies(source, target)


def _run(source: Store, target: Store, name: str) -> Step:
    record = source.record(name)
    if record.spec is None or record.spec.get("schema") != SCHEMA:
        why = record.problem or f"{record.folder} has no specification"
        return Step(name=name, what="left", why=why)
    if damage := record.damage():
        return Step(name=name, what="left", why=damage)
    try:
        with _quiet(source, record), target.locked(name, timeout_s=0):
            return _settle(record, target)
    except Busy as busy:
        return Step(name=name, what="left", why=f"it is running: {busy}")
    except FileExistsError as error:  # what is in its place, or in that of its lock, is no run's
        return Step(name=name, what="left", why=str(error))


def _settle(record: Record, target: Store) -> Step:
    """Decide between a run and what is in its place; the caller holds the lock there."""
    name, present = record.run_id, target.record(record.run_id)
    if present.spec is not None and present.spec.get("schema") != SCHEMA:
        return Step(name=name, what="left", why=f"in its place {present.problem}")
    if record.complete and present.complete:
        ours, theirs = present.status == "ok", record.status == "ok"
        where = compare.of_numbers(present, record) if ours == theirs else None
        if where is not None:
            return Step(name=name, what="conflict", why=_both(present, record, where))
        if ours == theirs:
            return Step(name=name, what="equal")
    if _rank(record) <= _rank(present):
        why = f"{present.status} there, {record.status} in {record.folder}"
        return Step(name=name, what="kept", why=why)
    _copy(record, target)
    replaced = "" if present.spec is None else f"in place of one that was {present.status}"
    return Step(name=name, what="copied", why=replaced if record.complete else record.status)


def _rank(record: Record) -> int:
    """Order runs: nothing, not complete, complete, ended well."""
    if record.spec is None:
        return 0
    if not record.complete:
        return 1
    return 3 if record.status == "ok" else 2


def _both(present: Record, other: Record, where: str) -> str:
    beside = compare.of_provenance(present, other)
    made = f"; they were made with other {', '.join(name for name, _ in beside)}" if beside else ""
    return f"the same specification gave different numbers: {where}; see {other.folder}{made}"


def _copy(record: Record, target: Store) -> None:
    """Put a run into place, its result last: until then the run does not count."""
    partial = target.runs_folder / f"{MARK}{record.run_id}"
    shutil.rmtree(partial, ignore_errors=True)  # of a merge that was interrupted
    partial.mkdir(parents=True)
    try:
        for file in record.folder.iterdir():
            if file.is_file() and file.name != LOCK and not file.name.startswith("."):
                _write(partial / file.name, read_bytes(file))
        target.clear(record.run_id)
        folder = target.run_folder(record.run_id)
        for file in sorted(partial.iterdir(), key=lambda file: file.name == RESULT):
            file.replace(folder / file.name)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def _quiet(source: Store, record: Record) -> Iterator[None]:
    """Keep others from changing a run while it is copied, as far as its folder allows it."""
    if not os.access(record.folder, os.W_OK):
        yield  # nobody changes what can't be written, and no lock can be made there
        return
    if record.status in COMPLETE and not (record.folder / LOCK).exists():
        yield  # it came from elsewhere, without a lock; the source is not to be written to
        return
    with source.locked(record.run_id, timeout_s=0):
        yield


def _base_policies(source: Store, target: Store) -> Iterator[Step]:
    """Copy the base policies that are not there; their names are hashes of all that made them."""
    for file in sorted(source.base_folder.glob("*.pt")):
        place = target.base_folder / file.name
        if place.exists() or not file.is_file():
            continue
        partial = place.with_suffix(f".{os.getpid()}.partial")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            _write(partial, read_bytes(file))
            partial.replace(place)
        except OSError as error:  # a cache: it can be made again
            yield Step(name=file.name, what="left", why=str(error))
        else:
            yield Step(name=file.name, what="copied", why=BASE_POLICY)
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
