"""Tables: what a reader sees, to the letter."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from rlbench.errors import UsageError
from rlbench.grid.store import Store
from rlbench.report.cells.cell import cells
from rlbench.report.tables.table import table

if TYPE_CHECKING:
    from pathlib import Path


def show(out: Path, format: str = "simple", width: int | None = None, **more: bool) -> str:  # noqa: A002 - as in `table`
    return table(cells(Store(out).read()), format, width, **more)


def rows(text: str) -> list[list[str]]:
    """Cells of the rows of a simple table; two spaces part them."""
    body = text.split("\n\n", maxsplit=1)[0].splitlines()[2:]
    return [[part.strip() for part in line.split("  ") if part.strip()] for line in body]


def test_best_first_with_interval_in_fitting_digits(out: Path, write_run) -> None:
    for seed, (one, other) in enumerate([(0.81, 0.62), (0.84, 0.66), (0.87, 0.64)]):
        write_run(seed, one, estimator="gae")
        write_run(seed, other, estimator="rloo")
    # gae: sd 0.03 -> 4.302653 * 0.03 / sqrt(3) = 0.07452; rloo: sd 0.02 -> 0.04968: 3 and 3 places
    assert rows(show(out)) == [
        ["gae", "3/3", "0.500", "0.840", "0.075", "yes", "0.260", "0.400", "4.00", "11.0"],
        ["rloo", "3/3", "0.500", "0.640", "0.050", "0.260", "0.400", "4.00", "11.0"],
    ]


def test_order_follows_full_precision(out: Path, write_run) -> None:
    for seed, wiggle in enumerate((-0.1, 0.1)):
        write_run(seed, 0.84996 + wiggle, estimator="aaa")
        write_run(seed, 0.85004 + wiggle, estimator="zzz")
    found = rows(show(out))
    assert [row[0] for row in found] == ["zzz", "aaa"]
    assert [row[3] for row in found] == ["0.85", "0.85"]  # half width 0.9: two places at least


def test_ties_in_natural_order(out: Path, write_run) -> None:
    for name in ("run10", "run2", "run1"):
        write_run(0, 0.5, loss=name)
    assert [row[0] for row in rows(show(out))] == ["run1", "run2", "run10"]


def test_labels_are_printed_letter_for_letter(out: Path, write_run) -> None:
    names = ["1e5", "2e3", "42924e28", "12345678", "01.00", "10.00", "inf", "nan", "true", "null"]
    for name in names:
        write_run(0, 0.5, loss=name)
    assert sorted(row[0] for row in rows(show(out))) == sorted(names)


def test_failures_never_win_on_their_survivors(out: Path, write_run) -> None:
    write_run(0, 0.9, estimator="brittle")
    for seed in (1, 2):
        write_run(
            seed, None, estimator="brittle", status="diverged", error=("Diverged", "NaN loss")
        )
    for seed in range(3):
        write_run(seed, 0.78 + seed / 100, estimator="steady")
    text = show(out)
    first, second = rows(text)
    assert first[0] == "steady"
    assert second[:4] == ["brittle", "1/3", "0.500", "0.300*"]
    assert "the others alone: 0.900 (n=1)" in text
    assert "- seeds 1,2 diverged: Diverged: NaN loss" in text
    assert text.count("log.txt") == 1


def test_other_errors_of_a_cell_stay_apart(out: Path, write_run) -> None:
    for seed in range(12):
        write_run(seed, None, status="failed", error=("KeyError", "'x'"))
    write_run(12, None, status="failed", error=("KeyError", "'y'"))
    text = " ".join(show(out).split())
    assert "- seeds 0-11 failed: KeyError: 'x' (seed 0:" in text
    assert "- seed 12 failed: KeyError: 'y' (" in text
    assert text.count("log.txt") == 2


def test_failed_and_not_run_have_different_marks(out: Path, write_run) -> None:
    for seed in range(3):
        write_run(seed, None, estimator="aa", status="failed", error=("E", "boom"))
        write_run(seed, None, estimator="bb", run=False)
        write_run(seed, 0.5 + seed / 10, estimator="cc")
    good, failed, absent = rows(show(out))
    assert good[0] == "cc"
    assert failed == ["aa", "0/3", "-", "0.00*", "failed", "-", "-", "-", "-"]
    assert absent == ["bb", "0/0", "-", "not run", "-", "?", "-", "-", "-", "-"]
    assert "Not run: bb, seeds 0-2." in show(out)


def test_one_seed_that_did_not_run_is_a_seed(out: Path, write_run) -> None:
    write_run(0, 0.5, estimator="cc")
    write_run(0, None, estimator="bb", run=False)
    assert "Not run: bb, seed 0." in show(out)


def test_one_seed_and_equal_seeds_have_no_interval(out: Path, write_run) -> None:
    write_run(0, 0.4, estimator="one")
    for seed in range(3):
        write_run(seed, 0.0, estimator="zero")
    text = show(out)
    one, zero = rows(text)
    assert one[3:5] == ["0.400", "n=1"]
    assert zero[3:5] == ["0.000", "all equal"]
    assert "nan" not in text
    assert "Rows have different seeds" in text
    assert "zero: 0-2; 0 in one" in " ".join(text.split())


def test_identical_seeds_are_pointed_out(out: Path, write_run) -> None:
    for seed in range(2):
        write_run(seed, 0.5, result={"kl": 0.125})
    assert "seeds 0,1 gave the same numbers" in show(out)


def test_mixed_processors_and_versions_are_named(out: Path, write_run) -> None:
    write_run(0, 0.5)
    write_run(1, 0.6, result={"provenance": {"cpu": "Other CPU", "threads": 1}})
    write_run(2, 0.7, spec={"torch": "2.12.0+cpu"})
    text = show(out)
    assert "different CPUs (Other CPU; Some CPU)" in text
    assert "thread counts" not in text
    assert "2.12.0+cpu" in text
    assert "never averaged" in text


def test_usual_table_fits_80_columns(out: Path, write_run) -> None:
    for seed in range(5):
        for estimator in ("gae", "group", "group_gae", "rloo"):
            for loss in ("clip", "pg"):
                write_run(seed, 0.8 + seed / 100, estimator=estimator, loss=loss)
    assert max(map(len, show(out).splitlines())) <= 80


def test_too_narrow_leaves_out_columns_and_says_so(out: Path, write_run) -> None:
    write_run(0, 0.5, loss="x" * 25)
    write_run(0, 0.4)
    text = show(out, width=62)  # 25 + n, start, score, interval, KL
    assert "x" * 25 in text
    assert "Left out for width: s, length, entropy (--max-width 0" in text
    assert "entropy" not in text.splitlines()[0]
    assert "entropy" in show(out, width=300).splitlines()[0]


def test_labels_too_wide_together_are_folded_and_none_is_cut(out: Path, write_run) -> None:
    for number in range(3):
        settings = {"lr": 0.001 * (number + 1), "entropy_coef": number / 10, "microbatches": number}
        write_run(0, 0.5, estimator=f"gae:lam=0.{number}", loss="x" * 150, settings=settings)
        write_run(0, 0.4, loss="clip:eps=0.2,eps_high=0.28", settings=settings)
    wide = show(out).split("\n\n")[0].splitlines()
    assert max(map(len, wide)) > 80
    for width in (80, 60, 50):
        body, below = show(out, width=width).split("\n\n")
        lines = body.splitlines()
        assert max(map(len, lines)) <= width
        assert lines[0].split()[:2] == ["cell", "n"]
        column = lines[1].index(" ")
        names = "".join(line[:column].strip() for line in lines[2:])
        assert names.count("x") == 450
        assert names.replace(" ", "").count("microbatches=2,lr=0.003,entropy_coef=0.2") == 2
        assert max(map(len, below.splitlines())) <= 80


def test_the_legend_explains_only_columns_that_are_there(out: Path, write_run) -> None:
    write_run(0, 0.5, loss="x" * 25)
    write_run(0, 0.4)
    whole = " ".join(show(out).split())
    assert "(start: before training)" in whole
    assert "length (tokens)" in whole
    narrow = " ".join(show(out, width=55).split())
    assert "start, " not in narrow.split("Left out")[0]
    assert "(start: before training)" not in narrow
    assert "length (tokens)" not in narrow
    assert "KL (nats a completion, from the base policy): mean over the seeds" in narrow


@pytest.mark.parametrize("format", ["simple", "github", "pipe", "latex", "html", "grid", "tsv"])
def test_bars_and_line_breaks_stay_in_their_cell(out: Path, write_run, format: str) -> None:  # noqa: A002 - as in `table`
    write_run(0, 0.5, loss="a|b:path=80,443")
    write_run(0, 0.4, loss="a\nb_c & 50%")
    text = show(out, format)
    if format in ("github", "pipe"):
        lines = [line for line in text.splitlines() if line.startswith("|")]
        assert len(lines) == 4
        assert len({line.replace(r"\|", "").count("|") for line in lines}) == 1
        assert r"a\|b" in text
    if format == "latex":
        assert r"b\_c \& 50\%" in text
    if format == "tsv":
        assert len(list(csv.reader(io.StringIO(text), delimiter="\t"))) == 3
    else:
        assert "a\\nb" in text or r"a\textbackslash{}nb" in text


def test_csv_and_json_keep_full_precision(out: Path, write_run) -> None:
    scores = [0.123456789012345, 0.2345678901234567]
    for seed, score in enumerate(scores):
        write_run(seed, score)
    mean = sum(scores) / 2
    (row,) = csv.DictReader(io.StringIO(show(out, "csv")))
    assert float(row["score"]) == mean
    assert row["seeds"] == "0 1"
    assert (row["estimator"], row["reward"], row["ok"], row["tried"]) == ("group", "true", "2", "2")
    document = json.loads(show(out, "json"))
    assert document["rows"][0]["score"] == mean
    assert document["rows"][0]["seeds"] == [0, 1]
    assert document["shared"]["loss"] == "clip"


def test_caption_names_what_rows_share(out: Path, write_run) -> None:
    for estimator in ("gae", "rloo"):
        write_run(0, 0.5, estimator=estimator, settings={"updates": 20, "eval_prompts": 2000})
    text = show(out)
    assert "2,000 held-out prompts" in text
    assert "Student t" in text
    assert "All rows: loss clip, kl none, task addition, reward true, model lstm" in text
    assert "updates=20" in text
    assert "prompts=32" not in text


def test_ascii_only(out: Path, write_run) -> None:
    write_run(0, 0.5)
    assert show(out, ascii_only=True).isascii()
    assert "±" in show(out)


def test_unknown_format_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'github'"):
        table([], "gihub")


def test_a_killed_seed_says_why_and_that_it_runs_again(out: Path, write_run) -> None:
    write_run(0, 0.5)
    write_run(1, None, status="killed", error=("Lost", "ended by signal 9 (SIGKILL)"))
    text = " ".join(show(out).split())
    assert "seed 1 killed: Lost: ended by signal 9 (SIGKILL); the same command runs it" in text
