"""``rlbench compare``: every cell against one of them."""

from __future__ import annotations

import math
import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from rlbench.cli import flags, selecting
from rlbench.errors import NothingSelected, UsageError
from rlbench.report.terminal import Once, can_write, columns, emit, is_terminal, say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rlbench.report.cells import Cell
    from rlbench.report.comparison import Comparison

_LEVELS = (0.5, 0.999)


def _level(_context: click.Context, _parameter: click.Parameter, value: float) -> float:
    low, high = _LEVELS
    if not low <= value <= high:  # also where it is not a number
        raise click.BadParameter(f"{value:g} is not in [{low:g}, {high:g}].")
    return value


def _margin(_context: click.Context, _parameter: click.Parameter, value: float | None) -> Any:
    if value is not None and not (0 < value < math.inf):
        raise click.BadParameter(f"{value:g} is not a positive difference of scores.")
    return value


@click.command(
    epilog="""\b
  rlbench compare results/local --baseline group+clip
  rlbench compare -l clip --baseline gae:lam=0.9 --margin 0.02
  rlbench compare --baseline "-e group -l clip --set lr=0.001"
A baseline is named by the labels that tell it from the other cells, joined by +."""
)
@selecting.folder
@selecting.selection
@click.option(
    "--baseline", cls=Once, metavar="CELL", help="The cell that others are compared with."
)
@click.option(
    "--margin",
    cls=Once,
    type=float,
    callback=_margin,
    metavar="DIFF",
    help="Differences of scores below this count as none (default: no such claim).",
)
@click.option(
    "--level",
    cls=Once,
    type=float,
    default=0.95,
    show_default=True,
    callback=_level,
    metavar="LEVEL",
    help="Confidence level.",
)
@flags.format_
@flags.width
def compare(
    *,
    folder: Path | None,
    out: Path | None,
    seeds: tuple[str, ...],
    settings: tuple[str, ...],
    plugins: tuple[str, ...],
    baseline: str | None,
    margin: float | None,
    level: float,
    format_: str,
    max_width: int | None,
    **axes: tuple[str, ...],
) -> None:
    """Compare the cells in a folder with one of them, seed by seed."""
    from dataclasses import replace

    from rlbench.report import comparison
    from rlbench.report.cells import cells
    from rlbench.report.tables import check_format

    check_format(format_)
    records = selecting.read(selecting.root(folder, out))
    chosen = selecting.choose(records, axes=axes, seeds=seeds, settings=settings, plugins=plugins)
    for record in chosen:
        if record.problem:
            say(f"warning: {record.problem}")
    shown = comparison.in_order(cells(chosen))
    _check_number(shown)
    against = _baseline(shown, baseline, plugins)
    made = comparison.compare(shown, against, level=level, margin=margin)
    unselected = len(records) - len(chosen)
    left_out = f"{unselected:,} of {len(records):,} runs, not selected" if unselected else ""
    _print(replace(made, named=baseline is not None, left_out=left_out), format_, max_width)


def _check_number(shown: Sequence[Cell]) -> None:
    from rlbench.report.baseline import spell_cell
    from rlbench.report.cells import labels_of

    if not shown:
        raise NothingSelected("none of these folders holds a run that can be read")
    if len(shown) == 1:
        name = spell_cell(shown[0], labels_of(shown))
        raise NothingSelected(f"there is one cell only, {name}: nothing to compare it with")


def _baseline(shown: Sequence[Cell], text: str | None, plugins: tuple[str, ...]) -> Cell:
    """Find the baseline, given by labels, by flags or not at all."""
    from rlbench.report import baseline

    if text is None:
        return baseline.only_pair(shown)
    wanted = _flags_in(text) if text.lstrip().startswith("-") else text
    return baseline.find(shown, wanted, lambda: flags.load(plugins))


@click.command(add_help_option=False)
@flags.axes(selecting=True)
@click.option("--set", "settings", multiple=True)
def _one_cell(**_given: object) -> None:
    """Read the flags inside the value of --baseline; never invoked."""


def _flags_in(text: str) -> list[tuple[str | None, str]]:
    """Read ``-e group --set lr=0.001`` as columns and what they hold."""
    try:
        given = _one_cell.make_context("rlbench compare", shlex.split(text)).params
    except (click.ClickException, ValueError) as error:
        why = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise UsageError(f"--baseline {text!r}: {why}") from error
    settings = given.pop("settings")
    wishes: list[tuple[str | None, str]] = [
        (kind, value) for kind, values in given.items() for value in values
    ]
    for setting in settings:
        name, _, value = setting.partition("=")
        wishes.append((name.strip(), value.strip()))
    return wishes


def _print(made: Comparison, format_: str, max_width: int | None) -> None:
    """Print the comparison; where its format has no room for notes, they go to stderr."""
    from rlbench.report.verdicts import comparison_table, remarks

    width = max_width if max_width is not None else (columns() if is_terminal(sys.stdout) else 0)
    emit(comparison_table(made, format_, width or None, ascii_only=not can_write("±")))
    if format_ in ("csv", "tsv"):
        for line in remarks(made):
            say(line)
