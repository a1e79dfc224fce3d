"""`rlbench plan`: a failed run that can't be tried again is not among what is to do."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlbench.cli import cli
from rlbench.grid.identity import canonical
from rlbench.grid.launch import plan
from rlbench.grid.request import ask
from rlbench.plugin.loading import load

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("flags", "counts", "to_do"),
    [
        ([], "3 runs: 0 done, 1 missing, 2 failed. 1 run to do", False),
        (["--retry"], "3 runs: 0 done, 1 missing, 1 failed, 1 blocked. 2 runs to do", True),
    ],
)
def test_what_lies_in_the_place_of_a_failed_run_blocks_only_another_try(
    *, tmp_path: Path, flags: list[str], counts: str, to_do: bool
) -> None:
    request = ask(None, load=load, axes={}, settings=(), seeds="0-2", plugins=(), how={})
    for run in plan(request.specs)[:2]:
        folder = tmp_path / "runs" / run.run_id
        folder.mkdir(parents=True)
        (folder / "spec.json").write_text(json.dumps(canonical(run.spec)), "utf-8")
        result = {"schema": 1, "run_id": run.run_id, "status": "failed"}
        (folder / "result.json").write_text(json.dumps(result), "utf-8")
    os.mkfifo(folder / "log.txt")
    done = CliRunner().invoke(cli, ["plan", "-s", "0-2", "-o", str(tmp_path), *flags])
    assert done.exit_code == 0
    assert counts in " ".join(done.stdout.split())
    assert (f"warning: {folder / 'log.txt'} is a FIFO, where a file" in done.stderr) is to_do
