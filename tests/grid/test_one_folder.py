"""Grids that share a folder: other settings are other runs, other spellings are not."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner

from rlbench.cli import cli
from rlbench.errors import UsageError
from rlbench.grid.axes import spell_settings
from rlbench.grid.experiment import build
from rlbench.grid.identity import canonical
from rlbench.grid.launch import plan
from rlbench.grid.store import Store
from rlbench.grid.supervisor import supervise
from rlbench.grid.watcher import Silent
from rlbench.plugin.loading import load
from rlbench.types import JobEvent

from .acting import Scripted
from .conftest import make_specs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rlbench.grid.attempt import Planned


class Quick(Scripted):
    """Does every run at once; the supervisor writes what it returns."""

    def __init__(self):
        super().__init__({})

    def events(self, timeout_s):
        job = self.jobs.pop(0)
        value = {
            "schema": 1,
            "run_id": job.id,
            "status": "ok",
            "error": None,
            "score": int(job.id[-4:], 16) / 2**16,
            "stored": False,
        }
        return [JobEvent(job=job.id, what="returned", value=value)]


def run(store: Store, runs: list[Planned], workers: int = 1, **options: Any) -> tuple[int, int]:
    """Give how many were done, and how many were there."""
    outcome = supervise(runs, store, Quick(), workers=workers, watcher=Silent(), **options)
    assert outcome.failed == 0
    return outcome.ok, outcome.skipped


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# --- other settings -------------------------------------------------------------------------------

LOSS = """
    from rlbench import hookimpl
    from rlbench.types import LossTerms

    def mine(batch, *, factor: float = 1.0):
        return LossTerms(-factor * batch.advantages * batch.logp)

    @hookimpl
    def rlbench_register_losses(register):
        register("mine", f"{__name__}:mine", summary="A loss.")
"""


@pytest.fixture
def mine(module) -> Callable[..., list[Planned]]:
    def make(settings: tuple[str, ...] = (), text: str = LOSS, **chosen: str) -> list[Planned]:
        file = str(module("folder_plugin", text))
        return plan(make_specs("0", settings, (file,), **({"loss": "mine"} | chosen)))

    return make


@pytest.mark.parametrize(
    "change",
    [
        {"loss": "mine:factor=0.5"},
        {"text": LOSS.replace("-factor", "-2 * factor")},
        {"text": LOSS.replace("factor: float = 1.0", "factor: float = 2.0")},
        {"loss": "clip:eps=0.1"},
        {"settings": ("lr=1e-4",)},
        {"settings": ("updates=7",)},
        {"settings": ("minibatches=1",)},
        {"kl": "fixed"},
        {"estimator": "rloo"},
        {"task": "sort"},
        {"model": "lstm:hidden=16"},
    ],
    ids=lambda change: "-".join(f"{name}" for name in change) + f"-{len(str(change))}",
)
def test_whatever_can_move_the_numbers_makes_another_run_beside_the_old_one(mine, tmp_path, change):
    store, before = Store(tmp_path / "out"), mine()
    assert run(store, before) == (1, 0)
    old = store.run_folder(before[0].run_id)
    as_it_was = contents(old)
    after = mine(**change)
    assert run(store, after) == (1, 0)
    assert contents(old) == as_it_was
    assert store.names() == sorted([before[0].run_id, after[0].run_id])
    for planned in (before[0], after[0]):
        assert store.record(planned.run_id).spec["run_id"] == planned.run_id
    assert store.record(after[0].run_id).spec == canonical(after[0].spec)
    assert run(store, after) == (0, 1)
    assert run(store, mine()) == (0, 1)  # and the old one is there still


def test_what_can_not_move_the_numbers_makes_no_other_run(mine, tmp_path):
    store, runs = Store(tmp_path / "out"), mine()
    assert run(store, runs) == (1, 0)
    others = (
        {"workers": 4},
        {"timeout_s": 60.0},
        {"checkpoint_every": 5},
        {"retries": 3},
        {"trackers": ("none",)},
    )
    assert [run(store, runs, **options) for options in others] == [(0, 1)] * len(others)
    store.root.rename(tmp_path / "moved")
    assert run(Store(tmp_path / "moved"), runs) == (0, 1)
    assert run(Store(tmp_path / "moved"), mine(text=f"# a comment\n{textwrap.dedent(LOSS)}")) == (
        0,
        1,
    )


# --- other spellings ------------------------------------------------------------------------------


def one_of(settings: dict[str, Any] | list[str], **chosen: str) -> Planned:
    texts = spell_settings(settings) if isinstance(settings, dict) else settings
    chosen_lists = {kind: [text] for kind, text in chosen.items()}
    (found,) = plan(build(load(), selections=chosen_lists, settings=texts, seeds="0"))
    return found


@pytest.mark.parametrize(
    ("name", "spellings", "value"),
    [
        (
            "lr",
            [
                "1e-4",
                "0.0001",
                "1.0E-4",
                "1e-04",
                ".0001",
                1e-4,
                np.float64(1e-4),
                np.array(1e-4)[()],
            ],
            1e-4,
        ),
        ("lr", ["1e-05", "0.00001", 1e-5, 0.00001, np.float64(1e-5)], 1e-5),
        ("lr", ["1", "1.0", "1e0", 1, 1.0, np.int64(1), np.float32(1)], 1.0),
        ("updates", ["100", "100.0", "1e2", 100, 100.0, 1e2, np.int64(100), np.float64(100)], 100),
    ],
)
def test_one_number_in_any_spelling_is_one_run(tmp_path, name, spellings, value):
    store = Store(tmp_path)
    done = [
        run(store, [one_of([f"{name}={s}"] if isinstance(s, str) else {name: s})])
        for s in spellings
    ]
    assert done == [(1, 0), *[(0, 1)] * (len(spellings) - 1)]
    (record,) = store.read()
    found = record.spec["settings"][name]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("seeds", ["7", "007", " 7 ", "7-7", [7], (7,), range(7, 8)])
def test_one_seed_in_any_spelling_is_one_run(seeds):
    (found,) = plan(build(load(), selections={}, settings=[], seeds=seeds))
    assert found.spec.seed == 7
    (seven,) = plan(make_specs("7"))
    assert found.run_id == seven.run_id


@pytest.mark.parametrize("other", ["True", "TRUE", "1", "yes"])
def test_one_truth_in_any_spelling_is_one_run(other):
    true = one_of([], estimator="gae:whiten=true").run_id
    assert one_of([], estimator=f"gae:whiten={other}").run_id == true
    assert one_of([], estimator="gae").run_id != true


@pytest.mark.parametrize(
    "settings",
    [["lr=true"], ["updates=true"], ["updates=100.5"], {"lr": True}, {"updates": np.True_}],
)
def test_a_truth_is_no_number_and_half_an_update_is_none(settings):
    with pytest.raises(UsageError, match=r"lr|updates"):
        one_of(settings)


def test_numbers_that_are_nearly_equal_are_two_rows_that_look_different(tmp_path):
    store = Store(tmp_path)
    nearly = 0.1 + 0.2  # 0.30000000000000004
    assert run(store, [one_of({"lr": nearly}), one_of({"lr": 0.3})]) == (2, 0)
    done = CliRunner().invoke(cli, ["table", str(tmp_path), "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert sorted(row["lr"] for row in rows) == ["0.3", "0.30000000000000004"]


# --- a command, and the same again ----------------------------------------------------------------

TINY = ("updates=2", "prompts=2", "group_size=2", "minibatches=1", "eval_prompts=8", "base_score=0")
VIEWS = {
    "table": ["table"],
    "the KL at the end": ["table", "--metric", "kl_nats"],
    "the reward": ["table", "--metric", "reward_mean", "--format", "json"],
    "one row a run": ["export"],
    "curves": ["export", "--curves"],
    "as data": ["table", "--format", "json"],
}


@dataclass(frozen=True)
class Commands:
    """Repeated seeds and learning rates, run once and then again."""

    folder: Path

    def run(self) -> subprocess.CompletedProcess[str]:
        settings = [word for text in TINY for word in ("--set", text)]
        axes = ["--set", "lr=1e-3,0.001", "--seeds", "0,0,1", "-m", "lstm:embed=8,hidden=16"]
        return subprocess.run(
            [sys.executable, "-m", "rlbench", "run", *axes, *settings, "-j", "2", "-o", "out"],
            cwd=self.folder,
            env=os.environ | {"NO_COLOR": "1", "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def views(self) -> dict[str, str]:
        """What commands that only read say, in a process that trained nothing."""
        found = {}
        for name, (command, *flags) in VIEWS.items():
            done = CliRunner().invoke(cli, [command, str(self.folder / "out"), *flags])
            assert done.exit_code == 0, done.stderr
            found[name] = done.stdout
        return found


@pytest.fixture(scope="module")
def commands(tmp_path_factory) -> Commands:
    return Commands(tmp_path_factory.mktemp("commands"))


def test_repeated_cells_and_seeds_are_run_once_and_the_same_again_loses_nothing(commands):
    first = commands.run()
    assert first.returncode == 0, first.stderr
    notes = first.stderr.splitlines()
    assert "dropped a repeated lr: 0.001 (the same as 1e-3)" in notes
    assert "dropped a repeated seed: 0" in notes
    assert "2 runs to do (1 cell, 2 seeds); 2 at a time" in notes
    folders = sorted((commands.folder / "out" / "runs").iterdir())
    assert len(folders) == 2
    assert " 2/2 " in first.stdout

    before, files = commands.views(), [contents(folder) for folder in folders]
    again = commands.run()
    assert "nothing left to run: 2 runs already there in out" in again.stderr
    assert again.stdout == first.stdout
    assert commands.views() == before
    assert [contents(folder) for folder in folders] == files
    # the views hold what they are called after
    cells = json.loads(before["as data"])["rows"]
    assert [(cell["ok"], cell["tried"]) for cell in cells] == [(2, 2)]
    curves = list(csv.DictReader(io.StringIO(before["curves"])))
    assert [(row["seed"], row["update"]) for row in curves] == [
        ("0", "1"),
        ("0", "2"),
        ("1", "1"),
        ("1", "2"),
    ]
    results = [json.loads(one["result.json"]) for one in files]
    rows = list(csv.DictReader(io.StringIO(before["one row a run"])))
    assert [float(row["kl_nats"]) for row in rows] == [result["kl"] for result in results]
    assert "kl_nats" in before["the KL at the end"]
