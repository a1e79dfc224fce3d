"""``--retries`` and ``--max-failures`` from the command line to the results on disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner

from rlbench.cli import cli

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TINY = ["updates=1", "prompts=2", "group_size=2", "minibatches=1", "eval_prompts=8", "base_score=0"]
PLUGIN = """
from rlbench import hookimpl


def bad(batch):
    raise ValueError("always")


@hookimpl
def rlbench_register_losses(register):
    register("bad", ":bad", summary="Fails.")
"""


def test_failures_are_tried_again_until_they_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.py").write_text(PLUGIN, encoding="utf-8")
    arguments = ["run", "-l", "bad", "--plugin", "bad.py", "-s", "0-2", "-o", "out", "-j", "1"]
    arguments += ["--retries", "1", "--max-failures", "1"]
    done = CliRunner().invoke(cli, [*arguments, *(w for t in TINY for w in ("--set", t))])
    assert done.exit_code == 1
    # the second failure of seed 0 is for good, and nothing more starts
    lines = done.stderr.splitlines()
    assert sum(line.startswith("failed, is tried again: ") for line in lines) == 1
    assert sum(line.startswith("failed: ") for line in lines) == 1
    results = [
        json.loads(file.read_text()) for file in (tmp_path / "out").glob("runs/*/result.json")
    ]
    attempts = {result["run_id"].split("-")[-2]: result["attempts"] for result in results}
    assert attempts == {"s0": 2}
    (tried_twice,) = (result for result in results if result["attempts"] == 2)
    assert "always" in tried_twice["earlier"][0]["error"]["message"]


def test_one_failure_or_several_but_not_both(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    done = CliRunner().invoke(cli, ["run", "--fail-fast", "--max-failures", "3", "-o", out])
    assert done.exit_code == 2
    assert "max_failures=3" in done.stderr
    assert not list(tmp_path.iterdir())
