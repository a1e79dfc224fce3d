"""``rlbench run``: train what is missing of a grid, then show its table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from rlbench.cli import flags
from rlbench.cli.flags import load
from rlbench.cli.table import print_table
from rlbench.report.terminal import Once, is_terminal, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.grid.supervisor import Planned, Watcher
    from rlbench.types import Kind


@click.command(
    epilog="""\b
A repeated flag is an axis; the grid is the product of the axes and the seeds.
  rlbench run -e gae:lam=0.9 -e gae -e rloo     three estimators, seeds 0 to 4
  rlbench run -l clip -l pg --set lr=3e-4,1e-3  two losses at two learning rates
  rlbench run -k adaptive:target=0.3 -s 0,3,7   three seeds of one cell
Runs that are on disk already are not repeated."""
)
@flags.axes(selecting=False)
@click.option("--track", "trackers", multiple=True, metavar="NAME", help="Tracker; repeatable.")
@click.option("--engine", cls=Once, default="local", show_default=True, help="Where runs execute.")
@click.option(
    "-s",
    "--seeds",
    multiple=True,
    default=("0-4",),
    show_default=True,
    help="Seeds: 0-4 or 0,3,7; repeatable.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VAL[,VAL]",
    help="Trainer setting; repeatable (rlbench list setting).",
)
@flags.out
@click.option(
    "-j",
    "--workers",
    cls=Once,
    type=click.IntRange(min=1),
    metavar="N",
    help="Runs at the same time (default: cores).",
)
@flags.plugin
@click.option(
    "--timeout",
    cls=Once,
    type=float,
    callback=flags.positive_seconds,
    metavar="SECONDS",
    help="The most a run may take.",
)
@click.option("--retry", is_flag=True, help="Repeat failed, diverged and timed-out runs.")
@click.option("--fail-fast", is_flag=True, help="Start nothing more after a failure.")
@flags.format_
@flags.width
@click.option("-q", "--quiet", is_flag=True, help="Only failures on stderr.")
def run(
    *,
    trackers: tuple[str, ...],
    engine: str,
    seeds: tuple[str, ...],
    settings: tuple[str, ...],
    out: Path | None,
    workers: int | None,
    plugins: tuple[str, ...],
    timeout: float | None,
    retry: bool,
    fail_fast: bool,
    format_: str,
    max_width: int | None,
    quiet: bool,
    **axes: tuple[str, ...],
) -> int:
    """Run a grid, then show its table."""
    from rlbench.grid.experiment import build
    from rlbench.grid.launch import cores, launch, plan
    from rlbench.report.tables import check_format

    check_format(format_)
    registry = load(plugins)
    note = None if quiet else say
    specs = build(
        registry,
        selections=cast("Mapping[Kind, tuple[str, ...]]", axes),
        settings=settings,
        seeds=",".join(seeds),
        note=note,
    )
    folder = out or Path(flags.DEFAULT_OUT)
    slots = workers or cores()
    planned = plan(specs)
    records, outcome = launch(
        registry,
        planned,
        out=folder,
        plugins=plugins,
        trackers=trackers,
        engine=engine,
        workers=slots,
        watcher=_watcher(planned, folder, slots, quiet=quiet),
        timeout_s=timeout,
        retry=retry,
        fail_fast=fail_fast,
    )
    print_table(records, format_, max_width)
    return int(outcome.exit_code)


def _watcher(planned: Sequence[Planned], out: Path, workers: int, *, quiet: bool) -> Watcher:
    """Choose how to show the progress."""
    from rlbench.grid.store import Store
    from rlbench.report.progress import Display, Lines, typical_seconds

    if quiet or not is_terminal(sys.stderr):
        return Lines(out=out, workers=workers, say=say, quiet=quiet)
    earlier_s = typical_seconds(map(Store(out).record, (run.run_id for run in planned)))
    return Display(out=out, workers=workers, say=say, earlier_s=earlier_s)
