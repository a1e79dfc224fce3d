"""One run as text: what it is, where and with what it was made, how it ended, how to repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlbench.grid import compare, repeat
from rlbench.grid.importing import MADE_ELSEWHERE
from rlbench.grid.reading import COLUMNS, read_object
from rlbench.grid.store import LOCK, SCHEMA, VERIFIED
from rlbench.report.cells.cell import error_line
from rlbench.report.text.prose import two_columns, wrap
from rlbench.report.text.spelling import printable, spelled
from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.grid.compare import Difference
    from rlbench.grid.store import Record
    from rlbench.plugin.registry import Registry

_VERSIONS = ("python", "torch", "numpy", "rlbench")
_MACHINE = ("platform", "cpu", "cpu_capability", "threads")

Rows = list[tuple[str, str]]


def run_text(record: Record, registry: Registry, width: int = 80) -> str:
    """Describe one run.

    Args:
        record: A run with a specification.
        registry: What is installed now; without what the run needs, if that is not there.
        width: Columns to wrap to.

    Returns:
        Blocks with a heading each. The last one is the one command that repeats exactly this run,
        below what that command would do differently today.
    """
    result = record.result or {}
    provenance = _mapping(result, "provenance")
    blocks = [
        ("", _state(record)),
        ("components", _components(record)),
        ("settings", _settings(record)),
        ("numbers", _numbers(result)),
        ("seconds", _seconds(result)),
        ("made with", _made(record, provenance)),
        ("files", _files(record)),
    ]
    texts = [
        f"{title}\n{_sound(rows, width)}" if title else _sound(rows, width)
        for title, rows in blocks
        if rows
    ]
    return "\n\n".join([f"run {record.run_id}", *texts, _repeat(record, registry, width)])


def comparison_text(one: Record, other: Record, width: int = 80) -> str:
    """Say what differs between two runs: by name, beside it, and in their numbers.

    Args:
        one: A run with a specification.
        other: Another, or the same one in another folder.
        width: Columns to wrap to.

    Returns:
        Text without a newline at the end.
    """
    blocks = [
        f"{order}: {r.run_id} ({r.status}, in {r.folder.parent})"
        for order, r in (("first", one), ("second", other))
    ]
    blocks = ["\n".join(blocks)]
    named = compare.of_specs(one.spec or {}, other.spec or {})
    if named:
        blocks.append(_differences("differs, and makes them two runs", named, width))
    elif one.run_id == other.run_id:
        blocks.append("one run: nothing of what can move its numbers differs")
    else:
        blocks.append("the names differ, but nothing that their specifications say")
    beside = compare.of_provenance(one, other)
    if beside:
        blocks.append(
            _differences("differs beside that, and is no part of the name", beside, width)
        )
    if one.result is None or other.result is None:
        blocks.append("numbers: one of them has no result yet")
    else:
        where = compare.of_numbers(one, other)
        blocks.append(f"numbers: {where or 'the same, byte by byte'}")
    return "\n\n".join(blocks)


def _differences(title: str, found: Sequence[Difference], width: int) -> str:
    return f"{title} (first | second)\n{_sound(found, width)}"


def _sound(rows: Sequence[tuple[str, str]], width: int) -> str:
    """Lay out what files say: it may hold what moves a terminal's cursor."""
    return two_columns(
        [(printable(name), "\n".join(map(printable, text.splitlines()))) for name, text in rows],
        width,
    )


def _state(record: Record) -> Rows:
    rows = [("status", record.status), ("folder", str(record.folder))]
    if error_line(record):
        rows.append(("error", error_line(record)))
    error = (record.result or {}).get("error")
    if isinstance(error, Mapping) and error.get("where"):
        rows.append(("where", str(error["where"])))
    rows += _verified(record)
    if damage := record.damage():
        rows.append(("warning", damage))
    if record.problem and record.problem not in (value for _, value in rows):
        rows.append(("problem", record.problem))
    return rows


def _verified(record: Record) -> Rows:
    """Warn of a run that came to other numbers when it was repeated."""
    said, _ = read_object(f"{record.folder}/{VERIFIED}")
    if said is None or said.get("same") is not False:
        return []
    text = f"run again with other numbers: {said.get('where')} (first | again)"
    if isinstance(again := said.get("again"), str):
        text += f"; the repeated run is {record.folder.parent.parent / again}"
    return [("warning", text)]


def _components(record: Record) -> Rows:
    rows = []
    for kind, component in _mapping(record.spec or {}, "components").items():
        if (record.spec or {}).get(MADE_ELSEWHERE):
            rows.append((kind, str(component["label"])))
            continue
        owner = _mapping(component, "owner")
        whose = owner.get("distribution") or f"file or module {owner.get('plugin', '?')}"
        version = f" {owner['version']}" if owner.get("version") else ""
        source = str(component.get("source", "unknown"))
        rows.append((kind, f"{component['label']} ({whose}{version}, source {source})"))
    return rows


def _settings(record: Record) -> Rows:
    """All settings; those that are not at their default today are marked."""
    defaults = {option.name: option.default for option in Settings.options()}
    spec = record.spec or {}
    return [("seed", str(spec.get("seed")))] + [
        (name, spelled(value) + ("" if _is_default(defaults, name, value) else "  (set)"))
        for name, value in _mapping(spec, "settings").items()
    ]


def _is_default(defaults: Mapping[str, Any], name: str, value: Any) -> bool:
    return name in defaults and spelled(defaults[name]) == spelled(value)


def _numbers(result: Mapping[str, Any]) -> Rows:
    return [
        (name, _spell(result[key]))
        for name, key in COLUMNS.items()
        if key != "wall_s" and result.get(key) is not None
    ]


def _seconds(result: Mapping[str, Any]) -> Rows:
    rows = [(name, _spell(value)) for name, value in _mapping(result, "phases").items()]
    return [*rows, ("on the clock", _spell(result["wall_s"]))] if result.get("wall_s") else rows


def _spell(value: Any) -> str:
    """Write a number without the last digits, which are those of binary fractions."""
    return str(float(f"{value:.12g}") if isinstance(value, float) else value)


def _made(record: Record, provenance: Mapping[str, Any]) -> Rows:
    spec = record.spec or {}
    rows = [(name, str(provenance[name])) for name in _VERSIONS if provenance.get(name)]
    if not spec.get(MADE_ELSEWHERE):
        rows.append(("training", f"source {spec.get('training', 'unknown')}"))
    if spec.get("schema") != SCHEMA:
        rows.append(("schema", f"{spec.get('schema')}; this version writes {SCHEMA}"))
    checkouts = {"git": provenance.get("git"), **_mapping(provenance, "plugins_git")}
    for name, git in checkouts.items():
        if isinstance(git, Mapping):
            dirty = ", with uncommitted changes" if git.get("dirty") else ""
            title = name if name == "git" else f"git of {name}"
            rows.append((title, f"commit {git.get('commit')}{dirty}"))
    last = (*_MACHINE, "started")
    return rows + [(name, str(provenance[name])) for name in last if provenance.get(name)]


def _files(record: Record) -> Rows:
    try:
        files = sorted(path for path in record.folder.iterdir() if path.name != LOCK)
        return [(path.name, f"{path.stat().st_size:,} bytes") for path in files]
    except OSError as error:
        return [("unreadable", str(error))]


def _repeat(record: Record, registry: Registry, width: int) -> str:
    """Write the command, and what stands against it."""
    if (record.spec or {}).get(MADE_ELSEWHERE):
        origin = _mapping(record.result or {}, "provenance").get("imported", "an unknown file")
        return printable(f"made elsewhere; imported from {origin}")
    text = f"repeat exactly this run\n  {repeat.shell(repeat.command(record))}"
    changed = repeat.changed(registry, record.spec or {})
    absent = repeat.not_here(record)
    if absent and changed and changed[0][0] == repeat.CANT:
        warning = f"warning: {absent}, or go to the folder that the run was started in"
        text += "\n" + "\n".join(wrap(warning, width, hang=2))
    elif changed:
        text += "\n" + _differences(
            "warning: what is installed now is not what this run was made with; the command makes "
            "another run",
            changed,
            width,
        ).replace("(first | second)", "(then | now)")
    return text


def _mapping(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = content.get(name)
    return value if isinstance(value, Mapping) else {}
