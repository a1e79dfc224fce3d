"""What the experiment says of itself: numbers that are equal and should not be, or the reverse."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rlbench.grid import compare
from rlbench.grid.importing import is_foreign
from rlbench.grid.reading import read_object
from rlbench.grid.store import METRICS, VERIFIED
from rlbench.report.progress import count
from rlbench.report.text.spelling import spell_seeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.cells.cell import Cell, Seed

Named = tuple[str, "Cell"]

_NUMBERS_THAT_TELL_SEEDS_APART = ("score", "reward", "kl", "entropy")
_ONLY_MEASURE = ("setting eval_every", "setting eval_prompts")  # no curve depends on them
_MOST_BYTES = 1 << 29  # of curves that are read for the notes of one table: half a second
_CODE = ("owner of", "source of", "needs of", "torch", "schema")


def suspicions(named: Sequence[Named]) -> list[str]:
    """List the warnings, each beginning with its name.

    ``same curves``: two seeds of a cell have identical curves. ``same computation``: two cells have
    identical curves at all common seeds. ``other numbers``: a run that was repeated with the same
    specification came to different numbers. ``damaged curves``: what is on the disk is not what the
    run wrote.
    """
    return [
        *_same_curves(named),
        *_same_computation(named),
        *_other_numbers(named),
        *_damaged_curves(named),
    ]


def digest(seed: Seed) -> str | None:
    """Hash of the curve of a run that ended well; None if its result does not say."""
    value = (seed.record.result or {}).get("metrics_sha256") if seed.ok else None
    return value if isinstance(value, str) else None


def _same_curves(named: Sequence[Named]) -> list[str]:
    lines = []
    for name, cell in named:
        if is_foreign(cell.seeds[0].record):
            continue  # a score is all that is known, and a score may well be twice the same
        same: dict[str | tuple[float | None, ...], list[int]] = {}
        for seed in cell.ok:
            numbers = tuple(seed.value(number) for number in _NUMBERS_THAT_TELL_SEEDS_APART)
            if digest(seed) is not None or any(number is not None for number in numbers):
                same.setdefault(digest(seed) or numbers, []).append(seed.number)
        lines += [
            f"Same curves: {name}: seeds {spell_seeds(seeds)} gave the same numbers: does the seed "
            "reach everything that is random?"
            for seeds in same.values()
            if len(seeds) > 1
        ]
    return lines


def _same_computation(named: Sequence[Named]) -> list[str]:
    """Compare each cell with the first that shares a curve with it: few, of many cells."""
    first: dict[tuple[int, str], tuple[str, Cell, dict[int, str]]] = {}
    lines = []
    for name, cell in named:
        curves = {seed.number: text for seed in cell.ok if (text := digest(seed))}
        known = next((first[key] for key in curves.items() if key in first), None)
        if known is not None:
            other_name, other, others = known
            common = curves.keys() & others.keys()
            if all(curves[seed] == others[seed] for seed in common):
                lines += _without_effect(other_name, other, name, cell, sorted(common))
        for key in curves.items():
            first.setdefault(key, (name, cell, curves))
    return lines


def _without_effect(
    one_name: str, one: Cell, other_name: str, other: Cell, common: list[int]
) -> list[str]:
    differ = [
        what
        for what, _ in compare.of_specs(one.seeds[0].record.spec or {}, _spec_of(other))
        if what != "seed" and what not in _ONLY_MEASURE
    ]
    if not differ:
        return []
    plain = [what for what in differ if not what.startswith(_CODE)]
    at = f"seed {common[0]}" if len(common) == 1 else f"all {len(common)} common seeds"
    same = f"Same computation: {one_name} and {other_name} have identical curves at {at}"
    if not plain:
        return [f"{same}: the code that differs ({', '.join(differ)}) moved no number."]
    return [f"{same}: what differs ({', '.join(plain)}) had no effect in this set-up."]


def _spec_of(cell: Cell) -> dict[str, object]:
    return cell.seeds[0].record.spec or {}


def _other_numbers(named: Sequence[Named]) -> list[str]:
    lines = []
    for name, cell in named:
        for seed in cell.ok:
            said, _ = read_object(f"{seed.record.folder}/{VERIFIED}")
            if said is not None and said.get("same") is False:
                lines.append(
                    f"Same spec, other numbers: {name}, seed {seed.number}: run again, "
                    f"{said.get('where')} (first | again). Something random or of the machine is "
                    "outside of what the run is named after."
                )
    return lines


def _damaged_curves(named: Sequence[Named]) -> list[str]:
    """Read the curves again, as far as that is quick; the others are counted."""
    lines, unread, left = [], [], _MOST_BYTES
    for name, cell in named:
        damaged = []
        for seed in cell.tried:
            left -= _bytes(seed)
            if left < 0:
                unread.append(name)
            elif damage := seed.record.damage():
                damaged.append((seed.number, damage))
        if damaged:
            numbers = [number for number, _ in damaged]
            which = f"seed{'s' if len(damaged) > 1 else ''} {spell_seeds(numbers)}"
            first = f"seed {numbers[0]}: " if len(damaged) > 1 else ""
            lines.append(
                f"Damaged curves: {name}, {which}: {first}{damaged[0][1]}. The scores are those of "
                "result.json, and count."
            )
    if unread:
        lines.append(
            f"Curves not checked for damage: {count(len(unread), 'run')}, from {unread[0]} on. A "
            f"table reads {_MOST_BYTES / 2**30:g} GiB of them; rlbench export --curves reads all."
        )
    return lines


def _bytes(seed: Seed) -> int:
    """Size of a curve; 0 if there is none."""
    try:
        return os.stat(f"{seed.record.folder}/{METRICS}").st_size  # noqa: PTH116 - of thousands
    except OSError:
        return 0
