"""The files that a run writes while it goes on."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import time
from typing import IO, TYPE_CHECKING, Any

from rlbench.grid.store import strict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

TABLES = ("metrics.csv", "timings.csv", "evals.csv")
PROGRESS_S = 0.1  # more often is of no use to a person


class Table:
    """One CSV file. The first row fixes the columns; every row is on disk when `add` returns.

    Args:
        path: The file, to be created.
        note: Hears of a column that came too late to be written.
    """

    def __init__(self, path: Path, note: Callable[[str], None]) -> None:
        self._path, self._note = path, note
        self._stream: IO[str] | None = None
        self._columns: dict[str, None] = {}
        self._late: set[str] = set()

    def go_on(self, length: int) -> None:
        """Write behind the first so many bytes of the file; the rest goes.

        Raises:
            ValueError: The file is shorter than that.
        """
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        _cut(self._path, length)
        if length > 0:
            with self._path.open(encoding="utf-8", newline="") as stream:
                self._columns = dict.fromkeys(next(csv.reader(stream)))
            self._stream = self._path.open("a", encoding="utf-8", newline="")

    def add(self, row: Mapping[str, float | int | None]) -> None:
        """Write a row: integers plain, floats so that they read back the same, the rest empty."""
        if self._stream is None:
            self._stream = self._path.open("w", encoding="utf-8", newline="")
            self._columns = dict.fromkeys(row)
            self._write(list(row))
        for name in row.keys() - self._columns.keys() - self._late:
            self._late.add(name)
            self._note(f"{self._path.name}: no column for {name!r}, which was not in the first row")
        self._write([_cell(row.get(name)) for name in self._columns])

    def _write(self, cells: Sequence[str]) -> None:
        if self._stream is not None:
            csv.writer(self._stream, lineterminator="\n").writerow(cells)
            self._stream.flush()

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()


def _check_beginning(path: Path, length: int, digest: str) -> None:
    """Raise ValueError if the first bytes of a file are not those that were written."""
    content = path.read_bytes()[:length] if path.is_file() else b""
    if len(content) < length:
        raise ValueError(f"{path.name} has {len(content)} bytes, expected at least {length}")
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{path.name} is not what was written")


def _cut(path: Path, length: int) -> None:
    """Shorten a file; without a byte it goes."""
    there = path.stat().st_size if path.exists() else 0
    if there < length:
        raise ValueError(f"{path.name} has {there} bytes of {length}")
    if length > 0:
        os.truncate(path, length)
    else:
        path.unlink(missing_ok=True)


def _cell(value: Any) -> str:
    if hasattr(value, "item"):  # a scalar of numpy or torch
        value = value.item()
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""  # a run with such a number is diverged, and says so in its result
    return str(int(value)) if isinstance(value, int) else repr(float(value))


class RunRecorder:
    """Writes what a run tells into its folder; a `rlbench.training.recorder.Recorder`.

    Args:
        folder: The run's folder.
        base_folder: Where base policies are kept.
        log: The open ``log.txt``.
        report: Passes progress on to whoever started the run.
    """

    def __init__(
        self,
        folder: Path,
        base_folder: Path,
        log: IO[str],
        report: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self.base_folder = base_folder
        self._log, self._report = log, report
        tables = [Table(folder / name, self.log) for name in TABLES]
        self._metrics, self._timings, self._evaluations = tables
        self._tables = {folder / name: table for name, table in zip(TABLES, tables, strict=True)}
        self._samples = folder / "samples.jsonl"
        self._told: tuple[str, float] = ("", 0.0)

    def update(self, row: Mapping[str, float | int | None]) -> None:
        """Write one row of ``metrics.csv``."""
        self._metrics.add(row)

    def timing(self, row: Mapping[str, float]) -> None:
        """Write one row of ``timings.csv``."""
        self._timings.add(row)

    def evaluation(self, row: Mapping[str, float | int | None]) -> None:
        """Write one row of ``evals.csv``."""
        self._evaluations.add(row)

    def samples(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append lines to ``samples.jsonl``; a number that is not finite becomes null."""
        lines = [json.dumps(strict(row, []), allow_nan=False, ensure_ascii=False) for row in rows]
        with self._samples.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write("".join(f"{line}\n" for line in lines))

    def position(self) -> dict[str, tuple[int, str]]:
        """Tell the length of each file in bytes and its hash, once all of it is on the disk."""
        found = {}
        for path in (*self._tables, self._samples):
            if path.exists():
                with path.open("rb") as stream:
                    os.fsync(stream.fileno())
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
                    found[path.name] = (stream.tell(), digest)
        return found

    def rewind(self, position: Mapping[str, tuple[int, str]]) -> None:
        """Go back to a position that an earlier process told; files it does not name go.

        Raises:
            ValueError: A file does not begin with what it had at that position.
        """
        for path in (*self._tables, self._samples):
            length, digest = position.get(path.name, (0, ""))
            if length:
                _check_beginning(path, length, digest)
        for path, table in self._tables.items():
            table.go_on(position.get(path.name, (0, ""))[0])
        _cut(self._samples, position.get(self._samples.name, (0, ""))[0])

    def progress(self, done: int, total: int, phase: str) -> None:
        """Pass progress on, not more often than a person can see."""
        now = time.monotonic()
        if done >= total or phase != self._told[0] or now - self._told[1] >= PROGRESS_S:
            self._told = (phase, now)
            self._report({"done": done, "total": total, "phase": phase})

    def log(self, text: str) -> None:
        """Write one line of ``log.txt``."""
        self._log.write(f"{text}\n")
        self._log.flush()

    def close(self) -> None:
        """Close all files but the log."""
        for table in self._tables.values():
            table.close()
