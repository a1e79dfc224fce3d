"""Installed like a stranger's package: found, named with its origin, run in worker processes."""

import subprocess
import sys

import rlbench
from rlbench.plugin.loading import load

TINY = {
    "updates": 1,
    "prompts": 4,
    "group_size": 4,
    "minibatches": 1,
    "eval_prompts": 10,
    "base_score": 0,
}


def test_its_components_are_listed_with_their_origin():
    owner = load().find("estimator", "gpg").owner
    assert owner.distribution == "rlbench-research"
    assert owner.version == "0.1.0"
    done = subprocess.run(
        [sys.executable, "-m", "rlbench", "plugins"], capture_output=True, text=True, check=True
    )
    assert "rlbench-research 0.1.0 (plugin research)" in done.stdout
    assert done.stderr == ""


def test_its_components_run_in_worker_processes(tmp_path):
    frame = rlbench.run(
        estimator=["gpg", "max_rl"], loss="simple_po", seeds=[0], settings=TINY, out=tmp_path
    )
    assert frame["status"].tolist() == ["ok", "ok"]
    assert sorted(frame["estimator"]) == ["gpg", "max_rl"]
