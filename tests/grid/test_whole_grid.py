"""Grids of real runs, as small as they can be, with the real trainer in real processes."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

from rlbench.builtin.engines import Local
from rlbench.grid.attempt import Planned
from rlbench.grid.identity import run_id
from rlbench.grid.store import Store
from rlbench.grid.supervisor import supervise
from rlbench.grid.watcher import Silent

from .conftest import make_specs

TINY = (
    "updates=2",
    "prompts=4",
    "group_size=2",
    "minibatches=1",
    "epochs=1",
    "eval_prompts=4",
    "base_score=0",
)

PLUGIN = """
    import os
    import numpy as np
    from rlbench import hookimpl
    from rlbench.types import Advantage, LossTerms

    def noisy(rollout, *, scale: float = 1.0):
        '''Draws its baseline from the global generator of numpy.'''
        noise = float(np.random.rand()) * scale
        return Advantage((rollout.reward[:, None] - noise).expand(rollout.mask.shape).clone())

    def faulty(batch, *, fault: str = "none"):
        '''Fails in the way that is asked for.'''
        if fault == "raise":
            raise ValueError("no such loss, ≤ 0")
        if fault == "nan":
            return LossTerms(batch.logp * float("nan"))
        if fault == "exit":
            os._exit(9)
        if fault == "leave":
            raise SystemExit("bye")
        return LossTerms(-batch.advantages * batch.logp)

    @hookimpl
    def rlbench_register_estimators(register):
        register("noisy", f"{__name__}:noisy", summary="A random baseline.")

    @hookimpl
    def rlbench_register_losses(register):
        register("faulty", f"{__name__}:faulty", summary="Fails.")
"""


@pytest.fixture
def plugin(module):
    return str(module("whole_grid_plugin", PLUGIN))


def plan(plugin, seeds, **selections):
    specs = make_specs(seeds, settings=TINY, plugins=(plugin,), **selections)
    return [Planned(run_id(spec), spec) for spec in specs]


def run(root, runs, plugin, workers):
    return supervise(
        runs,
        Store(root),
        Local(),
        workers=workers,
        watcher=Silent(),
        plugins=(plugin,),
        timeout_s=120,
    )


def test_the_same_bytes_with_one_worker_or_two_in_any_order(tmp_path, plugin):
    runs = plan(plugin, "0-2", estimator="noisy", loss="pg")
    assert run(tmp_path / "one", runs, plugin, workers=1).ok == 3
    assert run(tmp_path / "two", runs[::-1], plugin, workers=2).ok == 3
    contents = []
    for planned in runs:
        one, two = (
            [
                (tmp_path / root / "runs" / planned.run_id / name).read_bytes()
                for name in ("metrics.csv", "evals.csv", "samples.jsonl", "spec.json")
            ]
            for root in ("one", "two")
        )
        assert one == two
        contents.append(one[0])
    # a plugin that draws from a global generator gets other numbers at each seed
    assert len(set(contents)) == 3


def test_every_kind_of_failure_is_a_row_and_the_others_finish(tmp_path, plugin):
    kinds = ("none", "raise", "nan", "exit", "leave")
    runs = [plan(plugin, "0", estimator="group", loss=f"faulty:fault={kind}")[0] for kind in kinds]
    outcome = run(tmp_path, runs, plugin, workers=2)
    assert (outcome.ok, outcome.failed, outcome.exit_code) == (1, 4, 1)
    records = {
        kind: Store(tmp_path).record(planned.run_id)
        for kind, planned in zip(kinds, runs, strict=True)
    }
    statuses = {kind: record.status for kind, record in records.items()}
    assert statuses == {
        "none": "ok",
        "raise": "failed",
        "nan": "diverged",
        "exit": "failed",
        "leave": "failed",
    }
    assert "no such loss, ≤ 0" in records["raise"].result["error"]["message"]
    assert "no such loss, ≤ 0" in (records["raise"].folder / "log.txt").read_text("utf-8")
    for record in records.values():
        assert record.problem is None
        assert record.result["floor"] == 0.0
        assert record.spec["run_id"] == record.run_id
        for name in ("spec.json", "result.json"):
            json.loads((record.folder / name).read_text("utf-8"), parse_constant=pytest.fail)


def test_a_notebook_runs_a_grid_without_torch_of_its_own(tmp_path):
    # what a kernel does: code typed into a session, run in a thread that is not the main one
    code = f"""
    import sys, threading
    from pathlib import Path
    from rlbench.builtin.engines import Local
    from rlbench.grid.experiment import build
    from rlbench.grid.identity import run_id
    from rlbench.grid.store import Store
    from rlbench.grid.attempt import Planned
    from rlbench.grid.supervisor import supervise
    from rlbench.grid.watcher import Silent
    from rlbench.plugin.loading import load

    def cell():
        specs = build(load(), selections={{}}, settings={TINY!r}, seeds="0,1")
        runs = [Planned(run_id(spec), spec) for spec in specs]
        outcome = supervise(
            runs, Store(Path({str(tmp_path)!r})), Local(), workers=2, watcher=Silent(),
            timeout_s=120,
        )
        print(outcome.ok, outcome.exit_code)

    thread = threading.Thread(target=cell)
    thread.start()
    thread.join()
    print([name for name in ("torch", "numpy", "pandas", "scipy") if name in sys.modules])
    """
    ended = subprocess.run(
        [sys.executable, "-i", "-q", "-c", textwrap.dedent(code)],
        input="",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=tmp_path,
    )
    assert ended.stdout == "2 0\n[]\n", ended.stderr
