"""`rlbench table`: which results, in which form, into which stream."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def filled(out: Path, write_run) -> Path:
    for seed in range(3):
        write_run(seed, 0.7 + seed / 100, estimator="gae")
        write_run(seed, 0.6 + seed / 100, estimator="gae:lam=0.9")
        write_run(seed, 0.5 + seed / 100)
    write_run(0, None, loss="gone:x=ü", status="failed", error=("E", "boom"))
    return out


def table(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["table", *map(str, arguments)])


def rows(done: Result) -> list[dict[str, str]]:
    assert done.exit_code == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_folder_as_argument_or_option(filled: Path) -> None:
    assert table(filled).stdout == table("-o", filled).stdout
    assert table(filled, "-o", filled).exit_code == 0


def test_a_name_selects_all_variants_and_options_narrow_it(filled: Path) -> None:
    both = rows(table(filled, "-e", "gae", "--format", "csv"))
    assert [row["estimator"] for row in both] == ["gae", "gae:lam=0.9"]
    one = rows(table(filled, "-e", "gae:lam=0.90", "--format", "csv"))
    assert [row["estimator"] for row in one] == ["gae:lam=0.9"]


def test_aliases_and_repeated_flags(filled: Path) -> None:
    found = rows(table(filled, "-e", "grpo", "-e", "gae:lam=0.9", "-l", "clip", "--format", "csv"))
    assert [row["estimator"] for row in found] == ["gae:lam=0.9", "group"]


def test_results_of_a_missing_plugin_can_be_selected(filled: Path) -> None:
    done = table(filled, "-l", "gone", "--format", "csv")
    assert [row["loss"] for row in rows(done)] == ["gone:x=ü"]
    assert "seed 0 failed: E: boom" in done.stderr  # csv has no room for notes
    assert len(rows(table(filled, "-l", "gone:x=ü", "--format", "csv"))) == 1


def test_seeds_select(filled: Path) -> None:
    found = rows(table(filled, "-s", "1-2", "--format", "csv"))
    assert {row["seeds"] for row in found} == {"1 2"}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-e", "rloo"], 3, "no result with estimator rloo; there are: gae, gae:lam=0.9, group"),
        (["-s", "9"], 3, "there are: 0-2"),
        (["-e", "gae:lm=0.9"], 2, "did you mean 'lam'"),
        (["-s", "x"], 2, "seeds"),
    ],
)
def test_nothing_selected(filled: Path, arguments: list[str], code: int, message: str) -> None:
    done = table(filled, *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert message in done.stderr


def test_foreign_files_are_named_and_the_rest_is_shown(filled: Path) -> None:
    (filled / "runs" / "notes.txt").write_text("mine", encoding="utf-8")
    done = table(filled)
    assert done.exit_code == 0
    assert "notes.txt" in done.stderr
    assert "gae" in done.stdout


def test_only_foreign_files_is_nothing_selected(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "notes.txt").write_text("mine", encoding="utf-8")
    done = table(tmp_path)
    assert (done.exit_code, done.stdout) == (3, "")


def test_a_specification_of_another_schema_does_not_crash(out: Path, write_run) -> None:
    write_run(0, 0.5)
    write_run(1, 0.6, spec={"schema": 0, "components": {"loss": "clip"}})
    write_run(2, 0.6, spec={"schema": 7})
    done = table(out, "--format", "csv")
    assert [row["seeds"] for row in rows(done)] == ["2", "0"]
    assert "schema 0" in done.stderr
    assert "schema 7" in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_any_encoding_of_stdout(filled: Path, encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rlbench", "table", filled],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode(encoding)
    assert ("+/-95%" if encoding == "ascii" else "±95%") in text
    assert (r"x=\xfc" if encoding == "ascii" else "x=ü") in text


def test_table_loads_neither_torch_nor_pandas(filled: Path) -> None:
    code = (
        "import sys\nfrom rlbench.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([n for n in ('torch', 'pandas') if n in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "table", filled],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == "[]\n"


def test_what_is_wanted_and_not_there_is_said(filled: Path) -> None:
    done = table(filled, "-e", "gae", "-e", "rloo", "-s", "0", "-s", "7,8")
    assert done.exit_code == 0
    assert "no result with estimator rloo; there are: gae, gae:lam=0.9, group\n" in done.stderr
    assert "no result with seeds 7,8; there are: 0-2\n" in done.stderr
    done = table(filled, "--set", "lr=5e-4,1")
    assert "no result with lr=1; there are: 0.0005\n" in done.stderr
    assert table(filled, "-s", "0-2").stderr == ""


def test_a_given_plugin_is_loaded_even_if_nothing_is_selected(filled: Path) -> None:
    done = table(filled, "--plugin", "nope.py")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "there is no such file" in done.stderr


def test_an_option_that_is_taken_for_a_setting_is_recognised(filled: Path) -> None:
    assert "-l clip:eps=0.1" in table(filled, "--set", "loss.eps=0.1").stderr


def test_unreadable_results_are_lines_and_no_traceback(out: Path, write_run) -> None:
    write_run(0, 0.75)
    write_run(1, 0.75, result={"kl": "a"})
    write_run(2, 0.75, spec={"seed": "7"})
    folder = write_run(3, 0.75)
    (folder / "result.json").write_text('{"schema": 1, "status": "ok", "score": 1e999}', "utf-8")
    done = table(out)
    assert (done.exit_code, done.exception) == (0, None)
    assert len(done.stderr.splitlines()) == 3
    assert all(line.startswith("warning: ") for line in done.stderr.splitlines())
    assert "1/1" in done.stdout


def test_another_metric_and_its_direction(filled: Path) -> None:
    found = rows(table(filled, "--metric", "kl_nats", "-l", "clip", "--format", "csv"))
    assert [float(row["value"]) for row in found] == sorted(float(row["kl_nats"]) for row in found)
    turned = rows(table(filled, "--direction", "lower", "-l", "clip", "--format", "csv"))
    assert [row["estimator"] for row in turned] == ["group", "gae:lam=0.9", "gae"]
    done = table(filled, "--metric", "entropy")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--direction higher or --direction lower" in done.stderr
    assert (
        "unknown metric 'scoer'; did you mean 'score'?" in table(filled, "--metric", "scoer").stderr
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--normalise", "x.csv"], "--normalise is for --suite"),
        (["--suite", "--iqm"], "leave --iqm"),
        (["--suite", "--normalise", "no.csv"], "no.csv can't be read"),
        (["--suite", "--metric", "kl_nats", "--normalise", "x.csv"], "not for kl_nats"),
        (["--bootstrap", "1"], "No such option"),
        (["--format", "gihub"], "did you mean 'github'"),
        (["--iqm", "--max-width", "-1"], "--max-width"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_exit_code_2(
    filled: Path, arguments: list[str], message: str
) -> None:
    done = table(filled, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_suite_with_reference_scores(out: Path, write_run, tmp_path: Path) -> None:
    for task, low in (("one", 10.0), ("two", 100.0)):
        for seed in range(3):
            write_run(seed, low * (1.5 + seed / 10), task=task)
            write_run(seed, low * (1.2 + seed / 10), task=task, estimator="gae")
    (tmp_path / "scales.csv").write_text("task,random,human\none,10,20\ntwo,100,200\n", "utf-8")
    done = table(out, "--suite", "--normalise", tmp_path / "scales.csv", "--format", "csv")
    best, other = rows(done)
    # (1.5 + 1.6 + 1.7) / 3 - 1, in both tasks
    assert (best["estimator"], float(best["mean"])) == ("group", pytest.approx(0.6))
    assert (other["estimator"], float(other["mean"])) == ("gae", pytest.approx(0.3))
    assert (best["rank"], other["rank"]) == ("1.0", "2.0")
    shown = table(out, "--suite", "--normalise", tmp_path / "scales.csv")
    assert "normalised by two reference scores" in " ".join(shown.stdout.split())
    raw = table(out, "--suite")
    assert "goes with the tasks of the largest numbers" in " ".join(raw.stdout.split())
    (tmp_path / "scales.csv").write_text("task,random,human\none,10,20\n", "utf-8")
    done = table(out, "--suite", "--normalise", tmp_path / "scales.csv")
    assert done.exit_code == 2
    assert "'two'" in done.stderr


def test_a_document_ignores_the_width_of_the_terminal(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["rlbench.cli.table"]  # as an attribute of its package it is the command
    monkeypatch.setattr(module, "is_terminal", lambda _stream: True)
    monkeypatch.setattr(module, "columns", lambda: 60)
    assert "Left out for width: s" in table(filled).stdout
    assert "Left out" not in table(filled, "--max-width", "0").stdout
    for format_ in ("latex", "github", "html"):
        assert "Left out" not in table(filled, "--format", format_).stdout
    assert "Left out" in table(filled, "--format", "github", "--max-width", "60").stdout
