"""What other tools write: statuses, floors of several tasks, names of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlbench.grid.store import Store
from rlbench.report.cells.cell import cells
from rlbench.report.plots import curves

from .test_importing import import_text, refusal, scores
from .test_importing_steps import CURVES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("status", "ours"),
    [
        ("finished", "ok"),
        ("FINISHED", "ok"),
        ("Completed", "ok"),
        ("success", "ok"),
        ("crashed", "failed"),
        ("FAILED", "failed"),
        ("Error", "failed"),
        ("timed_out", "timeout"),
        ("diverged", "diverged"),
        (" ok ", "ok"),
    ],
)
def test_statuses_of_other_tools_are_known(tmp_path: Path, status: str, ours: str) -> None:
    text = f"algorithm,seed,status,score\na,0,{status},0.5\na,1,ok,0.6\n"
    result, out = import_text(tmp_path, "x.csv", text)
    assert result.exit_code == 0, result.output
    found = {record.spec["seed"]: record.status for record in Store(out).read() if record.spec}
    assert found == {0: ours, 1: "ok"}
    assert scores(out)["a", "", 0] == (0.5 if ours == "ok" else None)


def test_a_run_that_came_to_no_end_is_no_result_and_is_told(tmp_path: Path) -> None:
    text = (
        "algorithm,seed,status,score\na,0,finished,0.5\na,1,running,0.1\na,2,killed,0.2\n"
        "a,3,RUNNING,0.3\n"
    )
    result, out = import_text(tmp_path, "x.csv", text)
    assert scores(out) == {("a", "", 0): 0.5}
    assert (
        "3 runs are left out, which came to no end of their own (1 killed, 2 running): what they "
        "would have scored is not known"
    ) in result.stderr
    nothing = refusal(import_text(tmp_path, "y.csv", "algorithm,status,score\na,queued,0.1\n")[0])
    assert "no run in it came to an end" in nothing


def test_a_status_that_nobody_knows_is_refused_with_the_nearest(tmp_path: Path) -> None:
    said = refusal(import_text(tmp_path, "x.csv", "algorithm,seed,status,score\na,0,finishd,0.5\n")[0])
    assert "unknown status in x.csv, line 2: 'finishd'; did you mean 'finished'?" in said


TASKS = "algorithm,task,seed,score\na,Pong,0,nan\na,Pong,1,3\na,Boxing,0,nan\na,Boxing,1,80\n"


def test_each_task_may_have_a_floor_of_its_own(tmp_path: Path) -> None:
    _, out = import_text(tmp_path, "x.csv", TASKS, "--floor", "Pong=-21,Boxing=0")
    found = {cell.columns["task"]: cell.score.mid for cell in cells(Store(out).read()) if cell.score}
    assert found == {"Pong": (3 - 21) / 2, "Boxing": 40.0}


def test_a_floor_without_a_task_is_that_of_all_others(tmp_path: Path) -> None:
    _, out = import_text(tmp_path, "x.csv", TASKS, "--floor", "-21", "--floor", "Boxing=2")
    found = {cell.columns["task"]: cell.score.mid for cell in cells(Store(out).read()) if cell.score}
    assert found == {"Pong": (3 - 21) / 2, "Boxing": 41.0}


@pytest.mark.parametrize(
    ("floor", "said"),
    [
        ("Png=1", "unknown task of a floor: 'Png'; did you mean 'Pong'?"),
        ("Pong=low", "--floor 'Pong=low': write a finite score, such as -1, or TASK=SCORE"),
        ("nan", "--floor 'nan': write a finite score"),
        ("1,2", "--floor: a score is given twice"),
        ("Pong=90", "the floor 90 is as good as the best score of task 'Pong', 3, or better"),
    ],
)
def test_floors_that_make_no_sense_are_refused(tmp_path: Path, floor: str, said: str) -> None:
    assert said in refusal(import_text(tmp_path, "x.csv", TASKS, "--floor", floor)[0])


def test_curves_are_over_what_their_file_calls_it(tmp_path: Path) -> None:
    _, out = import_text(
        tmp_path, "x.csv", CURVES, "--map", "step=global_step", "--floor", "0"
    )
    figure = curves.draw(cells(Store(out).read()), width=6.8, note=print)
    assert [axes.get_xlabel() for axes in figure.axes] == ["global_step"]


def test_a_run_with_a_curve_is_as_its_last_step(tmp_path: Path) -> None:
    text = (
        "algorithm,seed,step,status,score\na,0,1,running,0.1\na,0,2,finished,0.5\n"
        "a,1,1,running,0.2\na,1,2,crashed,0.3\na,2,1,running,0.2\na,2,2,running,0.9\n"
    )
    result, out = import_text(tmp_path, "x.csv", text)
    assert scores(out) == {("a", "", 0): 0.5, ("a", "", 1): None}
    assert "1 run is left out, which came to no end of its own (1 running)" in result.stderr
    (first,) = [record for record in Store(out).read() if record.spec and record.spec["seed"] == 0]
    assert (first.folder / "evals.csv").read_text("utf-8") == "update,score\n1,0.1\n2,0.5\n"


@pytest.mark.parametrize("step", ["nan", "", "inf", "-inf"])
def test_a_step_that_is_no_number_is_refused(tmp_path: Path, step: str) -> None:
    text = f"algorithm,seed,step,score\na,0,{step},0.1\na,0,2,0.5\n"
    said = refusal(import_text(tmp_path, "x.csv", text)[0])
    assert "x.csv, line 2: step is " in said
    assert "expected a finite number" in said


def test_an_empty_column_of_steps_is_none(tmp_path: Path) -> None:
    _, out = import_text(tmp_path, "x.csv", "algorithm,seed,step,score\na,0,,0.1\na,1,,0.5\n")
    assert scores(out) == {("a", "", 0): 0.1, ("a", "", 1): 0.5}


def test_what_is_replaced_leaves_no_curve_behind(tmp_path: Path) -> None:
    text = "algorithm,seed,step,score\na,0,1,0.1\na,0,2,0.5\n"
    import_text(tmp_path, "x.csv", text)
    _, out = import_text(tmp_path, "y.csv", "algorithm,seed,score\na,0,0.9\n", "--replace")
    (one,) = Store(out).read()
    assert scores(out) == {("a", "", 0): 0.9}
    assert not (one.folder / "evals.csv").exists()


def test_a_wide_table_has_no_columns_to_map_but_the_seed(tmp_path: Path) -> None:
    text = "step,run,a,b\n1,0,0.1,0.2\n2,1,0.3,0.4\n"
    said = refusal(import_text(tmp_path, "x.csv", text, "--wide", "--map", "step=step")[0])
    assert "--map may name the seed only" in said
