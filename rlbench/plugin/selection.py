"""A component with its options: ``gae`` or ``gae:lam=0.9,whiten=true``.

The grammar needs no quotes in a shell. Spaces around names and values are dropped. Values hold no
comma and no equals sign, so that a text means one thing only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from rlbench.errors import PluginError, UsageError
from rlbench.plugin import kl
from rlbench.plugin.guard import describe
from rlbench.plugin.registry import FUNCTION_KINDS, Component, Registry
from rlbench.plugin.signature import Option, options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlbench.types import Kind


@dataclass(frozen=True)
class Selection:
    """A component and the values of all its options, defaults filled in.

    Attributes:
        component: What was selected.
        options: Every option in the order of the signature, in canonical form.
        label: What differs from the defaults, in the selection grammar.
    """

    component: Component
    options: Mapping[str, Any] = field(hash=False)  # the label says as much, and has a hash
    label: str

    @property
    def kind(self) -> Kind:
        """Kind of the component."""
        return self.component.kind

    @property
    def name(self) -> str:
        """Name of the component; never an alias."""
        return self.component.name

    def text(self) -> str:
        """Write the selection so that `parse` reads the same one."""
        return self.label

    def create(self) -> Any:
        """Make what the trainer calls.

        Returns:
            An instance of a class; a function with its options filled in.

        Raises:
            UsageError: The class refuses its options.
            PluginError: It can't be imported, or fails otherwise.
        """
        component = self.component
        hosts = {option.name for option in kl.host_options(component)}
        own = {name: value for name, value in self.options.items() if name not in hosts}
        target = component.load()
        if component.kind in FUNCTION_KINDS:
            return partial(target, **own)
        try:
            return target(**own)
        except (ValueError, UsageError) as error:
            raise UsageError(f"{component.title}: {error}") from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise PluginError(f"{component.title}: {describe(error)}") from error


def parse(registry: Registry, kind: Kind, text: str) -> Selection:
    """Read a selection.

    Args:
        registry: Where names are looked up.
        kind: Kind of the component.
        text: ``name`` or ``name:option=value,option=value``.

    Raises:
        UsageError: The text is malformed, nobody has such a component or it has no such option or
            value. The message shows the nearest valid name, or how to write it.
        PluginError: The component's signature can't be read.
    """
    name, written = _split(kind, text)
    component = registry.find(kind, name)
    known = {option.name: option for option in options(component)}
    return _select(
        component,
        known,
        {key: _known(component, known, key, value).parse(value) for key, value in written.items()},
    )


def select(component: Component, values: Mapping[str, object]) -> Selection:
    """Select a component with values from Python or TOML.

    Args:
        component: What to select.
        values: Some of its options; the rest take their defaults.

    Raises:
        UsageError: It has no such option or value.
        PluginError: The component's signature can't be read.
    """
    known = {option.name: option for option in options(component)}
    return _select(
        component,
        known,
        {key: _known(component, known, key, value).check(value) for key, value in values.items()},
    )


@dataclass(frozen=True)
class Variants:
    """Selections of one component: all, or those whose options have some values.

    Attributes:
        name: Name of the component; never an alias.
        options: The values that were written, in canonical form.
    """

    name: str
    options: Mapping[str, Any]

    def __contains__(self, chosen: Selection) -> bool:
        return chosen.name == self.name and all(
            chosen.options.get(option) == value for option, value in self.options.items()
        )


def variants(registry: Registry, kind: Kind, text: str) -> Variants:
    """Read a selection that stands for more than itself: ``gae`` for every ``gae:…``.

    Raises:
        UsageError: As for `parse`.
        PluginError: The component's signature can't be read.
    """
    chosen = parse(registry, kind, text)
    return Variants(chosen.name, {name: chosen.options[name] for name in _split(kind, text)[1]})


def _known(component: Component, known: Mapping[str, Option], name: str, value: object) -> Option:
    if name in known:
        return known[name]
    advice = component.option_advice(name, value)
    if advice:
        raise UsageError(f"unknown option {name!r} of {component.title}; write {advice}")
    message = str(UsageError.unknown("option", name, known))
    # the owner belongs right behind the name, not behind the advice
    raise UsageError(message.replace(repr(name), f"{name!r} of {component.title}", 1))


def _select(
    component: Component, known: Mapping[str, Option], given: Mapping[str, Any]
) -> Selection:
    values = {name: given.get(name, option.default) for name, option in known.items()}
    _refuse_without_effect(component, known, values)
    plain = {name: option.default for name, option in known.items()}
    if kl.host_options(component):
        plain = kl.resolve(component, {**plain, "place": values["place"]})
        plain["place"] = known["place"].default
        values = kl.resolve(component, values)
    different = [
        f"{name}={option.spell(values[name])}"
        for name, option in known.items()
        if values[name] != plain[name]
    ]
    label = f"{component.name}:{','.join(different)}" if different else component.name
    return Selection(component, values, label)


def _refuse_without_effect(
    component: Component, known: Mapping[str, Option], values: Mapping[str, Any]
) -> None:
    """Raise UsageError for an option that was changed and does nothing beside the others."""
    for name, condition in component.only_if.items():
        other, _, text = condition.partition("=")
        for needed in (name, other):
            if needed not in known:
                raise PluginError(f"{component.title}: only_if names {needed!r}, no option of it")
        try:
            effective = values[other] == known[other].parse(text)
        except UsageError as error:
            raise PluginError(f"{component.title}: only_if: {error}") from error
        if not effective and values[name] != known[name].default:
            written = f"{name}={known[name].spell(values[name])}"
            raise UsageError(
                f"{component.title}: {written} has no effect unless {condition}; leave out {name}, "
                f"or write {component.name}:{condition},{written}"
            )


def _split(kind: Kind, text: str) -> tuple[str, dict[str, str]]:
    """Take a selection apart; whether the names exist is somebody else's question."""
    if not isinstance(text, str):
        raise UsageError(f"{kind} {text!r}: expected text such as 'name:option=value'")
    name, colon, rest = text.partition(":")
    name = name.strip()
    if not name or "," in name:
        raise UsageError(
            f"{kind} {text!r}: expected one component, name or name:option=value,option=value"
        )
    written: dict[str, str] = {}
    for part in rest.split(",") if colon else ():
        key, _equals, value = (piece.strip() for piece in part.partition("="))
        if not key or not value or "=" in value:
            raise UsageError(
                f"{kind} {text!r}: {part.strip()!r} is no option=value; write "
                f"{name}:option=value,option=value, with no comma or equals sign in a value"
            )
        if key in written:
            raise UsageError(f"{kind} {text!r}: option {key!r} is there twice")
        written[key] = value
    return name, written
