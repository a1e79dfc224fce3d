"""``rlbench compare``: every cell against the baseline of its task."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

import click

from rlbench.cli import flags, selecting, tuning
from rlbench.cli.baseline import baselines
from rlbench.errors import NothingSelected, UsageError
from rlbench.report.cells.metric import SCORE
from rlbench.report.text.terminal import Once, can_write, columns, emit, is_terminal, say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rlbench.grid.normalisation import Scale
    from rlbench.report.cells.cell import Cell
    from rlbench.report.cells.metric import Direction
    from rlbench.report.compare.comparison import Comparison
    from rlbench.report.suite.against import SuiteComparison

_Made = TypeVar("_Made")


@click.command(
    epilog="""\b
  rlbench compare results/local --baseline group+clip
  rlbench compare -l clip --baseline gae:lam=0.9 --margin 0.02
  rlbench compare --baseline "-e group -l clip --set lr=0.001"
  rlbench compare --baseline group+clip --tune lr
  rlbench compare --baseline group+clip --metric kl_nats
  rlbench compare results/atari --suite --normalise human.csv --baseline dqn
A baseline is named by the labels that tell it from the other cells, joined
by +. Without the task, among several, it is the baseline of each task."""
)
@selecting.folder
@selecting.selection
@click.option(
    "--baseline", cls=Once, metavar="CELL", help="The cell that others are compared with."
)
@flags.margin
@flags.metric
@flags.direction
@tuning.option
@click.option("--suite", is_flag=True, help="One row an algorithm: the IQM over all tasks.")
@flags.normalise("a margin is on that scale")
@flags.level
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
    metric: str,
    direction: Direction | None,
    tune: str | None,
    suite: bool,
    normalise: Path | None,
    format_: str,
    max_width: int | None,
    **axes: tuple[str, ...],
) -> None:
    """Compare every cell with a baseline, at common seeds; or algorithms over all tasks."""
    from dataclasses import replace

    from rlbench.grid.normalisation import read_normalisation
    from rlbench.report.cells.metric import metric as metric_named
    from rlbench.report.cells.one_scale import put_on_scales
    from rlbench.report.compare import comparison
    from rlbench.report.tables.table import check_format

    check_format(format_)
    if suite and tune is not None:
        raise UsageError("--tune compares task by task; leave --suite, or --tune")
    if normalise is not None and metric != SCORE.key:
        raise UsageError(f"--normalise is for scores, not for {metric}")
    root = selecting.root(folder, out)
    records = selecting.read(root)
    chosen = selecting.choose(records, axes=axes, seeds=seeds, settings=settings, plugins=plugins)
    found = selecting.cells(chosen, metric_named(metric, direction))
    scales = read_normalisation(normalise) if normalise else None
    if scales is not None and not suite:
        found = put_on_scales(found, scales)
    tuned = tuning.tuned(found, tune) if tune is not None else None
    shown = comparison.in_order(tuned.cells if tuned else found)
    _check_number(shown)
    against = baselines(shown, baseline, plugins)
    if suite:
        over = _over_tasks(shown, against, scales, level=level, margin=margin)
        _print_suite(replace(over, named=baseline is not None), format_, max_width)
        return
    made = comparison.compare(shown, against, level=level, margin=margin)
    unselected = len(records) - len(chosen)
    left_out = f"{unselected:,} of {len(records):,} runs, not selected" if unselected else ""
    made = replace(made, named=baseline is not None, left_out=left_out).tuned(tuned)
    _print(made, format_, max_width)


def _check_number(shown: Sequence[Cell]) -> None:
    from rlbench.report.cells.baseline import but_for_task, spell_cell
    from rlbench.report.cells.cell import labels_of

    labels = labels_of(shown)
    if len(shown) == 1:
        name = spell_cell(shown[0], labels)
        raise NothingSelected(f"there is one cell only, {name}: nothing to compare it with")
    if len({spell_cell(cell, but_for_task(labels)) for cell in shown}) == 1:
        raise NothingSelected(
            f"the {len(shown)} cells differ in nothing but the task: nothing to compare them with"
        )


def _over_tasks(
    shown: Sequence[Cell],
    against: Mapping[str, Cell],
    scales: Mapping[str, Scale] | None,
    *,
    level: float,
    margin: float | None,
) -> SuiteComparison:
    from rlbench.report.suite import against as suites
    from rlbench.report.suite.suite import suite

    made = suite(shown, scales, level=level)
    return suites.against(made, against, level=level, margin=margin)


def _print_suite(made: SuiteComparison, format_: str, max_width: int | None) -> None:
    from rlbench.report.suite.against_table import against_remarks, against_table

    _emit(against_table, against_remarks, made, format_, max_width)


def _print(made: Comparison, format_: str, max_width: int | None) -> None:
    from rlbench.report.compare.legend import remarks
    from rlbench.report.compare.table import comparison_table

    _emit(comparison_table, remarks, made, format_, max_width)


def _emit(
    table: Callable[..., str],
    remarks: Callable[[_Made], list[str]],
    made: _Made,
    format_: str,
    max_width: int | None,
) -> None:
    """Print a table; where its format has no room for notes, they go to stderr."""
    width = max_width if max_width is not None else (columns() if is_terminal(sys.stdout) else 0)
    emit(table(made, format_, width or None, ascii_only=not can_write("±")))
    if format_ in ("csv", "tsv"):
        for line in remarks(made):
            say(line)
