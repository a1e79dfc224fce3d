"""Learning curves from elsewhere, and rows that would pass for seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlbench.grid.importing import seeds_are_counted
from rlbench.grid.store import Store

from .test_importing import import_text, refusal, rlbench, scores

if TYPE_CHECKING:
    from pathlib import Path

CURVES = """algorithm,task,seed,global_step,score
a,one,0,100,0.1
a,one,0,300,0.5
a,one,0,200,0.2
a,one,1,100,0.3
a,one,1,200,nan
b,one,0,100,0.4
b,one,0,200,nan
b,one,0,300,0.6
"""


def curve(out: Path, algorithm: str, seed: int) -> str:
    (folder,) = [
        record.folder
        for record in Store(out).read()
        if record.spec
        and record.spec["seed"] == seed
        and record.spec["components"]["algorithm"]["label"] == algorithm
    ]
    return (folder / "evals.csv").read_text("utf-8")


def test_rows_of_a_run_are_one_run_with_a_curve(tmp_path: Path) -> None:
    result, out = import_text(tmp_path, "x.csv", CURVES, "--map", "step=global_step")
    assert result.exit_code == 0, result.output
    assert "8 rows are steps of 3 runs; the last one of each counts" in result.stderr
    assert "1 of 3 runs end before step 300" in result.stderr
    assert scores(out) == {("a", "one", 0): 0.5, ("a", "one", 1): None, ("b", "one", 0): 0.6}
    assert curve(out, "a", 0) == "update,score\n100,0.1\n200,0.2\n300,0.5\n"
    assert curve(out, "b", 0) == "update,score\n100,0.4\n300,0.6\n"  # what is no number is a gap


def test_curves_can_be_plotted(tmp_path: Path) -> None:
    _, out = import_text(tmp_path, "x.csv", CURVES, "--map", "step=global_step", "--floor", "0")
    done = rlbench("plot", "curves", "-o", out, "--save", tmp_path / "curves.png")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "curves.png").stat().st_size > 5000


def test_curves_are_on_the_scale_of_their_scores(tmp_path: Path) -> None:
    scale = tmp_path / "n.csv"
    scale.write_text("task,low,high\none,0.1,0.5\n", "utf-8")
    flags = ("--map", "step=global_step", "--normalise", str(scale))
    _, out = import_text(tmp_path, "x.csv", CURVES, *flags)
    assert scores(out)["a", "one", 0] == pytest.approx(1.0)
    first = curve(out, "a", 0).splitlines()[1:]
    assert [float(line.split(",")[1]) for line in first] == pytest.approx([0.0, 0.25, 1.0])


def test_steps_that_nobody_mapped_are_no_seeds(tmp_path: Path) -> None:
    for flags in ((), ("--renumber",)):
        result, out = import_text(tmp_path, "x.csv", CURVES, *flags)
        said = refusal(result)
        assert "a one seed 0 is there twice, in x.csv, line 2 and in x.csv, line 3" in said
        assert "--map step=COLUMN" in said
        assert not out.exists()


def test_the_same_row_twice_is_said_to_be_that(tmp_path: Path) -> None:
    text = "algorithm,seed,score\na,0,1\na,1,2\na,0,1\n"
    for flags in ((), ("--renumber",)):
        said = refusal(import_text(tmp_path, "x.csv", text, *flags)[0])
        assert "with the same numbers; remove one" in said


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("algorithm,seed,step,score\na,0,1,2\na,0,1,3\n", "step 1 of one run is there twice"),
        ("algorithm,step,score\na,1,2\na,2,3\n", "steps of which run?"),
    ],
)
def test_steps_that_make_no_curve_are_refused(tmp_path: Path, text: str, part: str) -> None:
    assert part in refusal(import_text(tmp_path, "x.csv", text)[0])


def counted(out: Path) -> set[bool]:
    return {seeds_are_counted(record) for record in Store(out).read()}


@pytest.mark.parametrize(
    ("name", "text", "flags", "expected"),
    [
        ("x.json", '{"a": {"one": [1, 2, 3]}}', (), {True}),
        ("x.json", '{"a": {"0": 1, "1": 2}}', ("--levels", "algorithm,seed"), {False}),
        ("x.csv", "algorithm,score\na,1\na,2\n", (), {True}),
        ("x.csv", "algorithm,seed,score\na,0,1\na,1,2\n", (), {False}),
        ("x.csv", "algorithm,seed,score\na,0,1\na,1,2\n", ("--renumber",), {True}),
        ("x.csv", "PPO,SAC\n1,2\n3,4\n", ("--wide",), {True}),
        ("x.csv", "seed,PPO,SAC\n0,1,2\n1,3,4\n", ("--wide",), {False}),
    ],
)
def test_who_gave_the_seeds_is_kept(
    tmp_path: Path, name: str, text: str, flags: tuple[str, ...], expected: set[bool]
) -> None:
    result, out = import_text(tmp_path, name, text, *flags)
    assert result.exit_code == 0, result.output
    assert counted(out) == expected


def test_seeds_that_nobody_gave_make_no_pairs(tmp_path: Path) -> None:
    # in pairs all differences would be 1, and nothing could be tested
    _, out = import_text(tmp_path, "x.json", '{"a": {"t": [1, 2, 3, 4]}, "b": {"t": [2, 3, 4, 5]}}')
    done = rlbench("compare", out, "--baseline", "a")
    assert "4 runs against 4" in " ".join(done.stdout.split())
    # Welch: 1 / sqrt(2 * (5 / 3) / 4) = 1.095, 6 degrees of freedom
    assert "0.315" in done.stdout


def test_how_names_are_nested_is_said(tmp_path: Path) -> None:
    text = '{"CartPole": {"DQN": [1, 2], "C51": [3, 4]}, "Acrobot": {"DQN": [1, 2], "C51": [3, 4]}}'
    result, _ = import_text(tmp_path, "x.json", text)
    said = "read as algorithm (CartPole, Acrobot), then task (DQN, C51)"
    assert said in result.stderr
    assert "--levels task,algorithm" in result.stderr


def test_empty_cells_of_a_wide_table_are_told(tmp_path: Path) -> None:
    result, out = import_text(tmp_path, "x.csv", "seed,PPO,SAC\n0,1,2\n1,,4\n2,5,nan\n", "--wide")
    assert "1 empty cell is no run (PPO, line 3); a run that failed has nan" in result.stderr
    assert ("PPO", "", 1) not in scores(out)
    assert scores(out)["SAC", "", 2] is None
