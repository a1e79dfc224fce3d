"""Figures of cells: drawn by name, put into a page or saved to a file.

A figure is drawn with matplotlib's objects alone: no window, no state of the process, no global
setting. What it shows of its data (how many seeds, which interval) stands in a small line below it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlbench.errors import NothingSelected, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from rlbench.grid.normalisation import Scale
    from rlbench.report.cells.cell import Cell

NAMES = ("curves", "scores", "differences", "matrix", "tradeoff", "profile", "improvement")
AGAINST = ("differences", "improvement")  # those that compare with a baseline
SUMMARIES = {
    "curves": "learning curves: the mean over seeds against the update",
    "scores": "final scores: means with intervals, and every seed",
    "differences": "paired differences from the baseline, with verdicts",
    "matrix": "two factors against each other, a number a cell",
    "tradeoff": "the score against the KL, with the Pareto front",
    "profile": "the share of runs better than each score",
    "improvement": "how often a cell beats the baseline at the same seed",
}
FULL_WIDTH, COLUMN_WIDTH = 6.8, 3.3  # inches: a page of a paper, and one of its two columns


def draw(
    name: str,
    cells: Sequence[Cell],
    *,
    baseline: Mapping[str, Cell] | Cell | None = None,
    metric_column: str | None = None,
    width: float | None = None,
    factors: tuple[str | None, str | None] = (None, None),
    margin: float | None = None,
    scales: Mapping[str, Scale] | None = None,
    note: Callable[[str], None] | None = None,
) -> Figure:
    """Draw one figure.

    Args:
        name: One of `NAMES`.
        cells: What is shown, in any order; colours follow the labels, never the scores.
        baseline: What ``differences`` and ``improvement`` compare with, as `comparison.compare`
            takes it; of two cells the first in the order of the table if it is None.
        metric_column: What ``curves`` shows: a column of ``evals.csv`` or ``metrics.csv``; where
            both have it, ``evals.NAME`` or ``metrics.NAME``. None means what cells are compared by.
        width: In inches; None means `FULL_WIDTH`.
        factors: Rows and columns of ``matrix``: kinds or settings; None chooses.
        margin: Differences within it are drawn as none by ``differences``; None if there is none.
        scales: By task, the scores that count as 0 and as 1, by which scores are normalised; None
            shows them as they are.
        note: Hears of every run or cell that is left out.

    Returns:
        A figure that belongs to nobody else; `save` and `as_svg` write it.

    Raises:
        UsageError: There is no such figure, column or factor, or no baseline where it takes one, or
            scales don't fit.
        NothingSelected: These cells can't have that figure; says why.
    """
    if name not in NAMES:
        raise UsageError.unknown("plot", name, NAMES)
    if not cells:
        raise NothingSelected("no run that can be read")
    from rlbench.report.plots import output
    from rlbench.report.plots.style import plain

    if scales is not None:
        cells, baseline = _normalised(cells, baseline, scales)
    options: dict[str, dict[str, Any]] = {
        "curves": {"column": metric_column, "scales": scales},
        "matrix": {"factors": factors},
        "differences": {"baseline": baseline, "margin": margin},
        "improvement": {"baseline": baseline},
    }
    with plain(), output.that_fits():
        module = import_module(f"{__name__}.{name}")
        figure: Figure = module.draw(
            cells, width=width or FULL_WIDTH, note=note or _nobody, **options.get(name, {})
        )
        figure.set_label(SUMMARIES[name])  # what a screen reader says
        output.settle(figure)
    return figure


def check_baseline(
    cells: Sequence[Cell], baseline: Mapping[str, Cell] | Cell | None = None
) -> None:
    """Refuse cells that can't be drawn against a baseline, before anything is.

    Raises:
        NothingSelected: There is nothing to compare.
        UsageError: It takes a baseline, which was not given.
    """
    from rlbench.report.plots.against import baselines

    baselines(cells, baseline)


def _normalised(
    cells: Sequence[Cell],
    baseline: Mapping[str, Cell] | Cell | None,
    scales: Mapping[str, Scale],
) -> tuple[Sequence[Cell], Mapping[str, Cell] | Cell | None]:
    """Put the scores of cells and baselines on one scale."""
    from collections.abc import Mapping as Several

    from rlbench.report.cells.one_scale import put_on_scales

    done = put_on_scales(cells, scales)
    new = {id(old): one for old, one in zip(cells, done, strict=True)}
    if isinstance(baseline, Several):
        return done, {task: new[id(cell)] for task, cell in baseline.items()}
    return done, None if baseline is None else new[id(baseline)]


def as_svg(figure: Figure) -> str:
    """Write a figure as one element of a page; see `output.as_svg`."""
    from rlbench.report.plots import output

    return output.as_svg(figure)


def save(figure: Figure, path: Path, *, force: bool = False) -> None:
    """Write a figure to a file; see `output.save`."""
    from rlbench.report.plots import output

    output.save(figure, path, force=force)


def _nobody(_text: str) -> None:
    """Hear nothing."""
