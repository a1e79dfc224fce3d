"""What failures may do to a verdict: never improve it, never hide that a cell is worse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from rlbench.report.cells.baseline import find
from rlbench.report.cells.cell import cells
from rlbench.report.compare.comparison import Comparison, Row, compare, in_order
from rlbench.report.compare.family import BETTER, WORSE
from rlbench.report.tables.best import best_set
from rlbench.report.tables.table import arranged

from .made_up import records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.grid.store import Record
    from rlbench.plugin.registry import Registry

BASE = [0.581, 0.541, None, 0.56, 0.518]
ONE = [0.712, 0.668, 0.879, 0.661, 0.62]
RANK = {WORSE: 0, BETTER: 2}


def no_registry() -> Registry:
    raise AssertionError("all is there letter for letter")


def versus(made: list[Record]) -> Comparison:
    shown = in_order(cells(made))
    return compare(shown, find(shown, "base", no_registry))


def one(base: Sequence[float | None], ours: Sequence[float | None]) -> Row:
    comparison = versus(records({"base": base, "one": ours}))
    return next(row for row in comparison.rows if row.cell.columns["estimator"] == "one")


def test_where_the_baseline_failed_a_row_that_leads_is_tested_on_the_other_seeds() -> None:
    found = one(BASE, ONE)
    pairs = [ours - theirs for ours, theirs in zip(ONE, BASE, strict=True) if theirs is not None]
    assert found.p == pytest.approx(scipy_stats.ttest_1samp(pairs, 0).pvalue)
    assert found.verdict == BETTER
    # the difference that is shown has the failure in it, at the floor
    assert found.difference is not None
    assert found.difference.interval.mid == pytest.approx((sum(pairs) + 0.879) / 5)


def test_to_fail_where_the_baseline_does_wins_nothing() -> None:
    before, after = one(BASE, ONE), one(BASE, [*ONE[:2], None, *ONE[3:]])
    assert before.p == after.p


def test_a_row_that_is_worse_at_every_seed_stays_so_when_it_crashes() -> None:
    base = [0.80, 0.81, 0.82, 0.83, 0.84]
    ours = [0.77, 0.778, 0.786, 0.80, 0.808]
    assert one(base, ours).verdict == WORSE
    for crashed in range(1, 3):
        broken = [*ours[: 5 - crashed], *[None] * crashed]
        assert one(base, broken).verdict == WORSE, crashed


def test_a_row_that_leads_where_it_ended_well_is_tested_with_its_failures() -> None:
    # d = .1, .11, .12, .13 and -.5 at the floor: t = -.008 / (.2753 / sqrt(5)) = -.065
    found = one([0.5] * 5, [0.6, 0.61, 0.62, 0.63, None])
    assert found.verdict == "?"
    assert found.p == pytest.approx(0.951, abs=0.001)


def test_where_all_failed_the_failures_are_the_claim() -> None:
    found = one([0.5, 0.51, 0.52, 0.53, 0.54], [None] * 5)
    assert found.verdict == WORSE
    assert found.p == pytest.approx(
        scipy_stats.ttest_1samp([-0.5, -0.51, -0.52, -0.53, -0.54], 0).pvalue
    )


def test_a_baseline_that_fails_at_most_seeds_is_beaten() -> None:
    base = [*[None] * 8, 0.79, 0.80]
    found = one(base, [0.8 + 0.01 * n for n in range(10)])
    assert found.verdict == BETTER
    assert found.p == 2 / 2**10  # ahead at every seed


def test_half_of_the_seeds_have_to_be_left() -> None:
    ours = [0.51, 0.53, 0.52, 0.55, 0.54, 0.56, 0.58, 0.57]
    half = one([*[None] * 4, 0.5, 0.51, 0.5, 0.53], ours)
    assert half.p == pytest.approx(scipy_stats.ttest_1samp([0.04, 0.05, 0.08, 0.04], 0).pvalue)
    fewer = one([*[None] * 5, 0.51, 0.5, 0.53], ours)
    assert fewer.p == 2 / 2**8  # all of them, ahead at every seed


def test_no_floor_makes_it_pay_to_crash() -> None:
    made = records({"base": [-0.5, -0.51, -0.52, -0.5, -0.51, -0.5, -0.52], "one": [None] * 7})
    comparison = versus(made)  # the floor is 0
    found = next(row for row in comparison.rows if row.cell.columns["estimator"] == "one")
    assert found.score is not None
    assert found.score.mid == -0.52  # the worst that a run ended well with
    assert found.verdict != BETTER


VALUES = st.floats(min_value=0.0, max_value=1.0).map(lambda x: round(x, 3))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(VALUES, VALUES, st.booleans(), st.booleans()), min_size=2, max_size=11),
    st.integers(0, 10),
)
def test_one_more_failure_never_makes_a_row_better(
    pairs: list[tuple[float, float, bool, bool]], which: int
) -> None:
    base = [None if lost else theirs for theirs, _, lost, _ in pairs]
    ours = [None if gone and n != which else mine for n, (_, mine, _, gone) in enumerate(pairs)]
    broken = [None if n == which else mine for n, mine in enumerate(ours)]
    before, after = one(base, ours), one(base, broken)
    assert not (after.verdict == BETTER and before.verdict != BETTER)


def test_at_the_null_failures_do_not_raise_the_rate_of_claims() -> None:
    rng = np.random.default_rng(0)
    claims = 0
    for _ in range(400):
        shared = rng.normal(size=5)
        sides = [
            [
                None if gone else float(0.6 + 0.1 * value)
                for gone, value in zip(
                    rng.random(5) < 0.25, shared * 0.8 + rng.normal(size=5) * 0.6, strict=True
                )
            ]
            for _ in range(2)
        ]
        claims += one(*sides).verdict in (BETTER, WORSE)
    # 400 * 0.05 = 20; two standard errors are 8.7
    assert claims <= 28


@pytest.mark.parametrize("n", [3, 5, 8])
def test_the_best_of_a_table_are_told_by_the_same_test_as_a_comparison(n: int) -> None:
    rng = np.random.default_rng(n)
    compared = 0
    for _ in range(40):
        sides = [
            [None if gone else float(value) for gone, value in zip(*pair, strict=True)]
            for pair in zip(rng.random((2, n)) < 0.3, rng.random((2, n)), strict=True)
        ]
        made = records({"base": sides[0], "one": sides[1]})
        row = one(*sides)
        rows, _ = arranged(cells(made))
        ps = {standing.p for standing in best_set(rows).standings} - {None}
        assert len(ps) <= 1
        if ps and row.p is not None:
            assert ps.pop() == pytest.approx(row.p)
            compared += 1
    assert compared > 20
