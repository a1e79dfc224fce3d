"""``rlbench table``: show what is on disk."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from rlbench.cli import flags, selecting
from rlbench.errors import NothingSelected
from rlbench.report.terminal import can_write, columns, emit, is_terminal, say

if TYPE_CHECKING:
    from pathlib import Path

    from rlbench.grid.store import Record
    from rlbench.report.metric import Direction, Metric


@click.command(
    epilog="""\b
  rlbench table results/local --format github
  rlbench table -e gae -e rloo -l clip --iqm
  rlbench table --metric kl_nats
A name selects all its variants; with options, those that have these values."""
)
@selecting.folder
@selecting.selection
@flags.metric
@flags.direction
@click.option("--iqm", is_flag=True, help="Show the interquartile mean too (5 seeds or more).")
@flags.format_
@flags.width
def table(
    *,
    folder: Path | None,
    out: Path | None,
    seeds: tuple[str, ...],
    settings: tuple[str, ...],
    plugins: tuple[str, ...],
    metric: str,
    direction: Direction | None,
    iqm: bool,
    format_: str,
    max_width: int | None,
    **axes: tuple[str, ...],
) -> None:
    """Show the results in a folder, one row a cell."""
    from rlbench.report.metric import metric as metric_named
    from rlbench.report.tables import check_format

    check_format(format_)
    what = metric_named(metric, direction)
    chosen = selecting.choose(
        selecting.read(selecting.root(folder, out)),
        axes=axes,
        seeds=seeds,
        settings=settings,
        plugins=plugins,
    )
    print_table(chosen, format_, max_width, metric=what, iqm=iqm)


def print_table(
    records: list[Record],
    format_: str,
    max_width: int | None,
    *,
    metric: Metric | None = None,
    iqm: bool = False,
) -> None:
    """Print the table; where its format has no room for notes, they go to stderr."""
    from rlbench.report.cells import cells
    from rlbench.report.metric import SCORE
    from rlbench.report.tables import remarks, table

    for record in records:
        if record.problem:
            say(f"warning: {record.problem}")
    shown = cells(records, metric or SCORE)
    if not shown:
        raise NothingSelected("none of these folders holds a run that can be read")
    width = _width(format_, max_width)
    emit(table(shown, format_, width, ascii_only=not can_write("±"), iqm=iqm))
    if format_ in ("csv", "tsv"):
        for line in remarks(shown):
            say(line)


def _width(format_: str, given: int | None) -> int | None:
    """Tell how wide the table may be: what was asked for, or the terminal; None for no limit."""
    from rlbench.report.layout import is_markup

    if given is not None:
        return given or None
    return columns() if is_terminal(sys.stdout) and not is_markup(format_) else None
