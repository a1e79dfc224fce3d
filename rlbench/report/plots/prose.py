"""Words that captions share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.grid.importing import is_foreign
from rlbench.report.cells.cell import KINDS, VERSIONS
from rlbench.report.tables.notes import shared
from rlbench.report.text.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rlbench.report.cells.cell import Cell

_NAMED = 4  # cells that a caption names
_SETTINGS = 6  # settings that a caption names
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


def in_common(cells: Sequence[Cell]) -> str:
    """Say on a line of its own what all cells share: ``addition; updates 50``.

    Named are the task or the algorithm, other kinds and settings only where they are not at their
    default.

    Args:
        cells: What the figure shows.

    Returns:
        The line behind a line break; empty if there is nothing to say.
    """
    from rlbench.training.settings import Settings
    from rlbench.training.spec import DEFAULT_SELECTIONS

    same = shared(cells)
    parts = [same[name] for name in ("task", "algorithm") if name in same]
    defaults = {str(kind): name for kind, name in DEFAULT_SELECTIONS.items()}
    parts += [
        f"{kind} {same[kind]}"
        for kind in KINDS
        if kind in same and kind not in ("task", "algorithm") and same[kind] != defaults.get(kind)
    ]
    usual = {option.name: option.spell(option.default) for option in Settings.options()}
    settings = [
        f"{name} {value}"
        for name, value in same.items()
        if name not in KINDS and name not in VERSIONS and usual.get(name) != value
    ]
    more = len(settings) - _SETTINGS
    parts += settings[:_SETTINGS] + ([f"{more} more settings"] if more > 0 else [])
    return f"\n{printable('; '.join(parts))}" if parts else ""


def flags_of(cells: Sequence[Cell], *, task: bool = True) -> str:
    """Name the flags that narrow these cells: ``-e, -l, -k, -t or --set``.

    Args:
        cells: What is to be narrowed.
        task: Whether fewer tasks would help.
    """
    foreign = [is_foreign(cell.seeds[0].record) for cell in cells]
    flags = ["-a"] if any(foreign) else []
    flags += [] if all(foreign) else ["-e", "-l", "-k"]
    flags += ["-t"] if task else []
    return f"{', '.join(flags)} or --set"


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
