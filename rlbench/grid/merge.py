"""Runs of several folders in one: each once and whole, and none in place of other numbers."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from rlbench.errors import NothingSelected, UsageError
from rlbench.grid import compare
from rlbench.grid.race import PLAN
from rlbench.grid.race_file import bring, races_of
from rlbench.grid.reading import COMPLETE, read_bytes, what_lies
from rlbench.grid.store import LOCK, RESULT, SCHEMA, SPEC, Busy, Store, obstacle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rlbench.grid.store import Record

What = Literal["copied", "equal", "kept", "left", "not whole", "conflict"]
WORDS = {
    "copied": "copied",
    "equal": "there already",
    "kept": "not as good as what is there",
    "left": "left",
    "not whole": "left as not whole",
    "conflict": "with other numbers",
}
"""How many runs are spoken of, by what became of them."""
_LAST = {SPEC: 1, RESULT: 2}  # files that are put into place behind the others
MARK = ".merging-"  # names that begin with a dot are nobody's run


class _Unreadable(Exception):  # noqa: N818 - it says what was found of a run
    """A file of a run can't be read."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """What became of one run, of one base policy, or of the plans of races of a folder.

    Attributes:
        name: Of the run's folder, or of the file.
        what: ``copied``; ``equal``, the same is there already; ``kept``, what is there is as good
            or better; ``left``, it can't be taken; ``not whole``, it can't be taken because files
            of it can't be read; ``conflict``, the same run has other numbers.
        why: For people; empty where ``what`` says it all.
        is_run: Whether it is a run, and counts as one.
    """

    name: str
    what: What
    why: str = ""
    is_run: bool = True


def merge(sources: Sequence[Store], target: Store) -> Iterator[Step]:
    """Copy the runs and base policies of some folders into another one.

    A run that is there with the same bytes is kept once. With other numbers it stays where it is
    and is named: the same specification gave different numbers. A complete run takes the place of
    an incomplete one, and one that ended well that of one that did not. Each run appears in one
    step, so an interrupted merge is repeated with the same command. Plans of races come first: it
    has to be known of runs that their number was decided by what they showed.

    Args:
        sources: Where runs come from; nothing is changed there.
        target: Where they go.

    Yields:
        A step for each run, and for each base policy and plans of races that were copied, as it
        happens.

    Raises:
        UsageError: A source is the target, which must be writable; or plans of races can't be read.
        NothingSelected: A source has no results.
        OSError: The target can't be written any more; the disk is full, say.
    """
    for source in sources:
        if source.root.resolve() == target.root.resolve():
            raise UsageError(f"{source.root} is the folder to merge into; name others")
        if not source.names():
            raise NothingSelected(f"no results in {source.root}")
    target.check_writable()
    for store in (*sources, target):
        races_of(store.root)
    for source in sources:
        yield from _races(source, target)
    for source in sources:
        for name in source.names():
            yield _run(source, target, name)
        yield from _base_policies(source, target)


def _races(source: Store, target: Store) -> Iterator[Step]:
    new, said = bring(source.root, target.root)
    where = source.root / PLAN
    for text in said:
        yield Step(name=str(where), what="copied", why=text, is_run=False)
    if new and not said:
        plans = "1 plan of a race" if new == 1 else f"{new:,} plans of races"
        yield Step(name=str(where), what="copied", why=plans, is_run=False)


def _run(source: Store, target: Store, name: str) -> Step:
    record = source.record(name)
    if record.spec is None and _can_t_be_read(record):
        return Step(name=name, what="not whole", why=str(record.problem))
    if record.spec is None or record.spec.get("schema") != SCHEMA:
        why = record.problem or f"{record.folder} has no specification"
        return Step(name=name, what="left", why=why)
    try:
        foreign = _look_through(record)
        with _quiet(source, record), target.locked(name, timeout_s=0):
            step = _settle(record, target)
    except _Unreadable as fault:
        return Step(name=name, what="not whole", why=str(fault))
    except Busy as busy:
        return Step(name=name, what="left", why=f"it is running: {busy}")
    except FileExistsError as error:  # what is in its place, or in that of its lock, is no run's
        return Step(name=name, what="left", why=str(error))
    if step.what == "copied" and foreign:
        why = "; ".join(filter(None, (step.why, f"without {', '.join(foreign)}")))
        return replace(step, why=why)
    return step


def _can_t_be_read(record: Record) -> bool:
    """Whether a folder without a readable specification has one, or may have one."""
    seen = os.access(record.folder, os.R_OK | os.X_OK) or not record.folder.is_dir()
    return record.problem is not None and (not seen or os.path.lexists(record.folder / SPEC))


def _look_through(record: Record) -> list[str]:
    """Open all that a run consists of, before anything of it is copied.

    Returns:
        What lies in its folder, is no file, and is not of the run.

    Raises:
        _Unreadable: A file of the run is something else, is not what it wrote, or can't be read.
    """
    foreign = []
    if fault := record.damage() or obstacle(record.folder):
        raise _Unreadable(fault)
    for file in _files(record):
        if sort := what_lies(file):
            foreign.append(f"{file.name}, {sort}")
            continue
        try:
            os.close(os.open(file, os.O_RDONLY | os.O_NONBLOCK))
        except OSError as error:
            raise _unreadable(file, error) from error
    return foreign


def _files(record: Record) -> list[Path]:
    """List what is in the folder of a run, but for its lock and what begins with a dot."""
    try:
        there = sorted(record.folder.iterdir())
    except OSError as error:
        raise _unreadable(record.folder, error) from error
    return [file for file in there if file.name != LOCK and not file.name.startswith(".")]


def _unreadable(path: Path, error: OSError) -> _Unreadable:
    return _Unreadable(f"{path} can't be read: {error.strerror or error}")


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
    """Put a run into place, its result last: until then the run does not count.

    Its specification comes before that: without it nothing is there, and the next merge copies all.
    """
    partial = target.runs_folder / f"{MARK}{record.run_id}"
    shutil.rmtree(partial, ignore_errors=True)  # of a merge that was interrupted
    partial.mkdir(parents=True)
    try:
        for file in _files(record):
            if what_lies(file) is None:
                _write(partial / file.name, _read(file))
        target.clear(record.run_id)
        folder = target.run_folder(record.run_id)
        for file in sorted(partial.iterdir(), key=lambda file: _LAST.get(file.name, 0)):
            file.replace(folder / file.name)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _read(file: Path) -> bytes:
    try:
        return read_bytes(file)
    except OSError as error:
        raise _unreadable(file, error) from error


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
    with ExitStack() as held:
        try:
            held.enter_context(source.locked(record.run_id, timeout_s=0))
        except OSError as error:
            raise _unreadable(record.folder / LOCK, error) from error
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
            yield Step(name=file.name, what="left", why=str(error), is_run=False)
        else:
            yield Step(name=file.name, what="copied", is_run=False)
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
