"""``rlbench gate``: stop where new results are worse than old ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from rlbench.cli import flags, selecting
from rlbench.errors import NothingSelected, UsageError
from rlbench.report.text.terminal import Folder, Once, can_write, emit, say

if TYPE_CHECKING:
    from pathlib import Path

    from rlbench.report.cells.cell import Cell
    from rlbench.report.cells.metric import Direction, Metric


def _margin(_context: click.Context, _parameter: click.Parameter, value: float) -> Any:
    if not 0 <= value < math.inf:
        raise click.BadParameter(f"{value:g} is not a loss, from 0 on.")
    return value


@click.command(
    epilog="""\b
  rlbench gate results/main results/branch
  rlbench gate results/main results/branch --margin 0.02 --prove
  rlbench gate old new --metric wall_s --margin 5
Cells are the same where components and settings are, whatever source or version made them.
Exit codes: 0 nothing is worse, 1 a cell is worse, gone or can't be judged, 3 none can be."""
)
@click.argument("old", type=Folder())
@click.argument("new", type=Folder())
@selecting.narrowing
@flags.metric
@flags.direction
@click.option(
    "--margin",
    cls=Once,
    type=float,
    default=0.0,
    show_default=True,
    callback=_margin,
    metavar="LOSS",
    help="Mean loss that is tolerated.",
)
@click.option(
    "--prove", is_flag=True, help="Also stop where a loss above --margin is not excluded."
)
@flags.level
@flags.format_
def gate(
    *,
    old: Path,
    new: Path,
    metric: str,
    direction: Direction | None,
    margin: float,
    prove: bool,
    level: float,
    format_: str,
    seeds: tuple[str, ...],
    settings: tuple[str, ...],
    plugins: tuple[str, ...],
    **axes: tuple[str, ...],
) -> int:
    """Exit with 1 if new results are worse than old ones."""
    from rlbench.report.cells.metric import metric as metric_named
    from rlbench.report.gate import gate as gating
    from rlbench.report.gate.table import gate_table, headline, remarks
    from rlbench.report.tables.table import check_format

    check_format(format_)
    if prove and margin == 0:
        raise UsageError("--prove needs --margin: no number of seeds proves a loss of exactly 0")
    what = metric_named(metric, direction)
    olds, news = (
        _cells(root, what, axes=axes, seeds=seeds, settings=settings, plugins=plugins)
        for root in (old, new)
    )
    made = gating.gate(olds, news, margin=margin, level=level, proof=prove)
    emit(gate_table(made, format_, ascii_only=not can_write("±")))
    if format_ in ("csv", "tsv"):
        for line in remarks(made):
            say(line)
    say(headline(made))
    return int(not made.passes)


def _cells(root: Path, metric: Metric, **chosen: Any) -> list[Cell]:
    """Read the cells of one folder that are selected."""
    records = selecting.read(root)
    try:
        kept = selecting.choose(records, **chosen)
    except NothingSelected as error:
        raise NothingSelected(f"{root}: {error}") from error
    return selecting.cells(kept, metric)
