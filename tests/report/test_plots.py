"""Figures: what they show of cells, and the files and elements that they become."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from rlbench.errors import NothingSelected, UsageError
from rlbench.report.cells.cell import cells
from rlbench.report.cells.metric import metric
from rlbench.report.plots import NAMES, as_svg, draw, keys, lettering, panels, save, style
from rlbench.report.plots.tradeoff import front

from .figures import (
    caption,
    grid,
    lines_of,
    made,
    notes_of,
    rows_of,
    written,
)
from .made_up import component, record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from rlbench.report.cells.cell import Cell

ODD = "剪切 $x^2$ & 50% | <b> line\nbreak \ud800"


@pytest.fixture
def six(tmp_path: Path) -> list[Cell]:
    """Three estimators and two losses; a run has failed and one has ended early."""
    return made(tmp_path / "six", grid(3, 2), failed=[(1, 3)], ended={(0, 2): 3})


@pytest.fixture
def two(tmp_path: Path) -> list[Cell]:
    return made(tmp_path / "two", grid(2, 1))


@pytest.fixture
def four(tmp_path: Path) -> list[Cell]:
    return made(tmp_path / "four", grid(2, 2), seeds=2)


# all figures


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_an_element_of_a_page(name: str, six: list[Cell]) -> None:
    text = as_svg(draw(name, six, baseline=six[0]))
    assert text.startswith("<svg ")
    assert text.endswith("</svg>")
    assert not re.search(r"<script|<style|<metadata|<!|\bon\w+=|https?://(?!www\.w3\.org/)", text)
    root = ET.fromstring(text)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    assert used == set(ids)
    if name != "matrix":
        assert "est2+loss1" in "".join(root.itertext())  # text is text


def test_figures_of_one_page_share_no_id(four: list[Cell]) -> None:
    found = [
        set(re.findall(r' id="([^"]+)"', as_svg(draw(name, four, baseline=four[0]))))
        for name in NAMES
    ]
    assert sum(map(len, found)) == len(set.union(*found))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_cells_give_the_same_bytes_in_any_order(
    name: str, four: list[Cell], tmp_path: Path
) -> None:
    baseline, contents = four[0], []
    for order in (("a.png", "a.svg"), ("a.svg", "a.png")):
        figure = draw(name, four, baseline=baseline)
        four.reverse()
        for file in order:
            save(figure, tmp_path / file)
        contents.append({file: (tmp_path / file).read_bytes() for file in sorted(order)})
    assert contents[0] == contents[1]


@pytest.mark.parametrize("width", [3.3, 6.8])
@pytest.mark.parametrize("name", NAMES)
def test_all_text_is_inside_of_the_figure_and_no_smaller_than_eight_points(
    name: str, width: float, tmp_path: Path
) -> None:
    labels = [
        {"estimator": f"name_of_some_length_{n}:lam={n / 10}", "loss": loss}
        for n in range(2)
        for loss in ("clip", "$x^2$ & 50% | <b>")
    ]
    shown = made(tmp_path, labels, seeds=3, failed=[(1, 2)], ended={(0, 1): 3})
    figure = draw(name, shown, baseline=shown[0], width=width)
    assert figure.get_figwidth() == width
    figure.draw_without_rendering()  # puts the legend in its place
    renderer = FigureCanvasAgg(figure).get_renderer()
    for text in figure.findobj(Text):
        if text.get_text() and text.get_visible() and not is_tick_out_of_view(text, figure):
            assert text.get_fontsize() >= 8
            box = text.get_window_extent(renderer).transformed(figure.transFigure.inverted())
            assert box.x0 > -0.005, text.get_text()
            assert box.x1 < 1.005, text.get_text()
            assert box.y0 > -0.005, text.get_text()
            assert box.y1 < 1.005, text.get_text()


def is_tick_out_of_view(text: Text, figure: Figure) -> bool:
    """Whether this is the number of a tick that matplotlib keeps and does not draw."""
    ticks = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for label in (*axis.get_ticklabels(), *axis.get_ticklabels(minor=True))
        for low, high in [sorted(axis.get_view_interval())]
        if not low <= label.get_position()[axis is axes.yaxis] <= high
        or not axis.get_visible()
        or not axes.get_visible()
        or not axes.axison
    }
    return text in ticks


@pytest.mark.parametrize("name", NAMES)
def test_nothing_global_changes(name: str, two: list[Cell]) -> None:
    before = dict(mpl.rcParams)
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "text.usetex": True}):
        as_svg_of_hostile = _svg_or_none(name, two)
    assert dict(mpl.rcParams) == before
    assert as_svg_of_hostile == _svg_or_none(name, two)  # a user's settings change nothing


def _svg_or_none(name: str, shown: Sequence[Cell]) -> str | None:
    try:
        return as_svg(draw(name, shown))
    except NothingSelected:
        return None


def test_an_unknown_figure_is_refused_with_the_nearest(two: list[Cell]) -> None:
    with pytest.raises(UsageError, match="unknown plot 'curve'; did you mean 'curves'"):
        draw("curve", two)


@pytest.mark.parametrize("name", NAMES)
def test_no_cells_are_nothing_selected(name: str) -> None:
    with pytest.raises(NothingSelected):
        draw(name, [])


@pytest.mark.parametrize("name", ["curves", "scores", "tradeoff", "improvement"])
def test_too_many_cells_are_refused_with_advice(name: str) -> None:
    shown = cells([record(0, 0.5, estimator=f"e{n}") for n in range(61)])
    with pytest.raises(NothingSelected, match=r"61 cells are too many .* up to 60; select some"):
        draw(name, shown, baseline=shown[0])


@pytest.mark.parametrize("name", NAMES)
def test_results_made_elsewhere_have_what_they_can_have(name: str) -> None:
    components = [
        {"algorithm": component(a), "task": component(t)} for a in ("A", "B") for t in ("x", "y")
    ]
    shown = cells(
        replace(
            record(seed, 0.1 * number, spec={"components": parts, "settings": {}, "seed": seed}),
            run_id=f"{number}-{seed}",
        )
        for number, parts in enumerate(components)
        for seed in range(3)
    )
    shown = [
        replace(cell, seeds=tuple(replace(s, record=without_kl(s.record)) for s in cell.seeds))
        for cell in shown
    ]
    if name in ("curves", "tradeoff"):
        with pytest.raises(NothingSelected):
            draw(name, shown)
    else:
        assert written(draw(name, shown, baseline={"x": shown[0], "y": shown[1]}))


def without_kl(one: Any) -> Any:
    return replace(one, result={k: v for k, v in one.result.items() if k != "kl"})


# files


def test_a_pdf_has_the_same_bytes_on_every_call(two: list[Cell], tmp_path: Path) -> None:
    for file in ("a.pdf", "b.pdf"):
        save(draw("curves", two), tmp_path / file)
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    assert b"CreationDate" not in (tmp_path / "a.pdf").read_bytes()


def test_a_png_has_200_dots_an_inch(two: list[Cell], tmp_path: Path) -> None:
    save(draw("scores", two, width=3.3), tmp_path / "a.PNG")
    content = (tmp_path / "a.PNG").read_bytes()
    assert int.from_bytes(content[16:20], "big") == 660


def test_what_rlbench_did_not_write_is_not_overwritten(two: list[Cell], tmp_path: Path) -> None:
    figure = draw("scores", two)
    for ending, theirs in {"pdf": b"%PDF-1.4 theirs", "png": b"\x89PNG", "svg": b"<svg/>"}.items():
        file = tmp_path / f"notes.{ending}"
        file.write_bytes(theirs)
        with pytest.raises(UsageError, match="no plot of rlbench; --force overwrites it"):
            save(figure, file)
        assert file.read_bytes() == theirs
        save(figure, file, force=True)
        ours = file.read_bytes()
        assert ours != theirs
        save(draw("scores", two, width=5), file)  # our own is overwritten
        assert file.read_bytes() != ours
    assert len(list(tmp_path.glob("*notes*"))) == 3  # nothing half written is left


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("a.jpg", r"expected a name that ends in \.png, \.svg, \.pdf$"),
        ("a.pgn", r"did you mean \.png\?"),
        ("a", r"expected a name that ends in"),
        ("no/a.png", r"there is no folder .*/no$"),
        ("folder.svg", r"is a folder; name a file"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(
    file: str, message: str, two: list[Cell], tmp_path: Path
) -> None:
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(UsageError, match=message):
        save(draw("scores", two), tmp_path / file)


# lettering, looks and panels


def test_characters_that_the_font_lacks_are_spelled_out_in_images_and_kept_in_pages(
    tmp_path: Path,
) -> None:
    shown = made(tmp_path, [{"estimator": "a"}, {"estimator": ODD}])
    figure = draw("scores", shown)
    save(figure, tmp_path / "a.png")  # would warn of a missing glyph
    text = "".join(ET.fromstring(as_svg(figure)).itertext())
    assert r"剪切$x^2$&50%|<b>line\nbreak\ud800" in text.replace(" ", "")
    assert lettering.spelled_out("a剪\nb") == "a\\u526a\nb"
    for file, name in {"b.png": "剪", "c.png": r"\u526a"}.items():
        save(draw("scores", made(tmp_path / file[0], [{"estimator": name}])), tmp_path / file)
    assert (tmp_path / "b.png").read_bytes() == (tmp_path / "c.png").read_bytes()


def test_no_character_of_a_label_is_lost_where_it_is_folded() -> None:
    label = "group:lam=0.95,whiten=true+a_name_without_any_place_to_break_it_at+lr=0.001"
    folded = lettering.fold(label, 1.0, 8)
    assert folded.replace("\n", "") == label
    assert all(lettering.width_of(line, 8) <= 1.0 for line in folded.split("\n"))


def test_a_look_belongs_to_the_labels_never_to_the_score(tmp_path: Path) -> None:
    first, second = (
        [record(s, score, estimator=name) for name, score in scores.items() for s in range(2)]
        for scores in ({"a": 0.1, "b": 0.9}, {"b": 0.1, "a": 0.9})
    )
    looks = [
        {entry.name: entry.look for panel in panels.arrange(cells(runs)) for entry in panel.entries}
        for runs in (first, second)
    ]
    assert looks[0] == looks[1]
    assert looks[0]["a"] == style.look(0)


def test_twelve_looks_differ_without_colour_too() -> None:
    looks = [style.look(number, group) for group in range(2) for number in range(6)]
    assert len({(one.marker, one.fill) for one in looks}) == 12
    assert len({str(style.look(number).dash) for number in range(6)}) == 6
    assert len({style.look(number).colour for number in range(8)}) == 8


def test_text_in_the_colour_of_a_line_can_be_read_on_white() -> None:
    for number in range(8):
        rgb = mpl.colors.to_rgb(style.dark(style.look(number).colour))
        assert 1.05 / (style.luminance(rgb) + 0.05) >= 4.5


def test_up_to_six_cells_share_axes_and_more_are_split_by_the_factor_with_fewest_panels() -> None:
    def arranged(estimators: int, losses: int) -> list[tuple[str, int]]:
        runs = [record(0, 0.5, **labels) for labels in grid(estimators, losses)]
        return [(panel.title, len(panel.entries)) for panel in panels.arrange(cells(runs))]

    assert arranged(3, 2) == [("", 6)]
    assert arranged(6, 2) == [("loss0", 6), ("loss1", 6)]
    assert arranged(2, 6) == [("est0", 6), ("est1", 6)]


def test_tasks_never_share_axes() -> None:
    runs = [record(0, 0.5, estimator=e, task=t) for e in ("a", "b") for t in ("y", "x")]
    found = panels.arrange(cells(runs))
    assert [panel.title for panel in found] == ["x", "y"]
    assert [entry.short for entry in found[0].entries] == ["a", "b"]
    assert [entry.look for entry in found[0].entries] == [entry.look for entry in found[1].entries]


def test_names_are_ordered_as_people_count() -> None:
    names = ["lr=1e-2", "run10", "run2", "lr=5e-3", "run2.5"]
    assert sorted(names, key=panels.natural) == ["lr=5e-3", "lr=1e-2", "run2", "run2.5", "run10"]


def test_names_at_line_ends_are_moved_apart_and_stay_inside() -> None:
    # two at 0.5, 0.2 apart: half of it each way
    assert keys.apart([0.5, 0.5], 0.2) == pytest.approx([0.4, 0.6])
    # the block of two begins at 0, not below
    assert keys.apart([0.0, 0.05, 0.9], 0.2) == pytest.approx([0.0, 0.2, 0.9])
    assert keys.apart([1.0, 0.0], 0.2) == [1.0, 0.0]
    # no room for four at 0.5 apart: as far as there is
    assert sorted(keys.apart([0.1, 0.2, 0.3, 0.4], 0.5)) == pytest.approx([0, 1 / 3, 2 / 3, 1])


# curves


def test_a_curve_is_cut_where_a_seed_ends_and_says_how_many_go_on(tmp_path: Path) -> None:
    shown = made(tmp_path, [{"estimator": "a"}], ended={(0, 2): 3})
    figure = draw("curves", shown)
    [before, after] = lines_of(figure.axes[0], "o")
    assert before[0] == [0, 10, 20]
    # from where it is cut on, the mean of the three that are left: half-way from 0.5 at 20
    assert after[0] == [20, 30, 40]
    assert after[1][0] == pytest.approx(0.5 + 0.5 * ((0.40 + 0.41 + 0.43) / 3 - 0.5))
    assert "n=3" in written(figure)
    assert "the line is cut and goes on as the mean of the n left" in caption(figure)


def test_a_run_that_failed_is_marked_where_it_ended(tmp_path: Path) -> None:
    shown = made(tmp_path, [{"estimator": "a"}], failed=[(0, 1)])
    figure = draw("curves", shown)
    # 0.41 wanted at the end: at its third evaluation of five it is half-way from 0.5
    assert lines_of(figure.axes[0], style.FAILED) == [([20.0], [pytest.approx(0.455)])]
    assert "thin line to a cross: a run that failed" in caption(figure)
    assert "dotted" not in caption(figure)


def test_a_run_that_failed_behind_its_last_evaluation_is_marked_where_it_did(
    tmp_path: Path,
) -> None:
    shown = made(tmp_path, [{"estimator": "a"}], seeds=8, failed=[(0, 1), (0, 4), (0, 6)])
    (tmp_path / "run-0-1" / "metrics.csv").write_text("update,loss\n20,1\n27,1\n", "utf-8")
    for seed in (4, 6):  # they failed before they were evaluated again
        (tmp_path / f"run-0-{seed}" / "evals.csv").write_text("update,score\n0,0.5\n", "utf-8")
    figure = draw("curves", shown)
    crosses = sorted(lines_of(figure.axes[0], style.FAILED))
    assert crosses == [([0.0], [0.5]), ([0.0], [0.5]), ([27.0], [pytest.approx(0.455)])]
    assert "dotted from its last evaluation on" in caption(figure)
    parts = [xs for xs, _ in lines_of(figure.axes[0], "o")]
    assert parts == [[0], [0, 10, 20], [20, 30, 40]]  # a line to the end, and no lone dot
    assert {"n=6", "n=5"} <= set(written(figure))


def test_numbers_beside_lines_touch_no_marker(tmp_path: Path) -> None:
    shown = made(tmp_path, grid(2, 1), seeds=8, failed=[(0, 1), (0, 4), (1, 6)], points=4)
    figure = draw("curves", shown)
    renderer = FigureCanvasAgg(figure).get_renderer()
    axes = figure.axes[0]
    marks = [
        axes.transData.transform(point)
        for line in axes.lines
        if line.get_marker() not in ("None", None, "")
        for point in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]
    labels = [text for text in axes.texts if text.get_text().startswith("n=")]
    assert len(labels) == 2
    for label in labels:
        box = label.get_window_extent(renderer).padded(2)
        assert not any(box.contains(*mark) for mark in marks)


def test_updates_are_whole_numbers(tmp_path: Path) -> None:
    shown = made(tmp_path, [{"estimator": "a"}], points=2)
    ticks = draw("curves", shown).axes[0].get_xticks()
    assert all(float(tick).is_integer() for tick in ticks)


def test_a_failed_run_without_a_curve_is_counted(tmp_path: Path) -> None:
    shown = made(tmp_path, [{"estimator": "a"}, {"estimator": "b"}], failed=[(0, 1)])
    (tmp_path / "run-0-1" / "evals.csv").unlink()
    assert "1 run has no curve" in caption(draw("curves", shown))
    assert notes_of("curves", shown) == [f"there is no {tmp_path}/run-0-1/evals.csv"]


def test_a_cell_without_a_curve_is_named(tmp_path: Path) -> None:
    shown = made(tmp_path, [{"estimator": "a"}, {"estimator": "b"}], seeds=1)
    (tmp_path / "run-1-0" / "evals.csv").write_text("torn", "utf-8")
    assert caption(draw("curves", shown)).endswith("Not shown: b. addition")
    assert notes_of("curves", shown)[1] == "left out: b: it has no curve"


def test_the_caption_says_what_the_band_is(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    (tmp_path / "3").mkdir()
    texts = [
        caption(draw("curves", made(tmp_path / str(n), [{"estimator": "a"}], seeds=n)))
        for n in (1, 2, 3)
    ]
    assert texts[0] == "Mean over n=1 seed. addition; estimator a"
    assert texts[1] == "Mean over n=2 seeds; band: their range. addition; estimator a"
    assert texts[2].startswith("Mean over n=3 seeds; band: 95% t interval")


def test_names_stand_at_line_ends_and_in_a_legend_where_panels_share_them(tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    few = draw("curves", made(tmp_path / "few", grid(2, 2), seeds=2))
    assert not few.legends
    assert {"est0+loss0", "est1+loss1"} <= set(written(few))
    many = draw("curves", made(tmp_path, grid(6, 2), seeds=1))
    [legend] = many.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"est{n}" for n in range(6)]
    assert [axes.get_title("left") for axes in many.axes] == ["loss0", "loss1"]


# scores


def test_the_best_stands_first_and_failures_are_crosses_at_the_floor(six: list[Cell]) -> None:
    figure = draw("scores", six)
    # est0+loss1 has 0.50, 0.51, 0.52 and the floor 0: 0.3825, below the 0.415 of est0+loss0
    assert rows_of(figure) == [
        "est2+loss1",
        "est2+loss0",
        "est1+loss1",
        "est1+loss0",
        "est0+loss0",
        "est0+loss1",
    ]
    assert [values for values, _ in lines_of(figure.axes[0], style.FAILED)] == [[0.0]]
    # mean 1.53 / 4; sd of (0.50, 0.51, 0.52, 0) 0.2551; t(3) 3.182 * 0.2551 / 2 = 0.406
    assert "0.383* ± 0.406" in written(figure)
    assert "3/4" in written(figure)
    assert "task's floor" in caption(figure)


def test_the_start_is_a_line_where_all_began_alike(two: list[Cell], six: list[Cell]) -> None:
    assert "start" in written(draw("scores", two))


def test_less_is_better_turns_the_order_round(tmp_path: Path) -> None:
    shown = made(tmp_path, grid(3, 1))
    costs = cells([seed.record for cell in shown for seed in cell.seeds], metric("kl_nats"))
    assert rows_of(draw("scores", costs)) == ["est0", "est1", "est2"]
    assert rows_of(draw("scores", shown)) == ["est2", "est1", "est0"]


@pytest.mark.parametrize(("seeds", "text"), [(1, "0.400 n=1"), (2, "0.405 ± 0.064")])
def test_one_seed_has_no_interval(seeds: int, text: str, tmp_path: Path) -> None:
    # 0.40 and 0.41: t(1) 12.706 * 0.005 = 0.0635
    shown = made(tmp_path, [{"estimator": "a"}, {"estimator": "b"}], seeds=seeds)
    assert text in written(draw("scores", shown))


# matrix


def test_each_tile_says_its_number_and_what_failed(six: list[Cell]) -> None:
    figure = draw("matrix", six)
    found = written(figure)
    # 0.40 to 0.43: sd 0.01291, t(3) 3.182 * 0.01291 / 2 = 0.0205
    assert "0.415 ± 0.021" in found
    assert "0.383* ± 0.406\n1/4 failed" in found
    assert {"estimator", "loss", "est2", "loss1"} <= set(found)


def test_a_cell_that_was_not_run_is_hatched(six: list[Cell]) -> None:
    figure = draw("matrix", six[1:])
    assert "not run" in written(figure)
    assert sum(patch.get_hatch() is not None for patch in figure.axes[0].patches) == 1


def test_numbers_can_be_read_on_every_shade(tmp_path: Path) -> None:
    figure = draw("matrix", made(tmp_path, grid(5, 4), seeds=2))
    shades = [patch.get_facecolor()[:3] for patch in figure.axes[0].patches]
    inks = [text.get_color() for text in figure.axes[0].texts if "±" in text.get_text()]
    assert len(shades) == len(inks) == 20
    assert {"white", "black"} == set(inks)
    for shade, ink in zip(shades, inks, strict=True):
        low, high = sorted([style.luminance(shade), style.luminance(mpl.colors.to_rgb(ink))])
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_factors_can_be_chosen_and_the_others_make_tables(tmp_path: Path) -> None:
    labels = [cell | {"lr": lr} for cell in grid(2, 2) for lr in (0.1, 0.01)]
    shown = made(tmp_path, labels, seeds=1)
    figure = draw("matrix", shown, factors=("lr", "loss"))
    assert len(figure.axes) == 2
    assert {"lr", "est0: loss", "est1: loss", "0.01"} <= set(written(figure))


@pytest.mark.parametrize(
    ("factors", "error", "message"),
    [
        (("estimatr", None), UsageError, "unknown factor 'estimatr'; did you mean 'estimator'"),
        (("loss", "loss"), UsageError, "rows and columns are both loss"),
    ],
)
def test_a_wrong_factor_is_refused(
    factors: Any, error: type[Exception], message: str, six: list[Cell]
) -> None:
    with pytest.raises(error, match=message):
        draw("matrix", six, factors=factors)


def test_one_factor_makes_no_matrix(two: list[Cell]) -> None:
    with pytest.raises(NothingSelected, match="differ in estimator only: a matrix needs two"):
        draw("matrix", two)


# trade-off


def test_the_front_is_what_nothing_beats_in_both() -> None:
    # cost, worth: 1 is beaten by 0, 3 by 2; 4 ties with 2 in cost and is worth less
    points = [(1.0, 0.5), (2.0, 0.4), (3.0, 0.9), (4.0, 0.9), (3.0, 0.8)]
    assert front(points) == [0, 2]


def test_a_cell_with_failures_does_not_reach_the_front_on_its_survivors(tmp_path: Path) -> None:
    # the survivors of b score 0.5 at a KL of 0.2; with its failure at the floor it has 0.25
    shown = made(tmp_path, [{"estimator": "a"}, {"estimator": "b"}], seeds=2, failed=[(1, 1)])
    figure = draw("tradeoff", shown)
    steps = [line for line in figure.axes[0].lines if line.get_drawstyle() == "steps-post"]
    assert list(steps[0].get_ydata())[1:] == pytest.approx([0.405, 0.405])
    assert "1/2 failed" in written(figure)


def test_a_cell_without_kl_is_left_out_and_named(tmp_path: Path) -> None:
    shown = made(tmp_path, [{"estimator": "a"}, {"estimator": "b"}], seeds=1, failed=[(1, 0)])
    assert notes_of("tradeoff", shown) == ["left out: b: it has no KL"]
    assert caption(draw("tradeoff", shown)).endswith("Not shown: b. addition")


def test_kl_against_itself_is_no_trade_off(two: list[Cell]) -> None:
    costs = cells([seed.record for cell in two for seed in cell.seeds], metric("kl_nats"))
    with pytest.raises(NothingSelected, match="the KL against itself"):
        draw("tradeoff", costs)
