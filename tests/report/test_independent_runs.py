"""Results whose seeds were counted on import: nothing is paired."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest
from scipy import stats as scipy_stats

from rlbench.grid.importing import SEEDS_COUNTED
from rlbench.report.cells.baseline import find
from rlbench.report.cells.cell import cells
from rlbench.report.compare.comparison import Comparison, compare, in_order
from rlbench.report.compare.table import comparison_table
from rlbench.stats import holm

from .made_up import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.grid.store import Record
    from rlbench.plugin.registry import Registry

BASE = [0.50, 0.54, 0.47, 0.52, 0.49, 0.55, 0.51, 0.50]
ONE = [0.60, 0.66, 0.58, 0.64]
TWO = [0.52, 0.47, 0.55, 0.58, 0.51]


def no_registry() -> Registry:
    raise AssertionError("all is there letter for letter")


def counted(scores: Mapping[str, Sequence[float | None]]) -> list[Record]:
    return [
        record(
            seed,
            score,
            estimator=name,
            spec={"imported": True},
            result={"provenance": {"imported": "a.json", SEEDS_COUNTED: True}},
        )
        for name, values in scores.items()
        for seed, score in enumerate(values)
    ]


def versus(made: list[Record]) -> Comparison:
    shown = in_order(cells(made))
    return compare(shown, find(shown, "base", no_registry))


def test_all_runs_of_one_side_stand_against_all_of_the_other() -> None:
    comparison = versus(counted({"base": BASE, "one": ONE, "two": TWO}))
    rows = {row.cell.columns["estimator"]: row for row in comparison.rows}
    p = [scipy_stats.ttest_ind(values, BASE, equal_var=False).pvalue for values in (ONE, TWO)]
    assert [rows["one"].p, rows["two"].p] == pytest.approx(list(holm(p)))
    difference = rows["one"].difference
    assert difference is not None
    assert difference.interval.mid == pytest.approx(0.62 - 0.51)
    assert rows["one"].verdict == "+"
    # 4 * 8 pairs of runs, all won
    assert rows["one"].improvement is not None
    assert rows["one"].improvement.mid == 1.0
    assert comparison.family.correction == "holm"


def test_the_order_of_runs_changes_nothing() -> None:
    scores = {"base": BASE, "one": ONE, "two": TWO}
    shuffled = {
        name: random.Random(1).sample(values, len(values)) for name, values in scores.items()
    }
    one, other = (
        {row.cell.columns["estimator"]: row for row in versus(counted(made)).rows}
        for made in (scores, shuffled)
    )
    for name in ("one", "two"):
        assert one[name].p == other[name].p
        assert one[name].improvement == other[name].improvement
        assert one[name].difference == other[name].difference


def test_the_caption_says_so() -> None:
    text = " ".join(comparison_table(versus(counted({"base": BASE, "one": ONE}))).split())
    for part in (
        "4 runs against 8",
        "n: runs of the row.",
        "half of its 95% Welch t interval",
        "two-sided Welch's t test of the one comparison",
        "share of all pairs of a run from each in which the row does better",
        "The seeds were counted on import",
    ):
        assert part in text, part
    assert "--tune" not in text
    assert "make pairs; " not in text


def test_data_say_it_too() -> None:
    made = json.loads(comparison_table(versus(counted({"base": BASE, "one": ONE})), "json"))
    found = next(row for row in made["rows"] if row["estimator"] == "one")
    assert (found["independent"], found["pairs"], found["correction"]) == (True, 0, "holm")


def test_failures_count_at_the_floor_and_never_help() -> None:
    whole = versus(counted({"base": BASE, "one": ONE}))
    broken = versus(counted({"base": BASE, "one": [*ONE[:3], None]}))
    before, after = whole.rows[0], next(r for r in broken.rows if r.baseline is not None)
    assert before.verdict == "+"
    assert after.verdict == "?"
    assert after.failures == 1
    assert after.difference is not None
    assert after.difference.interval.mid == pytest.approx(sum(ONE[:3]) / 4 - 0.51)


def test_a_row_that_trails_stays_worse_when_it_crashes() -> None:
    low = [0.40, 0.41, 0.42, 0.40, 0.41]
    for gone in range(4):
        made = versus(counted({"base": BASE, "low": [*low[: 5 - gone], *[None] * gone]}))
        row = next(row for row in made.rows if row.baseline is not None)
        assert row.verdict == "-", gone


def test_a_column_of_seeds_makes_pairs() -> None:
    made = counted({"base": BASE[:5], "two": TWO})
    for run in made:
        assert run.result is not None
        del run.result["provenance"][SEEDS_COUNTED]
    row = next(row for row in versus(made).rows if row.baseline is not None)
    pairs = [two - base for two, base in zip(TWO, BASE, strict=False)]
    assert row.p == pytest.approx(scipy_stats.ttest_1samp(pairs, 0).pvalue)
    assert not row.independent
