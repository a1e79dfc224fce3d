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
class _Part:
    """What runs have in common: those with the same components, or those with the same settings."""

    spec: RunSpec  # of any of them; held, so that the ids of its parts are nobody else's
    content: dict[str, Any]  # of spec.json
    text: str  # what is hashed of it
    stem: str = ""


class Catalogue:
    """Names and describes many runs; what they share is looked at once, at its first run.

    For the moment: one that outlives a change of a source file gives names of what was there.
    """

    def __init__(self) -> None:
        # by id: the runs of a grid share these objects
        self._heads: dict[int, _Part] = {}
        self._tails: dict[int, _Part] = {}
        self._components: dict[Selection, dict[str, Any]] = {}
        self._versions: dict[str, Any] = {}

    def run_id(self, spec: RunSpec) -> str:
        """Name a run; see the function of this name."""
        head, tail = self._parts(spec)
        # together one object with sorted keys
        content = f'{head.text},"seed":{json.dumps(spec.seed)},{tail.text}'
        digits = hashlib.sha256(content.encode()).hexdigest()[:10]
        return f"{head.stem}-s{spec.seed}-{digits}"

    def canonical(self, spec: RunSpec) -> dict[str, Any]:
        """Describe a run in full; see the function of this name."""
        name = self.run_id(spec)
        head, tail = self._parts(spec)
        return {
            "schema": SCHEMA,
            "run_id": name,
            "seed": spec.seed,
            **head.content,
            **tail.content,
        }

    def _parts(self, spec: RunSpec) -> tuple[_Part, _Part]:
        head, tail = id(spec.selections), id(spec.settings)
        if head not in self._heads:
            self._heads[head] = self._describe_components(spec)
        if tail not in self._tails:
            self._tails[tail] = self._describe_settings(spec)
        return self._heads[head], self._tails[tail]

    def _describe_components(self, spec: RunSpec) -> _Part:
        components = {kind: self._component(chosen) for kind, chosen in spec.selections.items()}
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
        return _Part(
            spec=spec,
            content={"components": described},
            text=_dump({"components": components}).removesuffix("}"),
            stem=re.sub(r"[^A-Za-z0-9_.-]", "_", "-".join(names))[:STEM_LENGTH],
        )

    def _describe_settings(self, spec: RunSpec) -> _Part:
        if not self._versions:
            self._versions = {
                "torch": _version("torch"),
                "training": source.digest(source.of_module(TRAINER)),
            }
        values = spec.settings.values()
        spelled = {
            option.name: option.spell(values[option.name]) for option in spec.settings.options()
        }
        settings = {name: _strict(value) for name, value in values.items()}
        return _Part(
            spec=spec,
            content={"settings": settings, **self._versions},
            text=_dump({"settings": spelled, **self._versions}).removeprefix("{"),
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
