"""Scores that were made elsewhere: what each row of a file says of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlbench.errors import UsageError, nearest
from rlbench.grid.foreign_status import left_out, status_of
from rlbench.grid.imported_curves import runs_of_steps
from rlbench.grid.reading import COLUMNS
from rlbench.grid.score_rows import (
    PARTS,
    SETTING,
    TARGETS,
    WHO,
    Counted,
    Layout,
    Row,
    are_numbers,
    blanks,
    how_nested,
    is_blank,
    is_gap,
    is_wide,
    molten,
    rows_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_AMBIGUOUS = ("kl", "reward")  # names of components and of what is measured


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One run that was made elsewhere.

    Attributes:
        where: File and row, for messages.
        parts: Kind to label.
        settings: Name to value.
        seed: The seed; None where the file has none.
        numbers: Key of a result to value; None where it is not a finite number.
        status: ``ok`` or how the run failed; empty where it came to no end of its own.
        why: Why it has no score, or what the file calls it where it came to no end; else empty.
        counted: Whether its seed is the number of its row already.
        given: Whether somebody said what its seed is: only then do runs of one number make pairs.
        source: The file.
        step: When in its run it was measured; None where the file does not say.
        steps: What the file calls that, such as ``env_steps``; empty where it does not say.
        curve: Step and score of all rows of its run, in the order of steps; empty for one row.
    """

    where: str
    parts: Mapping[str, str]
    settings: Mapping[str, Any]
    seed: int | None
    numbers: Mapping[str, float | None]
    status: str
    why: str = ""
    counted: bool = False
    given: bool = True
    source: str = ""
    step: float | None = None
    steps: str = ""
    curve: tuple[tuple[float, float], ...] = ()


def read_scores(path: Path, layout: Layout, first: int = 0) -> tuple[list[Entry], list[str]]:
    """Read a file of scores.

    Rows of one run at several steps are one run, see `imported_curves`. A table in which nothing
    has a known name and all is numbers is read as a wide one. Nested JSON
    without a level of algorithms is of one, which has the name of the file.

    Args:
        path: ``.csv`` or ``.tsv`` (with a header), ``.parquet``, ``.json`` (a list of objects, or
            names nested around lists of scores) or ``.jsonl`` (an object a line).
        layout: What is where in it.
        first: Seed of the first row of a wide table without seeds, or one that is numbered anew.

    Returns:
        The entries in the order of the file, and remarks on how they were read.

    Raises:
        UsageError: It can't be read, or something that is needed is not in it; names what is.
    """
    try:
        rows = list(rows_of(path, layout))
    except RecursionError:
        raise UsageError(f"{path}: names are nested too deep to be read") from None
    remarks = []
    if not layout.wide and is_wide(path, rows, layout):
        layout = replace(layout, wide=True)
        remarks.append("read as a wide table: every column is an algorithm, every row a seed")
    if layout.wide:
        remarks += [said] if (said := blanks(rows)) else []
        rows = list(molten(path, rows, layout, first))
    if not rows:
        raise UsageError(f"{path} holds no scores")
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    if "json" in path.suffix.lower() and rows[0][1].get("algorithm") == path.stem:
        remarks.append(f"the algorithm is called {path.stem!r}, as the file")
    if path.suffix.lower() == ".json" and not rows[0][0].startswith("row "):
        remarks += [said] if (said := how_nested(rows, layout)) else []
    columns = _columns(path, names, [row for _, row in rows], layout)
    entries = [_entry(f"{path.name}, {place}", row, columns, layout.fixed) for place, row in rows]
    steps = columns.get("step", "")
    entries = [
        replace(entry, counted=layout.wide, source=str(path), steps=steps) for entry in entries
    ]
    entries, of_steps = runs_of_steps(entries)
    ended = [entry for entry in entries if entry.status]
    remarks += [*of_steps, *left_out([entry.why for entry in entries if not entry.status])]
    if not ended:
        raise UsageError(f"{path}: no run in it came to an end")
    unused = [repr(name) for name in names if name not in columns.values()]
    return ended, remarks + ([f"not used: {', '.join(unused)}"] if unused else [])


def check_targets(names: Sequence[str], what: str) -> None:
    """Raise UsageError where a name says nothing of a run.

    Args:
        names: Such as ``score``, ``algorithm``, ``set.lr``.
        what: How the user gave them, for the message.
    """
    for name in names:
        if name.startswith(SETTING) and len(name) > len(SETTING):
            _sound(what, "the name of a setting", name)
            continue
        if name not in TARGETS:
            raise UsageError.unknown(f"{what} target", name, TARGETS, "or set.NAME for a setting")


def _columns(path: Path, names: list[str], rows: list[Row], layout: Layout) -> dict[str, str]:
    """Decide which column holds what: as the user says, else those that are called so."""
    wanted = {} if layout.wide else dict(layout.columns)
    for target, name in wanted.items():
        if name not in names:
            near = nearest(name, names)
            meant = f"; did you mean {near!r}?" if near else "."
            there = ", ".join(map(repr, names[:30]))
            raise UsageError(f"{path}: no column {name!r} for {target}{meant} There are: {there}")
    for target in TARGETS:
        if target in wanted or target in layout.fixed or target not in names:
            continue
        if target in (*PARTS, "step") and all(is_blank(row.get(target)) for row in rows):
            continue
        if target in _AMBIGUOUS and are_numbers(target, rows):
            continue  # a measured KL, and no controller of it
        wanted[target] = target
    if "score" not in wanted:
        there = ", ".join(map(repr, names[:30]))
        raise UsageError(
            f"{path}: no column 'score'; there are: {there}. Name it with --map score=COLUMN"
            + ("" if "json" in path.suffix else ", or say --wide where each column is an algorithm")
        )
    if not {*wanted, *layout.fixed} & set(WHO):
        there = ", ".join(map(repr, names[:30]))
        raise UsageError(
            f"{path}: whose scores are these? There are: {there}. Name the column with --map "
            "algorithm=COLUMN, or the algorithm of all with --as algorithm=NAME"
        )
    return wanted


def _entry(where: str, row: Row, columns: Mapping[str, str], fixed: Mapping[str, str]) -> Entry:
    """Read one row."""
    said = {target: row.get(name) for target, name in columns.items()} | dict(fixed)
    parts = {name: _label(where, name, said[name]) for name in PARTS if name in said}
    numbers = {key: _number(where, n, said[n]) for n, key in COLUMNS.items() if n in said}
    status = "ok"
    if not is_gap(said.get("status")):
        status = status_of(str(said["status"]), where) or ""
    score = numbers.get("score")
    why = ""
    if status == "ok" and score is None:
        status, why = "failed", f"the score in {where} is {said['score']!r:.40}"
    elif status != "ok":
        why = f"so says {where}" if status else str(said["status"])
    step = _number(where, "step", said.get("step"))
    if "step" in said and step is None:
        raise UsageError(f"{where}: step is {said['step']!r:.40}, expected a finite number")
    settings = {
        target.removeprefix(SETTING): _plain(where, target, value)
        for target, value in said.items()
        if target.startswith(SETTING)
    }
    return Entry(
        where=where,
        parts=parts,
        settings=settings,
        seed=_seed(where, said.get("seed")),
        given=not isinstance(said.get("seed"), Counted),
        step=step,
        numbers=numbers if status in ("ok", "") else numbers | {"score": None},
        status=status,
        why=why,
    )


def _label(where: str, name: str, value: object) -> str:
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:
        value = value.item()
    if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int, float))):
        raise UsageError(f"{where}: {name} is {value!r:.40}, expected a text")
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1 and 1.0 name one algorithm
    text = "" if value is None else str(value).strip()
    if not text:
        raise UsageError(f"{where}: no {name}")
    return _sound(where, name, text)


def _sound(where: str, name: str, text: str) -> str:
    """Refuse what no file can hold: half of a pair of code points."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"{where}: {name} is {text!r:.60}, which is no valid text") from None
    return text


def _number(where: str, name: str, value: object) -> float | None:
    """Read a number; None where there is none, or it is infinite."""
    if is_gap(value):
        return None
    try:
        if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
            raise ValueError  # noqa: TRY301 - numbers of Python, and of no file of scores
        number = float(value)  # type: ignore[arg-type]  # anything that a file holds; refused below
    except (TypeError, ValueError, OverflowError):
        comma = isinstance(value, str) and "," in value
        how = " with a point for decimals and nothing between thousands" if comma else ""
        raise UsageError(f"{where}: {name} is {value!r:.40}, expected a number{how}") from None
    return number if math.isfinite(number) else None


def _seed(where: str, value: object) -> int | None:
    """Read a seed; 3.0 is 3, which is what a gap makes of whole numbers."""
    if is_gap(value):
        return None
    number = None
    if not isinstance(value, bool):
        try:
            number = float(value)  # type: ignore[arg-type]  # as in `_number`
        except (TypeError, ValueError, OverflowError):
            number = None
    if number is None or not number.is_integer() or not 0 <= number < 2**53:
        raise UsageError(
            f"{where}: seed is {value!r:.40}, expected a whole number from 0 to 2**53; --renumber "
            "counts instead"
        )
    return int(number)


def _plain(where: str, name: str, value: object) -> Any:
    """Keep what a setting can hold; a gap is none."""
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        raise UsageError(f"{where}: {name} is {value!r}, expected a finite number or a text")
    if value is None or isinstance(value, (int, float, bool)):
        return value
    if not isinstance(value, str):
        raise UsageError(f"{where}: {name} is {value!r:.40}, expected a number or a text")
    return _sound(where, name, str(value))
