"""Whole texts of `rlbench compare` at 80 columns, as people read them.

``RLBENCH_REWRITE=1 pytest tests/report/test_verdict_texts.py`` writes them anew; read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rlbench.report.cells.baseline import find
from rlbench.report.cells.cell import cells
from rlbench.report.cells.metric import metric
from rlbench.report.compare.comparison import compare, in_order
from rlbench.report.compare.table import comparison_table
from rlbench.report.compare.tuning import Axis, tune

from .made_up import record, records

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlbench.grid.store import Record
    from rlbench.plugin.registry import Registry

TEXTS = Path(__file__).with_name("verdict_texts")
LUCK = (0.03, -0.02, 0.01, -0.04, 0.02, 0.00, -0.01, 0.05, -0.03, 0.01)  # of each seed
NOISE = (0.002, -0.011, 0.008, 0.003, -0.006, 0.010, -0.004, -0.002, 0.007, -0.007)


def scores(mean: float, n: int, noise: float = 1.0, turn: int = 0) -> list[float | None]:
    """Scores that share the luck of their seed with those of all other cells."""
    own = NOISE[turn:] + NOISE[:turn]
    return [round(mean + LUCK[s] + noise * own[s], 4) for s in range(n)]


def no_registry() -> Registry:
    raise AssertionError("all is there letter for letter")


def text_of(made: list[Record], wanted: str, tuned: str = "", **more: Any) -> str:
    name = more.pop("metric", "score")
    found = cells(made, metric(name))
    tuning = tune(found, Axis(name=tuned)) if tuned else None
    shown = in_order(tuning.cells if tuning else found)
    made_ = compare(shown, find(shown, wanted, no_registry), **more)
    if tuning:
        from dataclasses import replace

        made_ = replace(made_, tuning=tuning)
    return comparison_table(made_, width=80)


def clear() -> str:
    return text_of(
        records({"base": scores(0.5, 8), "one": scores(0.6, 8, turn=3)}),
        "base",
    )


def undecided() -> str:
    noisy = {"one": scores(0.51, 5, 5, turn=1), "two": scores(0.53, 5, 2, turn=2)}
    return text_of(records({"base": scores(0.5, 5)} | noisy), "base")


def equivalent() -> str:
    near = {"one": scores(0.505, 6, turn=2), "two": scores(0.55, 6, turn=4)}
    return text_of(records({"base": scores(0.5, 6)} | near), "base", margin=0.03)


def failures() -> str:
    one = scores(0.6, 6, turn=3)
    one[4] = None
    two = scores(0.58, 6, turn=1)
    two[1] = two[2] = None
    return text_of(records({"base": scores(0.5, 6), "one": one, "two": two}), "base")


def tasks() -> str:
    made = records({"base": scores(0.5, 7), "one": scores(0.56, 7, turn=3)}, task="addition")
    made += records({"base": scores(0.3, 7), "one": scores(0.27, 7, turn=5)}, task="sort:longest=9")
    made += records({"one": scores(0.8, 7)}, task="reverse")
    return text_of(made, "base")


def tuned() -> str:
    made = []
    for lr, loss in ((1e-4, 0.04), (3e-4, 0.0), (1e-3, 0.02)):
        for turn, estimator in enumerate(("base", "one", "two")):
            mean = 0.5 + 0.04 * turn - (loss if estimator != "two" else 0.04 - loss)
            made += [
                record(seed, score, estimator=estimator, settings={"lr": lr})
                for seed, score in enumerate(scores(mean, 10, turn=turn))
                if (estimator, lr) != ("one", 1e-3)
            ]
    return text_of(made, "base", tuned="lr")


def other_metric() -> str:
    made = []
    for turn, (estimator, kl) in enumerate((("base", 0.4), ("one", 0.3), ("two", 0.42))):
        made += [
            record(seed, 0.5 + LUCK[seed], estimator=estimator, result={"kl": value})
            for seed, value in enumerate(scores(kl, 5, 2, turn=turn))
        ]
    made.append(record(5, None, estimator="one"))
    made.append(record(5, 0.5, estimator="base"))
    return text_of(made, "base", metric="kl_nats")


def long_names() -> str:
    return text_of(
        records(
            {
                f"an_estimator_with_a_long_name_{n}:alpha=0.{n},normalise=true": scores(
                    0.5 + n / 20, 7, turn=n
                )
                for n in range(1, 4)
            }
        ),
        "an_estimator_with_a_long_name_1:alpha=0.1,normalise=true",
    )


CASES: dict[str, Callable[[], str]] = {
    "clear": clear,
    "undecided": undecided,
    "equivalent": equivalent,
    "failures": failures,
    "tasks": tasks,
    "tuned": tuned,
    "other_metric": other_metric,
    "long_names": long_names,
}


@pytest.mark.parametrize("name", CASES)
def test_the_text_is_as_it_was_read_and_found_good(name: str) -> None:
    text = CASES[name]()
    assert max(map(len, text.splitlines())) <= 80
    file = TEXTS / f"{name}.txt"
    if os.environ.get("RLBENCH_REWRITE"):
        TEXTS.mkdir(exist_ok=True)
        file.write_text(f"{text}\n", encoding="utf-8")
    assert f"{text}\n" == file.read_text("utf-8")
