"""`rlbench plot`: which files it writes, what it says, and what it refuses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli
from rlbench.report.plots import NAMES

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
SEEDS = ("s0", "s1", "s2")
LOADED = """
import sys
from rlbench.cli import main
try:
    main()
except SystemExit as end:
    print(end.code, "matplotlib.pyplot" in sys.modules, "torch" in sys.modules)
"""


def plot(*arguments: str | Path, folder: Path = REFERENCE) -> Result:
    return CliRunner().invoke(cli, ["plot", "-o", str(folder), *map(str, arguments)])


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Four cells of three seeds, some of the reference runs."""
    out = tmp_path / "out"
    for source in sorted((REFERENCE / "runs").iterdir()):
        if source.name.startswith(("group-", "rloo-")) and source.name.split("-")[4] in SEEDS:
            shutil.copytree(source, out / "runs" / source.name)
    return out


def test_without_a_name_all_that_can_be_drawn_go_into_the_folder_of_results(results: Path) -> None:
    done = plot(folder=results)
    names = [name for name in NAMES if name != "improvement"]
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines() == [str(results / "plots" / f"{name}.png") for name in names]
    assert done.stderr.startswith("no improvement: 4 cells and no baseline; write --baseline")
    assert sorted(path.name for path in (results / "plots").iterdir()) == sorted(
        f"{name}.png" for name in names
    )


def test_a_baseline_makes_improvement_possible(results: Path) -> None:
    done = plot(
        "improvement", "--baseline", "group+clip", "--to", results / "a" / "b", folder=results
    )
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"{results / 'a' / 'b' / 'improvement.png'}\n"


def test_one_plot_goes_to_one_file_again_and_again(results: Path, tmp_path: Path) -> None:
    file = tmp_path / "curves.pdf"
    contents = []
    for _ in range(2):
        done = plot("curves", "--save", file, "--width", "column", folder=results)
        assert (done.exit_code, done.stdout, done.stderr) == (0, f"{file}\n", "")
        contents.append(file.read_bytes())
    assert contents[0] == contents[1]
    assert contents[0].startswith(b"%PDF")


def test_several_formats_are_written_side_by_side(results: Path, tmp_path: Path) -> None:
    done = plot("scores", "--format", "svg,PDF", "--to", tmp_path / "x", folder=results)
    assert done.stdout.split() == [
        str(tmp_path / "x" / "scores.svg"),
        str(tmp_path / "x" / "scores.pdf"),
    ]


def test_a_selection_is_what_is_drawn(results: Path, tmp_path: Path) -> None:
    file = tmp_path / "scores.svg"
    assert plot("scores", "-l", "clip", "--save", file, folder=results).exit_code == 0
    text = file.read_text("utf-8")
    assert ">group<" in text
    assert "pg" not in text


def test_another_metric_is_drawn_with_its_unit(results: Path, tmp_path: Path) -> None:
    file = tmp_path / "scores.svg"
    done = plot("scores", "--metric", "wall_s", "--save", file, folder=results)
    assert done.exit_code == 0, done.stderr
    assert "time (s)" in file.read_text("utf-8")


def test_a_torn_curve_is_named_and_the_others_are_drawn(results: Path, tmp_path: Path) -> None:
    torn = min((results / "runs").iterdir()) / "evals.csv"
    torn.write_text("update,sco", "utf-8")
    done = plot("curves", "--save", tmp_path / "a.svg", folder=results)
    assert done.exit_code == 0
    assert done.stderr.startswith(f"curves: {torn}: its first line names no columns of a run")
    assert "1 run has no curve" in (tmp_path / "a.svg").read_text("utf-8")


def test_many_remarks_are_told_in_part(results: Path, tmp_path: Path) -> None:
    for run in sorted((results / "runs").iterdir())[:8]:
        (run / "evals.csv").unlink()
    done = plot("curves", "--save", tmp_path / "a.svg", folder=results)
    assert len(done.stderr.splitlines()) == 6
    assert done.stderr.splitlines()[-1].endswith("more of this kind")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["curvs"], 2, "unknown plot 'curvs'; did you mean 'curves'?"),
        ([str(REFERENCE)], 2, f"{REFERENCE} is a folder; of results, write -o {REFERENCE}"),
        (["curves", "scores", "--save", "a.png"], 2, "--save a.png takes one plot, 2 are asked"),
        (["--save", "a.png"], 2, "--save a.png takes one plot, 6 are asked for"),
        (["curves", "--save", "a.jpg"], 2, "a.jpg: expected a name that ends in .png, .svg, .pdf"),
        (["curves", "--save", "no/a.svg"], 2, "no/a.svg: there is no folder no"),
        (["curves", "--save", "a.svg", "--to", "b"], 2, "--to is for plots in a folder"),
        (["curves", "--save", "a.svg", "--format", "svg"], 2, "--format is for plots in a folder"),
        (["scores", "--format", "jpg"], 2, "unknown plot format 'jpg'; known: pdf, png, svg"),
        (["scores", "--width", "1"], 2, "'1' is not full, column, or 3 to 30 inches"),
        (["scores", "--width", "nan"], 2, "'nan' is not full, column, or 3 to 30 inches"),
        (["curves", "--columns", "kl"], 2, "--columns is for plot matrix, which is not asked for"),
        (["scores", "--baseline", "x"], 2, "--baseline is for plot improvement"),
        (["curves", "--column", "kll"], 2, "unknown column 'kll'"),
        (["matrix", "--rows", "los"], 2, "unknown factor 'los'; did you mean 'loss'?"),
        (["improvement", "--baseline", "gruop+clip"], 2, "did you mean 'group+clip'?"),
        (["improvement"], 3, "6 cells and no baseline; write --baseline group+clip"),
        (["matrix", "-l", "clip"], 3, "the cells differ in estimator only"),
        (["scores", "-e", "gae", "-l", "pg", "-s", "9"], 3, "no result with seed 9"),
    ],
)
def test_what_can_not_be_done_is_one_line_and_writes_nothing(
    arguments: list[str], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    where = [] if "--save" in arguments else ["--to", str(tmp_path)]
    done = plot(*arguments, *where)
    assert done.exit_code == code
    assert done.stdout == ""
    assert done.stderr.startswith("rlbench: ")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_file_of_somebody_else_stays_unless_forced(results: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "scores.png"
    theirs.write_bytes(b"theirs")
    done = plot("scores", "--to", tmp_path, folder=results)
    assert done.exit_code == 2
    assert f"{theirs} is there already and no plot of rlbench" in done.stderr
    assert theirs.read_bytes() == b"theirs"
    assert plot("scores", "--to", tmp_path, "--force", folder=results).exit_code == 0


def test_a_folder_without_results_is_nothing_selected(tmp_path: Path) -> None:
    done = plot(folder=tmp_path)
    assert done.exit_code == 3
    assert "no results in" in done.stderr


def test_neither_pyplot_nor_torch_is_loaded_and_no_home_is_needed(tmp_path: Path) -> None:
    command = ["plot", "scores", "-o", str(REFERENCE), "--save", str(tmp_path / "a.svg")]
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *command],
        env={"HOME": "/nonexistent", "PATH": "", "MPLBACKEND": "TkAgg"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines()[1:] == ["0 False False"]
    assert done.stderr == ""
