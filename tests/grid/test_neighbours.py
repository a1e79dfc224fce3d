"""No number of a run depends on who ran beside, before or instead of whom."""

from __future__ import annotations

import csv

from rlbench.builtin.engines import Local
from rlbench.grid.attempt import Planned
from rlbench.grid.identity import run_id
from rlbench.grid.store import Store
from rlbench.grid.supervisor import supervise
from rlbench.grid.watcher import Silent

from .conftest import make_specs

SETTINGS = (
    "updates=2",
    "prompts=4",
    "group_size=2",
    "minibatches=1",
    "epochs=1",
    "eval_prompts=4",
    "base_score=0",
)
# It seeds everybody's generators when it is imported, and tells what it draws when it is called.
RUDE = """
    import random
    import numpy as np
    import torch
    from rlbench import hookimpl
    from rlbench.types import LossTerms

    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(0)

    def rude(batch):
        drawn = (random.random(), float(np.random.rand()), float(torch.rand(())))
        metrics = {f"drawn_{i}": torch.full_like(batch.logp, x) for i, x in enumerate(drawn)}
        return LossTerms(-batch.advantages * batch.logp * sum(drawn), metrics)

    @hookimpl
    def rlbench_register_losses(register):
        register("rude", f"{__name__}:rude", summary="Seeds what is not its own.")
"""


def test_the_same_bytes_alone_in_any_company_in_any_order_with_any_number_of_workers(
    tmp_path, module
):
    plugin = str(module("rude_plugin", RUDE))

    def plan(loss: str) -> list[Planned]:
        specs = make_specs("0,1", settings=SETTINGS, plugins=(plugin,), loss=loss)
        return [Planned(run_id(spec), spec) for spec in specs]

    def numbers(name: str, runs: list[Planned], workers: int) -> dict[str, tuple[bytes, ...]]:
        store = Store(tmp_path / name)
        options = {"workers": workers, "watcher": Silent(), "plugins": (plugin,)}
        assert supervise(runs, store, Local(), **options).ok == len(runs)
        return {
            run.run_id: tuple(
                (store.run_folder(run.run_id) / file).read_bytes()
                for file in ("metrics.csv", "evals.csv", "samples.jsonl")
            )
            for run in runs
        }

    polite, rude = plan("clip"), plan("rude")
    alone = numbers("alone", polite, workers=1)
    together = numbers("together", [*polite, *rude], workers=8)
    assert numbers("reversed", [*rude, *polite][::-1], workers=1) == together
    assert numbers("rude-first", [*rude, *polite], workers=2) == together
    assert together.items() >= alone.items()
    # what the plugin draws is the run's own: from no generator the same number at both seeds
    rows = [next(csv.DictReader(together[run.run_id][0].decode().splitlines())) for run in rude]
    drawn = [[v for name, v in row.items() if "drawn_" in name] for row in rows]
    assert [len(values) for values in drawn] == [3, 3]
    assert not set(drawn[0]) & set(drawn[1])
