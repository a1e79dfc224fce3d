"""``rlbench export``, ``merge``, ``rm`` and ``why``: what is done with results that are there."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlbench.cli import flags, selecting
from rlbench.errors import NothingSelected, PluginError, UsageError
from rlbench.grid import signals
from rlbench.report.text.terminal import Folder, Once, columns, emit, is_terminal, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.grid.store import Record, Store

_INTERRUPTED = 130
_NAMED = 5  # runs that are named before they are removed


@click.command(
    epilog="""\b
  rlbench export results/local > runs.csv
  rlbench export -e gae --curves --to curves.parquet"""
)
@selecting.folder
@selecting.selection
@click.option(
    "--to",
    cls=Once,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A .csv or .parquet file (default: CSV on stdout).",
)
@click.option("--curves", is_flag=True, help="One row a run and update, from metrics.csv.")
@click.option("--force", is_flag=True, help="Overwrite the file of --to.")
@signals.raised()
def export(
    *,
    folder: Path | None,
    out: Path | None,
    seeds: tuple[str, ...],
    settings: tuple[str, ...],
    plugins: tuple[str, ...],
    to: Path | None,
    curves: bool,
    force: bool,
    **axes: tuple[str, ...],
) -> int:
    """Write results as one tidy table, one row a run, with every digit.

    A setting has a column if it differs between the runs or is not at its default; it is called
    setting.NAME where another column has its name.
    """
    from rlbench.report.cells import export as exporting

    if to is not None:
        exporting.check_target(to, force=force)
    elif force:
        raise UsageError("--force overwrites the file of --to, and there is no --to")
    try:
        records = selecting.choose(
            selecting.read(selecting.root(folder, out)),
            axes=axes,
            seeds=seeds,
            settings=settings,
            plugins=plugins,
        )
        frame = (exporting.curves if curves else exporting.runs)(records, say)
        if frame.empty:
            raise NothingSelected("nothing to export: no selected run can be read")
        if to is None:
            emit(exporting.csv(frame))
        else:
            exporting.write(frame, to)
    except KeyboardInterrupt:
        left = "what is on stdout is not all" if to is None else f"{to} is as it was"
        say(f"interrupted: {left}; the same command begins again")
        return _INTERRUPTED
    if to is not None:
        say(f"{len(frame):,} rows in {to}")
    return 0


@click.command(
    epilog="""\b
  rlbench merge from-laptop from-cluster -o results/all
A run that is there already is kept once; the same run with other numbers is named, and left,
and so is one with files that can't be read. Plans of races come along."""
)
@click.argument("sources", metavar="FROM...", nargs=-1, required=True, type=Folder())
@click.option("-o", "--out", cls=Once, type=Folder(), help="Folder to merge into; always needed.")
@signals.raised()
def merge(*, sources: tuple[Path, ...], out: Path | None) -> int:
    """Copy the runs of other folders into one."""
    from rlbench.grid import merge as merging
    from rlbench.grid.store import Store

    if out is None:
        raise UsageError("name the folder to merge into with -o")
    steps = merging.merge([Store(source) for source in sources], Store(out))
    counts: Counter[str] = Counter()
    problem = ""
    try:
        for step in steps:
            counts[step.what] += step.is_run
            if step.why:
                say(f"{step.what}: {step.name}: {step.why}")
    except OSError as error:  # the disk is full, say
        what = f"{error.strerror or error}{f' ({error.filename})' if error.filename else ''}"
        problem = f"stopped: {what}; mend that, and the same command does the rest; so far "
    except KeyboardInterrupt:
        say(f"interrupted; the same command does the rest; so far {_merged(counts, out)}")
        return _INTERRUPTED
    say(f"{problem}{_merged(counts, out)}")
    return int(bool(problem) or counts["conflict"] + counts["not whole"] > 0)


def _merged(counts: Counter[str], out: Path) -> str:
    from rlbench.grid.merge import WORDS

    parts = [f"{count:,} {WORDS[what]}" for what, count in counts.items() if count]
    return f"{', '.join(parts) or 'no run'}; results in {out}"


@click.command(
    epilog="""\b
  rlbench rm results/local --failed
  rlbench rm -e gae:lam=0.9 -s 3-4
  rlbench rm 3f2a9c01d4 --yes
A run is named as in the folder, or by the beginning or end of that name."""
)
@click.argument("targets", metavar="[OUT] [RUN]...", nargs=-1)
@selecting.selection
@click.option("--failed", is_flag=True, help="Only runs that failed, diverged or timed out.")
@click.option("--outdated", is_flag=True, help="Only runs that today's code would name otherwise.")
@click.option("--all", "everything", is_flag=True, help="All runs.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def rm(
    *,
    targets: tuple[str, ...],
    out: Path | None,
    seeds: tuple[str, ...],
    settings: tuple[str, ...],
    plugins: tuple[str, ...],
    failed: bool,
    outdated: bool,
    everything: bool,
    yes: bool,
    **axes: tuple[str, ...],
) -> int:
    """Remove runs from a folder of results, after asking."""
    from rlbench.grid.remove import removable, remove

    store, names = _folder_and_runs(targets, out)
    narrowed = failed or outdated or bool(names) or selecting.is_given(axes, seeds, settings)
    if narrowed == everything:
        some = "runs by name, -e to -m, -s, --set, --failed or --outdated"
        raise UsageError(
            f"--all removes all runs; leave it out beside {some}"
            if everything
            else f"say which runs to remove: {some}; --all removes all of them"
        )
    found = selecting.choose(
        _named(selecting.read(store.root), names, store),
        axes=axes,
        seeds=seeds,
        settings=settings,
        plugins=plugins,
    )
    if failed:
        found = [record for record in found if record.status in ("failed", "diverged", "timeout")]
    if outdated:
        found = _outdated(found, plugins)
    for record in found:
        if not removable(record):
            say(f"left: {record.problem or record.folder}")
    found = [record for record in found if removable(record)]
    if not found:
        raise NothingSelected(f"no run to remove in {store.root}")
    if not _agreed(found, store.root, yes=yes):
        say("nothing was removed")
        return 1
    left = [why for record in found if (why := remove(store, record)) is not None]
    for why in left:
        say(f"left: {why}")
    say(f"removed {_runs(len(found) - len(left))}")
    return int(bool(left))


@click.command(
    epilog="""\b
  rlbench why 3f2a9c01d4 86e8fada46
  rlbench why results/local/runs/RUN again-3f2a9c01d4/runs/RUN
A run is named as in the folder, by the beginning or end of that name, or by its path."""
)
@click.argument("first", metavar="RUN")
@click.argument("second", metavar="RUN")
@flags.out
def why(*, first: str, second: str, out: Path | None) -> None:
    """Say what differs between two runs."""
    from rlbench.grid.repeat import find
    from rlbench.grid.store import Store
    from rlbench.report.run import comparison_text

    store = Store(out or Path(flags.DEFAULT_OUT))
    emit(comparison_text(find(first, store), find(second, store), columns()))


def _folder_and_runs(targets: tuple[str, ...], out: Path | None) -> tuple[Store, list[str]]:
    """Tell the folder of results from names of runs: it has runs in it.

    Raises:
        UsageError: There are several, or one is the folder of a single run.
        NothingSelected: A path is given, and no results are there.
    """
    from rlbench.grid.store import SPEC, Store

    folders = [target for target in targets if Store(Path(target)).runs_folder.is_dir()]
    if len(folders) > 1:
        raise UsageError(f"folders of results were given: {', '.join(folders)}; give one")
    folder = Path(folders[0]) if folders else None
    names = [target for target in targets if target not in folders]
    for name in names:
        if os.sep not in name:
            continue
        path = Path(name)
        if (path / SPEC).is_file():
            where = path.absolute().parent.parent
            raise UsageError(f"{name} is one run; write rlbench rm -o {where} {path.name}")
        raise NothingSelected(f"no results in {name}")
    return Store(selecting.root(folder, out)), names


def _named(records: list[Record], names: Sequence[str], store: Store) -> list[Record]:
    """Keep the runs that are named; all if none is."""
    from rlbench.grid.repeat import find_name

    if not names:
        return records
    wanted = {find_name(name, store) for name in names}
    return [record for record in records if record.run_id in wanted]


def _outdated(records: Sequence[Record], plugins: tuple[str, ...]) -> list[Record]:
    """Keep what today's code would name otherwise; what can't be judged stays and is named."""
    from rlbench.grid.repeat import here, judge

    try:
        registry = flags.load((*plugins, *here(records)))
    except PluginError as error:
        if plugins:
            raise
        say(f"warning: {error}")
        registry = flags.load(())
    old, unknown = judge(registry, records)
    for why, count in Counter(unknown.values()).items():
        say(f"left: {_runs(count)} that can't be judged: {why}")
    return old


def _agreed(records: Sequence[Record], root: Path, *, yes: bool) -> bool:
    """Ask, where somebody can answer.

    Raises:
        UsageError: Nobody can.
    """
    if yes:
        return True
    states = Counter(record.status for record in records)
    counts = ", ".join(f"{count} {status}" for status, count in sorted(states.items()))
    what = f"{_runs(len(records))} ({counts}) from {root}"
    if not is_terminal(sys.stdin):
        raise UsageError(f"to remove {what} without a terminal to ask on, add --yes")
    for record in records[:_NAMED]:
        say(f"  {record.run_id}")
    if len(records) > _NAMED:
        say(f"  ... and {len(records) - _NAMED:,} more")
    return click.confirm(f"remove {what}?", err=True)


def _runs(count: int) -> str:
    return f"{count:,} run{'' if count == 1 else 's'}"
