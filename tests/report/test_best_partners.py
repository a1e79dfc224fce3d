"""Best partners: chosen on one half of the seeds, measured on the other, both ways."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from rlbench.report.cells.cell import cells
from rlbench.report.effects.contrasts import TaskEffects, effects
from rlbench.report.effects.table import effects_table

from .made_up import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.grid.store import Record

    Scores = Mapping[tuple[str, str], Sequence[float]]

# with a, p is best on even seeds, q on odd ones; with b it is p everywhere
TURNING: Scores = {
    ("a", "p"): [0.9, 0.1] * 4,
    ("a", "q"): [0.2, 0.95] * 4,
    ("b", "p"): [0.5, 0.5] * 4,
    ("b", "q"): [0.4, 0.4] * 4,
}


def runs(scores: Scores, *, lower: bool = False) -> list[Record]:
    return [
        record(s, score, estimator=e, loss=k, spec={"direction": "lower"} if lower else None)
        for (e, k), values in scores.items()
        for s, score in enumerate(values)
    ]


def of(scores: Scores, *, lower: bool = False) -> TaskEffects:
    (one,) = effects(cells(runs(scores, lower=lower))).tasks
    return one


def test_no_seed_is_measured_with_the_partner_that_it_chose() -> None:
    partners = of(TURNING).partners[0]
    assert (partners.factor, partners.others) == ("estimator", ("loss",))
    assert partners.halves == ((0, 2, 4, 6), (1, 3, 5, 7))
    by_level = {one.level: one for one in partners.levels}
    # even seeds choose p for the odd ones (0.1), odd ones choose q for the even ones (0.2); the
    # best mean of all seeds, that of q, is 0.575, and the best of each seed 0.925
    assert by_level["a"].chosen == (("p",), ("q",))
    assert by_level["a"].interval.mid == pytest.approx(0.15)
    assert by_level["a"].interval.n == 8
    assert by_level["b"].chosen == (("p",), ("p",))
    assert by_level["b"].interval.mid == pytest.approx(0.5)


def test_differences_are_those_of_the_seeds_with_their_partners() -> None:
    partners = of(TURNING).partners[0]
    # at even seeds 0.2 - 0.5, at odd ones 0.1 - 0.5; a has the better marginal mean and is first
    (difference,) = partners.differences.values()
    assert list(partners.differences) == [("a", "b")]
    assert difference.interval.mid == pytest.approx(-0.35)
    assert difference.sd == pytest.approx(0.05 * (8 / 7) ** 0.5)


def test_three_seeds_choose_for_two_and_two_for_three() -> None:
    scores: Scores = {
        ("a", "p"): [0.9, 0.1, 0.9, 0.1, 0.9],
        ("a", "q"): [0.2, 0.8, 0.2, 0.8, 0.2],
        ("b", "p"): [0.5] * 5,
        ("b", "q"): [0.5] * 5,
    }
    partners = of(scores).partners[0]
    assert partners.halves == ((0, 2, 4), (1, 3))
    a = next(one for one in partners.levels if one.level == "a")
    assert a.interval.mid == pytest.approx((3 * 0.2 + 2 * 0.1) / 5)


def test_where_less_is_better_the_partner_with_least_is_best() -> None:
    means = {("a", "p"): 0.2, ("a", "q"): 0.6, ("b", "p"): 0.7, ("b", "q"): 0.1}
    scores = {place: [mean + 0.01 * s for s in range(6)] for place, mean in means.items()}
    chosen = {one.level: one.chosen for one in of(scores, lower=True).partners[0].levels}
    assert chosen == {"a": (("p",),) * 2, "b": (("q",),) * 2}
    chosen = {one.level: one.chosen for one in of(scores).partners[0].levels}
    assert chosen == {"a": (("q",),) * 2, "b": (("p",),) * 2}


def test_below_4_seeds_no_partner_is_chosen() -> None:
    for n, number in ((3, 0), (4, 2)):
        scores = {place: [0.5 + 0.1 * s for s in range(n)] for place in product("ab", "pq")}
        assert len(of(scores).partners) == number


def test_one_factor_has_no_partners() -> None:
    assert of({(e, "p"): [0.5 + 0.1 * s for s in range(4)] for e in "ab"}).partners == ()


def test_a_partner_that_some_level_lacks_is_not_chosen() -> None:
    scores = {(e, k): [0.5 + 0.01 * s for s in range(4)] for e, k in product("ab", "pq")}
    scores["a", "r"] = [0.9] * 4
    estimator, loss = of(scores).partners[0], of(scores).partners[1:]
    assert {place for one in estimator.levels for place in one.chosen} == {("p",)}
    assert loss == ()  # r has a alone: nothing to choose


def test_the_text_names_what_either_half_chose() -> None:
    text = effects_table(effects(cells(runs(TURNING))), width=80)
    row = next(line for line in text.splitlines() if line.startswith("a ") and " / " in line)
    assert row.split()[:5] == ["a", "p", "/", "q", "0.150"]
    assert "seeds 0,2,4,6 choose the first" in " ".join(text.split())
