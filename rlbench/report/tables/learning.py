"""Whether training did anything: a verdict on policies that got worse is about that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.report.cells.metric import SCORE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.cells.cell import Cell

_START = "score_start"
_COLLAPSED = 0.01  # nats a token, below which a policy always says the same


def unlearned(named: Sequence[tuple[str, Cell]]) -> list[str]:
    """Say where policies ended no better than before training, and where they collapsed.

    Args:
        named: Rows with their names.

    Returns:
        Sentences; none where there is nothing to say, or nobody knows where the policies started.
    """
    changes = {name: change for name, cell in named if (change := _change(cell)) is not None}
    lines = []
    if changes and max(changes.values()) <= 0:
        rows = "The row ends" if len(changes) == 1 else "All rows end"
        lines.append(f"{rows} no better than before training.")
    lines += [
        f"{name}: its policies collapsed: entropy below {_COLLAPSED:g} at every seed, score "
        f"{cell.mean(_START):.3f} before training, {cell.mean(SCORE.key):.3f} after."
        for name, cell in named
        if changes.get(name, 0) < 0 and _collapsed(cell)
    ]
    return lines


def _change(cell: Cell) -> float | None:
    """How much better the runs that ended well became."""
    before, after = cell.mean(_START), cell.mean(SCORE.key)
    if before is None or after is None:
        return None
    lower = any((seed.record.spec or {}).get("direction") == "lower" for seed in cell.ok)
    return before - after if lower else after - before


def _collapsed(cell: Cell) -> bool:
    entropies = [seed.value("entropy") for seed in cell.ok]
    return bool(entropies) and all(one is not None and one < _COLLAPSED for one in entropies)
