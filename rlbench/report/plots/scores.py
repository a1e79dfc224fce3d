"""Final scores: means with intervals, every seed a dot, failures as crosses, the best first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected
from rlbench.report.cells import one_scale
from rlbench.report.plots import forest
from rlbench.report.plots.panels import Panel, arrange, by_task
from rlbench.report.plots.prose import LeftOut, in_common, of_seeds, titled
from rlbench.report.tables.table import score_text
from rlbench.report.text.layout import fixed, places_by_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

    from rlbench.report.cells.cell import Cell
    from rlbench.report.plots.panels import Entry


def draw(cells: Sequence[Cell], *, width: float, note: Callable[[str], None]) -> Figure:
    """Draw intervals of the metric; see `plots.draw`."""
    panels = by_task(arrange(cells))
    blocks, left_out = [], LeftOut(note)
    for panel in panels:
        entries = [entry for entry in panel.entries if _has_number(entry.cell)]
        for entry in panel.entries:
            if entry not in entries:
                left_out.add(entry.name, f"no run of it has a {entry.cell.metric.name}")
        if entries:
            blocks.append(_block(panel, entries))
    if not blocks:
        raise NothingSelected(f"no run has a {cells[0].metric.name}")
    shown = [e.cell for panel in panels for e in panel.entries if _has_number(e.cell)]
    metric = cells[0].metric
    if one_scale.on_one_scale(cells):
        blocks = forest.on_one_axis(blocks)
    return forest.draw(
        blocks,
        width=width,
        axis=titled(metric.name),
        header=(f"{metric.name} ± 95%", "n"),
        caption=_caption(shown, bars=any(r.reference is not None for b in blocks for r in b.rows))
        + left_out.caption()
        + in_common(cells),
    )


def _has_number(cell: Cell) -> bool:
    return any(seed.score is not None for seed in cell.tried)


def _block(panel: Panel, entries: Sequence[Entry]) -> forest.Block:
    best_first = sorted(
        entries,
        key=lambda e: -e.cell.metric.sign * e.cell.score.mid if e.cell.score else float("inf"),
    )
    places = places_by_interval(entry.cell.score for entry in entries)
    is_score = entries[0].cell.metric.key == "score"
    starts = {e.name: e.cell.mean("score_start") for e in entries} if is_score else {}
    known = [start for start in starts.values() if start is not None]
    same = bool(known) and len(known) == len(starts) and max(known) - min(known) < 1e-9
    return forest.Block(
        title=panel.title,
        rows=tuple(
            _row(entry, places, None if same else starts.get(entry.name)) for entry in best_first
        ),
        line=known[0] if same else None,
        label="start" if same else "",
    )


def _row(entry: Entry, places: int, start: float | None) -> forest.Row:
    cell = entry.cell
    score = cell.score
    half = score.half_width if score else None
    text = score_text(cell, places)
    if score is not None:
        without = "n=1" if score.n == 1 else "all equal"
        text += f" ± {fixed(half, places)}" if half is not None else f" {without}"
    return forest.Row(
        name=entry.name,
        look=entry.look,
        mid=score.mid if score else None,
        low=score.low if half is not None and score else None,
        high=score.high if half is not None and score else None,
        dots=tuple(seed.score for seed in cell.ok if seed.score is not None),
        crosses=tuple(seed.score for seed in cell.failed if seed.score is not None),
        reference=start,
        texts=(text, f"{len(cell.ok)}/{len(cell.tried)}"),
    )


def _caption(cells: Sequence[Cell], *, bars: bool) -> str:
    tried = of_seeds(len(cell.tried) for cell in cells)
    some = any(cell.score and cell.score.n > 1 for cell in cells)
    caption = f"Mean over {tried}{' with its 95% t interval' if some else ''}; dots: seeds."
    if any(cell.failed for cell in cells):
        caption += " Crosses: runs that failed; they count with the task's floor (*)."
    if bars:
        caption += " Bars: the start."
    return caption
