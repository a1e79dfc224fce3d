"""``rlbench table``: show what is on disk."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from rlbench.cli import flags, selecting
from rlbench.errors import UsageError
from rlbench.report.text.terminal import can_write, columns, emit, is_terminal, say

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlbench.grid.normalisation import Scale
    from rlbench.grid.store import Record
    from rlbench.report.cells.metric import Direction, Metric


@click.command(
    epilog="""\b
  rlbench table results/local --format github
  rlbench table -e gae -e rloo -l clip --iqm
  rlbench table --metric kl_nats
  rlbench table results/atari --suite --normalise random_human.csv
A name selects all its variants; with options, those that have these values."""
)
@selecting.folder
@selecting.selection
@flags.metric
@flags.direction
@click.option("--iqm", is_flag=True, help="Show the interquartile mean too (5 seeds or more).")
@click.option("--suite", is_flag=True, help="One row an algorithm, over all tasks.")
@flags.normalise("for --suite")
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
    suite: bool,
    normalise: Path | None,
    format_: str,
    max_width: int | None,
    **axes: tuple[str, ...],
) -> None:
    """Show the results in a folder, one row a cell, or one row an algorithm over all tasks.

    Task by task, the best row first; equal ones by name, run2 before run10.
    """
    from rlbench.grid.normalisation import read_normalisation
    from rlbench.report.cells.metric import metric as metric_named
    from rlbench.report.tables.table import check_format

    check_format(format_)
    what = metric_named(metric, direction)
    if normalise is not None and not suite:
        raise UsageError("--normalise is for --suite; rlbench import has one for single cells")
    if suite and iqm:
        raise UsageError("--suite shows the IQM anyway; leave --iqm")
    if normalise is not None and what.key != "score":
        raise UsageError(f"--normalise is for scores, not for {what.name}")
    scales = read_normalisation(normalise) if normalise else None
    chosen = selecting.choose(
        selecting.read(selecting.root(folder, out)),
        axes=axes,
        seeds=seeds,
        settings=settings,
        plugins=plugins,
    )
    if suite:
        _print_suite(chosen, format_, max_width, metric=what, scales=scales)
    else:
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
    from rlbench.report.cells.metric import SCORE
    from rlbench.report.tables.table import remarks, table

    shown = selecting.cells(records, metric or SCORE)
    width = _width(format_, max_width)
    emit(table(shown, format_, width, ascii_only=not can_write("±"), iqm=iqm))
    if format_ in ("csv", "tsv"):
        for line in remarks(shown):
            say(line)


def _print_suite(
    records: list[Record],
    format_: str,
    max_width: int | None,
    *,
    metric: Metric,
    scales: Mapping[str, Scale] | None,
) -> None:
    """Print the suite; where its format has no room for notes, they go to stderr."""
    from rlbench.report.suite.suite import suite
    from rlbench.report.suite.table import remarks, suite_table

    made = suite(selecting.cells(records, metric), scales)
    emit(suite_table(made, format_, _width(format_, max_width)))
    if format_ in ("csv", "tsv"):
        for line in remarks(made):
            say(line)


def _width(format_: str, given: int | None) -> int | None:
    """Tell how wide the table may be: what was asked for, or the terminal; None for no limit."""
    from rlbench.report.text.layout import is_markup

    if given is not None:
        return given or None
    return columns() if is_terminal(sys.stdout) and not is_markup(format_) else None
