"""`rlbench plot`: which files it writes, what it says, and what it refuses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli
from rlbench.report.plots import AGAINST, NAMES

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
    names = [name for name in NAMES if name not in AGAINST]
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines() == [str(results / "plots" / f"{name}.png") for name in names]
    assert done.stderr.startswith(
        "no differences, improvement: 4 cells and no baseline; write --baseline"
    )
    assert len(done.stderr.splitlines()) == 1
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
        (["no/such"], 2, "there is no folder no/such, and no plot of that name"),
        ([""], 2, "the name of the plot is empty"),
        ([str(REFERENCE.parent)], 2, "two folders of results were given"),
        ([str(REFERENCE), str(REFERENCE.parent)], 2, "2 folders of results were given"),
        (["scores", "--margin", "0.1"], 2, "--margin is for plot differences, which is not asked"),
        (["differences", "--margin", "-1"], 2, "-1 is not a positive difference"),
        (["scores", "--normalise", "no.csv"], 2, "no.csv can't be read: No such file"),
        (
            ["scores", "--normalise", "no.csv", "--metric", "wall_s"],
            2,
            "--normalise is for scores, not for wall_s",
        ),
        (["curves", "scores", "--save", "a.png"], 2, "--save a.png takes one plot, 2 are asked"),
        (["--save", "a.png"], 2, "--save a.png takes one plot, 7 are asked for"),
        (["curves", "--save", "a.jpg"], 2, "a.jpg: expected a name that ends in .png, .svg, .pdf"),
        (["curves", "--save", "no/a.svg"], 2, "no/a.svg: there is no folder no"),
        (["curves", "--save", "a.svg", "--to", "b"], 2, "--to is for plots in a folder"),
        (["curves", "--save", "a.svg", "--format", "svg"], 2, "--format is for plots in a folder"),
        (["scores", "--format", "jpg"], 2, "unknown plot format 'jpg'; known: pdf, png, svg"),
        (["scores", "--width", "1"], 2, "'1' is not full, column, or 3 to 30 inches"),
        (["scores", "--width", "nan"], 2, "'nan' is not full, column, or 3 to 30 inches"),
        (["curves", "--columns", "kl"], 2, "--columns is for plot matrix, which is not asked for"),
        (
            ["scores", "--baseline", "x"],
            2,
            "--baseline is for plots differences and improvement, none",
        ),
        (["curves", "--column", "kll"], 2, "unknown column 'kll'"),
        (["matrix", "--rows", "los"], 2, "unknown factor 'los'; did you mean 'loss'?"),
        (["improvement", "--baseline", "gruop+clip"], 2, "did you mean 'group+clip'?"),
        (["improvement"], 2, "6 cells and no baseline; write --baseline group+clip"),
        (["scores", "differences"], 2, "6 cells and no baseline; write --baseline group+clip"),
        (
            ["improvement", "-e", "gae", "-l", "pg"],
            3,
            "one cell alone: there is nothing to compare",
        ),
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


def theirs(folder: Path, rows: str) -> Path:
    """Import results that somebody else made."""
    (folder / "theirs.csv").write_text(f"algorithm,task,seed,score\n{rows}", "utf-8")
    out = folder / "theirs"
    done = CliRunner().invoke(cli, ["import", str(folder / "theirs.csv"), "-o", str(out)])
    assert done.exit_code == 0, done.stderr
    return out


def rows_of(algorithms: int, tasks: int, size: float = 1.0) -> str:
    return "".join(
        f"a{a},t{t},{seed},{size * (a + seed + 1)}\n"
        for a in range(algorithms)
        for t in range(tasks)
        for seed in range(3)
    )


def test_a_folder_among_the_names_is_that_of_the_results(results: Path, tmp_path: Path) -> None:
    for given in (["scores", str(results)], [str(results), "scores", "-o", str(results)]):
        file = tmp_path / "a.svg"
        done = CliRunner().invoke(cli, ["plot", *given, "--save", str(file)])
        assert (done.exit_code, done.stdout, done.stderr) == (0, f"{file}\n", "")


def test_a_plot_is_never_taken_for_a_folder(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scores").mkdir()
    monkeypatch.chdir(tmp_path)
    assert plot("scores", "--save", "a.svg", folder=results).exit_code == 0


def test_imported_results_are_narrowed_by_their_algorithm(tmp_path: Path) -> None:
    done = plot("scores", "profile", folder=theirs(tmp_path, rows_of(31, 2)))
    assert done.exit_code == 3
    assert (
        "62 cells are too many for one figure, which shows up to 60; select some with -a, -t or "
        in done.stderr
    )
    assert (
        "31 profiles are too many for one figure, which shows up to 12; select some with -a or "
        in done.stderr
    )


def test_one_algorithm_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    out = theirs(tmp_path, rows_of(1, 3))
    done = plot("improvement", folder=out)
    assert done.exit_code == 3
    assert "the 3 cells differ in nothing but the task: there is nothing to compare" in done.stderr
    assert "--baseline" not in done.stderr
    everything = plot(folder=out)
    assert everything.exit_code == 0
    assert "no differences, improvement: the 3 cells differ in nothing" in everything.stderr


def test_scores_are_normalised_for_a_figure(tmp_path: Path) -> None:
    out = theirs(tmp_path, "A,x,0,15\nA,x,1,20\nA,y,0,150\nA,y,1,200\n")
    scales = tmp_path / "scales.csv"
    scales.write_text("task,low,high\nx,10,20\ny,100,200\n", "utf-8")
    file = tmp_path / "a.svg"
    raw = plot("profile", "--save", file, folder=out)
    assert raw.stderr.startswith("profile: scores of these tasks seem to be on different scales")
    assert "--normalise FILE puts all on one" in file.read_text("utf-8").replace("</text>", "")
    done = plot("profile", "--save", file, "--normalise", scales, folder=out)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "threshold: normalised score" in file.read_text("utf-8")
    scores = plot("scores", "--save", file, "--normalise", scales, folder=out)
    assert (scores.exit_code, scores.stderr) == (0, "")
    # 0.5 and 1 in either task: t(1) 12.706 * 0.25 = 3.18
    assert file.read_text("utf-8").count("0.75 ± 3.18") == 2


@pytest.mark.parametrize(
    ("scales", "message"),
    [
        ("x,10,20\n", "unknown task of the results, to be normalised: 'y'"),
        ("x,10,20\ny,200,100\n", "task y: more is better, but the score that counts as 1, 100, is"),
    ],
)
def test_scales_that_do_not_fit_are_refused(scales: str, message: str, tmp_path: Path) -> None:
    out = theirs(tmp_path, "A,x,0,15\nA,y,0,150\n")
    (tmp_path / "scales.csv").write_text(f"task,low,high\n{scales}", "utf-8")
    done = plot("scores", "--normalise", tmp_path / "scales.csv", folder=out)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("size", [1e300, 1e304])
def test_numbers_as_large_as_they_come_make_a_figure_without_a_word(
    size: float, tmp_path: Path
) -> None:
    out = theirs(tmp_path, rows_of(2, 1, size))
    for width in ("full", "column"):
        done = plot("scores", "profile", "differences", "--width", width, folder=out)
        assert (done.exit_code, done.stderr) == (0, "")


def test_numbers_too_large_for_an_axis_are_a_reason(tmp_path: Path) -> None:
    out = theirs(tmp_path, rows_of(2, 1, 4e307))
    done = plot("scores", folder=out)
    assert done.exit_code == 3
    assert done.stderr == ("rlbench: its numbers are too large for an axis; use a larger unit\n")


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
