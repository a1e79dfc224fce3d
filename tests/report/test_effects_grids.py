"""Grids as they come: holes, seeds that not all have, failures, tasks, and best partners."""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlbench.errors import NothingSelected, UsageError
from rlbench.report.cells.cell import cells
from rlbench.report.cells.metric import metric
from rlbench.report.effects.contrasts import Contrast, Effects, TaskEffects, effects
from rlbench.report.effects.design import grids
from rlbench.report.effects.table import effects_table

from .made_up import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.grid.store import Record

Scores = dict[tuple[str, str], list[float | None]]

LUCK = (0.03, -0.02, 0.01, -0.04, 0.02, 0.05, -0.01, 0.04)


def scores(means: Mapping[tuple[str, str], float], n: int = 4) -> Scores:
    """Scores with the luck of their seed and a little of their own."""
    return {
        place: [round(mean + LUCK[s] + 0.002 * ((3 * s + turn) % 5), 6) for s in range(n)]
        for turn, (place, mean) in enumerate(means.items())
    }


def runs(made: Mapping[tuple[str, str], Sequence[float | None]], **more: str) -> list[Record]:
    """Runs of estimators with losses; the scores at seeds 0, 1, 2, ..."""
    return [
        record(seed, score, estimator=estimator, loss=loss, **more)
        for (estimator, loss), values in made.items()
        for seed, score in enumerate(values)
    ]


def whole(made: Sequence[Record], wanted: Sequence[str] = (), **more: Any) -> Effects:
    name = more.pop("name", "score")
    return effects(cells(made, metric(name)), wanted, **more)


def of(made: Sequence[Record], wanted: Sequence[str] = (), **more: Any) -> TaskEffects:
    (one,) = whole(made, wanted, **more).tasks
    return one


def text_of(made: Sequence[Record], wanted: Sequence[str] = (), **more: Any) -> str:
    """The text of a terminal, with single spaces."""
    return " ".join(effects_table(whole(made, wanted, **more)).split())


def contrasts(found: TaskEffects) -> dict[tuple[tuple[str, str], ...], Contrast]:
    return {one.levels: one for effect in found.effects for one in effect.contrasts}


def estimate(found: TaskEffects, *levels: tuple[str, str]) -> float:
    difference = contrasts(found)[levels].judgement.difference
    assert difference
    return difference.interval.mid


FULL = scores({(e, k): 0.5 + 0.1 * "abc".index(e) for e, k in product("abc", "pq")})


# holes


def test_a_hole_leaves_only_partners_that_both_levels_have() -> None:
    made = scores({("a", "p"): 0.9, ("a", "q"): 0.5, ("b", "p"): 0.6, ("b", "q"): 0.4})
    made |= scores({("c", "p"): 0.3})
    found = of(runs(made))
    by_levels = contrasts(found)
    # a - b over p and q, a - c at p only: 0.9 - 0.3 and not (0.9 + 0.5) / 2 - 0.3
    assert by_levels[(("a", "b"),)].partners == 2
    assert estimate(found, ("a", "b")) == pytest.approx(0.2, abs=0.01)
    assert by_levels[(("a", "c"),)].partners == 1
    assert estimate(found, ("a", "c")) == pytest.approx(0.6, abs=0.01)
    # p - q over a and b: 0.75 - 0.45, without c, which would pull p down
    assert by_levels[(("p", "q"),)].partners == 2
    assert estimate(found, ("p", "q")) == pytest.approx(0.3, abs=0.01)
    # a mean is over p, the only partner of all three
    means = {one.levels: one for one in found.means}
    assert (means["a",].partners, means["p",].partners) == (1, 2)
    a = means["a",].interval
    assert a
    assert a.mid == pytest.approx(0.91, abs=0.02)


def test_a_hole_is_named_and_what_it_forbids_is_counted() -> None:
    full = of(runs(FULL))
    assert all(effect.share is not None and not effect.missing for effect in full.effects)
    holey = {place: values for place, values in FULL.items() if place != ("c", "q")}
    found = of(runs(holey))
    assert found.grid.holes == [("c", "q")]
    assert [effect.share for effect in found.effects] == [None] * 3
    # c has one partner only, so that there is nothing to choose for it
    assert [partners.factor for partners in found.partners] == ["loss"]
    # of (a-b), (a-c), (b-c) by (p-q) two need c with q
    assert [(effect.missing, len(effect.contrasts)) for effect in found.effects] == [
        (0, 3),
        (0, 1),
        (2, 1),
    ]
    text = text_of(runs(holey))
    assert "No cell at c+q: each mean and contrast" in text
    assert "estimator x loss: 2 of 3 contrasts can't be told." in text


def test_a_grid_of_which_nothing_can_be_compared_says_so() -> None:
    # a has p and q, b has r and s: no partner in common, and no pair of losses shares two
    made = runs(scores({("a", "p"): 0.9, ("a", "q"): 0.8, ("b", "r"): 0.5, ("b", "s"): 0.5}))
    found = of(made)
    assert found.effects[0].contrasts == ()
    # 1 pair of estimators; of 6 pairs of losses p - q and r - s can be told; no interaction can
    assert [effect.missing for effect in found.effects] == [1, 4, 6]
    assert [one.interval for one in found.means[:2]] == [None] * 2
    assert "estimator: holes in the grid leave nothing to compare." in text_of(made)


# seeds


def test_only_seeds_that_all_cells_have_count() -> None:
    made = scores(dict.fromkeys(product("ab", "pq"), 0.5), 4)
    made["a", "p"] = [*made["a", "p"][:3], 99.0, 99.0]
    made["b", "q"] = made["b", "q"][:3]
    found = of(runs(made))
    assert found.grid.seeds == (0, 1, 2)
    assert list(found.grid.lacking) == [3, 4]
    assert all(abs(one.interval.mid - 0.51) < 0.02 for one in found.means if one.interval)
    text = text_of(runs(made))
    assert "Seed 3 counts nowhere: not tried by b, q." in text
    assert "Seed 4 counts nowhere: not tried by a, q; b, p; b, q." in text


def test_seeds_are_paired_by_their_numbers_and_not_by_position() -> None:
    made = [record(s, 0.5 + 0.1 * s, loss="p") for s in (0, 1, 2, 3)]
    made += [record(s, 0.4 + 0.1 * s, loss="q") for s in (1, 2, 3, 4)]
    found = of(made)
    assert found.grid.seeds == (1, 2, 3)
    assert estimate(found, ("p", "q")) == pytest.approx(0.1)


def test_no_common_seed_is_refused() -> None:
    made = [record(0, 0.5, loss="p"), record(1, 0.5, loss="q")]
    with pytest.raises(NothingSelected, match="no seed ran in all 2 cells: p has 0"):
        of(made)


def test_one_seed_has_estimates_and_no_test() -> None:
    made = runs(scores({(e, k): 0.2 * "abc".index(e) for e, k in product("abc", "pq")}, 1))
    found = of(made)
    assert estimate(found, ("c", "a")) == pytest.approx(0.4, abs=0.01)
    judged = contrasts(found)[(("c", "a"),)].judgement
    assert (judged.verdict, judged.p, judged.reason) == ("n/a", None, "one common seed")
    assert "one common seed" in text_of(made)
    assert found.partners == ()


def test_equal_scores_have_no_effect_and_no_test() -> None:
    made = runs({place: [0.5] * 4 for place in FULL})
    found = of(made)
    assert {one.judgement.verdict for one in contrasts(found).values()} == {"n/a"}
    assert {effect.share for effect in found.effects} == {None}
    assert "all differences are equal" in text_of(made)


# failures


@given(
    kept=st.lists(st.floats(0, 1), min_size=16, max_size=16),
    at=st.integers(0, 3),
)
@settings(max_examples=30, deadline=None)
def test_a_failure_at_the_floor_never_improves_its_level(kept: list[float], at: int) -> None:
    places = list(product("ab", "pq"))
    before: Scores = {place: list(kept[4 * n : 4 * n + 4]) for n, place in enumerate(places)}
    after: Scores = before | {("a", "p"): [*before["a", "p"]]}
    after["a", "p"][at] = None

    def of_a(made: Scores) -> tuple[float, float]:
        found = of(runs(made))
        found_means = {one.levels: one.interval for one in found.means}
        a = found_means["a",]
        assert a
        return a.mid, next(
            estimate(found, levels) * (1 if levels == ("a", "b") else -1)
            for (levels, *_) in contrasts(found)
            if set(levels) == {"a", "b"}
        )

    assert of_a(after)[0] <= of_a(before)[0] + 1e-12
    assert of_a(after)[1] <= of_a(before)[1] + 1e-12


def test_a_failed_seed_is_named() -> None:
    made = scores(dict.fromkeys(product("ab", "pq"), 0.5))
    made["b", "q"][2] = None
    assert of(runs(made)).grid.failed == {"b, q": (2,)}
    assert "b, q: failed seed 2 at the floor." in text_of(runs(made))


def test_a_failure_without_a_known_floor_never_drops_the_seed_for_all() -> None:
    made = scores({(e, k): 0.5 + 0.1 * (e == "b") for e, k in product("ab", "pq")})
    made["a", "q"][3] = None  # of KL nothing is known where a run failed
    found = of(runs(made), name="kl_nats")
    assert found.grid.seeds == (0, 1, 2, 3)
    assert found.grid.holes == [("a", "q")]
    assert found.grid.unknown == {"a, q": "seed 3 failed, and has no kl_nats"}
    text = text_of(runs(made), name="kl_nats")
    assert "a, q is left out: seed 3 failed, and has no kl_nats." in text


def test_a_failure_at_a_seed_that_others_have_not_tried_makes_no_hole() -> None:
    made = scores(dict.fromkeys(product("ab", "pq"), 0.5), 3)
    made["a", "q"] = [*made["a", "q"], None]
    found = of(runs(made), name="kl_nats")
    assert (found.grid.seeds, found.grid.holes) == ((0, 1, 2), [])


def test_a_cell_that_is_left_out_does_not_hide_a_failure_of_another() -> None:
    made = scores(dict.fromkeys(product("abc", "pq"), 0.5), 5)
    made["a", "q"] = [0.5, 0.6, None]  # without this cell seeds 3 and 4 are in all others
    made["b", "p"][4] = None
    found = of(runs(made), name="kl_nats")
    assert set(found.grid.unknown) == {"a, q", "b, p"}
    assert found.grid.seeds == (0, 1, 2, 3, 4)


def test_where_every_cell_has_a_failure_without_a_floor_nothing_is_left() -> None:
    made = runs({("a", "p"): [0.5, None], ("b", "p"): [0.5, None]})
    with pytest.raises(NothingSelected, match="no cell has a kl_nats at every seed"):
        of(made, name="kl_nats")


# factors


def test_one_factor_has_neither_interactions_nor_partners() -> None:
    found = of(runs(scores({("a", "p"): 0.5, ("b", "p"): 0.6, ("c", "p"): 0.7})))
    assert [effect.factors for effect in found.effects] == [("estimator",)]
    assert found.effects[0].share == pytest.approx(1)
    assert found.partners == ()
    assert estimate(found, ("c", "a")) == pytest.approx(0.2, abs=0.01)


def test_numbers_stand_in_order_of_their_size_and_names_in_natural_order() -> None:
    rates = (1e-3, 1e-4, 2e-3, 1e-5)
    made = [
        record(s, 0.5 + LUCK[s], settings={"lr": lr}, loss=loss)
        for lr in rates
        for loss in ("n:k=10", "n:k=2")
        for s in range(3)
    ]
    levels = {factor.name: factor.levels for factor in of(made).grid.factors}
    assert levels["lr"] == ("1e-05", "0.0001", "0.001", "0.002")
    assert levels["loss"] == ("n:k=2", "n:k=10")


@pytest.mark.parametrize("name", ["nan", "inf", "-inf"])
def test_names_that_python_takes_for_numbers_are_names(name: str) -> None:
    made = runs(scores(dict.fromkeys(product((name, "0.5", "-2", "x"), "pq"), 0.5)))
    expected = of(made).grid.factors
    assert expected[0].levels[:2] == ("-2", "0.5")
    for seed in range(5):
        random.Random(seed).shuffle(made)
        assert of(made).grid.factors == expected


def test_wanted_factors_come_in_their_order() -> None:
    found = of(runs(FULL), ["loss", "estimator"])
    assert [factor.name for factor in found.grid.factors] == ["loss", "estimator"]
    assert [effect.factors for effect in found.effects][-1] == ("loss", "estimator")


def test_a_factor_that_does_not_differ_is_refused_with_those_that_do() -> None:
    with pytest.raises(UsageError, match=r"unknown factor 'losss'; did you mean 'loss'"):
        of(runs(FULL), ["losss"])
    with pytest.raises(UsageError, match=r"unknown factor 'kl'.*estimator"):
        of(runs(FULL), ["kl"])


def test_a_factor_named_twice_counts_once() -> None:
    found = of(runs(FULL), ["estimator", "loss", "estimator"])
    assert [factor.name for factor in found.grid.factors] == ["estimator", "loss"]


def test_one_cell_has_no_factor() -> None:
    with pytest.raises(NothingSelected, match=r"one cell only, a\+p\+none"):
        of(runs({("a", "p"): [0.5, 0.6]}))


def test_no_cells_are_nothing_to_read() -> None:
    with pytest.raises(NothingSelected):
        grids([])


def test_tasks_are_grids_of_their_own_in_natural_order() -> None:
    first = scores({(e, "p"): 0.5 + 0.2 * (e == "a") for e in "ab"})
    second = scores({(e, "p"): 0.5 + 0.2 * (e == "b") for e in "ab"})
    made = [*runs(second, task="t10"), *runs(first, task="t9")]
    every = whole(made)
    found = every.tasks
    assert [one.grid.task for one in found] == ["t9", "t10"]
    assert estimate(found[0], ("a", "b")) == pytest.approx(0.2, abs=0.01)
    assert estimate(found[1], ("a", "b")) == pytest.approx(-0.2, abs=0.01)
    assert every.family.size == 2  # one family for the whole table
    text = text_of(made)
    assert text.index("task t9,") < text.index("task t10,")


def test_cells_that_are_measured_on_another_footing_are_refused() -> None:
    made = [
        record(s, 0.5, loss=k, settings={"eval_prompts": 8 * (1 + (k == "q"))})
        for k in "pq"
        for s in range(3)
    ]
    with pytest.raises(UsageError, match="eval_prompts"):
        of(made)


# any order


@given(
    values=st.lists(st.sampled_from([None, 0.1, 0.2, 0.25, 0.7]), min_size=40, max_size=40),
    shuffle=st.randoms(use_true_random=False),
    form=st.sampled_from(["simple", "github", "csv", "json"]),
)
@settings(max_examples=40, deadline=None)
def test_any_order_of_the_runs_gives_the_same_bytes(
    values: list[float | None], shuffle: random.Random, form: str
) -> None:
    places = list(product(("x1", "x01", "1e-3", "0.001"), "pq"))
    made = runs({place: values[5 * n : 5 * n + 5] for n, place in enumerate(places)})
    expected = effects_table(whole(made), form)
    shuffle.shuffle(made)
    assert effects_table(whole(made), form) == expected
