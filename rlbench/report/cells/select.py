"""Choose records by component and seed, also those of plugins that are no longer installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rlbench.errors import NothingSelected, UsageError
from rlbench.grid.reading import describes_a_run
from rlbench.plugin.selection import variants
from rlbench.report.text.spelling import spell_seeds, spelled

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from rlbench.grid.store import Record
    from rlbench.plugin.registry import Registry
    from rlbench.types import Kind

ALGORITHM = "algorithm"  # what imported results have in the place of components


def select(
    records: Iterable[Record],
    registry: Registry | None,
    wanted: Mapping[str, Sequence[str]],
    *,
    seeds: Sequence[int] | None = None,
    settings: Mapping[str, Sequence[Any]] | None = None,
    note: Callable[[str], None] | None = None,
) -> list[Record]:
    """Keep the records that have one of the wanted components of each kind.

    Args:
        records: As read from a store. Those without a specification are kept only if nothing is
            wanted in particular.
        registry: Resolves aliases; None does not.
        wanted: Selections by kind, or by ``algorithm``. A bare name stands for all variants of a
            component; options narrow it to those that have these values.
        seeds: Only these; None means all.
        settings: For each name the values of which a record must have one.
        note: Hears of what was wanted beside others and is not there.

    Returns:
        The records, in their order.

    Raises:
        NothingSelected: No record fits; names what there is.
    """
    records = list(records)
    if not wanted and seeds is None and not settings:
        return records
    readable = [record for record in records if describes_a_run(record.spec)]
    kept = readable
    for kind, texts in wanted.items():
        matches = [_wish(registry, kind, text) for text in texts]
        fitting = [r for r in kept if any(_fits(r, kind, match) for match in matches)]
        absent = [
            match.text
            for match in matches
            if not any(_fits(record, kind, match) for record in fitting)
        ]
        there = {label for r in kept if (label := _component(r, kind).get("label"))}
        _tell_absent(f"{kind} {' or '.join(absent)}", absent, fitting, there, note)
        kept = fitting
    for name, values in (settings or {}).items():
        spellings = {spelled(value) for value in values}
        found = [r for r in kept if spelled((r.spec or {})["settings"].get(name)) in spellings]
        there = {spelled((r.spec or {})["settings"].get(name)) for r in kept}
        absent = [text for text in map(spelled, values) if text not in there]
        _tell_absent(f"{name}={' or '.join(absent)}", absent, found, there, note)
        kept = found
    if seeds is not None:
        wanted_seeds, there_seeds = set(seeds), {r.spec["seed"] for r in kept if r.spec}
        kept = [record for record in kept if record.spec and record.spec["seed"] in wanted_seeds]
        missing = wanted_seeds - there_seeds
        named = f"seed{'s' if len(missing) > 1 else ''} {spell_seeds(missing)}"
        _tell_absent(named, missing, kept, [spell_seeds(there_seeds)], note)
    return kept


def _tell_absent(
    named: str,
    absent: Collection[object],
    found: Sequence[Record],
    there: Collection[str],
    note: Callable[[str], None] | None,
) -> None:
    """Say what of a wish is not there, or raise if nothing of it is."""
    names = ", ".join(sorted(there)) or f"none that name a {named.split(maxsplit=1)[0]} at all"
    message = f"no result with {named}; there are: {names}"
    if not found:
        raise NothingSelected(message)
    if absent and note:
        note(message)


def _component(record: Record, kind: str) -> dict[str, Any]:
    spec = record.spec or {}
    return dict(spec.get("components", {}).get(kind, {}))


class _Wish(NamedTuple):
    """One selection as it was written, its canonical name, and the options that were written."""

    text: str
    name: str
    options: Mapping[str, Any]


def _wish(registry: Registry | None, kind: str, text: str) -> _Wish:
    """Read one selection. Nobody owns an algorithm: it is a name that came with its results."""
    name, _, written = text.partition(":")
    if registry is not None and kind != ALGORITHM:
        try:
            wanted = variants(registry, cast("Kind", kind), text)
        except UsageError:
            if registry.owners(cast("Kind", kind), name):
                raise  # the component is there, so the options are wrong
        else:
            return _Wish(text, wanted.name, dict(wanted.options))
    pairs = dict(part.partition("=")[::2] for part in written.split(",") if part)
    return _Wish(text, name, pairs)


def _fits(record: Record, kind: str, wish: _Wish) -> bool:
    component = _component(record, kind)
    if component.get("label") == wish.text:  # also a name with a colon that was made elsewhere
        return True
    values = component.get("options", {})
    return component.get("name") == wish.name and all(
        option in values and spelled(values[option]) == spelled(value)
        for option, value in wish.options.items()
    )
