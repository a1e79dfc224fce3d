"""Two runs side by side: what they are named after, what stands beside it, and their numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlbench.grid.reading import read_bytes
from rlbench.grid.store import EVALUATIONS, METRICS

if TYPE_CHECKING:
    from pathlib import Path

    from rlbench.grid.store import Record

Difference = tuple[str, str]
"""What differs, and its two values: ``("setting lr", "0.0005 | 0.001")``."""

ABSENT = "-"
RESULTS = ("status", "score_start", "score", "reward", "kl", "entropy", "length", "tokens")
"""What in ``result.json`` has to be equal where two runs are the same; seconds never are."""
_BESIDE = ("python", "numpy", "rlbench", "platform", "cpu", "cpu_capability", "threads")
_WHOLE = {"training": "source of the training wing", "torch": "torch", "schema": "schema"}


def of_specs(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Difference]:
    """List what differs between two specifications, all of it part of the runs' names.

    Args:
        one: Content of a ``spec.json``, of whatever version.
        other: Another.

    Returns:
        Kinds first, then settings, the seed and versions. Of two different components only that
        they differ: options of one are nothing to compare with options of the other.
    """
    found = []
    components, others = _mapping(one, "components"), _mapping(other, "components")
    for kind in dict.fromkeys([*components, *others]):
        found += _of_components(kind, _mapping(components, kind), _mapping(others, kind))
    found += _pairs("setting ", _mapping(one, "settings"), _mapping(other, "settings"))
    rest = [
        {key: spec[key] for key in spec if key not in ("components", "settings", "run_id")}
        for spec in (one, other)
    ]
    found += [(_WHOLE.get(name, name), values) for name, values in _pairs("", *rest)]
    return found


def of_provenance(one: Record, other: Record) -> list[Difference]:
    """List what differs in where and with what two runs were made; no part of their names."""
    ours, theirs = (_mapping(record.result or {}, "provenance") for record in (one, other))
    found = [
        (name, values) for name, values in _pairs("", ours, theirs) if name in _BESIDE and values
    ]
    commits = [_commit(_mapping(provenance, "git")) for provenance in (ours, theirs)]
    if commits[0] != commits[1]:
        found.append(("git commit of rlbench", " | ".join(commits)))
    return found


def of_numbers(one: Record, other: Record) -> str | None:
    """Say where the numbers of two runs part; None if they are the same.

    ``metrics.csv`` and ``evals.csv`` are compared byte by byte, results without their times.
    """
    for name in (METRICS, EVALUATIONS):
        where = of_files(one.folder / name, other.folder / name)
        if where is not None:
            return where
    results = [{name: (r.result or {}).get(name) for name in RESULTS} for r in (one, other)]
    return next((f"{name} of the result: {both}" for name, both in _pairs("", *results)), None)


def of_files(one: Path, other: Path) -> str | None:
    """Say at which row two CSV files of runs part; None if they have the same bytes, or none."""
    contents = [_content(path) for path in (one, other)]
    if contents[0] == contents[1]:
        return None
    for content, there in zip(contents, reversed(contents), strict=True):
        if content is None and there is not None:
            return f"{one.name} is there in one of them only"
    rows, others = (list(csv.reader(io.StringIO(str(content)))) for content in contents)
    return f"{one.name} {_parting(rows, others)}"


def _parting(rows: list[list[str]], others: list[list[str]]) -> str:
    """Find the first row that differs, named by its first column, in columns that both have."""
    header = rows[0] if rows else []
    if header != (others[0] if others else []):
        return _parting_of_shared(rows, others)
    return _parting_of_rows(rows, others)


def _parting_of_shared(rows: list[list[str]], others: list[list[str]]) -> str:
    """Compare the columns that both have: what one logs alone says nothing of the other."""
    headers = [content[0] if content else [] for content in (rows, others)]
    shared = [name for name in headers[0] if name in headers[1]]
    if not shared:
        return "has other columns"
    alone = [
        f"only {which} has {', '.join(name for name in header if name not in shared)}"
        for which, header in zip(("first", "second"), headers, strict=True)
        if any(name not in shared for name in header)
    ]
    kept = [
        [[row[i] for i in map(header.index, shared) if i < len(row)] for row in content]
        for content, header in zip((rows, others), headers, strict=True)
    ]
    columns = f"{len(shared)} shared column{'s' if len(shared) > 1 else ''}"
    found = f"is equal in all {columns}"
    if kept[0] != kept[1]:
        found = f"{_parting_of_rows(*kept)}, of {columns}"
    return "; ".join([found, *(alone or ["their order differs"])])


def _parting_of_rows(rows: list[list[str]], others: list[list[str]]) -> str:
    """Find the first row that differs, of two contents with the same columns."""
    header = rows[0] if rows else []
    for row, other in zip(rows[1:], others[1:], strict=False):
        if row != other:
            apart = [
                (name, f"{a} | {b}")
                for name, a, b in zip(header, row, other, strict=False)
                if a != b
            ]
            if not apart:
                return f"parts at {header[0]} {row[0] if row else ABSENT}: it is cut there"
            rest = len(apart) - 1
            more = f" (and {rest} more column{'s' if rest > 1 else ''})" if rest else ""
            return f"parts at {header[0]} {row[0]}: {apart[0][0]} {apart[0][1]}{more}"
    if len(rows) == len(others):
        return "differs in how it is written"
    longer = max(rows, others, key=len)[min(len(rows), len(others))]
    return f"parts at {header[0]} {longer[0] if longer else ABSENT}: one of them ends before it"


def _of_components(kind: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Difference]:
    if one.get("name") != other.get("name"):
        labels = [str(component.get("label", ABSENT)) for component in (one, other)]
        return [(kind, " | ".join(labels))]
    title = f"{kind} {one.get('name')}"
    found = _pairs(f"{title}, option ", _mapping(one, "options"), _mapping(other, "options"))
    contents = _mapping(one, "contents"), _mapping(other, "contents")
    found += _pairs(f"{title}, contents of the file in option ", *contents)
    owners = [_owner(_mapping(component, "owner")) for component in (one, other)]
    if owners[0] != owners[1]:
        found.append((f"owner of {title}", " | ".join(owners)))
    if one.get("source") != other.get("source"):
        found.append((f"source of {title}", f"{_short(one)} | {_short(other)}"))
    if one.get("needs") != other.get("needs"):
        found.append((f"needs of {title}", f"{one.get('needs')} | {other.get('needs')}"))
    return found


def _pairs(prefix: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Difference]:
    return [
        (f"{prefix}{name}", f"{_spell(one, name)} | {_spell(other, name)}")
        for name in dict.fromkeys([*one, *other])
        if one.get(name, ABSENT) != other.get(name, ABSENT)
    ]


def _spell(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name, ABSENT)
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return str(value)


def _short(component: Mapping[str, Any]) -> str:
    return str(component.get("source", ABSENT))[:7]


def _owner(owner: Mapping[str, Any]) -> str:
    parts = (owner.get("distribution") or owner.get("plugin"), owner.get("version"))
    return " ".join(str(part) for part in parts if part) or ABSENT


def _commit(git: Mapping[str, Any]) -> str:
    dirty = " with changes" if git.get("dirty") else ""
    return f"{str(git.get('commit', ABSENT))[:10]}{dirty}"


def _mapping(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Take what should be a mapping; an empty one if it is something else."""
    value = content.get(name)
    return value if isinstance(value, Mapping) else {}


def _content(path: Path) -> str | None:
    try:
        return read_bytes(path).decode("utf-8", "backslashreplace")
    except OSError:
        return None
