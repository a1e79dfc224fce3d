"""What is on a page: every section, as frozen data that says nothing of HTML."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlbench.report.cells.pairing import task_of
from rlbench.report.page import (
    caveats,
    factors,
    failures,
    headline,
    over_tasks,
    pictures,
    private,
    provenance,
    samples,
)
from rlbench.report.page.score_table import score_table
from rlbench.report.page.verdict_table import verdict_table
from rlbench.report.progress import count
from rlbench.report.tables.best import BestSet, best_set
from rlbench.report.tables.raced import raced
from rlbench.report.tables.table import arranged
from rlbench.report.text.spelling import spell_seeds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlbench.grid.normalisation import Scale
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
        warnings: Why not to believe it: what is first among the caveats, too.
        tuned: Which seeds and values the figures, effects and aggregates are of, where a value was
            chosen for each cell; else empty.
        verdicts: Each cell against the baseline; None without a baseline.
        suite: Each algorithm over all tasks.
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
    warnings: tuple[str, ...]
    tuned: str
    verdicts: Table | None
    suite: over_tasks.OverTasks
    scores: Table
    pictures: pictures.Pictures
    factors: factors.Factors
    failures: failures.Failures
    samples: samples.Shown
    provenance: provenance.Provenance
    caveats: tuple[str, ...]

    @property
    def private(self) -> str:
        """What is on the page that its reader may not be meant to see; empty if nothing."""
        return private.of_page(self.failures, self.provenance, [self.folder, *self.caveats])


def _nobody(_text: str) -> None:
    """Hear nothing."""


def build(
    cells: Sequence[Cell],
    *,
    title: str,
    folder: str = "",
    level: float = 0.95,
    margin: float | None = None,
    comparison: Comparison | None = None,
    scales: Mapping[str, Scale] | None = None,
    unreadable: Sequence[Record] = (),
    left_out: str = "",
    announce: Callable[[str], None] = _nobody,
) -> Page:
    """Put a page together; the order of the cells changes nothing.

    Args:
        cells: At least one.
        title: What the results are called: the name of their folder.
        folder: That folder, as the command line names it.
        level: Confidence level of effects.
        margin: Effects below it count as none; None if none is declared.
        comparison: How they compare with a baseline, if they do; tuned cells are drawn, too.
        scales: By task, the scores that count as 0 and as 1 in aggregates over tasks.
        unreadable: What in the folder is no run that can be read.
        left_out: What of the results is not among the cells, in words; empty if nothing.
        announce: Hears of each part before it is made.

    Raises:
        UsageError: The scales don't fit these results.
    """
    ordered, labels = arranged(cells)
    tuning = comparison.tuning if comparison is not None else None
    subject, its_labels = arranged(tuning.cells) if tuning else (ordered, labels)
    best = best_set(ordered) if comparison is None else BestSet()
    announce("aggregating over tasks")
    suite = over_tasks.collect(subject, scales, comparison)
    warnings = raced(ordered)
    absent = [f"Not all results are on this page: {left_out}."] if left_out else []
    found = caveats.collect(subject, its_labels, comparison, unreadable, [*warnings, *absent])
    baselines = comparison.baselines if comparison else None
    drawn = pictures.draw(subject, baselines, announce, margin, scales)
    announce("computing effects")
    effects = factors.collect(subject, level=level, margin=margin)
    announce("collecting failures, samples and where all of it comes from")
    return Page(
        title=title,
        folder=folder,
        summary=_summary(ordered),
        headline=_headline(comparison, ordered, best),
        warnings=tuple(warnings),
        tuned=_tuned(comparison),
        verdicts=_verdicts(comparison),
        suite=over_tasks.without(suite, found),
        scores=score_table(ordered, labels, best),
        pictures=drawn,
        factors=effects,
        failures=failures.collect(ordered, labels),
        samples=samples.collect(ordered, labels),
        provenance=provenance.collect(ordered, labels),
        caveats=found,
    )


def _headline(
    comparison: Comparison | None, ordered: Sequence[Cell], best: BestSet
) -> headline.Headline:
    """Say what was found; beside a baseline, another family of tests would seem to contradict."""
    if comparison is None:
        return headline.of_cells(ordered, best)
    return headline.of_comparison(comparison)


def _verdicts(comparison: Comparison | None) -> Table | None:
    if comparison is None:
        return None
    verdicts = verdict_table(comparison)
    return replace(verdicts, below=caveats.without_untuned(verdicts.below))


def _tuned(comparison: Comparison | None) -> str:
    """Say what is shown where a value was chosen for each cell."""
    if comparison is None or comparison.tuning is None:
        return ""
    tuning = comparison.tuning
    return (
        f"As in the verdicts, each cell at the {tuning.axis.name} that was chosen for it, and "
        f"seeds {spell_seeds(tuning.compared_on)} alone."
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
