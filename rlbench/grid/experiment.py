"""From what was asked to a list of runs: axes of components and settings, times seeds."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

from rlbench.errors import PluginError, UsageError
from rlbench.plugin.selection import Selection, parse
from rlbench.plugin.signature import options
from rlbench.training.settings import Settings
from rlbench.training.spec import DEFAULT_SELECTIONS, RunSpec, check

if TYPE_CHECKING:
    from rlbench.plugin.registry import Component, Registry
    from rlbench.types import Kind

MOST_RUNS = 100_000
_SEEDS = "write seeds as 0-4 or 0,3,7"

Note = Callable[[str], None]
_Value = TypeVar("_Value")


def build(
    registry: Registry,
    *,
    selections: Mapping[Kind, Sequence[str]],
    settings: Sequence[str] = (),
    seeds: str | Iterable[int],
    note: Note | None = None,
) -> list[RunSpec]:
    """Build every run of a grid: the product of all axes and the seeds.

    Args:
        registry: The components that names refer to.
        selections: For each kind the texts that were given, each a value of that axis. A kind that
            is missing or empty takes its default.
        settings: Trainer settings, ``"lr=1e-3"`` or ``"lr=1e-3,3e-4"`` for an axis.
        seeds: Seeds in the form of `parse_seeds`, or the numbers themselves.
        note: Hears of each repeat that was dropped.

    Returns:
        The runs, all cells at the first seed, then all at the next: a sweep that is stopped early
        leaves cells with the same seeds.

    Raises:
        UsageError: A name, an option, a value or a combination is not valid, or there would be more
            than 100,000 runs.
    """
    note = note or _ignore
    axes: dict[Kind, list[Selection]] = {}
    for kind, default in DEFAULT_SELECTIONS.items():
        texts = selections.get(kind) or [default]
        chosen = [parse(registry, kind, text) for text in texts]
        axes[kind] = _distinct(kind, texts, chosen, [c.text() for c in chosen], note)
    values = parse_settings(settings, registry, axes, note)
    numbers = _distinct_seeds(seeds, note)
    total = prod(map(len, axes.values())) * prod(map(len, values.values())) * len(numbers)
    if total > MOST_RUNS:
        raise UsageError(f"that makes {total:,} runs; the most at once is {MOST_RUNS:,}")
    cells = []
    for combination in product(*values.values()):
        trainer = Settings.from_values(dict(zip(values, combination, strict=True)))
        cells += [
            RunSpec(
                selections=dict(zip(axes, chosen, strict=True)), settings=trainer, seed=numbers[0]
            )
            for chosen in product(*axes.values())
        ]
    for cell in cells:
        check(cell)
    return [
        RunSpec(selections=cell.selections, settings=cell.settings, seed=seed)
        for seed in numbers
        for cell in cells
    ]


def cells_of(specs: Sequence[RunSpec]) -> int:
    """Count the cells of some runs: what differs in more than the seed."""
    # the runs of a grid share these objects, so few of them have to be compared
    different = {(id(spec.selections), id(spec.settings)): spec for spec in specs}.values()
    texts = (spec.to_payload() | {"seed": 0} for spec in different)
    return len({json.dumps(text, sort_keys=True) for text in texts})


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


def spell_settings(values: Mapping[str, Any]) -> list[str]:
    """Turn settings given in Python, one value or a list of values each, into their text form.

    Raises:
        UsageError: A setting does not exist, or a value has the wrong type or is out of range.
    """
    texts = []
    for name, value in values.items():
        option = Settings.option(name)
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
    note, chosen = note or _ignore, chosen or {}
    written: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not equals:
            raise UsageError(f"setting {text!r}: write name=value, or name=value,value for an axis")
        if registry and name not in {option.name for option in Settings.options()}:
            _refuse_component_option(name, values, registry, chosen)
        Settings.option(name)
        parts = [value.strip() for value in values.split(",")]
        if not all(parts):
            raise UsageError(f"setting {text!r}: a value is missing; write {name}=value")
        written.setdefault(name, []).extend(parts)
    axes = {}
    for name, parts in written.items():
        option = Settings.option(name)
        values_read = [option.parse(part) for part in parts]
        spelled = [option.spell(value) for value in values_read]
        axes[name] = _distinct(name, parts, values_read, spelled, note)
    return axes


def _refuse_component_option(
    name: str, value: str, registry: Registry, chosen: Mapping[Kind, Sequence[Selection]]
) -> None:
    """Raise UsageError if an unknown setting is an option of a component.

    Those that were selected come first; what nobody selected may be what was meant.
    """
    kind, dot, option = name.rpartition(".")
    if dot and kind not in DEFAULT_SELECTIONS:
        return
    selected = [one.component for chosen_here in chosen.values() for one in chosen_here]
    known: dict[str, list[Component]] = {}
    for component in dict.fromkeys([*selected, *registry.components()]):
        if component.kind in DEFAULT_SELECTIONS and (not dot or component.kind == kind):
            for found in _option_names(component):
                known.setdefault(found, []).append(component)
    with_it = known.get(option, [])
    places = [
        f"-{component.kind[0]} {component.name}:{option}={value}"
        for component in [one for one in with_it if one in selected] or with_it
    ]
    if places:
        raise UsageError(
            f"{name!r} is no trainer setting but an option of a component: write "
            f"{' or '.join(places[:3])}"
        )
    if dot:
        raise UsageError.unknown(f"option of any {kind}", option, known, hint=f"-{kind[0]} name:…")


def _option_names(component: Component) -> list[str]:
    """List the names of options; of a component that is broken, none."""
    try:
        return [option.name for option in options(component)]
    except PluginError:
        return []


def _distinct_seeds(seeds: str | Iterable[int], note: Note) -> list[int]:
    """Read seeds in either form, without repeats."""
    if isinstance(seeds, str):
        numbers = parse_seeds(seeds)
    else:
        if not isinstance(seeds, Iterable):
            raise UsageError(f"seeds={seeds!r}: give the seeds themselves, such as range(5)")
        numbers = [_seed(seed) for seed in seeds]
    if not numbers:
        raise UsageError("no seed was given: a cell needs at least one")
    names = [str(number) for number in numbers]
    return _distinct("seed", names, numbers, names, note)


def _seed(value: object) -> int:
    """Check one seed given in Python."""
    try:
        seed = operator.index(value)  # type: ignore[arg-type]  # anything may come; TypeError says no
    except TypeError:
        seed = -1
    if isinstance(value, bool) or not 0 <= seed < 10**18:
        raise UsageError(f"seed {value!r}: a seed is a whole number from 0")
    return seed


def _distinct(
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


def _ignore(text: str) -> None:
    """Take a note and do nothing."""
