"""Words that captions share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_NAMED = 4  # cells that a caption names
_UNITS = {
    "kl": "KL (nats a completion)",
    "kl_nats": "KL (nats a completion)",
    "entropy": "entropy (nats a token)",
    "length": "length (tokens)",
    "wall_s": "time (s)",
}


def titled(name: str) -> str:
    """Name a metric or a column with its unit, where that is known."""
    return _UNITS.get(name, name)


def of_seeds(counts: Iterable[int]) -> str:
    """Say how many seeds cells have: ``n=4 seeds``, or ``n=3 to 5 seeds``."""
    found = sorted(set(counts))
    if found == [1]:
        return "n=1 seed"
    return f"n={found[0]} seeds" if len(found) == 1 else f"n={found[0]} to {found[-1]} seeds"


class LeftOut:
    """Cells that a figure can't show: each is told with its reason, and the caption names them.

    Args:
        note: Hears of each.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._names: list[str] = []

    def add(self, name: str, why: str) -> None:
        """Leave out a cell."""
        self._names.append(name)
        self._note(f"left out: {name}: {why}")

    def caption(self) -> str:
        """Name them in a sentence that begins with a space; empty if there is none."""
        if not self._names:
            return ""
        more = len(self._names) - _NAMED
        rest = f" and {more} more" if more > 0 else ""
        return f" Not shown: {', '.join(self._names[:_NAMED])}{rest}."
