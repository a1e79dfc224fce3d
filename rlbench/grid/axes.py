"""The values of one axis, as they are written on the command line, in Python or in a file."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rlbench.errors import PluginError, UsageError
from rlbench.plugin.selection import Selection, parse, select
from rlbench.plugin.signature import options
from rlbench.training.settings import Settings
from rlbench.training.spec import DEFAULT_SELECTIONS

if TYPE_CHECKING:
    from rlbench.plugin.registry import Component, Registry
    from rlbench.types import Kind

MOST_RUNS = 100_000
_SEEDS = "write seeds as 0-4 or 0,3,7"

Note = Callable[[str], None]
Place = Callable[["Kind", str], str]
"""Writes a kind and a selection as they would stand where the user writes."""
_Value = TypeVar("_Value")


def on_the_command_line(kind: Kind, text: str) -> str:
    """Write a selection with its flag: ``-l clip:eps=0.1``."""
    return f"-{kind[0]} {text}"


def read_selection(registry: Registry, kind: Kind, written: object) -> Selection:
    """Read one value of a component axis.

    Args:
        registry: Where names are looked up.
        kind: Kind of the component.
        written: Text in the selection grammar, or a mapping with ``name`` and options, such as
            ``{"name": "clip", "eps": 0.1}``.

    Raises:
        UsageError: It is neither, or names a component, option or value that does not exist.
        PluginError: The component's signature can't be read.
    """
    if not isinstance(written, Mapping):
        return parse(registry, kind, written)  # type: ignore[arg-type]  # it says what it is given
    name = written.get("name")
    if not isinstance(name, str):
        raise UsageError(f"{kind}: a table needs the component's name, such as {{name = 'NAME'}}")
    given = {option: value for option, value in written.items() if option != "name"}
    return select(registry.find(kind, name), given)


def parse_seeds(text: str) -> list[int]:
    """Read seeds: ``"0-4"``, ``"0,3,7"``, ``"0-2,7"``. Repeats stay.

    Raises:
        UsageError: The text is empty or has another form, or names more than 100,000 seeds.
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?", part)
        if not match:
            found = f"{part.strip()!r} in {text!r}" if part.strip() != text else repr(text)
            raise UsageError(f"seeds: {found} is neither a seed nor a range; {_SEEDS}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise UsageError(f"seeds: the range {part.strip()!r} runs backwards; {_SEEDS}")
        if len(seeds) + last - first >= MOST_RUNS:
            raise UsageError(
                f"seeds: {text!r} makes more than {MOST_RUNS:,} runs, the most at once"
            )
        seeds.extend(range(first, last + 1))
    return seeds


def distinct_seeds(seeds: str | Iterable[int], note: Note) -> list[int]:
    """Read seeds, as text or as numbers, and drop repeats.

    Raises:
        UsageError: There is none, or one is no whole number from 0.
    """
    if isinstance(seeds, str):
        numbers = parse_seeds(seeds)
    else:
        if not isinstance(seeds, Iterable):
            raise UsageError(f"seeds={seeds!r}: give the seeds themselves, such as range(5)")
        numbers = [_seed(seed) for seed in seeds]
    if not numbers:
        raise UsageError("no seed was given: a cell needs at least one")
    names = [str(number) for number in numbers]
    return distinct("seed", names, numbers, names, note)


def _seed(value: object) -> int:
    """Check one seed given in Python."""
    try:
        seed = operator.index(value)  # type: ignore[arg-type]  # anything may come; TypeError says no
    except TypeError:
        seed = -1
    if isinstance(value, bool) or not 0 <= seed < 10**18:
        raise UsageError(f"seed {value!r}: a seed is a whole number from 0")
    return seed


def spell_settings(values: Mapping[str, Any]) -> list[str]:
    """Turn settings given in Python, one value or a list of values each, into their text form.

    Raises:
        UsageError: A value has the wrong type or is out of range.
    """
    known = {option.name: option for option in Settings.options()}
    texts = []
    for name, value in values.items():
        option = known.get(name)
        if option is None:
            texts.append(f"{name}={value}")  # `parse_settings` tells what it is, or that it is none
            continue
        axis = value if isinstance(value, (list, tuple, range)) else [value]
        texts.append(f"{name}={','.join(option.spell(option.check(one)) for one in axis)}")
    return texts


def parse_settings(
    texts: Sequence[str],
    registry: Registry | None = None,
    chosen: Mapping[Kind, Sequence[Selection]] | None = None,
    note: Note | None = None,
) -> dict[str, list[Any]]:
    """Read ``name=value,value`` texts into one axis for each setting.

    Args:
        texts: As given with ``--set``.
        registry: Components; an option of theirs that is taken for a setting is recognised.
        chosen: Those that were selected, to be named first.
        note: Hears of each repeat that was dropped.

    Raises:
        UsageError: A setting does not exist, or a value is not valid.
    """
    written: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(f"setting {text!r}: write name=value, or name=value,value for an axis")
        if registry:
            refuse_component_option(name, values, registry, chosen or {})
        Settings.option(name)
        parts = [value.strip() for value in values.split(",")]
        if not all(parts):
            raise UsageError(f"setting {text!r}: a value is missing; write {name}=value")
        written.setdefault(name, []).extend(parts)
    return {name: setting_values(name, parts, note or ignore) for name, parts in written.items()}


def setting_values(name: str, written: Sequence[object], note: Note) -> list[Any]:
    """Read all values of one setting, and drop repeats.

    Args:
        name: The setting.
        written: Text, or values of TOML or Python.
        note: Hears of each repeat that was dropped.

    Raises:
        UsageError: There is no such setting, or one of the values is none of it.
    """
    option = Settings.option(name)
    values = [option.check(value) for value in written]
    return distinct(name, list(map(str, written)), values, list(map(option.spell, values)), note)


def refuse_component_option(
    name: str,
    value: object,
    registry: Registry,
    chosen: Mapping[Kind, Sequence[Selection]],
    place: Place = on_the_command_line,
) -> None:
    """Raise UsageError if what is no setting is an option of a component, or nearly one.

    Names that others use for options count. Those that were selected come first; what nobody
    selected may be what was meant.
    """
    kind, dot, option = name.rpartition(".")
    if name in {option.name for option in Settings.options()}:
        return
    selected = [one.component for chosen_here in chosen.values() for one in chosen_here]
    known: set[str] = set()
    values = str(value).split(",")
    ours: list[tuple[Component, list[str]]] = []
    theirs: list[tuple[Component, list[str]]] = []
    for component in dict.fromkeys([*selected, *registry.components()]):
        if component.kind not in DEFAULT_SELECTIONS:
            continue
        if kind in DEFAULT_SELECTIONS and component.kind != kind:
            continue
        names = _option_names(component)
        known.update(names)
        advice = {component.option_advice(option, one): None for one in values}
        texts = [text for text in advice if text and re.split(r"\W", text)[0] in names]
        if option in names:
            ours.append((component, [f"{option}={one}" for one in values]))
        elif texts:
            theirs.append((component, texts))
    meant = [one for one in (*ours, *theirs) if one[0] in selected]
    plain = [one for one in theirs if " " not in one[1][0]]  # others have a reservation
    meant = meant[:3] or [*plain[:2], *ours[:3]] or theirs[:2]
    places = [
        " ".join(place(one.kind, f"{one.name}:{text}") for text in texts) for one, texts in meant
    ]
    if name in DEFAULT_SELECTIONS:
        axis: Kind = name  # type: ignore[assignment]  # the names of kinds are kinds
        if not places or registry.owners(axis, str(value).partition(":")[0]):
            written = place(axis, str(value))
            raise UsageError(f"{name!r} is no trainer setting but a kind: write {written}")
    if places:
        raise UsageError(
            f"{name!r} is no trainer setting but an option of a component: write "
            f"{' or '.join(places)}"
        )
    if dot and kind in DEFAULT_SELECTIONS:
        raise UsageError.unknown(f"option of any {kind}", option, known, hint=f"-{kind[0]} name:…")


def _option_names(component: Component) -> list[str]:
    """List the names of options; of a component that is broken, none."""
    try:
        return [option.name for option in options(component)]
    except PluginError:
        return []


def distinct(
    what: str, written: Sequence[str], values: Sequence[_Value], keys: Sequence[str], note: Note
) -> list[_Value]:
    """Drop repeats, the first of equal keys stays, and note each of them."""
    kept: dict[str, tuple[str, _Value]] = {}
    for text, value, key in zip(written, values, keys, strict=True):
        if key in kept:
            same = "" if kept[key][0] == text else f" (the same as {kept[key][0]})"
            note(f"dropped a repeated {what}: {text}{same}")
        else:
            kept[key] = (text, value)
    return [value for _, value in kept.values()]


def ignore(text: str) -> None:
    """Take a note and do nothing."""
