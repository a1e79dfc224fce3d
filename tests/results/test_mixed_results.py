"""Results of other versions, machines and plugins in one folder: shown, said and never averaged."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def table(out: Path, *arguments: str) -> Result:
    done = CliRunner().invoke(cli, ["table", str(out), *arguments])
    assert done.exit_code == 0, done.stderr
    return done


def rows(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table(out, "--format", "csv").stdout)))


@pytest.mark.parametrize(
    ("change", "column", "values"),
    [
        ({"schema": 2}, "schema", {"1", "2"}),
        ({"torch": "2.9"}, "torch", {"2.13.0+cpu", "2.9"}),
        ({"training": "feedbeef00"}, "training", {"0123456", "feedbee"}),
        ({"components": {"loss": {"source": "feedbeef00"}}}, "loss.source", {"loss012", "feedbee"}),
        (
            {
                "components": {
                    "loss": {"owner": {"plugin": "p", "distribution": "p", "version": "2"}}
                }
            },
            "loss.version",
            {"rlbench 0.1.0", "p 2"},
        ),
    ],
)
def test_other_code_is_another_row_that_says_so(
    *,
    tmp_path: Path,
    write_run: Callable[..., Path],
    change: dict[str, Any],
    column: str,
    values: set[str],
) -> None:
    for seed in range(2):
        write_run(tmp_path, seed=seed, result={"score": 0.5})
        write_run(tmp_path, seed=seed, result={"score": 0.9}, **change)
    found = rows(tmp_path)
    assert {row[column] for row in found} == values
    assert sorted(float(row["score"]) for row in found) == [0.5, 0.9]
    flat = " ".join(table(tmp_path).stdout.split())
    assert "they are never averaged" in flat


def test_two_contents_of_one_file_name_are_two_rows(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    for score, text in ((0.5, "content 1"), (0.9, "content 2")):
        task = {"options": {"file": "x.txt"}, "label": "addition:file=x.txt"}
        task["contents"] = {"file": text}
        write_run(tmp_path, result={"score": score}, components={"task": task})
    found = rows(tmp_path)
    assert len(found) == 2
    assert len({row["task.contents"] for row in found}) == 2


@pytest.mark.parametrize(
    ("key", "values", "what"),
    [
        ("cpu", ("A", "B"), "CPUs (A; B)"),
        ("threads", (1, 8), "thread counts (1; 8)"),
        ("rlbench", ("0.1.0", "0.2.0"), "versions of rlbench (0.1.0; 0.2.0)"),
    ],
)
def test_other_machines_inside_of_a_row_are_named(
    *, tmp_path: Path, write_run: Callable[..., Path], key: str, values: tuple[Any, Any], what: str
) -> None:
    for seed, value in enumerate(values):
        write_run(tmp_path, seed=seed, result={"provenance": {key: value}, "score": 0.1 * seed})
    write_run(
        tmp_path,
        components={"loss": {"name": "pg", "label": "pg"}},
        result={"provenance": {key: values[0]}},
    )
    flat = " ".join(table(tmp_path).stdout.split())
    assert f"Runs from different {what}, mixed inside of clip: " in flat


def test_other_machines_of_whole_rows_are_named(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    write_run(tmp_path, result={"provenance": {"cpu": "A"}})
    write_run(tmp_path, settings={"lr": 1.0}, result={"provenance": {"cpu": "B"}})
    flat = " ".join(table(tmp_path).stdout.split())
    assert "Runs from different CPUs (A; B): " in flat


def test_results_that_lack_a_number_show_a_gap(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    """An earlier version did not write all of today's keys, and had others."""
    write_run(tmp_path, seed=0, result={"kl": 0.25})
    older = write_run(tmp_path, seed=0, torch="2.6")
    ended = json.loads((older / "result.json").read_text("utf-8"))
    (older / "result.json").write_text(
        json.dumps({"schema": 1, "status": "ok", "score": ended["score"], "old_key": [1]}), "utf-8"
    )
    found = {row["torch"]: row for row in rows(tmp_path)}
    assert (found["2.6"]["kl_nats"], found["2.13.0+cpu"]["kl_nats"]) == ("", "0.25")
    assert " -  " in table(tmp_path).stdout


def test_a_stray_row_of_another_grid_is_not_in_the_cell(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    for seed in range(2):
        write_run(tmp_path, seed=seed, result={"score": 0.5 + seed / 10})
    write_run(tmp_path, seed=42, settings={"updates": 10}, result={"score": 0.0})
    found = {row["updates"]: row for row in rows(tmp_path)}
    assert (found["225"]["seeds"], found["225"]["tried"]) == ("0 1", "2")
    assert found["10"]["seeds"] == "42"


def test_old_results_of_a_plugin_that_is_gone_are_shown(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    owner = {"plugin": "gone", "distribution": "rlbench-gone", "version": "3"}
    gone = {"name": "vanished", "label": "vanished:x=1", "options": {"x": 1}, "owner": owner}
    run = write_run(tmp_path, components={"loss": gone})
    write_run(tmp_path)
    assert {row["loss"] for row in rows(tmp_path)} == {"clip", "vanished:x=1"}
    assert len(CliRunner().invoke(cli, ["export", str(tmp_path)]).stdout.splitlines()) == 3
    shown = CliRunner().invoke(cli, ["show", "run", run.name, "-o", str(tmp_path)])
    assert shown.exit_code == 0
    assert "vanished:x=1 (rlbench-gone 3" in shown.stdout
    assert "unknown loss 'vanished'" in " ".join(shown.stdout.split())


def test_failed_in_all_seeds_not_run_and_ok_are_three_marks(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    for seed in range(3):
        write_run(tmp_path, seed=seed, result={"score": seed / 4})
        write_run(tmp_path, seed=seed, settings={"lr": 1.0}, status="diverged")
        write_run(tmp_path, seed=seed, settings={"lr": 2.0}, status=None)
    found = {row["lr"]: row for row in rows(tmp_path)}
    assert [found[lr]["score_of_ok"] for lr in ("0.0005", "1", "2")] == ["0.25", "", ""]
    assert [found[lr]["ok"] for lr in ("0.0005", "1", "2")] == ["3", "0", "0"]
    assert [found[lr]["tried"] for lr in ("0.0005", "1", "2")] == ["3", "3", "0"]
    assert [found[lr]["not_run"] for lr in ("0.0005", "1", "2")] == ["0", "0", "3"]
    text = table(tmp_path).stdout
    assert "0/3" in text
    assert "not run" in text


def test_a_cell_does_not_win_on_the_seeds_that_are_left(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    for seed in range(3):
        status = "ok" if seed == 0 else "diverged"
        result = {"score": 0.9 if seed == 0 else None}
        write_run(tmp_path, seed=seed, status=status, result=result)
        write_run(tmp_path, seed=seed, settings={"lr": 1.0}, result={"score": 0.8 + seed / 1000})
    first, second = rows(tmp_path)
    assert (first["lr"], second["lr"]) == ("1", "0.0005")
    assert float(second["score"]) == pytest.approx(0.3)  # (0.9 + 0 + 0) / 3
    assert float(second["score_of_ok"]) == pytest.approx(0.9)
    flat = " ".join(table(tmp_path).stdout.split())
    assert "2 of 3 failed; the others alone: 0.900 (n=1)" in flat
