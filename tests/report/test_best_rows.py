"""Which rows of a table are among the best, which are not, and where that is open."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from scipy.stats import ttest_rel

from rlbench.report.cells.cell import cells
from rlbench.report.cells.metric import metric
from rlbench.report.tables import best as best_module
from rlbench.report.tables.best import ALPHA, best_set
from rlbench.report.tables.table import arranged, table

from .made_up import record, records

if TYPE_CHECKING:
    from rlbench.grid.store import Record
    from rlbench.report.tables.best import Standing

STEADY = [0.80, 0.79, 0.81, 0.82, 0.80]
CLOSE = [0.79, 0.80, 0.80, 0.81, 0.82]
WEAK = [0.30, 0.20, 0.35, 0.10, 0.20]


def standings(made: list[Record], name: str = "score") -> dict[str, Standing]:
    rows, _ = arranged(cells(made, metric(name)))
    found = best_set(rows).standings
    return {row.columns["estimator"]: standing for row, standing in zip(rows, found, strict=True)}


def marks(made: list[Record], name: str = "score") -> dict[str, bool | None]:
    return {label: one.among_best for label, one in standings(made, name).items()}


def test_rows_that_no_test_tells_apart_are_best_together() -> None:
    found = standings(records({"steady": STEADY, "close": CLOSE, "weak": WEAK}))
    assert {label: one.among_best for label, one in found.items()} == {
        "steady": True,
        "close": True,
        "weak": False,
    }
    # three pairs, of which steady-weak has the least or the second p: Holm multiplies by 3 or 2
    p = ttest_rel(STEADY, WEAK).pvalue, ttest_rel(CLOSE, WEAK).pvalue
    least = min(p) * 3
    second = max(least, max(p) * 2)
    assert found["weak"].p == pytest.approx(least)
    assert found["weak"].p_first == pytest.approx(least if p[0] == min(p) else second)


def test_the_largest_mean_alone_is_no_reason() -> None:
    assert best_set(arranged(cells(records({"a": [0.9]})))[0]).standings == ()
    found = best_set(arranged(cells(records({"a": [0.9], "b": [0.5]})))[0])
    assert [one.among_best for one in found.standings] == [None, None]
    assert found.reason == "no two rows of a task can be tested"


def test_one_lucky_seed_is_open_and_hides_no_mark() -> None:
    found = standings(records({"lucky": [0.99], "steady": STEADY, "weak": WEAK}))
    assert found["lucky"].among_best is None
    assert found["lucky"].reason == "fewer than two common seeds with any row"
    assert (found["steady"].among_best, found["weak"].among_best) == (True, False)


def test_what_is_worse_than_the_second_is_not_the_best_either() -> None:
    # the first varies so much that it is told from nobody; the second is told from weak
    wild = [1.0, 0.1, 1.0, 1.0, 1.0]
    found = standings(records({"wild": wild, "steady": STEADY, "weak": WEAK}))
    assert found["weak"].p_first > ALPHA
    assert found["weak"].p < ALPHA
    assert found["weak"].among_best is False


def test_pairs_are_formed_by_seed_and_never_by_position() -> None:
    made = [record(seed, value, estimator="a") for seed, value in enumerate(STEADY)]
    made += [record(seed + 5, value, estimator="b") for seed, value in enumerate(WEAK)]
    assert set(marks(made).values()) == {None}
    # at seeds 3 and 4 only: d = 0.82 - 0.30, 0.80 - 0.20
    made = [record(seed, value, estimator="a") for seed, value in enumerate(STEADY)]
    made += [record(seed + 3, value, estimator="b") for seed, value in enumerate(WEAK)]
    found = standings(made)
    assert found["b"].p == pytest.approx(ttest_rel([0.82, 0.80], [0.30, 0.20]).pvalue)


def test_failures_count_at_the_floor_and_never_make_a_row_one_of_the_best() -> None:
    brittle = [0.95, None, None, 0.95, 0.95]
    found = standings(records({"brittle": brittle, "steady": STEADY, "gone": [None] * 5}))
    assert found["steady"].among_best is True
    assert found["brittle"].among_best is None
    assert found["brittle"].reason == "2 of 5 failed"
    assert found["gone"].among_best is False  # 0 at every seed


def test_a_row_that_is_best_with_its_failures_may_be_the_first() -> None:
    nearly = [0.9] * 9 + [None]
    other = [0.50, 0.52, 0.48, 0.51, 0.49, 0.50, 0.53, 0.47, 0.50, 0.50]
    assert marks(records({"nearly": nearly, "other": other}))["nearly"] is True


def test_a_floor_that_nobody_knows_leaves_a_row_open() -> None:
    made = records({"steady": STEADY, "close": CLOSE})
    made += records({"x": [0.9, 0.8, 0.9, 0.7, 0.9]})[:4]
    made.append(record(4, None, estimator="x", task="other", result={"floor": None}))
    lost = replace(made[-1], spec=made[-2].spec | {"seed": 4})
    for one in made:
        one.result.pop("floor")
    found = standings([*made[:-1], lost])
    assert found["x"].among_best is None
    assert found["x"].reason == "a seed has no known value"


def test_equal_at_every_seed_is_a_tie_and_a_constant_distance_no_test() -> None:
    apart = {"a": STEADY, "b": STEADY, "c": [x - 0.25 for x in STEADY]}
    found = standings(records(apart))
    assert {one.among_best for one in found.values()} == {None}
    found = standings(records(apart | {"weak": WEAK}))
    assert (found["a"].among_best, found["b"].among_best) == (True, True)
    assert found["c"].among_best is None
    assert found["c"].reason == "all differences from the first are equal"
    found = standings(records({"a": STEADY, "b": STEADY, "weak": WEAK}))
    assert (found["a"].among_best, found["b"].among_best) == (True, True)
    assert found["b"].p is None


def test_less_is_better_for_other_metrics() -> None:
    made = [
        record(seed, 0.5, estimator=name, result={"kl": base + noise * (seed % 3)})
        for name, base, noise in (("near", 0.1, 0.01), ("far", 0.9, 0.02))
        for seed in range(5)
    ]
    rows, _ = arranged(cells(made, metric("kl_nats")))
    assert [row.columns["estimator"] for row in rows] == ["near", "far"]
    assert marks(made, "kl_nats") == {"near": True, "far": False}


def test_every_task_has_a_set_and_a_family_of_its_own() -> None:
    made = records({"a": STEADY, "weak": WEAK}, task="sort")
    made += records({"a": WEAK, "weak": STEADY}, task="addition")
    rows, labels = arranged(cells(made))
    assert labels == ["task", "estimator"]
    assert [row.columns["task"] for row in rows] == ["addition"] * 2 + ["sort"] * 2
    found = best_set(rows)
    assert [one.among_best for one in found.standings] == [True, False, True, False]
    assert (found.pairs, found.tasks) == (2, 2)
    # one pair in each: nothing to adjust for
    assert found.standings[1].p == pytest.approx(ttest_rel(STEADY, WEAK).pvalue)


def test_what_stands_on_another_footing_is_not_compared() -> None:
    made = records({"a": STEADY})
    made += records({"b": WEAK}, settings={"eval_prompts": 2000})
    found = standings(made)
    assert {one.among_best for one in found.values()} == {None}
    assert "eval_prompts" in table(cells(made))


def test_from_seven_seeds_on_signs_are_flipped_jointly() -> None:
    good = [0.80, 0.79, 0.81, 0.82, 0.80, 0.78, 0.83]
    found = best_set(arranged(cells(records({"a": good, "b": [x - 0.1 - x**5 for x in good]})))[0])
    assert found.correction == "max_t"
    # the sign of the sum is that of all 7 differences: 2 of 128 flips are as extreme
    assert found.standings[1].p == pytest.approx(2 / 128)


def test_too_many_pairs_are_said_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_module, "MOST_PAIRS", 2)
    text = table(cells(records({"a": STEADY, "b": CLOSE, "weak": WEAK})))
    assert "best  " not in text.splitlines()[0]
    flat = " ".join(text.split())
    assert "was not computed: 3 pairs of rows are more than 2; select fewer rows." in flat
    document = json.loads(table(cells(records({"a": STEADY, "b": CLOSE, "weak": WEAK})), "json"))
    assert {row["in_best_set"] for row in document["rows"]} == {None}


def test_the_caption_names_test_correction_family_and_what_is_open() -> None:
    text = " ".join(table(cells(records({"a": STEADY, "lucky": [0.99], "weak": WEAK}))).split())
    assert (
        "best: yes where no test shows another row to be better at common seeds (p < 0.05 by "
        "paired t, adjusted by Holm over the 1 of 3 pairs of rows that have a test); empty where "
        "one does." in text
    )
    assert "?: open for lucky (fewer than two common seeds with any row)." in text


def test_one_row_has_no_mark() -> None:
    text = table(cells(records({"a": STEADY})))
    assert "best" not in text


def test_data_hold_the_p_values_and_the_correction() -> None:
    document = json.loads(table(cells(records({"steady": STEADY, "weak": WEAK})), "json"))
    first, second = document["rows"]
    assert (first["in_best_set"], first["p_worse"], first["correction"]) == (True, None, None)
    p = ttest_rel(STEADY, WEAK).pvalue
    assert second["in_best_set"] is False
    assert second["p_worse"] == second["p_against_best"] == pytest.approx(p)
    assert (second["correction"], document["pairs"]) == ("holm", 1)


def test_no_failure_ever_helps_a_row() -> None:
    """Whatever seeds fail: a row gets no mark that it had not, and no better place."""
    generator = random.Random(5)
    for _ in range(60):
        n = generator.choice([3, 5, 8])
        scores = {
            name: [round(generator.random(), 3) for _ in range(n)] for name in ("a", "b", "c")
        }
        before = marks(records(scores))
        order = list(before)
        worse = scores | {"a": [x if generator.random() < 0.5 else None for x in scores["a"]]}
        after = marks(records(worse))
        assert not (after["a"] is True and before["a"] is False)
        assert list(after).index("a") >= order.index("a")


def test_a_few_seeds_of_one_row_leave_the_method_of_the_others() -> None:
    good = [0.80, 0.79, 0.81, 0.82, 0.80, 0.78, 0.83]
    made = records({"a": good, "b": [x - 0.1 - x**5 for x in good], "c": good[:3]})
    found = best_set(arranged(cells(made))[0])
    assert found.correction == "max_t and holm"
    text = " ".join(table(cells(made)).split())
    assert "max-t with joint flips of signs or paired t, adjusted by Holm" in text


def test_where_no_row_is_told_apart_none_is_marked() -> None:
    alike = {"steady": STEADY, "close": CLOSE}
    text = " ".join(table(cells(records(alike))).split())
    assert "best: ?: no test shows any row to be worse than another (p < 0.05 by paired t" in text
    assert " yes " not in text
    github = table(cells(records(alike)), "github")
    assert "**" not in github
    assert "No row is in bold: no test shows any row to be worse than another (p" in github
    # they are in the set all the same, for programs
    rows = json.loads(table(cells(records(alike)), "json"))["rows"]
    assert [row["in_best_set"] for row in rows] == [True, True]


def test_tasks_in_which_nothing_is_told_apart_are_named() -> None:
    made = records({"steady": STEADY, "weak": WEAK}, task="sort")
    made += records({"steady": STEADY, "close": CLOSE}, task="copy")
    text = " ".join(table(cells(made)).split())
    assert "In task copy no test shows any row to be worse than another: ?." in text
    rows = [line.split() for line in table(cells(made)).splitlines() if "/5" in line]
    assert [(row[0], row[1], row[5]) for row in rows] == [
        ("copy", "close", "?"),
        ("copy", "steady", "?"),
        ("sort", "steady", "yes"),
        ("sort", "weak", "0.240"),
    ]
