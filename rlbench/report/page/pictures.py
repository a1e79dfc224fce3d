"""The figures of a page, each with a caption and what a screen reader says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.errors import RlbenchError
from rlbench.grid.importing import is_foreign
from rlbench.report.cells.baseline import but_for_task, spell_cell
from rlbench.report.cells.cell import labels_of
from rlbench.report.cells.pairing import task_of
from rlbench.report.tables.table import arranged
from rlbench.report.text.layout import fixed, places_by_interval
from rlbench.report.text.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.grid.normalisation import Scale
    from rlbench.report.cells.cell import Cell

Announce = Callable[[str], None]
SHOWN = 12  # cells of a task, where there are more than one figure takes
_SPOKEN = 12  # cells that an alternative text names
_REMARKS = 3
_AGAINST = ("differences", "improvement")  # figures that show others against a baseline
_POOLING = ("profile",)
_FIRST = "differences"  # where there is a baseline: it is what the verdicts are about
_NO_PROOF = "intervals that overlap are no proof that two are equal."
_CAPTIONS = {
    "differences": "What the verdicts are about: a row whose interval leaves 0 out differs, but "
    "for the correction over all rows.",
    "curves": "Bands are of each cell alone: whether two cells differ is for the verdicts to say.",
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


def draw(
    cells: Sequence[Cell],
    baselines: Mapping[str, Cell] | None,
    announce: Announce | None = None,
    margin: float | None = None,
    scales: Mapping[str, Scale] | None = None,
) -> Pictures:
    """Draw every figure that can be drawn.

    Args:
        cells: What they show; where they are too many, whole algorithms of them, the best.
        baselines: What is compared with, by task; None if nothing is.
        announce: Hears of each figure before it is drawn.
        margin: Differences within it count as none.
        scales: By task, the scores that count as 0 and as 1; for what pools tasks.
    """
    from rlbench.report import plots

    ordered, _ = arranged(cells)
    shown, cut = _fewer(ordered, baselines or {})
    names = sorted(plots.NAMES, key=lambda name: baselines is None or name != _FIRST)
    drawn, absent = [], []
    for number, name in enumerate(names):
        if announce:
            announce(f"drawing {name} (figure {number + 1} of {len(names)})")
        remarks: list[str] = []
        try:
            figure = plots.draw(
                name,
                shown,
                baseline=baselines,
                margin=margin,
                scales=scales if name in _POOLING else None,
                note=remarks.append,
            )
        except RlbenchError as error:
            absent.append((name, _reason(name, shown, baselines, str(error))))
            continue
        title = plots.SUMMARIES[name]
        title = title[:1].upper() + title[1:]
        figure.set_label(_in_words(name, title, shown))
        drawn.append(
            Picture(
                name=name,
                title=title,
                caption=_caption(name, shown),
                svg=plots.as_svg(figure),
                remarks=_few(remarks),
            )
        )
    return Pictures(drawn=tuple(drawn), absent=tuple(absent), cut=cut)


def _few(remarks: Sequence[str]) -> tuple[str, ...]:
    more = len(remarks) - _REMARKS
    shown = [remark[:1].upper() + remark[1:] for remark in remarks[:_REMARKS]]
    return (*shown, *([f"And {more:,} more of this kind"] if more > 0 else []))


def _caption(name: str, shown: Sequence[Cell]) -> str:
    """Say what to look for; of imported seeds nobody knows that they share anything."""
    if name != "scores":
        return _CAPTIONS.get(name, "")
    if any(is_foreign(seed.record) for cell in shown for seed in cell.seeds):
        return _NO_PROOF[:1].upper() + _NO_PROOF[1:]
    return f"Rows share their seeds, so {_NO_PROOF}"


def _reason(
    name: str, shown: Sequence[Cell], baselines: Mapping[str, Cell] | None, error: str
) -> str:
    """Say why a figure can't be drawn; what lacks a baseline is for the page to say, once."""
    if name in _AGAINST and baselines is None and len(_algorithms(shown)) > 1:
        return "it takes a baseline, and this page has none (--baseline CELL)"
    return error


def _algorithms(ordered: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Group cells that differ in nothing but the task, by what they are called."""
    labels = but_for_task(labels_of(ordered))
    found: dict[str, list[Cell]] = {}
    for cell in ordered:
        found.setdefault(spell_cell(cell, labels), []).append(cell)
    return found


def _fewer(ordered: Sequence[Cell], baselines: Mapping[str, Cell]) -> tuple[list[Cell], str]:
    """Keep whole algorithms, so that figures over tasks have all tasks of what they show.

    The baselines are kept, then what was tried on most tasks, then what stands highest in its task
    on average.

    Args:
        ordered: Task by task, the best first.
        baselines: What is compared with, by task.

    Returns:
        What is shown, and in words what is not; empty if all is.
    """
    from rlbench.report.plots.panels import MOST

    if len(ordered) <= MOST:
        return list(ordered), ""
    places: dict[int, int] = {}
    of_task: dict[str, int] = {}
    for cell in ordered:
        places[id(cell)] = of_task[task_of(cell)] = of_task.get(task_of(cell), 0) + 1
    groups = _algorithms(ordered)
    against = [
        name
        for name, group in groups.items()
        if any(cell is one for cell in group for one in baselines.values())
    ]

    def merit(name: str) -> tuple[bool, int, float]:
        group = groups[name]
        mean = sum(places[id(cell)] for cell in group) / len(group)
        return name not in against, -sum(bool(cell.tried) for cell in group), mean

    room = max(MOST // len(of_task), 1 + len(against))
    kept = sorted(groups, key=merit)[: min(room, SHOWN + len(against))]
    tasks = list(of_task)[: max(MOST // len(kept), 1)]
    shown = [cell for name in kept for cell in groups[name] if task_of(cell) in tasks][:MOST]
    return shown, _cut(
        (len(shown), len(ordered)),
        (len(kept), len(groups)),
        (len(tasks), len(of_task)),
        against=bool(against),
    )


def _cut(
    cells: tuple[int, int],
    algorithms: tuple[int, int],
    tasks: tuple[int, int],
    *,
    against: bool,
) -> str:
    """Say which cells are in the figures; pairs of numbers are of those shown and of all."""
    text = f"The figures show {cells[0]:,} of {cells[1]:,} cells: "
    baseline = "the baseline and " if against else ""
    if tasks[1] == 1:
        return f"{text}{baseline}the best."
    where = "all tasks" if tasks[0] == tasks[1] else f"{tasks[0]:,} of {tasks[1]:,} tasks"
    return (
        f"{text}{algorithms[0]:,} of {algorithms[1]:,} algorithms on {where}, {baseline}those that "
        "stand highest in their tasks on average."
    )


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
