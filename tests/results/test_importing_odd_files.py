"""Files that other readers take for something else: a line, exit code 2, and nothing written."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from .test_importing import import_text, refusal, rlbench, scores

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            'algorithm,seed,score,note\nA,0,1,ok\nA,1,2,"open\nB,0,3,x\nB,1,4,x\n',
            "a quote that is opened here or above is never closed",
        ),
        ('algorithm,seed,score\n"A"x,0,1\n', "line 2"),
        ("algorithm,seed,score\nA,0,1_0\n", "score is '1_0', expected a number"),
        ('algorithm,seed,score\nA,0,"338,735"\n', "with a point for decimals"),
    ],
)
def test_tables_that_are_none(tmp_path: Path, text: str, part: str) -> None:
    result, out = import_text(tmp_path, "x.csv", text)
    assert part in refusal(result)
    assert not out.exists()


@pytest.mark.parametrize(
    ("row", "part"),
    [
        ({"algorithm": ["x"]}, "algorithm is ['x'], expected a text"),
        ({"algorithm": True}, "algorithm is True, expected a text"),
        ({"score": True}, "score is True, expected a number"),
        ({"score": 10**400}, "expected a number"),
        ({"lr": math.inf}, "set.lr is inf, expected a finite number"),
        ({"lr": [1]}, "set.lr is [1], expected a number or a text"),
    ],
)
def test_objects_that_say_nothing_of_a_run(tmp_path: Path, row: dict[str, Any], part: str) -> None:
    text = json.dumps([{"algorithm": "A", "seed": 0, "score": 1.0, "lr": 1} | row])
    result, out = import_text(tmp_path, "x.json", text, "--map", "set.lr=lr")
    assert part in refusal(result)
    assert not out.exists()


def test_a_setting_with_gaps_has_none_there(tmp_path: Path) -> None:
    run = {"algorithm": "A", "score": 1}
    rows = [run | {"seed": 0, "lr": 1}, run | {"seed": 1, "lr": math.nan}]
    text = json.dumps(rows)
    result, out = import_text(tmp_path, "x.json", text, "--map", "set.lr=lr")
    assert result.exit_code == 0, result.output
    assert len(scores(out)) == 2


def test_one_and_1_0_are_one_algorithm(tmp_path: Path) -> None:
    text = '[{"algorithm":1,"seed":0,"score":1},{"algorithm":1.0,"seed":1,"score":1}]'
    _, out = import_text(tmp_path, "x.json", text)
    assert {name for name, _, _ in scores(out)} == {"1"}


def test_deep_names_are_refused(tmp_path: Path) -> None:
    text = '{"a":' * 900 + "1" + "}" * 900
    assert "x.json" in refusal(import_text(tmp_path, "x.json", text)[0])


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    rows = [{"algorithm": "A\u2028B", "seed": seed, "score": 1} for seed in (0, 1)]
    text = "\n\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    result, out = import_text(tmp_path, "x.jsonl", text)
    assert result.exit_code == 0, result.output
    assert len(scores(out)) == 2


def test_names_of_settings_are_text(tmp_path: Path) -> None:
    text = "algorithm,seed,score\nA,0,1\n"
    result, out = import_text(tmp_path, "x.csv", text, "--map", "set.x\udcff=seed")
    assert "no valid text" in refusal(result)
    assert not out.exists()


def test_what_parquet_misses_is_missing(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    file, out = tmp_path / "x.parquet", tmp_path / "out"
    frame = pd.DataFrame(
        {
            "algorithm": pd.array(["A", "A"], dtype="string"),
            "seed": [0, 1],
            "score": pd.array([1.0, None], dtype="Float64"),
            "tokens": pd.array([5, None], dtype="Int64"),
        }
    )
    frame.to_parquet(file)
    assert rlbench("import", file, "-o", out).exit_code == 0
    assert scores(out) == {("A", "", 0): 1.0, ("A", "", 1): None}
    frame["algorithm"] = pd.array(["A", None], dtype="string")
    frame.to_parquet(file)
    assert "row 2: no algorithm" in refusal(rlbench("import", file, "-o", tmp_path / "other"))
