"""Many runs: what is missing is started, what is lost is noted, what is interrupted is kept."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlbench.grid import identity, signals
from rlbench.grid.attempt import (
    Flight,
    Planned,
    changed_files,
    fault_of_return,
    history,
    is_changed,
    job_maker,
    renamed,
    worth_another,
)
from rlbench.grid.reading import COMPLETE
from rlbench.grid.store import RESULT, SCHEMA, SPEC, Busy, Store, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlbench.grid.store import Record
    from rlbench.grid.watcher import Watcher
    from rlbench.types import Engine, Job, JobEvent

# The first optimiser of a process imports torch._dynamo: a second that no run should pay.
PRELOAD = ("torch", "torch._dynamo", "rlbench.grid.worker")
TICK_S = 0.25  # how long a signal can wait to be noticed
POLL_S = 1.0  # how often a run of another process is looked at
NOTES_S = 2.0  # how long the notes on interrupted runs may wait for locks, all together


@dataclass(frozen=True)
class Outcome:
    """How a grid ended.

    Attributes:
        ok: Runs that ended well now.
        failed: Runs that did not: failed, diverged, timeout, killed.
        skipped: Runs that were complete before.
        interrupted: Whether a signal ended it early.
        exit_code: 0 if every requested run is ok, 130 if interrupted, else 1.
        renamed: Runs that were not started, because their sources changed after the plan.
        records: What is on disk of every run, if there was nothing to do; so it need not be read
            twice.
    """

    ok: int
    failed: int
    skipped: int
    interrupted: bool
    exit_code: int
    renamed: int = 0
    records: Mapping[str, Record] = field(default_factory=dict, compare=False, repr=False)


def supervise(
    runs: Sequence[Planned],
    store: Store,
    engine: Engine,
    *,
    workers: int,
    watcher: Watcher,
    plugins: Sequence[str] = (),
    trackers: Sequence[str] = (),
    timeout_s: float | None = None,
    retry: bool = False,
    retries: int = 0,
    fail_fast: bool = False,
    max_failures: int | None = None,
    checkpoint_every: int | None = None,
) -> Outcome:
    """Do the runs that are not complete.

    In the main thread, SIGINT, SIGTERM and SIGHUP end all runs in flight within seconds; what is
    complete stays, the rest is done by the same command later.

    Args:
        runs: What was asked for; a repeat counts once.
        store: Where results are and go.
        engine: Not open yet; closed when this returns.
        workers: Runs at the same time.
        watcher: Hears what happens.
        plugins: What workers pass to `rlbench.plugin.loading.load`.
        trackers: Selections of trackers, as text.
        timeout_s: The most seconds of one run.
        retry: Also repeat what failed, diverged or took too long in earlier commands.
        retries: How often a run that fails, takes too long or is killed now is tried again: after
            all others, or at once where failures are counted. One that diverges is not: the same
            seed diverges again.
        fail_fast: Start nothing more after a failure.
        max_failures: Start nothing more after so many failures; None means no limit.
        checkpoint_every: Updates after which a run is saved, to go on from there if it is killed;
            None saves none, and still goes on from one that is there.

    Returns:
        How it ended. Runs that failed are no exception.
    """
    unique = {run.run_id: run for run in runs}
    # The stamp comes first: what another process finishes from here on is not to be replaced.
    seen = {run_id: store.stamp(run_id) for run_id in unique}
    settled = {"ok"} if retry else set(COMPLETE)
    records = {record.run_id: record for record in store.records(unique)}
    done = {r.run_id: r.status for r in records.values() if r.complete and r.status in settled}
    failed_before = sum(status != "ok" for status in done.values())
    todo = [run for run_id, run in unique.items() if run_id not in done]
    if not todo:
        watcher.begin([], len(unique), failed_before)
        watcher.end()
        code = int(failed_before > 0)
        return Outcome(0, 0, len(unique), interrupted=False, exit_code=code, records=records)
    del records  # of a large grid they fill the memory, and they are old when it ends
    store.check_writable()
    grid = _Grid(
        store=store,
        engine=engine,
        watcher=watcher,
        workers=workers,
        retries=retries,
        most_failures=1 if fail_fast else max_failures,
        job=job_maker(store, plugins, trackers, timeout_s, checkpoint_every=checkpoint_every),
        seen=seen,
        queue=deque(todo),
    )
    try:
        watcher.begin(todo, len(done), failed_before)
        with signals.handled(grid.interrupt):
            grid.work()
    finally:
        watcher.end()
    return Outcome(
        ok=grid.ok,
        failed=grid.failed,
        skipped=len(done),
        interrupted=grid.interrupted,
        exit_code=130 if grid.interrupted else int(failed_before + grid.failed + grid.renamed > 0),
        renamed=grid.renamed,
    )


@dataclass(kw_only=True, repr=False)
class _Grid:
    """The runs of one command on their way: waiting, in flight, or in the hands of others."""

    store: Store
    engine: Engine
    watcher: Watcher
    workers: int
    retries: int
    most_failures: int | None
    job: Callable[[Flight], Job | None]
    seen: dict[str, int | None]  # stamps of the results that were there when the grid was planned
    queue: deque[Planned]
    flight: dict[str, Flight] = field(default_factory=dict)
    busy: dict[str, Flight] = field(default_factory=dict)
    again: dict[str, _Again] = field(default_factory=dict)  # runs that were tried and go on
    looked: float = 0.0
    ok: int = 0
    failed: int = 0
    renamed: int = 0
    interrupted: bool = False
    began_s: float = field(default_factory=time.time)

    def interrupt(self) -> None:
        """Handle a signal; a second one changes nothing more."""
        self.interrupted = True

    def work(self) -> None:
        """Go on until nothing is left, or somebody interrupts."""
        try:
            self.engine.open(self.workers, PRELOAD)
            while (self.queue or self.flight or self.busy) and not self.interrupted:
                self._fill()
                alone = len(self.flight) == 1
                for event in self.engine.events(TICK_S):
                    self._hear(event, alone=alone)
                self._look_at_busy()
        finally:
            self.engine.close()
            self._note_what_is_left(time.monotonic() + NOTES_S)
            self.interrupted = self.interrupted and bool(self.queue or self.flight or self.busy)

    def _note_what_is_left(self, end: float) -> None:
        """Write down what was interrupted: runs in flight, and those that waited for another try.

        These failed, and would count as tried; but the command was not done with them.
        """
        for flight in list(self.flight.values()):
            left_s = max(end - time.monotonic(), 0.0)
            result = self._note(flight, "interrupted", "interrupted", left_s)
            if result["status"] != "interrupted":  # it had just written its last word
                del self.flight[flight.run.run_id]
            self._end(flight.run, result)
        for run in self.queue:
            last = self.store.record(run.run_id).result if run.run_id in self.again else None
            if last is not None:
                flight, left_s = Flight(run, self.seen[run.run_id], {}), end - time.monotonic()
                result = self._write(flight, {**last, "status": "interrupted"}, max(left_s, 0.0))
                self.watcher.ended(run, result)

    def _fill(self) -> None:
        while self.queue and len(self.flight) < self.workers and not self.interrupted:
            run = self.queue[0]
            if self.flight and any(map(self._is_suspect, (run.run_id, *self.flight))):
                return
            self.queue.popleft()
            seen = self.seen[run.run_id]
            flight = Flight(run, seen, history(self.store, run.run_id, seen))
            job = self.job(flight)
            if job is None:
                self._rename(run)
            else:
                self.engine.submit(job)
                self.flight[run.run_id] = flight

    def _is_suspect(self, run_id: str) -> bool:
        """Whether the engine died under a run twice: it runs alone, to see whose fault it is."""
        return run_id in self.again and self.again[run_id].engine_deaths > 1

    def _hear(self, event: JobEvent, *, alone: bool) -> None:
        flight, value = self.flight[event.job], event.value
        if event.what == "started":
            self.watcher.started(flight.run)
        elif event.what == "progress":
            if (far := flight.hear(value)) is not None:
                self.watcher.progress(flight.run, *far)
        else:
            del self.flight[event.job]
            if event.what == "lost":
                self._lose(flight, value, alone=alone)
            elif fault := fault_of_return(value):
                self._settle(flight, self._note(flight, "failed", fault))
            elif value["status"] == "busy":
                self.busy[event.job] = flight
                self.watcher.waiting(flight.run)
            else:
                if value.get("stored") is False and value["status"] in COMPLETE:
                    value = self._write(flight, {k: v for k, v in value.items() if k != "stored"})
                self._settle(flight, value)

    def _lose(self, flight: Flight, value: Mapping[str, Any], *, alone: bool) -> None:
        """Note a run whose process is gone; if the engine went with it, it is done once more.

        Of several runs nobody knows whose doing that was. Those that lose an engine twice run one
        by one from there on, and one that was alone at its second loss is to blame.
        """
        result = self._note(flight, value["status"], value["reason"])
        if not value.get("engine_died") or result["status"] != value["status"]:
            self._settle(flight, result)
            return
        again = self.again.setdefault(flight.run.run_id, _Again(self.retries))
        again.engine_deaths += 1
        if again.engine_deaths > 1 and alone:
            self._settle(flight, result)
        else:
            self._queue_again(flight, result)

    def _settle(self, flight: Flight, result: Mapping[str, Any]) -> None:
        """End a run, or try it again if it did not end well and may be tried."""
        run_id = flight.run.run_id
        again = self.again.get(run_id, _Again(self.retries))
        if again.left and worth_another(result):
            self.again[run_id] = again
            again.left -= 1
            again.failure = result
            # Where failures are counted, whether this is one is to be known before more is spent.
            self._queue_again(flight, result, last=self.most_failures is None)
        elif is_changed(result):
            self._rename(flight.run)
        else:
            self._end(flight.run, result)

    def _queue_again(
        self, flight: Flight, result: Mapping[str, Any], *, last: bool = False
    ) -> None:
        self.seen[flight.run.run_id] = self.store.stamp(flight.run.run_id)
        if last:
            self.queue.append(flight.run)
        else:
            self.queue.appendleft(flight.run)
        self.watcher.again(flight.run, result)

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
                self._settle(flight, record.result or {})
            else:
                self.queue.append(flight.run)

    def _note(
        self, flight: Flight, status: str, reason: str, patience_s: float = 1.0
    ) -> Mapping[str, Any]:
        """Write the result of a run that could not do so itself."""
        kind = "Timeout" if status == "timeout" else "Lost"
        error = {"type": kind, "message": reason, "where": None}
        result = {
            "schema": SCHEMA,
            "run_id": flight.run.run_id,
            "status": status,
            "error": error,
            "floor": flight.floor,
            **flight.history,
        }
        return self._write(flight, result, patience_s)

    def _write(
        self, flight: Flight, result: dict[str, Any], patience_s: float = 1.0
    ) -> Mapping[str, Any]:
        """Write a result in the place of its run, unless another process has the last word."""
        run_id, error = flight.run.run_id, result["error"] or {}
        try:
            with self.store.locked(run_id, timeout_s=patience_s) as folder:
                present = self.store.record(run_id)
                if present.complete and self.store.stamp(run_id) != flight.seen:
                    return present.result or {}  # it died after its last word
                if present.spec is None:
                    write_json(folder / SPEC, identity.canonical(flight.run.spec))
                write_json(folder / RESULT, result)
        except Busy:
            pass  # another process is doing it by now, and has the last word
        except OSError as cause:
            error["message"] = f"{error.get('message')}; this could not be written: {cause}"
        return result

    def _rename(self, run: Planned) -> None:
        """Let go of a run that was named after sources that changed, and of all others like it.

        Nothing is stored under the old name. One that was tried before is a failure still.
        """
        others = renamed(self.queue)
        names = {other.run_id for other in others}
        self.queue = deque(waiting for waiting in self.queue if waiting.run_id not in names)
        untried = [one for one in (run, *others) if not self._fail_after_all(one)]
        self.renamed += len(untried)
        if untried:
            self.watcher.renamed(untried, changed_files(untried, self.began_s))

    def _fail_after_all(self, run: Planned) -> bool:
        """End a run that is not tried again as it ended the last time, if there was one."""
        again = self.again.pop(run.run_id, None)
        if not again or not again.failure:
            return False
        self.failed += 1
        self.watcher.ended(run, again.failure)
        return True

    def _end(self, run: Planned, result: Mapping[str, Any]) -> None:
        self.again.pop(run.run_id, None)
        status = result["status"]
        if status == "ok":
            self.ok += 1
        elif status != "interrupted":
            self.failed += 1
        self.watcher.ended(run, result)
        if self.most_failures is not None and self.failed >= self.most_failures:
            self._start_nothing_more()

    def _start_nothing_more(self) -> None:
        waiting, self.queue = self.queue, deque()
        self.busy.clear()
        for run in waiting:
            self._fail_after_all(run)


@dataclass
class _Again:
    """What this command has tried of a run that has not ended yet.

    Attributes:
        left: How often it may still be tried again.
        failure: How it ended the last time, by its own doing.
        engine_deaths: How often the engine died under it.
    """

    left: int
    failure: Mapping[str, Any] | None = None
    engine_deaths: int = 0
