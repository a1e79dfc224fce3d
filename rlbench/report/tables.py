"""One row a cell, for a terminal, a pull request or a paper."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlbench.errors import UsageError
from rlbench.report import layout
from rlbench.report.cells import KINDS, KINDS_OF_RUNS, NOT_RUN, NUMBERS, Cell, labels_of
from rlbench.report.folding import fold, width_of
from rlbench.report.notes import caption, name_of, notes, shared
from rlbench.report.spelling import printable
from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DATA_FORMATS = ("csv", "tsv", "json")

# beside the score, in the formats for programs
_MEANS = ("reward_mean", "kl_nats", "entropy", "length", "wall_s")

# columns that may be left out, the first one first, where a table is too wide
_EXPENDABLE = ("s", "length", "entropy", "start")
_ENOUGH = 28  # columns for a name that is folded; for fewer, a number is left out


@dataclass(frozen=True)
class _Column:
    """One column of a table: what it is called and what it says of a cell."""

    name: str
    say: Callable[[Cell], str]
    number: bool = True
    folded: bool = False  # its text has line breaks that are meant


def table(
    cells: Sequence[Cell],
    format: str = "simple",  # noqa: A002 - what everybody calls it, tabulate included
    width: int | None = None,
    *,
    ascii_only: bool = False,
) -> str:
    """Show cells, the best first.

    The columns are what differs between the cells (estimator, loss and KL controller if nothing
    does), the seeds that ended well out of those that were tried, the score before training, the
    score at the end with its 95% interval, KL, entropy, length and seconds. Failed seeds count with
    the task's floor. Order goes by the score in full precision, see `ranked`.

    Args:
        cells: What to show.
        format: Any format of tabulate, or ``csv``, ``tsv`` or ``json``, in full precision.
        width: The most columns of the terminal; columns of less weight are left out, and named, to
            fit. Where that is not enough, ``simple`` names each row in one column, folded, as the
            notes name it. Nothing is ever cut. None means no limit.
        ascii_only: Write ``+/-`` for a plus-minus sign.

    Returns:
        The table with its caption and notes, without a newline at the end. ``csv`` and ``tsv`` hold
        the rows only.

    Raises:
        UsageError: There is no such format.
    """
    check_format(format)
    labels = labels_of(cells)
    rows = ranked(cells, labels)
    if format in DATA_FORMATS:
        return _data(rows, labels, format)
    columns = _columns(rows, labels, "+/-" if ascii_only else "±")
    body = _body(rows, columns, format)
    left_out: list[str] = []
    for name in _EXPENDABLE:
        if width is None or layout.widest(body) <= width:
            break
        columns = [column for column in columns if column.name != name]
        left_out.append(name)
        body = _body(rows, columns, format)
    if format == "simple" and width is not None and layout.widest(body) > width:
        numbers = _columns(rows, [], "+/-" if ascii_only else "±")
        columns, left_out = _with_names_folded(rows, labels, numbers, width)
        body = _body(rows, columns, format)
    shown = [column.name for column in columns]
    below = [*caption(rows, labels, shown, ascii_only=ascii_only), *notes(rows, labels)]
    if left_out:
        below.append(f"Left out for width: {', '.join(left_out)} (--max-width 0 shows all).")
    prose = layout.prose(below, format, min(width or layout.PROSE_WIDTH, layout.PROSE_WIDTH))
    return f"{body}\n\n{prose}"


def _with_names_folded(
    rows: Sequence[Cell], labels: Sequence[str], numbers: list[_Column], width: int
) -> tuple[list[_Column], list[str]]:
    """Put all labels into one column that takes what the numbers leave; name what is left out."""
    longest = max(width_of(printable(name_of(cell, labels))) for cell in rows)
    left_out: list[str] = []
    for name in ("", *_EXPENDABLE):
        if name:
            numbers = [column for column in numbers if column.name != name]
            left_out.append(name)
        room = width - layout.widest(_body(rows, numbers, "simple")) - 2
        if room >= min(longest, _ENOUGH):
            break

    def say(cell: Cell) -> str:
        return fold(printable(name_of(cell, labels)), room)

    return [_Column("cell", say, number=False, folded=True), *numbers], left_out


def check_format(name: str) -> None:
    """Raise UsageError, with the nearest name, if there is no such format."""
    if name in DATA_FORMATS:
        return
    from tabulate import tabulate_formats

    if name not in tabulate_formats:
        raise UsageError.unknown("format", name, [*tabulate_formats, *DATA_FORMATS])


def ranked(cells: Sequence[Cell], labels: Sequence[str]) -> list[Cell]:
    """Order cells: best score first, unknown scores last.

    Of equal scores, those without failures come first, then labels in natural order.
    """

    def key(cell: Cell) -> tuple[float, bool, list[list[tuple[int, int, str]]]]:
        best_first = math.inf if cell.score is None else -cell.metric.sign * cell.score.mid
        return (
            best_first,
            bool(cell.failed),
            [_natural(cell.columns.get(name, "")) for name in labels],
        )

    return sorted(cells, key=key)


def _body(rows: Sequence[Cell], columns: Sequence[_Column], format: str) -> str:  # noqa: A002 - as in `table`
    """Lay out the table itself."""
    header = [layout.escape(column.name, format) for column in columns]
    texts = [
        [
            column.say(cell) if column.folded else layout.escape(column.say(cell), format)
            for column in columns
        ]
        for cell in rows
    ]
    return layout.lay_out(header, texts, [column.number for column in columns], format)


def _columns(rows: Sequence[Cell], labels: Sequence[str], sign: str) -> list[_Column]:
    """Choose the columns of a table for people, each with one number of places."""
    score = layout.places_by_interval(cell.score for cell in rows)
    columns = [
        _Column(name, lambda cell, name=name: cell.columns.get(name, layout.MISSING), number=False)  # type: ignore[misc]  # mypy can't type a default in a lambda
        for name in labels
    ]
    columns += [
        _Column("n", lambda cell: f"{len(cell.ok)}/{len(cell.tried)}"),
        _mean_column("start", "score_start", rows, places=score),
        _Column("score", lambda cell: score_text(cell, score)),
        _Column(f"{sign}95%", lambda cell: _spread(cell, score)),
        _mean_column("KL", "kl", rows),
        _mean_column("entropy", "entropy", rows),
        _mean_column("length", "length", rows),
        _mean_column("s", "wall_s", rows),
    ]
    return columns


def _mean_column(title: str, name: str, rows: Sequence[Cell], places: int | None = None) -> _Column:
    """Make a column of means over the seeds that ended well."""
    means = [mean for cell in rows if (mean := cell.mean(name)) is not None]
    digits = layout.places_by_size(means) if places is None else places

    def say(cell: Cell) -> str:
        mean = cell.mean(name)
        return layout.MISSING if mean is None else layout.fixed(mean, digits)

    return _Column(title, say)


def score_text(cell: Cell, places: int) -> str:
    """The score, with a mark if failures are in it."""
    if not cell.tried:
        return NOT_RUN
    if cell.score is None:
        return "failed"
    return layout.fixed(cell.score.mid, places) + ("*" if cell.failed else "")


def _spread(cell: Cell, places: int) -> str:
    """Half the width of the interval, or why there is none."""
    if not cell.tried:
        return layout.MISSING
    if not cell.ok:
        return "failed"
    if cell.score is None:
        return layout.MISSING
    if cell.score.n == 1:
        return "n=1"
    half = cell.score.half_width
    return "all equal" if half is None else layout.fixed(half, places)


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Sort key by which run2 comes before run10."""
    parts = re.split(r"([0-9]+)", text)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]


def _data(rows: Sequence[Cell], labels: Sequence[str], format: str) -> str:  # noqa: A002 - as above
    """Write rows for programs: full precision, nothing rounded, nothing marked."""
    records = [cell_record(cell, labels) for cell in rows]
    if format == "json":
        document = {"rows": records, "shared": shared(rows), "notes": notes(rows, labels)}
        return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    buffer = io.StringIO()
    writer = csv.DictWriter(
        buffer,
        fieldnames=list(records[0]) if records else labels,
        delimiter="," if format == "csv" else "\t",
        lineterminator="\n",
    )
    writer.writeheader()
    for record in records:
        writer.writerow(
            {k: " ".join(map(str, v)) if isinstance(v, list) else v for k, v in record.items()}
        )
    return buffer.getvalue().removesuffix("\n")


def cell_record(cell: Cell, labels: Sequence[str]) -> dict[str, Any]:
    """One cell as plain data."""
    kinds = [kind for kind in KINDS if kind in KINDS_OF_RUNS or kind in cell.columns]
    settings = [option.name for option in Settings.options()]
    names = list(dict.fromkeys([*kinds, *labels, *settings]))
    score, of_ok = cell.score, cell.score_of_ok
    certain = score is not None and score.half_width is not None
    return {
        **{name: cell.columns.get(name) for name in names},
        "ok": len(cell.ok),
        "tried": len(cell.tried),
        "not_run": len(cell.seeds) - len(cell.tried),
        "seeds": [seed.number for seed in cell.tried],
        "failed_seeds": [seed.number for seed in cell.failed],
        "score_start": cell.mean("score_start"),
        "score": score.mid if score else None,
        "score_low": score.low if score and certain else None,
        "score_high": score.high if score and certain else None,
        "score_of_ok": of_ok.mid if of_ok else None,
        **{name: cell.mean(NUMBERS[name]) for name in _MEANS},
    }
