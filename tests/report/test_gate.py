"""`rlbench gate`: new results against old ones, cell by cell."""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result
from scipy import stats as scipy_stats

from rlbench.cli import cli

from .made_up import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
OLD = {"a": [0.5, 0.6, 0.4, 0.55, 0.45], "b": [0.7, 0.8, 0.75, 0.72, 0.78]}


def rlbench(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)])


def folder(
    out: Path, scores: Mapping[str, Sequence[float | None]], *flags: str, seeds: int = 0
) -> Path:
    """Write cells, each with a score a seed; None for a failed seed."""
    rows = [
        f"{name},{seed},{'' if score is None else score}"
        for name, values in scores.items()
        for seed, score in enumerate(values, seeds)
    ]
    file = out.with_suffix(".csv")
    file.write_text("algorithm,seed,score\n" + "\n".join(rows) + "\n", "utf-8")
    assert rlbench("import", file, "-o", out, *flags).exit_code == 0
    return out


def gate(tmp_path: Path, new: Mapping[str, Sequence[float | None]], *flags: str) -> Result:
    return rlbench("gate", folder(tmp_path / "old", OLD), folder(tmp_path / "new", new), *flags)


def marks(result: Result) -> dict[str, str]:
    return {row["cell"]: row["gate"] for row in csv.DictReader(io.StringIO(result.stdout))}


def shifted(by: Mapping[str, Sequence[float]]) -> dict[str, list[float | None]]:
    return {
        name: [score + more for score, more in zip(OLD[name], by[name], strict=True)]
        if name in by
        else list(OLD[name])
        for name in OLD
    }


def test_the_same_numbers_pass(tmp_path: Path) -> None:
    result = gate(tmp_path, OLD, "--format", "csv")
    assert result.exit_code == 0
    assert marks(result) == {"a": "same", "b": "same"}
    assert "gate open: none of 2 cells" in result.stderr


def test_a_loss_at_every_seed_stops_it_and_its_p_is_that_of_the_paired_t(tmp_path: Path) -> None:
    losses = [-0.1, -0.12, -0.08, -0.11, -0.09]
    result = gate(tmp_path, shifted({"a": losses}), "--format", "json")
    assert result.exit_code == 1
    assert "gate closed: 1 worse, of 2 cells" in result.stderr
    a, b = json.loads(result.stdout)["rows"]
    assert (a["gate"], b["gate"]) == ("worse", "same")
    assert a["difference"] == pytest.approx(-0.1)
    assert a["p_adjusted"] == pytest.approx(scipy_stats.ttest_1samp(losses, 0).pvalue)


def test_a_gain_passes(tmp_path: Path) -> None:
    result = gate(tmp_path, shifted({"a": [0.1, 0.12, 0.08, 0.11, 0.09]}), "--format", "csv")
    assert (result.exit_code, marks(result)["a"]) == (0, "ok")


def test_a_loss_within_the_margin_passes_and_beyond_it_stops(tmp_path: Path) -> None:
    new = shifted({"a": [-0.1, -0.12, -0.08, -0.11, -0.09]})
    assert gate(tmp_path, new, "--margin", "0.1").exit_code == 0
    beyond = gate(tmp_path, new, "--margin", "0.05", "--format", "json")
    assert beyond.exit_code == 1
    # the loss beyond the margin is what is tested
    left = [-0.05, -0.07, -0.03, -0.06, -0.04]
    p = json.loads(beyond.stdout)["rows"][0]["p_adjusted"]
    assert p == pytest.approx(scipy_stats.ttest_1samp(left, 0).pvalue)


def test_noise_is_open_and_stops_only_where_a_proof_is_asked_for(tmp_path: Path) -> None:
    new = shifted({"a": [-0.1, 0.1, -0.05, 0.06, 0.0]})
    assert gate(tmp_path, new, "--margin", "0.02").exit_code == 0
    result = gate(tmp_path, new, "--margin", "0.02", "--prove", "--format", "csv")
    assert (result.exit_code, marks(result)) == (1, {"a": "unproved", "b": "same"})
    assert gate(tmp_path, new, "--margin", "0.5", "--prove").exit_code == 0


def test_a_proof_without_a_margin_is_refused(tmp_path: Path) -> None:
    result = gate(tmp_path, OLD, "--prove")
    assert (result.exit_code, "--margin" in result.stderr) == (2, True)


def test_an_equal_loss_at_every_seed_needs_no_test(tmp_path: Path) -> None:
    old = {"a": [0.5, 0.75, 1.0]}
    new = {"a": [0.25, 0.5, 0.75]}
    folders = folder(tmp_path / "old", old), folder(tmp_path / "new", new)
    assert rlbench("gate", *folders).exit_code == 1
    assert rlbench("gate", *folders, "--margin", "0.25").exit_code == 0


def test_a_cell_that_is_gone_stops_it_and_one_that_is_new_does_not(tmp_path: Path) -> None:
    gone = gate(tmp_path, {"a": OLD["a"], "c": [1.0, 2.0]})
    assert gone.exit_code == 1
    assert "absent: b: not in the new results." in gone.stdout
    assert "Only in the new results: c." in gone.stdout
    assert rlbench("gate", tmp_path / "new", tmp_path / "new").exit_code == 0


def test_a_seed_that_fails_now_scores_the_floor(tmp_path: Path) -> None:
    old = folder(tmp_path / "old", {"a": [0.5, 0.6, 0.55, 0.58]}, "--floor", "0")
    new = folder(tmp_path / "new", {"a": [0.5, None, 0.55, 0.58]}, "--floor", "0")
    result = rlbench("gate", old, new, "--format", "json")
    document = json.loads(result.stdout)
    assert document["rows"][0]["difference"] == pytest.approx(-0.6 / 4)
    assert any("failed seeds count with the floor: new 1" in note for note in document["notes"])


def test_where_seeds_failed_before_and_no_floor_is_known_nothing_is_judged(tmp_path: Path) -> None:
    old = folder(tmp_path / "old", {"a": [0.5, None]})
    new = folder(tmp_path / "new", {"a": [0.5, None]})
    result = rlbench("gate", old, new)
    assert result.exit_code == 3
    assert "a failed seed has no known floor" in result.stderr


@pytest.mark.parametrize(
    ("scores", "seeds", "why"),
    [({"a": [0.5]}, 0, "one common seed"), ({"a": [0.5]}, 7, "no common seed")],
)
def test_too_few_pairs_are_no_pass(
    tmp_path: Path, scores: dict[str, list[float]], seeds: int, why: str
) -> None:
    old, new = folder(tmp_path / "old", OLD), folder(tmp_path / "new", scores, seeds=seeds)
    shutil.rmtree(old)
    folder(tmp_path / "old", {"a": [0.4, 0.5]})
    result = rlbench("gate", old, new)
    assert result.exit_code == 3
    assert why in result.stderr


def test_less_can_be_better(tmp_path: Path) -> None:
    up = {"a": [score + 0.1 + number / 100 for number, score in enumerate(OLD["a"])]}
    lower = ("--direction", "lower")
    old = folder(tmp_path / "old", {"a": OLD["a"]}, *lower)
    new = folder(tmp_path / "new", up, *lower)
    assert rlbench("gate", old, new).exit_code == 1
    assert rlbench("gate", new, old).exit_code == 0


def test_cells_are_the_same_whatever_source_made_them(tmp_path: Path) -> None:
    shutil.copytree(REFERENCE, tmp_path / "new")
    for path in (tmp_path / "new" / "runs").iterdir():
        spec = json.loads((path / "spec.json").read_text("utf-8"))
        name = f"{spec['run_id'][:-10]}0123456789"
        spec["run_id"], spec["training"] = name, "ffffffffff"
        spec["components"]["loss"]["source"] = "eeeeeeeeee"
        (path / "spec.json").write_text(json.dumps(spec), "utf-8")
        path.rename(path.with_name(name))
    result = rlbench("gate", REFERENCE, tmp_path / "new", "--format", "csv")
    assert result.exit_code == 0, result.output
    assert set(marks(result).values()) == {"same"}
    assert len(marks(result)) == 6


def test_one_folder_with_a_cell_of_two_sources_is_refused(tmp_path: Path) -> None:
    test_cells_are_the_same_whatever_source_made_them(tmp_path)
    shutil.copytree(REFERENCE, tmp_path / "new", dirs_exist_ok=True)
    result = rlbench("gate", REFERENCE, tmp_path / "new")
    assert result.exit_code == 2
    assert "twice, made by different versions or sources" in result.stderr


def test_cells_can_be_selected_and_another_metric_be_compared(tmp_path: Path) -> None:
    result = rlbench(
        "gate", REFERENCE, REFERENCE, "-e", "gae", "--metric", "kl_nats", "--format", "json"
    )
    document = json.loads(result.stdout)
    assert document["metric"] == "kl_nats"
    assert [row["cell"] for row in document["rows"]] == ["clip", "pg"]


def test_at_the_null_it_closes_no_more_often_than_alpha() -> None:
    from rlbench.report.cells.cell import Cell, Seed
    from rlbench.report.gate.gate import gate as judged

    generator = random.Random(0)

    def cell(name: str) -> Cell:
        seeds = tuple(
            Seed(number=n, record=record(n, 0.5), status="ok", score=generator.gauss(0, 1))
            for n in range(5)
        )
        return Cell(columns={"algorithm": name}, seeds=seeds)

    names = ("a", "b", "c", "d")
    closed = sum(
        not judged([cell(n) for n in names], [cell(n) for n in names]).passes for _ in range(400)
    )
    # half of the two-sided 0.05 is a loss: 400 * 0.025 = 10, two standard errors are 6.2
    assert closed <= 16


def test_rows_are_one_line_each_and_fit_eighty_columns(tmp_path: Path) -> None:
    long = "an algorithm with a name that goes on and on and has a | in it"
    folders = [
        folder(tmp_path / which, {long: [0.1, 0.2, 0.3 + more], "b": [1, 2, 3]})
        for which, more in (("old", 0), ("new", 1))
    ]
    assert max(map(len, rlbench("gate", *folders).stdout.splitlines())) <= 80
    github = rlbench("gate", *folders, "--format", "github").stdout.split("\n\n")[0].splitlines()
    assert len({line.replace("\\|", "").count("|") for line in github}) == 1


def test_seeds_that_fail_now_close_it_also_where_no_floor_is_known(tmp_path: Path) -> None:
    new = gate(tmp_path, {"a": [None] * 5, "b": OLD["b"]}, "--format", "csv")
    assert (new.exit_code, marks(new)) == (1, {"a": "fails", "b": "same"})
    assert "1 failing" in new.stderr
    assert "count with the floor" not in new.stderr


def test_a_cell_that_can_not_be_judged_closes_it(tmp_path: Path) -> None:
    new = gate(tmp_path, {"a": OLD["a"][:1], "b": OLD["b"]}, "--format", "csv")
    assert (new.exit_code, marks(new)) == (0, {"a": "same", "b": "same"})
    new = rlbench("gate", tmp_path / "old", folder(tmp_path / "other", {"a": [0.1], "b": OLD["b"]}))
    assert new.exit_code == 1
    assert "1 not judged, of 2 cells" in new.stderr


def test_a_crash_does_not_open_the_gate(tmp_path: Path) -> None:
    lower = [0.47, 0.568, 0.366, 0.52, 0.418]  # .03 to .034 less at every seed
    old = folder(tmp_path / "old", {"a": OLD["a"]}, "--floor", "0")
    for crashed in (0, 1, 2, 4, 5):  # three of five seeds are neither few nor nearly all: p is 0.06
        scores = [*lower[: 5 - crashed], *[None] * crashed]
        new = folder(tmp_path / f"new{crashed}", {"a": scores}, "--floor", "0")
        done = rlbench("gate", old, new, "--format", "csv")
        assert (done.exit_code, marks(done)) == (1, {"a": "worse"}), crashed


def test_old_and_new_are_of_the_seeds_of_the_difference(tmp_path: Path) -> None:
    old = folder(tmp_path / "old", {"a": [0.5, 0.6, 0.4, 0.9, 0.9]})
    new = folder(tmp_path / "new", {"a": [0.4, 0.5, 0.31]})
    done = rlbench("gate", old, new)
    row = next(line for line in done.stdout.splitlines() if line.startswith("a "))
    # (.5 + .6 + .4) / 3 and (.4 + .5 + .31) / 3
    assert row.split()[1:4] == ["3", "0.50", "0.40"]


def test_a_run_that_fails_now_is_named_where_the_gate_is_open(tmp_path: Path) -> None:
    old = folder(tmp_path / "old", {"a": OLD["a"]}, "--floor", "0")
    new = folder(tmp_path / "new", {"a": [*OLD["a"][:4], None]}, "--floor", "0")
    done = rlbench("gate", old, new)
    assert done.exit_code == 0
    assert "a: seeds 4 fail that ended well before" in " ".join(done.stdout.split())


def test_where_no_cell_is_in_both_the_nearest_is_named(tmp_path: Path) -> None:
    old = folder(tmp_path / "old", {"a": OLD["a"]}, "--as", "task=one")
    new = folder(tmp_path / "new", {"a": OLD["a"]}, "--as", "task=two")
    done = rlbench("gate", old, new)
    assert done.exit_code == 3
    assert "one that differs in task: one, now two" in done.stderr


def test_runs_that_are_no_pairs_are_compared_whole(tmp_path: Path) -> None:
    sides = {"old": [0.5, 0.6, 0.4, 0.55], "new": [0.3, 0.2, 0.25, 0.31, 0.28, 0.22]}
    for side, scores in sides.items():
        (tmp_path / f"{side}.json").write_text(json.dumps({"a": {"t": scores}}), "utf-8")
        rlbench("import", tmp_path / f"{side}.json", "-o", tmp_path / side)
    done = rlbench("gate", tmp_path / "old", tmp_path / "new", "--format", "json")
    assert done.exit_code == 1
    (row,) = json.loads(done.stdout)["rows"]
    p = scipy_stats.ttest_ind(sides["new"], sides["old"], equal_var=False).pvalue
    assert row["p_adjusted"] == pytest.approx(p)
    text = rlbench("gate", tmp_path / "old", tmp_path / "new").stdout
    assert "new runs, all against all old ones" in " ".join(text.split())


def test_a_p_below_alpha_is_never_written_as_alpha(tmp_path: Path) -> None:
    # d = -m - s, -m, -m + s with t(2) = 4.31: p = 0.0498
    old = folder(tmp_path / "old", {"a": [0.5, 0.5, 0.5]})
    new = folder(tmp_path / "new", {"a": [0.5 - 0.02 * (2.4884 + step) for step in (-1, 0, 1)]})
    done = rlbench("gate", old, new)
    assert "worse" in done.stdout
    assert "  0.050  " not in done.stdout


def test_every_task_has_its_own_places(tmp_path: Path) -> None:
    rows = {"old": ["task,algorithm,seed,score"], "new": ["task,algorithm,seed,score"]}
    for seed in range(5):
        for side, loss in (("old", 0), ("new", 1)):
            rows[side].append(f"big,a,{seed},{5000 + 130 * seed - 40 * loss}")
            rows[side].append(
                f"small,a,{seed},{0.5 + 0.013 * seed - 0.004 * loss + 0.001 * loss * seed}"
            )
    for side, lines in rows.items():
        (tmp_path / f"{side}.csv").write_text("\n".join(lines) + "\n", "utf-8")
        assert rlbench("import", tmp_path / f"{side}.csv", "-o", tmp_path / side).exit_code == 0
    text = rlbench("gate", tmp_path / "old", tmp_path / "new").stdout
    small = next(line for line in text.splitlines() if "small" in line)
    assert " 0.526 " in small
    assert "-0.0020" in small
    assert " 5260 " in next(line for line in text.splitlines() if "big" in line)


def test_what_is_new_is_named_by_what_tells_it_from_the_old() -> None:
    from rlbench.report.cells.cell import cells
    from rlbench.report.gate.gate import gate as judged

    one = [record(s, 0.5 + s / 50, estimator=e) for e in ("group", "rloo") for s in range(3)]
    more = [
        record(s, 0.4 + s / 50, estimator=e, loss="pg") for e in ("group", "rloo") for s in range(3)
    ]
    found = judged(cells(one), cells([*one, *more]))
    assert found.added == ("group+pg", "rloo+pg")
