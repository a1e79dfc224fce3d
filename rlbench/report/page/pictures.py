"""The figures of a page, each with a caption and what a screen reader says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.errors import RlbenchError
from rlbench.report.cells.baseline import spell_cell
from rlbench.report.cells.cell import labels_of
from rlbench.report.tables.table import arranged
from rlbench.report.text.layout import fixed, places_by_interval
from rlbench.report.text.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.report.cells.cell import Cell

SHOWN = 12  # cells, where there are more than one figure takes
_SPOKEN = 12  # cells that an alternative text names
_REMARKS = 3
_CAPTIONS = {
    "curves": "Bands are of each cell alone: whether two cells differ is for the verdicts to say.",
    "scores": "Rows share their seeds, so intervals that overlap are no proof that two are equal.",
    "matrix": "Where rows differ by more in one column than in another, the factors interact.",
    "tradeoff": "Up and to the left: a better score, bought with less distance from the start.",
    "profile": "A curve above another all the way is better at every score one could ask for.",
    "improvement": "One half means that neither side is better more often.",
}


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One figure.

    Attributes:
        name: As ``rlbench plot`` has it.
        title: What it shows, in a few words.
        caption: What to look for in it.
        svg: One ``<svg>`` element.
        remarks: What it leaves out.
    """

    name: str
    title: str
    caption: str
    svg: str
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """All figures that these cells can have.

    Attributes:
        drawn: The figures.
        absent: Names of figures that can't be drawn, with the reason.
        cut: Which cells are not in them, in words; empty if all are.
    """

    drawn: tuple[Picture, ...] = ()
    absent: tuple[tuple[str, str], ...] = ()
    cut: str = ""


def draw(cells: Sequence[Cell], baselines: Mapping[str, Cell] | None) -> Pictures:
    """Draw every figure that can be drawn.

    Args:
        cells: What they show; the best of them where they are too many.
        baselines: What is compared with, by task; None if nothing is.
    """
    from rlbench.report import plots
    from rlbench.report.plots.panels import MOST

    ordered, _ = arranged(cells)
    cut = ""
    if len(ordered) > MOST:
        ordered = _fewer(ordered, baselines or {})
        cut = (
            f"The figures show {len(ordered)} of {len(cells):,} cells: the best of each task"
            f"{' and the baseline' if baselines else ''}."
        )
    drawn, absent = [], []
    for name in plots.NAMES:
        remarks: list[str] = []
        try:
            figure = plots.draw(name, ordered, baseline=baselines, note=remarks.append)
        except RlbenchError as error:
            absent.append((name, str(error)))
            continue
        title = plots.SUMMARIES[name]
        title = title[:1].upper() + title[1:]
        figure.set_label(_in_words(name, title, ordered))
        more = len(remarks) - _REMARKS
        shown = [remark[:1].upper() + remark[1:] for remark in remarks[:_REMARKS]]
        shown += [f"And {more:,} more of this kind"] if more > 0 else []
        drawn.append(
            Picture(
                name=name,
                title=title,
                caption=_CAPTIONS.get(name, ""),
                svg=plots.as_svg(figure),
                remarks=tuple(shown),
            )
        )
    return Pictures(drawn=tuple(drawn), absent=tuple(absent), cut=cut)


def _fewer(ordered: Sequence[Cell], baselines: Mapping[str, Cell]) -> list[Cell]:
    """Keep the best cells of each task, and the baselines."""
    from rlbench.report.cells.pairing import task_of

    tasks: dict[str, list[Cell]] = {}
    for cell in ordered:
        tasks.setdefault(task_of(cell), []).append(cell)
    each = max(SHOWN // len(tasks), 1)
    kept = [cell for of_task in tasks.values() for cell in of_task[:each]][:SHOWN]
    others = [cell for cell in baselines.values() if not any(cell is one for one in kept)]
    return [*kept, *others[:SHOWN]]


def _in_words(name: str, title: str, ordered: Sequence[Cell]) -> str:
    """Say what a figure shows to those who don't see it."""
    labels = labels_of(ordered)
    places = places_by_interval(cell.score for cell in ordered)
    parts = []
    for cell in ordered[:_SPOKEN]:
        if cell.score is None:
            continue
        of_course = name == "curves" and cell.metric.key == "score"
        start = cell.mean("score_start") if of_course else None
        text = f"{spell_cell(cell, labels)} "
        text += f"from {fixed(start, places)} to " if start is not None else ""
        parts.append(text + fixed(cell.score.mid, places))
    listed = f" {ordered[0].metric.name}: {'; '.join(parts)}." if parts else ""
    # it goes into the figure as it is
    return printable(f"{title}.{listed} The tables of this page have the numbers.")
