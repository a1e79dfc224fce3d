"""What a plan says of a grid: its cells, what is there of each, how long the rest takes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rlbench.grid.attempt import Planned
from rlbench.grid.identity import Catalogue
from rlbench.grid.request import ask
from rlbench.grid.store import Store
from rlbench.plugin.loading import load
from rlbench.report import older
from rlbench.report.plan import expected_s, plan_text, survey

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rlbench.grid.request import Request

    Write = Callable[..., None]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "out")


@pytest.fixture
def planned(store: Store) -> Callable[..., tuple[Request, list[Planned]]]:
    def make(*settings: str, seeds: str = "0", **given: Any) -> tuple[Request, list[Planned]]:
        how = {"out": store.root} | given.pop("how", {})
        request = ask(
            None,
            load=load,
            axes=given,
            settings=settings,
            seeds=seeds,
            plugins=(),
            how=how,
        )
        catalogue = Catalogue()
        return request, [Planned(catalogue.run_id(spec), spec) for spec in request.specs]

    return make


@pytest.fixture
def write(store: Store) -> Write:
    """Write a run as if it had ended so."""

    def write_run(run: Planned, status: str, wall_s: float | None = None) -> None:
        folder = store.run_folder(run.run_id)
        folder.mkdir(parents=True)
        spec = Catalogue().canonical(run.spec)
        (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        result = {"schema": 1, "run_id": run.run_id, "status": status, "wall_s": wall_s}
        if status == "ok":
            result["score"] = 0.5
        (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")

    return write_run


def states(planned: list[Planned], store: Store) -> list[dict[str, int]]:
    return [dict(cell.states) for cell in survey(planned, store)]


def seconds(planned: list[Planned], store: Store, **options: bool) -> list[float | None]:
    return expected_s(survey(planned, store), store.read(), **options)


def test_every_run_is_in_one_column(planned: Any, write: Write, store: Store) -> None:
    _, runs = planned(seeds="0-6")
    for run, status in zip(
        runs, ["ok", "failed", "diverged", "timeout", "killed", "interrupted"], strict=False
    ):
        write(run, status)
    # an interrupted run is missing; the seventh never began
    assert states(runs, store) == [{"done": 1, "failed": 3, "killed": 1, "missing": 2}]


def test_a_run_whose_lock_is_held_is_running(planned: Any, write: Write, store: Store) -> None:
    _, runs = planned(seeds="0-1")
    write(runs[1], "killed")
    with store.locked(runs[1].run_id):
        assert states(runs, store) == [{"missing": 1, "running": 1}]
    assert states(runs, store) == [{"missing": 1, "killed": 1}]


def test_a_torn_result_is_missing(planned: Any, write: Write, store: Store) -> None:
    _, runs = planned()
    write(runs[0], "ok")
    (store.run_folder(runs[0].run_id) / "result.json").write_text('{"status": "ok"')
    assert states(runs, store) == [{"missing": 1}]


def test_looking_writes_nothing(planned: Any, write: Write, store: Store) -> None:
    _, runs = planned(seeds="0-2")
    survey(runs, store)
    assert not store.root.exists()
    write(runs[0], "killed")
    with store.locked(runs[1].run_id):
        pass
    before = sorted(store.root.rglob("*"))
    survey(runs, store)
    assert sorted(store.root.rglob("*")) == before


def test_seconds_are_the_median_of_the_cells_own_runs(
    planned: Any, write: Write, store: Store
) -> None:
    _, runs = planned(seeds="0-4", estimator=["group", "gae"])
    for run, wall_s in zip(runs[::2], [10.0, 12.0, 50.0], strict=False):
        write(run, "ok", wall_s)
    write(runs[1], "ok", 40.0)
    write(runs[3], "failed", 1.0)  # says nothing of how long a run takes
    assert seconds(runs, store) == [12.0, 40.0]


def test_seconds_of_other_cells_count_by_the_update(
    planned: Any, write: Write, store: Store
) -> None:
    _, runs = planned("updates=10,30", task=["addition", "sort"])
    write(runs[0], "ok", 5.0)  # half a second an update, of addition
    assert seconds(runs, store) == [5.0, None, 15.0, None]


def test_seconds_of_runs_outside_of_the_grid_count_if_there_are_no_others(
    planned: Any, write: Write, store: Store
) -> None:
    _, earlier = planned("updates=20", loss=["pg"])
    write(earlier[0], "ok", 4.0)
    _, runs = planned("updates=10,30")
    assert seconds(runs, store) == [2.0, 6.0]
    write(runs[0], "ok", 9.0)  # one of its own is worth more
    assert seconds(runs, store) == [9.0, 27.0]


def text(
    planned: tuple[Request, list[Planned]], store: Store, workers: int = 2, **options: Any
) -> list[str]:
    request, runs = planned
    cells = survey(runs, store)
    retry = request.how["retry"]
    times = expected_s(cells, store.read(), retry=retry)
    return plan_text(request, cells, times, workers=workers, **options).splitlines()


def test_the_text_of_a_plan(planned: Any, write: Write, store: Store) -> None:
    grid = planned("lr=1e-3,3e-4", seeds="0-1", estimator=["group", "gae:lam=0.9"])
    write(grid[1][0], "ok", 60.0)
    write(grid[1][1], "failed")
    lines = text(grid, store, width=200)
    assert lines == [
        f"4 cells, 2 seeds: 8 runs in {store.root}",
        "  estimator  group, gae:lam=0.9",
        "  lr         0.001, 0.0003",
        "  seeds      0,1",
        "",
        "estimator    lr      done  missing  failed",
        "-----------  ------  ----  -------  ------",
        "group        0.001      1        1       0",
        "gae:lam=0.9  0.001      0        1       1",
        "group        0.0003     0        2       0",
        "gae:lam=0.9  0.0003     0        2       0",
        "",
        "All cells: loss clip, kl none, task addition, reward true, model lstm.",
        "",
        # 6 runs of 60 s, two at a time
        "8 runs: 1 done, 6 missing, 1 failed. 6 runs to do, 2 at a time: about 3 min.",
    ]


def test_failed_runs_are_to_do_with_retry(planned: Any, write: Write, store: Store) -> None:
    grid = planned(seeds="0-1")
    write(grid[1][0], "ok", 60.0)
    write(grid[1][1], "failed")
    ending = "Nothing is left to run. Those that failed run again with --retry."
    assert ending in " ".join(text(grid, store))
    again = planned(seeds="0-1", how={"retry": True})
    assert "1 run to do, 1 at a time: about 60 s." in " ".join(text(again, store))


def test_a_grid_of_one_cell_is_named_like_its_row_in_the_results(
    planned: Any, store: Store
) -> None:
    lines = text(planned("updates=3"), store)
    assert "estimator  loss  kl    done  missing  failed" in lines
    assert "With: task addition, reward true, model lstm, updates=3." in lines
    assert "no timing yet." in " ".join(lines)


def test_what_has_no_timing_is_counted(planned: Any, write: Write, store: Store) -> None:
    grid = planned(task=["addition", "sort"], seeds="0-1")
    write(grid[1][0], "ok", 60.0)
    assert "about 60 s, and 2 of them without timing yet." in " ".join(text(grid, store))


def test_many_cells_are_cut_and_counted(planned: Any, store: Store) -> None:
    values = ",".join(f"{number}e-4" for number in range(1, 46))
    grid = planned(f"lr={values}")
    lines = text(grid, store)
    assert "... and 5 more cells (--all shows them)" in lines
    assert not any("more cell" in line for line in text(grid, store, every_row=True))
    assert sum(line.startswith("0.0") for line in text(grid, store, every_row=True)) == 45


def test_prose_keeps_to_the_width(planned: Any, store: Store) -> None:
    values = ",".join(f"{number}e-4" for number in range(1, 30))
    grid = planned(f"lr={values}", how={"timeout": 90.5, "retries": 0, "retry": True})
    lines = text(grid, store, width=60)
    assert max(map(len, lines)) <= 60 + len(str(store.root))
    assert {"  timeout  90.5", "  retry    yes"} <= set(lines)


def test_labels_too_wide_for_the_screen_are_folded_into_one_column(
    planned: Any, store: Store
) -> None:
    request, runs = planned(
        "lr=0.0001,0.0003",
        "aggregation=token_mean,prompt_mean",
        "entropy_coef=0.0,0.01",
        estimator=("gae:lam=0.9", "group"),
        loss=("clip:eps=0.2,eps_high=0.28", "pg"),
    )
    cells = survey(runs, store)

    def body(**widths: int) -> list[str]:
        text = plan_text(request, cells, [None] * 32, workers=1, **widths)
        return text.split("\n\n")[1].splitlines()

    assert max(map(len, body(table_width=300))) > 80
    folded = body(width=60)
    assert max(map(len, folded)) <= 60
    assert folded[0].split() == ["cell", "done", "missing", "failed"]
    column = folded[1].index(" ")
    names = "".join(line[:column].strip() for line in folded[2:]).replace(" ", "")
    first = "gae:lam=0.9,clip:eps_high=0.28,"
    assert first in names
    assert names.count("lr=0.0003") == names.count("entropy_coef=0.01") == 16


def test_runs_that_other_code_made_are_named(planned: Any, write: Write, store: Store) -> None:
    asked = {"estimator": ["gae:lam=0.9"], "seeds": "0-2"}
    request, runs = planned("lr=1e-3", **asked)
    others = planned("lr=2e-3", **asked)[1] + planned("lr=1e-3", estimator=["gae"])[1]
    for run in (*runs, *others):
        write(run, "ok", 9.0)
    assert older.find(runs, store.names(), store.record) == []
    names = []
    for run in runs[:2]:  # as made by a version without a setting, and with another source
        folder = store.run_folder(run.run_id)
        name = f"{run.run_id[:-10]}0123456789"
        spec = json.loads((folder / "spec.json").read_text()) | {"run_id": name}
        spec["components"]["loss"]["source"] = "fedcba9876543210"
        del spec["settings"]["top_k"]  # at its default
        (folder / "spec.json").write_text(json.dumps(spec))
        folder.rename(folder.with_name(name))
        names.append(name)
    assert older.find(runs, store.names(), store.record) == names
    said = older.text(names, store.root)
    assert said == (
        "2 of the missing runs are there as made by other code or versions. "
        f"rlbench show run {names[0]} -o {store.root} tells what differs; "
        f"rlbench rm --outdated -o {store.root} removes such runs."
    )
    text = plan_text(request, survey(runs, store), [None], workers=1, width=500, older=said)
    assert text.endswith(f"\n\n{said}")
    assert older.text([], store.root) == ""
    (store.run_folder(names[0]) / "result.json").unlink()  # it never ended
    assert older.find(runs, store.names(), store.record) == names[1:]


def test_what_the_folder_of_another_grid_holds_is_not_read(
    planned: Any, write: Write, store: Store
) -> None:
    for run in planned(estimator=["gae"])[1] + planned(seeds="7")[1]:
        write(run, "ok", 9.0)
    read: list[str] = []
    assert older.find(planned(seeds="0-1")[1], store.names(), read.append) == []
    assert read == []
