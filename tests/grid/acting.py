"""Runs that do as they are told instead of training, and engines that only say they did."""

from __future__ import annotations

import json
import sys
import textwrap
import time
from collections import Counter, deque
from typing import TYPE_CHECKING

from rlbench.builtin.engines import Local
from rlbench.grid.store import Store
from rlbench.grid.supervisor import Outcome, supervise
from rlbench.grid.watcher import Silent
from rlbench.types import JobEvent

from .conftest import make_plan

if TYPE_CHECKING:
    from pathlib import Path

# A run without training: what it does is in a file, by seed, with a comma between attempts.
TARGET = """
    import itertools, json, os, signal, stat, time
    from pathlib import Path
    from rlbench.grid.store import Busy, Store, write_json

    HERE = Path(__file__).parent

    def execute(payload, report):
        seed = str(payload["spec"]["seed"])
        acts = json.loads((HERE / "acts.json").read_text()).get(seed, "ok").split(",")
        ran = HERE / "ran.txt"
        before = ran.read_text().split().count(seed) if ran.exists() else 0
        act = acts[min(before, len(acts) - 1)]
        store, run_id = Store(payload["root"]), payload["run_id"]
        try:
            with store.locked(run_id, timeout_s=0.2) as folder:
                present = store.record(run_id)
                if present.complete and store.stamp(run_id) != payload["seen"]:
                    return dict(present.result)  # as the real one does
                with ran.open("a") as stream:
                    stream.write(f"{seed}\\n")
                report({"floor": 0.25})
                report({"done": os.getpid(), "total": 1, "phase": "pid"})
                if act == "exit":
                    os._exit(9)
                if act == "scribble":
                    for number in range(3, 256):
                        try:
                            if stat.S_ISFIFO(os.fstat(number).st_mode):
                                os.write(number, b"hello, world")
                        except OSError:
                            pass
                    time.sleep(600)
                if act == "alarm":
                    signal.setitimer(signal.ITIMER_REAL, 0.01)
                    time.sleep(600)
                if act == "kill self":
                    os.kill(os.getpid(), signal.SIGKILL)
                if act == "kill server":
                    os.kill(os.getppid(), signal.SIGKILL)
                    time.sleep(600)
                if act == "sleep":
                    time.sleep(600)
                while act == "wait" and not (HERE / "go").exists():
                    time.sleep(0.01)
                if act == "hold":
                    sum(itertools.repeat(0))
                result = {
                    "schema": 1,
                    "run_id": run_id,
                    "status": {"fail": "failed", "diverge": "diverged"}.get(act, "ok"),
                    "error": {"type": "ValueError", "message": "x"} if act == "fail" else None,
                    "floor": 0.25,
                    **payload["history"],
                }
                if act == "can't write":
                    return result | {
                        "status": "failed",
                        "error": {"type": "ValueError", "message": "x", "where": None},
                        "stored": False,
                    }
                write_json(folder / "spec.json", payload["description"])
                write_json(folder / "result.json", result)
                if act == "die late":
                    os._exit(9)
                return result
        except Busy:
            return {"status": "busy"}
"""


class Watching(Silent):
    """Writes down what it is told, and can act on it."""

    def __init__(self):
        self.calls: list[tuple] = []
        self.results: dict[int, dict] = {}
        self.pids: list[int] = []
        self.on_progress = lambda: None

    def begin(self, todo, done, failed):
        self.calls.append(("begin", len(todo), done, failed))

    def started(self, run):
        self.calls.append(("started", run.spec.seed))

    def progress(self, run, done, total, phase):
        self.pids.append(done)
        self.on_progress()

    def waiting(self, run):
        self.calls.append(("waiting", run.spec.seed))

    def ended(self, run, result):
        self.calls.append(("ended", run.spec.seed))
        self.results[run.spec.seed] = dict(result)

    def renamed(self, runs, files):
        self.calls.append(("renamed", [run.spec.seed for run in runs], list(files)))

    def end(self):
        self.calls.append(("end",))


class Grid:
    """A store, an engine, and runs that do as they are told."""

    def __init__(self, root: Path, folder: Path):
        self.store, self.folder = Store(root), folder
        self.acts()

    def acts(self, **by_seed: str) -> None:
        acts = {name.removeprefix("s"): act for name, act in by_seed.items()}
        (self.folder / "acts.json").write_text(json.dumps(acts))

    def run(self, seeds: str, watcher=None, engine=None, **options) -> Outcome:
        return supervise(
            make_plan(seeds),
            self.store,
            engine or Local(),
            watcher=watcher or Silent(),
            **({"workers": 2} | options),
        )

    def release(self) -> None:
        """Let runs that wait go on."""
        (self.folder / "go").touch()

    @property
    def ran(self) -> Counter:
        path = self.folder / "ran.txt"
        return Counter(path.read_text().split()) if path.exists() else Counter()

    def statuses(self, seeds: str) -> list[str]:
        return [self.store.record(run.run_id).status for run in make_plan(seeds)]


def command(grid: Grid, seeds: str, timeout_s: float | None = None) -> list[str]:
    """A command of another process: it tells the processes of its runs, then its exit code."""
    code = f"""
    import sys
    sys.path.insert(0, {str(grid.folder)!r})
    from pathlib import Path
    from rlbench.builtin.engines import Local
    from rlbench.grid import attempt, supervisor
    from rlbench.grid.experiment import build
    from rlbench.grid.identity import run_id
    from rlbench.grid.store import Store
    from rlbench.grid.watcher import Silent
    from rlbench.plugin.loading import load

    class Watcher(Silent):
        def progress(self, run, done, total, phase):
            print(done, flush=True)

    attempt.TARGET, supervisor.PRELOAD = "grid_targets:execute", ()
    specs = build(load(), selections={{}}, settings=[], seeds={seeds!r})
    outcome = supervisor.supervise(
        [attempt.Planned(run_id(spec), spec) for spec in specs],
        Store(Path({str(grid.store.root)!r})),
        Local(),
        workers=2,
        watcher=Watcher(),
        timeout_s={timeout_s!r},
    )
    print("exit code", outcome.exit_code)
    """
    return [sys.executable, "-c", textwrap.dedent(code)]


class Scripted:
    """An engine without processes: answers by seed, or ok."""

    def __init__(self, answers):
        self.answers = {
            seed: deque(a if isinstance(a, list) else [a]) for seed, a in answers.items()
        }
        self.submitted: list[str] = []
        self.jobs: list = []
        self.most = self.idle = 0

    def open(self, workers, preload):
        pass

    def submit(self, job):
        self.jobs.append(job)
        self.submitted.append(str(job.payload["spec"]["seed"]))
        self.most = max(self.most, len(self.jobs))

    def events(self, timeout_s):
        if not self.jobs:
            self.idle += 1
            assert self.idle < 1000, "it waits for ever"
            time.sleep(0.01)
            return []
        job = self.jobs.pop(0)
        answers = self.answers.get(str(job.payload["spec"]["seed"]))
        value = answers.popleft() if answers else {"status": "ok", "error": None}
        return [JobEvent(job=job.id, what="returned", value=value)]

    def close(self):
        pass
