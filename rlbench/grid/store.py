"""Results on disk: one folder a run, ``<root>/runs/<run_id>``.

A run is complete exactly when its ``result.json`` is there, which is written last and put in place
in one step. Everything can be read back however the writer died, and whoever else put files there.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock, Timeout

from rlbench.errors import UsageError
from rlbench.grid.reading import (
    COMPLETE,
    digest,
    fault_of_result,
    fault_of_spec,
    read_object,
    what_lies,
)

SCHEMA = 1
SPEC, RESULT, LOCK = "spec.json", "result.json", "lock"
METRICS, EVALUATIONS, VERIFIED = "metrics.csv", "evals.csv", "verified.json"
CHECKPOINT = "checkpoint.pt"  # there while a run is not complete
ATTEMPT = (
    "spec.json",
    "metrics.csv",
    "timings.csv",
    "evals.csv",
    "samples.jsonl",
    "log.txt",
    "result.json",
)
_WRITTEN = (*ATTEMPT, VERIFIED, CHECKPOINT)
_OURS = frozenset((LOCK, *_WRITTEN, *(f".{name}.new" for name in _WRITTEN)))
_WHAT_TO_DO = "move it away, and give the same command again"
OWNER_S = 5.0  # how long a restart waits for the lock of a process that is dying
_BASE_FILE = re.compile(r"\.?([0-9a-f]{16})\.(pt|lock|pt\.new)")
_RUN_ID = re.compile(r"[a-z0-9][A-Za-z0-9_.-]*-[0-9a-f]{10}")


class Busy(Exception):  # noqa: N818 - no error: another process is at work
    """Another process holds the lock of a run."""


@dataclass(frozen=True)
class Record:
    """What is on disk of one run.

    Attributes:
        run_id: Name of its folder.
        folder: The folder.
        spec: What ``spec.json`` says; None if it is not there or can't be read.
        result: What ``result.json`` says; None likewise.
        problem: What is wrong with the folder, for people; None if nothing is.
        obstacle: What is in the way of doing the run, again or at all; see `obstacle`. Where a run
            ended well it is not looked for.
    """

    run_id: str
    folder: Path
    spec: dict[str, Any] | None
    result: dict[str, Any] | None
    problem: str | None
    obstacle: str | None = None

    @property
    def status(self) -> str:
        """The result's status; ``missing`` before there is one, ``unreadable`` if it is torn."""
        if self.result is not None:
            return str(self.result["status"])
        return "unreadable" if self.problem else "missing"

    @property
    def complete(self) -> bool:
        """Whether the run was tried to its end, good or bad, and is not to be run again."""
        return self.status in COMPLETE and self.spec is not None

    def damage(self) -> str | None:
        """Say that the curve on the disk is not the one that the run wrote; None if it is.

        It is read for this. One that is not there is no damage: it may have been left out.
        """
        curve = f"{self.folder}/{METRICS}"
        written = (self.result or {}).get("metrics_sha256")
        if isinstance(written, str) and (found := digest(curve)) is not None:
            return None if found == written else f"{curve} is not what the run wrote"
        sort = what_lies(curve)
        return f"{curve} is {sort}, where the curve of the run belongs" if sort else None


class Store:
    """All runs below one folder. Nothing is created before something is written.

    Args:
        root: The folder that commands name with ``-o``.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self.runs_folder = self.root / "runs"
        """Where the run folders are."""

    @property
    def base_folder(self) -> Path:
        """Where base policies are kept that runs share."""
        return self.root / "base"

    def run_folder(self, run_id: str) -> Path:
        """Folder of one run, whether it exists or not."""
        return self.runs_folder / run_id

    def read(self) -> list[Record]:
        """Read every run, sorted by name. What is no run is a record that says so.

        Raises:
            UsageError: It is a file, or can't be read.
        """
        return [self.record(name) for name in self.names()]

    def records(self, run_ids: Iterable[str]) -> Iterator[Record]:
        """Read some runs, most of which may not be there, as in the plan of a large grid."""
        there = self._names()
        for run_id in run_ids:
            if run_id in there:
                yield self.record(run_id)
            else:
                yield Record(run_id, self.run_folder(run_id), None, None, None)

    def _names(self) -> set[str]:
        """Names of everything where run folders are."""
        try:
            with os.scandir(self.runs_folder) as entries:
                return {entry.name for entry in entries}
        except OSError as error:
            odd = _no_folder(self.runs_folder)
            if odd is None and isinstance(error, FileNotFoundError):
                return set()
            raise UsageError(f"results can't be in {self.root}: {odd or error.strerror}") from error

    def names(self) -> list[str]:
        """Name every run, sorted, and every foreign file or folder beside them."""
        return sorted(name for name in self._names() if not name.startswith("."))

    def record(self, run_id: str) -> Record:
        """Read one run; a record without spec and result if there is nothing yet."""
        return read_run(self.run_folder(run_id))

    def stamp(self, run_id: str) -> int | None:
        """Tell one ``result.json`` of a run from a later one; None if there is none."""
        try:
            return os.stat(f"{self.runs_folder}/{run_id}/{RESULT}").st_mtime_ns  # noqa: PTH116 - of thousands of runs, paths as text are read faster
        except OSError:
            return None

    def blocked(self, run_ids: Iterable[str], *, retry: bool = False) -> set[str]:
        """Name the runs that are to do and can't be done for what lies in their places.

        Args:
            run_ids: The runs.
            retry: Whether failed ones are to do.
        """
        there = self._names()
        odd = [i for i in run_ids if i in there and obstacle(f"{self.runs_folder}/{i}")]
        found = (self.record(run_id) for run_id in odd)
        return {r.run_id for r in found if r.obstacle and (retry or not r.complete)}

    def blocked_base_policies(self) -> dict[str, str]:
        """Say, by the name of a base policy, what lies where it or its lock belongs."""
        try:
            with os.scandir(self.base_folder) as entries:
                odd = sorted(entry.path for entry in entries if not entry.is_file())
        except OSError:
            return {}
        found = {}
        for path in odd:
            file, sort = _BASE_FILE.fullmatch(Path(path).name), what_lies(path)
            if file and sort:
                belongs = "where the base policy of some runs or its lock belongs"
                found[file[1]] = f"{path} is {sort}, {belongs}; {_WHAT_TO_DO}"
        return found

    def check_writable(self) -> None:
        """Refuse a folder in which results can't be written, without creating anything.

        Raises:
            UsageError: It, the folder of base policies, or what has to be a folder above them, is
                a file or a link to nowhere, say; or it is not writable.
        """
        for folder in (self.runs_folder, self.base_folder):
            if odd := _no_folder(folder):
                raise UsageError(
                    f"results can't go to {self.root}: {odd}; name a folder with -o or move it away"
                )
        for place in (self.runs_folder, *self.runs_folder.parents):
            try:
                if not place.exists():
                    continue
            except OSError as error:
                raise UsageError(f"results can't go to {self.root}: {error}") from error
            if not os.access(place, os.W_OK | os.X_OK):
                raise UsageError(
                    f"results can't go to {self.root}: {place} is not writable; "
                    "name another folder with -o"
                )
            return

    @contextmanager
    def locked(self, run_id: str, timeout_s: float = OWNER_S) -> Iterator[Path]:
        """Be the only writer of a run; the kernel drops the lock with the process.

        Yields:
            The run's folder, which exists now.

        Raises:
            Busy: Another process still holds it after ``timeout_s`` seconds.
            FileExistsError: Something that is not of the run is in its place, see `obstacle`.
        """
        lock = self._lock(run_id, timeout_s)
        try:
            yield self.run_folder(run_id)
        finally:
            lock.release()

    def _lock(self, run_id: str, timeout_s: float) -> BaseFileLock:
        folder = self.run_folder(run_id)
        if found := obstacle(folder):
            raise FileExistsError(found)
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK)
        try:
            lock.acquire(timeout=timeout_s)
        except Timeout as error:
            raise Busy(f"run {run_id} belongs to another process now") from error
        return lock

    def running(self, run_id: str) -> bool:
        """Whether a process holds the lock of a run now; nothing is created to find out."""
        lock = self.run_folder(run_id) / LOCK
        try:
            if lock.is_file():
                FileLock(lock, timeout=0).acquire().lock.release()
        except Timeout:
            return True
        except OSError:  # not ours to look at
            return False
        return False

    def clear(self, run_id: str) -> None:
        """Remove what an earlier attempt left; the caller holds the lock."""
        folder = self.run_folder(run_id)
        for name in _WRITTEN:
            (folder / name).unlink(missing_ok=True)
            (folder / f".{name}.new").unlink(missing_ok=True)


def _no_folder(folder: Path) -> str | None:
    """Say what lies in the place of a folder, or of one above it: ``x is a file``."""
    place = next(filter(os.path.lexists, (folder, *folder.parents)), None)
    sort = "a folder" if place is None else what_lies(place) or "a file"
    return None if sort == "a folder" else f"{place} is {sort}"


def read_run(folder: Path) -> Record:
    """Read the folder of one run; a record without spec and result if there is nothing yet."""
    run_id, place = folder.name, str(folder)  # joining text is what makes reading thousands quick
    if not _RUN_ID.fullmatch(run_id):
        return Record(run_id, folder, None, None, f"{folder} is not the folder of a run")
    spec, spec_problem = read_object(f"{place}/{SPEC}")
    result, result_problem = read_object(f"{place}/{RESULT}")
    problems: list[str | None] = [spec_problem, result_problem]
    if spec is not None and spec.get("run_id") != run_id:
        problems = [f"{folder / SPEC} belongs to run {spec.get('run_id')!r}"]
        spec = result = None
    for name, content in ((SPEC, spec), (RESULT, result)):
        if content is not None and content.get("schema") != SCHEMA:
            problems.append(
                f"{folder / name} has schema {content.get('schema')!r}; "
                f"this version of rlbench writes {SCHEMA}"
            )
    if spec is not None and (fault := fault_of_spec(spec)):
        problems.append(f"{folder / SPEC} {fault}")
        spec = None
    if result is not None and (fault := fault_of_result(result)):
        problems.append(f"{folder / RESULT} {fault}")
        result = None
    status = None if result is None or spec is None else result["status"]
    if status == "ok" and result is not None and result.get("score") is None:
        problems.append(f"{folder / RESULT} says ok without a score; it counts as failed")
    in_the_way = None if status == "ok" else obstacle(place)
    if status not in COMPLETE:
        problems.insert(0, in_the_way)
    problem = next(filter(None, problems), None)
    return Record(run_id, folder, spec, result, problem, in_the_way)


def obstacle(folder: Path | str) -> str | None:
    """Say what lies where a run is to be written, and is nothing that a run writes.

    Args:
        folder: Where the folder of the run is or may come to be.

    Returns:
        One line with the path, what is there and what to do; None if nothing is in the way.
    """
    try:
        with os.scandir(folder) as entries:
            odd = [e.path for e in entries if e.name in _OURS and not e.is_file()]
    except OSError as error:  # nothing is there, or it may not be looked at, which reading it tells
        sort = what_lies(folder) or ("a file" if isinstance(error, NotADirectoryError) else None)
        if sort in (None, "a folder"):
            return None
        return f"{folder} is {sort}, where the folder of a run belongs; {_WHAT_TO_DO}"
    for path in sorted(odd):
        if kind := what_lies(path):
            return f"{path} is {kind}, where a file of the run belongs; {_WHAT_TO_DO}"
    return None


def write_json(path: Path, content: Mapping[str, Any], *, sync: bool = True) -> None:
    """Write strict JSON so that readers see the old file or the new one, even after a power cut.

    Args:
        path: Where to.
        content: What to write.
        sync: False leaves it to the caller to have thousands of files written out at once; only a
            power cut before that can leave an empty one.

    Raises:
        OSError: The disk is full, say. The old file, or its absence, is left as it was.
        ValueError: The content holds NaN or an infinity; see `strict`.
    """
    new = path.with_name(f".{path.name}.new")
    try:
        with new.open("w", encoding="utf-8", newline="\n") as stream:
            json.dump(content, stream, indent=1, allow_nan=False, ensure_ascii=False)
            stream.write("\n")
            if sync:
                stream.flush()
                os.fsync(stream.fileno())
        new.replace(path)
    except BaseException:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise
    if not sync:
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def strict(value: Any, reasons: list[str], name: str = "") -> Any:
    """Turn a value into what strict JSON can hold.

    Args:
        value: Numbers (of numpy and torch too), text, lists and mappings of them.
        reasons: Gets a line for each number that is not finite, which becomes None.
        name: How the lines call the value.

    Returns:
        Plain Python; of anything else its ``str``.
    """
    if isinstance(value, Mapping):
        return {
            str(k): strict(v, reasons, f"{name}.{k}" if name else str(k)) for k, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [strict(v, reasons, f"{name}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, str):  # half a surrogate pair, from a file name say, is no UTF-8
        return value.encode("utf-8", "backslashreplace").decode()
    if value is None or isinstance(value, bool):
        return value
    if hasattr(value, "item"):  # a scalar of numpy or torch
        value = value.item()
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        reasons.append(f"{name} was {value}")
        return None
    return str(value)
