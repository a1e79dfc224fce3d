"""Every component by name, and whose it is.

A component is a handful of strings. Nothing of its code is imported until `Component.load`, so the
registry can be listed, searched and completed without torch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from rlbench.errors import UsageError
from rlbench.plugin.guard import guarded
from rlbench.types import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

KINDS: tuple[Kind, ...] = get_args(Kind)

BUILTIN = "rlbench"
"""The distribution that the built-in components belong to."""
DISABLE = "RLBENCH_DISABLE_PLUGINS"
"""The environment variable that leaves installed plugins out."""

FUNCTION_KINDS: tuple[Kind, ...] = ("estimator", "loss")
"""Kinds whose components are functions of one argument; all others are classes."""


@dataclass(frozen=True)
class Owner:
    """Who registered a component; ``str(owner)`` is how messages speak of it.

    Attributes:
        plugin: Name of the entry point, stem of the file or name of the module.
        distribution: Name of the installed distribution; None for a loose file or module.
        version: Its version; None where the metadata has none.
        path: Absolute path of a loose file.
    """

    plugin: str
    distribution: str | None = None
    version: str | None = None
    path: str | None = None

    def __str__(self) -> str:
        if self.path is not None:
            path, here = Path(self.path), Path.cwd()
            return f"file {path.relative_to(here) if path.is_relative_to(here) else path}"
        if self.distribution is None:
            return f"module {self.plugin}"
        text = " ".join(part for part in (self.distribution, self.version) if part)
        return text if self.plugin == self.distribution else f"{text} (plugin {self.plugin})"


@dataclass(frozen=True)
class Component:
    """One registered component, as its plugin described it; see `rlbench.hookspecs`."""

    kind: Kind
    name: str
    target: str
    summary: str
    needs: tuple[str, ...]
    aliases: tuple[str, ...]
    group_relative: bool
    # a mapping has no hash; two components that differ in it alone don't exist
    exceptions: Mapping[str, str] = field(hash=False)
    owner: Owner
    only_if: Mapping[str, str] = field(default_factory=dict, hash=False)
    elsewhere: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The name and its aliases."""
        return (self.name, *self.aliases)

    @property
    def title(self) -> str:
        """How messages speak of it: ``loss 'clip' (rlbench 0.1.0)``."""
        return f"{self.kind} {self.name!r} ({self.owner})"

    def advice(self, name: str) -> str | None:
        """What to write here for a name that others use; None if this component has no advice."""
        return self._advice.get(_fold(name))

    def option_advice(self, name: str, value: object) -> str | None:
        """What to write for an option that others have, such as ``eps=0.1``; None without advice.

        Args:
            name: The option as others call it.
            value: Its value there; kept where the option here takes the same values.
        """
        advice = self._advice.get(f":{_fold(name)}")
        text = str(value)
        same = text.lower() if text in ("True", "False") else text
        return f"{advice}={same}" if advice and advice.isidentifier() else advice

    def names_elsewhere(self, option: str) -> list[str]:
        """List what others call an option of this component."""
        return [
            name[1:]
            for name, text in self.elsewhere.items()
            if name.startswith(":") and re.split(r"\W", text)[0] == option
        ]

    @property
    def _advice(self) -> dict[str, str]:
        return {_fold(name): text for name, text in self.elsewhere.items()}

    def load(self) -> Any:
        """Import the function or class.

        Raises:
            PluginError: It can't be imported; the message names the component and its owner.
        """
        module, _, attribute = self.target.partition(":")
        with guarded(f"{self.title}: {self.target} can't be imported"):
            return reduce(getattr, attribute.split("."), import_module(module))


@dataclass(frozen=True)
class Problem:
    """Something that is wrong with a plugin, while the rest works; ``str(problem)`` is the line."""

    owner: Owner
    message: str

    def __str__(self) -> str:
        return f"{self.owner}: {self.message}"


class Registry:
    """What the plugins registered. A name with two owners is kept, and can't be used.

    Args:
        components: All components, in any order.
        problems: What went wrong while they were collected; clashes of names are added to it.
    """

    def __init__(self, components: Iterable[Component], problems: Iterable[Problem] = ()) -> None:
        self._components = tuple(components)
        self._broken = tuple(problems)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Plugins that were not loaded, then names that have more than one owner."""
        clashes = []
        for kind, name in dict.fromkeys((c.kind, n) for c in self._components for n in c.names):
            claimants = self.owners(kind, name)
            if len(claimants) > 1:
                message = _ambiguous(kind, name, claimants)
                clashes.append(Problem(claimants[-1].owner, message))
        return (*self._broken, *clashes)

    def components(self, kind: Kind | None = None) -> list[Component]:
        """List components, of one kind or all in the order of `KINDS`, sorted by name."""
        chosen = [c for c in self._components if kind in (None, c.kind)]
        return sorted(chosen, key=lambda c: (KINDS.index(c.kind), c.name, str(c.owner)))

    def owners(self, kind: Kind, name: str) -> list[Component]:
        """List all components that claim a name, in the order of their registration."""
        return [c for c in self._components if c.kind == kind and name in c.names]

    def find(self, kind: Kind, name: str) -> Component:
        """Look a component up by its name or alias.

        Raises:
            UsageError: Nobody owns the name, or several do: all of them are named. Of a name that
                others use for something near, the message says what to write.
        """
        if kind not in KINDS:
            raise UsageError.unknown("kind", kind, KINDS)
        claimants = self.owners(kind, name)
        if not claimants:
            raise self._unknown(kind, name)
        if len(claimants) > 1:
            raise UsageError(_ambiguous(kind, name, claimants))
        # an alias leads to a name that must be usable too: labels and workers write the name
        rivals = self.owners(kind, claimants[0].name)
        if len(rivals) > 1:
            raise UsageError(_ambiguous(kind, claimants[0].name, rivals))
        return claimants[0]

    def _unknown(self, kind: Kind, name: str) -> UsageError:
        of_kind = [c for c in self._components if c.kind == kind]
        broken = "; ".join(map(str, self._broken))
        advice = dict.fromkeys(text for c in of_kind if (text := c.advice(name)))
        others = dict.fromkeys(c.kind for c in self._components if name in c.names)
        if not advice and not others:
            known = [n for c in of_kind for n in c.names]
            return UsageError.unknown(kind, name, known, hint=broken)
        message = f"unknown {kind} {name!r}; "
        message += "write " if advice else f"{name!r} is of the kind "
        message += " or ".join(advice or others)
        return UsageError(f"{message} ({broken})" if broken else message)


def _fold(name: str) -> str:
    """Spell a name in the one way in which names of other libraries are compared."""
    return name.lower().replace("-", "_")


def _ambiguous(kind: Kind, name: str, claimants: Iterable[Component]) -> str:
    owners = list(dict.fromkeys(c.owner for c in claimants))
    named = " and ".join(map(str, owners))
    # rlbench's own can't be left out, and a file is not given or not installed
    optional = [o.plugin for o in owners if o.distribution not in (None, BUILTIN)]
    hint = " or ".join(f"{DISABLE}={plugin}" for plugin in optional)
    leave_out = f", or leave it out: {hint}" if hint else ""
    return f"{kind} {name!r} belongs to {named}, so it can't be used; rename one{leave_out}"
