"""What the README shows works as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parent.parent / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```(python|toml|bash)\n(.*?)```", README, re.DOTALL)
TINY = [
    "updates=1",
    "prompts=4",
    "group_size=4",
    "minibatches=1",
    "eval_prompts=10",
    "base_score=0",
]


def block(language: str, marker: str) -> str:
    """The one fenced block of a language that holds a text."""
    found = [text for kind, text in BLOCKS if kind == language and marker in text]
    assert len(found) == 1, marker
    return found[0]


@pytest.fixture
def plugin_folder(tmp_path: Path) -> Path:
    (tmp_path / "my_loss.py").write_text(block("python", "def soft_clip"), "utf-8")
    (tmp_path / "test_my_loss.py").write_text(block("python", "def test_conforms"), "utf-8")
    return tmp_path


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_two_commands_are_there() -> None:
    commands = re.findall(r"^pip install -e .* && .*$", README, re.MULTILINE)
    assert commands == [
        "pip install -e . && rlbench run --estimator group --loss clip",
        "pip install -e '.[test]' && pytest",
    ]


def test_the_plugin_runs_with_its_options(plugin_folder: Path) -> None:
    command = block("bash", "--plugin my_loss.py").split()
    settings = [word for setting in TINY for word in ("--set", setting)]
    table = run(plugin_folder, "-m", *command, "-s", "0", *settings)
    for label in ("clip", "soft_clip", "soft_clip:width=0.5"):
        assert re.search(rf"^{label} +1/1", table, re.MULTILINE), table


def test_the_plugins_test_passes(plugin_folder: Path) -> None:
    printed = run(plugin_folder, "-m", "pytest", "-q", "-p", "no:randomly", "test_my_loss.py")
    assert re.search(r"\b[0-9]{2} passed, 1 skipped", printed), printed


def test_the_difference_of_two_rows_can_be_computed_as_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(Path(__file__).resolve().parent.parent)
    code = block("python", "paired_difference(").strip().rsplit("\n", 1)
    names: dict[str, object] = {}
    exec(code[0], names)
    interval = eval(code[1], names).interval
    assert interval.n == 5
    assert interval.low < interval.mid < interval.high


def test_the_experiment_file_makes_the_grid_that_it_describes(tmp_path: Path) -> None:
    (tmp_path / "night.toml").write_text(block("toml", "# night.toml"), "utf-8")
    plan = run(tmp_path, "-m", "rlbench", "plan", "night.toml")
    # 2 estimators x 2 losses x 2 rates x 2 pairs, less the 4 cells of gae at the high rate
    assert "12 cells, 5 seeds: 60 runs in results/night" in plan
    assert re.search(r"excluded +4 cells", plan)


def test_every_command_that_is_shown_exists() -> None:
    shown = {
        line.split()[1] for _, text in BLOCKS for line in text.split("\n") if line[:8] == "rlbench "
    }
    known = run(Path(__file__).parent, "-m", "rlbench", "--help")
    assert {"plan", "run", "export", "merge", "show", "why", "rm"} <= shown
    for command in shown:
        assert re.search(rf"^  {command}  ", known, re.MULTILINE), command
