"""Whatever is made of the seeds of a race says that a race spent them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlbench.cli import cli
from rlbench.grid.race import Pair, RacePlan, key_of
from rlbench.grid.race_file import enter

from .test_effects_command import REFERENCE

if TYPE_CHECKING:
    from pathlib import Path

WARNED = "its seeds were spent by what was seen"
COMMANDS = (["table"], ["compare", "--baseline", "group+clip"], ["effects"])


@pytest.fixture
def raced(tmp_path: Path) -> Path:
    root = tmp_path / "raced"
    shutil.copytree(REFERENCE, root)
    specs = [json.loads(file.read_text("utf-8")) for file in sorted(root.glob("runs/*/spec.json"))]
    cells = list(dict.fromkeys(key_of(spec) for spec in specs))
    plan = RacePlan(pairs=(Pair(cell=cells[0], other=cells[1]),), seeds=(0, 1, 2, 3, 4), looks=None)
    enter(root, plan, {})
    return root


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("format_", ["simple", "github", "latex", "html", "json"])
def test_every_table_says_so(raced: Path, command: list[str], format_: str) -> None:
    done = CliRunner().invoke(cli, [*command, "-o", str(raced), "--format", format_])
    assert done.exit_code == 0, done.stderr
    text = json.dumps(json.loads(done.stdout)) if format_ == "json" else done.stdout
    assert WARNED in " ".join(text.split())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_plan_that_nobody_can_read_may_have_spent_them(raced: Path, command: list[str]) -> None:
    (raced / "race.json").write_text("{}", "utf-8")
    done = CliRunner().invoke(cli, [*command, "-o", str(raced)])
    text = "".join(done.stdout.split())  # a long path may be folded
    assert "Whetheraracespenttheseseedsisnotknown" in text
    assert "race.json" in text


def test_results_without_a_race_say_nothing_of_it() -> None:
    done = CliRunner().invoke(cli, ["table", "-o", str(REFERENCE)])
    assert WARNED not in " ".join(done.stdout.split())
