"""``rlbench report``: all there is to say of some results, on one page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlbench.cli import flags, selecting, tuning
from rlbench.cli.baseline import baselines
from rlbench.errors import UsageError
from rlbench.report.text.terminal import Once, emit, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.cells.cell import Cell
    from rlbench.report.cells.metric import Direction
    from rlbench.report.compare.comparison import Comparison

FILE = "report.html"


@click.command(
    epilog="""\b
  rlbench report results/local --baseline group+clip
  rlbench report -l clip -e gae -e rloo --to estimators.html
  rlbench report results/tuned --baseline clip --tune lr
  rlbench report results/atari --normalise random_human.csv
Without --baseline, of two cells the first is it, and of more there is none.
The page is one file that loads nothing; the path of it goes to stdout."""
)
@selecting.folder
@selecting.selection
@click.option(
    "--to",
    cls=Once,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"The page (default: {FILE}, in the folder of results).",
)
@click.option(
    "--baseline", cls=Once, metavar="CELL", help="The cell that others are compared with."
)
@flags.margin
@flags.metric
@flags.direction
@tuning.option
@flags.normalise("for the table over tasks")
@flags.level
@click.option("--force", is_flag=True, help="Overwrite a file that is no report of rlbench.")
def report(
    *,
    folder: Path | None,
    out: Path | None,
    seeds: tuple[str, ...],
    settings: tuple[str, ...],
    plugins: tuple[str, ...],
    to: Path | None,
    baseline: str | None,
    margin: float | None,
    metric: str,
    direction: Direction | None,
    tune: str | None,
    normalise: Path | None,
    level: float,
    force: bool,
    **axes: tuple[str, ...],
) -> None:
    """Write one page: verdicts, scores, figures, effects, failures, samples, provenance."""
    from rlbench.grid.normalisation import read_normalisation
    from rlbench.report.cells.metric import metric as metric_named
    from rlbench.report.page import output
    from rlbench.report.page.page import build
    from rlbench.report.page.parts import Parts
    from rlbench.report.page.render import render

    announce = Parts(say)
    root = selecting.root(folder, out)
    path = root / FILE if to is None else to
    wanted = metric_named(metric, direction)
    if normalise is not None and wanted.key != "score":
        raise UsageError(f"--normalise is for scores, not for {wanted.name}")
    scales = read_normalisation(normalise) if normalise else None
    if to is not None or root.is_dir():
        output.check_path(path, force=force)
    records = selecting.read(root)
    chosen = selecting.choose(records, axes=axes, seeds=seeds, settings=settings, plugins=plugins)
    shown = selecting.cells(chosen, wanted)
    unselected = len(records) - len(chosen)
    announce("comparing cells")
    page = build(
        shown,
        title=root.resolve().name or str(root),
        folder=str(root),
        level=level,
        margin=margin,
        comparison=_compared(shown, baseline, plugins, tune=tune, level=level, margin=margin),
        scales=scales,
        unreadable=[record for record in chosen if record.problem],
        left_out=f"{unselected:,} of {len(records):,} runs, not selected" if unselected else "",
        announce=announce,
    )
    output.write(render(page), path, force=force)
    if page.private:
        say(f"{path}: {page.private[:1].lower()}{page.private[1:]}")
    emit(str(path))


def _compared(
    shown: Sequence[Cell],
    baseline: str | None,
    plugins: tuple[str, ...],
    *,
    tune: str | None,
    level: float,
    margin: float | None,
) -> Comparison | None:
    """Compare with the baseline that is named, or of two cells with the first.

    Raises:
        UsageError: There is no such baseline, or a value is to be chosen and nothing compared.
    """
    from dataclasses import replace

    from rlbench.report.cells.baseline import but_for_task
    from rlbench.report.cells.cell import differing
    from rlbench.report.compare import comparison
    from rlbench.report.compare.family import BASELINE

    tuned = tuning.tuned(shown, tune) if tune is not None else None
    ordered = comparison.in_order(tuned.cells if tuned else shown)
    if tuned is not None and not but_for_task(differing(ordered)):
        raise UsageError(
            f"--tune {tune}: cells differ in nothing else but the task: there is nothing to "
            "compare; rlbench table shows all values"
        )
    try:
        against = baselines(ordered, baseline, plugins)
    except UsageError:
        if baseline is not None or tuned is not None:
            raise
        return None
    made = comparison.compare(ordered, against, level=level, margin=margin)
    if all(row.verdict == BASELINE for row in made.rows):
        return None
    return replace(made, named=baseline is not None).tuned(tuned)
