"""Commands that run nothing: what they print and how they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from rlbench import __version__
from rlbench.cli import cli

if TYPE_CHECKING:
    from pathlib import Path

BROKEN = "import rlbench\n\nraise ImportError('the moon is missing')\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rlbench(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def test_no_arguments_show_the_help() -> None:
    done = rlbench()
    assert done.exit_code == 0
    assert "Examples:" in done.stdout


def test_version() -> None:
    assert rlbench("--version").stdout == f"rlbench {__version__}\n"


def test_list_one_kind() -> None:
    done = rlbench("list", "loss")
    assert done.exit_code == 0
    assert done.stdout.startswith("loss\n")
    assert "estimator\n" not in done.stdout


def test_show_takes_aliases() -> None:
    assert rlbench("show", "estimator", "grpo").stdout.startswith("estimator group:")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "losses"], "unknown kind 'losses'; did you mean 'loss'?"),
        (["show", "loss", "clp"], "did you mean 'clip'?"),
        (["show", "los", "clip"], "did you mean 'loss'?"),
        (["bogus"], "No such command 'bogus'"),
        (["run", "--bogus"], "No such option"),
        (["run", "-j", "0"], "0 is not in the range x>=1"),
        (["run", "-j", "two"], "'two' is not a valid integer"),
        (["run", "-s", ""], "seeds"),
        (["run", "-s", "0-"], "'0-'"),
        (["run", "-s", "0-99999999"], "100,000"),
        (["run", "-e", "gea"], "did you mean 'gae'?"),
        (["run", "-l", "clip:ep=0.1"], "did you mean 'eps'?"),
        (["run", "-l", "clip:eps=2"], "eps=2"),
        (["run", "--set", "lr=abc"], "lr=abc"),
        (["run", "--set", "lr=nan"], "lr=nan"),
        (["run", "--set", "updtes=5"], "did you mean 'updates'?"),
        (["run", "--set", "eps=0.1"], "-l clip:eps=0.1"),
        (["run", "--set", "group_size=1"], "at least 2"),
        (["run", "--timeout", "-1"], "-1 is not a positive number of seconds"),
        (["run", "--timeout", "nan"], "nan is not a positive number of seconds"),
        (["run", "--format", "gihub"], "did you mean 'github'?"),
        (["run", "--engine", "locl"], "did you mean 'local'?"),
        (["run", "--track", "nothing"], "unknown tracker 'nothing'"),
        (["run", "--plugin", "absent.py"], "absent.py"),
        (["run", "-o", "a_file"], "a_file is a file"),
        (["run", "-o", "a_file/below"], "a_file is a file"),
        (["table", "one", "-o", "other"], "two folders"),
        (["table", "a_file"], "a_file is a file"),
        (["table", "a_file/below"], "a_file is a file"),
        (["table", "x" * 300], "File name too long"),
        (["run", "-o", "x" * 300], "File name too long"),
        (["run", "-o", ""], "the name of the folder is empty"),
        (["table", ""], "the name of the folder is empty"),
        (["run", "-o", "a", "-o", "a"], "given 2 times"),
        (["run", "-j", "1", "-j", "2"], "given 2 times"),
        (["run", "--timeout", "1", "--timeout", "2"], "given 2 times"),
        (["run", "--engine", "local", "--engine", "local"], "given 2 times"),
        (["run", "--format", "csv", "--format", "json"], "given 2 times"),
        (["table", "--max-width", "0", "--max-width", "9"], "given 2 times"),
        (["run", "-s", "0", "-s", "0-"], "'0-'"),
        (["run", "--set", "gamma=0.9"], "gae:gamma=0.9"),
        (["run", "--set", "kl.target=3"], "-k adaptive:target=3"),
        (["run", "--set", "loss.epz=3"], "did you mean 'eps'?"),
        (["run", "--set", "updates=\u0661"], "expected an integer"),
        (["run", "--set", "critic_lr=1e-3"], "no critic"),
        (["run", "--set", "base_score=0", "--set", "base_updates=9"], "leave base_updates out"),
        (["run", "-e", "group:std=false,ddof=0"], "ddof=0 has no effect unless std=true"),
        (["list", ""], "unknown kind ''"),
        (["list", "settings"], "did you mean 'setting'?"),
        (["show", "setting", "lrr"], "did you mean 'lr'?"),
        (["show", "loss", "clip:eps=9"], "eps=9: expected a number in (0, 1]"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_cost_two_lines_and_write_nothing(
    arguments: list[str], message: str, folder: Path
) -> None:
    (folder / "a_file").write_text("mine", encoding="utf-8")
    done = rlbench(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.startswith("rlbench: ")
    assert len(done.stderr.splitlines()) <= 2
    assert done.stdout == ""
    assert [path.name for path in folder.iterdir()] == ["a_file"]


def test_show_takes_settings() -> None:
    assert rlbench("show", "setting", "lr").stdout.startswith("setting\n  lr=0.0005")


def test_nothing_to_show_is_exit_code_3() -> None:
    done = rlbench("table", "nowhere")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "no results in nowhere" in done.stderr


def test_a_requested_plugin_that_fails_is_one_line(folder: Path) -> None:
    (folder / "broken_file.py").write_text(BROKEN, encoding="utf-8")
    done = rlbench("list", "--plugin", "broken_file.py")
    assert done.exit_code == 2
    assert "broken_file.py" in done.stderr
    assert "the moon is missing" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def broken_distribution(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = folder / "site"
    info = site / "moon_plugin-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: moon-plugin\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[rlbench]\nmoon = moon_plugin\n")
    (site / "moon_plugin.py").write_text(BROKEN, encoding="utf-8")
    monkeypatch.syspath_prepend(site)


@pytest.mark.usefixtures("broken_distribution")
def test_a_broken_installed_plugin_is_named_once_and_the_rest_works() -> None:
    done = rlbench("list", "loss")
    assert done.exit_code == 0
    assert "clip" in done.stdout
    (line,) = done.stderr.splitlines()
    assert "warning" in line
    assert "moon-plugin 1.2" in line
    assert "the moon is missing" in line


@pytest.mark.usefixtures("broken_distribution")
def test_plugins_lists_what_went_wrong_and_ends_well() -> None:
    done = rlbench("plugins")
    assert done.exit_code == 0
    assert "moon-plugin 1.2" in done.stdout
    assert "NOT LOADED" in done.stdout
    assert "the moon is missing" in done.stdout
    assert done.stderr == ""


@pytest.mark.usefixtures("broken_distribution")
def test_help_never_loads_plugins() -> None:
    assert rlbench("run", "--help").stderr == ""
