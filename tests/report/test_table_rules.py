"""Rules of tables that users of other tools found broken: places, order, marks, rows, bytes."""

from __future__ import annotations

import csv
import io
import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlbench.report.cells.cell import cells
from rlbench.report.cells.metric import metric
from rlbench.report.tables.table import table
from rlbench.report.text import layout
from rlbench.report.text.folding import paragraph

from .made_up import record, records

if TYPE_CHECKING:
    from rlbench.grid.store import Record


def rows(text: str) -> list[list[str]]:
    """Texts of the rows of a simple table; two spaces part them."""
    body = text.split("\n\n", maxsplit=1)[0].splitlines()[2:]
    return [[part.strip() for part in line.split("  ") if part.strip()] for line in body]


def show(made: list[Record], format_: str = "simple", **more: object) -> str:
    return table(cells(made), format_, **more)  # type: ignore[arg-type]  # as tests name them


def column(text: str, name: str) -> list[str]:
    header, _, *body = text.split("\n\n", maxsplit=1)[0].splitlines()
    end = header.index(name) + len(name)
    return [line[:end].split()[-1] for line in body]


def test_a_column_has_one_number_of_places_and_no_exponents() -> None:
    large = {"a": [123456.7, 123458.9], "b": [1234567.8, 1234569.0]}
    shown = column(show(records(large)), "score")
    # half widths: t(1) = 12.7062 times 1.1 = 14 and 0.6 times 12.7 = 7.6, the lower of two: 1 place
    assert shown == ["1234568.4", "123457.8"]
    small = {"a": [0.50, 0.50, 0.50], "b": [0.510, 0.511, 0.512]}
    assert column(show(records(small)), "score") == ["0.5110", "0.5000"]


def test_places_are_those_that_the_interval_justifies() -> None:
    def half(scores: list[float]) -> list[str]:
        return rows(show(records({"a": scores})))[0][4:6]

    assert half([0.6, 0.7, 0.8]) == ["0.70", "0.25"]  # t(2) 4.302653 * 0.1 / sqrt(3) = 0.2484
    assert half([0.6, 0.8]) == ["0.70", "1.27"]  # t(1) 12.7062 * 0.1: not hidden
    assert half([60.0, 70.0, 80.0]) == ["70", "25"]
    assert half([6000.0, 7000.0, 8000.0]) == ["7000", "2484"]
    assert half([0.60001, 0.60002, 0.60003]) == ["0.6000", "<0.0001"]


def test_order_follows_all_digits_though_rows_look_equal() -> None:
    made = records({"a": [0.84896, 0.85096], "z": [0.84904, 0.85104]})
    text = show(made)
    assert [row[0] for row in rows(text)] == ["z", "a"]
    assert column(text, "score") == ["0.850", "0.850"]
    data = list(csv.DictReader(io.StringIO(show(made, "csv"))))
    assert float(data[0]["score"]) == (0.84904 + 0.85104) / 2
    assert float(data[0]["score"]) > float(data[1]["score"])


def test_a_failed_and_a_missing_cell_have_marks_of_their_own() -> None:
    made = records({"good": [0.5, 0.6], "failed": [None, None]})
    absent = record(0, 0.5, estimator="absent")
    text = show([*made, replace(absent, result=None)])
    assert [row[:4] for row in rows(text)] == [
        ["good", "2/2", "0.55", "0.64"],
        ["failed", "0/2", "0.00*", "failed"],
        ["absent", "0/0", "not run", "-"],
    ]
    assert "nan" not in text.lower().replace("loss is nan", "")
    assert "None" not in text
    document = json.loads(show([*made, replace(absent, result=None)], "json"))
    assert [row["score"] for row in document["rows"]] == [0.55, 0.0, None]
    assert [row["not_run"] for row in document["rows"]] == [0, 0, 1]


def test_survivors_never_win_and_the_note_has_a_rate() -> None:
    text = show(records({"x": [0.9, None, None], "y": [0.8, 0.8, 0.8]}))
    assert [row[:4] for row in rows(text)] == [
        ["y", "3/3", "0.80", "all equal"],
        ["x", "1/3", "0.30*", "1.29"],
    ]
    assert "yes" not in rows(text)[1]
    flat = " ".join(text.split())
    assert "Failure rate with Jeffreys' 95% interval: x 0.67 [0.18, 0.96]." in flat
    assert "x: 2 of 3 failed; the others alone: 0.900 (n=1)." in flat
    assert "Failure rate" not in show(records({"y": [0.8, 0.8]}))


def test_single_seeds_have_no_interval_anywhere() -> None:
    text = show(records({"a": [0.9], "b": [0.5]}), iqm=True)
    assert [row[1:6] for row in rows(text)] == [
        ["1/1", "0.900", "n=1", "-", "-"],
        ["1/1", "0.500", "n=1", "-", "-"],
    ]
    assert "nan" not in text
    document = json.loads(show(records({"a": [0.9], "b": [0.5]}), "json", iqm=True))
    first = document["rows"][0]
    assert [first[name] for name in ("score", "score_low", "iqm", "in_best_set")] == [
        *(0.9, None, None, None)
    ]


def test_no_spread_is_no_certainty() -> None:
    text = show(records({"zero": [0.0] * 5}), iqm=True)
    assert rows(text)[0][4:8] == ["0.000", "all equal", "0.000", "all equal"]
    (row,) = json.loads(show(records({"zero": [0.0] * 5}), "json", iqm=True))["rows"]
    assert (row["score_low"], row["iqm_low"]) == (None, None)


def test_unequal_seeds_are_warned_of() -> None:
    text = show(records({"a": [0.5, 0.6, 0.7, 0.8, 0.9], "b": [0.1, 0.2, 0.3]}))
    assert "Rows have different seeds" in text
    assert "b: 0-2; 0-4 in a." in " ".join(text.split())


def test_each_metric_has_its_direction_and_what_is_missing_comes_last() -> None:
    made = [
        record(seed, 0.5, estimator=name, result={"kl": kl})
        for name, kl in (("run10", 0.3), ("run2", 0.3), ("none", None), ("far", 0.9))
        for seed in range(2)
    ]
    by_kl = table(cells(made, metric("kl_nats")))
    assert [row[0] for row in rows(by_kl)] == ["run2", "run10", "far", "none"]
    assert "kl_nats: at the end; less is better" in by_kl
    turned = table(cells(made, metric("kl_nats", "higher")))
    assert [row[0] for row in rows(turned)] == ["far", "run2", "run10", "none"]
    assert "more is better" in turned
    assert rows(by_kl)[-1][2] == "-"
    assert "score" in by_kl.splitlines()[0]
    assert "KL" not in by_kl.splitlines()[0]


def test_another_metric_has_columns_of_its_own_in_data() -> None:
    made = records({"a": [0.5, 0.7], "b": [0.2, 0.4]})
    (first, _) = json.loads(table(cells(made, metric("kl_nats")), "json"))["rows"]
    assert (first["value"], first["kl_nats"]) == (pytest.approx(0.21),) * 2
    assert (first["score"], first["score_low"]) == (pytest.approx(0.6), None)
    assert first["higher_is_better"] is False


def test_lower_scores_from_elsewhere_are_better_where_they_say_so() -> None:
    made = records({"a": [3.0, 4.0], "b": [1.0, 2.0]}, spec={"direction": "lower"})
    text = show(made)
    assert [row[0] for row in rows(text)] == ["b", "a"]
    assert "less is better" in " ".join(text.split())


def test_columns_that_nobody_fills_are_left_out_with_their_explanation() -> None:
    made = [
        record(s, 0.5 + s / 10, result={"kl": None, "wall_s": None, "reward": None})
        for s in range(3)
    ]
    text = show(made)
    assert text.splitlines()[0].split() == ["estimator", "loss", "kl", "n", "score", "±95%"]
    assert "KL (nats" not in text
    assert "seconds" not in text


def test_iqm_is_exact_and_shown_from_five_seeds_on() -> None:
    from rlbench.stats import iqm_interval

    scores = [0.1, 0.5, 0.6, 0.7, 0.9]
    text = show(records({"five": scores, "four": [0.2, 0.4, 0.6, 0.8]}), iqm=True)
    found = iqm_interval(scores)
    five, four = rows(text)
    assert five[5:7] == [f"{found.mid:.2f}", f"[{found.low:.2f}, {found.high:.2f}]"]
    assert found.mid == pytest.approx(0.6)  # 0.5 0.6 0.7
    assert four[5:7] == ["-", "-"]
    assert "exact bootstrap, expanded percentile" in " ".join(text.split())
    assert "IQM" not in show(records({"five": scores}))


def test_numbers_of_one_value_are_one_row_and_whole_numbers_stay_whole() -> None:
    made = [
        record(seed, 0.5 + seed / 10, settings={"group_size": size})
        for seed, size in enumerate((4, 4.0, "4"))
    ]
    (row,) = csv.DictReader(io.StringIO(show(made, "csv")))
    assert (row["group_size"], row["seeds"], row["tried"]) == ("4", "0 1 2", "3")
    gap = [record(0, 0.5), record(1, 0.7, estimator="b")]
    data = list(csv.DictReader(io.StringIO(show(gap, "csv"))))
    assert [row["seeds"] for row in data] == ["1", "0"]


def test_tasks_stand_together_in_natural_order_each_with_its_own_places() -> None:
    made = records({"a": [0.5, 0.6], "b": [0.7, 0.9]}, task="t10")
    made += records({"a": [500.0, 600.0], "b": [700.0, 900.0]}, task="t2")
    text = show(made)
    assert [row[:4] for row in rows(text)] == [
        ["t2", "b", "2/2", "800"],
        ["t2", "a", "2/2", "550"],
        ["t10", "b", "2/2", "0.80"],
        ["t10", "a", "2/2", "0.55"],
    ]
    assert text.splitlines()[0].split()[:2] == ["task", "estimator"]


@pytest.mark.parametrize("format_", ["simple", "github", "latex", "html", "csv", "json"])
def test_numbers_at_the_end_of_the_scale_and_no_rows_are_no_crash(format_: str) -> None:
    made = records({"a": [1.7e308, 1.6e308], "b": [-1.7e308, -1.75e308], "c": [1e-300, 0.5]})
    assert show(made, format_, iqm=True)
    assert "score" in table([], format_) or format_ == "csv"


def test_notes_never_move_the_cursor() -> None:
    made = records({"a": [0.5, 0.6, None]})
    made[-1].result["error"] = {"type": "E", "message": "\x1b[31mred\tend"}
    for format_ in ("simple", "github", "latex", "html"):
        text = show(made, format_)
        assert "\x1b" not in text
        assert "\t" not in text


@pytest.mark.parametrize("format_", ["simple", "github", "latex", "html", "csv", "json"])
def test_no_order_of_runs_moves_a_byte(format_: str) -> None:
    made = records({"a": [0.5, 0.6, None, 0.8], "b": [0.55, 0.7, 0.75], "c": [0.1]})
    made += records({"a": [0.3, 0.4], "b": [0.9, 0.8]}, task="sort")
    made += [record(0, 0.44, estimator="a", settings={"lr": 0.5}, spec={"torch": "2.12.0"})]
    twice = record(1, 0.33, estimator="a")
    made += [replace(twice, run_id=f"again-{twice.run_id}")]
    # what was made elsewhere says less of itself, and its settings come in any order
    for number, settings in enumerate(({"x": 1, "y": 2}, {"y": 3, "x": 4})):
        elsewhere = record(0, 0.6, estimator="b", spec={"imported": True, "settings": settings})
        made += [replace(elsewhere, run_id=f"elsewhere-{number}")]
    random.Random(0).shuffle(made)
    turns = [made[number:] + made[:number] for number in range(len(made))]  # each comes first once
    assert len({table(cells(turn), format_, iqm=True) for turn in turns}) == 1


def test_no_missing_value_ever_improves_a_row() -> None:
    """Whichever seeds fail or lose their number: the mean does not rise, nor does the place."""
    generator = random.Random(7)
    for _ in range(50):
        scores = {name: [round(generator.random(), 2) for _ in range(4)] for name in "abc"}
        whole = show(records(scores))
        place = [row[0] for row in rows(whole)].index("a")
        spoilt: list[float | None] = [
            None if generator.random() < 0.5 else score for score in scores["a"]
        ]
        after = show(records(scores | {"a": spoilt}))
        assert [row[0] for row in rows(after)].index("a") >= place
        means = [
            next(row["score"] for row in json.loads(text)["rows"] if row["estimator"] == "a")
            for text in (
                show(records(scores), "json"),
                show(records(scores | {"a": spoilt}), "json"),
            )
        ]
        assert means[1] <= means[0]


def test_an_outlier_does_not_take_the_digits_of_the_others() -> None:
    assert layout.places_by_size([0.12, 0.31, 0.25, 27.4]) == 3
    assert layout.places_by_size([12.0, 15.5, 0.001]) == 1
    assert layout.places_by_size([0.0, 0.0, 250.0]) == 0  # what is 0 needs no digits
    assert layout.places_by_size([0.0]) == 2


def test_prose_breaks_the_name_of_a_cell_only_where_it_is_wider_than_a_line() -> None:
    name = "group+" + "+".join(f"setting_{number}={number}" for number in range(12))
    lines = paragraph(f"Against {name}: 3 worse. Then group+clip follows.", 40)
    assert max(map(len, lines)) <= 40
    assert "".join(line.strip() for line in lines).startswith(f"Against {name}: 3 worse.")
    assert "group+clip" in " ".join(lines)  # what fits is never broken
    assert paragraph("a b  c", 40) == ["a b c"]
    # wide letters count twice, as a terminal shows them
    assert paragraph("優勢 推定 関数", 10) == ["優勢 推定", "  関数"]
    assert paragraph("x" * 50, 40) == ["x" * 50]  # nothing is cut
