"""Flags that choose results: which folder, which components, which settings, which seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rlbench.cli import flags
from rlbench.errors import NothingSelected, UsageError
from rlbench.report.text.terminal import Folder, say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlbench.grid.store import Record
    from rlbench.plugin.registry import Registry
    from rlbench.report.cells.cell import Cell
    from rlbench.report.cells.metric import Metric

_Command = TypeVar("_Command", bound="Callable[..., Any]")

folder = click.argument("folder", metavar="[OUT]", required=False, type=Folder())


def selection(command: _Command) -> _Command:
    """Add ``-o`` and what narrows the runs of a folder."""
    return flags.out(narrowing(command))


def narrowing(command: _Command) -> _Command:
    """Add ``-e`` to ``-m``, ``-a``, ``-s``, ``--set`` and ``--plugin``."""
    command = flags.plugin(command)
    command = click.option(
        "-a",
        "--algorithm",
        multiple=True,
        metavar="NAME",
        help="Algorithm of imported results.  Only these.",
    )(command)
    command = click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=VAL[,VAL]",
        help="Only runs with these settings; repeatable.",
    )(command)
    command = click.option("-s", "--seeds", multiple=True, help="Only these seeds; repeatable.")(
        command
    )
    return flags.axes(selecting=True)(command)


def root(folder: Path | None, out: Path | None) -> Path:
    """Tell the folder of results, given as an argument, as an option or not at all."""
    if folder and out and folder != out:
        raise UsageError(f"two folders of results were given, {folder} and {out}; give one")
    return folder or out or Path(flags.DEFAULT_OUT)


def read(root: Path) -> list[Record]:
    """Read all runs of a folder.

    Raises:
        NothingSelected: There is none.
    """
    from rlbench.grid.store import Store

    records = Store(root).read()
    if not records:
        raise NothingSelected(f"no results in {root}; rlbench run -o {root} makes some")
    return records


def is_given(axes: Mapping[str, tuple[str, ...]], *others: tuple[str, ...]) -> bool:
    """Whether anything is selected at all."""
    return any(axes.values()) or any(others)


def choose(
    records: list[Record],
    *,
    axes: Mapping[str, tuple[str, ...]],
    seeds: tuple[str, ...],
    settings: tuple[str, ...],
    plugins: tuple[str, ...],
) -> list[Record]:
    """Keep the runs that the flags select; what is not there is said on stderr."""
    from rlbench.grid.axes import parse_seeds, parse_settings
    from rlbench.report.cells.select import select

    wanted = {kind: texts for kind, texts in axes.items() if texts}
    registry: Registry | None = None
    if wanted or plugins or settings:
        registry = flags.load(plugins)
    return select(
        records,
        registry,
        wanted,
        seeds=parse_seeds(",".join(seeds)) if seeds else None,
        settings=parse_settings(settings, registry),
        note=say,
    )


def cells(records: Sequence[Record], metric: Metric) -> list[Cell]:
    """Group runs into cells; what is wrong with one is said on stderr.

    Raises:
        NothingSelected: None of them can be read, or none has that number.
    """
    from rlbench.grid.reading import COLUMNS
    from rlbench.report.cells.cell import cells as grouped

    for record in records:
        if record.problem:
            say(f"warning: {record.problem}")
    found = grouped(records, metric)
    if not found:
        raise NothingSelected("none of these folders holds a run that can be read")
    if not any(cell.mean(metric.key) is not None or not cell.ok for cell in found):
        there = [
            name for name, key in COLUMNS.items() if any(c.mean(key) is not None for c in found)
        ]
        raise NothingSelected(f"no result has {metric.name}; there are: {', '.join(there)}")
    return found
