"""``rlbench race``: spend seeds only where the verdict is open."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlbench.cli import flags
from rlbench.cli.run import watcher
from rlbench.errors import UsageError
from rlbench.grid import signals
from rlbench.report.text.terminal import Once, can_write, columns, emit, is_terminal, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.grid.attempt import Planned
    from rlbench.grid.race_loop import Raced
    from rlbench.grid.request import Request
    from rlbench.grid.store import Record, Store
    from rlbench.grid.supervisor import Outcome
    from rlbench.report.race.course import Course

POOL = 25  # seeds, where nobody says


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
It takes the flags of rlbench run. Seeds are a pool: all cells get the first of them, then
only cells whose comparison is still open get more.
  rlbench race -e group -e rloo -l clip -l pg --baseline group+clip
  rlbench race -l clip -l pg --max-seeds 50 --looks 10 --margin 0.02
  rlbench race -l clip -l pg --anytime -s 100-149
Typed again, it goes on where it was, and decides the same."""
)
@flags.file
@flags.axes(selecting=False)
@click.option(
    "-s",
    "--seeds",
    multiple=True,
    help=f"Pool of seeds, in their order: 50-99 or 0,3,7; repeatable.  [default: 0-{POOL - 1}]",
)
@flags.settings
@flags.out
@flags.plugin
@flags.execution
@click.option(
    "--baseline",
    cls=Once,
    metavar="CELL",
    help="The cell that others are compared with (default: all pairs are compared).",
)
@click.option(
    "--max-seeds",
    cls=Once,
    type=click.IntRange(min=1),
    metavar="N",
    help="The pool is seeds 0 to N-1.",
)
@click.option(
    "--looks",
    cls=Once,
    type=click.IntRange(min=2, max=100),
    metavar="K",
    help="Planned looks, after equal numbers of seeds.  [default: 5]",
)
@click.option("--anytime", is_flag=True, help="Look after every seed; the pool may grow later.")
@click.option(
    "--alpha",
    cls=Once,
    type=float,
    default=0.05,
    show_default=True,
    callback=_alpha,
    metavar="RATE",
    help="Chance of any wrong claim in the whole race.",
)
@click.option(
    "--margin",
    cls=Once,
    type=float,
    callback=_margin,
    metavar="DIFF",
    help="Differences below this count as none (default: no such claim).",
)
@click.option(
    "--budget",
    cls=Once,
    type=click.IntRange(min=1),
    metavar="RUNS",
    help="Stop before a look for which the race needs more runs than these in all.",
)
@click.option("--dry-run", is_flag=True, help="Only say what it takes at most.")
@flags.format_
@flags.width
@click.option("-q", "--quiet", is_flag=True, help="Only failures and warnings on stderr.")
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
    max_width: int | None,
    quiet: bool,
    **given: Any,
) -> int:
    """Run seeds only until each comparison is decided, with the error rate held over all looks."""
    from rlbench.grid.launch import cores, plan
    from rlbench.grid.race_file import enter
    from rlbench.grid.race_loop import race
    from rlbench.grid.store import Store
    from rlbench.report.race.course import course, forecast, scores, seen_text
    from rlbench.report.race.table import progress
    from rlbench.report.tables.table import check_format
    from rlbench.report.text.spelling import printable

    check_format(format_)
    _check_looks(looks, anytime=anytime)
    request = _with_pool(given, max_seeds, quiet=quiet)
    store, slots = Store(request.out), request.how["workers"] or cores()
    rule: dict[str, Any] = {"looks": looks, "alpha": alpha, "margin": margin, "anytime": anytime}
    load = partial(flags.load, request.plugins)
    made = course(plan(request.specs), store, baseline=baseline, load=load, **rule)
    _check_budget(budget, made.plan.stops[0] * len(made.plan.cells))
    seen = enter(request.out, made.plan, _complete(made.planned, store), dry=dry_run)
    costs = forecast(made, store, workers=slots, seen=seen)
    if dry_run:
        emit("\n".join(map(printable, costs)))
        return 0
    _say_all(costs if not quiet else [f"warning: {seen_text(seen)}"] if seen else [])
    raced = race(
        made.plan,
        made.runs,
        lambda runs: _read(store, runs),
        _Runner(request, slots, quiet=quiet),
        scores,
        budget=budget,
        most_failures=1 if request.how["fail_fast"] else request.how["max_failures"],
        retry=request.how["retry"],
        step=max(1, slots // len(made.plan.cells)),
        tell=lambda before, after: _say_all([] if quiet else progress(made, before, after)),
    )
    with signals.unheard(when=raced.stopped == "interrupted"):
        _print(made, raced, format_, max_width, seen=seen, budget=budget)
    return raced.exit_code


class _Runner:
    """Does what a look needs."""

    def __init__(self, request: Request, slots: int, *, quiet: bool) -> None:
        self._request, self._slots, self._quiet = request, slots, quiet

    def __call__(
        self, runs: Sequence[Planned], most_failures: int | None
    ) -> tuple[list[Record], Outcome]:
        from rlbench.grid.launch import launch

        request = self._request
        limits = {"fail_fast": False, "max_failures": most_failures, "workers": self._slots}
        return launch(
            request.registry,
            runs,
            out=request.out,
            plugins=request.plugins,
            watcher=watcher(runs, request.out, self._slots, quiet=self._quiet),
            note=lambda text: say(f"warning: {text}"),
            **request.arguments() | limits,
        )


def _with_pool(given: Mapping[str, Any], most: int | None, *, quiet: bool) -> Request:
    """Read what was asked for, with the pool of seeds where nothing gives any."""
    from rlbench.grid.experiment_file import read

    if given["seeds"] and most is not None:
        raise UsageError("-s and --max-seeds both give the pool of seeds; give one of them")
    if most is not None:
        given = {**given, "seeds": (f"0-{most - 1}",)}
    request = flags.ask(given, None if quiet else say)
    if request.how["verify"]:
        say("warning: verify is for rlbench run; nothing is repeated")
    if given["seeds"] or (
        given["file"] is not None and read(Path(given["file"])).seeds is not None
    ):
        return request
    grid = replace(request.grid, seeds=list(range(POOL)))
    return replace(request, grid=grid, specs=grid.expand(request.registry))


def _check_looks(looks: int | None, *, anytime: bool) -> None:
    if anytime and looks is not None:
        raise UsageError("--looks plans looks, --anytime looks after every seed; give one of them")


def _check_budget(budget: int | None, first: int) -> None:
    if budget is not None and budget < first:
        raise UsageError(f"--budget {budget}: the first look alone takes {first} runs")


def _read(store: Store, runs: Sequence[Planned]) -> list[Record]:
    return list(store.records(run.run_id for run in runs))


def _complete(runs: Sequence[Planned], store: Store) -> dict[int, int]:
    """Count the complete runs at each seed."""
    found: dict[int, int] = {}
    for run, record in zip(runs, _read(store, runs), strict=True):
        found[run.spec.seed] = found.get(run.spec.seed, 0) + record.complete
    return found


def _say_all(lines: Sequence[str]) -> None:
    for line in lines:
        say(line)


def _print(
    made: Course,
    raced: Raced,
    format_: str,
    max_width: int | None,
    *,
    seen: int,
    budget: int | None,
) -> None:
    """Print the table; where its format has no room for notes, they go to stderr."""
    from rlbench.report.race.legend import remarks
    from rlbench.report.race.table import race_table

    width = max_width if max_width is not None else (columns() if is_terminal(sys.stdout) else 0)
    emit(
        race_table(
            made,
            raced,
            format_,
            width or None,
            seen=seen,
            budget=budget,
            ascii_only=not can_write("±"),
        )
    )
    if format_ in ("csv", "tsv"):
        _say_all(remarks(made, raced, seen=seen, budget=budget))
