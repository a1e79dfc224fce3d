"""Whatever is made of the seeds of a race says that a race spent them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlbench.cli import cli

from .test_effects_command import REFERENCE

if TYPE_CHECKING:
    from pathlib import Path

WARNED = "its seeds were spent by what was seen"


@pytest.fixture
def raced(tmp_path: Path) -> Path:
    root = tmp_path / "raced"
    shutil.copytree(REFERENCE, root)
    (root / "race.json").write_text("{}", "utf-8")  # a plan that nobody can read spends all
    return root


@pytest.mark.parametrize(
    "command",
    [["table"], ["compare", "--baseline", "group+clip"], ["effects"]],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize("format_", ["simple", "github", "latex", "html", "json"])
def test_every_table_says_so(raced: Path, command: list[str], format_: str) -> None:
    done = CliRunner().invoke(cli, [*command, "-o", str(raced), "--format", format_])
    assert done.exit_code == 0, done.stderr
    text = json.dumps(json.loads(done.stdout)) if format_ == "json" else done.stdout
    assert WARNED in " ".join(text.split())


def test_results_without_a_race_say_nothing_of_it() -> None:
    done = CliRunner().invoke(cli, ["table", "-o", str(REFERENCE)])
    assert WARNED not in " ".join(done.stdout.split())
