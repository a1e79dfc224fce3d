"""``rlbench effects``: which factor of a grid makes the difference, and do factors interact."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import click

from rlbench.cli import flags, selecting
from rlbench.report.terminal import Once, can_write, columns, emit, is_terminal, say

if TYPE_CHECKING:
    from pathlib import Path

    from rlbench.report.metric import Direction


def _margin(_context: click.Context, _parameter: click.Parameter, value: float | None) -> Any:
    if value is not None and not (0 < value < math.inf):
        raise click.BadParameter(f"{value:g} is not a positive difference.")
    return value


@click.command(
    epilog="""\b
  rlbench effects results/local
  rlbench effects --factor loss --factor lr -e group --margin 0.02
A factor is a column in which cells differ: a kind of component or a setting. Tasks are
shown one after the other."""
)
@selecting.folder
@selecting.selection
@click.option(
    "--factor",
    "factors",
    multiple=True,
    metavar="NAME",
    help="Factors, in this order (default: all that differ); repeatable.",
)
@click.option(
    "--margin",
    cls=Once,
    type=float,
    callback=_margin,
    metavar="DIFF",
    help="Effects below this count as none (default: no such claim).",
)
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
    margin: float | None,
    metric: str,
    direction: Direction | None,
    level: float,
    format_: str,
    max_width: int | None,
    **axes: tuple[str, ...],
) -> None:
    """Estimate main effects and interactions of a grid, seed by seed."""
    from rlbench.report.cells import cells
    from rlbench.report.effects import effects as computed
    from rlbench.report.effects_table import effects_table, remarks
    from rlbench.report.factorial import grids
    from rlbench.report.metric import metric as metric_named
    from rlbench.report.tables import check_format

    check_format(format_)
    records = selecting.read(selecting.root(folder, out))
    chosen = selecting.choose(records, axes=axes, seeds=seeds, settings=settings, plugins=plugins)
    for record in chosen:
        if record.problem:
            say(f"warning: {record.problem}")
    found = cells(chosen, metric_named(metric, direction))
    made = [computed(grid, level=level, margin=margin) for grid in grids(found, factors)]
    width = max_width if max_width is not None else (columns() if is_terminal(sys.stdout) else 0)
    emit(effects_table(made, format_, width or None, ascii_only=not can_write("±")))
    if format_ in ("csv", "tsv"):
        for line in (line for one in made for line in remarks(one)):
            say(line)
