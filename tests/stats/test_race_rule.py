"""The rule of a race: a pure function of the plan and of the scores at its looks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlbench import stats
from rlbench.errors import UsageError
from rlbench.grid.race import Pair, RacePlan, decide, usual_looks, wanted

A, B, C = "a", "b", "c"


def plan(n: int = 10, looks: int | None = 2, others: str = A, **more: object) -> RacePlan:
    pairs = tuple(Pair(cell=other, other=B) for other in others)
    return RacePlan(pairs=pairs, seeds=tuple(range(n)), looks=looks, **more)  # type: ignore[arg-type]  # what tests give


def cell(values: list[float | None], first: int = 0) -> dict[int, float | None]:
    return dict(enumerate(values, first))


def steady(n: int) -> dict[int, float | None]:
    return cell([0.0] * n)


# mean 1, sd 0.1581, standard error 0.0707: t = 14.1 at 4 degrees of freedom, p = 0.00015
CLEAR: list[float | None] = [0.8, 0.9, 1.0, 1.1, 1.2]
# mean 1, sd 0.7906, standard error 0.3536: t = 2.83, p = 0.047
WEAK: list[float | None] = [0.0, 0.5, 1.0, 1.5, 2.0]


def test_a_clear_difference_is_decided_at_the_first_look() -> None:
    (standing,) = decide(plan(), {A: cell(CLEAR), B: steady(5)})
    assert (standing.verdict, standing.n) == ("better", 5)
    assert standing.interval is not None
    assert standing.interval.mid == pytest.approx(1.0)


def test_a_look_tests_at_its_own_level_and_not_at_alpha() -> None:
    # two looks at 0.05 test at 0.0279 each: 0.047 is not enough, though it is below 0.05
    made = plan()
    assert made.nominal == pytest.approx(0.0279, abs=5e-4)
    (standing,) = decide(made, {A: cell(WEAK), B: steady(5)})
    assert standing.evidence == pytest.approx(0.0474, abs=1e-4)
    assert (standing.verdict, standing.n) == ("undecided", 5)


def test_more_comparisons_make_each_stricter() -> None:
    # after Bonferroni over two, two looks at 0.025 test at 0.0136
    assert plan(others="ac").nominal == pytest.approx(stats.repeated_t_level(2, 5, 0.025))
    alone = [0.3, 0.6, 1.0, 1.4, 1.7]  # mean 1, sd 0.570, se 0.255: t = 3.92, p = 0.0172
    scores = {A: cell(list(alone)), B: steady(5), C: cell([0.0, 0.1, 0.0, 0.1, 0.0])}
    assert decide(plan(), scores)[0].verdict == "better"
    assert decide(plan(others="ac"), scores)[0].verdict == "undecided"


def test_worse_is_the_other_way_and_a_sign_turns_both_round() -> None:
    lower = RacePlan(pairs=(Pair(cell=A, other=B, sign=-1),), seeds=tuple(range(10)), looks=2)
    down = {A: steady(5), B: cell(CLEAR)}
    up = {A: cell(CLEAR), B: steady(5)}
    assert [decide(p, s)[0].verdict for p in (plan(), lower) for s in (up, down)] == [
        "better",
        "worse",
        "worse",
        "better",
    ]


def test_seeds_beyond_a_look_are_not_looked_at() -> None:
    # the second five would turn it round; they are there, and the first look had decided
    against = cell([*CLEAR, *[-9.0, -8.0, -9.0, -8.0, -9.0]])
    (standing,) = decide(plan(), {A: against, B: steady(10)})
    assert (standing.verdict, standing.n) == ("better", 5)
    # three more than the first look, not yet the second: nothing of them counts
    some = decide(plan(), {A: cell([*WEAK, 9.0, 9.0, 9.0]), B: steady(8)})
    assert some == decide(plan(), {A: cell(WEAK), B: steady(5)})


def test_seeds_count_in_the_order_of_the_pool() -> None:
    pool = (7, 3, 9, 1, 5, 0, 2, 4, 6, 8)
    made = RacePlan(pairs=(Pair(cell=A, other=B),), seeds=pool, looks=2)
    ours: dict[int, float | None] = dict(zip(pool, [*CLEAR, *[-9.0] * 5], strict=True))
    (standing,) = decide(made, {A: dict(sorted(ours.items())), B: steady(10)})
    assert (standing.verdict, standing.n) == ("better", 5)


def test_a_look_waits_for_all_its_seeds_on_both_sides() -> None:
    ours = cell(CLEAR)
    del ours[2]
    (standing,) = decide(plan(), {A: ours, B: steady(5)})
    assert (standing.verdict, standing.n, standing.interval) == ("undecided", 0, None)
    assert decide(plan(), {A: cell(CLEAR)})[0].n == 0


def test_equivalent_where_the_interval_lies_inside_the_margin() -> None:
    # sd 0.00158, t(0.985, 4) = 3.30: half of the interval is 0.0023
    ours: list[float | None] = [-0.002, -0.001, 0.0, 0.001, 0.002]
    scores = {A: cell(ours), B: steady(5)}
    assert decide(plan(margin=0.01), scores)[0].verdict == "equivalent"
    assert decide(plan(margin=0.002), scores)[0].verdict == "undecided"
    assert decide(plan(), scores)[0].verdict == "undecided"


def test_a_small_difference_that_is_one_is_better_and_not_equivalent() -> None:
    ours: list[float | None] = [0.0048, 0.0049, 0.005, 0.0051, 0.0052]
    assert decide(plan(margin=0.1), {A: cell(ours), B: steady(5)})[0].verdict == "better"


@pytest.mark.parametrize("looks", [2, None])
@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_no_spread_decides_nothing(looks: int | None, gap: float) -> None:
    made = plan(looks=looks, margin=0.1)
    # 0.1 + 0.2 - 0.3 is 5.6e-17, which is rounding and no spread
    ours: list[float | None] = [0.1 + 0.2 + gap, 0.3 + gap] * 5
    (standing,) = decide(made, {A: cell(ours), B: cell([0.3] * 10)})
    assert (standing.verdict, standing.n) == ("undecided", 10)
    assert standing.reason == "all differences are equal"


@pytest.mark.parametrize("looks", [2, None])
def test_a_failure_without_a_floor_decides_nothing(looks: int | None) -> None:
    (standing,) = decide(plan(looks=looks), {A: cell([*CLEAR[:4], None]), B: steady(5)})
    assert (standing.verdict, standing.n) == ("undecided", 5 if looks else standing.n)
    assert "floor" in standing.reason or standing.n < 5


def test_after_every_seed_the_e_value_decides() -> None:
    rng = np.random.default_rng(0)
    d = rng.normal(1.0, 1.0, size=40)
    made = plan(40, None, others="ac")
    first = next(n for n in made.stops if stats.e_process(d[:n]) >= 2 / 0.05)
    scores = {A: cell(list(d)), B: steady(40), C: steady(40)}
    standing = decide(made, scores)[0]
    assert (standing.verdict, standing.n) == ("better", first)
    assert standing.evidence == stats.e_process(d[:first])
    # what comes later changes nothing, and one seed less decides nothing
    assert decide(made, scores | {A: cell(list(d[:first]))})[0] == standing
    assert not decide(made, scores | {A: cell(list(d[: first - 1]))})[0].decided


def test_no_data_whatever_decide_before_the_first_look_after_every_seed() -> None:
    for others in ("a", "abcdefgh"):
        made = plan(40, None, others=others.replace(B, ""))
        limit = len(made.pairs) / made.alpha
        before, after = made.stops[0] - 1, made.stops[0]
        # equal signs and all but no spread: the most that n seeds can say
        extreme = [1.0, *[1.0 + 1e-9] * (after - 1)]
        assert stats.e_process(extreme[:before]) < limit <= stats.e_process(extreme)


def test_only_cells_with_something_open_want_seeds() -> None:
    made = plan(others="ac")
    nothing = decide(made, {})
    assert wanted(made, nothing) == {A: 5, B: 5, C: 5}
    scores = {A: cell(CLEAR), B: steady(5), C: cell([0.0, 0.1, -0.1, 0.1, 0.0])}
    assert wanted(made, decide(made, scores)) == {C: 10, B: 10}
    scores[C] = cell([value and -value for value in CLEAR])
    assert wanted(made, decide(made, scores)) == {}


def test_a_used_up_pool_wants_nothing() -> None:
    ours = cell([-0.1, 0.1] * 5)
    for looks in (2, None):
        standings = decide(plan(looks=looks), {A: ours, B: steady(10)})
        assert [standings[0].verdict, standings[0].n] == ["undecided", 10]
        assert wanted(plan(looks=looks), standings) == {}


def test_after_every_seed_steps_keep_workers_busy_and_start_where_they_started() -> None:
    made = plan(20, None)
    first = made.stops[0]
    assert [made.after(n) for n in (0, first - 1, first, first + 3)] == [
        first,
        first,
        first + 1,
        first + 4,
    ]
    # steps of four from the first on, whatever an interrupted command left
    assert [made.after(n, 4) for n in range(first, first + 4)] == [first + 4] * 4
    assert made.after(first + 4, 4) == first + 8
    assert made.after(19, 4) == 20
    assert [plan(15, 3).after(n) for n in (0, 5, 10, 15)] == [5, 10, 15, 15]


@pytest.mark.parametrize(
    ("seeds", "looks"), [(25, 5), (50, 5), (20, 4), (10, 2), (15, 3), (12, 2), (9, 3), (6, 2)]
)
def test_looks_are_equal_blocks_of_five_seeds_where_that_is_possible(
    seeds: int, looks: int
) -> None:
    assert usual_looks(seeds) == looks
    assert list(plan(seeds, looks).stops) == [seeds // looks * k for k in range(1, looks + 1)]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"n": 26, "looks": 5}, "25 or 30 seeds do for 5"),
        ({"n": 5, "looks": 5}, "15 or 20 seeds do for 5"),
        ({"n": 4, "looks": 2}, "6 or 8 seeds do for 2"),
        ({"n": 5, "looks": 1}, "2 looks or more"),
        ({"n": 3, "looks": None}, "nothing can be decided before 5"),
        ({"others": ""}, "at least one comparison"),
        ({"alpha": 0.0}, "alpha"),
        ({"margin": -1.0}, "margin"),
        ({"margin": math.inf}, "margin"),
    ],
)
def test_what_can_t_be_a_plan_is_refused(more: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan(**more)  # type: ignore[arg-type]  # what tests give


def test_a_seed_twice_in_the_pool_is_refused() -> None:
    with pytest.raises(UsageError, match="twice"):
        RacePlan(pairs=(Pair(cell=A, other=B),), seeds=(0, 1, 2, 3, 4, 0), looks=2)


@pytest.mark.parametrize(("looks", "family"), [(3, 5), (None, 2)], ids=["looks", "every seed"])
def test_false_claims_of_a_whole_race_stay_below_alpha(looks: int | None, family: int) -> None:
    """Two laws and longer races are in benchmarks/race.py."""
    rng = np.random.default_rng(family)
    made = plan(15, looks, others="acdef"[:family])
    races, wrong = 250, 0
    for _ in range(races):
        luck = rng.normal(size=(15, 1)) * math.sqrt(0.7)
        y = luck + rng.normal(size=(15, len(made.cells))) * math.sqrt(0.3)
        scores = {key: cell(list(column)) for key, column in zip(made.cells, y.T, strict=True)}
        wrong += any(standing.decided for standing in decide(made, scores))
    # two standard errors of 250 races at 0.05 are 0.028
    assert wrong / races <= 0.05 + 0.028


# failures


@pytest.mark.parametrize("looks", [2, None])
def test_failures_of_the_baseline_do_not_hide_that_a_cell_is_better(looks: int | None) -> None:
    made = plan(looks=looks)
    scores = {A: cell([0.8, 0.9, 1.0, 1.1, 1.2] * 2), B: cell([-90.0, *[0.0] * 4] * 2)}
    without = decide(made, scores)[0]
    known = decide(made, scores, {B: {0, 5}})[0]
    assert (without.verdict, known.verdict) == ("undecided", "better")
    # what is shown is the mean of all, failures at the floor
    assert known.interval is not None
    whole = np.array([90.8, 0.9, 1.0, 1.1, 1.2] * 2)[: known.n]
    assert known.interval.mid == pytest.approx(whole.mean())
    if looks:  # the other four differences of the first look
        left = stats.paired_difference([0.9, 1.0, 1.1, 1.2], [0.0] * 4)
        assert (known.n, known.evidence) == (5, pytest.approx(left.p))


@pytest.mark.parametrize("sign", [1, -1])
def test_own_failures_neither_help_nor_hide_that_a_cell_is_worse(sign: int) -> None:
    made = RacePlan(pairs=(Pair(cell=A, other=B, sign=sign),), seeds=tuple(range(10)), looks=2)
    ahead = cell([sign * value for value in [0.8, 0.9, 1.0, 1.1, -9.0] * 2])
    level, failed = steady(10), {4, 9}
    assert decide(made, {A: ahead, B: level}, {A: failed})[0].verdict == "undecided"
    behind = cell([sign * value for value in [-0.8, -0.9, -1.0, -1.1, -9.0] * 2])
    assert decide(made, {A: behind, B: level})[0].n == 10
    assert decide(made, {A: behind, B: level}, {A: failed})[0].verdict == "worse"
