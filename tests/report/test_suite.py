"""One row an algorithm over several tasks: what is computed, and what is not."""

from __future__ import annotations

import csv
import io
import json
import random
from typing import TYPE_CHECKING

import pytest

from rlbench.errors import UsageError
from rlbench.report.cells.cell import cells
from rlbench.report.cells.metric import metric
from rlbench.report.suite.suite import Suite, suite
from rlbench.report.suite.table import remarks, suite_table
from rlbench.stats import bootstrap_ranks, suite_interval

from .made_up import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.grid.store import Record

A = {"easy": [0.9, 0.8, 0.7], "hard": [0.3, 0.2, 0.1]}
B = {"easy": [0.6, 0.5, 0.7], "hard": [0.4, 0.6, 0.5]}


def runs(of: Mapping[str, Mapping[str, Sequence[float | None]]], **more: object) -> list[Record]:
    return [
        record(seed, score, estimator=name, task=task, **more)  # type: ignore[arg-type]  # as tests name them
        for name, tasks in of.items()
        for task, scores in tasks.items()
        for seed, score in enumerate(scores)
    ]


def made(of: Mapping[str, Mapping[str, Sequence[float | None]]], **more: object) -> Suite:
    return suite(cells(runs(of, **more)))


def flat(text: str) -> str:
    return " ".join(text.split())


def test_aggregates_are_those_of_the_statistics() -> None:
    found = made({"a": A, "b": B})
    by_name = {one.columns["estimator"]: one for one in found.algorithms}
    # of 0.1 0.2 0.3 0.7 0.8 0.9 the lowest and the highest go: 2.0 / 4; of 0.4 0.5 0.5 0.6 0.6 0.7
    # likewise 2.2 / 4
    assert by_name["a"].iqm.mid == pytest.approx(0.5)
    assert by_name["b"].iqm.mid == pytest.approx(0.55)
    assert by_name["a"].mean.mid == pytest.approx(0.5)  # (0.8 + 0.2) / 2
    assert by_name["a"].gap.mid == pytest.approx(0.5)
    assert by_name["a"].iqm == suite_interval(A)
    assert by_name["b"].mean == suite_interval(B, "mean")
    ranks = bootstrap_ranks({"a": A, "b": B})
    assert by_name["a"].rank == ranks["a"]
    assert by_name["b"].rank.interval.mid == 1.5  # first in one task, second in the other
    assert [one.columns["estimator"] for one in found.algorithms] == ["b", "a"]  # by IQM
    assert found.labels == ("estimator",)


def test_an_algorithm_that_lacks_a_task_has_no_aggregate_and_the_task_is_named() -> None:
    found = made({"a": A, "b": B, "c": {"easy": [1.0, 1.0, 1.0]}})
    last = found.algorithms[-1]
    assert last.columns["estimator"] == "c"
    assert (last.missing, last.iqm, last.rank) == (("hard",), None, None)
    text = suite_table(found)
    assert "c: 1 of 2 tasks have no value, so there is no aggregate: hard." in flat(text)
    (line,) = [line for line in text.splitlines() if line.startswith("c ")]
    assert line.split()[1:3] == ["1/2", "3/3"]
    assert set(line.split()[3:]) == {"-"}
    # those that are complete are ranked as if it were not there
    assert found.algorithms[0].rank.interval.mid == 1.5


def test_a_failure_counts_at_the_floor_and_one_without_a_floor_leaves_no_value() -> None:
    with_failure = {"easy": [0.9, None, 0.7], "hard": [0.3, 0.2, 0.1]}
    found = made({"a": with_failure, "b": B})
    by_name = {one.columns["estimator"]: one for one in found.algorithms}
    assert by_name["a"].mean == suite_interval(
        {"easy": [0.9, 0.0, 0.7], "hard": [0.3, 0.2, 0.1]}, "mean"
    )
    text = suite_table(found)
    assert "5/6" in text
    assert "0.367*" in text  # (1.6 / 3 + 0.6 / 3) / 2
    assert "Rows with *: failed seeds count with the task's floor in the score." in flat(text)
    assert "Failure rate with Jeffreys' 95% interval: easy, a 0.33 [0.04, 0.82]." in flat(text)
    unknown = made({"a": with_failure, "b": B}, result={"floor": None})
    by_name = {one.columns["estimator"]: one for one in unknown.algorithms}
    assert by_name["a"].missing == ("easy",)
    assert by_name["b"].iqm is not None


def test_a_scale_puts_the_better_score_at_one_whatever_the_direction() -> None:
    of = {"a": {"return": [20.0, 30.0], "cost": [5.0, 4.0]}}
    made_up = runs(of)
    for one in made_up:
        if one.spec["components"]["task"]["label"] == "cost":
            one.spec["direction"] = "lower"
    scales = {"return": (10.0, 30.0), "cost": (9.0, 1.0)}
    found = suite(cells(made_up), scales)
    # returns 0.5 and 1, costs 0.5 and 0.625
    assert found.algorithms[0].mean.mid == pytest.approx((0.75 + 0.5625) / 2)
    assert (found.scaled, found.higher) == ("here", True)
    with pytest.raises(UsageError, match="task cost: less is better, but the score that counts as"):
        suite(cells(made_up), scales | {"cost": (1.0, 9.0)})
    with pytest.raises(UsageError, match="less is better in cost and more in the others"):
        suite(cells(made_up))
    with pytest.raises(UsageError, match="cost"):
        suite(cells(made_up), {"return": (10.0, 30.0)})


def test_less_is_better_everywhere() -> None:
    found = suite(cells(runs({"a": A, "b": B}, spec={"direction": "lower"})))
    assert [one.columns["estimator"] for one in found.algorithms] == ["a", "b"]
    assert not found.higher
    assert found.algorithms[0].gap is None
    worse = made({"a": A, "b": {"easy": [0.95, 1.0, 0.9], "hard": [0.5, 0.6, 0.5]}})
    assert worse.algorithms[0].rank.interval.mid == 1.0
    reverse = suite(
        cells(
            runs(
                {"a": A, "b": {"easy": [0.95, 1.0, 0.9], "hard": [0.5, 0.6, 0.5]}},
                spec={"direction": "lower"},
            )
        )
    )
    assert reverse.algorithms[0].columns["estimator"] == "a"
    assert reverse.algorithms[0].rank.interval.mid == 1.0
    assert "less is better" in flat(suite_table(reverse))


def test_without_a_scale_the_table_says_so() -> None:
    assert "score as it is, from 0 to 1" in flat(suite_table(made({"a": A, "b": B})))
    large = {"a": {"easy": [120.0, 130.0], "hard": [2.0, 3.0]}}
    found = made(large)
    assert found.algorithms[0].gap is None
    assert "gap" not in suite_table(found).splitlines()[0]
    assert "goes with the tasks of the largest numbers" in flat(suite_table(found))


def test_what_was_normalised_on_import_is_not_normalised_again() -> None:
    made_up = cells(runs({"a": A}, spec={"scale": [0.0, 2.0]}))
    assert suite(made_up).scaled == "imported"
    with pytest.raises(UsageError, match="normalised on import; leave --normalise"):
        suite(made_up, {"easy": (0.0, 1.0), "hard": (0.0, 1.0)})


def test_one_run_of_a_task_leaves_estimates_without_intervals() -> None:
    found = made({"a": {"easy": [0.9], "hard": [0.3, 0.2]}, "b": B})
    one = next(one for one in found.algorithms if one.columns["estimator"] == "a")
    assert (one.iqm.low, one.iqm.half_width) == (None, None)
    text = suite_table(found)
    assert "nan" not in text
    assert "No interval where a task has one run: easy." in flat(text)
    row = next(line for line in text.splitlines() if line.startswith("a "))
    assert "-" in row.split()
    document = json.loads(suite_table(found, "json"))
    of_a = next(row for row in document["rows"] if row["estimator"] == "a")
    assert (of_a["iqm_low"], of_a["p_best"]) == (None, None)


def test_one_algorithm_is_not_ranked() -> None:
    found = made({"a": A})
    assert found.algorithms[0].rank is None
    assert "rank" not in suite_table(found)
    assert suite_table(found).split()[0] == "estimator"


def test_two_cells_of_one_algorithm_in_one_task_are_refused() -> None:
    twice = runs({"a": A}) + runs({"a": A}, spec={"schema": 1})
    for one in twice[len(twice) // 2 :]:
        one.spec["components"]["task"] = one.spec["components"]["task"] | {"source": "ffff"}
    renamed = [
        type(one)(f"{one.run_id}-{i}", one.folder, one.spec, one.result, None)
        for i, one in enumerate(twice)
    ]
    with pytest.raises(UsageError, match=r"two cells in task easy, which differ in task\.source"):
        suite(cells(renamed))


def test_settings_tell_algorithms_apart() -> None:
    both = runs({"a": A}) + runs({"a": B}, settings={"lr": 0.25})
    found = suite(cells(both))
    assert found.labels == ("lr",)
    assert {one.columns["lr"] for one in found.algorithms} == {"0.0005", "0.25"}


def test_tasks_are_in_natural_order() -> None:
    found = made({"a": {"t10": [0.5, 0.6], "t2": [0.5, 0.6], "t1": [0.5, 0.6]}})
    assert found.tasks == ("t1", "t2", "t10")


def test_another_metric_can_be_aggregated() -> None:
    found = suite(cells(runs({"a": A, "b": B}), metric("kl_nats")))
    assert (found.metric, found.higher) == ("kl_nats", False)
    assert "kl_nats as it is" in flat(suite_table(found))


def test_no_order_of_runs_moves_a_byte() -> None:
    of = {"a": A, "b": B, "c": {"easy": [0.1, None, 0.3]}, "d": {k: v[:2] for k, v in A.items()}}
    made_up = runs(of)
    texts = set()
    for shuffle in range(5):
        random.Random(shuffle).shuffle(made_up)
        texts.add(suite_table(suite(cells(made_up)), width=80))
        texts.add(suite_table(suite(cells(made_up)), "json"))
    assert len(texts) == 2


def test_too_narrow_leaves_out_intervals_first_and_folds_names() -> None:
    found = made({"a" * 70: A, "b": B})
    text = suite_table(found, width=80)
    table, below = text.split("\n\n")
    assert max(map(len, table.splitlines())) <= 80
    assert "Left out for width: gap 95%, rank 95%" in flat(below)
    assert "".join(line.split()[0] for line in table.splitlines()[2:]).count("a") == 70
    short = suite_table(made({"a": A, "b": B}), width=80).split("\n\n")[0].splitlines()
    assert max(map(len, short)) <= 80
    assert "IQM 95%" in short[0]


def test_data_have_every_digit() -> None:
    found = made({"a": A, "b": B})
    rows = list(csv.DictReader(io.StringIO(suite_table(found, "csv"))))
    assert float(rows[1]["iqm"]) == found.algorithms[1].iqm.mid
    assert float(rows[1]["iqm_low"]) == found.algorithms[1].iqm.low
    assert rows[0]["missing_tasks"] == ""
    document = json.loads(suite_table(found, "json"))
    assert document["tasks"] == ["easy", "hard"]
    assert document["rows"][0]["rank"] == 1.5
    assert remarks(found) == []


@pytest.mark.parametrize("format_", ["latex", "github", "html"])
def test_documents_are_whole(format_: str) -> None:
    text = suite_table(made({"a_b|c": A, "b": B}), format_)
    marks = {"latex": r"a\_b\textbar{}c &", "github": r"| a_b\|c ", "html": ">a_b|c</th>"}
    assert marks[format_] in text
    assert "P(best)" in text


def test_on_a_scale_a_failure_of_unknown_worth_counts_as_zero() -> None:
    made = runs({"a": {"easy": [0.9, None, 0.7], "hard": [0.3, 0.2, 0.1]}, "b": B})
    for run in made:
        assert run.result is not None
        del run.result["floor"]
    scales = {"easy": (0.5, 1.0), "hard": (0.0, 1.0)}
    found = suite(cells(made), scales).algorithms
    a = next(one for one in found if one.columns["estimator"] == "a")
    # easy: .8, 0 and .4; hard: .3, .2, .1; the mean of .4 and .2
    assert a.mean is not None
    assert a.mean.mid == pytest.approx(0.3)


def test_raw_scores_are_said_to_be_that() -> None:
    text = flat(suite_table(made({"a": {"x": [5000.0, 5100.0], "y": [-120.0, -110.0]}})))
    assert "the mean goes with the tasks of the largest numbers" in text
    assert "the IQM leaves out those of the largest and the smallest" in text
