"""Learning curves of runs: columns of their ``evals.csv`` and ``metrics.csv`` as arrays."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rlbench.errors import NothingSelected, UsageError
from rlbench.grid.importing import is_foreign
from rlbench.grid.reading import read_bytes
from rlbench.grid.store import EVALUATIONS, METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rlbench.report.cells.cell import Cell, Seed

    Array = NDArray[np.float64]

UPDATE = "update"
_FILES = (EVALUATIONS, METRICS)  # where a name is looked for, in this order
# keys of results that evaluations have too
_EVALUATED = ("score", "reward", "kl", "entropy", "length")


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One column of one run.

    Attributes:
        seed: The run, as a seed of its cell.
        updates: Updates (k,), ascending, each once, at which the run has a value.
        values: Values (k,), all finite.
        ended: The last update of which the run wrote anything, where it failed; None where it ended
            well, and where its last value is of that update.
    """

    seed: Seed
    updates: Array
    values: Array
    ended: float | None = None


@dataclass(frozen=True, kw_only=True)
class Curves:
    """One column of all runs of some cells.

    Attributes:
        column: Its name in the file.
        file: ``evals.csv`` or ``metrics.csv``.
        cells: For each cell, the curves of its tried seeds that have one.
        problems: What was left out or mended, run by run, for people.
    """

    column: str
    file: str
    cells: tuple[tuple[Curve, ...], ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Course:
    """The mean over the seeds of a cell, update by update.

    Attributes:
        updates: Updates (k,) at which any seed has a value.
        n: Number of seeds (k,) that have one there.
        mean: Mean (k,) over these.
        low: Lower bound (k,): the t interval's from three seeds on, the least of two; NaN for one.
        high: Upper bound (k,), likewise.
        going: Number of seeds (k,) whose curve has not ended before; above ``n`` in a gap.
    """

    updates: Array
    n: NDArray[np.int64]
    mean: Array
    low: Array
    high: Array
    going: NDArray[np.int64]


def read(cells: Sequence[Cell], column: str | None = None) -> Curves:
    """Read one column of every tried run.

    A line that has no end yet is left out, and so is a curve that can't be read. Where updates go
    back, as behind a restart, the later attempt counts.

    Args:
        cells: Whose runs.
        column: A name that is in ``evals.csv`` or, if not there, in ``metrics.csv``; or
            ``evals.NAME`` or ``metrics.NAME``. None means what the cells are compared by, or the
            score where evaluations don't have that.

    Raises:
        UsageError: No run has such a column; names the nearest.
        NothingSelected: No run has any curve.
    """
    asked = column or _default(cells)
    name, files = _parsed(asked)
    seen: list[_File] = []
    for file in files:
        found = _File(file)
        read_here = tuple(tuple(found.curves(cell.tried, name)) for cell in cells)
        if any(read_here):
            return Curves(column=name, file=file, cells=read_here, problems=tuple(found.problems))
        seen.append(found)
    problems = [problem for file in seen for problem in file.problems]
    if not any(file.names for file in seen):
        more = f"; {problems[0]}" if problems else ""
        foreign = [is_foreign(seed.record) for cell in cells for seed in cell.tried]
        if foreign and all(foreign):
            raise NothingSelected(
                "these results were imported without curves; rlbench import --map step=COLUMN "
                "brings them, from a file with a row an evaluation"
            )
        raise NothingSelected(f"no run has a curve in its {' or '.join(files)}{more}")
    if any(name in file.names for file in seen):
        raise NothingSelected(f"no run has a number in column {asked}; {problems[0]}")
    raise UsageError.unknown("column", asked, _names(seen, in_full=len(files) == 1))


def course(curves: Sequence[Curve], level: float = 0.95) -> Course:
    """Average curves update by update, over the seeds that have a value there.

    Args:
        curves: At least one.
        level: Confidence level of the band.
    """
    from rlbench.stats import mean_interval

    updates = np.unique(np.concatenate([curve.updates for curve in curves]))
    table = np.full((len(curves), len(updates)), np.nan)
    for row, curve in zip(table, curves, strict=True):
        row[np.searchsorted(updates, curve.updates)] = curve.values
    there = np.isfinite(table)
    mean, low, high = (np.full(len(updates), np.nan) for _ in range(3))
    for place in range(len(updates)):
        values = table[there[:, place], place]
        interval = mean_interval(values, level)
        mean[place] = interval.mid
        if len(values) == 2:
            low[place], high[place] = values.min(), values.max()
        elif interval.low is not None and interval.high is not None:
            low[place], high[place] = interval.low, interval.high
    last = np.sort([curve.updates[-1] for curve in curves])
    return Course(
        updates=updates,
        n=there.sum(axis=0),
        mean=mean,
        low=low,
        high=high,
        going=len(curves) - np.searchsorted(last, updates, side="left"),
    )


def stretches(curves: Sequence[Curve], level: float = 0.95) -> list[Course]:
    """Cut the course of a cell where seeds end: within each stretch the same seeds go on.

    A stretch begins where the one before it ends, with the mean over its own seeds: what falls or
    rises along a line are never the seeds that are in it.

    Args:
        curves: At least one.
        level: Confidence level of the bands.
    """
    whole = course(curves, level)
    cuts = [0, *(np.flatnonzero(np.diff(whole.going)) + 1).tolist(), len(whole.updates)]
    found = []
    for start, stop in pairwise(cuts):
        begin, end = whole.updates[start], whole.updates[stop - 1]
        going = [curve for curve in curves if curve.updates[-1] >= begin]
        common = [u for u in whole.updates[:start] if all(u in c.updates for c in going)]
        parts = [_part(curve, common[-1] if common else begin, end) for curve in going]
        one = course([part for part in parts if len(part.updates)], level)
        found.append(replace(one, going=np.full(len(one.updates), len(going))))
    return found


def _part(curve: Curve, begin: float, end: float) -> Curve:
    """Keep the updates from one to another, if there is any."""
    kept = (curve.updates >= begin) & (curve.updates <= end)
    return replace(curve, updates=curve.updates[kept], values=curve.values[kept])


def _default(cells: Sequence[Cell]) -> str:
    key = cells[0].metric.key
    return f"evals.{key if key in _EVALUATED else 'score'}"


def _parsed(column: str) -> tuple[str, tuple[str, ...]]:
    """Tell the name of a column, and the files that may have it."""
    for file in _FILES:
        prefix = file.removesuffix("csv")
        if column.startswith(prefix):
            return column.removeprefix(prefix), (file,)
    return column, _FILES


def _names(seen: Sequence[_File], *, in_full: bool) -> list[str]:
    """Name all columns; with the file if that was asked for."""
    return [
        f"{file.name.removesuffix('csv')}{name}" if in_full else name
        for file in seen
        for name in file.names
        if name != UPDATE
    ]


def _until_the_end(curve: Curve) -> Curve:
    """Note where a run failed: it trains on behind its last evaluation."""
    file = _File(METRICS)
    path = f"{curve.seed.record.folder}/{METRICS}"
    try:
        updates, _ = file.columns(path, curve.seed, UPDATE)
    except (OSError, ValueError, csv.Error):  # then its last value is what is known of its end
        return curve
    end = float(updates[-1])  # of the last attempt
    return replace(curve, ended=end) if end > curve.updates[-1] else curve


@dataclass
class _File:
    """One of the files that a run has, read in many runs.

    Attributes:
        name: Such as ``evals.csv``.
        names: Every column that was seen in any.
        problems: What was wrong with each.
    """

    name: str
    names: dict[str, None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def curves(self, seeds: Sequence[Seed], column: str) -> list[Curve]:
        """Read one column of some runs."""
        found = []
        for seed in seeds:
            path = f"{seed.record.folder}/{self.name}"
            try:
                updates, values = self.columns(path, seed, column)
            except FileNotFoundError:
                self.problems.append(f"there is no {path}")
            except OSError as error:
                self.problems.append(f"{path} can't be read: {error.strerror or error}")
            except (ValueError, csv.Error) as error:
                self.problems.append(f"{path}: {error}")
            else:
                found.append(self._once(path, seed, updates, values))
        return [curve if curve.seed.ok else _until_the_end(curve) for curve in found]

    def columns(self, path: str, seed: Seed, column: str) -> tuple[Array, Array]:
        """Read updates (k,) and values (k,).

        Raises:
            ValueError: The file is not what a run writes, or has no such column.
            OSError: It can't be read.
        """
        content = read_bytes(path)
        written = (seed.record.result or {}).get("metrics_sha256")
        known = self.name == METRICS and isinstance(written, str)
        if known and hashlib.sha256(content).hexdigest() != written:
            raise ValueError("it is not what the run wrote")
        # the last line may be in writing, or torn: without an end it can hold half a number
        header, *lines = content.decode("utf-8").split("\n")[:-1] or [""]
        names = next(csv.reader(io.StringIO(header)), [])
        if len(set(names)) < len(names) or UPDATE not in names:
            raise ValueError(f"its first line names no columns of a run: {header[:40]!r}")
        self.names |= dict.fromkeys(names)
        if column not in names:
            raise ValueError(f"it has no column {column}")
        rows = [line.split(",") for line in lines]
        for number, row in enumerate(rows):
            if len(row) != len(names):
                raise ValueError(f"row {number + 1} has {len(row)} values of {len(names)}")
        updates, values = (
            np.array([float(row[place] or math.nan) for row in rows])
            for place in (names.index(UPDATE), names.index(column))
        )
        if not np.isfinite(updates).all():
            raise ValueError("a row has no update")
        if not np.isfinite(values).any():
            raise ValueError(f"column {column} has no number")
        return updates, values

    def _once(self, path: str, seed: Seed, updates: Array, values: Array) -> Curve:
        """Keep each update once: where they go back, what was there of the earlier attempt goes."""
        least_later = np.append(np.minimum.accumulate(updates[::-1])[::-1][1:], math.inf)
        last_attempt = updates < least_later
        dropped = int((~last_attempt).sum())
        if dropped:
            self.problems.append(f"{path}: updates go back; {dropped} earlier rows don't count")
        kept = last_attempt & np.isfinite(values)
        return Curve(seed=seed, updates=updates[kept], values=values[kept])
