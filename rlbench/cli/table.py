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


@click.command(
    epilog="""\b
  rlbench table results/local --format github
  rlbench table -e gae -e rloo -l clip
A name selects all its variants; with options, those that have these values."""
)
@selecting.folder
@selecting.selection
@flags.format_
@flags.width
def table(
    *,
    folder: Path | None,
    out: Path | None,
    seeds: tuple[str, ...],
    settings: tuple[str, ...],
    plugins: tuple[str, ...],
    format_: str,
    max_width: int | None,
    **axes: tuple[str, ...],
) -> None:
    """Show the results in a folder, one row a cell."""
    from rlbench.report.tables import check_format

    check_format(format_)
    chosen = selecting.choose(
        selecting.read(selecting.root(folder, out)),
        axes=axes,
        seeds=seeds,
        settings=settings,
        plugins=plugins,
    )
    print_table(chosen, format_, max_width)


def print_table(records: list[Record], format_: str, max_width: int | None) -> None:
    """Print the table; where its format has no room for notes, they go to stderr."""
    from rlbench.report.cells import cells, labels_of
    from rlbench.report.notes import notes
    from rlbench.report.tables import ranked, table

    shown = cells(records)
    for record in records:
        if record.problem:
            say(f"warning: {record.problem}")
    if not shown:
        raise NothingSelected("none of these folders holds a run that can be read")
    width = max_width if max_width is not None else (columns() if is_terminal(sys.stdout) else 0)
    emit(table(shown, format_, width or None, ascii_only=not can_write("±")))
    if format_ in ("csv", "tsv"):
        labels = labels_of(shown)
        for line in notes(ranked(shown, labels), labels):
            say(line)
