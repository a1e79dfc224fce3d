"""``rlbench table``: show what is on disk."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from rlbench.cli import flags
from rlbench.cli.flags import load
from rlbench.errors import NothingSelected, UsageError
from rlbench.report.terminal import Folder, can_write, columns, emit, is_terminal, say

if TYPE_CHECKING:
    from rlbench.grid.store import Record
    from rlbench.types import Kind


@click.command(
    epilog="""\b
  rlbench table results/local --format github
  rlbench table -e gae -e rloo -l clip
A name selects all its variants; with options, those that have these values."""
)
@click.argument("folder", metavar="[OUT]", required=False, type=Folder())
@flags.out
@flags.axes(selecting=True)
@click.option("-s", "--seeds", multiple=True, help="Only these seeds; repeatable.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VAL[,VAL]",
    help="Only runs with these settings; repeatable.",
)
@flags.plugin
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
    from rlbench.grid.axes import parse_seeds, parse_settings
    from rlbench.grid.store import Store
    from rlbench.report.select import select
    from rlbench.report.tables import check_format

    check_format(format_)
    if folder and out and folder != out:
        raise UsageError(f"two folders of results were given, {folder} and {out}; give one")
    root = folder or out or Path(flags.DEFAULT_OUT)
    records = Store(root).read()
    if not records:
        raise NothingSelected(f"no results in {root}; rlbench run -o {root} makes some")
    wanted = {cast("Kind", kind): texts for kind, texts in axes.items() if texts}
    registry = load(plugins) if wanted or plugins or settings else None
    chosen = select(
        records,
        registry,
        wanted,
        seeds=parse_seeds(",".join(seeds)) if seeds else None,
        settings=parse_settings(settings, registry),
        note=say,
    )
    print_table(chosen, format_, max_width)


def print_table(records: list[Record], format_: str, max_width: int | None) -> None:
    """Print the table; where its format has no room for notes, they go to stderr."""
    from rlbench.report.cells import KINDS, cells, differing
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
        labels = differing(shown) or list(KINDS[:3])
        for line in notes(ranked(shown, labels), labels):
            say(line)
