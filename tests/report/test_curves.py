"""Curves of runs as arrays: what is read, what is left out and named, and means over seeds."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rlbench.errors import NothingSelected, UsageError
from rlbench.report.cells.cell import Cell, cells
from rlbench.report.cells.curves import Curve, course, read, stretches

from .made_up import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

EVALS = "update,score,kl\n0,0.5,0.0\n10,0.6,0.1\n20,0.7,0.2\n"
METRICS = "update,reward,loss\n1,0.1,-1.0\n2,0.2,\n3,0.3,1.0\n"


def one_cell(
    folder: Path, runs: Sequence[Mapping[str, str]], score: float | None = 0.7, **more: Any
) -> list[Cell]:
    """Make a cell whose seeds have these files, by name."""
    made = []
    for seed, files in enumerate(runs):
        place = folder / f"run-s{seed}"
        place.mkdir()
        for name, text in files.items():
            (place / name).write_text(text, "utf-8")
        made.append(replace(record(seed, score, **more), folder=place, run_id=place.name))
    return cells(made)


def curve(updates: list[float], values: list[float]) -> Curve:
    """Make a curve of no run in particular."""
    seed = cells([record(0, 0.5)])[0].seeds[0]
    return Curve(seed=seed, updates=np.array(updates), values=np.array(values))


def test_the_score_of_evaluations_is_what_is_read_unless_asked_otherwise(tmp_path: Path) -> None:
    found = read(one_cell(tmp_path, [{"evals.csv": EVALS, "metrics.csv": METRICS}]))
    assert (found.column, found.file, found.problems) == ("score", "evals.csv", ())
    [[one]] = found.cells
    assert one.updates.tolist() == [0, 10, 20]
    assert one.values.tolist() == [0.5, 0.6, 0.7]


@pytest.mark.parametrize(
    ("asked", "file", "values"),
    [
        ("kl", "evals.csv", [0.0, 0.1, 0.2]),
        ("reward", "metrics.csv", [0.1, 0.2, 0.3]),
        ("metrics.reward", "metrics.csv", [0.1, 0.2, 0.3]),
        ("evals.score", "evals.csv", [0.5, 0.6, 0.7]),
    ],
)
def test_a_column_is_looked_for_in_evaluations_then_in_training(
    asked: str, file: str, values: list[float], tmp_path: Path
) -> None:
    found = read(one_cell(tmp_path, [{"evals.csv": EVALS, "metrics.csv": METRICS}]), asked)
    assert found.file == file
    assert found.cells[0][0].values.tolist() == values


def test_a_gap_is_no_value(tmp_path: Path) -> None:
    [[one]] = read(one_cell(tmp_path, [{"metrics.csv": METRICS}]), "loss").cells
    assert one.updates.tolist() == [1, 3]
    assert one.values.tolist() == [-1.0, 1.0]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("scroe", "unknown column 'scroe'; did you mean 'score'?"),
        ("evals.scroe", "unknown column 'evals.scroe'; did you mean 'evals.score'?"),
        ("metrics.score", "unknown column 'metrics.score'; known: metrics.loss, metrics.reward"),
        ("bananas", "unknown column 'bananas'; known: kl, loss, reward, score"),
    ],
)
def test_an_unknown_column_is_refused_with_the_nearest(
    asked: str, message: str, tmp_path: Path
) -> None:
    shown = one_cell(tmp_path, [{"evals.csv": EVALS, "metrics.csv": METRICS}])
    with pytest.raises(UsageError) as caught:
        read(shown, asked)
    assert str(caught.value) == message


def test_no_curve_at_all_is_nothing_selected(tmp_path: Path) -> None:
    with pytest.raises(NothingSelected, match=r"no run has a curve in its evals\.csv; there is no"):
        read(one_cell(tmp_path, [{}]))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "its first line names no columns of a run: ''"),
        ("update,score", "its first line names no columns of a run: ''"),
        ("<html>\n<body>\n", "its first line names no columns of a run: '<html>'"),
        ("update,score,score\n0,1,2\n", "its first line names no columns"),
        ("step,score\n0,1\n", "its first line names no columns"),
        ("update,kl\n0,1\n", "it has no column score"),
        ("update,score\n", "column score has no number"),
        ("update,score\n0,\n", "column score has no number"),
        ("update,score\n0,0.5\n10\n20,0.7\n", "row 2 has 1 values of 2"),
        ("update,score\n0,0.5,9\n", "row 1 has 3 values of 2"),
        ("update,score\n0,abc\n", "could not convert string to float: 'abc'"),
        ("update,score\n,0.5\n", "a row has no update"),
        ("update,score\ninf,0.5\n", "a row has no update"),
    ],
)
def test_what_is_no_curve_is_left_out_and_named(text: str, problem: str, tmp_path: Path) -> None:
    found = read(one_cell(tmp_path, [{"evals.csv": EVALS}, {"evals.csv": text}]))
    assert [one.seed.number for one in found.cells[0]] == [0]
    [line] = found.problems
    assert line.startswith(f"{tmp_path}/run-s1/evals.csv: ")
    assert problem in line


def test_a_line_without_an_end_does_not_count(tmp_path: Path) -> None:
    # 0.70 cut after its 7 would be a number
    [[one]] = read(one_cell(tmp_path, [{"evals.csv": "update,score\n0,0.5\n10,0.7"}])).cells
    assert one.values.tolist() == [0.5]


def test_values_that_are_not_finite_are_gaps(tmp_path: Path) -> None:
    text = "update,score\n0,0.5\n10,nan\n20,inf\n30,1e999\n40,0.6\n"
    [[one]] = read(one_cell(tmp_path, [{"evals.csv": text}])).cells
    assert one.updates.tolist() == [0, 40]


def test_a_folder_a_pipe_and_bytes_in_the_place_of_a_curve_are_named(tmp_path: Path) -> None:
    shown = one_cell(tmp_path, [{"evals.csv": EVALS}, {}, {}, {}])
    (tmp_path / "run-s1" / "evals.csv").mkdir()
    os.mkfifo(tmp_path / "run-s2" / "evals.csv")
    (tmp_path / "run-s3" / "evals.csv").write_bytes(b"\xff\xfe")
    found = read(shown)
    assert len(found.cells[0]) == 1
    assert len(found.problems) == 3


def test_behind_a_restart_the_later_attempt_counts(tmp_path: Path) -> None:
    # the first attempt wrote 0, 1, 2, 3; the second went on from 1 and ended at 2: 3 is nobody's
    text = "update,score\n0,0.0\n1,0.1\n2,0.2\n3,0.3\n1,0.5\n2,0.6\n"
    found = read(one_cell(tmp_path, [{"evals.csv": text}]))
    [[one]] = found.cells
    assert one.updates.tolist() == [0, 1, 2]
    assert one.values.tolist() == [0.0, 0.5, 0.6]
    assert found.problems == (
        f"{tmp_path}/run-s0/evals.csv: updates go back; 3 earlier rows don't count",
    )


def test_a_curve_that_the_run_did_not_write_is_left_out(tmp_path: Path) -> None:
    written = hashlib.sha256(METRICS.encode()).hexdigest()
    files = [{"metrics.csv": METRICS}, {"metrics.csv": METRICS.replace("0.2", "0.9")}]
    shown = one_cell(tmp_path, files, result={"metrics_sha256": written})
    found = read(shown, "reward")
    assert [one.seed.number for one in found.cells[0]] == [0]
    assert found.problems == (f"{tmp_path}/run-s1/metrics.csv: it is not what the run wrote",)


def test_a_quoted_column_with_a_comma_is_read(tmp_path: Path) -> None:
    [[one]] = read(one_cell(tmp_path, [{"evals.csv": 'update,"a,b"\n0,0.5\n'}]), "a,b").cells
    assert one.values.tolist() == [0.5]


def test_the_band_is_the_t_interval_from_three_seeds_on() -> None:
    # values 0.6, 0.7, 0.8: t(2, 0.975) sd / sqrt(3) = 4.302653 * 0.1 / 1.732051 = 0.248414
    mean = course([curve([0], [value]) for value in (0.6, 0.7, 0.8)])
    assert mean.mean[0] == pytest.approx(0.7)
    assert mean.low[0] == pytest.approx(0.7 - 0.248414, abs=1e-6)
    assert mean.high[0] == pytest.approx(0.7 + 0.248414, abs=1e-6)


def test_the_band_of_two_seeds_is_their_range_and_one_has_none() -> None:
    mean = course([curve([0, 1], [0.6, 0.7]), curve([0], [0.8])])
    assert (mean.low[0], mean.mean[0], mean.high[0]) == (0.6, pytest.approx(0.7), 0.8)
    assert mean.mean[1] == 0.7
    assert np.isnan([mean.low[1], mean.high[1]]).all()


def test_where_seeds_end_n_falls() -> None:
    mean = course([curve([0, 1, 2, 3], [1, 1, 1, 1]), curve([0, 1], [3, 3]), curve([0], [5])])
    assert mean.updates.tolist() == [0, 1, 2, 3]  # not cut to the shortest
    assert mean.n.tolist() == mean.going.tolist() == [3, 2, 1, 1]
    assert mean.mean.tolist() == [3, 2, 1, 1]


def test_where_seeds_end_a_stretch_of_those_that_go_on_begins() -> None:
    ones = [curve([0, 1, 2, 3], [1, 1, 1, 1]), curve([0, 1], [3, 3]), curve([0], [5])]
    found = stretches(ones)
    # (1 + 3 + 5) / 3 at 0; from there (1 + 3) / 2; from 1 on 1 alone
    assert [part.updates.tolist() for part in found] == [[0], [0, 1], [1, 2, 3]]
    assert [part.mean.tolist() for part in found] == [[3], [2, 2], [1, 1, 1]]
    assert [part.going.tolist() for part in found] == [[3], [2, 2], [1, 1, 1]]


def test_a_stretch_begins_where_all_of_its_seeds_have_a_value() -> None:
    ones = [curve([0, 5, 10], [1, 2, 3]), curve([0, 10], [3, 5]), curve([0, 5], [9, 9])]
    first, second = stretches(ones)
    # at 5 one of the two that go on has none: the second stretch begins at 0, with (1 + 3) / 2
    assert first.updates.tolist() == [0, 5]
    assert second.updates.tolist() == [0, 5, 10]
    assert second.mean.tolist() == [2, 2, 4]
    assert second.n.tolist() == [2, 1, 2]
    assert second.going.tolist() == [2, 2, 2]
    # nor does it begin before any of its seeds has one
    [_, alone] = stretches([curve([1], [1]), curve([2], [5])])
    assert (alone.updates.tolist(), alone.mean.tolist()) == ([2], [5])


def test_a_gap_is_no_end() -> None:
    ones = [curve([0, 1, 2], [1, 1, 1]), curve([0, 2], [3, 3])]
    mean = course(ones)
    assert mean.n.tolist() == [2, 1, 2]
    assert mean.going.tolist() == [2, 2, 2]
    assert len(stretches(ones)) == 1


@pytest.mark.parametrize(
    ("files", "ended"),
    [
        ({"metrics.csv": "update,loss\n19,1\n23,\n"}, 23),  # its last row, whatever is in it
        ({"metrics.csv": "update,loss\n23,1\n24,1"}, 23),  # 24 has no end
        ({"metrics.csv": "update,loss\n20,1\n"}, None),  # its last evaluation is there
        ({"metrics.csv": "torn"}, None),
        ({}, None),
    ],
)
def test_a_run_that_failed_ended_where_its_training_did(
    files: Mapping[str, str], ended: float | None, tmp_path: Path
) -> None:
    shown = one_cell(tmp_path, [{"evals.csv": EVALS, **files}], score=None)
    [[one]] = read(shown).cells
    assert one.ended == ended
    assert one.updates.tolist() == [0, 10, 20]


def test_a_run_that_ended_well_ended_at_its_last_value(tmp_path: Path) -> None:
    [[one]] = read(one_cell(tmp_path, [{"evals.csv": EVALS, "metrics.csv": "update\n30\n"}])).cells
    assert one.ended is None


def test_imported_results_without_curves_say_how_to_bring_them(tmp_path: Path) -> None:
    with pytest.raises(NothingSelected, match=r"rlbench import --map step=COLUMN brings them"):
        read(one_cell(tmp_path, [{}], spec={"imported": True}))


def test_the_order_of_seeds_changes_no_bit() -> None:
    values = [0.1, 0.2, 0.30000000000000004, 1e-17, 0.7]
    ones = [curve([0], [value]) for value in values]
    first, second = course(ones), course(ones[::-1])
    assert first.mean[0] == second.mean[0]
    assert first.low[0] == second.low[0]
