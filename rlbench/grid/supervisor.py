"""Many runs: what is missing is started, what is lost is noted, what is interrupted is kept."""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from rlbench.grid import identity, provenance
from rlbench.grid.reading import COMPLETE
from rlbench.grid.store import RESULT, SCHEMA, SPEC, Busy, Store, write_json
from rlbench.plugin import source
from rlbench.types import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rlbench.training.spec import RunSpec
    from rlbench.types import Engine, JobEvent

TARGET = "rlbench.grid.worker:execute"
# The first optimiser of a process imports torch._dynamo: a second that no run should pay.
PRELOAD = ("torch", "torch._dynamo", "rlbench.grid.worker")
# A run whose sources changed since it was named: nothing of it is stored under the old name.
RENAMED = {
    "status": "killed",
    "error": {
        "type": "SourceChanged",
        "message": "source files changed after this run was named; give the command again, and it "
        "runs under its new name",
        "where": None,
    },
}
TICK_S = 0.25  # how long a signal can wait to be noticed
POLL_S = 1.0  # how often a run of another process is looked at


@dataclass(frozen=True)
class Planned:
    """A run with its name."""

    run_id: str
    spec: RunSpec


@dataclass(frozen=True)
class Outcome:
    """How a grid ended.

    Attributes:
        ok: Runs that ended well now.
        failed: Runs that did not: failed, diverged, timeout, killed.
        skipped: Runs that were complete before.
        interrupted: Whether a signal ended it early.
        exit_code: 0 if every requested run is ok, 130 if interrupted, else 1.
    """

    ok: int
    failed: int
    skipped: int
    interrupted: bool
    exit_code: int


class Watcher(Protocol):
    """Shows what happens."""

    def begin(self, todo: Sequence[Planned], done: int, failed: int) -> None:
        """Called once: the runs to do, and how many are complete already, and failed at that."""
        ...

    def started(self, run: Planned) -> None:
        """A run has a process."""
        ...

    def progress(self, run: Planned, done: int, total: int, phase: str) -> None:
        """A run has come so far."""
        ...

    def waiting(self, run: Planned) -> None:
        """Another process is doing a run; its result is taken over when it is there."""
        ...

    def ended(self, run: Planned, result: Mapping[str, Any]) -> None:
        """A run ended; ``result`` has ``status`` and ``error``, as in ``result.json``."""
        ...

    def end(self) -> None:
        """Called once, also after an error."""
        ...


class Silent:
    """A watcher that shows nothing; a base for those that show only some of it."""

    def begin(self, todo: Sequence[Planned], done: int, failed: int) -> None:
        """Show nothing."""

    def started(self, run: Planned) -> None:
        """Show nothing."""

    def progress(self, run: Planned, done: int, total: int, phase: str) -> None:
        """Show nothing."""

    def waiting(self, run: Planned) -> None:
        """Show nothing."""

    def ended(self, run: Planned, result: Mapping[str, Any]) -> None:
        """Show nothing."""

    def end(self) -> None:
        """Show nothing."""


def supervise(
    runs: Sequence[Planned],
    store: Store,
    engine: Engine,
    *,
    workers: int,
    watcher: Watcher,
    plugins: Sequence[str],
    timeout_s: float | None,
    retry: bool,
    fail_fast: bool,
    trackers: Sequence[str],
) -> Outcome:
    """Do the runs that are not complete.

    In the main thread, SIGINT and SIGTERM end all runs in flight within seconds; what is complete
    stays, the rest is done by the same command later.

    Args:
        runs: What was asked for; a repeat counts once.
        store: Where results are and go.
        engine: Not open yet; closed when this returns.
        workers: Runs at the same time.
        watcher: Hears what happens.
        plugins: What workers pass to `rlbench.plugin.loading.load`.
        timeout_s: The most seconds of one run.
        retry: Also repeat what failed, diverged or took too long.
        fail_fast: Start nothing more after a failure.
        trackers: Selections of trackers, as text.

    Returns:
        How it ended. Runs that failed are no exception.
    """
    unique = {run.run_id: run for run in runs}
    # The stamp comes first: what another process finishes from here on is not to be replaced.
    seen = {run_id: store.stamp(run_id) for run_id in unique}
    settled = {"ok"} if retry else set(COMPLETE)
    records = store.records(unique)  # one after the other: a large grid must not fill the memory
    done = {r.run_id: r.status for r in records if r.complete and r.status in settled}
    todo = [run for run_id, run in unique.items() if run_id not in done]
    if todo:
        store.check_writable()
    grid = _Grid(
        store=store,
        engine=engine,
        watcher=watcher,
        workers=workers,
        fail_fast=fail_fast,
        job=_job_maker(store, plugins, trackers, timeout_s),
        seen=seen,
        queue=deque(todo),
    )
    failed_before = sum(status != "ok" for status in done.values())
    watcher.begin(todo, len(unique) - len(todo), failed_before)
    try:
        if todo:
            with _signals(grid.interrupt):
                grid.work()
    finally:
        watcher.end()
    return Outcome(
        ok=grid.ok,
        failed=grid.failed,
        skipped=len(unique) - len(todo),
        interrupted=grid.interrupted,
        exit_code=130 if grid.interrupted else int(failed_before + grid.failed > 0),
    )


def _job_maker(
    store: Store, plugins: Sequence[str], trackers: Sequence[str], timeout_s: float | None
) -> Callable[[Planned, int | None], Job | None]:
    given = provenance.checkouts(plugin for plugin in plugins if plugin.endswith(".py"))

    def job(run: Planned, seen: int | None = None) -> Job | None:
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
            "seen": seen,
            "provenance": given,
        }
        return Job(id=run.run_id, target=TARGET, payload=payload, timeout_s=timeout_s)

    return job


@contextmanager
def _signals(handler: Callable[..., None]) -> Iterator[None]:
    """Handle SIGINT and SIGTERM; Python allows that in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            if old is not None:  # None: installed by C code, which Python can't put back
                signal.signal(number, old)


@dataclass
class _Flight:
    """A run that an engine has, or that another process does."""

    run: Planned
    seen: int | None  # stamp of the result that was there before
    floor: float | None = None


@dataclass(kw_only=True)
class _Grid:
    """The runs of one command on their way: waiting, in flight, or in the hands of others."""

    store: Store
    engine: Engine
    watcher: Watcher
    workers: int
    fail_fast: bool
    job: Callable[[Planned, int | None], Job | None]
    seen: dict[str, int | None]  # stamps of the results that were there when the grid was planned
    queue: deque[Planned]
    flight: dict[str, _Flight] = field(default_factory=dict)
    busy: dict[str, _Flight] = field(default_factory=dict)
    looked: float = 0.0
    ok: int = 0
    failed: int = 0
    interrupted: bool = False

    def interrupt(self, *_: object) -> None:
        """Handle a signal; a second one changes nothing more."""
        self.interrupted = True

    def work(self) -> None:
        """Go on until nothing is left, or somebody interrupts."""
        try:
            self.engine.open(self.workers, PRELOAD)
            while (self.queue or self.flight or self.busy) and not self.interrupted:
                self._fill()
                for event in self.engine.events(TICK_S):
                    self._hear(event)
                self._look_at_busy()
        finally:
            self.engine.close()
            for flight in list(self.flight.values()):
                result = self._note(flight, "interrupted", "interrupted")
                if result["status"] != "interrupted":  # it had just written its last word
                    del self.flight[flight.run.run_id]
                self._end(flight.run, result)
            self.interrupted = self.interrupted and bool(self.queue or self.flight or self.busy)

    def _fill(self) -> None:
        while self.queue and len(self.flight) < self.workers and not self.interrupted:
            run = self.queue[0]
            flight = _Flight(run, self.seen[run.run_id])
            job = self.job(run, flight.seen)
            if job is None:
                self._end(run, RENAMED)
            else:
                self.engine.submit(job)
                self.flight[run.run_id] = flight
            self.queue.popleft()

    def _hear(self, event: JobEvent) -> None:
        flight, value = self.flight[event.job], event.value
        if event.what == "started":
            self.watcher.started(flight.run)
        elif event.what == "progress":
            if "floor" in value:
                flight.floor = value["floor"]
            else:
                self.watcher.progress(flight.run, value["done"], value["total"], value["phase"])
        else:
            del self.flight[event.job]
            if event.what == "lost":
                self._end(flight.run, self._note(flight, value["status"], value["reason"]))
            elif value["status"] == "busy":
                self.busy[event.job] = flight
                self.watcher.waiting(flight.run)
            else:
                self._end(flight.run, value)

    def _look_at_busy(self) -> None:
        """Take over what other processes have finished, and do what they have not."""
        if not self.busy or time.monotonic() - self.looked < POLL_S:
            return
        self.looked = time.monotonic()
        for run_id, flight in list(self.busy.items()):
            try:
                with self.store.locked(run_id, timeout_s=0):
                    record = self.store.record(run_id)
                    finished = record.complete and self.store.stamp(run_id) != flight.seen
            except Busy:
                continue
            del self.busy[run_id]
            if finished:
                self._end(flight.run, record.result or {})
            else:
                self.queue.append(flight.run)

    def _note(self, flight: _Flight, status: str, reason: str) -> Mapping[str, Any]:
        """Write the result of a run that could not do so itself."""
        run_id = flight.run.run_id
        error = {"type": "Lost", "message": reason, "where": None}
        result = {
            "schema": SCHEMA,
            "run_id": run_id,
            "status": status,
            "error": error,
            "floor": flight.floor,
        }
        try:
            with self.store.locked(run_id, timeout_s=1.0) as folder:
                present = self.store.record(run_id)
                if present.complete and self.store.stamp(run_id) != flight.seen:
                    return present.result or {}  # it died after its last word
                if present.spec is None:
                    write_json(folder / SPEC, identity.canonical(flight.run.spec))
                write_json(folder / RESULT, result)
        except Busy:
            pass  # another process is doing it by now, and has the last word
        except OSError as cause:
            error["message"] = f"{reason}; this could not be written: {cause}"
        return result

    def _end(self, run: Planned, result: Mapping[str, Any]) -> None:
        status = result["status"]
        if status == "ok":
            self.ok += 1
        elif status != "interrupted":
            self.failed += 1
            if self.fail_fast:
                self.queue.clear()
                self.busy.clear()
        self.watcher.ended(run, result)
