"""`rlbench show run`: what a run was, and the one command that repeats exactly this run."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli
from rlbench.grid import compare, repeat
from rlbench.grid.experiment import build
from rlbench.grid.identity import canonical, run_id
from rlbench.grid.store import Store
from rlbench.plugin.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLUGIN = """
from rlbench import hookimpl
from rlbench.types import LossTerms


def scaled(batch, *, scale: float = 1.0, tag: str = "plain"):
    return LossTerms(-scale * batch.advantages * batch.logp)


@hookimpl
def rlbench_register_losses(register):
    register("scaled", ":scaled", summary="Scaled.")
"""
TINY = "updates=1 prompts=2 group_size=2 minibatches=1 eval_prompts=8 base_score=0"
SET = [word for text in TINY.split() for word in ("--set", text)]


def rlbench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rlbench", *arguments],
        cwd=folder,
        env=os.environ | {"NO_COLOR": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def command_in(text: str) -> list[str]:
    lines = text.splitlines()
    return shlex.split(lines[lines.index("repeat exactly this run") + 1])


def show(out: Path | str, name: str) -> Result:
    return CliRunner().invoke(cli, ["show", "run", name, "-o", str(out)])


def test_the_printed_command_makes_the_same_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "my loss.py"
    file.write_text(PLUGIN, "utf-8")
    loss = "scaled:scale=0.5,tag=it's $HOME"
    axes = ["-l", loss, "--plugin", file.name, "-t", "sort", "-k", "fixed:coef=0.01", "-s", "7"]
    done = rlbench(tmp_path, "run", *axes, *SET, "-o", "out")
    assert done.returncode == 0, done.stderr
    (run,) = Store(tmp_path / "out").read()
    shown = show("out", run.run_id[-10:])
    assert shown.exit_code == 0, shown.stderr
    assert "warning" not in shown.stdout
    words = command_in(shown.stdout)
    assert words[:2] == ["rlbench", "run"]
    assert "-e" not in words  # what is at its default is not said
    again = rlbench(tmp_path, *words[1:])
    assert again.returncode == 0, again.stderr
    (repeated,) = Store(tmp_path / words[-1]).read()
    assert repeated.run_id == run.run_id
    assert compare.of_numbers(run, repeated) is None
    assert (repeated.folder / "metrics.csv").stat().st_size > 0
    # and once the file says something else, that is said
    file.write_text(PLUGIN.replace("-scale", "-2 * scale"), "utf-8")
    shown = show("out", run.run_id)
    assert "warning: what is installed now is not what this run was made with" in shown.stdout
    assert "source of loss scaled" in shown.stdout
    file.unlink()
    flat = " ".join(show("out", run.run_id).stdout.split())
    assert "warning: my loss.py is not here; add --plugin FILE, or go to the folder" in flat
    assert "unknown loss" not in flat
    assert "--plugin 'my loss.py'" in flat


def test_everything_that_is_known_of_a_run_is_shown(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    made = {
        "rlbench": "0.1.0",
        "threads": 1,
        "cpu": "Some CPU",
        "python": "3.11.7",
        "started": "2026-01-02T03:04:05+00:00",
        "git": {"commit": "0123456789abcdef", "dirty": True},
        "plugins_git": {"my_loss.py": {"commit": "fedcba", "dirty": False}},
        "plugins": ["my_loss.py"],
    }
    result = {
        "provenance": made,
        "phases": {"rollout": 4.5},
        "kl": 0.06999999999999999,
        "score_start": 0.5,
    }
    folder = write_run(tmp_path, settings={"lr": 0.25}, result=result)
    done = show(tmp_path, folder.name)
    assert done.exit_code == 0
    flat = " ".join(done.stdout.split())
    for text in [
        f"run {folder.name} status ok",
        "loss clip (rlbench 0.1.0, source loss0123456789)",
        "lr 0.25 (set)",
        "kl_nats 0.07 ",
        "rollout 4.5",
        "on the clock 11.0",
        "python 3.11.7",
        "git commit 0123456789abcdef, with uncommitted changes",
        "git of my_loss.py commit fedcba",
        "cpu Some CPU",
        "threads 1",
        "started 2026-01-02T03:04:05+00:00",
        "metrics.csv 41 bytes",
        f"rlbench run -s 0 --set lr=0.25 --plugin my_loss.py -o again-{folder.name[-10:]}",
        "source of loss clip",  # no file says loss0123456789
    ]:
        assert text in flat, text


def test_a_run_that_failed_or_has_not_ended_is_shown(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    error = {"type": "ValueError", "message": "boom\nmore", "where": "a.py:3 in f"}
    failed = write_run(tmp_path, status="failed", result={"error": error})
    shown = " ".join(show(tmp_path, failed.name).stdout.split())
    assert "status failed" in shown, show(tmp_path, failed.name).stderr
    assert "error ValueError: boom where a.py:3 in f" in shown
    started = write_run(tmp_path, seed=1, status=None)
    done = show(tmp_path, started.name)
    assert (done.exit_code, "missing" in done.stdout) == (0, True)
    assert "-s 1" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nothing"], "unknown run 'nothing'"),
        (["run", "group-clip-s0"], "can't be read"),
        (["loss", "clip", "-o", "out"], "-o names a folder of results"),
        (["rum", "x"], "did you mean 'run'"),
    ],
)
def test_mistakes(
    tmp_path: Path,
    write_run: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    torn = write_run(tmp_path / "results" / "local")
    (torn / "spec.json").write_text("{", "utf-8")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["show", *arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.parametrize(
    "selections",
    [
        {"estimator": ["gae:lam=0.9"], "loss": ["clip:eps=0.1,eps_high=0.3"]},
        {"kl": ["adaptive:target=0.3"]},
        {"kl": ["fixed:coef=0.2,place=reward"]},
        {"task": ["sort"], "model": ["lstm:hidden=32"]},
    ],
)
def test_a_run_is_built_again_from_its_specification(selections: dict[str, list[str]]) -> None:
    registry = load()
    settings = ["lr=1e-4", "horizon=8", "aggregation=token_sum_norm"]
    (spec,) = build(registry, selections=selections, settings=settings, seeds="3")
    description = json.loads(json.dumps(canonical(spec)))
    assert run_id(repeat.rebuild(registry, description)) == run_id(spec)
    assert repeat.changed(registry, description) == []
