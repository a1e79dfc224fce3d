"""Run a grid: what the command line and `rlbench.run` have in common."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlbench.errors import UsageError
from rlbench.grid import signals
from rlbench.grid.attempt import Planned
from rlbench.grid.axes import ignore, spell_settings
from rlbench.grid.experiment_file import HOW
from rlbench.grid.identity import Catalogue
from rlbench.grid.request import ask
from rlbench.grid.store import Record, Store
from rlbench.grid.supervisor import Outcome, supervise
from rlbench.grid.verify import verify
from rlbench.grid.watcher import Silent
from rlbench.plugin.loading import load, plugin_arguments
from rlbench.plugin.selection import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType

    from rlbench.grid.request import Request
    from rlbench.grid.verify import Verified
    from rlbench.grid.watcher import Watcher
    from rlbench.plugin.registry import Registry
    from rlbench.training.spec import RunSpec
    from rlbench.types import Kind


def cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def plan(specs: Sequence[RunSpec]) -> list[Planned]:
    """Name runs."""
    catalogue = Catalogue()
    return [Planned(run_id=catalogue.run_id(spec), spec=spec) for spec in specs]


def launch(
    registry: Registry,
    planned: Sequence[Planned],
    *,
    out: Path,
    plugins: Sequence[str | Path | ModuleType] = (),
    trackers: Sequence[str] = (),
    engine: str = "local",
    workers: int | None = None,
    watcher: Watcher | None = None,
    timeout_s: float | None = None,
    retry: bool = False,
    retries: int = 0,
    fail_fast: bool = False,
    max_failures: int | None = None,
    checkpoint_every: int | None = None,
    note: Callable[[str], None] = warnings.warn,
) -> tuple[list[Record], Outcome]:
    """Execute the runs that are not on disk yet, and read back all that were asked for.

    A run is left out if something that is not of it lies in its place; its record says what.

    Args:
        registry: The components; loaded with the same ``plugins``.
        planned: The runs.
        out: The folder of results.
        plugins: What was loaded beside installed plugins; workers load it too.
        trackers: Selections of trackers.
        engine: Selection of the engine.
        workers: Runs at the same time; None means one a core.
        watcher: Shows the progress.
        timeout_s: The most seconds of one run.
        retry: Also repeat runs that failed, diverged or took too long before.
        retries: How often a run that does not end well now is tried again, unless it diverged.
        fail_fast: Start nothing more after the first failure.
        max_failures: Start nothing more after so many failures.
        checkpoint_every: Updates after which a run is saved; None saves none.
        note: Hears of what lies in the place of a base policy, for which runs are left out.

    Returns:
        One record for each run, in the order of ``planned``, also for those that did not run; and
        how it ended.

    Raises:
        UsageError: A tracker or an engine is unknown, or results can't be written there.
        PluginError: Worker processes could not import what was given as a plugin.
    """
    for text in trackers:
        parse(registry, "tracker", text)
    runner = parse(registry, "engine", engine).create()
    arguments = plugin_arguments(plugins)
    store = Store(out)
    blocked = store.blocked((run.run_id for run in planned), retry=retry)
    blocked |= _without_base_policy(store, planned, note)
    free = [run for run in planned if run.run_id not in blocked]
    outcome = Outcome(0, 0, 0, interrupted=False, exit_code=1)
    if free:
        outcome = supervise(
            free,
            store,
            runner,
            workers=workers or cores(),
            watcher=watcher or Silent(),
            plugins=arguments,
            timeout_s=timeout_s,
            retry=retry,
            retries=retries,
            fail_fast=fail_fast,
            max_failures=max_failures,
            checkpoint_every=checkpoint_every,
            trackers=list(trackers),
        )
    if blocked:  # not all that was asked for is done, nor was all of it looked at
        outcome = replace(outcome, exit_code=outcome.exit_code or 1, records={})
    if outcome.records:
        return [outcome.records[run.run_id] for run in planned], outcome
    with signals.unheard(when=outcome.interrupted):
        return _read_back(store, planned), outcome


def run_grid(
    experiment: str | Path | None,
    axes: Mapping[Kind, str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]],
    *,
    seeds: str | Iterable[int] | None,
    settings: Mapping[str, Any],
    out: str | Path | None,
    plugins: Sequence[str | Path | ModuleType],
    how: Mapping[str, Any],
) -> list[Record]:
    """Do what `rlbench.run` promises, up to its table.

    Args:
        experiment: As there, and so are the others up to ``plugins``.
        axes: The component axes.
        seeds: The seeds.
        settings: Trainer settings.
        out: Folder of results.
        plugins: Files or modules.
        how: The names of `rlbench.grid.experiment_file.HOW`; None or False is not given.

    Raises:
        UsageError: What was asked is not valid.
        KeyboardInterrupt: The grid was interrupted.
    """
    if out is not None and not str(out):
        raise UsageError("out='': name a folder for the results")
    request = ask(
        None if experiment is None else Path(experiment),
        load=load,
        axes={
            kind: [given] if isinstance(given, (str, Mapping)) else list(given)
            for kind, given in axes.items()
        },
        settings=spell_settings(settings),
        seeds=seeds,
        plugins=plugins,
        how={"out": out, **_checked(how)},
    )
    planned = plan(request.specs)
    records, outcome = launch(
        request.registry,
        planned,
        out=request.out,
        plugins=request.plugins,
        **request.arguments(),
    )
    if outcome.interrupted:
        raise KeyboardInterrupt
    if request.how["verify"]:
        found, interrupted = repeat_some(request, planned, records)
        for one in found:
            if not one.same:
                warnings.warn(f"{one.run_id} was run again: {one.text}", stacklevel=3)
        if interrupted:
            raise KeyboardInterrupt
    return records


def repeat_some(
    request: Request,
    planned: Sequence[Planned],
    records: Sequence[Record],
    note: Callable[[str], None] = ignore,
) -> tuple[list[Verified], bool]:
    """Repeat some finished runs in a folder of their own, as many as were asked for.

    Args:
        request: What was asked for; its ``verify`` is how many.
        planned: The runs.
        records: What is on disk of each, in the same order.
        note: Hears how many are repeated.

    Returns:
        What was found of each, and whether somebody interrupted it.

    Raises:
        OSError: There is no room for another folder, say.
    """
    interrupted = False

    def again(runs: Sequence[Planned], folder: Path) -> Sequence[Record]:
        nonlocal interrupted
        note(f"repeating {len(runs)} of {len(planned)} runs to compare their numbers")
        repeated, outcome = launch(
            request.registry,
            runs,
            out=folder,
            plugins=request.plugins,
            engine=request.how["engine"],
            workers=request.how["workers"],
            timeout_s=request.how["timeout"],
        )
        interrupted = outcome.interrupted
        return repeated

    count = request.how["verify"]
    return verify(planned, records, count, out=request.out, repeat=again), interrupted


def _checked(how: Mapping[str, Any]) -> dict[str, Any]:
    """Check what was given in Python."""
    known = {option.name: option for option in HOW}
    try:
        return {name: known[name].check(v) for name, v in how.items() if v is not None}
    except UsageError as error:
        raise UsageError(str(error).removeprefix("option: ")) from error


def _without_base_policy(
    store: Store, planned: Sequence[Planned], note: Callable[[str], None]
) -> set[str]:
    """Name the runs that are to do and would find something else where their base policy belongs.

    Args:
        store: Where base policies are.
        planned: The runs.
        note: Hears once of each thing that is in the way.
    """
    odd = store.blocked_base_policies()
    if not odd:
        return set()
    from rlbench.training.base_policy import base_policy_name  # loads torch

    names = [run.run_id for run in planned]
    to_do = [
        run
        for run, record in zip(planned, store.records(names), strict=True)
        if not record.complete
    ]
    needed = {run.run_id: base_policy_name(run.spec) for run in to_do}
    for name in sorted(odd.keys() & set(needed.values())):
        note(odd[name])
    return {run_id for run_id, name in needed.items() if name in odd}


def _read_back(store: Store, planned: Sequence[Planned]) -> list[Record]:
    """Read runs; what has not started yet has no specification on disk, but here."""
    catalogue = Catalogue()
    records = store.records(run.run_id for run in planned)
    return [
        record if record.spec is not None else replace(record, spec=catalogue.canonical(run.spec))
        for run, record in zip(planned, records, strict=True)
    ]
