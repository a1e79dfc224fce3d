"""What the supervisor costs: memory that grows with runs, seconds a run, seconds for 10,000 runs.

    python benchmarks/supervisor.py [--runs 200] [--many 10000] [--profile]

Prints what it measured beside what is promised; exit code 1 if a promise is broken. The first two
lines are of real runs of one update each, one after the other.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlbench.builtin.engines import Local
from rlbench.grid.experiment import build
from rlbench.grid.identity import Catalogue
from rlbench.grid.launch import plan
from rlbench.grid.store import Store
from rlbench.grid.supervisor import supervise
from rlbench.grid.watcher import Silent
from rlbench.plugin.loading import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlbench.grid.attempt import Planned

TINY = (
    "updates=1",
    "prompts=2",
    "group_size=2",
    "minibatches=1",
    "epochs=1",
    "eval_prompts=4",
    "base_score=0",
)
MEMORY_MB, OVERHEAD_S, PLAN_S, AGAIN_S = 20.0, 0.1, 3.0, 5.0


class Memory(Silent):
    """Looks at this process's own memory after some of the runs."""

    def __init__(self, after: tuple[int, ...]) -> None:
        self.after, self.ended_runs = after, 0
        self.megabytes: dict[int, float] = {}
        self.first_s = self.last_s = 0.0

    def ended(self, run: Planned, result: Mapping[str, Any]) -> None:  # noqa: ARG002 - the protocol's
        """Count; the first run also waits for the server to import torch."""
        self.ended_runs += 1
        self.last_s = time.monotonic()
        if self.ended_runs == 1:
            self.first_s = self.last_s
        if self.ended_runs in self.after:
            self.megabytes[self.ended_runs] = resident_mb()


def resident_mb() -> float:
    """Memory of this process that is in use, not counting what it shares with others."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("this system does not tell how much memory a process has")


def one_after_the_other(folder: Path, runs: int) -> tuple[float, float]:
    """Do real runs; give megabytes gained from run 20 to the last one, and overhead a run."""
    planned = plan(build(load(), selections={}, settings=TINY, seeds=range(runs)))
    watcher, store = Memory((20, runs)), Store(folder)
    outcome = supervise(planned, store, Local(), workers=1, watcher=watcher)
    if outcome.ok != runs:
        raise RuntimeError(f"{outcome.failed} of {runs} runs failed; see {folder}")
    results = [record.result or {} for record in store.records(run.run_id for run in planned)]
    # the base policy is shared, and no part of a run's seconds
    spent = sum(r["wall_s"] + r.get("phases", {}).get("base", 0.0) for r in results[1:])
    overhead_s = (watcher.last_s - watcher.first_s - spent) / (runs - 1)
    return watcher.megabytes[runs] - watcher.megabytes[20], overhead_s


def plan_many(many: int) -> float:
    """Seconds for building and naming runs, half of them seeds, half cells."""
    began = time.monotonic()
    registry = load()
    rates = ",".join(f"{1e-5 * n:.6g}" for n in range(1, many // 100 + 1))
    plan(build(registry, selections={}, settings=[f"lr={rates}"], seeds="0-99"))
    return time.monotonic() - began


def finish(folder: Path, many: int) -> list[str]:
    """Write finished runs that nobody made, and give the command that asks for them."""
    rates = [f"{1e-5 * n:.6g}" for n in range(1, many // 100 + 1)]
    specs = build(load(), selections={}, settings=[f"lr={','.join(rates)}"], seeds="0-99")
    catalogue = Catalogue()
    provenance = {"python": "3.12", "torch": "2", "cpu": "none", "cpu_capability": "none"}
    for spec in specs:
        description = catalogue.canonical(spec)
        run = folder / "runs" / description["run_id"]
        run.mkdir(parents=True)
        number = int(description["run_id"][-4:], 16) / 65536
        result = {
            "schema": description["schema"],
            "run_id": description["run_id"],
            "status": "ok",
            "error": None,
            **dict.fromkeys(("score_start", "score", "reward", "kl", "entropy"), number),
            **dict.fromkeys(("length", "wall_s", "floor"), 1.0),
            "tokens": 1,
            "provenance": provenance,
        }
        for name, content in (("spec.json", description), ("result.json", result)):
            (run / name).write_text(json.dumps(content, indent=1))
    flags = ["-s", "0-99", "--set", f"lr={','.join(rates)}", "-o", str(folder)]
    return [*flags, "--format", "json"]


def timed(command: list[str], *, profile: bool) -> float:
    """Seconds of a command of its own process; with a profile, where they go."""
    if profile:
        from click.testing import CliRunner

        from rlbench.cli import cli

        profiler = cProfile.Profile()
        profiler.runcall(CliRunner().invoke, cli, command)
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("cumtime").print_stats(50)
    began = time.monotonic()
    subprocess.run(  # noqa: S603 - this interpreter and the flags above
        [sys.executable, "-m", "rlbench", *command],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.monotonic() - began


def main() -> int:
    """Measure, and compare with what is promised."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--many", type=int, default=10_000)
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = []
        if asked.runs > 20:
            grown_mb, overhead_s = one_after_the_other(folder / "real", asked.runs)
            found += [
                (f"memory gained, run 20 to {asked.runs}", grown_mb, MEMORY_MB, "MB"),
                ("overhead a run", overhead_s, OVERHEAD_S, "s"),
            ]
        found.append((f"planning {asked.many:,} runs", plan_many(asked.many), PLAN_S, "s"))
        again = finish(folder / "many", asked.many)
        for command in (["run", *again], ["table", str(folder / "many")]):
            seconds = timed(command, profile=asked.profile)
            what = f"rlbench {command[0]} on {asked.many:,} finished runs"
            found.append((what, seconds, AGAIN_S, "s"))
    for what, measured, promised, unit in found:
        sys.stdout.write(f"{what:45} {measured:8.3f} {unit:2}  (promised: {promised:g} {unit})\n")
    return int(any(measured > promised for _, measured, promised, _ in found))


if __name__ == "__main__":
    sys.exit(main())
