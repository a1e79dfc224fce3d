"""Algorithms against one of them over a suite: what is compared, and what is said of it."""

from __future__ import annotations

import csv
import io
import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import ndtri

from rlbench.cli import flags
from rlbench.errors import UsageError
from rlbench.grid.importing import SEEDS_COUNTED
from rlbench.report.cells.baseline import find
from rlbench.report.cells.cell import cells
from rlbench.report.cells.metric import metric
from rlbench.report.page import over_tasks
from rlbench.report.suite.against import SuiteComparison, SuiteRow, against
from rlbench.report.suite.against_table import against_remarks, against_table
from rlbench.report.suite.suite import suite
from rlbench.report.tables.table import arranged
from rlbench.stats import holm, suite_difference, suite_improvement

from .made_up import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.grid.store import Record

    Scores = Mapping[str, Mapping[str, Sequence[float | None]]]

RNG = np.random.default_rng(5)
PLACES = {"t1": 0.3, "t2": 0.5, "t3": 0.6}


def drawn(shift: float, n: int = 5) -> dict[str, list[float | None]]:
    return {
        task: [round(place + shift + 0.03 * x, 4) for x in RNG.normal(size=n)]
        for task, place in PLACES.items()
    }


BASE, AHEAD, BEHIND = drawn(0.0), drawn(0.1), drawn(-0.2)
APART = (0.010, -0.012, 0.004, -0.006, 0.008)
ALIKE = {
    task: [round((x or 0.0) + d, 4) for x, d in zip(BASE[task], APART[n:] + APART[:n], strict=True)]
    for n, task in enumerate(PLACES)
}
ALL: Scores = {"base": BASE, "ahead": AHEAD, "alike": ALIKE, "behind": BEHIND}


def runs(of: Scores, **more: Any) -> list[Record]:
    return [
        record(seed, score, estimator=name, task=task, **more)
        for name, tasks in of.items()
        for task, scores in tasks.items()
        for seed, score in enumerate(scores)
    ]


def compared(made: Sequence[Record], lower: bool = False, **more: Any) -> SuiteComparison:  # noqa: FBT001, FBT002 - a way
    found = cells(made, metric("score", "lower" if lower else "higher"))
    base = {cell.columns["task"]: cell for cell in found if cell.columns["estimator"] == "base"}
    return against(suite(found), base, **more)


def rows(made: SuiteComparison) -> dict[str, SuiteRow]:
    return {row.algorithm.columns["estimator"]: row for row in made.rows}


def test_differences_are_those_of_the_statistics_and_p_is_holm_s() -> None:
    made = compared(runs(ALL))
    found = rows(made)
    alone = {name: suite_difference(ALL[name], BASE) for name in ("ahead", "alike", "behind")}
    assert {name: found[name].difference for name in alone} == alone
    adjusted = holm([one.p or 0.0 for one in alone.values()])
    assert [found[name].p for name in alone] == adjusted.tolist()
    assert {name: row.verdict for name, row in found.items()} == {
        "ahead": "+",
        "base": "baseline",
        "alike": "?",
        "behind": "-",
    }
    assert found["ahead"].of_means == suite_difference(AHEAD, BASE, "mean").interval
    assert [row.n for row in made.rows] == [15] * 4
    # the best IQM first
    assert made.rows[0].algorithm.columns["estimator"] == "ahead"


def test_less_is_better_where_it_is() -> None:
    found = rows(compared(runs(ALL, spec={"direction": "lower"}), lower=True))
    assert (found["ahead"].verdict, found["behind"].verdict) == ("-", "+")
    assert found["behind"].difference
    assert found["behind"].difference.interval.mid < 0
    turned = {task: [-x for x in scores] for task, scores in BEHIND.items()}
    of_base = {task: [-x for x in scores] for task, scores in BASE.items()}
    assert found["behind"].difference.improvement == suite_improvement(turned, of_base)


def test_common_seeds_only_and_the_others_are_counted() -> None:
    short = {task: scores[:4] for task, scores in AHEAD.items()} | {"t2": AHEAD["t2"]}
    made = compared(runs({"base": BASE, "ahead": short}))
    row = rows(made)["ahead"]
    pairs = {task: BASE[task][: len(scores)] for task, scores in short.items()}
    assert row.difference == suite_difference(short, pairs)
    assert (row.n, row.unpaired) == (13, 2)
    assert (
        "ahead: 2 runs of either side make no pair, for their seeds did not run on both; they are "
        "in the IQM, not in diff."
    ) in against_remarks(made)


def test_runs_whose_seeds_nobody_gave_are_not_paired() -> None:
    longer = {task: [*scores, 0.7] for task, scores in AHEAD.items()}
    made = compared(
        runs({"base": BASE, "ahead": longer}, result={"provenance": {SEEDS_COUNTED: True}})
    )
    row = rows(made)["ahead"]
    assert made.independent
    assert row.difference == suite_difference(longer, BASE, paired=False)
    assert row.unpaired == 0
    assert any("are not paired" in line for line in against_remarks(made))


def test_failures_count_with_the_floor() -> None:
    brittle = {task: [None, *scores[1:]] for task, scores in ALIKE.items()}
    row = rows(compared(runs({"base": BASE, "brittle": brittle})))["brittle"]
    floored = {task: [0.0, *scores[1:]] for task, scores in ALIKE.items()}
    assert row.difference == suite_difference(floored, BASE)
    assert (row.verdict, row.more) == ("?", None)  # a floor is no spread to plan by


def test_one_more_failure_never_makes_an_algorithm_better() -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        sides = [
            {task: (place + rng.normal(0, 0.1, 4)).tolist() for task, place in PLACES.items()}
            for _ in range(2)
        ]
        before = rows(compared(runs({"base": sides[0], "one": sides[1]})))["one"].verdict
        sides[1]["t2"][int(rng.integers(4))] = None
        after = rows(compared(runs({"base": sides[0], "one": sides[1]})))["one"].verdict
        assert not (after == "+" and before != "+")


def test_an_algorithm_without_a_task_has_nothing_to_compare() -> None:
    part = {task: AHEAD[task] for task in ("t1", "t3")}
    made = compared(runs({"base": BASE, "part": part, "alike": ALIKE}))
    row = rows(made)["part"]
    assert (row.verdict, row.reason, row.p) == ("n/a", "1 task has no value", None)
    assert made.family.size == 1  # it is no test, and costs the other nothing
    with pytest.raises(
        UsageError, match=r"--baseline base: it has no value in 1 of 3 tasks \(t2\)"
    ):
        compared(runs({"base": part, "alike": ALIKE}))


def test_one_seed_of_a_task_is_no_test() -> None:
    single = {**AHEAD, "t1": AHEAD["t1"][:1]}
    row = rows(compared(runs({"base": BASE, "one": single})))["one"]
    assert (row.verdict, row.reason) == ("n/a", "one common seed in a task")
    none = runs({"one": {"t1": [None] * 5, "t2": [0.2] * 5, "t3": [0.4] * 5}, "base": BASE})
    other = [r for r in none if r.spec and r.spec["seed"] < 2]
    late = [
        replace(r, spec={**r.spec, "seed": r.spec["seed"] + 10})
        for r in runs({"one": ALIKE})
        if r.spec
    ]
    row = rows(compared([*[r for r in other if "base" in r.run_id], *late]))["one"]
    assert (row.verdict, row.reason) == ("n/a", "no common seed in task t1")


def test_other_footing_is_not_comparable() -> None:
    made = runs({"base": BASE})
    row = rows(compared([*made, *runs({"one": AHEAD}, spec={"settings": {"eval_prompts": 7}})]))
    assert row["one"].verdict == "x"
    assert row["one"].reason.startswith("task t1: eval_prompts is 7, the baseline's ")


def test_equivalent_is_the_simultaneous_interval_inside_the_margin() -> None:
    made = compared(runs(ALL), margin=0.06)
    found = rows(made)
    assert found["alike"].verdict == "="
    each = suite_difference(ALIKE, BASE, level=1 - 0.05 / 3).interval
    assert found["alike"].simultaneous
    assert found["alike"].simultaneous.low == pytest.approx(each.low)
    assert found["alike"].simultaneous.level == each.level
    assert each.low is not None
    assert each.low > -0.06
    assert rows(compared(runs(ALL), margin=0.01))["alike"].verdict == "?"


def test_seeds_to_come_are_those_that_shrink_the_error_enough() -> None:
    row = rows(compared(runs(ALL), margin=0.01))["alike"]
    assert row.simultaneous
    assert row.simultaneous.half_width
    # 5 pairs a task; half the simultaneous interval is z errors
    z, power = ndtri(1 - 0.05 / 3 / 2), ndtri(0.8)
    needed = 5 * (row.simultaneous.half_width * (1 + power / z) / 0.01) ** 2
    assert row.more == int(np.ceil(needed)) - 5
    # on a scale from 0 to 1 0.05 matters where nobody said what does; on another nothing is planned
    assert compared(runs(ALL)).family.effect == 0.05
    large = {
        name: {task: [1000 * x for x in scores] for task, scores in tasks.items()}
        for name, tasks in ALL.items()
    }
    assert rows(compared(runs(large)))["alike"].more is None


def test_the_order_of_runs_changes_nothing() -> None:
    made = runs(ALL)
    before = against_table(compared(made), "json")
    for seed in range(3):
        random.Random(seed).shuffle(made)
        assert against_table(compared(made), "json") == before


@pytest.mark.parametrize("width", [60, 80, 120])
def test_it_fits_a_terminal(width: int) -> None:
    text = against_table(compared(runs(ALL)), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "verdict" in text.splitlines()[0]


def test_data_have_every_digit() -> None:
    made = compared(runs(ALL))
    document = json.loads(against_table(made, "json"))
    assert {key: document[key] for key in ("baseline", "comparisons", "correction", "level")} == {
        "baseline": "base",
        "comparisons": 3,
        "correction": "holm",
        "level": 0.95,
    }
    first = document["rows"][0]
    row = rows(made)["ahead"]
    assert row.difference
    assert (first["estimator"], first["difference"]) == ("ahead", row.difference.interval.mid)
    assert (first["p"], first["p_adjusted"]) == (row.difference.p, row.p)
    assert [one["verdict"] for one in document["rows"]] == [row.verdict for row in made.rows]
    table = list(csv.DictReader(io.StringIO(against_table(made, "csv"))))
    assert [float(one["iqm"]) for one in table] == [one["iqm"] for one in document["rows"]]


def test_one_comparison_is_a_sentence() -> None:
    made = compared(runs({"base": BASE, "ahead": AHEAD}))
    text = " ".join(against_table(made).split())
    assert "ahead is better than base over 3 tasks: IQM +" in text
    assert "p < 0.001" in text or "p <0.001" in text
    assert "15 pairs" in text


def test_the_page_has_it_too() -> None:
    from rlbench.report.compare.comparison import compare

    found = cells(runs(ALL))
    ordered, _ = arranged(found)
    bases = {cell.columns["task"]: cell for cell in ordered if cell.columns["estimator"] == "base"}
    made = over_tasks.collect(ordered, None, compare(ordered, bases))
    assert made.table
    heads = [heading.text for heading in made.table.headings]
    assert heads[:5] == ["estimator", "verdict", "p", "diff", "±95%"]
    verdicts = {row[0].text: row[1].text for row in made.table.rows}
    assert verdicts["ahead"] == "+ better"
    assert made.answer == (
        "Against base, over 3 tasks, by the IQM: 1 better (ahead), 1 worse (behind), 1 undecided "
        "(alike)."
    )
    assert any(text.startswith("diff: of both IQMs over the pairs") for text in made.table.below)
    plain = over_tasks.collect(ordered).table
    assert plain
    assert "verdict" not in [heading.text for heading in plain.headings]


def test_a_baseline_that_is_not_there_is_told_without_the_tasks() -> None:
    shown, _ = arranged(cells(runs(ALL)))
    with pytest.raises(UsageError, match=r"did you mean 'behind'\? there are: \w+, \w+, \w+, \w+$"):
        find(shown, "behnd", lambda: flags.load(()))


def test_a_failure_of_unknown_worth_is_why_there_is_nothing() -> None:
    brittle = {**AHEAD, "t2": [None, *AHEAD["t2"][1:]]}
    made = runs({"base": BASE, "brittle": brittle}, result={"floor": None})
    text = " ".join(against_table(compared(made)).split())
    assert "brittle: 1 of 3 tasks have no value, so there is no aggregate: t2 (there a run" in text
    with pytest.raises(UsageError, match=r"\(t2; failed runs there have no known floor\)"):
        compared(runs({"base": brittle, "alike": ALIKE}, result={"floor": None}))


def test_where_there_is_no_interval_nothing_is_called_equal() -> None:
    single = {**AHEAD, "t1": AHEAD["t1"][:1]}
    row = next(
        line
        for line in against_table(compared(runs({"base": BASE, "one": single}))).splitlines()
        if line.startswith("one ")
    )
    assert "all equal" not in row


def test_the_head_of_the_names_is_no_wider_than_they_may_be() -> None:
    large = {
        name: {task: [1e9 * (x or 0.0) for x in scores] for task, scores in tasks.items()}
        for name, tasks in {"base": BASE, "z": ALIKE}.items()
    }
    text = against_table(compared(runs(large), margin=1e3), width=72)
    assert max(map(len, text.splitlines())) <= 72


def test_one_task_is_no_suite() -> None:
    alone = {name: {"t1": tasks["t1"]} for name, tasks in ALL.items()}
    with pytest.raises(UsageError, match="these results have one task; compare them without"):
        compared(runs(alone))


def test_numbers_that_no_float_can_subtract_are_named() -> None:
    huge = {name: {task: [1.5e308, -1.5e308] for task in PLACES} for name in ("base", "one")}
    row = rows(compared(runs(huge)))["one"]
    assert (row.verdict, row.reason.split(";")[0]) == (
        "n/a",
        "numbers beyond 1e307 can't be subtracted",
    )


def test_an_algorithm_without_seeds_unpairs_nobody_else() -> None:
    made = runs({"base": BASE, "ahead": AHEAD})
    more = runs({"alike": ALIKE}, result={"provenance": {SEEDS_COUNTED: True}})
    found = compared([*made, *more])
    assert rows(found)["ahead"].difference == suite_difference(AHEAD, BASE)
    assert rows(found)["alike"].difference == suite_difference(ALIKE, BASE, paired=False)
    assert any(line.startswith("alike: Seeds were numbered") for line in against_remarks(found))
