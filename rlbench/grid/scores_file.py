"""Scores that were made elsewhere: rows of a table, or nested JSON, turned into entries."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlbench.errors import UsageError, nearest
from rlbench.grid.reading import COMPLETE, read_bytes

if TYPE_CHECKING:
    from pathlib import Path

PARTS = ("algorithm", "estimator", "loss", "kl", "task", "reward", "model")
NUMBERS = {
    "score": "score",
    "score_start": "score_start",
    "reward_mean": "reward",
    "kl_nats": "kl",
    "entropy": "entropy",
    "length": "length",
    "tokens": "tokens",
    "wall_s": "wall_s",
}
"""What a column can hold, and its key in a result."""
SETTING = "set."
_AMBIGUOUS = ("kl", "reward")
TARGETS = (*PARTS, "seed", "status", *NUMBERS)
LEVELS = (*PARTS, "seed", "metric")

_NO_VALUE = ("", "na", "n/a", "nan", "none", "null", "-")
_USUAL_LEVELS = {1: ("task",), 2: ("algorithm", "task"), 3: ("algorithm", "task", "metric")}

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a file is to be read.

    Attributes:
        columns: What is meant (an algorithm, ``score``, ``set.lr``) to the column that holds it.
        fixed: What is the same in all rows, such as ``{"task": "walker"}``.
        wide: Whether each column but the seed's is an algorithm.
        levels: What the keys of nested JSON are, from the outside; empty for the usual.
        renumber: Whether seeds are numbered on in the order of the rows, whatever they say.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    wide: bool = False
    levels: tuple[str, ...] = ()
    renumber: bool = False


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One run that was made elsewhere.

    Attributes:
        where: File and row, for messages.
        parts: Kind to label.
        settings: Name to value.
        seed: The seed; None where the file has none.
        numbers: Key of a result to value; None where it is not a finite number.
        status: ``ok`` or how the run failed.
        why: Why it has no score; empty where it has one.
    """

    where: str
    parts: Mapping[str, str]
    settings: Mapping[str, Any]
    seed: int | None
    numbers: Mapping[str, float | None]
    status: str
    why: str = ""


def read_scores(path: Path, layout: Layout) -> tuple[list[Entry], list[str]]:
    """Read a file of scores.

    Args:
        path: ``.csv`` or ``.tsv`` (with a header), ``.parquet``, ``.json`` (a list of objects, or
            names nested around lists of scores) or ``.jsonl`` (an object a line).
        layout: What is where in it.

    Returns:
        The entries in the order of the file, and the columns that nothing was read from.

    Raises:
        UsageError: It can't be read, or something that is needed is not in it; names what is.
    """
    rows = [(f"{path.name}, {place}", row) for place, row in _rows(path, layout)]
    if not rows:
        raise UsageError(f"{path} holds no scores")
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    columns = _columns(path, names, [row for _, row in rows], layout)
    entries = [_entry(where, row, columns, layout.fixed) for where, row in rows]
    return entries, [name for name in names if name not in columns.values()]


def check_targets(names: Sequence[str], what: str) -> None:
    """Raise UsageError where a name says nothing of a run.

    Args:
        names: Such as ``score``, ``algorithm``, ``set.lr``.
        what: How the user gave them, for the message.
    """
    for name in names:
        if name.startswith(SETTING) and len(name) > len(SETTING):
            continue
        if name not in TARGETS:
            raise UsageError.unknown(f"{what} target", name, TARGETS, "or set.NAME for a setting")


def _rows(path: Path, layout: Layout) -> Iterator[tuple[str, Row]]:
    """Yield flat rows with the place of each."""
    suffix = path.suffix.lower()
    if suffix in (".json", ".jsonl", ".ndjson"):
        if layout.wide:
            raise UsageError(f"{path}: --wide is for tables (csv, tsv, parquet)")
        yield from _rows_of_json(path, _text(path), layout)
        return
    if layout.levels:
        raise UsageError(f"{path}: --levels is for nested JSON")
    if suffix in (".csv", ".tsv"):
        table = _rows_of_csv(path, _text(path), suffix)
    elif suffix == ".parquet":
        table = _rows_of_parquet(path)
    else:
        known = ".csv, .tsv, .parquet, .json, .jsonl"
        raise UsageError(f"{path}: the name ends in {suffix or 'nothing'!r}; known: {known}")
    yield from _molten(path, table, layout) if layout.wide else table


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no UTF-8: byte {error.start}") from error


def _rows_of_csv(path: Path, text: str, suffix: str) -> Iterator[tuple[str, Row]]:
    """Read every value as the text that it is: 42924e28 is a name until somebody wants a number."""
    first = text.split("\n", 1)[0]
    comma = ";" if "," not in first and ";" in first else ","
    reader = csv.reader(io.StringIO(text), delimiter="\t" if suffix == ".tsv" else comma)
    try:
        header = next(reader, [])
        if len(set(header)) < len(header):
            twice = sorted({name for name in header if header.count(name) > 1})
            raise UsageError(f"{path}: column {twice[0]!r} is there twice")
        for values in reader:
            if not any(value.strip() for value in values):
                continue
            if len(values) != len(header):
                raise UsageError(
                    f"{path}, line {reader.line_num}: {len(values)} values, "
                    f"the header has {len(header)}"
                )
            yield f"line {reader.line_num}", dict(zip(header, values, strict=True))
    except csv.Error as error:
        raise UsageError(f"{path}, line {reader.line_num}: {error}") from error


def _rows_of_parquet(path: Path) -> Iterator[tuple[str, Row]]:
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except ImportError as error:
        raise UsageError(
            f"{path}: Parquet needs pyarrow; pip install 'rlbench[parquet]'"
        ) from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read: {str(error).splitlines()[0]}") from error
    frame.columns = [str(name) for name in frame.columns]
    if frame.index.name is not None:
        frame = frame.reset_index()
    for number, values in enumerate(frame.itertuples(index=False, name=None), 1):
        yield f"row {number}", dict(zip(frame.columns, values, strict=True))


def _rows_of_json(path: Path, text: str, layout: Layout) -> Iterator[tuple[str, Row]]:
    try:
        if path.suffix.lower() != ".json":
            lines = [line for line in text.splitlines() if line.strip()]
            content: Any = [json.loads(line) for line in lines]
        else:
            content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON: {error}") from error
    if isinstance(content, list):
        for number, row in enumerate(content, 1):
            if not isinstance(row, Mapping):
                raise UsageError(f"{path}, row {number}: {row!r:.40}, expected an object")
            yield f"row {number}", row
    elif isinstance(content, Mapping):
        yield from _unnested(path, content, layout)
    else:
        raise UsageError(f"{path} holds {content!r:.40}, expected a list or an object")


def _unnested(path: Path, content: Mapping[str, Any], layout: Layout) -> Iterator[tuple[str, Row]]:
    """Walk down the names to the scores; positions in a list are seeds."""
    levels = layout.levels or _USUAL_LEVELS.get(_depth(content), ())
    if not levels:
        raise UsageError(
            f"{path}: names are nested {_depth(content)} deep; say what they are with --levels, "
            f"such as --levels algorithm,task,metric (known: {', '.join(LEVELS)})"
        )
    for level in levels:
        if level not in LEVELS:
            raise UsageError.unknown("level", level, LEVELS)
    found: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for keys, value in _leaves(path, content, len(levels)):
        named = dict(zip(levels, keys, strict=True))
        metric = named.pop("metric", "score")
        values = value if isinstance(value, list) else [value]
        for position, number in enumerate(values):
            at = named if "seed" in named else named | {"seed": str(position)}
            found.setdefault(tuple(at.items()), dict(at))[metric] = number
    for row in found.values():
        yield " ".join(str(row[name]) for name in row if name in LEVELS), row


def _depth(content: object) -> int:
    if not isinstance(content, Mapping):
        return 0
    return 1 + max(map(_depth, content.values()), default=0)


def _leaves(path: Path, content: Any, depth: int, *above: str) -> Iterator[tuple[list[str], Any]]:
    if len(above) == depth:
        if isinstance(content, Mapping):
            raise UsageError(f"{path}, {' '.join(above)}: names below the last of the levels")
        yield list(above), content
    elif isinstance(content, Mapping):
        for name, below in content.items():
            yield from _leaves(path, below, depth, *above, name)
    else:
        raise UsageError(f"{path}, {' '.join(above)}: {content!r:.40}, expected names")


def _molten(
    path: Path, table: Iterator[tuple[str, Row]], layout: Layout
) -> Iterator[tuple[str, Row]]:
    """Make a row of each score of a wide table; its algorithm is the column."""
    for place, row in table:
        seed = layout.columns.get("seed") or next((n for n in row if n in ("", "seed")), None)
        if seed is not None and seed not in row:
            raise UsageError(f"{path}: no column {seed!r}; there are: {', '.join(row)}")
        for name, value in row.items():
            if name != seed and not _is_gap(value):
                numbered = {} if seed is None else {"seed": row[seed]}
                yield f"{place}, {name}", {"algorithm": name, "score": value, **numbered}


def _columns(path: Path, names: list[str], rows: list[Row], layout: Layout) -> dict[str, str]:
    """Decide which column holds what: as the user says, else those that are called so."""
    wanted = {} if layout.wide else dict(layout.columns)
    for target, name in wanted.items():
        if name not in names:
            near = nearest(name, names)
            meant = f"; did you mean {near!r}?" if near else ""
            there = ", ".join(map(repr, names[:30]))
            raise UsageError(f"{path}: no column {name!r} for {target}{meant} There are: {there}")
    for target in TARGETS:
        if target in wanted or target in layout.fixed or target not in names:
            continue
        if target in _AMBIGUOUS and _are_numbers(target, rows):
            continue  # a measured KL, and no controller of it
        wanted[target] = target
    if "score" not in wanted:
        there = ", ".join(map(repr, names[:30]))
        raise UsageError(
            f"{path}: no column 'score'; there are: {there}. Name it with --map score=COLUMN"
            + ("" if "json" in path.suffix else ", or say --wide where each column is an algorithm")
        )
    if not {*wanted, *layout.fixed} & {"algorithm", "estimator", "loss"}:
        there = ", ".join(map(repr, names[:30]))
        raise UsageError(
            f"{path}: whose scores are these? There are: {there}. Name the column with --map "
            "algorithm=COLUMN, or the algorithm of all with --as algorithm=NAME"
        )
    return wanted


def _are_numbers(name: str, rows: list[Row]) -> bool:
    values = [row[name] for row in rows if not _is_gap(row.get(name))]
    try:
        return bool([float(value) for value in values])
    except (TypeError, ValueError):
        return False


def _entry(where: str, row: Row, columns: Mapping[str, str], fixed: Mapping[str, str]) -> Entry:
    """Read one row."""
    said = {target: row.get(name) for target, name in columns.items()} | dict(fixed)
    parts = {name: _label(where, name, said[name]) for name in PARTS if name in said}
    numbers = {key: _number(where, n, said[n]) for n, key in NUMBERS.items() if n in said}
    status = "ok"
    if not _is_gap(said.get("status")):
        status = str(said["status"]).strip()
        if status not in COMPLETE:
            raise UsageError.unknown(f"status in {where}:", status, COMPLETE)
    score = numbers.get("score")
    why = ""
    if status == "ok" and score is None:
        status, why = "failed", f"the score in {where} is {said['score']!r:.40}"
    elif status != "ok":
        why = f"so says {where}"
    settings = {
        target.removeprefix(SETTING): _plain(value)
        for target, value in said.items()
        if target.startswith(SETTING)
    }
    return Entry(
        where=where,
        parts=parts,
        settings=settings,
        seed=_seed(where, said.get("seed")),
        numbers=numbers if status == "ok" else numbers | {"score": None},
        status=status,
        why=why,
    )


def _is_gap(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in _NO_VALUE
    return value is None or (isinstance(value, float) and math.isnan(value))


def _label(where: str, name: str, value: object) -> str:
    text = "" if value is None else str(value).strip()
    if not text:
        raise UsageError(f"{where}: no {name}")
    return text


def _number(where: str, name: str, value: object) -> float | None:
    """Read a number; None where there is none, or it is infinite."""
    if _is_gap(value):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]  # anything that a file holds; refused below
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{where}: {name} is {value!r:.40}, expected a number") from None
    return number if math.isfinite(number) else None


def _seed(where: str, value: object) -> int | None:
    """Read a seed; 3.0 is 3, which is what a gap makes of whole numbers."""
    if _is_gap(value):
        return None
    number = None
    if not isinstance(value, bool):
        try:
            number = float(value)  # type: ignore[arg-type]  # as in `_number`
        except (TypeError, ValueError, OverflowError):
            number = None
    if number is None or not number.is_integer() or not 0 <= number < 2**53:
        raise UsageError(
            f"{where}: seed is {value!r:.40}, expected a whole number; --renumber counts instead"
        )
    return int(number)


def _plain(value: object) -> Any:
    """Keep what a setting can hold."""
    if hasattr(value, "item"):
        value = value.item()
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
