"""How probable it is that a cell does better than the baseline at the same seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected, UsageError
from rlbench.report.cells.baseline import baseline_name, only_pair
from rlbench.report.compare.comparison import compare, in_order
from rlbench.report.plots import forest
from rlbench.report.plots.panels import arrange, by_task
from rlbench.report.plots.prose import LeftOut, of_seeds

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
    if len(cells) < 2:
        raise NothingSelected("one cell alone has no baseline to do better than")
    panels = by_task(arrange(cells))
    try:
        against = only_pair(in_order(cells)) if baseline is None else baseline
    except UsageError as error:
        raise NothingSelected(str(error)) from error
    made = compare(cells, against)
    rows = {id(row.cell): row for row in made.rows}
    blocks, left_out = [], LeftOut(note)
    for panel in panels:
        found = []
        for entry in panel.entries:
            row = rows[id(entry.cell)]
            if row.improvement is not None:
                found.append((entry, row))
            elif row.reason:
                left_out.add(entry.name, row.reason)
        if found:
            found.sort(key=lambda pair: -pair[1].improvement.mid if pair[1].improvement else 0)
            blocks.append(
                forest.Block(title=panel.title, rows=tuple(_row(*pair) for pair in found), line=0.5)
            )
    if not blocks:
        raise NothingSelected("no cell shares a seed with its baseline")
    name = baseline_name(made.baselines, made.labels)
    pairs = of_seeds(len(row.seeds) for row in made.rows if row.improvement)
    return forest.draw(
        blocks,
        width=width,
        axis="P(better than the baseline)",
        header=("share [95%]", "n"),
        caption=f"Share of the pairs ({pairs}) in which a cell does better than {name}, ties "
        f"one half, with Jeffreys' 95% interval.{left_out.caption()}",
        limits=(-0.02, 1.02),
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
