"""Comparisons with a baseline as a table: for a terminal, a pull request or a paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.report.cells.metric import SCORE
from rlbench.report.cells.pairing import task_of
from rlbench.report.compare.data import data
from rlbench.report.compare.family import BASELINE, NOT_COMPARABLE
from rlbench.report.compare.legend import caption, has_failures, remarks
from rlbench.report.tables.notes import name_of
from rlbench.report.tables.table import DATA_FORMATS, check_format, score_text
from rlbench.report.text import layout
from rlbench.report.text.figures import half_width, p_text, percents, signed
from rlbench.report.text.folding import fold, width_of
from rlbench.report.text.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlbench.report.compare.comparison import Comparison, Row

# columns that may be left out, the first one first, where a table is too wide
_EXPENDABLE = ("wins±", "wins", "beside")
_ENOUGH = 20  # columns for a name that is folded; for fewer, a number is left out


@dataclass(frozen=True)
class _Column:
    """One column: its header, what it says of a row, and a key by which it may be left out."""

    name: str
    say: Callable[[Row], str]
    number: bool = True
    key: str = ""
    folded: bool = False  # its text has line breaks that are meant


def comparison_table(
    comparison: Comparison,
    format: str = "simple",  # noqa: A002 - as in `table`
    width: int | None = None,
    *,
    ascii_only: bool = False,
) -> str:
    """Show a comparison, the best cell first.

    Args:
        comparison: What to show.
        format: Any of `layout.FORMATS`, or ``csv``, ``tsv`` or ``json``, in full precision; what
            these hold: `verdict_data.data`.
        width: The most columns of the terminal. To fit, the interval of the wins is left out; then
            ``simple`` makes a heading of each task, and names each row in one column, folded, as
            the notes name it; then the wins and the KL are left out. What is left out is named, and
            nothing is ever cut. None means no limit.
        ascii_only: Write ``+/-`` for a plus-minus sign.

    Returns:
        The table with its caption and notes, without a newline at the end. ``csv`` and ``tsv`` hold
        the rows only; `legend.remarks` are what a reader of them has to know besides.

    Raises:
        UsageError: There is no such format.
    """
    check_format(format)
    sign = "+/-" if ascii_only else "±"
    columns = [*_labels(comparison), *_numbers(comparison, sign)]
    if format in DATA_FORMATS:
        return data(comparison, _below(comparison, columns, sign), format)
    dropped: list[str] = []
    if _too_wide(comparison, columns, format, width):
        columns, dropped = _without(columns, _EXPENDABLE[0])
    headed = False
    if _too_wide(comparison, columns, format, width) and format == "simple":
        headed = "task" in comparison.labels and len(comparison.tasks) > 1
        columns = [column for column in columns if not headed or column.name != "task"]
    if _too_wide(comparison, columns, format, width):
        if format == "simple" and width is not None:
            columns, more = _with_names_folded(comparison, columns, width)
            dropped += more
        else:
            columns, more = _without(columns, _EXPENDABLE[1])
            dropped += more
    below = _below(comparison, columns, sign)
    if dropped:
        below.append(f"Left out for width: {', '.join(dropped)} (--max-width 0 shows all).")
    prose_width = min(width or layout.PROSE_WIDTH, layout.PROSE_WIDTH)
    if headed:
        body = _headed(_body(comparison.rows, columns, format), comparison.rows, columns)
        return f"{body}\n\n{layout.prose(below, format, prose_width)}"
    header, texts, right = _texts(comparison.rows, columns, format)
    return layout.page(header, texts, right, below=below, format=format, width=prose_width)


def _headed(body: str, rows: Sequence[Row], columns: Sequence[_Column]) -> str:
    """Put a heading above the rows of each task."""
    head, rule, *lines = body.split("\n")
    done = [head, rule]
    for number, row in enumerate(rows):
        task = task_of(row.cell)
        if number == 0 or task != task_of(rows[number - 1].cell):
            done += [*([""] if number else []), printable(task)]
        height = max(column.say(row).count("\n") + 1 if column.folded else 1 for column in columns)
        done += lines[:height]
        lines = lines[height:]
    return "\n".join(done)


def _below(comparison: Comparison, columns: Sequence[_Column], sign: str) -> list[str]:
    """Write what stands below a table of these columns."""
    shown = [column.name for column in columns]
    return [*caption(comparison, shown, sign), *remarks(comparison)]


def _too_wide(
    comparison: Comparison,
    columns: Sequence[_Column],
    format: str,  # noqa: A002 - as in `table`
    width: int | None,
) -> bool:
    if width is None:
        return False
    return layout.widest(_body(comparison.rows, columns, format)) > width


def _without(columns: Sequence[_Column], key: str) -> tuple[list[_Column], list[str]]:
    """Leave out the columns with that key, and name them."""
    kept = [column for column in columns if column.key != key]
    return kept, [column.name for column in columns if column.key == key]


def _with_names_folded(
    comparison: Comparison, columns: Sequence[_Column], width: int
) -> tuple[list[_Column], list[str]]:
    """Put all labels into one column that takes what the numbers leave; name what is left out."""
    names = {column.name for column in columns if column.key == "label"}
    rows, labels = comparison.rows, [name for name in comparison.labels if name in names]
    name = labels[0] if len(labels) == 1 else "cell"
    texts = (printable(name_of(row.cell, labels)) for row in rows)
    longest = max(map(width_of, [name, *texts]))
    numbers, left_out = [column for column in columns if column.key != "label"], []
    for key in ("", *_EXPENDABLE[1:]):
        if key:
            numbers, more = _without(numbers, key)
            left_out += more
        room = width - layout.widest(_body(rows, numbers, "simple")) - 2
        if room >= min(longest, _ENOUGH):
            break

    def say(row: Row) -> str:
        return fold(printable(name_of(row.cell, labels)), room)

    return [_Column(name, say, number=False, folded=True), *numbers], left_out


def _labels(comparison: Comparison) -> list[_Column]:
    def label(name: str) -> _Column:
        return _Column(
            name,
            lambda row: row.cell.columns.get(name, layout.MISSING),
            number=False,
            key="label",
        )

    return [label(name) for name in comparison.labels]


def _numbers(comparison: Comparison, sign: str) -> list[_Column]:
    """Choose the columns that are no labels, each task with its own number of places."""
    percent = percents(comparison.family.level)
    of_task = {
        task: [row for row in comparison.rows if task_of(row.cell) == task]
        for task in comparison.tasks
    }
    places = {
        task: layout.places_by_interval(row.score for row in rows) for task, rows in of_task.items()
    }
    finer = {
        task: layout.places_by_interval(
            row.difference.interval for row in rows if row.difference is not None
        )
        for task, rows in of_task.items()
    }

    def score(row: Row) -> str:
        return _score(row, places[task_of(row.cell)])

    def spread(row: Row) -> str:
        return half_width(row.score, places[task_of(row.cell)]) if row.score else layout.MISSING

    def difference(row: Row) -> str:
        if row.difference is None:
            return ""
        return signed(row.difference.interval.mid, finer[task_of(row.cell)])

    def its_spread(row: Row) -> str:
        if row.difference is None:
            return ""
        return half_width(row.difference.interval, finer[task_of(row.cell)])

    return [
        *_chosen(comparison),
        _Column("n", _n_of_failures if has_failures(comparison) else _n),
        _Column(comparison.metric.name, score),
        _Column(f"{sign}{percent}", spread),
        *_beside(comparison),
        _Column("diff", difference),
        _Column(f"{sign}{percent}", its_spread),
        _Column("p", lambda row: "" if row.p is None else p_text(row.p, comparison.family.alpha)),
        _Column(
            "wins", lambda row: f"{row.improvement.mid:.2f}" if row.improvement else "", key="wins"
        ),
        _Column(f"wins {percent}", _wins_interval, key="wins±"),
        _Column("verdict", _mark, number=False),
    ]


def _chosen(comparison: Comparison) -> list[_Column]:
    """Show the value that was chosen for each cell."""
    tuning = comparison.tuning
    if tuning is None:
        return []
    return [_Column(tuning.axis.name, lambda row: tuning.of(row.cell).value)]


def _beside(comparison: Comparison) -> list[_Column]:
    """Show the KL beside a score, and the score beside anything else, where anybody has it."""
    name = "kl" if comparison.metric.key == SCORE.key else "score"
    means = [mean for row in comparison.rows if (mean := row.cell.mean(name)) is not None]
    if not means:
        return []
    digits = layout.places_by_size(means)

    def say(row: Row) -> str:
        mean = row.cell.mean(name)
        return layout.MISSING if mean is None else layout.fixed(mean, digits)

    return [_Column({"kl": "KL"}.get(name, name), say, key="beside")]


def _n(row: Row) -> str:
    if row.verdict == NOT_COMPARABLE:
        return layout.MISSING
    return str(len(row.cell.tried) if row.verdict == BASELINE else len(row.seeds))


def _n_of_failures(row: Row) -> str:
    """Pairs, and in how many of them the row's own seed ended well."""
    if row.verdict == NOT_COMPARABLE:
        return layout.MISSING
    of_pairs = {seed.number for seed in row.cell.tried}
    if row.verdict != BASELINE:
        of_pairs &= set(row.seeds)
    return f"{sum(seed.number in of_pairs for seed in row.cell.ok)}/{len(of_pairs)}"


def _score(row: Row, places: int) -> str:
    if row.score is None and row.cell.tried and not row.cell.failed:
        return layout.MISSING  # it ended well, and has no number of that name
    return score_text(row.cell, places)


def _mark(row: Row) -> str:
    """The verdict; an open one with the seeds that would show a difference of interest."""
    return row.verdict if row.more is None else f"{row.verdict} {row.more:,} more"


def _wins_interval(row: Row) -> str:
    wins = row.improvement
    if wins is None:
        return ""
    if wins.degenerate or wins.low is None or wins.high is None:
        return layout.MISSING
    return f"{wins.low:.2f}-{wins.high:.2f}"


def _body(rows: Sequence[Row], columns: Sequence[_Column], format: str) -> str:  # noqa: A002 - as in `table`
    return layout.lay_out(*_texts(rows, columns, format), format)


def _texts(
    rows: Sequence[Row],
    columns: Sequence[_Column],
    format: str,  # noqa: A002 - as in `table`
) -> tuple[list[str], list[list[str]], list[bool]]:
    """Give header, rows and which columns stand flush right."""
    header = [layout.escape(column.name, format) for column in columns]
    texts = [
        [
            column.say(row) if column.folded else layout.escape(column.say(row), format)
            for column in columns
        ]
        for row in rows
    ]
    return header, texts, [column.number for column in columns]
