"""What is on a page: every section, as frozen data that says nothing of HTML."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlbench.report.cells.pairing import task_of
from rlbench.report.page import caveats, factors, failures, headline, pictures, provenance, samples
from rlbench.report.page.score_table import score_table
from rlbench.report.page.verdict_table import verdict_table
from rlbench.report.progress import count
from rlbench.report.tables.best import BestSet, best_set
from rlbench.report.tables.table import arranged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.grid.store import Record
    from rlbench.report.cells.cell import Cell
    from rlbench.report.compare.comparison import Comparison
    from rlbench.report.page.table import Table


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page about some results.

    Attributes:
        title: What the results are called.
        folder: Where they are, as the command line names it.
        summary: How much there is, in a line.
        headline: The answer.
        verdicts: Each cell against the baseline; None without a baseline.
        scores: All cells.
        pictures: Figures.
        factors: What single factors do.
        failures: Runs that did not end well.
        samples: What policies wrote.
        provenance: Where all of it comes from.
        caveats: What to know before believing it.
    """

    title: str
    folder: str
    summary: str
    headline: headline.Headline
    verdicts: Table | None
    scores: Table
    pictures: pictures.Pictures
    factors: factors.Factors
    failures: failures.Failures
    samples: samples.Shown
    provenance: provenance.Provenance
    caveats: tuple[str, ...]


def build(
    cells: Sequence[Cell],
    *,
    title: str,
    folder: str = "",
    level: float = 0.95,
    margin: float | None = None,
    comparison: Comparison | None = None,
    unreadable: Sequence[Record] = (),
    left_out: str = "",
) -> Page:
    """Put a page together; the order of the cells changes nothing.

    Args:
        cells: At least one.
        title: What the results are called: the name of their folder.
        folder: That folder, as the command line names it.
        level: Confidence level of effects.
        margin: Effects below it count as none; None if none is declared.
        comparison: How these cells compare with a baseline; None if there is none.
        unreadable: What in the folder is no run that can be read.
        left_out: What of the results is not among the cells, in words; empty if nothing.
    """
    ordered, labels = arranged(cells)
    # beside a baseline, a second family of tests would only seem to contradict the first
    best = best_set(ordered) if comparison is None else BestSet()
    verdicts = None
    if comparison is not None:
        verdicts = verdict_table(comparison)
        verdicts = replace(verdicts, below=caveats.without_untuned(verdicts.below))
    found = caveats.collect(ordered, labels, comparison, unreadable)
    if left_out:
        found = (f"Not all results are on this page: {left_out}.", *found)
    return Page(
        title=title,
        folder=folder,
        summary=_summary(ordered),
        headline=headline.of_comparison(comparison)
        if comparison is not None
        else headline.of_cells(ordered, best),
        verdicts=verdicts,
        scores=score_table(ordered, labels, best),
        pictures=pictures.draw(ordered, comparison.baselines if comparison else None),
        factors=factors.collect(ordered, level=level, margin=margin),
        failures=failures.collect(ordered, labels),
        samples=samples.collect(ordered, labels),
        provenance=provenance.collect(ordered, labels),
        caveats=found,
    )


def _summary(ordered: Sequence[Cell]) -> str:
    runs = sum(len(cell.seeds) for cell in ordered)
    numbers = {len(cell.tried) for cell in ordered}
    seeds = count(max(numbers), "seed")
    if len(numbers) > 1:
        seeds = f"{min(numbers)} to {seeds}"
    each = " each" if len(ordered) > 1 else ""
    tasks = list(dict.fromkeys(filter(None, map(task_of, ordered))))
    if tasks:
        each += f", task {tasks[0]}" if len(tasks) == 1 else f", {len(tasks):,} tasks"
    return f"{count(runs, 'run')} in {count(len(ordered), 'cell')}, {seeds}{each}"
