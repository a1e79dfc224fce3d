"""One attempt at a run: what an engine gets, and what is known of the attempts before."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlbench.grid import identity, provenance
from rlbench.grid.reading import fault_of_result
from rlbench.plugin import source
from rlbench.types import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from rlbench.grid.store import Store
    from rlbench.training.spec import RunSpec

TARGET = "rlbench.grid.worker:execute"
CHANGED = "SourceChanged"  # type of the error of a run whose name no longer fits its sources
# A run that diverged is not among them: the same seed diverges again.
WORTH_ANOTHER = ("failed", "timeout", "killed")
REMEMBERED = 10  # earlier attempts that a result tells of


@dataclass(frozen=True)
class Planned:
    """A run with its name."""

    run_id: str
    spec: RunSpec


@dataclass
class Flight:
    """A run that an engine has, or that another process does.

    Attributes:
        run: The run.
        seen: Stamp of the result that was there before; None if there was none.
        history: See `history`.
        floor: The task's floor, once the run has told it.
    """

    run: Planned
    seen: int | None
    history: Mapping[str, Any]
    floor: float | None = None

    def hear(self, report: Mapping[str, Any]) -> tuple[int, int, str] | None:
        """Take the floor from a report; give how far the run is, if the report tells that.

        Any other report is passed over: code of strangers may have sent it.
        """
        floor = report.get("floor", math.nan)
        is_number = isinstance(floor, (int, float)) and not isinstance(floor, bool)
        if floor is None or (is_number and abs(floor) <= sys.float_info.max):
            self.floor = floor
        match report:
            case {"done": int(done), "total": int(total), "phase": str(phase)}:
                return done, total, phase
        return None


def history(store: Store, run_id: str, seen: int | None) -> dict[str, Any]:
    """Tell which attempt comes now, and how those before ended.

    Args:
        store: Where an earlier result is.
        run_id: Name of the run.
        seen: Stamp of that result; None if there is none.

    Returns:
        ``attempts``, 1 for the first; ``earlier``, if there were any: status and error of the last
        ones, the latest at the end. The worker makes both part of ``result.json``.
    """
    present = store.record(run_id).result if seen is not None else None
    if present is None:
        return {"attempts": 1}
    attempts, earlier = present.get("attempts"), present.get("earlier")
    known = list(earlier) if isinstance(earlier, list) else []
    known.append({"status": present["status"], "error": present.get("error")})
    # a whole number, unless somebody edited the file; one attempt there was in any case
    before = attempts if isinstance(attempts, int) and attempts > 0 else 1
    return {"attempts": before + 1, "earlier": known[-REMEMBERED:]}


def renamed(runs: Iterable[Planned]) -> list[Planned]:
    """Find the runs whose names no longer fit their sources."""
    catalogue = identity.Catalogue()
    return [run for run in runs if catalogue.run_id(run.spec) != run.run_id]


def changed_files(runs: Iterable[Planned], since_s: float) -> list[str]:
    """Name the source files of runs that were written after a moment.

    Args:
        runs: The runs.
        since_s: The moment, in seconds since the epoch.

    Returns:
        Sorted names without folders; none if a change left the time of its file as it was.
    """
    named: dict[tuple[int, ...], RunSpec] = {}  # the runs of a cell have the same components
    for run in runs:
        named.setdefault(tuple(map(id, run.spec.selections.values())), run.spec)
    files = {file for spec in named.values() for file in identity.sources(spec)}
    return sorted({file.name for file in files if _written_since(file, since_s)})


def _written_since(file: Path, since_s: float) -> bool:
    try:
        return file.stat().st_mtime >= since_s
    except OSError:  # it is gone, which is a change too
        return True


def fault_of_return(value: Mapping[str, Any]) -> str | None:
    """Say what makes something that a process returned no result; None if it is one.

    It comes from a process in which code of strangers ran.
    """
    fault = None if value.get("status") == "busy" else fault_of_result(value)
    return f"what its process returned is no result: it {fault[:200]}" if fault else None


def is_changed(result: Mapping[str, Any]) -> bool:
    """Whether a run was not done because its sources changed after it was named."""
    return bool((result.get("error") or {}).get("type") == CHANGED)


def worth_another(result: Mapping[str, Any]) -> bool:
    """Whether a run that ended like this may end otherwise when it is tried again."""
    return result["status"] in WORTH_ANOTHER and not is_changed(result)


def job_maker(
    store: Store,
    plugins: Sequence[str],
    trackers: Sequence[str],
    timeout_s: float | None,
    *,
    checkpoint_every: int | None = None,
) -> Callable[[Flight], Job | None]:
    """Get ready to make jobs of runs.

    Args:
        store: Where results go.
        plugins: What workers pass to `rlbench.plugin.loading.load`.
        trackers: Selections of trackers, as text.
        timeout_s: The most seconds of one run.
        checkpoint_every: Updates between two checkpoints of a run; None writes none.

    Returns:
        A function that gives the job of a run; None if sources changed since the run was named.
    """
    given = provenance.checkouts(plugins)

    def job(flight: Flight) -> Job | None:
        run = flight.run
        files = identity.sources(run.spec)
        description = identity.canonical(run.spec)
        if description["run_id"] != run.run_id:
            return None
        payload = {
            "run_id": run.run_id,
            "root": str(store.root.absolute()),  # a component may change the working folder
            "spec": run.spec.to_payload(),
            "description": description,
            "files": [str(file) for file in files],
            "digest": source.raw_digest(files),
            "plugins": list(plugins),
            "trackers": list(trackers),
            "seen": flight.seen,
            "history": dict(flight.history),
            "provenance": given,
            "checkpoint_every": checkpoint_every,
        }
        return Job(id=run.run_id, target=TARGET, payload=payload, timeout_s=timeout_s)

    return job
