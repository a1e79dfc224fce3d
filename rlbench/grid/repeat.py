"""A run from its specification alone: built again, found again, and the command that repeats it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rlbench.errors import RlbenchError, UsageError
from rlbench.grid import compare, identity
from rlbench.grid.importing import MADE_ELSEWHERE
from rlbench.grid.store import SPEC, Store, read_run
from rlbench.plugin.selection import select
from rlbench.training.settings import Settings
from rlbench.training.spec import DEFAULT_SELECTIONS, RunSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlbench.grid.compare import Difference
    from rlbench.grid.store import Record
    from rlbench.plugin.registry import Registry
    from rlbench.types import Kind

DIGITS = 10  # of the hash at the end of a run's name
CANT = "can't be built any more"
"""What `changed` calls it that a component of a run is not there."""


def find(text: str, store: Store) -> Record:
    """Find one run.

    Args:
        text: Its name, the beginning or the end of it, or the path of its folder, in any store.
        store: Where names are looked up.

    Raises:
        UsageError: There is no such run, there are several, or it can't be read.
    """
    path = Path(text)
    if (path / SPEC).exists():
        record = read_run(path.absolute())
    else:
        record = store.record(find_name(text, store))
    if record.spec is None:
        raise UsageError(f"run {text!r}: {record.problem or f'{record.folder} holds no run'}")
    return record


def find_name(text: str, store: Store) -> str:
    """Find the name of a run from its beginning or end; UsageError if none or several fit."""
    names = store.names()
    if text in names:
        return text
    found = [name for name in names if text and (name.startswith(text) or name.endswith(text))]
    if len(found) > 1:
        shown = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")
        raise UsageError(f"run {text!r}: {len(found)} runs in {store.root} fit: {shown}")
    if not found:
        near = get_close_matches(text, names, n=3, cutoff=0.3) or sorted(names)[:3]
        count = f"{len(names):,} run{'' if len(names) == 1 else 's'} in {store.root}"
        shown = f", such as {', '.join(near)}" if near else ""
        raise UsageError(
            f"unknown run {text!r}; there {'is' if len(names) == 1 else 'are'} {count}{shown} "
            "(another folder is named with -o)"
        )
    return found[0]


def rebuild(registry: Registry, spec: Mapping[str, Any]) -> RunSpec:
    """Build the run that a specification describes, from what is installed now.

    Raises:
        UsageError: A component, an option or a setting is there no more, or was never there: the
            run was made elsewhere.
        PluginError: The signature of a component can't be read.
    """
    if spec.get(MADE_ELSEWHERE):
        raise UsageError("it was made elsewhere and imported")
    selections = {
        cast("Kind", kind): select(
            registry.find(cast("Kind", kind), str(component.get("name"))),
            component.get("options") or {},
        )
        for kind, component in spec["components"].items()
    }
    settings = Settings.from_values(spec["settings"])
    return RunSpec(selections=selections, settings=settings, seed=spec["seed"])


def changed(registry: Registry, spec: Mapping[str, Any]) -> list[Difference]:
    """List what is installed now and differs from what a run was made with.

    Returns:
        Empty if the run would have the same name today. Each has the value of then and of now.
    """
    try:
        now = identity.canonical(rebuild(registry, spec))
    except RlbenchError as error:
        return [(CANT, str(error))]
    if now["run_id"] == spec["run_id"]:
        return []
    differ = compare.of_specs(spec, now)
    return differ or [("name", f"{spec['run_id']} | {now['run_id']}")]


def judge(registry: Registry, records: Iterable[Record]) -> tuple[list[Record], dict[str, str]]:
    """Tell which runs would have another name today.

    Returns:
        Those; and by name why some can't be judged: a component of theirs is not installed, say.
    """
    catalogue = identity.Catalogue()
    cells: dict[tuple[int, int], RunSpec | RlbenchError] = {}
    old, unknown = [], {}
    for record in records:
        spec = record.spec
        if spec is None:
            continue
        key = (id(spec["components"]), id(spec["settings"]))  # seeds share both, once read
        if key not in cells:
            try:
                cells[key] = rebuild(registry, spec)
            except RlbenchError as error:
                cells[key] = error
        cell = cells[key]
        if isinstance(cell, RlbenchError):
            unknown[record.run_id] = not_here(record) or str(cell)
        elif catalogue.run_id(replace(cell, seed=spec["seed"])) != record.run_id:
            old.append(record)
    return old, unknown


def command(record: Record) -> list[str]:
    """Write the one command that repeats a run, as words for a shell.

    Only what differs from the defaults is in it. Results go to a folder of their own, named after
    the run: where the run is on disk, nothing would be left to do.
    """
    spec = record.spec or {}
    words = ["rlbench", "run"]
    for kind, component in spec["components"].items():
        label = str(component["label"])
        if label != DEFAULT_SELECTIONS.get(cast("Kind", kind)):
            words += [f"-{kind[0]}", label]
    words += ["-s", str(spec["seed"])]
    known = {option.name: option for option in Settings.options()}
    for name, value in spec["settings"].items():
        option = known.get(name)
        if option is None or option.check(value) != option.default:
            words += ["--set", f"{name}={option.spell(option.check(value)) if option else value}"]
    for plugin in plugins(record):
        words += ["--plugin", plugin]
    return [*words, "-o", f"again-{record.run_id[-DIGITS:]}"]


def plugins(record: Record) -> list[str]:
    """Name what has to be loaded with ``--plugin``; the path of a file is known of newer runs."""
    provenance = (record.result or {}).get("provenance")
    given = provenance.get("plugins") if isinstance(provenance, dict) else None
    if isinstance(given, list):
        return [str(plugin) for plugin in given]
    loose = [
        f"{owner['plugin']}.py"
        for component in (record.spec or {})["components"].values()
        if isinstance(owner := component.get("owner"), dict)
        and owner.get("plugin")
        and owner.get("distribution") is None
    ]
    return list(dict.fromkeys(loose))


def here(records: Iterable[Record]) -> list[str]:
    """Name the plugins of runs that can be loaded: their files are where these runs had them."""
    lists = {tuple(plugins(record)) for record in records if record.spec is not None}
    return sorted({plugin for some in lists for plugin in some if Path(plugin).is_file()})


def not_here(record: Record) -> str:
    """Say which plugin files of a run are not where it had them; empty if all are."""
    gone = [
        plugin
        for plugin in plugins(record)
        if plugin.endswith(".py") and not Path(plugin).is_file()
    ]
    if not gone:
        return ""
    return f"{', '.join(gone)} {'is' if len(gone) == 1 else 'are'} not here; add --plugin FILE"


def shell(words: list[str]) -> str:
    """Quote words for a shell."""
    return shlex.join(words)
