"""``rlbench race``: spend seeds only where the verdict is open."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from rlbench.cli import flags
from rlbench.cli.run import INTERRUPTED, watcher
from rlbench.errors import UsageError
from rlbench.grid import signals
from rlbench.report.terminal import Once, emit, say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import ModuleType

    from rlbench.grid.attempt import Planned
    from rlbench.grid.request import Request
    from rlbench.report.race import Track


def _margin(_context: click.Context, _parameter: click.Parameter, value: float | None) -> Any:
    if value is not None and not (0 < value < math.inf):
        raise click.BadParameter(f"{value:g} is not a positive difference.")
    return value


def _alpha(_context: click.Context, _parameter: click.Parameter, value: float) -> Any:
    if not 0.001 <= value <= 0.5:
        raise click.BadParameter(f"{value:g} is not in [0.001, 0.5].")
    return value


@click.command(
    epilog="""\b
It takes the flags of rlbench run; seeds are a pool that is spent in its order.
  rlbench race -e group -e rloo -l clip -l pg --baseline group+clip
  rlbench race -l clip -l pg --max-seeds 50 --looks 10 --margin 0.02
  rlbench race -l clip -l pg --anytime -s 0-49
All is kept in the folder: typed again, it goes on, and decides the same."""
)
@flags.grid
@flags.execution
@click.option(
    "--baseline",
    cls=Once,
    metavar="CELL",
    help="What the others are compared with (default: all pairs are).",
)
@click.option(
    "--max-seeds",
    cls=Once,
    type=click.IntRange(min=3),
    metavar="N",
    help="Seeds 0 to N-1 are the pool.  [default: 25, if no -s is given]",
)
@click.option(
    "--looks",
    cls=Once,
    type=click.IntRange(min=1, max=50),
    metavar="K",
    help="Planned looks, after equal numbers of seeds.  [default: 5]",
)
@click.option("--anytime", is_flag=True, help="Look after every seed, by an e-process.")
@click.option(
    "--alpha",
    cls=Once,
    type=float,
    default=0.05,
    show_default=True,
    callback=_alpha,
    help="Error rate of the whole race.",
)
@click.option(
    "--margin",
    cls=Once,
    type=float,
    callback=_margin,
    metavar="DIFF",
    help="Differences of scores below this count as none.",
)
@click.option(
    "--budget",
    cls=Once,
    type=click.IntRange(min=1),
    metavar="RUNS",
    help="Stop before a look that would need more runs than this in all.",
)
@click.option("--dry-run", is_flag=True, help="Only say what it may cost.")
@flags.format_
@click.option("-q", "--quiet", is_flag=True, help="Only failures on stderr.")
@signals.raised()
def race(
    *,
    baseline: str | None,
    max_seeds: int | None,
    looks: int | None,
    anytime: bool,
    alpha: float,
    margin: float | None,
    budget: int | None,
    dry_run: bool,
    format_: str,
    quiet: bool,
    **given: Any,
) -> int:
    """Run seeds until the verdicts are in, with the error rate held."""
    from rlbench.grid.launch import cores, plan
    from rlbench.grid.race import make_plan
    from rlbench.grid.store import Store
    from rlbench.report import race as racing
    from rlbench.report.progress import typical_seconds
    from rlbench.report.race_table import announcement, race_table, remarks, standing_line
    from rlbench.report.tables import check_format

    check_format(format_)
    if anytime and looks is not None:
        raise UsageError("--looks plans looks; --anytime looks after every seed: give one of them")
    request = flags.ask(_with_pool(given, max_seeds), None if quiet else say)
    planned = plan(request.specs)
    store = Store(request.out)
    track = racing.lay_out(planned, store)
    made_plan = make_plan(
        tuple(track.cells),
        tuple(dict.fromkeys(spec.seed for spec in request.specs)),
        baseline=None if baseline is None else _baseline(track, baseline, request.plugins),
        looks=looks or 5,
        mode="anytime" if anytime else "planned",
        alpha=alpha,
        margin=margin,
    )
    slots = request.how["workers"] or cores()
    earlier_s = typical_seconds(store.records(run.run_id for run in planned[:200]))
    if dry_run or not quiet:
        say(announcement(made_plan, earlier_s, slots))
    if dry_run:
        return 0
    runner = _Runner(request, slots, quiet=quiet)
    made = racing.run_race(
        made_plan,
        track,
        request.out,
        runner,
        budget=budget,
        tell=None if quiet else lambda state: say(standing_line(state)),
    )
    with signals.unheard(when=runner.code == INTERRUPTED):
        emit(race_table(made, format_))
        if format_ in ("csv", "tsv"):
            for line in remarks(made):
                say(line)
    stopped = made.state.look is not None and not made.out_of_budget
    return max(runner.code, int(stopped))


class _Runner:
    """Executes what a look needs, and keeps the worst exit code."""

    def __init__(self, request: Request, slots: int, *, quiet: bool) -> None:
        self.code = 0
        self._request, self._slots, self._quiet = request, slots, quiet

    def __call__(self, runs: list[Planned]) -> bool:
        from rlbench.grid.launch import launch

        request = self._request
        _, outcome = launch(
            request.registry,
            runs,
            out=request.out,
            plugins=request.plugins,
            watcher=watcher(runs, request.out, self._slots, quiet=self._quiet),
            note=lambda text: say(f"warning: {text}"),
            **request.arguments() | {"workers": self._slots},
        )
        self.code = max(self.code, int(outcome.exit_code))
        return not outcome.interrupted


def _with_pool(given: dict[str, Any], most: int | None) -> dict[str, Any]:
    """Fill in the pool of seeds where the flags or the file give none."""
    if given["seeds"]:
        if most is not None:
            raise UsageError("-s and --max-seeds both give the pool of seeds; give one")
        return given
    if given["file"] is not None and most is None:
        return given  # what it says, or the default of run
    return given | {"seeds": (f"0-{(most or 25) - 1}",)}


def _baseline(track: Track, text: str, plugins: Sequence[str | Path | ModuleType]) -> str:
    """Find the cell that is meant."""
    from rlbench.report import baseline

    if text in track.cells:
        return text
    cells = list(track.cells.values())
    found = baseline.find(cells, text, lambda: flags.load(plugins))
    (cell,) = found.values()  # a race has one task
    return next(name for name, one in track.cells.items() if one is cell)
