"""``rlbench run``: train what is missing of a grid, then show its table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from rlbench.cli import flags
from rlbench.cli.table import print_table
from rlbench.grid import signals
from rlbench.report.text.terminal import Once, is_terminal, say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rlbench.grid.attempt import Planned
    from rlbench.grid.request import Request
    from rlbench.grid.store import Record
    from rlbench.grid.watcher import Watcher

INTERRUPTED = 130


@click.command(
    epilog="""\b
A repeated flag is an axis; the grid is the product of the axes and the seeds.
  rlbench run -e gae:lam=0.9 -e gae -e rloo     three estimators, seeds 0 to 4
  rlbench run -l clip -l pg --set lr=3e-4,1e-3  two losses at two learning rates
  rlbench run -k adaptive:target=0.3 -s 0,3,7   three seeds of one cell
  rlbench run night.toml -s 0-9                 an experiment file, with other seeds
Runs that are on disk already are not repeated."""
)
@flags.grid
@flags.execution
@flags.format_
@flags.width
@click.option(
    "--verify",
    cls=Once,
    type=click.IntRange(min=1),
    metavar="K",
    help="Then repeat K runs elsewhere and compare their numbers.",
)
@click.option("-q", "--quiet", is_flag=True, help="Only failures on stderr.")
@signals.raised()
def run(*, format_: str, max_width: int | None, quiet: bool, **given: Any) -> int:
    """Run a grid, then show its table."""
    from rlbench.grid.axes import ignore
    from rlbench.grid.launch import cores, launch, plan
    from rlbench.report.tables.table import check_format

    check_format(format_)
    request = flags.ask(given, None if quiet else say)
    slots = request.how["workers"] or cores()
    planned = plan(request.specs)
    records, outcome = launch(
        request.registry,
        planned,
        out=request.out,
        plugins=request.plugins,
        watcher=watcher(planned, request.out, slots, quiet=quiet),
        note=lambda text: say(f"warning: {text}"),
        **request.arguments() | {"workers": slots},
    )
    code = int(outcome.exit_code)
    if request.how["verify"] and not outcome.interrupted:
        code = max(code, _verify(request, planned, records, ignore if quiet else say))
    with signals.unheard(when=code == INTERRUPTED):
        print_table(records, format_, max_width)
    return code


def _verify(
    request: Request,
    planned: Sequence[Planned],
    records: Sequence[Record],
    note: Callable[[str], None],
) -> int:
    """Repeat some runs and say what came of it.

    Returns:
        The exit code: 1 if any came to other numbers.
    """
    from rlbench.grid.launch import repeat_some

    try:
        found, interrupted = repeat_some(request, planned, records, note)
    except OSError as error:  # the table is asked for as well
        say(f"warning: nothing could be repeated in {request.out}: {error.strerror or error}")
        return 1
    for one in found:
        if not one.same:
            say(f"warning: {one.run_id} was run again: {one.text}")
    same = sum(one.same is True for one in found)
    note(f"{same} of {len(found)} repeated runs have the same bytes")
    return INTERRUPTED if interrupted else int(any(one.same is False for one in found))


def watcher(planned: Sequence[Planned], out: Path, workers: int, *, quiet: bool) -> Watcher:
    """Choose how to show the progress."""
    from rlbench.grid.store import Store
    from rlbench.report.progress import Display, Lines, typical_seconds

    if quiet or not is_terminal(sys.stderr):
        return Lines(out=out, workers=workers, say=say, quiet=quiet)
    sample = planned[:: 1 + len(planned) // 200]  # an average needs no more of a large grid
    earlier_s = typical_seconds(Store(out).records(run.run_id for run in sample))
    return Display(out=out, workers=workers, say=say, earlier_s=earlier_s)
