"""Choose records by component and seed, also those of plugins that are no longer installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlbench.errors import NothingSelected, UsageError
from rlbench.plugin.selection import parse
from rlbench.report.notes import spell_seeds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlbench.grid.store import Record
    from rlbench.plugin.registry import Registry
    from rlbench.types import Kind


def select(
    records: Iterable[Record],
    registry: Registry | None,
    wanted: Mapping[Kind, Sequence[str]],
    *,
    seeds: Sequence[int] | None = None,
    settings: Mapping[str, Sequence[Any]] | None = None,
) -> list[Record]:
    """Keep the records that have one of the wanted components of each kind.

    Args:
        records: As read from a store. Those without a specification are kept only if nothing is
            wanted in particular.
        registry: Resolves aliases; None does not.
        wanted: Selections by kind. A bare name stands for all variants of a component; options
            narrow it to those that have these values.
        seeds: Only these; None means all.
        settings: For each name the values of which a record must have one.

    Returns:
        The records, in their order.

    Raises:
        NothingSelected: No record fits; names what there is.
    """
    records = list(records)
    if not wanted and seeds is None and not settings:
        return records
    readable = [record for record in records if record.spec]
    kept = readable
    for kind, texts in wanted.items():
        matches = [_wish(registry, kind, text) for text in texts]
        fitting = [r for r in kept if any(_fits(r, kind, *match) for match in matches)]
        if not fitting:
            there = sorted({_component(record, kind).get("label", "?") for record in kept})
            raise NothingSelected(
                f"no result with {kind} {' or '.join(texts)}; there are: {', '.join(there)}"
            )
        kept = fitting
    for name, values in (settings or {}).items():
        found = [r for r in kept if (r.spec or {}).get("settings", {}).get(name) in values]
        if not found:
            there = sorted({str((r.spec or {}).get("settings", {}).get(name)) for r in kept})
            raise NothingSelected(
                f"no result with {name}={' or '.join(map(str, values))}; "
                f"there are: {', '.join(there)}"
            )
        kept = found
    if seeds is not None:
        there_seeds = {record.spec["seed"] for record in kept if record.spec}
        kept = [record for record in kept if record.spec and record.spec["seed"] in set(seeds)]
        if not kept:
            raise NothingSelected(
                f"no result with these seeds; there are: {spell_seeds(there_seeds)}"
            )
    return kept


def _component(record: Record, kind: str) -> dict[str, Any]:
    spec = record.spec or {}
    return dict(spec.get("components", {}).get(kind, {}))


def _wish(registry: Registry | None, kind: Kind, text: str) -> tuple[str, dict[str, Any]]:
    """Read one selection: a canonical name, and the values of those options that were written."""
    name, _, written = text.partition(":")
    pairs = dict(part.partition("=")[::2] for part in written.split(",") if part)
    if registry is not None:
        try:
            chosen = parse(registry, kind, text)
        except UsageError:
            if registry.owners(kind, name):
                raise  # the component is there, so the options are wrong
        else:
            return chosen.name, {option: chosen.options[option] for option in pairs}
    return name, dict(pairs)


def _fits(record: Record, kind: str, name: str, pairs: Mapping[str, Any]) -> bool:
    component = _component(record, kind)
    values = component.get("options", {})
    return component.get("name") == name and all(
        option in values and (values[option] == value or str(values[option]) == str(value))
        for option, value in pairs.items()
    )
