"""How probable it is that a cell does better than the baseline at the same seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected
from rlbench.report.cells.baseline import baseline_name
from rlbench.report.plots import against, forest
from rlbench.report.plots.prose import LeftOut, in_common, of_seeds
from rlbench.report.text.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.figure import Figure

    from rlbench.report.cells.cell import Cell
    from rlbench.report.compare.comparison import Row
    from rlbench.report.plots.panels import Entry


def draw(
    cells: Sequence[Cell],
    *,
    width: float,
    note: Callable[[str], None],
    baseline: Mapping[str, Cell] | Cell | None = None,
) -> Figure:
    """Draw the share of pairs won by each cell; see `plots.draw`."""
    made, tasks = against.compared(cells, baseline)
    blocks, left_out = [], LeftOut(note)
    for title, rows in tasks:
        found = against.shown(rows, lambda row: row.improvement is not None, left_out.add)
        if found:
            blocks.append(
                forest.Block(title=title, rows=tuple(_row(*pair) for pair in found), line=0.5)
            )
    if not blocks:
        raise NothingSelected("no cell shares a seed with its baseline")
    name = printable(baseline_name(made.baselines, made.labels))
    return forest.draw(
        forest.on_one_axis(blocks),
        width=width,
        axis="P(better than the baseline)",
        header=("share [95%]", "n"),
        caption=_caption(made.rows, name) + left_out.caption() + in_common(cells),
        limits=(-0.02, 1.02),
    )


def _caption(rows: Sequence[Row], name: str) -> str:
    """Say what a share is of: pairs at a seed, or all pairs of independent runs."""
    shown = [row for row in rows if row.improvement]
    apart = [row.independent for row in shown]
    n = of_seeds(len(row.seeds) for row in shown)
    pairs, by = f"the pairs ({n})", "Jeffreys'"
    if all(apart):
        pairs, by = f"all pairs of a run from each ({n})", "its logit-t"
    elif any(apart):
        by = "Jeffreys' (where runs are not paired, of all pairs: logit-t)"
    return (
        f"Share of {pairs} in which a cell does better than {name}, ties one half, with {by} 95% "
        "interval."
    )


def _row(entry: Entry, row: Row) -> forest.Row:
    found = row.improvement
    if found is None:
        raise NothingSelected(f"{entry.name} has no pair")
    known = found.half_width is not None
    text = f"{found.mid:.2f} [{found.low:.2f}, {found.high:.2f}]" if known else f"{found.mid:.2f}"
    return forest.Row(
        name=entry.name,
        look=entry.look,
        mid=found.mid,
        low=found.low if known else None,
        high=found.high if known else None,
        texts=(text, f"{len(row.seeds)}"),
    )
