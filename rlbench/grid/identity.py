"""The name of a run: a hash of all that can move its numbers, and of nothing else.

Two spellings of one run have one name, so that repeating a command does only what is missing; and a
result is never shown under settings, sources or versions that are not its own.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlbench.grid.store import SCHEMA
from rlbench.plugin import source
from rlbench.plugin.signature import options

if TYPE_CHECKING:
    from rlbench.plugin.option import Option
    from rlbench.plugin.selection import Selection
    from rlbench.training.spec import RunSpec
    from rlbench.types import Kind

TRAINER = "rlbench.training.trainer"
STEM_LENGTH = 80  # with the hash well below the 255 bytes of a file name, and legible in a listing
CONTENT = "content "  # of a file that an option names, followed by its hash
STEM_KINDS: tuple[Kind, ...] = ("estimator", "loss", "kl", "task")


def run_id(spec: RunSpec) -> str:
    """Name a run: a readable stem and 10 hex digits, ASCII, at most 100 characters.

    Returns:
        For example ``group-clip-none-addition-s0-3f2a9c01d4``. The digits alone make it unique.
    """
    return Catalogue().run_id(spec)


def canonical(spec: RunSpec) -> dict[str, Any]:
    """Describe a run in full: the content of ``spec.json``.

    Returns:
        Strict JSON: schema, run_id, seed, components by kind (name, label, options, needs, owner,
        source), settings, version of torch, hash of the training wing.
    """
    return Catalogue().canonical(spec)


def sources(spec: RunSpec) -> tuple[Path, ...]:
    """List every source file that is part of the identity of a run."""
    files = dict.fromkeys(source.of_module(TRAINER))
    for chosen in spec.selections.values():
        files |= dict.fromkeys(source.of_component(chosen.component))
    return tuple(files)


@dataclass(frozen=True)
class _Cell:
    """What all seeds of a cell have in common."""

    spec: RunSpec  # of any seed; held, so that the ids of its parts are nobody else's
    content: dict[str, Any]  # of spec.json, but for run_id and seed
    stem: str
    head: str  # of the text that is hashed, up to the seed
    tail: str


class Catalogue:
    """Names and describes many runs; what they share is looked at once, at its first run.

    For the moment: one that outlives a change of a source file gives names of what was there.
    """

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], _Cell] = {}
        self._components: dict[Selection, dict[str, Any]] = {}

    def run_id(self, spec: RunSpec) -> str:
        """Name a run; see the function of this name."""
        cell = self._cell(spec)
        content = f'{cell.head},"seed":{json.dumps(spec.seed)},{cell.tail}'
        digits = hashlib.sha256(content.encode()).hexdigest()[:10]
        return f"{cell.stem}-s{spec.seed}-{digits}"

    def canonical(self, spec: RunSpec) -> dict[str, Any]:
        """Describe a run in full; see the function of this name."""
        name = self.run_id(spec)
        return {"schema": SCHEMA, "run_id": name, "seed": spec.seed, **self._cell(spec).content}

    def _cell(self, spec: RunSpec) -> _Cell:
        key = (id(spec.selections), id(spec.settings))  # the runs of a grid share both
        if key not in self._cells:
            self._cells[key] = self._describe(spec)
        return self._cells[key]

    def _describe(self, spec: RunSpec) -> _Cell:
        values = spec.settings.values()
        components = {kind: self._component(chosen) for kind, chosen in spec.selections.items()}
        spelled = {
            option.name: option.spell(values[option.name]) for option in spec.settings.options()
        }
        versions = {
            "torch": _version("torch"),
            "training": source.digest(source.of_module(TRAINER)),
        }
        names = [spec.selections[kind].name for kind in STEM_KINDS if kind in spec.selections]
        described = {
            kind: components[kind]
            | {
                "label": chosen.label,
                "options": {name: _strict(value) for name, value in chosen.options.items()},
            }
            | _contents(components[kind]["options"])
            for kind, chosen in spec.selections.items()
        }
        settings = {name: _strict(value) for name, value in values.items()}
        return _Cell(
            spec=spec,
            content={"components": described, "settings": settings, **versions},
            stem=re.sub(r"[^A-Za-z0-9_.-]", "_", "-".join(names))[:STEM_LENGTH],
            # together one object with sorted keys; "seed" is between these
            head=_dump({"components": components}).removesuffix("}"),
            tail=_dump({"settings": spelled, **versions}).removeprefix("{"),
        )

    def _component(self, chosen: Selection) -> dict[str, Any]:
        if chosen not in self._components:
            self._components[chosen] = _component(chosen)
        return self._components[chosen]


def _dump(content: dict[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _component(chosen: Selection) -> dict[str, Any]:
    component = chosen.component
    spelling = {option.name: option for option in options(component)}
    return {
        "name": component.name,
        "options": {
            name: _spell(spelling.get(name), value) for name, value in chosen.options.items()
        },
        "needs": sorted(component.needs),
        "owner": {
            "plugin": component.owner.plugin,
            "distribution": component.owner.distribution,
            "version": component.owner.version,
        },
        "source": source.digest(source.of_component(component)),
    }


def _contents(options: dict[str, str]) -> dict[str, Any]:
    """Tell the files that options name apart by what is in them; nothing if none does."""
    found = {name: text for name, text in options.items() if text.startswith(CONTENT)}
    return {"contents": found} if found else {}


def _spell(option: Option | None, value: Any) -> str:
    """Spell a value; one that names a file or a folder is known by what is in there."""
    if isinstance(value, str) and not (option and option.choices):
        path = Path(value).expanduser()
        named = option is not None and re.search(r"(^|_)(path|file|folder)$", option.name)
        if (named or "/" in value) and path.exists():
            return f"{CONTENT}{source.content_digest(path)}"
    return option.spell(value) if option else json.dumps(value)


@cache
def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _strict(value: Any) -> Any:
    """Write an infinite number as text: strict JSON has no word for it."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
