"""A value for each cell, chosen on half of the seeds: which seeds, which value, what is said."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlbench.errors import NothingSelected, UsageError
from rlbench.report.cells.baseline import find
from rlbench.report.cells.cell import cells
from rlbench.report.cells.metric import metric
from rlbench.report.compare.comparison import Comparison, compare, in_order
from rlbench.report.compare.table import comparison_table
from rlbench.report.compare.tuning import Axis, Choice, Tuning, absent, parse_axis, tune

from .made_up import record, records

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.grid.store import Record
    from rlbench.plugin.registry import Registry

LR = Axis(name="lr")


def no_registry() -> Registry:
    raise AssertionError("all is there letter for letter")


def grid(
    scores: Mapping[float, Mapping[str, Sequence[float | None]]], name: str = "lr"
) -> list[Record]:
    return [
        run
        for value, of_value in scores.items()
        for run in records(of_value, settings={name: value})
    ]


def choice(tuning: Tuning, estimator: str) -> Choice:
    (found,) = [one for one in tuning.choices if one.cell.columns["estimator"] == estimator]
    return found


def tuned(made: list[Record], axis: Axis = LR) -> Comparison:
    tuning = tune(cells(made), axis)
    shown = in_order(tuning.cells)
    return replace(compare(shown, find(shown, "base", no_registry)), tuning=tuning)


def text(comparison: Comparison) -> str:
    return " ".join(comparison_table(comparison).split())


TWO = {
    0.001: {"base": [0.1, 0.9, 0.1, 0.9], "one": [0.9, 0.1, 0.9, 0.3]},
    0.002: {"base": [0.9, 0.1, 0.9, 0.1], "one": [0.1, 0.2, 0.3, 0.9]},
}


def test_every_second_seed_chooses_and_the_others_are_compared() -> None:
    tuning = tune(cells(grid(TWO)), LR)
    assert (tuning.chosen_on, tuning.compared_on) == ((1, 3), (0, 2))
    # base at seeds 1, 3: .9 against .1; one: (.1 + .3) / 2 = .2 against (.2 + .9) / 2 = .55
    assert [choice(tuning, name).value for name in ("base", "one")] == ["0.001", "0.002"]
    assert choice(tuning, "one").means == pytest.approx({"0.001": 0.2, "0.002": 0.55})
    # what is compared had no say: base scored worst at the value that was chosen
    base, one = (choice(tuning, name).cell for name in ("base", "one"))
    assert [seed.score for seed in base.seeds] == [0.1, 0.1]
    assert [seed.score for seed in one.seeds] == [0.1, 0.3]
    assert "lr" not in base.columns


@pytest.mark.parametrize(
    ("seeds", "chosen_on", "compared_on"),
    [
        ([0, 1, 2, 3, 4], (1, 3), (0, 2, 4)),
        ([10, 20, 30, 40], (20, 40), (10, 30)),
        (list(range(10)), (1, 3, 5, 7, 9), (0, 2, 4, 6, 8)),
    ],
)
def test_the_halves_go_by_order_and_the_larger_one_is_compared(
    seeds: list[int], chosen_on: tuple[int, ...], compared_on: tuple[int, ...]
) -> None:
    made = [record(s, 0.5, settings={"lr": lr}) for s in seeds for lr in (0.1, 0.2)]
    tuning = tune(cells(made), LR)
    assert (tuning.chosen_on, tuning.compared_on) == (chosen_on, compared_on)


def test_a_seed_that_was_not_tried_everywhere_is_not_used_and_named() -> None:
    made = grid({lr: {"base": [0.5] * 6, "one": [0.5] * 6} for lr in (0.1, 0.2)})
    gone = made.pop()  # seed 5
    assert gone.spec is not None
    assert gone.spec["seed"] == 5
    comparison = tuned(made)
    assert comparison.tuning is not None
    assert comparison.tuning.unused == (5,)
    assert "Seeds 5 are not used: not tried everywhere." in text(comparison)


@pytest.mark.parametrize(
    ("values", "chosen"),
    [
        ((1e-4, 1e-3, 2e-3), "0.001"),  # twice the default of 5e-4, not a fifth
        ((1e-4, 5e-4, 6e-4), "0.0005"),
        ((4e-4, 6.25e-4), "0.0004"),  # as far, a factor of 1.25, but smaller
    ],
)
def test_of_equal_means_the_nearest_to_the_default_is_chosen(
    values: tuple[float, ...], chosen: str
) -> None:
    made = grid({lr: {"base": [0.5] * 4} for lr in values})
    (found,) = tune(cells(made), LR).choices
    assert found.value == chosen
    assert found.edge == ""  # nothing points beyond the end


def test_failures_count_with_the_floor_where_a_value_is_chosen() -> None:
    made = grid({0.001: {"base": [0.5, None, 0.5, 0.9]}, 0.002: {"base": [0.5, 0.5, 0.5, 0.5]}})
    (found,) = tune(cells(made), LR).choices
    # seeds 1, 3: (0 + .9) / 2 = .45 against .5
    assert (found.value, found.failures) == ("0.002", {"0.001": 1})


def test_a_value_with_failures_of_unknown_worth_comes_last() -> None:
    made = [
        record(seed, None if lr == 0.001 and seed == 1 else 0.5, settings={"lr": lr})
        for seed in range(4)
        for lr in (0.001, 0.002)
    ]
    (found,) = tune(cells(made, metric("wall_s")), LR).choices
    assert found.value == "0.002"
    assert found.means["0.001"] is None


def test_less_is_chosen_where_less_is_better() -> None:
    made = grid({0.001: {"base": [0.5] * 4}, 0.002: {"base": [0.4] * 4}})
    (found,) = tune(cells(made, metric("score", "lower")), LR).choices
    assert found.value == "0.002"


def test_the_table_says_what_was_chosen_and_where() -> None:
    noise = [0.0, 0.01, -0.02, 0.03, 0.0, 0.02, -0.01, 0.01]
    lrs = (0.0001, 0.0005, 0.001)
    best = {"base": 0.0005, "one": 0.001}
    made = grid(
        {
            lr: {
                name: [0.5 + x * (i + 1) + 0.2 * (best[name] == lr) for x in noise]
                for i, name in enumerate(best)
            }
            for lr in lrs
        }
    )
    comparison = tuned(made)
    said = text(comparison)
    assert comparison_table(comparison).splitlines()[0].split()[:3] == ["estimator", "lr", "n"]
    assert (
        "lr: chosen for each row among 0.0001, 0.0005, 0.001 by its mean on seeds 1,3,5,7" in said
    )
    assert "come from the other seeds, 0,2,4,6." in said
    assert "one: the best lr, 0.001, is the largest tried" in said
    assert "base: the best lr" not in said
    assert "Equal settings are not equal tuning" not in said
    data = json.loads(comparison_table(comparison, "json"))
    assert data["tuning"]["compared_on"] == [0, 2, 4, 6]
    assert {row["estimator"]: (row["tuned"], row["lr"]) for row in data["rows"]} == {
        "base": ("0.0005", "0.0005"),
        "one": ("0.001", "0.001"),
    }
    assert "tuned_means" not in comparison_table(comparison, "csv")


def test_a_cell_that_was_not_tried_at_all_values_is_named() -> None:
    made = grid({0.1: {"base": [0.5] * 4, "one": [0.5] * 4}, 0.2: {"base": [0.6] * 4}})
    assert "one: not tried at lr 0.2." in text(tuned(made))


def test_an_option_of_a_component_is_tuned_by_its_kind() -> None:
    def run(seed: int, score: float, estimator: str, loss: str, eps: float | None) -> Record:
        made = record(seed, score, estimator=estimator, loss=loss)
        assert made.spec is not None
        # a specification holds the defaults too, a label does not
        made.spec["components"]["loss"]["options"] = {} if eps is None else {"eps": eps, "dual": 3}
        return made

    made = []
    for seed in range(4):
        for estimator in ("base", "one"):
            made.append(run(seed, 0.5, estimator, "clip:dual=3", 0.2))
            better = 0.1 if estimator == "one" else 0.0
            made.append(run(seed, 0.5 + better, estimator, "clip:eps=0.3,dual=3", 0.3))
        made.append(run(seed, 0.4, "base", "pg", None))
    tuning = tune(cells(made), parse_axis("loss.eps"))
    found = {(c.cell.columns["estimator"], c.cell.columns["loss"]): c.value for c in tuning.choices}
    assert found == {
        ("base", "clip:dual=3"): "0.2",  # of equal means the default
        ("one", "clip:dual=3"): "0.3",
        ("base", "pg"): "-",
    }
    shown = in_order(tuning.cells)
    made_ = compare(shown, find(shown, "base+clip:dual=3", no_registry))
    assert "base, pg: there is no loss.eps to choose." in text(replace(made_, tuning=tuning))


def test_too_few_common_seeds_are_refused_with_the_number_needed() -> None:
    made = grid({lr: {"base": [0.5] * 5, "one": [0.5] * 3} for lr in (0.1, 0.2)})
    with pytest.raises(UsageError) as caught:
        tune(cells(made), LR)
    assert str(caught.value) == (
        "--tune lr: 4 seeds that all have tried are needed, 2 to choose by and 2 to compare; there "
        "are 3 (one+lr=0.1 has 0-2)"
    )


def test_nothing_to_choose_from() -> None:
    made = grid({0.1: {"base": [0.5] * 4, "one": [0.5] * 4}, 0.2: {"base": [0.5] * 4}})
    with pytest.raises(NothingSelected, match=r"no result with lr=7 or 8; there are: 0.1, 0.2"):
        tune(cells(made), Axis(name="lr", values=("7", "8")))
    with pytest.raises(UsageError, match=r"0.1 is the only value, .*; there are: 0.1, 0.2"):
        tune(cells(made), Axis(name="lr", values=("0.1", "8")))
    with pytest.raises(NothingSelected, match=r"--tune loss.eps: no result has it"):
        tune(cells(made), parse_axis("loss.eps"))
    assert absent(Axis(name="lr", values=("0.1", "8")), cells(made)) == ["8"]


@pytest.mark.parametrize(
    ("written", "axis"),
    [
        ("lr", Axis(name="lr")),
        ("lr=1e-3,0.0010,3e-4", Axis(name="lr", values=("0.001", "0.0003"))),
        ("loss.eps=0.20,.3", Axis(name="loss.eps", values=("0.2", "0.3"))),
        (
            "aggregation=token_mean,token_sum",
            Axis(name="aggregation", values=("token_mean", "token_sum")),
        ),
    ],
)
def test_an_axis_is_read_in_one_spelling(written: str, axis: Axis) -> None:
    assert parse_axis(written) == axis


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("lrr", "did you mean 'lr'"),
        ("eps", "an option is written with its kind, such as loss.eps"),
        ("lr=", "a value is missing"),
        ("lr=0.1,,0.2", "a value is missing"),
        ("lr=0.1", "one value leaves nothing to choose"),
        ("lr=0.1,-1", "lr"),
        ("los.eps", "'los' is no kind of component"),
        ("loss.", "is no kind of component"),
    ],
)
def test_an_axis_that_is_none(written: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_axis(written)


SCORES = st.lists(
    st.one_of(st.none(), st.integers(0, 4).map(lambda n: n / 4)), min_size=4, max_size=9
)


@settings(deadline=None, max_examples=40)
@given(
    scores=st.lists(SCORES, min_size=6, max_size=6),
    other=st.lists(SCORES, min_size=6, max_size=6),
    seed=st.integers(0, 1000),
)
def test_the_choice_hangs_on_the_choosing_half_alone_and_on_no_order(
    scores: list[list[float | None]], other: list[list[float | None]], seed: int
) -> None:
    def made(of: list[list[float | None]]) -> list[Record]:
        n = min(len(values) for values in (*scores, *other))
        return grid(
            {
                lr: {"base": of[2 * i][:n], "one": of[2 * i + 1][:n]}
                for i, lr in enumerate((1, 2, 3))
            }
        )

    runs = made(scores)
    shuffled = list(runs)
    random.Random(seed).shuffle(shuffled)
    for format_ in ("simple", "json"):
        assert comparison_table(tuned(runs), format_) == comparison_table(tuned(shuffled), format_)
    # what the compared half scored moves no choice
    mixed = [
        one if (one.spec or {})["seed"] % 2 else two
        for one, two in zip(runs, made(other), strict=True)
    ]
    first, second = (tune(cells(some), LR) for some in (runs, mixed))
    assert [choice.value for choice in first.choices] == [choice.value for choice in second.choices]
