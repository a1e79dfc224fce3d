"""Main effects and interactions: by hand, by least squares, and what a family makes of them."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from rlbench.report.cells.cell import cells
from rlbench.report.effects.contrasts import Contrast, Effect, Effects, TaskEffects, effects

from .made_up import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

Scores = dict[tuple[str, ...], list[float]]
KINDS = ("estimator", "loss", "kl")

# a, c: 0.8 0.9 0.7 (mean 0.8)   a, p: 0.5 0.4 0.6 (mean 0.5)
# b, c: 0.6 0.6 0.3 (mean 0.5)   b, p: 0.1 0.3 0.2 (mean 0.2)
TWO_BY_TWO: Scores = {
    ("a", "c"): [0.8, 0.9, 0.7],
    ("a", "p"): [0.5, 0.4, 0.6],
    ("b", "c"): [0.6, 0.6, 0.3],
    ("b", "p"): [0.1, 0.3, 0.2],
}
# means: x, c 0.8   x, p 0.4   y, c 0.6   y, p 0.4   z, c 0.2   z, p 0.2
THREE_BY_TWO: Scores = {
    ("x", "c"): [0.9, 0.7],
    ("x", "p"): [0.5, 0.3],
    ("y", "c"): [0.6, 0.6],
    ("y", "p"): [0.5, 0.3],
    ("z", "c"): [0.2, 0.2],
    ("z", "p"): [0.1, 0.3],
}


def of(
    scores: Mapping[tuple[str, ...], Sequence[float | None]],
    *,
    wanted: Sequence[str] = (),
    lower: bool = False,
    level: float = 0.95,
    margin: float | None = None,
    **more: Any,
) -> TaskEffects:
    """Effects of cells of one task, named by estimator, loss and KL controller."""
    (one,) = whole(scores, wanted=wanted, lower=lower, level=level, margin=margin, **more).tasks
    return one


def whole(
    scores: Mapping[tuple[str, ...], Sequence[float | None]],
    *,
    wanted: Sequence[str] = (),
    lower: bool = False,
    **more: Any,
) -> Effects:
    made = [
        record(
            seed,
            score,
            spec={"direction": "lower"} if lower else None,
            result={"floor": 1.0} if lower else None,
            **dict(zip(KINDS, names, strict=False)),
        )
        for names, values in scores.items()
        for seed, score in enumerate(values)
    ]
    return effects(cells(made), wanted, **more)


def effect(found: TaskEffects, *factors: str) -> Effect:
    return next(one for one in found.effects if one.factors == factors)


def contrast(found: TaskEffects, *levels: tuple[str, str]) -> Contrast:
    return next(
        one for of_effect in found.effects for one in of_effect.contrasts if one.levels == levels
    )


def estimate(found: TaskEffects, *levels: tuple[str, str]) -> float:
    difference = contrast(found, *levels).judgement.difference
    assert difference
    return difference.interval.mid


def p_alone(found: TaskEffects, *levels: tuple[str, str]) -> float:
    difference = contrast(found, *levels).judgement.difference
    assert difference
    assert difference.p is not None
    return difference.p


def mean(found: TaskEffects, factor: str, level: str) -> float:
    (one,) = (one for one in found.means if (one.factors, one.levels) == ((factor,), (level,)))
    assert one.interval
    return one.interval.mid


def drawn(shape: Sequence[int], n: int, seed: int = 0) -> tuple[Scores, NDArray[np.float64]]:
    """Cells of random scores, and the same as an array: one axis a factor, then seeds."""
    rng = np.random.default_rng(seed)
    values = 0.5 + 0.1 * rng.normal(size=(*shape, n)) + 0.1 * rng.normal(size=n)
    places = product(*(range(size) for size in shape))
    names = {place: tuple(f"{'abc'[k]}{i}" for k, i in enumerate(place)) for place in places}
    return {name: values[place].tolist() for place, name in names.items()}, values


# by hand


def test_main_effects_and_the_interaction_of_two_by_two_are_those_by_hand() -> None:
    found = of(TWO_BY_TWO)
    # a - b at seeds 0, 1, 2: 0.65 - 0.35, 0.65 - 0.45, 0.65 - 0.25 = 0.3, 0.2, 0.4
    assert estimate(found, ("a", "b")) == pytest.approx(0.3)
    # t = 0.3 / (0.1 / sqrt(3)) = 5.196
    assert p_alone(found, ("a", "b")) == pytest.approx(2 * scipy_stats.t.sf(27**0.5, 2))
    # c - p: 0.7 - 0.3, 0.75 - 0.35, 0.5 - 0.4 = 0.4, 0.4, 0.1
    assert estimate(found, ("c", "p")) == pytest.approx(0.3)
    # (a - b) at c less at p: 0.2 - 0.4, 0.3 - 0.1, 0.4 - 0.4 = -0.2, 0.2, 0
    assert estimate(found, ("a", "b"), ("c", "p")) == pytest.approx(0)
    assert p_alone(found, ("a", "b"), ("c", "p")) == pytest.approx(1)
    assert [one.factors for one in found.effects] == [
        ("estimator",),
        ("loss",),
        ("estimator", "loss"),
    ]
    assert [one.partners for e in found.effects for one in e.contrasts] == [2, 2, 1]


def test_contrasts_of_three_by_two_are_those_by_hand() -> None:
    found = of(THREE_BY_TWO)
    # x = (0.8 + 0.4) / 2 = 0.6, y = 0.5, z = 0.2
    assert estimate(found, ("x", "y")) == pytest.approx(0.1)
    assert estimate(found, ("x", "z")) == pytest.approx(0.4)
    assert estimate(found, ("y", "z")) == pytest.approx(0.3)
    # c = 1.6 / 3, p = 1.0 / 3
    assert estimate(found, ("c", "p")) == pytest.approx(0.2)
    # (0.8 - 0.6) - (0.4 - 0.4), (0.8 - 0.2) - (0.4 - 0.2), (0.6 - 0.2) - (0.4 - 0.2)
    assert estimate(found, ("x", "y"), ("c", "p")) == pytest.approx(0.2)
    assert estimate(found, ("x", "z"), ("c", "p")) == pytest.approx(0.4)
    assert estimate(found, ("y", "z"), ("c", "p")) == pytest.approx(0.2)


def test_marginal_means_have_equal_weights() -> None:
    found = of(THREE_BY_TWO)
    assert [mean(found, "estimator", level) for level in "xyz"] == pytest.approx([0.6, 0.5, 0.2])
    assert mean(found, "loss", "c") == pytest.approx(1.6 / 3)
    assert mean(found, "loss", "p") == pytest.approx(1.0 / 3)
    assert [one.partners for one in found.means] == [2, 2, 2, 3, 3, *[1] * 6]
    # y at seeds 0 and 1: 0.55, 0.45; sd / sqrt(2) = 0.05, and t(0.975, 1) = 12.706
    y = found.means[1].interval
    assert y
    assert y.half_width == pytest.approx(0.05 * scipy_stats.t.ppf(0.975, 1))


def test_shares_of_the_variance_are_those_by_hand() -> None:
    found = of(THREE_BY_TWO)
    # total 1.40 - 6 (1.3 / 3)^2 = 0.82 / 3; estimator 2 (1/6^2 + 1/15^2 + 7/30^2) = 0.52 / 3;
    # loss 3 (0.1^2 + 0.1^2) = 0.18 / 3; what is left 0.12 / 3
    shares = [one.share for one in found.effects]
    assert shares == pytest.approx([52 / 82, 18 / 82, 12 / 82])


def test_shares_of_a_grid_of_three_leave_what_only_all_three_make() -> None:
    scores, values = drawn((2, 3, 2), 4)
    shares = [one.share or 0.0 for one in of(scores).effects]
    m = values.mean(axis=-1)
    # the interaction of all three, by sweeping out every mean
    rest = m.copy()
    for axis in range(3):
        rest = rest - rest.mean(axis=axis, keepdims=True)
    total = ((m - m.mean()) ** 2).sum()
    assert sum(shares) + (rest**2).sum() / total == pytest.approx(1)
    assert min(shares) > 0


# independent computations


def sums_to_zero(size: int) -> NDArray[np.float64]:
    """Effect coding: the last level is minus the sum of the others."""
    return np.vstack([np.eye(size - 1), -np.ones(size - 1)])


def test_estimates_are_those_of_least_squares_with_a_block_for_each_seed() -> None:
    shape, n = (3, 2, 4), 5
    scores, values = drawn(shape, n, seed=1)
    codes = [sums_to_zero(size) for size in shape]
    pairs = list(combinations(range(3), 2))
    rows, y = [], []
    for place in product(*(range(size) for size in shape)):
        single = [codes[k][i] for k, i in enumerate(place)]
        double = [np.outer(single[j], single[k]).ravel() for j, k in pairs]
        for seed in range(n):
            rows.append(np.concatenate([np.eye(n)[seed], *single, *double]))
            y.append(values[(*place, seed)])
    solved, *_ = np.linalg.lstsq(np.array(rows), np.array(y), rcond=None)
    sizes = [n, *(size - 1 for size in shape)]
    sizes += [(shape[j] - 1) * (shape[k] - 1) for j, k in pairs]
    _, *parts = np.split(solved, np.cumsum(sizes)[:-1])
    main = [codes[k] @ parts[k] for k in range(3)]
    double = [
        codes[j] @ part.reshape(shape[j] - 1, shape[k] - 1) @ codes[k].T
        for (j, k), part in zip(pairs, parts[3:], strict=True)
    ]
    names = {kind: at for at, kind in enumerate(("estimator", "loss", "kl"))}
    found = of(scores)
    seen = 0
    for factors, one in ((e.factors, one) for e in found.effects for one in e.contrasts):
        at = [names[factor] for factor in factors]
        levels = [(int(a[1:]), int(b[1:])) for a, b in one.levels]
        if len(at) == 1:
            ((a, b),) = levels
            expected = main[at[0]][a] - main[at[0]][b]
        else:
            of_two = double[pairs.index((at[0], at[1]))]
            (a, b), (c, d) = levels
            expected = of_two[a, c] - of_two[b, c] - of_two[a, d] + of_two[b, d]
        assert estimate(found, *one.levels) == pytest.approx(expected, abs=1e-12)
        seen += 1
    # 3 + 1 + 6 pairs of levels, and 3 * 1 + 3 * 6 + 1 * 6 differences of differences
    assert seen == 37


def test_two_levels_are_tested_like_the_difference_of_their_means_at_each_seed() -> None:
    scores, values = drawn((2, 3), 6, seed=2)
    found = of(scores)
    by_seed = values.mean(axis=1)  # of each estimator at each seed
    (one,) = effect(found, "estimator").contrasts
    a, b = (int(level[1:]) for level in one.levels[0])
    expected = scipy_stats.ttest_1samp(by_seed[a] - by_seed[b], 0)
    difference = one.judgement.difference
    assert difference
    assert difference.p == pytest.approx(expected.pvalue)
    assert difference.interval.low == pytest.approx(expected.confidence_interval().low)
    assert difference.interval.high == pytest.approx(expected.confidence_interval().high)


# the family


def by_seed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The three contrasts of two by two at each seed; signs do not matter."""
    (ac, ap), (bc, bp) = values
    return np.array([(ac + ap - bc - bp) / 2, (ac + bc - ap - bp) / 2, ac - bc - ap + bp])


def test_below_7_seeds_all_contrasts_are_one_family_by_holm() -> None:
    scores, values = drawn((2, 2), 6, seed=3)
    every = whole(scores)
    (found,) = every.tasks
    assert (every.family.size, every.family.joint) == (3, False)
    p = np.array([scipy_stats.ttest_1samp(c, 0).pvalue for c in by_seed(values)])
    order = np.argsort(p)
    holm = np.empty(3)
    holm[order] = np.minimum(np.maximum.accumulate(p[order] * [3, 2, 1]), 1)
    assert [e.contrasts[0].judgement.p for e in found.effects] == pytest.approx(list(holm))


def test_from_7_seeds_all_contrasts_flip_their_signs_together() -> None:
    scores, values = drawn((2, 2), 7, seed=4)
    every = whole(scores)
    (found,) = every.tasks
    assert (every.family.size, every.family.joint) == (3, True)
    c = by_seed(values)
    signs = np.array(list(product((1, -1), repeat=7)))  # 128
    t = np.abs(signs @ c.T) / np.sqrt((c**2).sum(axis=1))
    observed = np.abs(c.sum(axis=1)) / np.sqrt((c**2).sum(axis=1))
    order = np.argsort(-observed)  # step down: the largest against the largest of all that remain
    p = [(t[:, order[k:]].max(axis=1) >= observed[order[k]] - 1e-12).mean() for k in range(3)]
    expected = np.empty(3)
    expected[order] = np.maximum.accumulate(p)
    assert [e.contrasts[0].judgement.p for e in found.effects] == pytest.approx(list(expected))


def test_the_p_of_an_effect_alone_is_adjusted_over_its_own_contrasts_only() -> None:
    scores, values = drawn((3, 2), 5, seed=5)
    found = of(scores)
    means = values.mean(axis=1)
    p = [
        scipy_stats.ttest_1samp(means[i] - means[j], 0).pvalue for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    assert effect(found, "estimator").p == pytest.approx(min(1, 3 * min(p)))  # not 7 * min
    assert effect(found, "loss").p == pytest.approx(p_alone(found, *loss_levels(found)))


def loss_levels(found: TaskEffects) -> tuple[tuple[str, str], ...]:
    return effect(found, "loss").contrasts[0].levels


NOISE = (0.004, -0.010, 0.007, 0.001, -0.006, 0.012, -0.003, 0.009)
PLANTED: Scores = {  # only b with p is worse, by 0.4
    (e, k): [
        0.7 - 0.4 * (e == "b" and k == "p") + 0.02 * s + NOISE[(s + turn) % 8] for s in range(5)
    ]
    for turn, (e, k) in enumerate(product("ab", "cp"))
}


def test_a_planted_interaction_is_found() -> None:
    found = of(PLANTED)
    # (a - b) is 0 at c and 0.4 at p, and c - p likewise: each main effect is half of it
    assert estimate(found, ("a", "b"), ("c", "p")) == pytest.approx(-0.4, abs=0.02)
    assert estimate(found, ("a", "b")) == pytest.approx(0.2, abs=0.02)
    assert contrast(found, ("a", "b"), ("c", "p")).judgement.verdict == "-"
    assert contrast(found, ("a", "b")).judgement.verdict == "+"
    # of equal size: main effects 4 * 0.1^2 each, the interaction 4 * 0.1^2
    assert [one.share for one in found.effects] == pytest.approx([1 / 3] * 3, abs=0.03)


def test_effects_that_only_add_up_leave_rounding_and_no_interaction() -> None:
    added = {
        (e, k): [0.1 * ("ab".index(e) + 1) + 0.7 * "cp".index(k) + 0.013 * s**2 for s in range(5)]
        for e, k in product("ab", "cp")
    }
    found = of(added)
    for one in (one for of_effect in found.effects for one in of_effect.contrasts):
        assert (one.judgement.verdict, one.judgement.p) == ("n/a", None)
        assert one.judgement.reason == "all differences are equal"
    assert estimate(found, ("b", "a"), ("p", "c")) == pytest.approx(0, abs=1e-12)


def test_a_margin_calls_small_effects_equal_and_says_how_many_seeds_are_needed() -> None:
    found = of(PLANTED, margin=0.1)
    wide = of(TWO_BY_TWO, margin=0.1)
    alike: Scores = {place: [0.5 + x for x in NOISE] for place in TWO_BY_TWO}
    alike["b", "p"] = [0.5 - x for x in NOISE]
    flat = of(alike, margin=0.1)
    assert {one.judgement.verdict for e in flat.effects for one in e.contrasts} == {"="}
    assert contrast(found, ("a", "b")).judgement.verdict == "+"
    undecided = contrast(wide, ("a", "b"), ("c", "p")).judgement
    assert undecided.verdict == "?"
    assert undecided.more
    assert contrast(of(TWO_BY_TWO), ("a", "b"), ("c", "p")).judgement.more is None


def test_where_less_is_better_the_best_comes_first_and_its_difference_is_negative() -> None:
    found = of({place: [1 - x for x in values] for place, values in PLANTED.items()}, lower=True)
    assert estimate(found, ("a", "b")) == pytest.approx(-0.2, abs=0.02)
    assert contrast(found, ("a", "b")).judgement.verdict == "+"
    assert contrast(found, ("a", "b"), ("c", "p")).judgement.verdict == "-"


# failures


def test_a_failure_does_not_hide_a_main_effect() -> None:
    # the means of c less those of p: 0.1, 0.11, 0.12, 0.13, and 0.32 where one of p's cells failed
    scores: dict[tuple[str, ...], list[float | None]] = {
        ("a", "c"): [0.60, 0.61, 0.62, 0.63, 0.64],
        ("a", "p"): [0.50, 0.50, 0.50, 0.50, None],
        ("b", "c"): [0.60, 0.61, 0.62, 0.63, 0.64],
        ("b", "p"): [0.50, 0.50, 0.50, 0.50, 0.50],
    }
    whole_seed = [0.10, 0.11, 0.12, 0.13, 0.39]
    found = contrast(of(scores, wanted=["loss"]), ("c", "p")).judgement
    assert found.difference
    assert found.difference.interval.mid == pytest.approx(np.mean(whole_seed))
    assert found.difference.p == pytest.approx(scipy_stats.ttest_1samp(whole_seed, 0).pvalue)
    assert found.difference.p > 0.03
    assert found.p == pytest.approx(scipy_stats.ttest_1samp(whole_seed[:4], 0).pvalue)
    assert found.p < 0.001
    assert found.more is None  # a floor is no spread to plan by


@pytest.mark.parametrize("failed", ["c", "p"])
def test_a_level_wins_nothing_by_a_failure(failed: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        scores: dict[tuple[str, ...], list[float | None]] = {
            name: rng.uniform(0.4, 0.6, 8).tolist() for name in product("ab", "cp")
        }
        before = _winner(of(scores, wanted=["loss"]))
        scores["a", failed][3] = None
        after = _winner(of(scores, wanted=["loss"]))
        assert after in (before, "", "p" if failed == "c" else "c")


def _winner(found: TaskEffects) -> str:
    (one,) = effect(found, "loss").contrasts
    return {"+": one.levels[0][0], "-": one.levels[0][1]}.get(one.judgement.verdict, "")


def test_a_verdict_never_has_another_sign_than_its_difference() -> None:
    rng = np.random.default_rng(11)
    claimed = 0
    for _ in range(150):
        scores: dict[tuple[str, ...], list[float | None]] = {
            (e, k): [
                None if rng.random() < 0.2 else float(0.5 + 0.05 * (k == "c") + 0.03 * x)
                for x in rng.normal(size=9)
            ]
            for e, k in product("ab", "cp")
        }
        for of_effect in of(scores).effects:
            for one in of_effect.contrasts:
                judged = one.judgement
                if judged.verdict in ("+", "-"):
                    assert judged.difference
                    assert (judged.difference.interval.mid > 0) == (judged.verdict == "+")
                    claimed += 1
    assert claimed >= 10


def test_where_what_is_left_and_the_whole_disagree_nothing_is_claimed() -> None:
    # clean seeds: x - y is larger at p by 0.03; at seed 0 three of four cells crash
    wave = [0.0, 0.01, -0.01, 0.005, -0.005, 0.002, -0.003, 0.004, 0.006, -0.002, 0.001, 0.003]
    scores: dict[tuple[str, ...], list[float | None]] = {
        ("x", "p"): [None, *[0.60 + w for w in wave[1:]]],
        ("x", "q"): [0.57, *[0.57 - w for w in wave[1:]]],
        ("y", "p"): [None, *[0.50] * 11],
        ("y", "q"): [None, *[0.50] * 11],
    }
    found = effect(of(scores), "estimator", "loss").contrasts[0].judgement
    assert found.difference
    assert found.verdict == "?"
