"""Runs of a grid that are there under the name that other code or other versions gave them."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from rlbench.report.text.spelling import printable, spelled
from rlbench.training.settings import Settings
from rlbench.training.spec import DEFAULT_SELECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from rlbench.grid.attempt import Planned
    from rlbench.grid.store import Record
    from rlbench.training.spec import RunSpec


def find(
    planned: Sequence[Planned], names: Iterable[str], read: Callable[[str], Record]
) -> list[str]:
    """Find runs that were done, and have another name only for the code or versions of then.

    Args:
        planned: The runs of a grid.
        names: What is there.
        read: Reads one of those; only where a name begins like that of a run that is not there.

    Returns:
        Names of runs in the store, each of which was one of the runs that are not there now.
    """
    there = set(names)
    others = there - {run.run_id for run in planned}
    stems = set(map(_stem, others))
    asked = _Asked()
    wanted: dict[str, set[str]] = {}
    for run in planned:
        stem = _stem(run.run_id)
        if stem in stems and run.run_id not in there:
            wanted.setdefault(stem, set()).add(asked.in_words(run.spec))
    found = []
    for name in sorted(name for name in others if _stem(name) in wanted):
        record = read(name)
        spec = record.spec if record.complete else None
        if spec is not None and asked.on_disk(spec) in wanted[_stem(name)]:
            found.append(name)
    return found


def _stem(run_id: str) -> str:
    """Take the hash off a name; the seed stays."""
    return run_id.rpartition("-")[0]


class _Asked:
    """Writes what somebody asked for, whatever code it was asked of: what is not the default."""

    def __init__(self) -> None:
        self._usual = {str(kind): label for kind, label in DEFAULT_SELECTIONS.items()}
        self._defaults = {option.name: spelled(option.default) for option in Settings.options()}

        self._known: dict[tuple[int, int], tuple[object, str]] = {}  # seeds share their parts

    def in_words(self, spec: RunSpec) -> str:
        """Write what is asked for now."""
        key = (id(spec.selections), id(spec.settings))
        if key not in self._known:
            labels = {str(kind): chosen.label for kind, chosen in spec.selections.items()}
            self._known[key] = (spec, self._write(labels, spec.settings.values()))
        return self._known[key][1]

    def on_disk(self, spec: Mapping[str, Any]) -> str:
        """Write what was asked for then."""
        key = (id(spec["components"]), id(spec["settings"]))
        if key not in self._known:
            labels = {kind: component["label"] for kind, component in spec["components"].items()}
            self._known[key] = (spec, self._write(labels, spec["settings"]))
        return self._known[key][1]

    def _write(self, labels: Mapping[str, str], settings: Mapping[str, Any]) -> str:
        chosen = {kind: label for kind, label in labels.items() if label != self._usual.get(kind)}
        values = {name: spelled(value) for name, value in settings.items()}
        changed = {n: value for n, value in values.items() if value != self._defaults.get(n)}
        return json.dumps([chosen, changed], sort_keys=True)


def text(found: Sequence[str], folder: Path) -> str:
    """Say what is there instead of runs that are missing, and how to look at it; or nothing."""
    if not found:
        return ""
    out = shlex.quote(printable(str(folder)))
    be = "is" if len(found) == 1 else "are"
    return (
        f"{len(found):,} of the missing runs {be} there as made by other code or versions. "
        f"rlbench show run {found[0]} -o {out} tells what differs; rlbench rm --outdated -o {out} "
        "removes such runs."
    )
