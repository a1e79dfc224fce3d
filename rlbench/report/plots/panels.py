"""Cells in one order with one look each, and split into small multiples where they are many."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected
from rlbench.report.cells.baseline import but_for_task, spell_cell
from rlbench.report.cells.cell import labels_of
from rlbench.report.cells.pairing import task_of
from rlbench.report.plots.prose import flags_of
from rlbench.report.plots.style import Look, look
from rlbench.report.text.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlbench.report.cells.cell import Cell

MOST = 60  # cells of a figure
IN_ONE = 6  # cells in one pair of axes, where lines cross
_FACTORS = 3  # that panels are split by, at most


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One cell with what it is called and looks like in every figure of these cells.

    Attributes:
        cell: The cell.
        name: Its labels, such as ``group+clip``.
        bare: Its labels but for the task.
        short: Its labels but for those in the title of its panel.
        look: Colour, marker and dashes.
    """

    cell: Cell
    name: str
    bare: str
    short: str
    look: Look


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Cells that share a pair of axes.

    Attributes:
        title: What they have in common and others have not; empty if there is one panel.
        entries: In canonical order.
    """

    title: str
    entries: tuple[Entry, ...]


def arrange(cells: Sequence[Cell], most: int = MOST) -> list[Panel]:
    """Put cells into canonical order, by their labels, and into panels of up to `IN_ONE`.

    Tasks never share a panel: their scores are no points of one scale. Of the factors that split
    the rest into small enough panels, those with the fewest panels are taken.

    Args:
        cells: In any order, which changes nothing.
        most: How many there may be.

    Raises:
        NothingSelected: There are more.
    """
    if len(cells) > most:
        raise NothingSelected(
            f"{len(cells):,} cells are too many for one figure, which shows up to {most}; "
            f"select some with {flags_of(cells)}"
        )
    labels = labels_of(cells)
    ordered = sorted(cells, key=lambda cell: _key(cell, labels))
    outer = _outer(ordered, labels)
    inner = [name for name in labels if name not in outer]
    by_panel = sorted(ordered, key=lambda cell: _key(cell, outer))
    groups: dict[str, list[Cell]] = {}
    for cell in by_panel:
        groups.setdefault(spell(cell, outer), []).append(cell)
    fills = _numbers(by_panel, but_for_task(outer))
    places = _numbers(ordered, inner) if inner else fills
    return [
        Panel(
            title=title,
            entries=tuple(
                Entry(
                    cell=cell,
                    name=spell(cell, labels),
                    bare=spell(cell, but_for_task(labels)),
                    short=spell(cell, inner) or spell(cell, labels),
                    look=look(
                        places[spell(cell, inner or but_for_task(outer))],
                        fills[spell(cell, but_for_task(outer))] if inner else 0,
                    ),
                )
                for cell in group
            ),
        )
        for title, group in groups.items()
    ]


def by_task(panels: Iterable[Panel]) -> list[Panel]:
    """Merge panels of one task; where there are several, titles name it and names don't."""
    tasks: dict[str, list[Entry]] = {}
    for panel in panels:
        for entry in panel.entries:
            tasks.setdefault(task_of(entry.cell), []).append(entry)
    if len(tasks) == 1:
        return [Panel(title="", entries=entries) for entries in map(tuple, tasks.values())]
    return [
        Panel(
            title=printable(task),
            entries=tuple(replace(entry, name=entry.bare) for entry in entries),
        )
        for task, entries in tasks.items()
    ]


def natural(text: str) -> list[tuple[int, float, str]]:
    """Sort key by which run2 comes before run10, and 0.5 before 0.25e1."""
    parts = re.split(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", text, flags=re.IGNORECASE)
    return [
        (0, float(part), part) if place % 2 else (1, 0.0, part)
        for place, part in enumerate(parts)
        if part
    ]


def _numbers(cells: Sequence[Cell], labels: Sequence[str]) -> dict[str, int]:
    """Number what some labels spell, as it comes."""
    return {name: n for n, name in enumerate(dict.fromkeys(spell(c, labels) for c in cells))}


def _key(cell: Cell, labels: Sequence[str]) -> list[list[tuple[int, float, str]]]:
    return [natural(cell.columns.get(name, "")) for name in labels]


def spell(cell: Cell, labels: Sequence[str]) -> str:
    """Name a cell by some of its labels, as ``--baseline`` reads it."""
    return printable(spell_cell(cell, labels))


def _outer(cells: Sequence[Cell], labels: Sequence[str]) -> list[str]:
    """Choose the labels that split cells into panels."""
    differing = [name for name in labels if len({cell.columns.get(name) for cell in cells}) > 1]
    tasks = [name for name in differing if name.partition(".")[0] == "task"]
    others = [name for name in differing if name not in tasks]
    best: tuple[tuple[bool, bool, int, int], list[str]] | None = None
    for size in range(min(_FACTORS, len(others)) + 1):
        for chosen in combinations(others, size):
            names = [*tasks, *chosen]
            sizes: dict[str, int] = {}
            for cell in cells:
                title = spell(cell, names)
                sizes[title] = sizes.get(title, 0) + 1
            largest = max(sizes.values())
            alone = largest == 1 and len(sizes) > 1 and bool(chosen)
            rank = (largest > IN_ONE, alone, len(sizes), largest)
            if best is None or rank < best[0]:
                best = (rank, names)
    return best[1] if best else tasks
