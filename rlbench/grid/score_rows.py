"""Files of scores, whatever their format, as flat rows with the place of each."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlbench.errors import UsageError
from rlbench.grid.reading import COLUMNS, read_bytes

if TYPE_CHECKING:
    from pathlib import Path

PARTS = ("algorithm", "estimator", "loss", "kl", "task", "reward", "model")
SETTING = "set."
WHO = ("algorithm", "estimator", "loss")
TARGETS = (*PARTS, "seed", "step", "status", *COLUMNS)
LEVELS = (*PARTS, "seed", "metric")

_NO_VALUE = ("", "na", "n/a", "nan", "none", "null", "-")
_SHOWN = 3  # names of a level
_USUAL_LEVELS = {1: ("task",), 2: ("algorithm", "task"), 3: ("algorithm", "task", "metric")}

Row = Mapping[str, Any]


class Counted(str):
    """A seed that nobody gave: the place of a score in its list or table."""

    __slots__ = ()


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


def rows_of(path: Path, layout: Layout) -> Iterator[tuple[str, Row]]:
    """Yield flat rows with the place of each; those of a wide table are as wide as it is.

    Raises:
        UsageError: The file can't be read.
    """
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
    yield from table


def is_wide(path: Path, rows: list[tuple[str, Row]], layout: Layout) -> bool:
    """Whether a table names nothing that is known, and holds nothing but numbers."""
    if not rows or layout.columns or "json" in path.suffix.lower():
        return False
    names = [name for name in rows[0][1] if name not in ("", "seed")]
    if not names or set(names) & {*TARGETS}:
        return False
    return all(are_numbers(name, [row for _, row in rows]) for name in names)


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
    reader = csv.reader(
        io.StringIO(text), delimiter="\t" if suffix == ".tsv" else comma, strict=True
    )
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
        open_quote = "unexpected end of data" in str(error)
        why = "a quote that is opened here or above is never closed" if open_quote else str(error)
        raise UsageError(f"{path}, line {reader.line_num}: {why}") from error


def _rows_of_parquet(path: Path) -> Iterator[tuple[str, Row]]:
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
        if frame.index.name is not None:
            frame = frame.reset_index()
    except ImportError as error:
        raise UsageError(
            f"{path}: Parquet needs pyarrow; pip install 'rlbench[parquet]'"
        ) from error
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
    ) as error:  # any, if damaged
        why = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise UsageError(f"{path} can't be read: {why}") from error
    frame.columns = [str(name) for name in frame.columns]
    frame = frame.astype(object).where(frame.notna(), None)  # one spelling of what is missing
    for number, values in enumerate(frame.itertuples(index=False, name=None), 1):
        yield f"row {number}", dict(zip(frame.columns, values, strict=True))


def _rows_of_json(path: Path, text: str, layout: Layout) -> Iterator[tuple[str, Row]]:
    try:
        if path.suffix.lower() != ".json":
            lines = enumerate(text.split("\n"), 1)  # and at nothing else that Unicode calls a line
            content: Any = [_loaded(line, f"line {n} of ") for n, line in lines if line.strip()]
        else:
            content = _loaded(text)
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


def _loaded(text: str, where: str = "") -> Any:
    """Read JSON in which no name is there twice: the last would win without a word."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"{where}it has {twice!r} twice in one object")
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        place = f"{where}it, column {error.colno}" if where else f"line {error.lineno}"
        raise ValueError(f"{place}: {error.msg}") from error


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
    known = {*levels, *layout.fixed, *layout.columns}
    owner = {} if known & set(WHO) else {"algorithm": path.stem}
    found: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for keys, value in _leaves(path, content, len(levels)):
        named = owner | dict(zip(levels, keys, strict=True))
        metric = named.pop("metric", "score")
        values = value if isinstance(value, list) else [value]
        for position, number in enumerate(values):
            at = named if "seed" in named else named | {"seed": Counted(position)}
            found.setdefault(tuple(at.items()), dict(at))[metric] = number
    for row in found.values():
        yield " ".join(row[name] for name in levels if name != "metric"), row


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


def molten(
    path: Path, table: Sequence[tuple[str, Row]], layout: Layout, first: int
) -> Iterator[tuple[str, Row]]:
    """Make a row of each score of a wide table; its algorithm is the column.

    Where no column has seeds, or they are counted anew, the number of the row is the seed of all
    columns: what one of them lacks moves no other. Only an empty value was not run.
    """
    for number, (place, row) in enumerate(table, first):
        seed = layout.columns.get("seed") or next((n for n in row if n in ("", "seed")), None)
        if seed is not None and seed not in row:
            raise UsageError(f"{path}: no column {seed!r}; there are: {', '.join(row)}")
        at = Counted(number) if seed is None or layout.renumber else row[seed]
        for name, value in row.items():
            if name != seed and not is_blank(value):
                yield f"{place}, {name}", {"algorithm": name, "score": value, "seed": at}


def blanks(table: Sequence[tuple[str, Row]]) -> str:
    """Say which cells of a wide table are empty; empty if none is."""
    found = [f"{name}, {place}" for place, row in table for name in row if is_blank(row[name])]
    if not found:
        return ""
    where = f"the first: {found[0]}" if len(found) > 1 else found[0]
    cells = (
        "1 empty cell is no run" if len(found) == 1 else f"{len(found):,} empty cells are no runs"
    )
    return f"{cells} ({where}); a run that failed has nan"


def how_nested(rows: Sequence[tuple[str, Row]], layout: Layout) -> str:
    """Say what the names of nested JSON were taken for, where nobody said; empty if it is clear."""
    first = rows[0][1]
    levels = [name for name in first if name in PARTS]
    if layout.levels or len(levels) < 2:
        return ""
    read = []
    for level in levels:
        names = list(dict.fromkeys(str(row[level]) for _, row in rows))
        more = ", ..." if len(names) > _SHOWN else ""
        read.append(f"{level} ({', '.join(names[:_SHOWN])}{more})")
    turned = ",".join([levels[1], levels[0], *levels[2:]])
    return f"read as {', then '.join(read)}; if they are nested otherwise: --levels {turned}"


def are_numbers(name: str, rows: list[Row]) -> bool:
    """Whether a column holds numbers, and gaps at most."""
    values = [row[name] for row in rows if not is_gap(row.get(name))]
    try:
        return bool([float(value) for value in values])
    except (TypeError, ValueError, OverflowError):
        return False


def is_blank(value: object) -> bool:
    """Whether nothing at all stands here."""
    return value is None or (isinstance(value, str) and not value.strip())


def is_gap(value: object) -> bool:
    """Whether this says that there is no value."""
    if isinstance(value, str):
        return value.strip().lower() in _NO_VALUE
    return value is None or (isinstance(value, float) and math.isnan(value))
