"""Warnings that an experiment gives of itself: equal where it should differ, or the reverse."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from rlbench.cli import cli
from rlbench.grid.attempt import Planned
from rlbench.grid.store import Store
from rlbench.grid.verify import verify
from rlbench.report.tables import suspicion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rlbench.grid.store import Record

WIDE = {"loss": {"options": {"eps": 0.3}, "label": "clip:eps=0.3"}}
OTHER_SOURCE = {"loss": {"source": "fedcba9876543210"}}


def notes(out: Path) -> str:
    done = CliRunner().invoke(cli, ["table", str(out), "--format", "json"])
    assert done.exit_code == 0, done.stderr
    return " ".join(json.loads(done.stdout)["notes"])


@pytest.fixture
def write(tmp_path: Path, write_run: Callable[..., Path]) -> Callable[..., Path]:
    """Write a run with a curve of this name and a score of its own."""

    def written(seed: int, curve: str | None, **more: Any) -> Path:
        score = seed / 10 + 0.01 * len(more)
        return write_run(
            tmp_path, seed=seed, result={"metrics_sha256": curve, "score": score}, **more
        )

    return written


def test_seeds_with_one_curve_are_named(tmp_path: Path, write: Callable[..., Path]) -> None:
    for seed, curve in enumerate(["a", "a", "b", "a"]):
        write(seed, curve)
    assert "Same curves: " in notes(tmp_path)
    assert "seeds 0,1,3 gave the same numbers" in notes(tmp_path)


def test_three_identical_seeds_are_warned_of(tmp_path: Path, write: Callable[..., Path]) -> None:
    for seed in range(3):
        write(seed, "a")
    assert "seeds 0-2 gave the same numbers" in notes(tmp_path)


def test_equal_scores_of_different_curves_are_nothing(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    for seed in range(3):
        write_run(tmp_path, seed=seed, result={"metrics_sha256": str(seed), "score": 0.5})
    assert "same numbers" not in notes(tmp_path)


def test_runs_without_a_hash_are_told_apart_by_their_numbers(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    for seed in range(3):
        write_run(tmp_path, seed=seed, result={"score": 0.5, "kl": 0.1 * (seed // 2)})
    assert "seeds 0,1 gave the same numbers" in notes(tmp_path)


def test_two_cells_that_are_one_computation_are_named(
    tmp_path: Path, write: Callable[..., Path]
) -> None:
    for seed in range(3):
        write(seed, f"curve {seed}")
        if seed:
            write(seed, f"curve {seed}", components=WIDE)
    said = notes(tmp_path)
    assert "Same computation: " in said
    assert "clip:eps=0.3" in said
    assert "identical curves at all 2 common seeds" in said
    assert "what differs (loss clip, option eps) had no effect in this set-up" in said


def test_one_seed_that_differs_is_enough(tmp_path: Path, write: Callable[..., Path]) -> None:
    for seed in range(3):
        write(seed, f"curve {seed}")
        write(seed, f"curve {seed}{'x' * (seed == 2)}", components=WIDE)
    assert "Same computation" not in notes(tmp_path)


def test_what_is_only_measured_moves_no_curve(tmp_path: Path, write: Callable[..., Path]) -> None:
    write(0, "a")
    write(0, "a", settings={"eval_every": 5, "eval_prompts": 7})
    assert "Same computation" not in notes(tmp_path)
    write(0, "a", settings={"max_grad_norm": 5.0})
    assert "what differs (setting max_grad_norm) had no effect" in notes(tmp_path)
    assert "at seed 0" in notes(tmp_path)


def test_other_code_with_the_same_curves_is_good_news(
    tmp_path: Path, write: Callable[..., Path]
) -> None:
    write(0, "a")
    write(0, "a", components=OTHER_SOURCE)
    assert "the code that differs (source of loss clip) moved no number" in notes(tmp_path)


def test_failed_runs_and_runs_without_a_curve_compare_with_nothing(
    tmp_path: Path, write: Callable[..., Path]
) -> None:
    write(0, None)
    write(0, None, components=WIDE)
    write(1, "a", status="failed")
    write(1, "a", components=WIDE, status="failed")
    assert "Same" not in notes(tmp_path)


CURVE = "update,loss\n1,0.5\n"
DIGEST = hashlib.sha256(CURVE.encode()).hexdigest()


@pytest.fixture
def with_curves(tmp_path: Path, write_run: Callable[..., Path]) -> dict[int, Path]:
    """Write five seeds, each with the curve that its result tells of."""
    return {
        seed: write_run(
            tmp_path,
            seed=seed,
            metrics=CURVE,
            result={"metrics_sha256": DIGEST},
            status="failed" if seed == 4 else "ok",
        )
        for seed in range(5)
    }


def test_curves_that_were_changed_are_named_once_a_cell(
    tmp_path: Path, with_curves: dict[int, Path]
) -> None:
    assert "amaged" not in notes(tmp_path)
    (with_curves[0] / "metrics.csv").unlink()  # left out, as where only results are kept
    assert "amaged" not in notes(tmp_path)
    for seed in (1, 4):
        (with_curves[seed] / "metrics.csv").write_text(CURVE[:-2], "utf-8")
    (with_curves[3] / "metrics.csv").unlink()
    (with_curves[3] / "metrics.csv").mkdir()
    said = notes(tmp_path)
    assert said.count("Damaged curves: ") == 1
    path = with_curves[1] / "metrics.csv"
    assert f", seeds 1,3,4: seed 1: {path} is not what the run wrote. The scores" in said


@pytest.mark.parametrize(
    ("kind", "sort"), [("folder", "a folder"), ("fifo", "a FIFO"), ("link", "a link to nowhere")]
)
def test_what_lies_in_the_place_of_a_curve_is_named(
    tmp_path: Path, with_curves: dict[int, Path], kind: str, sort: str
) -> None:
    path = with_curves[2] / "metrics.csv"
    path.unlink()
    {"folder": path.mkdir, "fifo": lambda: os.mkfifo(path)}.get(
        kind, lambda: path.symlink_to("nowhere")
    )()
    assert f", seed 2: {path} is {sort}, where the curve of the run belongs" in notes(tmp_path)


def test_a_table_reads_only_so_much_of_curves_and_counts_the_rest(
    tmp_path: Path, with_curves: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in (1, 3):
        (with_curves[seed] / "metrics.csv").write_text(CURVE.replace("5", "7"), "utf-8")
    monkeypatch.setattr(suspicion, "_MOST_BYTES", 2 * len(CURVE))  # seeds 0 and 1
    said = notes(tmp_path)
    assert ", seed 1: " in said
    assert "Curves not checked for damage: 3 runs, from " in said


def planned(out: Path) -> tuple[list[Planned], list[Record]]:
    records = Store(out).read()
    return [Planned(record.run_id, None) for record in records], records  # type: ignore[arg-type]  # nobody reads the spec


def again(write_run: Callable[..., Path], asked: list[list[str]], **more: Any) -> Any:
    """Repeat runs of seeds in another folder; seed 1 comes to other numbers."""

    def repeat(runs: Sequence[Planned], folder: Path) -> list[Record]:
        asked.append([run.run_id for run in runs])
        made = {}
        for run in runs:
            seed = int(run.run_id.split("-s")[1][0])
            differs = {"metrics": "update,loss,reward\n1,0.5,0.75\n"} if seed == 1 else {}
            made[run.run_id] = write_run(folder, seed=seed, **differs | more)
        return [Store(folder).record(run.run_id) for run in runs]

    return repeat


def test_verified_runs_are_compared_and_later_tables_say_so(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    for seed in range(3):
        write_run(tmp_path, seed=seed)
    runs, records = planned(tmp_path)
    found = verify(runs, records, 9, out=tmp_path, repeat=again(write_run, []))
    assert [one.same for one in found] == [True, False, True]
    assert found[1].where == "metrics.csv parts at update 1: reward 0.25 | 0.75"
    said = notes(tmp_path)
    assert "Same spec, other numbers: " in said
    assert "seed 1: run again, metrics.csv parts at update 1: reward 0.25 | 0.75" in said
    assert "seed 0: run again" not in said
    (kept,) = tmp_path.glob("verify-*")
    assert len(Store(kept).read()) == 3


def test_nothing_is_left_where_all_is_the_same(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    write_run(tmp_path, seed=0)
    write_run(tmp_path, seed=2)
    runs, records = planned(tmp_path)
    found = verify(runs, records, 2, out=tmp_path, repeat=again(write_run, []))
    assert all(one.same for one in found)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert "other numbers" not in notes(tmp_path)


def test_runs_to_verify_are_chosen_evenly_among_those_that_ended_well(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    for seed in range(8):
        write_run(tmp_path, seed=seed, status="failed" if seed in (3, 6) else "ok")
    runs, records = planned(tmp_path)
    asked: list[list[str]] = []
    verify(runs, records, 3, out=tmp_path, repeat=again(write_run, asked))
    # of seeds 0 1 2 4 5 7 every second one
    assert [name.split("-s")[1][0] for name in asked[0]] == ["0", "2", "5"]
    assert verify(runs[3:4], records[3:4], 3, out=tmp_path, repeat=again(write_run, asked)) == []
    assert len(asked) == 1


@pytest.mark.parametrize(("status", "same"), [("failed", False), ("killed", None), (None, None)])
def test_a_repeated_run_that_does_not_end_well(
    *, tmp_path: Path, write_run: Callable[..., Path], status: str | None, same: bool | None
) -> None:
    write_run(tmp_path, seed=0)
    runs, records = planned(tmp_path)
    (found,) = verify(runs, records, 1, out=tmp_path, repeat=again(write_run, [], status=status))
    assert found.same is same
    assert f"the repeated run ended as {status or 'missing'}" in found.where
    assert ("other numbers" in notes(tmp_path)) is (same is False)


def test_an_interrupted_verification_leaves_no_folder(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    write_run(tmp_path, seed=0)
    runs, records = planned(tmp_path)

    def repeat(runs: Sequence[Planned], folder: Path) -> list[Record]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(runs, records, 1, out=tmp_path, repeat=repeat)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_two_names_of_one_mean_are_named_by_their_curves(tmp_path: Path) -> None:
    """Of one part, the mean over each part of a step is the mean over the step."""
    tiny = ["updates=1", "prompts=2", "group_size=2", "minibatches=1", "eval_prompts=8"]
    axis = "aggregation=token_mean,token_mean_local,seq_mean_token_mean"
    settings = [word for text in (*tiny, "base_score=0", axis) for word in ("--set", text)]
    arguments = ["run", "-q", "-t", "sort", "-s", "0", "-j", "1", "-o", str(tmp_path)]
    done = CliRunner().invoke(cli, [*arguments, *settings, "--format", "json"])
    assert done.exit_code == 0, done.stderr
    (said,) = (note for note in json.loads(done.stdout)["notes"] if "Same computation" in note)
    assert said == (
        "Same computation: aggregation=token_mean and aggregation=token_mean_local have identical "
        "curves at seed 0: what differs (setting aggregation) had no effect in this set-up."
    )
