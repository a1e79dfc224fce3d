"""Which cells are compared with which, in which direction, and what failures may change."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlbench.report.cells.baseline import find, only_pair
from rlbench.report.cells.cell import cells
from rlbench.report.cells.metric import Metric, metric
from rlbench.report.cells.pairing import cautions, off_footing, task_of
from rlbench.report.compare.comparison import Comparison, Row, compare, in_order
from rlbench.report.compare.table import comparison_table
from rlbench.report.tables.table import ranked

from .made_up import record, records

if TYPE_CHECKING:
    from rlbench.grid.store import Record
    from rlbench.plugin.registry import Registry
    from rlbench.report.cells.cell import Cell


def no_registry() -> Registry:
    raise AssertionError("all is there letter for letter")


def versus(made: list[Record], wanted: str = "base", **more: Any) -> Comparison:
    shown = in_order(cells(made, more.pop("metric", metric("score"))))
    return compare(shown, find(shown, wanted, no_registry), **more)


def row(comparison: Comparison, **labels: str) -> Row:
    (found,) = [
        row
        for row in comparison.rows
        if all(row.cell.columns[name] == value for name, value in labels.items())
    ]
    return found


def text(comparison: Comparison, **more: Any) -> str:
    return " ".join(comparison_table(comparison, **more).split())


UP = {"base": [0.5, 0.4, 0.6, 0.5, 0.45], "one": [0.7, 0.62, 0.81, 0.69, 0.66]}


def with_metric(key: str) -> list[Record]:
    """The numbers of `UP` as another metric than the score."""
    return [
        record(seed, 0.5, estimator=estimator, result={key: value})
        for estimator, values in UP.items()
        for seed, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("wanted", "verdict", "wins", "order"),
    [
        (metric("score"), "+", 1.0, ["one", "base"]),
        (metric("score", "lower"), "-", 0.0, ["base", "one"]),
    ],
)
def test_the_direction_turns_the_verdict_and_never_the_difference(
    wanted: Metric, verdict: str, wins: float, order: list[str]
) -> None:
    comparison = versus(records(UP), metric=wanted)
    found = row(comparison, estimator="one")
    assert found.difference is not None
    assert found.improvement is not None
    assert found.difference.interval.mid == pytest.approx(0.206)  # (.2+.22+.21+.19+.21) / 5
    assert (found.verdict, found.improvement.mid) == (verdict, wins)
    assert [row.cell.columns["estimator"] for row in comparison.rows] == order
    assert ("less is better" in text(comparison)) == (not wanted.higher)
    assert ("negative is better" in text(comparison)) == (not wanted.higher)


@pytest.mark.parametrize(
    ("name", "key", "verdict"), [("kl_nats", "kl", "-"), ("reward_mean", "reward", "+")]
)
def test_another_metric_is_compared_in_its_usual_direction(
    name: str, key: str, verdict: str
) -> None:
    comparison = versus(with_metric(key), metric=metric(name))
    assert row(comparison, estimator="one").verdict == verdict
    header = comparison_table(comparison).splitlines()[0].split()
    assert header[:3] == ["estimator", "n", name]
    assert "score" in header  # what it was bought with
    assert "KL" not in header
    data = json.loads(comparison_table(comparison, "json"))
    assert (data["metric"], data["planned_for"]) == (name, None)
    (one,) = [one for one in data["rows"] if one["estimator"] == "one"]
    assert (one["value"], one["score"]) == (pytest.approx(0.696), 0.5)  # 3.48 / 5


def test_a_failure_has_no_number_but_the_score() -> None:
    made = [*with_metric("kl"), record(5, None, estimator="one"), record(5, 0.5, estimator="base")]
    found = row(versus(made, metric=metric("kl_nats")), estimator="one")
    assert (found.verdict, found.reason) == ("n/a", "a failed seed has no kl_nats")
    assert "hang on failures" not in text(versus(made, metric=metric("kl_nats")))


def test_a_failure_is_not_the_best_where_less_is_made_better() -> None:
    lower = metric("score", "lower")
    made = records({"base": [0.5, 0.6, 0.4], "one": [0.7, None, 0.6]})
    turned = cells(made, lower)
    (one,) = [cell for cell in turned if cell.columns["estimator"] == "one"]
    (base,) = [cell for cell in turned if cell is not one]
    found = row(compare(turned, base), estimator="one")
    assert (found.verdict, found.reason) == ("n/a", "a failed seed has no known floor")
    assert one.score is None
    higher = cells(made, metric("score", "higher"))
    assert [seed.score for cell in higher for seed in cell.failed] == [0.0]


def test_results_from_elsewhere_have_no_kl_and_say_which_way_is_better() -> None:
    def elsewhere(name: str, seed: int, score: float) -> Record:
        spec = {
            "components": {
                "algorithm": {"name": name, "label": name},
                "task": {"name": "maze", "label": "maze"},
            },
            "settings": {},
            "direction": "lower",
        }
        gone = {"kl": None, "reward": None, "wall_s": None}
        return record(seed, score, spec=spec, result=gone, algorithm=name)

    made = [
        elsewhere(name, seed, 100 * score)
        for name, scores in UP.items()
        for seed, score in enumerate(scores)
    ]
    comparison = versus(made)
    assert row(comparison, algorithm="one").verdict == "-"
    lines = comparison_table(comparison).splitlines()
    assert "KL" not in lines[0]
    assert "less is better" in text(comparison)
    assert comparison.family.effect is None  # 0.05 of what?
    assert "not every result has kl_nats" in text(versus(made, metric=metric("kl_nats")))


def of_tasks() -> list[Record]:
    made = records(UP, task="sort")
    made += records({name: [s / 2 for s in scores] for name, scores in UP.items()}, task="addition")
    return made + records({"one": UP["one"]}, task="reverse")


def test_each_row_is_compared_with_the_baseline_of_its_task() -> None:
    comparison = versus(of_tasks())
    assert [(task_of(row.cell), row.verdict) for row in comparison.rows] == [
        ("addition", "+"),
        ("addition", "baseline"),
        ("reverse", "x"),
        ("sort", "+"),
        ("sort", "baseline"),
    ]
    assert comparison.family.size == 2
    assert comparison.labels == ("task", "estimator")
    found = [row(comparison, estimator="one", task=task) for task in ("addition", "sort")]
    middles = [one.difference.interval.mid for one in found if one.difference]
    assert middles == pytest.approx([0.103, 0.206])
    # the family is the whole table: both p-values are doubled, as all pairs but for scale are equal
    p = [(one.p, one.difference.p) for one in found if one.difference]
    assert all(adjusted == pytest.approx(2 * (alone or 0)) for adjusted, alone in p)
    said = text(comparison)
    assert "Against base, in each task its own: 2 better, 1 not comparable." in said
    assert "x: reverse, one: its task has no baseline." in said
    data = json.loads(comparison_table(comparison, "json"))
    assert data["baseline"] == "base"
    assert data["baselines"] == {"addition": "addition+base", "sort": "sort+base"}


def test_a_baseline_that_names_its_task_is_of_this_task_alone() -> None:
    comparison = versus(of_tasks(), "sort+base")
    assert set(comparison.baselines) == {"sort"}
    assert row(comparison, task="addition", estimator="one").reason == "another task"


def test_without_a_name_the_first_of_two_is_the_baseline_of_every_task() -> None:
    shown = in_order(cells(of_tasks()))
    found = only_pair(shown)
    assert {task: cell.columns["estimator"] for task, cell in found.items()} == {
        "addition": "one",
        "reverse": "one",
        "sort": "one",
    }


def test_what_fits_other_components_in_another_task_is_no_baseline() -> None:
    made = records({"base": UP["base"]}, loss="clip", task="sort")
    made += records({"one": UP["one"]}, loss="clip", task="addition")
    with pytest.raises(Exception, match="fits 2 cells"):
        versus(made, "clip")


def changed(
    *, spec: dict[str, Any] | None = None, settings: dict[str, Any] | None = None, **labels: str
) -> Cell:
    (cell,) = cells([record(0, 0.5, spec=spec, settings=settings, **labels)])
    return cell


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (changed(settings={"eval_prompts": 200}), "eval_prompts is 200, the baseline's 1000"),
        (changed(settings={"base_score": 0.3}), "base_score is 0.3, the baseline's 0.5"),
        (changed(settings={"base_seed": 4}), "base_seed is 4, the baseline's none"),
        (changed(task="sort"), "another task"),
        (changed(settings={"lr": 0.1, "updates": 7}), ""),
        (changed(reward="learned", model="other", kl="fixed"), ""),
        (changed(spec={"torch": "1.0"}), ""),
    ],
)
def test_what_is_measured_otherwise_is_not_comparable(cell: Cell, reason: str) -> None:
    assert off_footing(cell, changed()) == reason


def test_what_was_trained_on_is_compared_within_one_reward() -> None:
    one, other = (
        cells([record(0, 0.5, reward=name)], metric("reward_mean"))[0]
        for name in ("true", "learned")
    )
    assert off_footing(one, other) == "reward_mean is measured by another reward"
    assert off_footing(one, one) == ""


def test_other_footing_is_no_part_of_the_family_and_says_why() -> None:
    made = records(UP) + records({"one": UP["one"]}, settings={"eval_prompts": 50})
    comparison = versus(made, "base")
    assert row(comparison, eval_prompts="50").verdict == "x"
    assert comparison.family.size == 1
    assert "x: one, eval_prompts=50: eval_prompts is 50, the baseline's 1000." in text(comparison)


def test_other_versions_are_compared_with_a_word_of_caution() -> None:
    made = records({"base": UP["base"]}) + records({"one": UP["one"]}, spec={"torch": "1.0"})
    comparison = versus(made, "base")
    assert row(comparison, estimator="one").verdict == "+"
    said = text(comparison)
    assert "not the baseline's torch, which may be why results differ" in said
    assert cautions(changed(loss="other"), changed()) == ()


def test_a_verdict_that_hangs_on_failures_says_so() -> None:
    base = [0.50, 0.52, 0.48, 0.51, 0.49, 0.50]
    one = [0.60, 0.63, 0.57, 0.62, 0.58, None]
    comparison = versus(records({"base": base, "one": one}))
    found = row(comparison, estimator="one")
    # at the floor the last difference is -.5; without it all are from .09 to .11
    assert found.of_ok is not None
    assert (found.verdict, found.of_ok.verdict) == ("?", "+")
    assert (found.failures, found.seeds_of_ok) == (1, (0, 1, 2, 3, 4))
    said = text(comparison)
    assert "on the pairs alone that ended well on both sides: one: + on 5, not ?." in said
    assert said.count("hang on failures") == 1
    lines = comparison_table(comparison).splitlines()
    assert lines[0].split()[1] == "n"
    assert {line.split()[1] for line in lines[2:4]} == {"6/6", "5/6"}
    (data,) = [
        one for one in json.loads(comparison_table(comparison, "json"))["rows"] if one["pairs"]
    ]
    assert (data["verdict_of_ok"], data["pairs_of_ok"], data["failed_pairs"]) == ("+", 5, 1)
    assert data["difference_of_ok"] == pytest.approx(0.1)


def test_a_verdict_that_failures_do_not_move_is_not_talked_about() -> None:
    worse = versus(records({"base": [0.9, 0.93, 0.92, 0.91, 0.90], "one": [0.1, None, 0, 0, 0]}))
    assert row(worse, estimator="one").verdict == "-"
    assert "hang on failures" not in text(worse)


def test_an_interval_that_seems_to_contradict_the_verdict_is_explained() -> None:
    # paired t of .1, .12, .02, .09: p alone .026; with a second comparison it is doubled
    d = [0.1, 0.12, 0.02, 0.09]
    noise = [0.1, -0.1, 0.05, -0.06]
    made = records(
        {
            "base": [0.5] * 4,
            "one": [0.5 + x for x in d],
            "two": [0.5 + x for x in noise],
        }
    )
    comparison = versus(made)
    found = row(comparison, estimator="one")
    assert found.difference is not None
    assert found.difference.interval.low is not None
    assert found.difference.interval.low > 0
    assert found.verdict == "?"
    assert "In 1 row the interval of diff excludes 0 and p does not reject" in text(comparison)
    alone = versus(
        [run for run in made if (run.spec or {})["components"]["estimator"]["name"] != "two"]
    )
    assert row(alone, estimator="one").verdict == "+"
    assert "excludes 0" not in text(alone)


def test_a_real_difference_inside_the_margin_is_said_to_be_small() -> None:
    comparison = versus(records(UP), margin=0.5)
    assert row(comparison, estimator="one").verdict == "+"
    assert "In 1 row there is a difference, but one that lies inside the margin." in text(
        comparison
    )


BOTH_WAYS = (metric("score", "higher"), metric("score", "lower"))
SCORES = st.lists(
    st.one_of(st.none(), st.integers(0, 20).map(lambda n: n / 20)), min_size=1, max_size=8
)


@settings(deadline=None, max_examples=60)
@given(
    scores=st.fixed_dictionaries(dict.fromkeys(("base", "one", "two"), SCORES)),
    other_task=SCORES,
    seed=st.integers(0, 1000),
    wanted=st.sampled_from(BOTH_WAYS),
)
def test_no_byte_depends_on_the_order_of_runs(
    scores: dict[str, list[float | None]], other_task: list[float | None], seed: int, wanted: Metric
) -> None:
    made = records(scores) + records({"base": other_task, "one": other_task}, task="sort")
    shuffled = list(made)
    random.Random(seed).shuffle(shuffled)
    for format_ in ("simple", "json"):
        texts = {
            comparison_table(versus(runs, margin=0.1, metric=wanted), format_, 80)
            for runs in (made, shuffled)
        }
        assert len(texts) == 1


@settings(deadline=None, max_examples=60)
@given(
    base=SCORES.map(lambda scores: [s or 0.0 for s in scores]),
    one=SCORES.map(lambda scores: [s or 0.0 for s in scores]),
    failed=st.integers(0, 7),
    wanted=st.sampled_from(BOTH_WAYS),
)
def test_a_failure_never_looks_better_than_the_floor(
    base: list[float], one: list[float], failed: int, wanted: Metric
) -> None:
    place = failed % len(one)
    floor = 0.0 if wanted.higher else 1.0
    at_floor, with_failure = (
        [*records({"base": base})]
        + [
            record(s, None if s == place and fails else score, estimator="one")
            for s, score in enumerate([*one[:place], floor, *one[place + 1 :]])
        ]
        for fails in (False, True)
    )
    for run in (*at_floor, *with_failure):
        assert run.result is not None
        assert run.spec is not None
        run.result["floor"] = floor
        run.spec["direction"] = "higher" if wanted.higher else "lower"
    whole, broken = (versus(runs, metric=wanted) for runs in (at_floor, with_failure))
    good, bad = (row(comparison, estimator="one") for comparison in (whole, broken))
    # a floor that was scored speaks for "worse" at full size, a failure only as far as others do
    assert bad.difference == good.difference
    ahead = bad.difference is not None and bad.difference.interval.mid * wanted.sign > 0
    if ahead and good.p is not None:
        assert bad.p is not None
        assert bad.p >= good.p
    assert bad.score == good.score
    if good.improvement is not None:
        assert bad.improvement is not None
        assert bad.improvement.mid <= good.improvement.mid
    places = [
        [cell.columns["estimator"] for cell in ranked([r.cell for r in c.rows], c.labels)].index(
            "one"
        )
        for c in (whole, broken)
    ]
    assert places[1] >= places[0]


@pytest.mark.parametrize(
    ("one", "said"),
    [
        ([0.51, 0.53, 0.46, 0.55, 0.48], "seeds would show a difference of 0.05."),
        ([0.501, 0.499, 0.502, 0.4985, 0.5], "; so many seeds would show a difference of 0.05."),
    ],
)
def test_an_open_question_is_answered_with_the_seeds_it_takes(one: list[float], said: str) -> None:
    comparison = versus(records({"base": [0.5] * 5, "one": one}))
    more = row(comparison, estimator="one").more
    assert more is not None
    found = text(comparison)
    assert "one is not told apart from base: score +0.00" in found
    assert said in found
    assert (f"; about {more} more " in found) == (more > 0)
    assert ("; 0: there are enough for that" in found) == (more == 0)


def test_signs_that_decide_against_an_interval_are_explained() -> None:
    # all eight are above 0: p = 2 / 256; the last one alone stretches the interval of t below 0
    d = [0.010, 0.011, 0.012, 0.013, 0.014, 0.015, 0.016, 0.5]
    comparison = versus(records({"base": [0.2] * 8, "one": [0.2 + x for x in d]}))
    found = row(comparison, estimator="one")
    assert found.difference is not None
    assert found.difference.interval.low is not None
    assert found.difference.interval.low < 0
    assert (found.verdict, found.p) == ("+", 2 / 256)
    assert "In 1 row the interval of diff holds 0 and p rejects" in text(comparison)


def test_an_interval_inside_the_margin_that_is_not_equivalent_is_explained() -> None:
    near = [0.01, -0.01, 0.0, 0.01, -0.01]  # half-width .0124 alone, .0156 of two comparisons
    made = records({"base": [0.5] * 5, "one": [0.5 + x for x in near], "two": [0.9, 0.8] * 2 + [1]})
    comparison = versus(made, margin=0.014)
    assert row(comparison, estimator="one").verdict == "?"
    assert "In 1 row marked ? the interval of diff lies inside the margin" in text(comparison)


def test_names_are_folded_where_numbers_need_the_room() -> None:
    name = "a_name_of_some_length:with=1,two=2,options=3"
    comparison = versus(records({"base": UP["base"], name: UP["one"]}))
    for width in (70, 80, 100):
        lines = comparison_table(comparison, width=width).split("\n\n")[0].splitlines()
        assert max(map(len, lines)) <= width
    folded = [line.strip().split("  ")[0] for line in lines[2:]]
    assert "".join(folded).replace(" ", "").startswith(name)
    whole = comparison_table(comparison, width=140).splitlines()[2]
    assert whole.startswith(f"{name}  ")
    assert f"| {name} " in comparison_table(comparison, "github", 80)  # there nothing is folded


def test_numbers_at_the_end_of_floats_are_not_testable_and_say_so() -> None:
    huge = records({"base": [1.7e308, -1.7e308, 1.6e308], "one": [-1.7e308, 1.7e308, 1.0]})
    found = row(versus(huge), estimator="one")
    assert (found.verdict, found.difference) == ("n/a", None)
    assert "beyond 1e307 can't be subtracted" in text(versus(huge))
