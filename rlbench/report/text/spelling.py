"""One spelling for values, seeds and text, whatever file or program they came from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any


def spelled(value: Any) -> Any:
    """Spell values of options and settings in one way: 4, 4.0 and ``"4"`` print alike."""
    if isinstance(value, Mapping):
        return {str(name): spelled(inner) for name, inner in value.items()}
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    text = str(value)
    with suppress(ValueError, OverflowError):
        number = float(text)
        text = str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)
    return str(value) if isinstance(value, int) else text


def spell_seeds(seeds: Iterable[int]) -> str:
    """Write seeds as they are given on the command line: ``0-4,7``."""
    parts: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ",".join(
        f"{part[0]}-{part[-1]}" if len(part) > 2 else ",".join(map(str, part)) for part in parts
    )


def printable(text: str) -> str:
    """Escape what moves a terminal's cursor, line breaks included: a line stays one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def natural(text: str) -> list[tuple[int, int, str]]:
    """Sort key by which run2 comes before run10."""
    parts = re.split(r"([0-9]+)", text)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]
