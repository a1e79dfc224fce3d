"""`rlbench import`: results that were made elsewhere become runs, whole, or not at all."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from rlbench import results
from rlbench.cli import cli
from rlbench.grid import importing
from rlbench.grid.store import Store
from rlbench.report.cells.cell import cells

LONG = """algo,env,run,return
a,one,0,1.0
a,one,1,3.0
b,one,0,5.0
b,one,1,nan
"""
REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
NAMED = "algorithm=algo,task=env,seed=run,score=return"


def rlbench(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)])


def import_text(tmp_path: Path, name: str, text: str, *flags: str) -> tuple[Result, Path]:
    file, out = tmp_path / name, tmp_path / "out"
    file.write_text(text, "utf-8")
    return rlbench("import", file, "-o", out, *flags), out


def scores(out: Path) -> dict[tuple[str, str, int], float | None]:
    """Algorithm, task and seed to the score."""
    return {
        (
            record.spec["components"]["algorithm"]["label"],
            record.spec["components"].get("task", {}).get("label", ""),
            record.spec["seed"],
        ): record.result["score"]
        for record in Store(out).read()
        if record.spec and record.result
    }


def refusal(result: Result) -> str:
    """The one line of an error in what was asked; nothing may have been written."""
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return result.stderr.strip().splitlines()[-1]


def test_a_table_with_other_names_is_read_as_mapped(tmp_path: Path) -> None:
    result, out = import_text(tmp_path, "x.csv", LONG, "--map", NAMED)
    assert result.exit_code == 0, result.output
    assert "4 runs written" in result.stderr
    assert "1 without a score count as failed" in result.stderr
    assert scores(out) == {
        ("a", "one", 0): 1.0,
        ("a", "one", 1): 3.0,
        ("b", "one", 0): 5.0,
        ("b", "one", 1): None,
    }


def test_a_score_that_is_no_number_is_a_failed_run_and_never_a_gap(tmp_path: Path) -> None:
    _, out = import_text(tmp_path, "x.csv", LONG, "--map", NAMED)
    b = next(c for c in cells(Store(out).read()) if c.columns["algorithm"] == "b")
    assert (len(b.ok), len(b.tried)) == (1, 2)
    assert b.score is None  # its floor is unknown: 5.0 of the survivor is no score of the cell
    assert "nan" in b.failed[0].error()


def test_a_floor_scores_what_failed(tmp_path: Path) -> None:
    _, out = import_text(tmp_path, "x.csv", LONG, "--map", NAMED, "--floor", "-1")
    b = next(c for c in cells(Store(out).read()) if c.columns["algorithm"] == "b")
    assert b.score is not None
    assert b.score.mid == (5 - 1) / 2


@pytest.mark.parametrize("value", ["", "NaN", "None", "inf", "-Infinity", "1e999", "n/a"])
def test_every_spelling_of_no_number_fails_the_run(tmp_path: Path, value: str) -> None:
    text = f"algorithm,seed,score\na,0,{value}\na,1,2\n"
    result, out = import_text(tmp_path, "x.csv", text)
    assert result.exit_code == 0, result.output
    assert scores(out)["a", "", 0] is None


@pytest.mark.parametrize(
    ("name", "text", "flags"),
    [
        ("x.csv", "algorithm,task,seed,score\na,t,0,1\na,t,1,2\nb,t,0,3\nb,t,1,4\n", ()),
        ("x.csv", "algorithm;task;seed;score\na;t;0;1\na;t;1;2\nb;t;0;3\nb;t;1;4\n", ()),
        (
            "x.tsv",
            "seed\tscore\talgorithm\ttask\n0\t1\ta\tt\n1\t2\ta\tt\n0\t3\tb\tt\n1\t4\tb\tt\n",
            (),
        ),
        ("x.csv", "seed,a,b\n0,1,3\n1,2,4\n", ("--wide", "--as", "task=t")),
        ("x.csv", ",a,b\n0,1,3\n1,2,4\n", ("--wide", "--as", "task=t")),
        ("x.csv", "a,b\n1,3\n2,4\n", ("--wide", "--as", "task=t")),
        ("x.csv", "\ufeffalgorithm,task,score\na,t,1\na,t,2\nb,t,3\n\nb,t,4\n", ()),
        ("x.json", '{"a": {"t": [1, 2]}, "b": {"t": [3, 4]}}', ()),
        ("x.json", '{"t": {"a": [1, 2], "b": [3, 4]}}', ("--levels", "task,algorithm")),
        (
            "x.json",
            '{"a": {"t": {"0": 1, "1": 2}}, "b": {"t": {"1": 4, "0": 3}}}',
            ("--levels", "algorithm,task,seed"),
        ),
        (
            "x.json",
            '{"a": {"t": {"final": [1, 2], "regret": [9, 9]}}, "b": {"t": {"final": [3, 4]}}}',
            ("--map", "score=final"),
        ),
        (
            "x.json",
            json.dumps(
                [
                    {"algorithm": name, "task": "t", "seed": seed, "score": score}
                    for name, seed, score in (("a", 0, 1), ("a", 1, 2), ("b", 0, 3), ("b", 1, 4))
                ]
            ),
            (),
        ),
        (
            "x.jsonl",
            '{"algorithm": "a", "task": "t", "seed": 0, "score": 1}\n'
            '{"algorithm": "a", "task": "t", "seed": 1, "score": 2}\n\n'
            '{"algorithm": "b", "task": "t", "seed": 0, "score": 3}\n'
            '{"algorithm": "b", "task": "t", "seed": 1.0, "score": 4}\n',
            (),
        ),
    ],
)
def test_every_layout_gives_the_same_runs(
    tmp_path: Path, name: str, text: str, flags: tuple[str, ...]
) -> None:
    result, out = import_text(tmp_path, name, text, *flags)
    assert result.exit_code == 0, result.output
    assert scores(out) == {("a", "t", 0): 1, ("a", "t", 1): 2, ("b", "t", 0): 3, ("b", "t", 1): 4}


def test_parquet_is_read_whatever_a_gap_made_of_its_seeds(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"algorithm": ["a", "a", "b"], "task": "t", "seed": [0.0, 1.0, None], "score": [1, 2, 3]}
    )
    frame.to_parquet(tmp_path / "x.parquet")
    result = rlbench("import", tmp_path / "x.parquet", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert scores(tmp_path / "out") == {("a", "t", 0): 1, ("a", "t", 1): 2, ("b", "t", 0): 3}


def test_names_that_look_like_numbers_stay_as_they_are(tmp_path: Path) -> None:
    text = "algorithm,task,seed,score\n42924e28,01.00,0,1\n1e5,10.00,0,2\ninf,nan,0,3\n"
    _, out = import_text(tmp_path, "x.csv", text)
    table = rlbench("table", out).stdout
    for name in ("42924e28", "01.00", "1e5", "10.00", "inf", "nan"):
        assert f"{name} " in table


def test_nested_scores_of_one_algorithm_have_the_name_of_the_file(tmp_path: Path) -> None:
    result, out = import_text(tmp_path, "DQN.json", '{"Pong": [1, 2, 3]}')
    assert result.exit_code == 0, result.output
    assert "called 'DQN'" in result.stderr
    assert scores(out) == {("DQN", "Pong", 0): 1, ("DQN", "Pong", 1): 2, ("DQN", "Pong", 2): 3}
    _, out = import_text(tmp_path, "x.json", '{"Pong": [1]}', "--as", "algorithm=PPO", "--replace")
    assert scores(out)["PPO", "Pong", 0] == 1


def test_a_table_of_numbers_alone_is_read_as_a_wide_one(tmp_path: Path) -> None:
    result, out = import_text(tmp_path, "x.csv", ",PPO,SAC\n0,1,3\n1,2,\n")
    assert result.exit_code == 0, result.output
    assert "read as a wide table" in result.stderr
    assert scores(out) == {("PPO", "", 0): 1, ("PPO", "", 1): 2, ("SAC", "", 0): 3}


def test_without_a_folder_results_go_where_others_look_unless_own_runs_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("algorithm,score\na,1\n", "utf-8")
    assert rlbench("import", "x.csv").exit_code == 0
    assert rlbench("import", "x.csv").exit_code == 0
    assert "a " in rlbench("table").stdout
    shutil.copytree(REFERENCE / "runs", tmp_path / "results" / "local" / "runs", dirs_exist_ok=True)
    assert "made here; name a folder" in refusal(rlbench("import", "x.csv"))


def test_a_seed_that_is_there_twice_is_refused_and_can_be_numbered_on(tmp_path: Path) -> None:
    one, two = tmp_path / "1.csv", tmp_path / "2.csv"
    one.write_text("algorithm,seed,score\na,0,1\na,1,2\n", "utf-8")
    two.write_text("algorithm,seed,score\na,0,3\nb,0,4\n", "utf-8")
    out = tmp_path / "out"
    said = refusal(rlbench("import", one, two, "-o", out))
    assert "1.csv, line 2" in said
    assert "2.csv, line 2" in said
    assert not out.exists()
    assert rlbench("import", one, two, "-o", out, "--renumber").exit_code == 0
    assert scores(out) == {("a", "", 0): 1, ("a", "", 1): 2, ("a", "", 2): 3, ("b", "", 0): 4}


def test_settings_make_cells_of_their_own(tmp_path: Path) -> None:
    text = "algorithm,rate,seed,score\na,1e-3,0,1\na,1e-4,0,2\n"
    result, out = import_text(tmp_path, "x.csv", text, "--map", "set.lr=rate")
    assert result.exit_code == 0, result.output
    assert sorted(c.columns["lr"] for c in cells(Store(out).read())) == ["0.0001", "0.001"]


def test_importing_again_writes_nothing_and_other_numbers_are_refused(tmp_path: Path) -> None:
    text = "algorithm,seed,score\na,0,1\na,1,2\n"
    _, out = import_text(tmp_path, "x.csv", text)
    before = {path: path.read_bytes() for path in out.rglob("*.json")}
    again, _ = import_text(tmp_path, "x.csv", text)
    assert "0 runs written" in again.stderr
    assert "2 there already" in again.stderr
    other, _ = import_text(tmp_path, "x.csv", text.replace("a,1,2", "a,1,7\nb,0,9"))
    said = refusal(other)
    assert "line 3" in said
    assert "Nothing was written" in said
    assert {path: path.read_bytes() for path in out.rglob("*.json")} == before
    replaced, _ = import_text(tmp_path, "x.csv", text.replace("a,1,2", "a,1,7\nb,0,9"), "--replace")
    assert replaced.exit_code == 0
    assert scores(out) == {("a", "", 0): 1, ("a", "", 1): 7, ("b", "", 0): 9}


def test_an_import_that_was_cut_short_is_finished_by_the_same_command(tmp_path: Path) -> None:
    _, out = import_text(tmp_path, "x.csv", LONG, "--map", NAMED)
    whole = {path.relative_to(out): path.read_bytes() for path in out.rglob("*.json")}
    for number, path in enumerate(sorted(out.rglob("result.json"))):
        if number % 2:
            path.unlink()
    again, _ = import_text(tmp_path, "x.csv", LONG, "--map", NAMED)
    assert "2 runs written" in again.stderr
    assert {path.relative_to(out): path.read_bytes() for path in out.rglob("*.json")} == whole


def test_scores_are_put_on_the_scale_of_their_task(tmp_path: Path) -> None:
    scale = tmp_path / "scale.csv"
    scale.write_text("task,random,human\none,10,30\ntwo,0,-4\n", "utf-8")
    text = "algorithm,task,seed,score\na,one,0,20\na,two,0,-1\na,one,1,\n"
    result, out = import_text(tmp_path, "x.csv", text, "--normalise", str(scale))
    assert result.exit_code == 0, result.output
    # (20 - 10) / 20 and (-1 - 0) / (-4 - 0)
    assert scores(out) == {("a", "one", 0): 0.5, ("a", "two", 0): 0.25, ("a", "one", 1): None}
    one = next(c for c in cells(Store(out).read()) if c.columns["task"] == "one")
    assert one.score is not None
    assert one.score.mid == 0.25  # what failed scores 0, as the low score does


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("task,low,high\none,1,1\n", "one score for 0 and for 1"),
        ("task,low,high\none,1,x\n", "'x', expected a number"),
        ("task,low\none,1\n", "expected task, low and high"),
        ("task,low,high\none,1,2\none,1,3\n", "there twice"),
        ("task,low,high\nother,1,2\n", "unknown task in x.csv, line 2"),
    ],
)
def test_a_scale_that_does_not_fit_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "scale.csv").write_text(text, "utf-8")
    flags = ("--normalise", str(tmp_path / "scale.csv"))
    result, out = import_text(tmp_path, "x.csv", LONG, "--map", NAMED, *flags)
    assert said in refusal(result)
    assert not out.exists()


def test_less_can_be_better(tmp_path: Path) -> None:
    text = "algorithm,task,seed,score\n" + "".join(
        f"{name},t,{seed},{base + seed / 10}\n"
        for name, base in (("low", 1), ("high", 5))
        for seed in range(5)
    )
    _, out = import_text(tmp_path, "x.csv", text, "--direction", "lower")
    rows = rlbench("table", out).stdout.splitlines()
    assert rows[2].startswith("low")
    assert rows[3].startswith("high")


def test_what_rlbench_exports_can_be_imported(tmp_path: Path) -> None:
    text = (
        "run_id,estimator,loss,kl,task,reward,model,seed,lr,status,error,score,kl_nats\n"
        "x,gae,clip,none,sort,true,lstm,0,0.001,ok,,0.5,1.25\n"
        "y,gae,clip,none,sort,true,lstm,1,0.001,diverged,boom,,\n"
    )
    result, out = import_text(tmp_path, "x.csv", text, "--map", "set.lr=lr")
    assert result.exit_code == 0, result.output
    frame = results(out).sort_values("seed")
    assert list(frame["estimator"]) == ["gae", "gae"]
    assert list(frame["kl"]) == ["none", "none"]
    assert list(frame["status"]) == ["ok", "diverged"]
    assert frame["kl_nats"].iloc[0] == 1.25
    assert "'run_id', 'error'" in result.stderr  # what nothing was read from


def test_a_column_kl_with_numbers_is_no_controller(tmp_path: Path) -> None:
    result, out = import_text(tmp_path, "x.csv", "algorithm,seed,score,kl\na,0,1,0.5\n")
    assert result.exit_code == 0
    assert "not used: 'kl'" in result.stderr
    assert "kl" not in cells(Store(out).read())[0].columns


def test_algorithms_can_be_selected_and_be_the_baseline(tmp_path: Path) -> None:
    text = "algorithm,seed,score\n" + "".join(
        f"{name},{seed},{base + seed}\n"
        for name, base in (("PPO:x=1", 0), ("A+B", 9), ("c", 5))
        for seed in range(4)
    )
    _, out = import_text(tmp_path, "x.csv", text)
    selected = rlbench("table", out, "-a", "PPO:x=1", "-a", "A+B").stdout
    assert "PPO:x=1" in selected
    assert "\nc " not in selected
    compared = rlbench("compare", out, "--baseline", "A+B", "--format", "json").stdout
    assert json.loads(compared)["baseline"] == "A+B"
    missing = rlbench("table", out, "-a", "PPO")
    assert missing.exit_code == 3
    assert "there are: A+B, PPO:x=1, c" in missing.stderr


@pytest.mark.parametrize(
    ("name", "text", "flags", "said"),
    [
        ("x.csv", LONG, (), "no column 'score'"),
        ("x.csv", LONG, ("--map", "score=retrun,algorithm=algo"), "did you mean 'return'"),
        ("x.csv", LONG, ("--map", "scor=return"), "did you mean 'score'"),
        ("x.csv", LONG, ("--map", "score"), "write WHAT=NAME"),
        ("x.csv", LONG, ("--map", "score=return", "--map", "score=run"), "given twice"),
        ("x.csv", "", (), "holds no scores"),
        ("x.csv", "algorithm,score\n", (), "holds no scores"),
        ("x.csv", "algorithm,score\na,1,2\n", (), "line 2: 3 values, the header has 2"),
        ("x.csv", "algorithm,algorithm,score\na,b,1\n", (), "'algorithm' is there twice"),
        ("x.csv", "algorithm,score\na,high\n", (), "score is 'high', expected a number"),
        ("x.csv", "algorithm,seed,score\na,one,1\n", (), "seed is 'one'"),
        ("x.csv", "algorithm,seed,score\na,1.5,1\n", (), "seed is '1.5'"),
        ("x.csv", "algorithm,seed,score\na,-1,1\n", (), "seed is '-1'"),
        ("x.csv", "algorithm,seed,score\na,0,1\n,1,1\n", (), "line 3: no algorithm"),
        ("x.json", '{"A": {"t": [1], "t": [2]}}', (), "'t' twice in one object"),
        ("x.json", '[{"algorithm": "\\ud800", "score": 1}]', (), "which is no valid text"),
        ("x.jsonl", '{"score": 1}\n{"score"', (), "line 2 of it, column"),
        ("x.csv", "algorithm,status,score\na,fine,1\n", (), "unknown status"),
        ("x.csv", LONG, ("--levels", "task"), "--levels is for nested JSON"),
        ("x.json", "{", (), "is no JSON"),
        ("x.json", "3", (), "expected a list or an object"),
        ("x.json", "[3]", (), "expected an object"),
        ("x.json", '{"a": {"b": {"c": {"d": [1]}}}}', (), "nested 4 deep"),
        ("x.json", '{"a": [1], "b": {"c": [1]}}', (), "expected names"),
        ("x.json", '{"a": {"t": [[1]]}}', (), "expected a number"),
        ("x.json", '{"a": [1]}', ("--levels", "tsak"), "did you mean 'task'"),
        ("x.json", '{"a": [1]}', ("--wide",), "--wide is for tables"),
        ("x.txt", "a", (), "'.txt'; known: .csv"),
        ("x.parquet", "no", (), "can't be read"),
    ],
)
def test_what_can_not_be_read_is_one_line_and_writes_nothing(
    tmp_path: Path, name: str, text: str, flags: tuple[str, ...], said: str
) -> None:
    result, out = import_text(tmp_path, name, text, *flags)
    assert said in refusal(result)
    assert not out.exists()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "No such file" in refusal(rlbench("import", tmp_path / "no.csv", "-o", tmp_path / "o"))


def test_the_order_of_rows_changes_no_file(tmp_path: Path) -> None:
    def made(folder: str, rows: list[str]) -> dict[str, Any]:
        (tmp_path / folder).mkdir()
        _, out = import_text(
            tmp_path / folder, "x.csv", "algorithm,seed,score\n" + "\n".join(rows) + "\n"
        )
        found = {}
        for path in out.rglob("*.json"):
            content = json.loads(path.read_text("utf-8"))
            content.pop("provenance", None)  # names the line
            found[path.relative_to(out).as_posix()] = content
        return found

    rows = ["a,0,1", "b,0,2", "a,1,3"]
    assert made("one", rows) == made("two", rows[::-1])


def test_an_imported_run_is_never_outdated_and_says_where_it_comes_from(tmp_path: Path) -> None:
    text = (
        "estimator,loss,kl,task,reward,model,seed,score\ngroup,clip,none,addition,true,lstm,0,0.5\n"
    )
    result, out = import_text(tmp_path, "x.csv", text, "--map", "reward=reward,model=model")
    assert result.exit_code == 0, result.output
    removed = rlbench("rm", out, "--outdated", "--yes")
    assert removed.exit_code == 3
    assert "made elsewhere" in removed.stderr
    (record,) = Store(out).read()
    shown = rlbench("show", "run", record.run_id, "-o", out).stdout
    assert shown.rstrip().endswith("made elsewhere; imported from x.csv, line 2")
    assert "rlbench run" not in shown


def test_equal_scores_from_elsewhere_are_no_suspicion(tmp_path: Path) -> None:
    _, out = import_text(tmp_path, "x.csv", "algorithm,seed,score\na,0,0\na,1,0\na,2,0\n")
    assert "Same curves" not in rlbench("table", out).stdout


def test_on_a_scale_more_is_better_whatever_way_it_goes(tmp_path: Path) -> None:
    (tmp_path / "scale.csv").write_text("task,low,high\none,100,0\n", "utf-8")
    text = "algorithm,task,seed,score\na,one,0,85\nb,one,0,11\n"
    flags = ("--normalise", str(tmp_path / "scale.csv"), "--direction", "lower")
    _, out = import_text(tmp_path, "x.csv", text, *flags)
    assert scores(out) == {("a", "one", 0): 0.15, ("b", "one", 0): 0.89}
    assert rlbench("table", out).stdout.splitlines()[2].startswith("b")
    (tmp_path / "scale.csv").write_text("task,low,high\none,0,100\n", "utf-8")
    refused, _ = import_text(tmp_path, "x.csv", text, *flags)
    assert "turn one of them round" in refusal(refused)


def test_in_a_wide_table_a_gap_moves_no_other_seed(tmp_path: Path) -> None:
    result, out = import_text(tmp_path, "x.csv", "A,B,C\n1,nan,\n2,2,2\n4,4,4\n")
    assert result.exit_code == 0, result.output
    found = scores(out)
    assert [found["B", "", seed] for seed in range(3)] == [None, 2, 4]  # it failed at seed 0
    assert {seed for name, _, seed in found if name == "C"} == {1, 2}  # it did not run there


def test_wide_tables_are_numbered_on_by_their_rows(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("A,B\n1,\n2,20\n", "utf-8")
    (tmp_path / "2.csv").write_text("A,B\n3,30\n", "utf-8")
    files = (tmp_path / "1.csv", tmp_path / "2.csv")
    assert rlbench("import", *files, "-o", tmp_path / "out", "--renumber").exit_code == 0
    assert scores(tmp_path / "out") == {
        ("A", "", 0): 1,
        ("A", "", 1): 2,
        ("A", "", 2): 3,
        ("B", "", 1): 20,
        ("B", "", 2): 30,
    }


@pytest.mark.parametrize(("direction", "floor"), [("lower", "0"), ("lower", "1"), ("higher", "3")])
def test_a_floor_that_would_let_failures_win_is_refused(
    tmp_path: Path, direction: str, floor: str
) -> None:
    text = "algorithm,seed,score\nA,0,nan\nB,0,1\nB,1,3\n"
    flags = ("--direction", direction, "--floor", floor)
    result, out = import_text(tmp_path, "x.csv", text, *flags)
    assert "a failed run would win" in refusal(result)
    assert not out.exists()


def test_an_export_can_be_imported(tmp_path: Path) -> None:
    _, out = import_text(tmp_path, "x.csv", "algorithm,task,seed,score\na,t,0,1\nb,t,0,2\n")
    assert rlbench("export", out, "--to", tmp_path / "y.csv").exit_code == 0
    assert rlbench("import", tmp_path / "y.csv", "-o", tmp_path / "again").exit_code == 0
    assert scores(tmp_path / "again") == scores(out)


def test_a_metric_that_nobody_has_is_nothing_to_show(tmp_path: Path) -> None:
    _, out = import_text(tmp_path, "x.csv", "algorithm,seed,score\na,0,1\na,1,2\n")
    result = rlbench("table", out, "--metric", "kl_nats")
    assert result.exit_code == 3
    assert "no result has kl_nats; there are: score" in result.stderr


def test_scores_without_end_keep_tables_in_shape(tmp_path: Path) -> None:
    _, out = import_text(tmp_path, "x.csv", "algorithm,seed,score\na,0,1e300\na,1,2e300\n")
    assert max(map(len, rlbench("table", out).stdout.splitlines())) <= 80


def test_one_task_goes_one_way_in_a_folder(tmp_path: Path) -> None:
    text = "algorithm,seed,score\na,0,1\n"
    import_text(tmp_path, "x.csv", text)
    result, _ = import_text(tmp_path, "x.csv", text, "--direction", "lower")
    assert "go another way" in refusal(result)


def test_what_a_file_says_moves_no_cursor(tmp_path: Path) -> None:
    _, out = import_text(tmp_path, "x.csv", "algorithm,seed,score\na\x1b[31mb,0,1\n")
    (record,) = Store(out).read()
    shown = rlbench("show", "run", record.run_id, "-o", out).stdout
    assert "\x1b" not in shown
    assert "a\\x1b[31mb" in shown


def test_a_replacement_that_is_killed_loses_no_finished_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "algorithm,seed,score\na,0,1\n"
    _, out = import_text(tmp_path, "x.csv", text)

    def die(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(importing, "write_json", die)
        stopped, _ = import_text(tmp_path, "x.csv", text.replace("0,1", "0,7"), "--replace")
    assert stopped.exit_code == 1
    assert "the same command does the rest" in stopped.stderr
    assert scores(out) == {("a", "", 0): 1}
    import_text(tmp_path, "x.csv", text.replace("0,1", "0,7"), "--replace")
    assert scores(out) == {("a", "", 0): 7}
