"""Whole texts of `rlbench table`, as people read them.

``RLBENCH_REWRITE=1 pytest tests/report/test_table_texts.py`` writes them anew; read the diff.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rlbench.report.cells.cell import cells
from rlbench.report.cells.metric import metric
from rlbench.report.suite.against import against
from rlbench.report.suite.against_table import against_table
from rlbench.report.suite.suite import suite
from rlbench.report.suite.table import suite_table
from rlbench.report.tables.table import table

from .made_up import record, records

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlbench.grid.store import Record
    from rlbench.report.suite.against import SuiteComparison

TEXTS = Path(__file__).with_name("table_texts")
LUCK = (0.03, -0.02, 0.01, -0.04, 0.02, 0.00, -0.01, 0.05, -0.03, 0.01)  # of each seed
NOISE = (0.002, -0.011, 0.008, 0.003, -0.006, 0.010, -0.004, -0.002, 0.007, -0.007)


def scores(mean: float, n: int = 5, turn: int = 0) -> list[float | None]:
    """Scores that share the luck of their seed with those of all other cells."""
    own = NOISE[turn:] + NOISE[:turn]
    return [round(mean + LUCK[s] + own[s], 4) for s in range(n)]


def twelve() -> list[Record]:
    estimators = [f"group_gae:lam=0.{number}" for number in (90, 95, 99, 100)]
    losses = ["clip", "clip:eps=0.1", "clip:eps=0.2,eps_high=0.28"]
    return [
        run
        for number, estimator in enumerate(estimators)
        for other, loss in enumerate(losses)
        for run in records(
            {estimator: scores(0.5 + number / 30 + other / 25, turn=number + other)}, loss=loss
        )
    ]


def failures() -> list[Record]:
    return records(
        {
            "lucky": [0.93],
            "steady": scores(0.8),
            "brittle": [0.95, None, None, 0.93, 0.94],
            "weak": scores(0.3, turn=2),
            "gone": [None] * 5,
        }
    )


def odd_names() -> list[Record]:
    names = ("优势估计", "グループ相対", "a|b_c & 50%", "1e5", "a_long_name_of_an_estimator_" * 3)
    return records({name: scores(0.5 + n / 20, 7, n) for n, name in enumerate(names)})


def tasks() -> list[Record]:
    made = records({"a": scores(0.6), "b": scores(0.5, turn=3), "c": scores(0.45)}, task="sort")
    made += records({"a": scores(0.4), "b": scores(0.7, turn=1)}, task="addition")
    return made + records({"a": scores(0.4), "b": scores(0.42, turn=4)}, task="copy")


def from_elsewhere() -> list[Record]:
    made = []
    for name, mean in (("PPO", 2900.0), ("SAC", 4500.0), ("DDPG", 900.0)):
        for seed, luck in enumerate(LUCK):
            one = record(seed, mean + 9000 * luck + 20 * seed * (mean > 2000))
            one.result.update({"kl": None, "reward": None, "wall_s": None})
            one.spec.update({"imported": True, "settings": {}, "torch": None, "training": None})
            one.spec["components"] = {
                kind: {"name": text, "label": text, "options": {}}
                for kind, text in (("algorithm", name), ("task", "walker"))
            }
            made.append(type(one)(f"{name}-{seed}", one.folder, one.spec, one.result, None))
    return made


def versus_a(made: list[Record]) -> SuiteComparison:
    found = cells(made)
    of_a = {cell.columns["task"]: cell for cell in found if cell.columns["estimator"] == "a"}
    return against(suite(found), of_a)


CASES: dict[str, Callable[[list[Record]], str]] = {
    "twelve_80": lambda made: table(cells(made), width=80),
    "twelve_120": lambda made: table(cells(made), width=120, iqm=True),
    "failures_80": lambda made: table(cells(made), width=80),
    "failures_kl_80": lambda made: table(cells(made, metric("kl_nats")), width=80),
    "failures_github": lambda made: table(cells(made), "github"),
    "odd_names_80": lambda made: table(cells(made), width=80),
    "odd_names_latex": lambda made: table(cells(made), "latex"),
    "odd_names_html": lambda made: table(cells(made), "html"),
    "tasks_80": lambda made: table(cells(made), width=80),
    "tasks_suite_80": lambda made: suite_table(suite(cells(made)), width=80),
    "tasks_suite_120": lambda made: suite_table(suite(cells(made)), width=120),
    "tasks_against_80": lambda made: against_table(versus_a(made), width=80),
    "from_elsewhere_80": lambda made: table(cells(made), width=80),
}
RUNS = {
    "twelve": twelve,
    "failures": failures,
    "odd_names": odd_names,
    "tasks": tasks,
    "from_elsewhere": from_elsewhere,
}


@pytest.mark.parametrize("name", CASES)
def test_the_text_is_the_one_that_was_read_and_found_good(name: str) -> None:
    made = next(runs for stem, runs in RUNS.items() if name.startswith(stem))()
    random.Random(name).shuffle(made)
    text = f"{CASES[name](made)}\n"
    file = TEXTS / f"{name}.txt"
    if os.environ.get("RLBENCH_REWRITE"):
        TEXTS.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
