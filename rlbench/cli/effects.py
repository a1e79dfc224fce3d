"""``rlbench effects``: which factor of a grid makes the difference, and do factors interact."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from rlbench.cli import flags, selecting
from rlbench.errors import UsageError
from rlbench.report.text.terminal import can_write, columns, emit, is_terminal, say

if TYPE_CHECKING:
    from pathlib import Path

    from rlbench.report.cells.metric import Direction


@click.command(
    epilog="""\b
  rlbench effects results/local
  rlbench effects --factor loss --factor lr -e group --margin 0.02
  rlbench effects --across-tasks --normalise scales.csv
A factor is a column in which cells differ: a kind of component or a setting."""
)
@selecting.folder
@selecting.selection
@click.option(
    "--factor",
    "factors",
    multiple=True,
    metavar="NAME",
    help="A factor; repeatable (default: all that differ). Others are averaged over.",
)
@click.option(
    "--main-effects",
    is_flag=True,
    help="Leave interactions: fewer questions, which are corrected less.",
)
@click.option(
    "--simple-effects",
    is_flag=True,
    help="Also compare the levels of each factor at each level of the others.",
)
@click.option(
    "--across-tasks",
    is_flag=True,
    help="The task is a factor, on one scale (default: task by task).",
)
@flags.normalise("for --across-tasks")
@flags.margin
@flags.metric
@flags.direction
@flags.level
@flags.format_
@flags.width
def effects(
    *,
    folder: Path | None,
    out: Path | None,
    seeds: tuple[str, ...],
    settings: tuple[str, ...],
    plugins: tuple[str, ...],
    factors: tuple[str, ...],
    main_effects: bool,
    simple_effects: bool,
    across_tasks: bool,
    normalise: Path | None,
    margin: float | None,
    metric: str,
    direction: Direction | None,
    level: float,
    format_: str,
    max_width: int | None,
    **axes: tuple[str, ...],
) -> None:
    """Estimate main effects and interactions of a grid, seed by seed."""
    from rlbench.grid.normalisation import read_normalisation
    from rlbench.report.cells.metric import metric as metric_named
    from rlbench.report.effects.contrasts import effects as computed
    from rlbench.report.effects.remarks import remarks
    from rlbench.report.effects.table import effects_table
    from rlbench.report.tables.table import check_format

    check_format(format_)
    if normalise is not None and not across_tasks:
        raise UsageError("--normalise is for --across-tasks: within a task there is one scale")
    if normalise is not None and metric != "score":
        raise UsageError(f"--normalise is for scores, not for {metric}")
    records = selecting.read(selecting.root(folder, out))
    chosen = selecting.choose(records, axes=axes, seeds=seeds, settings=settings, plugins=plugins)
    made = computed(
        selecting.cells(chosen, metric_named(metric, direction)),
        factors,
        level=level,
        margin=margin,
        interactions=not main_effects,
        simple=simple_effects,
        across_tasks=across_tasks,
        scales=read_normalisation(normalise) if normalise else None,
    )
    width = max_width if max_width is not None else (columns() if is_terminal(sys.stdout) else 0)
    emit(effects_table(made, format_, width or None, ascii_only=not can_write("±")))
    if format_ in ("csv", "tsv"):
        for line in remarks(made):
            say(line)
