"""Figures of differences and of improvement: cells against their baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlbench.errors import NothingSelected, UsageError
from rlbench.report.cells.cell import cells
from rlbench.report.cells.metric import metric
from rlbench.report.plots import AGAINST, draw

from .figures import (
    bars,
    caption,
    grid,
    made,
    pairs_of,
    rows_of,
    written,
)
from .made_up import record

if TYPE_CHECKING:
    from pathlib import Path

    from rlbench.report.cells.cell import Cell


@pytest.fixture
def six(tmp_path: Path) -> list[Cell]:
    """Three estimators and two losses; a run has failed and one has ended early."""
    return made(tmp_path / "six", grid(3, 2), failed=[(1, 3)], ended={(0, 2): 3})


@pytest.fixture
def two(tmp_path: Path) -> list[Cell]:
    return made(tmp_path / "two", grid(2, 1))


# improvement


def test_the_share_of_pairs_won_and_its_interval(two: list[Cell]) -> None:
    figure = draw("improvement", two, baseline=two[0])
    # four wins of four: Jeffreys 0.55524 to 1
    assert "1.00 [0.56, 1.00]" in written(figure)
    assert rows_of(figure) == ["est1"]
    assert "does better than est0, ties one half" in caption(figure)
    half = [line for line in figure.axes[0].lines if list(line.get_xdata()) == [0.5, 0.5]]
    assert len(half) == 1


def test_of_two_cells_the_first_of_the_table_is_the_baseline(two: list[Cell]) -> None:
    assert "does better than est1," in caption(draw("improvement", two))


def test_more_cells_need_a_baseline(six: list[Cell]) -> None:
    for name in AGAINST:
        with pytest.raises(UsageError, match="6 cells and no baseline"):
            draw(name, six)


def test_one_cell_has_nothing_to_improve_on(two: list[Cell]) -> None:
    for name in AGAINST:
        with pytest.raises(NothingSelected, match="one cell alone"):
            draw(name, two[:1])


def test_one_algorithm_on_several_tasks_has_nothing_to_improve_on() -> None:
    shown = cells([record(s, 0.5, task=t) for t in ("x", "y", "z") for s in range(3)])
    for name in AGAINST:
        with pytest.raises(NothingSelected, match="3 cells differ in nothing but the task"):
            draw(name, shown)


def test_rows_stand_in_the_order_of_the_scores(six: list[Cell]) -> None:
    # est1+loss0 is the baseline; est0+loss1 has a failure at 0, and the least mean
    for name in AGAINST:
        found = rows_of(draw(name, six, baseline=six[2]))
        assert found == ["est2+loss1", "est2+loss0", "est1+loss1", "est0+loss0", "est0+loss1"]


# differences


def test_differences_are_paired_and_have_both_intervals() -> None:
    shown = pairs_of({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.4, 0.6], "c": [0.1, 0.2, 0.6]})
    figure = draw("differences", shown, baseline=shown[0], margin=0.02)
    assert rows_of(figure) == ["b", "c"]
    # b: 0.1, 0.2, 0.3, mean 0.2, sd 0.1; t(2, 0.975) 4.30265 * 0.1 / sqrt(3) = 0.24841
    # c: 0, 0, 0.3, mean 0.1, sd 0.17321; 4.30265 * 0.1 = 0.43027
    assert bars(figure, 2.2) == [pytest.approx(one, abs=1e-4) for one in OF_ONE]
    # of two rows at once: t(2, 0.9875) 6.20535 * 0.1 / sqrt(3) = 0.35827, and 0.62053
    assert bars(figure, 0.7) == [pytest.approx(one, abs=1e-4) for one in OF_TWO]
    # b: t = 0.2 / 0.057735 = 3.4641, p = 0.0742, twice that by Holm; c: t = 1, p = 0.4226
    assert {"? undecided", "+0.20 ± 0.25", "0.148", "+0.10 ± 0.43", "0.423"} <= set(written(figure))
    [band] = figure.axes[0].patches
    assert sorted(
        band.get_extents().transformed(figure.axes[0].transData.inverted()).intervalx
    ) == (pytest.approx([-0.02, 0.02]))
    says = caption(figure)
    assert "differences within ±0.02 count as none" in says
    assert "thin: for all 2 rows at once (Bonferroni)" in says


OF_ONE = [[0.2 - 0.24841, 0.2 + 0.24841], [0.1 - 0.43027, 0.1 + 0.43027]]
OF_TWO = [[0.2 - 0.35827, 0.2 + 0.35827], [0.1 - 0.62053, 0.1 + 0.62053]]


def test_better_is_to_the_right_where_less_is_better() -> None:
    shown = pairs_of({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.4, 0.6]})
    costs = cells([seed.record for cell in shown for seed in cell.seeds], metric("wall_s"))
    low, high = draw("differences", shown, baseline=shown[0]).axes[0].get_xlim()
    assert low < high
    figure = draw("differences", costs, baseline=costs[0])
    left, right = figure.axes[0].get_xlim()
    assert left > right
    assert "axis runs backwards" in caption(figure)
    [title] = {axes.get_xlabel().replace("\n", " ") for axes in figure.axes}
    assert title == "difference in time (s): right is better"


def test_a_failure_in_a_pair_is_marked() -> None:
    shown = pairs_of({"a": [0.4, 0.5, 0.6], "b": [0.5, None, 0.8]})
    figure = draw("differences", shown, baseline=shown[0])
    # 0.1, 0 - 0.5, 0.2: mean -0.0667
    assert any(text.startswith("-0.07* ± ") for text in written(figure))
    assert "3, 1 failed" in written(figure)
    assert "*: pairs with a failed run" in caption(figure)


def test_a_narrow_figure_has_the_verdicts_at_least(two: list[Cell]) -> None:
    texts = written(draw("differences", two, baseline=two[0], width=3.3))
    # always 0.1 better: no spread, so that nothing is tested
    assert any(text.split(" ")[0] in ("+", "n/a") for text in texts)
    assert not any("±" in text for text in texts if "Difference" not in text)


def test_one_pair_has_a_difference_and_no_interval() -> None:
    shown = pairs_of({"a": [0.1], "b": [0.3]})
    texts = written(draw("differences", shown, baseline=shown[0]))
    assert "+0.200 n=1" in texts
    assert "n/a" in texts


def test_what_shares_no_seed_has_no_difference() -> None:
    runs = [record(0, 0.5, estimator="a"), record(1, 0.5, estimator="b")]
    shown = cells(runs)
    with pytest.raises(NothingSelected, match="nothing can be subtracted: no common seed"):
        draw("differences", shown, baseline=shown[0])


def test_runs_that_are_not_paired_are_said_to_be_so() -> None:
    counted = {"provenance": {"seeds_counted": True}}
    shown = pairs_of({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.4, 0.6]}, result=counted)
    share = draw("improvement", shown, baseline=shown[0])
    assert "all pairs of a run from each (n=3 seeds)" in caption(share)
    assert "its logit-t 95% interval" in caption(share)
    # of nine pairs 0.2 beats 0.1 and ties 0.2, 0.4 and 0.6 beat all: 7.5 of 9
    assert any(text.startswith("0.83") for text in written(share))
    figure = draw("differences", shown, baseline=shown[0])
    assert "Difference of the means from a; thick: 95% Welch t interval" in caption(figure)
