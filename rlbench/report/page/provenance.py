"""Where results come from: versions, machines, code, settings, time spent, names of runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rlbench.report.cells.baseline import spell_cell
from rlbench.report.cells.cell import KINDS, VERSIONS
from rlbench.report.progress import count
from rlbench.report.tables.notes import shared
from rlbench.report.text.layout import fixed, places_by_size
from rlbench.report.text.spelling import spell_seeds, spelled
from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlbench.grid.store import Record
    from rlbench.report.cells.cell import Cell

MOST_VALUES = 12  # of one fact
MOST_RUNS = 20_000  # whose names are listed
_BOLD = "Bold: not the default of this version of rlbench."
_DIGITS = 10  # of the hash at the end of a run's name
_VERSIONS = ("rlbench", "python", "torch", "numpy")
_MACHINE = {
    "platform": "platform",
    "cpu": "CPU",
    "cpu_capability": "instruction set",
    "threads": "threads",
}


@dataclass(frozen=True, kw_only=True)
class Fact:
    """Something that runs say of themselves.

    Attributes:
        name: What it is.
        values: What they say; where they don't say the same, with how many of them.
        strong: Whether it is in bold.
    """

    name: str
    values: tuple[str, ...]
    strong: bool = False


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Facts under one heading; ``note`` says what they have in common."""

    title: str
    facts: tuple[Fact, ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class RunsOfCell:
    """The names of a cell's runs, which differ in the seed and what stands behind it.

    Attributes:
        name: The cell.
        stem: What the names begin with.
        ends: What they end with.
    """

    name: str
    stem: str
    ends: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where results come from.

    Attributes:
        blocks: Facts.
        runs: Names of runs, cell by cell.
        number: Number of runs.
        cut: Which names are left out, in words; empty if none.
    """

    blocks: tuple[Facts, ...]
    runs: tuple[RunsOfCell, ...]
    number: int
    cut: str = ""


def collect(ordered: Sequence[Cell], labels: Sequence[str]) -> Provenance:
    """Collect what the runs of cells say of where they come from.

    Args:
        ordered: Cells in the order of the tables.
        labels: Columns in which they differ.
    """
    records = [seed.record for cell in ordered for seed in cell.seeds]
    said = [_mapping(record.result, "provenance") for record in records]
    same = tuple(_shared(ordered, labels))
    blocks = [
        Facts(title="Settings that differ", facts=tuple(_differing(ordered, labels))),
        Facts(
            title="Settings that all cells share",
            facts=same,
            note=_BOLD if any(fact.strong for fact in same) else "",
        ),
        Facts(title="Versions", facts=tuple(_versions(ordered, said))),
        Facts(title="Machine", facts=tuple(_of_each(said, _MACHINE))),
        Facts(title="Code", facts=tuple(_code(said))),
        Facts(title="Seeds and dates", facts=tuple(_when(ordered, said))),
        Facts(
            title="Time spent",
            facts=tuple(_spent(records)),
            note="Sums over all runs, failed ones too; seconds on the clock of each run.",
        ),
    ]
    listed, left = [], MOST_RUNS
    for cell in ordered:
        if left <= 0:
            break
        listed += _runs(cell, labels, left)
        left -= len(cell.seeds)
    return Provenance(
        blocks=tuple(block for block in blocks if block.facts),
        runs=tuple(listed),
        number=len(records),
        cut=f"The first {MOST_RUNS:,} of {len(records):,} runs." if left < 0 else "",
    )


def _differing(ordered: Sequence[Cell], labels: Sequence[str]) -> list[Fact]:
    return [
        Fact(
            name=name,
            values=_counted((cell.columns.get(name) or "-" for cell in ordered), "cell"),
        )
        for name in labels
        if len({cell.columns.get(name) for cell in ordered}) > 1
    ]


def _shared(ordered: Sequence[Cell], labels: Sequence[str]) -> list[Fact]:
    """List what all cells share; kinds first, then settings."""
    same = shared(ordered)
    names = [name for name in same if name not in VERSIONS]
    if len(ordered) > 1:
        names = [name for name in names if name not in labels]
    defaults = {option.name: spelled(option.default) for option in Settings.options()}
    return [
        Fact(
            name=name,
            values=(same[name],),
            strong=name not in KINDS and defaults.get(name) != same[name],
        )
        for name in names
    ]


def _versions(ordered: Sequence[Cell], said: Sequence[Mapping[str, Any]]) -> list[Fact]:
    facts = _of_each(said, dict.fromkeys(_VERSIONS))
    owners: dict[str, set[str]] = {}
    for cell in ordered:
        for kind in KINDS:
            label, owner = cell.columns.get(kind), cell.columns.get(f"{kind}.version")
            if label and owner:
                owners.setdefault(owner, set()).add(f"{kind} {label.partition(':')[0]}")
    return facts + [
        Fact(name=f"from {owner}", values=tuple(sorted(found)[:MOST_VALUES]))
        for owner, found in sorted(owners.items())
    ]


def _of_each(said: Sequence[Mapping[str, Any]], names: Mapping[str, str | None]) -> list[Fact]:
    """Collect facts that runs say under these keys."""
    facts = []
    for key, title in names.items():
        values = [str(of[key]) for of in said if of.get(key) not in (None, "")]
        if values:
            facts.append(Fact(name=title or key, values=_counted(values, "run")))
    return facts


def _code(said: Sequence[Mapping[str, Any]]) -> list[Fact]:
    checkouts: dict[str, list[str]] = {}
    for of in said:
        for name, git in {"rlbench": of.get("git"), **_mapping(of, "plugins_git")}.items():
            if isinstance(git, Mapping) and git.get("commit"):
                dirty = ", with uncommitted changes" if git.get("dirty") else ""
                checkouts.setdefault(name, []).append(f"commit {git['commit']}{dirty}")
    facts = [
        Fact(name=f"checkout of {name}", values=_counted(values, "run"))
        for name, values in sorted(checkouts.items())
    ]
    files = [str(p) for of in said if isinstance(of.get("plugins"), list) for p in of["plugins"]]
    if files:
        facts.append(Fact(name="plugins", values=_counted(files, "run")))
    imported = [_file_of(str(of["imported"])) for of in said if of.get("imported")]
    if imported:
        facts.append(Fact(name="imported from", values=_counted(imported, "run")))
    return facts


def _file_of(where: str) -> str:
    """Take the row off a file and its row."""
    return re.sub(r"[:,]? ?(row|line|record)? ?[0-9]+$", "", where) or where


def _when(ordered: Sequence[Cell], said: Sequence[Mapping[str, Any]]) -> list[Fact]:
    seeds = _counted(
        (spell_seeds(seed.number for seed in cell.tried) for cell in ordered if cell.tried), "cell"
    )
    facts = [Fact(name="seeds", values=seeds)] if seeds else []
    started = sorted(str(of["started"]) for of in said if of.get("started"))
    if started:
        first, last = started[0], started[-1]
        between = _date(first) if first == last else f"{_date(first)} to {_date(last)}"
        facts.append(Fact(name="runs started", values=(between,)))
    return facts


def _date(text: str) -> str:
    """Write a time for people; what is none stays as it is."""
    found = re.fullmatch(r"([0-9-]{10})T([0-9:]{8})\+00:00", text)
    return f"{found[1]} {found[2]} UTC" if found else text


def _spent(records: Iterable[Record]) -> list[Fact]:
    seconds: dict[str, float] = {}
    tokens = 0.0
    for record in records:
        result = record.result or {}
        for name, value in _mapping(result, "phases").items():
            if isinstance(value, (int, float)):
                seconds[name] = seconds.get(name, 0.0) + value
        if result.get("wall_s") is not None:
            seconds["in all"] = seconds.get("in all", 0.0) + result["wall_s"]
        tokens += result.get("tokens") or 0
    if "in all" in seconds:
        seconds["in all"] = seconds.pop("in all")  # the sum stands last
    digits = min(places_by_size(list(seconds.values())), 1)
    facts = [
        Fact(name=name, values=(f"{fixed(value, digits)} s{_in_hours(value)}",))
        for name, value in seconds.items()
        if float(fixed(value, digits)) > 0
    ]
    return facts + ([Fact(name="tokens", values=(f"{tokens:,.0f}",))] if tokens else [])


def _in_hours(seconds: float) -> str:
    return f" ({seconds / 3600:.1f} h)" if seconds >= 3600 else ""


def _runs(cell: Cell, labels: Sequence[str], most: int) -> list[RunsOfCell]:
    """Put together the runs whose names begin alike."""
    seeds = cell.seeds[:most]
    split = [(*_split(seed.record.run_id, seed.number), seed) for seed in seeds]
    name = spell_cell(cell, labels)
    return [
        RunsOfCell(name=name, stem=stem, ends=tuple(end for _, end, _ in group))
        for stem, group in groupby(split, key=lambda one: one[0])
    ]


def _split(run_id: str, seed: int) -> tuple[str, str]:
    end = f"{seed}{run_id[-_DIGITS - 1 :]}"
    return (run_id.removesuffix(end), end) if run_id.endswith(end) else ("", run_id)


def _counted(values: Iterable[str], noun: str) -> tuple[str, ...]:
    """List values, the most frequent first, each with its count where there are several."""
    counts = Counter(values)
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    if len(ordered) == 1:
        return (ordered[0][0],)
    shown = [f"{value} ({count(number, noun)})" for value, number in ordered[:MOST_VALUES]]
    more = len(ordered) - MOST_VALUES
    return (*shown, *([f"and {more:,} more values"] if more > 0 else []))


def _mapping(content: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    value = (content or {}).get(name)
    return value if isinstance(value, Mapping) else {}
