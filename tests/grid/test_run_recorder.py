from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest

from rlbench.grid.recorder import RunRecorder


class Recorded:
    def __init__(self, folder):
        self.folder, self.log, self.reports = folder, io.StringIO(), []
        self.recorder = RunRecorder(folder, folder / "base", self.log, self.reports.append)

    def read(self, name: str) -> str:
        return (self.folder / name).read_bytes().decode("utf-8")


@pytest.fixture
def run(tmp_path):
    run = Recorded(tmp_path)
    yield run
    run.recorder.close()


def test_a_row_is_on_disk_at_once_with_exact_numbers(run):
    run.recorder.update({"update": 1, "loss": 0.1 + 0.2, "gap": None, "flag": True})
    assert run.read("metrics.csv") == "update,loss,gap,flag\n1,0.30000000000000004,,1\n"


def test_floats_read_back_the_same(run):
    values = [1e-300, 2 / 3, 1e22, -0.0, 123456789.123456789]
    for value in values:
        run.recorder.evaluation({"value": value})
    rows = list(csv.DictReader(io.StringIO(run.read("evals.csv"))))
    assert [float(row["value"]) for row in rows] == values


def test_scalars_of_numpy_are_numbers(run):
    run.recorder.update({"a": np.int64(3), "b": np.float32(0.5), "c": np.array([True])[0]})
    assert run.read("metrics.csv") == "a,b,c\n3,0.5,1\n"


def test_a_number_that_is_not_finite_is_an_empty_cell(run):
    run.recorder.update({"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1})
    assert run.read("metrics.csv") == "a,b,c,d\n,,,1\n"


def test_the_first_row_fixes_the_columns(run):
    run.recorder.update({"a": 1, "b": 2})
    run.recorder.update({"b": 4, "a": 3})
    run.recorder.update({"a": 5, "late": 6})
    run.recorder.update({"a": 7, "late": 8})
    assert run.read("metrics.csv") == "a,b\n1,2\n3,4\n5,\n7,\n"
    log = run.log.getvalue()
    assert log.count("no column for 'late'") == 1


def test_a_column_name_with_a_comma_keeps_the_table_whole(run):
    run.recorder.update({"a,b": 1, 'say "x"': 2})
    assert list(csv.reader(io.StringIO(run.read("metrics.csv")))) == [
        ["a,b", 'say "x"'],
        ["1", "2"],
    ]


def test_times_are_in_a_file_of_their_own(run):
    run.recorder.update({"update": 1})
    run.recorder.timing({"update": 1, "rollout": 0.25})
    assert run.read("timings.csv") == "update,rollout\n1,0.25\n"
    assert run.read("metrics.csv") == "update\n1\n"


def test_samples_are_lines_of_strict_json_in_utf_8(run):
    run.recorder.samples([{"prompt": "≤", "score": math.nan}])
    run.recorder.samples([{"prompt": "b\n", "score": 1.0}])
    lines = run.read("samples.jsonl").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"prompt": "≤", "score": None},
        {"prompt": "b\n", "score": 1.0},
    ]
    assert "≤" in lines[0]


def test_progress_is_passed_on_at_phase_changes_and_at_the_end(run, monkeypatch):
    monkeypatch.setattr("rlbench.grid.recorder.time.monotonic", lambda: 100.0)  # no time passes
    for done in range(1, 51):
        run.recorder.progress(done, 50, "base")
    for done in range(1, 4):
        run.recorder.progress(done, 3, "training")
    assert [(r["done"], r["phase"]) for r in run.reports] == [
        (1, "base"),
        (50, "base"),
        (1, "training"),
        (3, "training"),
    ]


def test_the_log_is_written_line_by_line(run):
    run.recorder.log("one")
    run.recorder.log("two")
    assert run.log.getvalue() == "one\ntwo\n"
