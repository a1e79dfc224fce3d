"""A race as text: how it stands after each look, and what it decided at the end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlbench.grid.race import BETTER, EQUIVALENT, UNDECIDED, WORSE
from rlbench.report.cells.pairing import task_of
from rlbench.report.race.legend import caption, cell_of, pair_name, percent_of, remarks
from rlbench.report.tables.data import separated
from rlbench.report.tables.table import DATA_FORMATS, check_format
from rlbench.report.text import layout
from rlbench.report.text.figures import signed
from rlbench.report.text.folding import fold, width_of
from rlbench.report.text.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.grid.race import Standing
    from rlbench.grid.race_loop import Raced
    from rlbench.report.race.course import Course
    from rlbench.stats import Interval

MARKS = {BETTER: "+", WORSE: "-", EQUIVALENT: "=", UNDECIDED: "?"}
"""The verdicts as `rlbench compare` writes them, for programs."""
_ENOUGH = 20  # columns for names, below which another column is left out


def progress(made: Course, before: Sequence[Standing], after: Sequence[Standing]) -> list[str]:
    """Say what a look showed, a line a comparison that was open before it.

    Args:
        made: The race.
        before: The standings before it.
        after: Those after it, in the same order.
    """
    lines = []
    for old, new in zip(before, after, strict=True):
        if new.n == old.n:
            continue
        verdict = new.verdict if new.decided else "open"
        places = _places([new])
        found = f"{_middle(new, places)} {_interval(new, places)}"
        lines.append(f"{new.n} pairs: {pair_name(made, new)}: {found} {verdict}")
    return lines


def race_table(
    made: Course,
    raced: Raced,
    format: str = "simple",  # noqa: A002 - as in `table`
    width: int | None = None,
    *,
    seen: int = 0,
    budget: int | None = None,
    ascii_only: bool = False,
) -> str:
    """Show what a race decided, the largest difference first.

    Args:
        made: The race.
        raced: How it stands.
        format: Any of `layout.FORMATS`, or ``csv``, ``tsv`` or ``json``, in full precision.
        width: The most columns of the terminal; names are folded to fit. None means no limit.
        seen: Runs that were complete before the plan was.
        budget: The most runs that there may be.
        ascii_only: Write ``+/-`` for a plus-minus sign.

    Returns:
        The table with its caption, without a newline at the end; ``csv`` and ``tsv`` hold the rows
        only, `remarks` are what a reader of them has to know besides.

    Raises:
        UsageError: There is no such format.
    """
    check_format(format)
    board, sign = _Board(made, raced), "+/-" if ascii_only else "±"
    notes = remarks(made, raced, seen=seen, budget=budget)
    if format in DATA_FORMATS:
        return _data(board, notes, format)
    rows, places = board.rows, _places(board.rows)
    columns = [
        _Column("n", [str(row.n) for row in rows]),
        *board.failures(),
        *board.scores(),
        _Column("diff", [_middle(row, places) for row in rows]),
        _Column(f"{board.percent} interval", [_interval(row, places) for row in rows]),
        _Column("verdict", [row.verdict for row in rows], number=False),
    ]
    dropped = []
    if format == "simple" and width is not None:
        room = _room(columns, width)
        longest = max(width_of(printable(_row_name(made, row))) for row in rows)
        if room < min(longest, _ENOUGH) and any(column.name == "score" for column in columns):
            columns = [column for column in columns if column.name != "score"]
            room, dropped = _room(columns, width), ["score"]
        names = [fold(printable(_row_name(made, row)), room) for row in rows]
    else:
        names = [layout.escape(_row_name(made, row), format) for row in rows]
    texts = [
        [name, *(layout.escape(column.texts[number], format) for column in columns)]
        for number, name in enumerate(names)
    ]
    first = "cell" if made.baselines else "comparison"
    header = [layout.escape(name, format) for name in (first, *(c.name for c in columns))]
    right = [False, *(column.number for column in columns)]
    below = [*caption(made, raced, [column.name for column in columns], sign), *notes]
    if dropped:
        below.append(f"Left out for width: {', '.join(dropped)} (--max-width 0 shows all).")
    prose_width = min(width or layout.PROSE_WIDTH, layout.PROSE_WIDTH)
    return layout.page(header, texts, right, below=below, format=format, width=prose_width)


@dataclass(frozen=True)
class _Column:
    name: str
    texts: Sequence[str]
    number: bool = True


class _Board:
    """The rows of the table, with the results that they rest on."""

    def __init__(self, made: Course, raced: Raced) -> None:
        self.made, self.raced = made, raced
        self.percent = percent_of(raced.plan)
        self.rows = sorted(raced.standings, key=lambda row: _by_difference(made, row))

    def failures(self) -> list[_Column]:
        """In how many pairs a run failed, if any did."""
        counts = [failed_pairs(self.raced, row) for row in self.rows]
        return [_Column("failed", list(map(str, counts)))] if any(counts) else []

    def scores(self) -> list[_Column]:
        """The mean score of each row's cell over its pairs, where rows are cells."""
        if not self.made.baselines:
            return []
        means = [self.mean(row) for row in self.rows]
        spreads = [row.interval for row in self.rows]
        places = layout.places_by_interval(spreads)
        texts = [layout.MISSING if m is None else layout.fixed(m, places) for m in means]
        return [_Column("score", texts)]

    def mean(self, row: Standing) -> float | None:
        """Mean score of the first cell over the pairs that its standing rests on."""
        cell = cell_of(self.raced.records[row.pair.cell][: row.n])
        return cell.score.mid if cell and cell.score else None


def failed_pairs(raced: Raced, row: Standing) -> int:
    """Count the pairs of a standing in which a run failed, on either side."""
    sides = (raced.records[key][: row.n] for key in (row.pair.cell, row.pair.other))
    return sum(any(record.status != "ok" for record in pair) for pair in zip(*sides, strict=True))


def _by_difference(made: Course, row: Standing) -> tuple[bool, float, str]:
    """Order rows: the largest difference first, those without one last; ties by name."""
    middle = 0.0 if row.interval is None else row.interval.mid
    return row.interval is None, -row.pair.sign * middle, pair_name(made, row)


def _row_name(made: Course, row: Standing) -> str:
    return made.plan.names[row.pair.cell] if made.baselines else pair_name(made, row)


def _room(columns: Sequence[_Column], width: int) -> int:
    """Columns that are left for the names."""
    taken = (max(map(width_of, (c.name, *c.texts))) + 2 for c in columns)
    return width - sum(taken)


def _places(rows: Sequence[Standing]) -> int:
    return layout.places_by_interval(row.interval for row in rows)


def _middle(row: Standing, places: int) -> str:
    return layout.MISSING if row.interval is None else signed(row.interval.mid, places)


def _interval(row: Standing, places: int) -> str:
    if row.interval is not None and row.interval.degenerate:
        return "all equal"
    return _bounds(row.interval, places)


def _bounds(interval: Interval | None, places: int) -> str:
    if interval is None or interval.low is None or interval.high is None:
        return layout.MISSING
    return f"[{signed(interval.low, places)}, {signed(interval.high, places)}]"


def _data(board: _Board, notes: Sequence[str], format: str) -> str:  # noqa: A002 - as above
    """Write a race for programs.

    ``json`` is one object::

        rule         "planned looks" or "every seed"
        looks        numbers of seeds at which is looked
        alpha        error rate of the whole race
        nominal      error rate of one comparison at one planned look, or over all looks
        margin       differences within it are equivalent
        seeds        the pool, in its order
        runs         {used, complete, grid}: that count, that are there, of the whole grid
        stopped      null, or "interrupted", "budget", "failures", "incomplete"
        rows         one object a comparison
        notes        caption and remarks, as below the table

    A row holds ``cell``, ``against``, ``task``, ``pairs``, ``failed_pairs``, ``score`` (mean of the
    cell over the pairs), ``difference`` with ``difference_low`` and ``difference_high`` (valid at
    all looks and for all comparisons together), ``p`` of the last look or ``e_value``, ``verdict``
    (``+ - = ?``) and ``reason``.
    """
    raced, plan = board.raced, board.raced.plan
    records = [_record(board, row) for row in board.rows]
    if format != "json":
        return separated(records, list(records[0]), format)
    document = {
        "rule": "every seed" if plan.looks is None else "planned looks",
        "looks": list(plan.stops),
        "alpha": plan.alpha,
        "nominal": plan.nominal,
        "margin": plan.margin,
        "seeds": list(plan.seeds),
        "runs": {
            "used": sum(raced.used.values()),
            "complete": raced.complete,
            "grid": len(plan.cells) * len(plan.seeds),
        },
        "stopped": raced.stopped or None,
        "rows": records,
        "notes": [*caption(board.made, raced, ["score", "failed"]), *notes],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)


def _record(board: _Board, row: Standing) -> dict[str, Any]:
    made, interval = board.made, row.interval
    certain = interval is not None and not interval.degenerate
    planned = made.plan.looks is not None
    return {
        "cell": made.plan.names[row.pair.cell],
        "against": made.plan.names[row.pair.other],
        "task": task_of(made.cells[row.pair.cell]),
        "pairs": row.n,
        "failed_pairs": failed_pairs(board.raced, row),
        "score": board.mean(row),
        "difference": None if interval is None else interval.mid,
        "difference_low": interval.low if interval and certain else None,
        "difference_high": interval.high if interval and certain else None,
        "p": row.evidence if planned else None,
        "e_value": None if planned else row.evidence,
        "verdict": MARKS[row.verdict],
        "reason": row.reason or None,
    }
