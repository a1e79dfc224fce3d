"""Every run that was tried and did not end well: what went wrong, where, and how to repeat it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.errors import RlbenchError
from rlbench.grid import repeat
from rlbench.grid.importing import is_foreign
from rlbench.report.cells.baseline import spell_cell
from rlbench.report.cells.cell import error_line
from rlbench.report.text.spelling import spell_seeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.grid.store import Record
    from rlbench.report.cells.cell import Cell, Seed

DETAILED = 40  # runs that are shown one by one
MOST_GROUPS = 200  # of the runs that are not
LOG = "log.txt"
_LINES = 12  # of the end of a log
_LETTERS = 400  # of a line
_TAIL = 1 << 14  # bytes that hold them


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One run.

    Attributes:
        name: Its cell.
        seed: Its seed.
        run_id: Its name on the disk.
        status: ``failed``, ``diverged`` or ``timeout``.
        error: What went wrong, in a line; empty if nobody knows.
        where: File, line and function in which; empty if nobody knows.
        log: The last lines of its log.
        command: What repeats it; empty where nothing does.
    """

    name: str
    seed: int
    run_id: str
    status: str
    error: str
    where: str
    log: tuple[str, ...]
    command: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """Runs of one cell that ended alike.

    Attributes:
        name: The cell.
        seeds: Their seeds, as the command line has them.
        status: How they ended.
        error: What went wrong.
    """

    name: str
    seeds: str
    status: str
    error: str


@dataclass(frozen=True, kw_only=True)
class Failures:
    """All runs that did not end well.

    Attributes:
        count: Their number.
        tried: Number of runs that were tried.
        detailed: Some, cell by cell; each way of failing is among them while there is room.
        groups: The others.
        cut: What is in neither, in words; empty if nothing.
    """

    count: int
    tried: int
    detailed: tuple[Failure, ...] = ()
    groups: tuple[Group, ...] = ()
    cut: str = ""


def collect(ordered: Sequence[Cell], labels: Sequence[str]) -> Failures:
    """Find all failures.

    Args:
        ordered: Cells in the order of the tables.
        labels: Columns in which they differ.
    """
    alike: dict[tuple[int, str, str], list[Seed]] = {}
    for number, cell in enumerate(ordered):
        for seed in cell.failed:
            alike.setdefault((number, seed.status, seed.error()), []).append(seed)
    # round by round, so that one cell with many failures leaves room for the others
    turns = [(turn, place) for place, of in enumerate(alike.values()) for turn in range(len(of))]
    kept = set(sorted(turns)[:DETAILED])
    detailed, groups = [], []
    for place, ((number, status, error), seeds) in enumerate(alike.items()):
        name = spell_cell(ordered[number], labels)
        chosen = [seed for turn, seed in enumerate(seeds) if (turn, place) in kept]
        detailed += [_failure(name, seed) for seed in chosen]
        rest = spell_seeds(seed.number for seed in seeds[len(chosen) :])
        if rest:
            groups.append(Group(name=name, seeds=rest, status=status, error=_line(error)))
    more = len(groups) - MOST_GROUPS
    return Failures(
        count=len(turns),
        tried=sum(len(cell.tried) for cell in ordered),
        detailed=tuple(detailed),
        groups=tuple(groups[:MOST_GROUPS]),
        cut=f"And {more:,} more of this kind." if more > 0 else "",
    )


def _failure(name: str, seed: Seed) -> Failure:
    record = seed.record
    error = (record.result or {}).get("error")
    where = error.get("where") if isinstance(error, Mapping) else None
    return Failure(
        name=name,
        seed=seed.number,
        run_id=record.run_id,
        status=seed.status,
        error=_line(error_line(record)),
        where=_line(str(where or "")),
        log=_last_lines(record),
        command=_command(record),
    )


def _command(record: Record) -> str:
    """Write what repeats a run; nothing where it was made elsewhere, or can't be said any more."""
    if is_foreign(record):
        return ""
    try:
        return repeat.shell(repeat.command(record))
    except RlbenchError:
        return ""


def _line(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS]} ..."


def _last_lines(record: Record) -> tuple[str, ...]:
    """Read the end of a log; nothing if there is none, or what lies there is no file."""
    try:
        number = os.open(f"{record.folder}/{LOG}", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ()
    try:
        size = os.fstat(number).st_size
        content = os.pread(number, _TAIL, max(size - _TAIL, 0))
    except OSError:  # a folder, a FIFO
        return ()
    finally:
        os.close(number)
    lines = [line for line in content.decode("utf-8", "replace").splitlines() if line.strip()]
    return tuple(_line(line.rstrip()) for line in lines[-_LINES:])
