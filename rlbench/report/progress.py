"""How far a grid is, on stderr: lines for a log, or a live display for a person at a terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlbench.grid.experiment import cells_of
from rlbench.grid.reading import COMPLETE
from rlbench.grid.watcher import Silent
from rlbench.report.text.spelling import spelled

if TYPE_CHECKING:
    from pathlib import Path

    from rich.progress import Progress, TaskID

    from rlbench.grid.attempt import Planned
    from rlbench.grid.store import Record

Say = Callable[[str], None]
_REDRAWS_PER_S = 4
_BAR = 16  # columns
_LONGEST_NAME = 32


def count(number: int, singular: str) -> str:
    """Write a count with its noun: ``1 run``, ``2 runs``."""
    return f"{number:,} {singular}{'' if number == 1 else 's'}"


class Lines(Silent):
    """Says what will run, each failure when it happens, and how it ended.

    Args:
        out: The folder of results.
        workers: Runs at the same time.
        say: Writes one line.
        quiet: Only failures.
        clock: Tells seconds; every half a minute a line says how far it is.
    """

    _every_s: float | None = 30.0  # seconds between two lines of a log

    def __init__(
        self,
        *,
        out: Path,
        workers: int,
        say: Say,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out, self._workers, self._say, self._quiet = out, workers, say, quiet
        self._clock, self._said_at = clock, clock()
        self._counts = {"ok": 0, "failed": 0}
        self._todo = self._renamed = 0
        self._settled = 0  # failures that the same command would leave as they are

    def begin(self, todo: Sequence[Planned], done: int, failed: int) -> None:
        """Say what is about to run."""
        self._todo = len(todo)
        if self._quiet:
            return
        already = f", {done:,} already there" if done else ""
        known = f", {failed:,} of them failed (--retry repeats those)" if failed else ""
        if not todo:
            there = f"{count(done, 'run')} already there in {self._out}"
            self._say(f"nothing left to run: {there}{known}")
            return
        cells = count(cells_of([run.spec for run in todo]), "cell")
        seeds = count(len({run.spec.seed for run in todo}), "seed")
        self._say(
            f"{count(len(todo), 'run')} to do ({cells}, {seeds}){already}{known}; "
            f"{min(self._workers, len(todo))} at a time"
        )

    def waiting(self, run: Planned) -> None:
        """Say that another process is doing a run."""
        if not self._quiet:
            self._say(f"another process is doing {run.run_id}; waiting for its result")

    def again(self, run: Planned, result: Mapping[str, Any]) -> None:
        """Say that a run is tried again, and why."""
        if not self._quiet:
            self._say(f"{result['status']}, is tried again: {_with_reason(run, result)}")

    def ended(self, run: Planned, result: Mapping[str, Any]) -> None:
        """Count a run; report it at once if it failed."""
        status = str(result.get("status"))
        if status == "interrupted":
            return
        self._counts["ok" if status == "ok" else "failed"] += 1
        if status == "ok":
            self._say_how_far()
            return
        self._settled += status in COMPLETE
        self._say(f"{status}: {_with_reason(run, result)}")
        self._say(f"  log: {self._out / 'runs' / run.run_id / 'log.txt'}")

    def _say_how_far(self) -> None:
        """Leave a line in a log, where there is no display, now and then."""
        done, now = sum(self._counts.values()), self._clock()
        if self._quiet or self._every_s is None or done == self._todo:
            return
        if now - self._said_at >= self._every_s:
            self._said_at = now
            self._say(f"{done:,} of {count(self._todo, 'run')} done")

    def renamed(self, runs: Sequence[Planned], files: Sequence[str]) -> None:
        """Say in one line that runs are not started, and what to do."""
        self._renamed += len(runs)
        self._say(
            f"{', '.join(files) or 'source files'} changed; {count(len(runs), 'run')} not started "
            "under the old code; give the command again"
        )

    def end(self) -> None:
        """Say how it ended and where the results are."""
        if self._quiet or not self._todo:
            return
        left = self._todo - sum(self._counts.values())
        parts = [f"{self._counts['ok']:,} ok"]
        parts += [f"{self._counts['failed']:,} failed"] if self._counts["failed"] else []
        parts += [f"{left:,} not run"] if left else []
        self._say(f"{', '.join(parts)}; results in {self._out}{self._what_next(left)}")

    def _what_next(self, left: int) -> str:
        """Say how to do what was not run, or was killed, and what failed."""
        rest = left + self._counts["failed"] - self._settled
        text = "; the same command does the rest" if rest else ""
        return text + ("; add --retry to try the failed ones again" if self._settled else "")


def _with_reason(run: Planned, result: Mapping[str, Any]) -> str:
    """Name a run, and in one line why it ended as it did."""
    error = result.get("error") or {}
    lines = str(error.get("message") or "").strip().splitlines()
    return ": ".join(str(p) for p in (run.run_id, error.get("type"), *lines[:1]) if p)


class Remaining:
    """Estimates the seconds that are left, from finished runs or, before that, from earlier ones.

    Args:
        workers: Runs at the same time.
        earlier_s: Seconds that runs like these took before; None if unknown.
        clock: Seconds from anywhere.
    """

    def __init__(
        self,
        *,
        workers: int,
        earlier_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._workers, self._clock, self._earlier_s = workers, clock, earlier_s
        self._started: dict[str, float] = {}
        self._share: dict[str, float] = {}
        self._took: list[float] = []

    def started(self, run_id: str) -> None:
        """A run began."""
        self._started[run_id] = self._clock()

    def progress(self, run_id: str, share: float) -> None:
        """A run is that far, 0 to 1."""
        self._share[run_id] = share

    def ended(self, run_id: str) -> None:
        """A run ended."""
        if run_id in self._started:
            self._took.append(self._clock() - self._started[run_id])
        self.forget(run_id)

    def forget(self, run_id: str) -> None:
        """A run is done elsewhere; how long it took says nothing."""
        self._share.pop(run_id, None)
        self._started.pop(run_id, None)

    def seconds(self, waiting: int) -> float | None:
        """Estimate what is left, with so many runs that have not begun; None if unknown."""
        typical = sum(self._took) / len(self._took) if self._took else self._earlier_s
        if typical is None:
            typical = self._from_shares()
        if typical is None:
            return None
        now = self._clock()
        flying = [
            self._left(now - began, self._share.get(run_id, 0.0), typical)
            for run_id, began in self._started.items()
        ]
        work = waiting * typical + sum(flying)
        return max([work / self._workers, *flying])

    def _from_shares(self) -> float | None:
        """Typical length of a run, extrapolated from those that are on their way."""
        now = self._clock()
        lengths = [
            (now - self._started[run_id]) / share
            for run_id, share in self._share.items()
            if share > 0.05 and run_id in self._started  # before that it is mostly the warm-up
        ]
        return sum(lengths) / len(lengths) if lengths else None

    @staticmethod
    def _left(spent: float, share: float, typical: float) -> float:
        if share > 0.05:
            return spent * (1 - share) / share
        return max(typical - spent, 0.0)


class Display(Lines):
    """A live display: one line for each run in flight, one for the whole.

    Args:
        out: The folder of results.
        workers: Runs at the same time.
        say: Writes one line, while the display is not up.
        earlier_s: Seconds that runs like these took before; None if unknown.
    """

    _every_s = None

    def __init__(
        self, *, out: Path, workers: int, say: Say, earlier_s: float | None = None
    ) -> None:
        super().__init__(out=out, workers=workers, say=say)
        self._remaining = Remaining(workers=workers, earlier_s=earlier_s)
        self._progress: Progress | None = None
        self._overall: TaskID | None = None
        self._bars: dict[str, TaskID] = {}
        self._names: dict[str, str] = {}
        self._say_plainly = say

    def begin(self, todo: Sequence[Planned], done: int, failed: int) -> None:
        """Say what will run and put the display up."""
        super().begin(todo, done, failed)
        if not todo:
            return
        self._names = short_names(todo)
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(stderr=True, no_color=bool(os.environ.get("NO_COLOR")) or None)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=_BAR),
            TextColumn("{task.fields[note]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            refresh_per_second=_REDRAWS_PER_S,
        )
        self._overall = self._progress.add_task("all runs", total=len(todo), note="")
        self._say = lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)
        self._progress.start()
        self._redraw()

    def started(self, run: Planned) -> None:
        """Add a line for a run."""
        self._remaining.started(run.run_id)
        if self._progress is not None:
            name = f"  {self._names[run.run_id]}"
            self._bars[run.run_id] = self._progress.add_task(name, total=None, note="starting")
        self._redraw()

    def progress(self, run: Planned, done: int, total: int, phase: str) -> None:
        """Move the line of a run."""
        self._remaining.progress(run.run_id, done / total if total else 0.0)
        if self._progress is not None and run.run_id in self._bars:
            self._progress.update(
                self._bars[run.run_id],
                completed=done,
                total=total,
                note=f"{phase} {done}/{total}" if done else phase,
            )
        self._redraw()

    def waiting(self, run: Planned) -> None:
        """Say so, and take the line of the run away."""
        self._remaining.forget(run.run_id)
        self._remove(run)
        super().waiting(run)

    def again(self, run: Planned, result: Mapping[str, Any]) -> None:
        """Say so, and take the line of the attempt away."""
        self._remaining.forget(run.run_id)
        self._remove(run)
        super().again(run, result)

    def ended(self, run: Planned, result: Mapping[str, Any]) -> None:
        """Take the line of a run away."""
        self._remaining.ended(run.run_id)
        self._remove(run)
        super().ended(run, result)
        self._redraw()

    def renamed(self, runs: Sequence[Planned], files: Sequence[str]) -> None:
        """Say so, and take the lines of those that had begun away."""
        for run in runs:
            self._remaining.forget(run.run_id)
            self._remove(run)
        super().renamed(runs, files)
        self._redraw()

    def end(self) -> None:
        """Take the display down and say how it ended."""
        if self._progress is not None:
            self._progress.stop()
        self._say = self._say_plainly
        super().end()

    def _remove(self, run: Planned) -> None:
        if self._progress is not None and run.run_id in self._bars:
            self._progress.remove_task(self._bars.pop(run.run_id))

    def _redraw(self) -> None:
        """Update the line of the whole: done, failed, time left."""
        if self._progress is None or self._overall is None:
            return
        done = sum(self._counts.values())
        left = self._remaining.seconds(self._todo - done - self._renamed - len(self._bars))
        note = f"{done}/{self._todo}"
        if self._counts["failed"]:
            note += f", {self._counts['failed']} failed"
        if left is not None and done < self._todo:
            note += f", about {spell_seconds(left)} left"
        self._progress.update(self._overall, completed=done, note=note)


def short_names(runs: Sequence[Planned]) -> dict[str, str]:
    """Name runs by what differs between them, short enough for one line of a display.

    Returns:
        Run id to name, such as ``gae clip lr=0.001 seed 3``.
    """
    cells = {_parts(run): run.spec for run in runs}
    described = {
        parts: {kind: chosen.label for kind, chosen in spec.selections.items()}
        | {name: f"{name}={spelled(value)}" for name, value in spec.settings.values().items()}
        for parts, spec in cells.items()
    }
    names = list(next(iter(described.values()), {}))
    differ = [name for name in names if len({d[name] for d in described.values()}) > 1]
    shown = differ or ["estimator", "loss"]
    texts = {
        parts: " ".join(d[name] for name in shown)[:_LONGEST_NAME] for parts, d in described.items()
    }
    return {run.run_id: f"{texts[_parts(run)]} seed {run.spec.seed}" for run in runs}


def _parts(run: Planned) -> tuple[int, int]:
    """Tell cells apart by what the runs of a grid share, without comparing it."""
    return id(run.spec.selections), id(run.spec.settings)


def typical_seconds(records: Iterable[Record]) -> float | None:
    """Average what runs that ended well took; None if there are none."""
    times = [
        seconds
        for record in records
        if record.status == "ok"
        and isinstance(seconds := (record.result or {}).get("wall_s"), (int, float))
    ]
    return sum(times) / len(times) if times else None


def spell_seconds(seconds: float) -> str:
    """Write a time left, as exactly as it can be known: ``40 s``, ``5 min``, ``2.5 h``."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
