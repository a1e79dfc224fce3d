"""A seed reaches everything that is random, and nothing else moves a number."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import torch

from rlbench.grid.store import Store
from rlbench.training import sealed

if TYPE_CHECKING:
    from pathlib import Path

    from rlbench.grid.store import Record

TINY = "updates=2 prompts=2 group_size=2 minibatches=1 eval_prompts=8 base_score=0"


def run(folder: Path, threads: str) -> list[Record]:
    """Train seeds 0 to 2 where libraries are told to use so many threads."""
    words = [word for text in TINY.split() for word in ("--set", text)]
    done = subprocess.run(
        [sys.executable, "-m", "rlbench", "run", "-t", "sort", "-s", "0-2", *words, "-o", folder],
        env=os.environ | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Store(folder).read()


def texts(records: list[Record], name: str) -> list[str]:
    return [(record.folder / name).read_text("utf-8") for record in records]


def test_seeds_differ_in_everything_and_repeats_in_nothing(tmp_path: Path) -> None:
    first, again = run(tmp_path / "a", "1"), run(tmp_path / "b", "8")
    for name in ("metrics.csv", "evals.csv", "samples.jsonl"):
        assert texts(first, name) == texts(again, name)
        assert len(set(texts(first, name))) == 3
    hashes = [(record.result or {})["metrics_sha256"] for record in first + again]
    assert hashes[:3] == hashes[3:]
    assert len(set(hashes)) == 3
    files = sorted((tmp_path / "a" / "base").glob("*.pt"))
    weights = [
        torch.cat([one.flatten() for one in sealed.read(file)["weights"].values()])
        for file in files
    ]
    assert len(weights) == 3
    assert all(not torch.equal(weights[i], weights[i - 1]) for i in range(3))
    # the harness pins the threads of a run, and says how many
    assert {(record.result or {})["provenance"]["threads"] for record in first + again} == {1}
