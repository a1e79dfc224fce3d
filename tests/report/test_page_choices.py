"""What a page chooses to show: whole algorithms, aggregates, tuned cells, races, paths."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlbench.errors import UsageError
from rlbench.grid.race import Pair, RacePlan, key_of
from rlbench.grid.race_file import enter
from rlbench.report.cells.cell import cells
from rlbench.report.cells.metric import metric
from rlbench.report.compare.comparison import compare, in_order
from rlbench.report.compare.tuning import parse_axis, tune
from rlbench.report.page import factors, over_tasks, pictures, private
from rlbench.report.page.failures import Failures
from rlbench.report.page.page import build
from rlbench.report.page.parts import Parts
from rlbench.report.page.provenance import Provenance
from rlbench.report.page.render import render

from .made_up import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rlbench.grid.store import Record
    from rlbench.report.cells.cell import Cell
    from rlbench.report.page.page import Page

PLACES = {  # place of each algorithm in tasks x, y, z: on average b is first, then a, c, d
    "a": (1, 1, 4),
    "b": (2, 2, 1),
    "c": (3, 3, 2),
    "d": (4, 4, 3),
}


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take most of the time."""
    monkeypatch.setattr(pictures, "draw", lambda *_: pictures.Pictures())


def grid(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> list[Record]:
    """Make the runs of estimators in tasks, at seeds 0, 1, 2, ..."""
    return [
        record(seed, score, estimator=name, task=task)
        for name, tasks in scores.items()
        for task, values in tasks.items()
        for seed, score in enumerate(values)
    ]


def placed(*, without: tuple[str, str] = ("", "")) -> list[Cell]:
    return cells(
        grid(
            {
                name: {
                    task: [0.9 - place / 10, 0.91 - place / 10]
                    for task, place in zip("xyz", places, strict=True)
                    if (name, task) != without
                }
                for name, places in PLACES.items()
            }
        )
    )


def spied(
    monkeypatch: pytest.MonkeyPatch, shown: list[Cell], baseline: str = "", *, most: int = 6
) -> tuple[pictures.Pictures, set[tuple[str, str]]]:
    """Draw a figure of few cells, and tell which algorithms and tasks are in it."""
    seen: set[tuple[str, str]] = set()

    def draw(_name: str, some: Sequence[Cell], **_options: Any) -> Any:
        seen.update((cell.columns["estimator"], cell.columns["task"]) for cell in some)
        raise UsageError("not drawn")

    monkeypatch.setattr("rlbench.report.plots.draw", draw)
    monkeypatch.setattr("rlbench.report.plots.panels.MOST", most)
    against = {c.columns["task"]: c for c in shown if c.columns["estimator"] == baseline}
    return pictures.draw(shown, against or None), seen


# figures


def test_figures_show_whole_algorithms_the_best_on_average(monkeypatch: pytest.MonkeyPatch) -> None:
    found, seen = spied(monkeypatch, placed())
    # 6 cells are 2 algorithms on 3 tasks; mean places: b 5/3, a 2, c 8/3, d 11/3
    assert seen == {(name, task) for name in "ab" for task in "xyz"}
    assert found.cut == (
        "The figures show 6 of 12 cells: 2 of 4 algorithms on all tasks, those that stand highest "
        "in their tasks on average."
    )


def test_figures_keep_the_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    found, seen = spied(monkeypatch, placed(), "d")
    assert seen == {(name, task) for name in "bd" for task in "xyz"}
    assert "on all tasks, the baseline and those that stand highest" in found.cut


def test_what_lacks_a_task_comes_after_what_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    _, seen = spied(monkeypatch, placed(without=("b", "z")))
    # in task z c is now first, d second and a third: a 5/3, c 7/3, d 10/3
    assert seen == {(name, task) for name in "ac" for task in "xyz"}


def test_more_tasks_than_a_figure_takes_are_cut_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, seen = spied(monkeypatch, placed(), "d", most=4)
    assert seen == {(name, task) for name in "bd" for task in "xy"}
    assert "2 of 4 algorithms on 2 of 3 tasks" in found.cut


def test_the_order_of_the_cells_chooses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = placed()
    first = spied(monkeypatch, shown)
    random.Random(3).shuffle(shown)
    assert spied(monkeypatch, shown) == first


@pytest.mark.parametrize("name", ["improvement", "differences"])
def test_a_figure_that_lacks_a_baseline_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlbench.report.plots.NAMES", (name,))
    found, _ = spied(monkeypatch, placed())
    assert found.absent == (
        (name, "it takes a baseline, and this page has none (--baseline CELL)"),
    )


def test_differences_come_first_where_there_is_a_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlbench.report.plots.NAMES", ("curves", "differences", "scores"))
    with_one, _ = spied(monkeypatch, placed(), "d")
    without, _ = spied(monkeypatch, placed())
    assert [name for name, _ in with_one.absent] == ["differences", "curves", "scores"]
    assert [name for name, _ in without.absent] == ["curves", "differences", "scores"]


@pytest.mark.parametrize("spec", [{}, {"imported": True}])
def test_imported_seeds_are_not_said_to_be_shared(
    spec: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlbench.report.plots.NAMES", ("scores",))
    runs = [record(n, 0.5 + n / 9, estimator=e, spec=spec) for n in range(3) for e in "ab"]
    (picture,) = pictures.draw(cells(runs), None).drawn
    assert picture.caption.endswith("tervals that overlap are no proof that two are equal.")
    assert ("share their seeds" in picture.caption) is not bool(spec)


# over tasks

TWO_TASKS = {"a": {"x": [1.0, 3.0], "y": [5.0, 7.0]}, "b": {"x": [0.0, 2.0], "y": [4.0, 6.0]}}


def column(table: Any, name: str) -> list[str]:
    place = [heading.text for heading in table.headings].index(name)
    return [row[place].text for row in table.rows]


@pytest.mark.usefixtures("no_figures")
def test_algorithms_over_tasks_are_aggregated() -> None:
    page = build(cells(grid(TWO_TASKS)), title="x")
    found = page.suite.table
    assert found is not None
    assert column(found, "estimator") == ["a", "b"]
    # the middle half of 1, 3, 5, 7 is 3, 5
    assert [float(text) for text in column(found, "IQM")] == [4.0, 3.0]
    assert [float(text) for text in column(found, "mean")] == [4.0, 3.0]
    assert column(found, "rank") == ["1.00", "2.00"]
    assert column(found, "n") == ["4/4", "4/4"]
    assert all(text.startswith("[") for text in column(found, "IQM 95%"))
    text = render(page)
    assert "Each algorithm over all tasks" in text
    assert "IQM: mean of the middle half of all runs" in text


def test_scales_put_tasks_on_one() -> None:
    shown = cells(grid(TWO_TASKS))
    found = over_tasks.collect(shown, {"x": (0.0, 2.0), "y": (4.0, 8.0)}).table
    assert found is not None
    # a: 0.5, 1.5, 0.25, 0.75, of which the middle half is 0.5, 0.75; b: 0, 1, 0, 0.5
    place = [heading.text for heading in found.headings].index("IQM")
    assert [float(row[place].key) for row in found.rows] == [0.625, 0.25]


def test_scales_that_do_not_fit_are_refused() -> None:
    shown = cells(grid(TWO_TASKS))
    with pytest.raises(UsageError, match="'y'"):
        over_tasks.collect(shown, {"x": (0.0, 2.0)})
    one = [cell for cell in shown if cell.columns["task"] == "x"]
    with pytest.raises(UsageError, match="over several tasks, and these results have one task"):
        over_tasks.collect(one, {"x": (0.0, 2.0)})


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize(
    ("left", "reason"),
    [
        ({"a": ["x", "y"], "b": ["y"]}, "b was run in one task only"),
        ({"a": ["x"], "b": ["y"]}, "nothing was run in more than one task"),
        ({"a": ["x"], "b": ["x"]}, ""),
    ],
)
def test_what_is_no_suite_has_no_such_table(left: dict[str, list[str]], reason: str) -> None:
    runs = grid({name: {t: TWO_TASKS[name][t] for t in tasks} for name, tasks in left.items()})
    page = build(cells(runs), title="x")
    assert page.suite == over_tasks.OverTasks(reason=reason)
    assert ("No table over all tasks" in render(page)) is bool(reason)


def test_tasks_of_both_directions_are_the_reason_for_no_table() -> None:
    shown = cells(grid(TWO_TASKS))
    less = [
        replace(c, metric=replace(c.metric, higher=False)) if c.columns["task"] == "x" else c
        for c in shown
    ]
    assert "less is better in x" in over_tasks.collect(less).reason


# tuning

TUNED = {  # seeds 1 and 3 choose, 0 and 2 are compared
    ("a", 0.1): [0.9, 0.1, 0.9, 0.1],
    ("a", 0.2): [0.3, 0.4, 0.5, 0.4],
    ("base", 0.1): [0.5, 0.6, 0.8, 0.6],
    ("base", 0.2): [0.1, 0.1, 0.1, 0.1],
}


@pytest.fixture
def tuned(no_figures: None) -> Page:
    """A page of two estimators, each at its own learning rate."""
    runs = [
        record(seed, score, estimator=name, settings={"lr": lr})
        for (name, lr), scores in TUNED.items()
        for seed, score in enumerate(scores)
    ]
    shown = cells(runs)
    tuning = tune(shown, parse_axis("lr"))
    ordered = in_order(tuning.cells)
    (base,) = [cell for cell in ordered if cell.columns["estimator"] == "base"]
    made = replace(compare(ordered, base), tuning=tuning)
    return build(shown, title="x", comparison=made)


def test_a_tuned_page_compares_each_cell_at_its_own_value(tuned: Page) -> None:
    (claim,) = tuned.headline.claims
    assert (claim.name, claim.at) == ("a", "lr 0.2")
    assert claim.because.startswith("score -0.25")  # of 0.3 - 0.5 and 0.5 - 0.8
    assert tuned.headline.notes[0] == (
        "Each cell has its own lr, the baseline too: seeds 1,3 chose it among 0.1, 0.2, and all "
        "verdicts come from the other seeds, 0,2."
    )
    assert tuned.verdicts is not None
    assert column(tuned.verdicts, "estimator") == ["base", "a"]
    assert column(tuned.verdicts, "lr") == ["0.1", "0.2"]
    text = render(tuned)
    assert "a</bdi> at lr 0.2 <span" in text
    assert "each cell at the lr that was chosen for it, and seeds 0,2 alone" in text


def test_a_tuned_page_has_the_scores_of_all_values_and_its_own_caveats(tuned: Page) -> None:
    assert sorted(column(tuned.scores, "lr")) == ["0.1", "0.1", "0.2", "0.2"]
    said = "\n".join(tuned.caveats)
    assert "Equal settings are not equal tuning" not in said
    assert "a: the best lr, 0.2, is the largest tried" in said
    assert "2 pairs of seeds are few" in said


# a race


def raced(folder: Path) -> list[Cell]:
    """Two cells of ten seeds, between which there was a race."""
    runs = [
        replace(one, folder=folder / "runs" / one.run_id)
        for one in grid({n: {"x": [0.1 * s + 0.01 * s * s for s in range(10)]} for n in "ab"})
    ]
    keys = dict.fromkeys(key_of(one.spec or {}) for one in runs)
    first, second = keys
    plan = RacePlan(pairs=(Pair(cell=first, other=second),), seeds=tuple(range(10)), looks=2)
    enter(folder, plan, {})
    return in_order(cells(runs))


@pytest.mark.usefixtures("no_figures")
def test_a_race_is_the_first_caveat_and_stands_beside_the_verdicts(tmp_path: Path) -> None:
    shown = raced(tmp_path)
    page = build(shown, title="x", comparison=compare(shown, shown[0]), left_out="1 of 21 runs")
    (warning,) = page.warnings
    assert "has a race: its seeds were spent by what was seen" in warning
    assert page.caveats[0] == warning
    assert page.caveats.count(warning) == 1
    assert page.caveats[1] == "Not all results are on this page: 1 of 21 runs."
    text = render(page)
    assert text.index('class="warning"') < text.index('class="answer"')
    assert text.count("has a race") == 2  # beside the verdicts, and among the caveats


# effects


@pytest.mark.parametrize(
    ("name", "sign", "word"), [("score", 1, "- smaller"), ("kl_nats", -1, "- larger")]
)
def test_of_an_interaction_nothing_is_better_or_worse(name: str, sign: int, word: str) -> None:
    """a - b is 0.3 at x and 0.5 at y: less by 0.2; where less is better all is turned round."""
    values = {("a", "x"): 0.8, ("b", "x"): 0.5, ("a", "y"): 0.6, ("b", "y"): 0.1}
    runs = []
    for (estimator, loss), value in values.items():
        for seed in range(8):
            noise = 0.001 * (seed % 3) * (loss == "x") * (estimator == "a")
            number = sign * (value + seed / 50 + noise)
            result = {"score": number, "kl": number}
            runs.append(record(seed, 0.0, estimator=estimator, loss=loss, result=result))
    (found,) = factors.collect(cells(runs, metric(name, None)), level=0.95, margin=None).of_tasks
    rows = {row[0].text: row for row in found.contrasts.rows}
    _, contrast, diff, *_, verdict = rows["estimator x loss"]
    assert contrast.text == "(a - b) x (x - y)"
    assert float(diff.text) == pytest.approx(-0.2 * sign, abs=0.005)
    assert (verdict.text, verdict.tone) == (word, "")
    assert (rows["estimator"][-1].text, rows["estimator"][-1].tone) == ("+ better", "better")


# runs that are no pairs


@pytest.mark.usefixtures("no_figures")
def test_runs_with_counted_seeds_are_not_called_pairs() -> None:
    result = {"provenance": {"seeds_counted": True}}
    runs = [
        record(seed, score, estimator=name, spec={"imported": True}, result=result)
        for name, scores in {"old": [0.1, 0.2, 0.3], "new": [0.7, 0.8, 0.9, 0.8]}.items()
        for seed, score in enumerate(scores)
    ]
    shown = in_order(cells(runs))
    (base,) = [cell for cell in shown if cell.columns["estimator"] == "old"]
    page = build(shown, title="x", comparison=compare(shown, base))
    (claim,) = page.headline.claims
    assert claim.because.startswith("score +0.60")  # 0.8 - 0.2
    assert claim.because.endswith("4 and 3 runs, not paired)")
    said = "\n".join(page.caveats)
    assert "runs a cell are few: the tests assume nearly normal values." in said
    assert "pairs of seeds" not in said


# paths


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/home/me/results", "paths of a machine"),
        ("in ~/results/mine, say", "paths of a machine"),
        (r"C:\Users\me", "paths of a machine"),
        ("results/mine", ""),
        ("1/2 of and/or 3/4", ""),
        ("https://example.org/page", ""),
    ],
)
def test_paths_are_told_from_fractions(text: str, said: str) -> None:
    nothing = Failures(count=0, tried=1), Provenance(blocks=(), runs=(), number=1)
    assert private.of_page(*nothing, [text]) == (
        f"The page holds {said}: read it before you send it." if said else ""
    )


# parts


def test_parts_are_said_from_the_third_second_on() -> None:
    now, said = [10.0], list[str]()
    parts = Parts(said.append, lambda: now[0])
    for second in (11.0, 12.9, 13.0, 20.0):
        now[0] = second
        parts(f"at {second:g}")
    assert said == ["at 13", "at 20"]


def test_every_part_is_announced_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlbench.report.plots.NAMES", ("scores", "profile"))
    heard: list[str] = []
    build(cells(grid(TWO_TASKS)), title="x", announce=heard.append)
    assert heard == [
        "aggregating over tasks",
        "drawing scores (figure 1 of 2)",
        "drawing profile (figure 2 of 2)",
        "computing effects",
        "collecting failures, samples and where all of it comes from",
    ]


def test_the_profile_of_a_page_pools_tasks_on_their_scale() -> None:
    made = [
        record(seed, (10.0 if task == "x" else 1.0) * (0.4 + seed / 50), estimator=e, task=task)
        for e in ("a", "b")
        for task in ("x", "y")
        for seed in range(3)
    ]
    scales = {"x": (0.0, 10.0), "y": (0.0, 1.0)}
    page = build(cells(made), title="t", scales=scales)
    (profile,) = (one for one in page.pictures.drawn if one.name == "profile")
    assert "normalised score" in profile.svg
    (raw,) = (one for one in build(cells(made), title="t").pictures.drawn if one.name == "profile")
    assert "normalised score" not in raw.svg
