"""Grouping runs into cells, and what failed and missing seeds count as."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlbench.grid.store import Store
from rlbench.report.cells.cell import cells, differing
from rlbench.report.cells.frame import results
from rlbench.report.tables.notes import notes
from rlbench.report.text.spelling import spelled
from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path


def test_seeds_of_one_combination_make_one_cell(out: Path, write_run) -> None:
    for seed in (2, 0, 1):
        write_run(seed, 0.7 + seed / 10)
        write_run(seed, 0.6, estimator="gae")
    found = {cell.columns["estimator"]: cell for cell in cells(Store(out).read())}
    assert set(found) == {"group", "gae"}
    assert [seed.number for seed in found["group"].seeds] == [0, 1, 2]
    score = found["group"].score
    # (0.7 + 0.8 + 0.9) / 3, t(df 2) * 0.1 / sqrt(3)
    assert score.mid == pytest.approx(0.8)
    assert score.half_width == pytest.approx(0.248414, abs=1e-6)


def test_failed_seeds_score_at_the_floor(out: Path, write_run) -> None:
    write_run(0, 0.9)
    write_run(1, None, status="diverged", error=("Diverged", "loss is NaN"))
    write_run(2, None, status="failed", error=("ValueError", "no"), result={"floor": 0.3})
    (cell,) = cells(Store(out).read())
    # floors 0 and 0.3: (0.9 + 0 + 0.3) / 3
    assert cell.score.mid == pytest.approx(0.4)
    assert (cell.score_of_ok.mid, cell.score_of_ok.n) == (0.9, 1)
    assert (len(cell.ok), len(cell.tried), len(cell.failed)) == (1, 3, 2)
    assert [seed.error() for seed in cell.failed] == ["Diverged: loss is NaN", "ValueError: no"]


def test_a_killed_run_takes_the_floor_from_its_task(out: Path, write_run) -> None:
    write_run(0, 0.9, result={"floor": -1.0})
    write_run(1, None, status="timeout", result={"floor": None}, estimator="gae")
    found = {cell.columns["estimator"]: cell for cell in cells(Store(out).read())}
    assert found["gae"].score.mid == -1.0


def test_no_known_floor_no_score(out: Path, write_run) -> None:
    write_run(0, None, status="timeout", result={"floor": None})
    (cell,) = cells(Store(out).read())
    assert cell.score is None
    assert len(cell.tried) == 1


@pytest.mark.parametrize("status", ["killed", "interrupted"])
def test_lost_runs_are_not_tried(out: Path, write_run, status: str) -> None:
    write_run(0, 0.9)
    write_run(1, None, status=status)
    write_run(2, None, run=False)
    (cell,) = cells(Store(out).read())
    assert [seed.number for seed in cell.tried] == [0]
    assert cell.score.mid == 0.9


def test_ok_without_a_score_counts_as_failed(out: Path, write_run) -> None:
    write_run(0, None)
    write_run(1, 0.5)
    (cell,) = cells(Store(out).read())
    assert [seed.status for seed in cell.seeds] == ["failed", "ok"]
    assert cell.score.mid == 0.25


def test_versions_are_never_averaged_together(out: Path, write_run) -> None:
    write_run(0, 0.5)
    write_run(1, 0.9, spec={"torch": "2.12.0+cpu"})
    write_run(2, 0.7, source="ffffffffff")
    found = cells(Store(out).read())
    assert [len(cell.seeds) for cell in found] == [1, 1, 1]
    assert "torch" in differing(found)
    assert "loss.source" in differing(found)


def test_sources_of_different_components_are_no_columns(out: Path, write_run) -> None:
    write_run(0, 0.5, loss="clip")
    write_run(0, 0.5, loss="mine", sources={"loss": "1111111111"})
    assert differing(cells(Store(out).read())) == ["loss"]


def test_settings_that_differ_are_columns(out: Path, write_run) -> None:
    write_run(0, 0.5, settings={"lr": 0.001})
    write_run(0, 0.5, settings={"lr": 1e-5})
    found = cells(Store(out).read())
    assert differing(found) == ["lr"]
    assert {float(cell.columns["lr"]) for cell in found} == {0.001, 1e-5}


def test_unreadable_folders_are_named_not_averaged(out: Path, write_run) -> None:
    folder = write_run(0, 0.5)
    broken = write_run(1, 0.6)
    (broken / "spec.json").write_text("{", encoding="utf-8")
    records = Store(out).read()
    assert [record.folder for record in records if record.problem] == [broken]
    (cell,) = cells(records)
    assert [seed.record.folder for seed in cell.seeds] == [folder]


def test_results_has_one_row_a_run(out: Path, write_run) -> None:
    write_run(0, 0.5, settings={"lr": 0.001})
    write_run(1, None, status="failed", error=("KeyError", "'x'\nmore"), estimator="gae:lam=0.9")
    frame = results(Store(out).read())
    assert list(frame.columns) == [
        *["run_id", "estimator", "loss", "kl", "task", "reward", "model", "seed", "lr", "status"],
        *["error", "score_start", "score", "reward_mean", "kl_nats", "entropy", "length", "tokens"],
        *["wall_s", "rlbench", "torch"],
    ]
    frame = frame.set_index("seed")
    assert frame.loc[0, "score"] == 0.5
    assert frame.loc[1, "error"] == "KeyError: 'x'"
    assert frame["tokens"].dtype == "Int64"
    assert frame.index.dtype == "int64"


def test_one_value_in_three_types_is_one_row(out: Path, write_run) -> None:
    for seed, size in enumerate((4, 4.0, "4")):
        write_run(seed, 0.5 + seed / 10, settings={"group_size": size, "lr": 1e-3})
    for seed, lam in enumerate(("0.90", "0.9")):
        write_run(seed, 0.5, estimator=f"gae:lam={lam}", settings={"group_size": 4, "lr": 1e-3})
    for path in (out / "runs").glob("*/spec.json"):  # the label has one spelling on disk
        path.write_text(path.read_text("utf-8").replace("gae:lam=0.90", "gae:lam=0.9"), "utf-8")
    found = cells(Store(out).read())
    assert [len(cell.seeds) for cell in found] == [3, 2]
    assert found[0].columns["group_size"] == "4"
    assert {spelled(value) for value in results(Store(out).read())["group_size"]} == {"4"}


def test_what_is_not_at_its_default_has_a_column_even_if_it_is_the_same(
    out: Path, write_run
) -> None:
    for seed in range(2):
        write_run(seed, 0.5, settings={"lr": 0.25, "updates": Settings().updates})
    frame = results(Store(out).read())
    assert list(frame["lr"]) == [0.25, 0.25]
    assert "updates" not in frame


def test_spellings_that_differ_stay_apart() -> None:
    assert [spelled(v) for v in (4, 4.0, "4", "4.0", True, None, "a", 1e-4)] == [
        *["4"] * 4,
        "true",
        "none",
        "a",
        "0.0001",
    ]
    assert spelled(10**17) != spelled(10**17 + 1)


def test_a_seed_that_is_there_twice_counts_once_and_is_named(out: Path, write_run) -> None:
    write_run(0, None, status="failed", error=("E", "boom"))
    write_run(0, 0.75)
    second = write_run(0, 0.25)
    write_run(1, 0.5)
    records = Store(out).read()
    (cell,) = cells(records)
    assert [(seed.number, seed.score) for seed in cell.seeds] == [(0, 0.75), (1, 0.5)]
    assert len(cell.repeats) == 2
    below = notes([cell], ["estimator"])
    assert f"group: seed 0 is there more than once; {second} does not count." in below
    with pytest.warns(UserWarning, match="only the first counts") as warned:
        assert list(results(records)["seed"]) == [0, 1]
    assert len(warned) == 2


def test_a_run_that_is_left_out_of_a_frame_is_warned_of(out: Path, write_run) -> None:
    write_run(0, 0.75)
    write_run(1, 0.75, spec={"seed": "7"})
    write_run(2, 0.75, result={"kl": "a"})
    records = Store(out).read()
    with pytest.warns(UserWarning, match="left out: .*has seed '7'"):
        frame = results(records)
    assert list(frame["status"]) == ["ok", "unreadable"]
    (cell,) = cells(records)
    assert [seed.number for seed in cell.ok] == [0]
