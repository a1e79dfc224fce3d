"""Whether a race spent the seeds of a table: then no other test of them holds its level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlbench.errors import UsageError
from rlbench.grid.race_file import spent_by_race

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rlbench.report.cells.cell import Cell


def raced(cells: Iterable[Cell]) -> list[str]:
    """Say which folders of results have a race between these cells at these seeds.

    Args:
        cells: The rows of a table; the plans of races lie in the folders of their results.

    Returns:
        A sentence a folder; none where nobody raced.
    """
    specs: dict[Path, list[Mapping[str, Any]]] = {}
    for cell in cells:
        for seed in cell.tried:
            if seed.record.spec:
                specs.setdefault(seed.record.folder.parent.parent, []).append(seed.record.spec)
    found = []
    for root, ran in specs.items():
        try:
            spent = spent_by_race(root, ran)
        except UsageError as error:
            why = str(error).rstrip(".")
            found.append(f"Whether a race spent these seeds is not known: {why}.")
            continue
        if spent:
            found.append(
                f"{root} has a race: its seeds were spent by what was seen, so p-values, verdicts "
                "and the best rows here do not hold; rlbench race, as it was called, shows its own."
            )
    return found
