"""Figures of several tasks: their scales, profiles over them, and captions that name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rlbench.errors import UsageError
from rlbench.report.cells.cell import cells
from rlbench.report.plots import draw
from rlbench.report.plots.profile import profile
from rlbench.report.plots.resampled import bootstrapped

from .figures import (
    caption,
    grid,
    lines_of,
    made,
    notes_of,
    pairs_of,
    rows_of,
    written,
)
from .made_up import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rlbench.report.cells.cell import Cell


@pytest.fixture
def six(tmp_path: Path) -> list[Cell]:
    """Three estimators and two losses; a run has failed and one has ended early."""
    return made(tmp_path / "six", grid(3, 2), failed=[(1, 3)], ended={(0, 2): 3})


@pytest.fixture
def two(tmp_path: Path) -> list[Cell]:
    return made(tmp_path / "two", grid(2, 1))


# profile


def test_a_profile_is_the_share_of_runs_above_each_threshold() -> None:
    found = profile({"t": np.array([0.2, 0.4, 0.4, 0.9])}, np.array([0.1, 0.2, 0.4, 0.9]))
    assert found.shares.tolist() == [1, 0.75, 0.25, 0]
    # Jeffreys: beta(0.5, 4.5) at 0.975 is 0.44476; none below where all are above
    assert found.high[-1] == pytest.approx(0.44476, abs=1e-4)
    assert (found.low[-1], found.high[0]) == (0, 1)
    assert found.low[0] == pytest.approx(1 - 0.44476, abs=1e-4)


def test_where_less_is_better_the_share_is_that_below() -> None:
    found = profile({"t": np.array([0.2, 0.4])}, np.array([0.2, 0.3, 0.5]), sign=-1)
    assert found.shares.tolist() == [0, 0.5, 1]


def test_every_task_weighs_the_same_in_a_profile() -> None:
    scores = {"x": np.array([1.0, 1.0, 1.0, 1.0]), "y": np.array([0.0])}
    assert profile(scores, np.array([0.5])).shares.tolist() == [0.5]


def test_more_than_three_profiles_have_axes_of_their_own(two: list[Cell], six: list[Cell]) -> None:
    assert len(draw("profile", two).axes) == 1
    assert sum(axes.get_visible() for axes in draw("profile", six).axes) == 6


def test_what_lacks_a_task_is_left_out_of_profiles() -> None:
    runs = [record(0, 0.5, estimator=e, task=t) for e in ("a", "b") for t in ("x", "y")]
    assert notes_of("profile", cells(runs[:3])) == ["left out: b: it was not tried on y"]


# captions, scales


def test_the_caption_names_the_task_and_settings_that_are_no_defaults() -> None:
    def line(**more: Any) -> str:
        labels = {"a": [0.1, 0.2], "b": [0.3, 0.4]}
        return draw("scores", pairs_of(labels, **more)).texts[0].get_text().split("\n")[-1]

    assert line(settings={"updates": 50, "lr": 0.1}) == "addition; updates 50; lr 0.1"
    assert line(task="sorting", loss="pg", kl="none") == "sorting; loss pg"
    assert line() == "addition"


def test_rows_of_one_scale_share_an_axis() -> None:
    runs = {
        scale: [
            record(s, value + s / 10, task=task, spec=scale and {"scale": [0, 1]})
            for task, value in {"x": 0.1, "y": 7.0, "z": 0.3}.items()
            for s in range(3)
        ]
        for scale in (False, True)
    }
    assert len(draw("scores", cells(runs[False])).axes) == 3
    figure = draw("scores", cells(runs[True]))
    assert len(figure.axes) == 1
    assert rows_of(figure) == ["x", "y", "z"]
    assert len(draw("scores", cells(runs[False]), scales=dict.fromkeys("xyz", (0, 7.0))).axes) == 1


def test_two_algorithms_have_a_row_a_task_of_improvement() -> None:
    runs = [
        record(s, 0.1 * s + (e == "b"), estimator=e, task=t)
        for e in "ab"
        for t in "xy"
        for s in range(3)
    ]
    figure = draw("improvement", cells(runs))
    assert len(figure.axes) == 1
    assert rows_of(figure) == ["x", "y"]


def test_scores_curves_and_baselines_are_normalised_together(tmp_path: Path) -> None:
    shown = made(tmp_path, [{"estimator": "a"}, {"estimator": "b"}], seeds=2)
    scales = {"addition": (0.5, 0.3)}
    with pytest.raises(UsageError, match=r"more is better, but the score that counts as 1, 0\.3"):
        draw("scores", shown, scales=scales)
    scales = {"addition": (0.3, 0.5)}
    # (0.405 - 0.3) / 0.2 = 0.525; they begin at 0.5, which counts as 1
    figure = draw("curves", shown, scales=scales)
    [line, _] = lines_of(figure.axes[0], "o") + lines_of(figure.axes[0], "s")
    assert (line[1][0], line[1][-1]) == (pytest.approx(1), pytest.approx(0.525))
    assert figure.axes[0].get_ylabel() == "normalised score"
    # the difference of 0.1 is half of the scale
    texts = written(draw("differences", shown, baseline=shown[0], scales=scales))
    assert any(text.startswith("+0.5") for text in texts)


def test_scores_are_normalised_once(tmp_path: Path) -> None:
    shown = cells([record(s, 0.5, task="x", spec={"scale": [0, 1]}) for s in range(2)])
    with pytest.raises(UsageError, match="normalised on import; leave --normalise"):
        draw("scores", shown, scales={"x": (0, 1)})


def test_each_task_of_a_matrix_has_its_colours_and_places() -> None:
    runs = [
        record(s, score + s * size, estimator=e, task=t)
        for t, size in {"x": 0.01, "y": 1000.0}.items()
        for e, score in {"a": size, "b": 4 * size}.items()
        for s in range(2)
    ]
    figure = draw("matrix", cells(runs))
    # two scores one size apart: t(1) 12.706 * size / 2
    texts = {"0.015 ± 0.064", "0.045 ± 0.064", "1500 ± 6353", "4500 ± 6353"}
    assert texts <= set(written(figure))
    shades = [patch.get_facecolor() for patch in figure.axes[0].patches]
    assert len(set(shades)) == 2  # worse and better, in either task
    assert "the better, each task by itself" in caption(figure).replace("darker ", "")


def test_less_can_be_better_in_one_task_of_a_matrix() -> None:
    runs = [
        record(0, score, estimator=e, task=t, spec=spec)
        for t, spec in {"x": {}, "y": {"direction": "lower"}}.items()
        for e, score in {"a": 1.0, "b": 2.0}.items()
    ]
    first, second, third, fourth = (
        patch.get_facecolor() for patch in draw("matrix", cells(runs)).axes[0].patches
    )
    assert (first, second) == (fourth, third)
    assert first != second


# profiles of several tasks


def test_the_band_of_several_tasks_is_that_of_their_runs() -> None:
    # a task with all runs above in one of four: nothing else can come out, whatever the seeds
    low, high = bootstrapped(np.array([[4], [0], [0], [0]]), np.array([4, 4, 4, 4]))
    assert (low.tolist(), high.tolist()) == ([0.25], [0.25])
    # one of two above in both: binomial of 4, 1/16 for none and for all. Degrees of freedom
    # 0.5^2 / (2 * 0.25^2) = 2, inflation 2: a tail of Phi(-sqrt(2) * 4.303) = 6e-10
    low, high = bootstrapped(np.array([[1], [1]]), np.array([2, 2]))
    assert (low.tolist(), high.tolist()) == ([0], [1])
    # of four tasks 1/4, 2/4, none, all: df 5.9, inflation 4/3, a tail of 0.0023. None of the first
    # two: 0.316 * 0.0625 = 0.02; all 8: 0.0039 * 0.0625 = 0.0002, 7 or more: 0.0041
    low, high = bootstrapped(np.array([[1], [2], [0], [4]]), np.array([4, 4, 4, 4]))
    assert (low.tolist(), high.tolist()) == ([1 / 4], [(1 + 7 / 4) / 4])


def test_the_order_of_tasks_changes_no_bit_of_a_band() -> None:
    rng = np.random.default_rng(1)
    runs = rng.integers(1, 12, 9)
    above = np.array([rng.integers(0, n + 1, 30) for n in runs])
    first = bootstrapped(above, runs)
    for _ in range(5):
        order = rng.permutation(9)
        again = bootstrapped(above[order], runs[order])
        assert np.array_equal(first[0], again[0])
        assert np.array_equal(first[1], again[1])
    share = (above / runs[:, None]).mean(axis=0)
    assert (first[0] <= share + 1e-12).all()
    assert (first[1] >= share - 1e-12).all()


def test_a_caption_says_which_band_a_profile_has() -> None:
    def says(tasks: str) -> str:
        runs = [
            record(s, s / 4, estimator=e, task=t) for e in "ab" for t in tasks for s in range(3)
        ]
        return caption(draw("profile", cells(runs)))

    assert "Jeffreys' 95% interval" in says("x")
    assert "bootstrap over the runs of each task" in says("xy")
    assert "n=3 seeds on each of 2 tasks (x, y)" in says("xy")


@pytest.mark.parametrize(
    ("scores", "heard"),
    [
        ({"x": [0.1, 0.9], "y": [0.0, 0.01]}, 0),  # from 0 to 1 both
        ({"x": [1.0, 9.0], "y": [2.0, 8.0]}, 0),
        ({"x": [1.0, 9.0], "y": [10.0, 18.0]}, 1),  # they don't overlap
        ({"x": [0.0, 100.0], "y": [2.0, 9.0]}, 1),  # 100 over 7 is more than ten
    ],
)
def test_scores_on_different_scales_are_said_to_be(
    scores: Mapping[str, Sequence[float]], heard: int
) -> None:
    runs = [record(s, v, task=task) for task, of in scores.items() for s, v in enumerate(of)]
    shown = cells(runs)
    assert sum("different scales" in note for note in notes_of("profile", shown)) == heard
    assert caption(draw("profile", shown)).count("--normalise FILE puts all on one") == heard
