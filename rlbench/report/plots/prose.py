"""Words that captions share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def of_seeds(counts: Iterable[int]) -> str:
    """Say how many seeds cells have: ``n=4 seeds``, or ``n=3 to 5 seeds``."""
    found = sorted(set(counts))
    if found == [1]:
        return "n=1 seed"
    return f"n={found[0]} seeds" if len(found) == 1 else f"n={found[0]} to {found[-1]} seeds"
