"""One page of results: what it says, in which order, and that no text in it can do anything."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rlbench.errors import RlbenchError, UsageError
from rlbench.grid.store import Store
from rlbench.report.cells.cell import cells
from rlbench.report.compare.comparison import compare, in_order
from rlbench.report.page import caveats, factors, failures, output, pictures, samples, table
from rlbench.report.page.page import Page, build
from rlbench.report.page.render import render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.grid.store import Record

EVIL = 'x</script><script>alert(1)</script><img src=//e.org/x onerror="a()">&amp;\'"\u202e\x1b[2J'
VOID = {"meta", "br", "img", "link", "input"}


class Outline(HTMLParser):
    """Tags, attributes, texts and headings of a page; complains of what is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.append((self.open[-1], data))

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)

    def words(self) -> str:
        shown = (text for tag, text in self.texts if tag not in ("style", "script"))
        return " ".join(" ".join(shown).split())


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take most of the time, and have tests of their own."""
    monkeypatch.setattr(pictures, "draw", lambda *_: pictures.Pictures())


@pytest.fixture
def few_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw those that are quick to draw."""
    monkeypatch.setattr("rlbench.report.plots.NAMES", ("scores", "improvement"))


def read(out: Path) -> list[Record]:
    return Store(out).read()


def page_of(records: Sequence[Record], baseline: str | None = None, **more: Any) -> Page:
    """Build a page; the baseline is named by its estimator."""
    shown = cells(records)
    made = None
    if baseline is not None:
        (chosen,) = [cell for cell in shown if cell.columns["estimator"] == baseline]
        made = compare(in_order(shown), chosen)
    odd = [record for record in records if record.problem]
    return build(shown, title="mine", comparison=made, unreadable=odd, **more)


def words(page: Page) -> str:
    return Outline(render(page)).words()


def write_cells(write_run: Any, **scores: Sequence[float | None]) -> None:
    """Write the runs of several estimators at seeds 0, 1, 2, ...; None is a failure."""
    for estimator, values in scores.items():
        for seed, score in enumerate(values):
            if score is None:
                error = ("ValueError", f"no number at {seed}")
                write_run(seed, None, status="failed", error=error, estimator=estimator)
            else:
                write_run(seed, score, estimator=estimator)


# the answer


@pytest.mark.usefixtures("no_figures")
def test_one_comparison_is_answered_with_its_numbers(write_run: Any, out: Path) -> None:
    # differences 0.10, 0.12, 0.11, 0.09, 0.08: mean 0.10, sd 0.0158, t = 14.1, p = 0.00015
    # interval 0.10 -+ 2.776 * 0.0158 / sqrt(5) = 0.080 to 0.120
    write_cells(write_run, old=[0.5, 0.52, 0.54, 0.5, 0.51], new=[0.6, 0.64, 0.65, 0.59, 0.59])
    page = page_of(read(out), "old")
    assert page.headline.sentence == "new is better than old."
    (claim,) = page.headline.claims
    assert (claim.name, claim.says, claim.tone) == ("new", "is better", "better")
    numbers = "score +0.100 (95% interval +0.080 to +0.120, p <0.001, 5 pairs)"
    assert claim.because == numbers
    assert f"new is better : {numbers}" in words(page)


@pytest.mark.usefixtures("no_figures")
def test_several_verdicts_are_counted_and_what_is_decided_comes_first(
    write_run: Any, out: Path
) -> None:
    write_cells(
        write_run,
        base=[0.5, 0.6, 0.5, 0.6, 0.55],
        far=[0.1, 0.21, 0.1, 0.2, 0.15],
        near=[0.3, 0.41, 0.3, 0.4, 0.35],
        open=[0.4, 0.75, 0.45, 0.55, 0.6],
    )
    page = page_of(read(out), "base")
    assert page.headline.sentence == (
        "Of the 3 others, none is better than base, 2 are worse and 1 is undecided."
    )
    assert [claim.name for claim in page.headline.claims] == ["far", "near", "open"]
    assert re.fullmatch(
        r"About \d+ more seeds would find a difference of 0\.05\.",
        page.headline.claims[-1].next_step,
    )
    assert "all 3 comparisons together" in words(page)


@pytest.mark.usefixtures("no_figures")
def test_on_a_scale_that_nobody_knows_a_margin_is_asked_for_once(write_run: Any, out: Path) -> None:
    write_cells(write_run, base=[10.0, 20.0], a=[15.0, 12.0], b=[30.0, 9.0])
    page = page_of(read(out), "base")
    assert {claim.next_step for claim in page.headline.claims} == {""}
    assert words(page).count("With --margin, the page says how many more seeds") == 1


@pytest.mark.usefixtures("no_figures")
def test_a_claim_says_that_failures_are_in_it(write_run: Any, out: Path) -> None:
    write_cells(write_run, base=[0.5, 0.6, 0.5], shaky=[0.5, None, None])
    (claim,) = page_of(read(out), "base").headline.claims
    assert "3 pairs, of which 2 with a failed run, at the floor" in claim.because


@pytest.mark.usefixtures("no_figures")
def test_without_a_baseline_the_best_row_is_not_made_one(write_run: Any, out: Path) -> None:
    write_cells(write_run, a=[0.9, 0.8, 0.85], b=[0.5, 0.6, 0.55], c=[0.5, 0.61, 0.53])
    page = page_of(read(out), folder="results/x")
    assert page.verdicts is None
    assert page.headline.claims == ()
    assert page.headline.sentence.startswith("The best mean is that of a: score 0.85")
    assert page.headline.try_baselines == ("a", "b", "c")
    text = words(page)
    assert "chosen after looking at the results" in text
    assert "rlbench report results/x --baseline CELL" in text


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        # t interval: 0.6 -+ 4.303 * 0.1 / sqrt(3) = 0.352 to 0.848
        ({"a": [0.5, 0.6, 0.7]}, "One cell, a+clip+none: score 0.60 (95% interval 0.35"),
        ({"a": [0.5]}, "One cell, a+clip+none: score 0.500 (1 seed, no interval)."),
        ({"a": [None, None]}, "All 2 runs failed: there is nothing to compare."),
        ({"a": [None]}, "The one run failed: there is nothing to compare."),
    ],
)
def test_what_cannot_be_compared_is_said(
    scores: dict[str, list[float | None]], sentence: str, write_run: Any, out: Path
) -> None:
    write_cells(write_run, **scores)
    page = page_of(read(out))
    assert page.headline.sentence.startswith(sentence)
    assert sentence in words(page)


@pytest.mark.usefixtures("no_figures")
def test_nothing_has_run_yet(write_run: Any, out: Path) -> None:
    write_run(0, None, run=False)
    page = page_of(read(out))
    assert page.headline.sentence == "No run has come to its end yet."
    assert "not run" in words(page)


@pytest.mark.usefixtures("no_figures")
def test_two_tasks_are_told_apart(write_run: Any, out: Path) -> None:
    for task in ("addition", "sort"):
        for seed in range(3):
            write_run(seed, 0.5 + seed / 10, estimator="a", task=task)
            write_run(seed, 0.8 + seed / 20, estimator="b", task=task)
    shown = in_order(cells(read(out)))
    baselines = {c.columns["task"]: c for c in shown if c.columns["estimator"] == "a"}
    page = build(shown, title="x", comparison=compare(shown, baselines))
    assert "than a (each task has its own)" in page.headline.sentence
    assert sorted(claim.name for claim in page.headline.claims) == ["addition+b", "sort+b"]
    assert page.summary == "12 runs in 4 cells, 3 seeds each, 2 tasks"


# tables


@pytest.mark.usefixtures("no_figures")
def test_rows_are_sorted_by_all_digits(write_run: Any, out: Path) -> None:
    # both read 0.850, and are not equal
    write_cells(write_run, a=[0.84996, 0.84996], b=[0.85004, 0.85004])
    page = page_of(read(out))
    place = [heading.text for heading in page.scores.headings].index("score")
    entries = [row[place] for row in page.scores.rows]
    assert [entry.text for entry in entries] == ["0.850", "0.850"]
    assert [float(entry.key) for entry in entries] == [0.85004, 0.84996]


def test_names_are_sorted_naturally() -> None:
    entries = table.by_name(["x10", "x2", "1e-05", "0.5", "2e3", "x2"])
    ordered = [entry.text for entry in sorted(entries, key=lambda entry: int(entry.key))]
    assert ordered == ["1e-05", "0.5", "2e3", "x2", "x2", "x10"]


@pytest.mark.usefixtures("no_figures")
def test_a_long_table_shows_its_best_rows_and_says_so(
    write_run: Any, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlbench.report.page.table.MOST_ROWS", 2)
    monkeypatch.setattr("rlbench.report.page.score_table.MOST_ROWS", 2)
    write_cells(write_run, a=[0.9, 0.8], b=[0.6, 0.7], c=[0.1, 0.2])
    page = page_of(read(out))
    assert [row[0].text for row in page.scores.rows] == ["a", "b"]
    assert page.scores.cut.startswith("These are the first 2 of 3 cells")
    assert page.scores.cut in words(page)


@pytest.mark.usefixtures("no_figures")
def test_a_verdict_stands_beside_its_word(write_run: Any, out: Path) -> None:
    write_cells(write_run, base=[0.5, 0.6, 0.5, 0.6], bad=[0.1, 0.21, 0.1, 0.2])
    page = page_of(read(out), "base")
    assert page.verdicts is not None
    place = [heading.text for heading in page.verdicts.headings].index("verdict")
    assert [row[place].text for row in page.verdicts.rows] == ["baseline", "- worse"]
    # the family of comparisons with a baseline is the only one on the page
    assert "best" not in [heading.text for heading in page.scores.headings]


# what went wrong


@pytest.mark.usefixtures("no_figures")
def test_a_failure_has_its_error_place_log_and_command(write_run: Any, out: Path) -> None:
    write_run(0, 0.5, estimator="a")
    where = {"type": "ValueError", "message": "it broke\nbadly", "where": "my.py:3 in loss"}
    folder = write_run(
        7,
        None,
        status="failed",
        estimator="gae:lam=0.9",
        settings={"lr": 0.01},
        result={"error": where},
    )
    log = "".join(f"line {n}\n" for n in range(50))
    (folder / "log.txt").write_text(log, encoding="utf-8")
    (failure,) = page_of(read(out)).failures.detailed
    assert failure.name == "gae:lam=0.9+lr=0.01"
    assert (failure.seed, failure.status, failure.error) == (7, "failed", "ValueError: it broke")
    assert failure.where == "my.py:3 in loss"
    assert failure.log[-1] == "line 49"
    assert len(failure.log) == 12
    assert failure.command.startswith("rlbench run -e gae:lam=0.9 -s 7 --set lr=0.01 -o again-")


def test_each_way_of_failing_is_shown_before_there_are_repeats(
    write_run: Any, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "DETAILED", 3)
    for seed in range(4):
        write_run(seed, None, status="failed", error=("A", "often"), estimator="a")
    write_run(0, None, status="timeout", error=("B", "once"), estimator="b")
    shown = in_order(cells(read(out)))
    found = failures.collect(shown, ["estimator"])
    assert found.count == found.tried == 5
    assert [(one.name, one.seed) for one in found.detailed] == [("a", 0), ("a", 1), ("b", 0)]
    (group,) = found.groups
    assert (group.name, group.seeds, group.error) == ("a", "2,3", "A: often")


def test_what_lies_in_the_place_of_a_log_does_not_hang(write_run: Any, out: Path) -> None:
    folder = write_run(0, None, status="failed", error=("A", "x"))
    os.mkfifo(folder / "log.txt")
    other = write_run(1, None, status="failed", error=("A", "x"))
    (other / "log.txt").mkdir()
    found = failures.collect(cells(read(out)), ["estimator"])
    assert [failure.log for failure in found.detailed] == [(), ()]


# samples


def sample(update: int, prompt: str, greedy: str, score: float | None, sampled: str = "s") -> str:
    entry = {"update": update, "prompt": prompt, "greedy": greedy, "sampled": sampled}
    return json.dumps(entry | {"score": score})


def test_samples_are_those_of_the_middle_seed(write_run: Any, out: Path) -> None:
    for seed, score in enumerate([0.9, 0.1, 0.6, 0.4]):  # the middle two: 0.4 and 0.6
        folder = write_run(seed, score)
        lines = [
            sample(0, "1+1=", f"seed {seed}", 0.0),
            sample(25, "1+1=", "2", 1.0, sampled="2"),
            sample(25, "2+2=", "5", 0.5),
            sample(25, "3+3=", "?", None),
            "[1, 2]",
            '{"update": 25, "prom',
        ]
        (folder / "samples.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (shown,) = samples.collect(cells(read(out)), ["estimator"]).of_cells
    assert (shown.name, shown.seed, shown.value) == ("group", 3, "score 0.400")
    assert shown.updates == (0, 25)
    (prompt, (first, last)), (_, (_, half)), (_, (nothing, unscored)) = shown.rows
    assert (prompt, nothing) == ("1+1=", None)
    assert first == samples.Answer(text="seed 3", sampled="s", mark="wrong", tone="worse")
    assert last == samples.Answer(text="2", sampled="", mark="right", tone="better")
    assert half is not None
    assert half.mark == "0.50"
    assert unscored is not None
    assert unscored.mark == "not scored"


def test_many_evaluations_are_thinned_evenly(write_run: Any, out: Path) -> None:
    folder = write_run(0, 0.5)
    lines = [sample(10 * n, "p" * 1000, "g", 1.0) for n in range(101)]
    (folder / "samples.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (shown,) = samples.collect(cells(read(out)), ["estimator"]).of_cells
    assert shown.updates == (0, 200, 400, 600, 800, 1000)
    assert shown.rows[0][0].endswith("... (840 more letters)")  # of 1,000, 160 are shown


@pytest.mark.parametrize("content", ["", "{}", "null\n", '{"update": "1", "prompt": "p"}', "\xff"])
def test_samples_that_are_none_are_left_out(content: str, write_run: Any, out: Path) -> None:
    (write_run(0, 0.5) / "samples.jsonl").write_bytes(content.encode("latin-1"))
    assert samples.collect(cells(read(out)), ["estimator"]).without == 1


# caveats


def caveats_of(out: Path, baseline: str | None = None) -> str:
    return "\n".join(page_of(read(out), baseline).caveats)


@pytest.mark.usefixtures("no_figures")
def test_only_what_applies_is_a_caveat(write_run: Any, out: Path) -> None:
    write_cells(write_run, a=[0.6 + n / 50 for n in range(8)], b=[0.9 - n / 60 for n in range(8)])
    assert page_of(read(out)).caveats == ()
    assert "Nothing in these results gives a reason for one." in words(page_of(read(out)))


@pytest.mark.usefixtures("no_figures")
def test_few_pairs_and_equal_tuning_are_caveats_of_a_comparison(write_run: Any, out: Path) -> None:
    write_cells(write_run, a=[0.6, 0.7, 0.65], b=[0.8, 0.9, 0.7])
    page = page_of(read(out), "a")
    text = "\n".join(page.caveats)
    assert "3 pairs of seeds are few" in text
    assert "p = 0.25" in text  # 2 ** (1 - 3)
    assert text.count("Equal settings are not equal tuning") == 1
    assert page.verdicts is not None
    assert "Equal settings" not in " ".join(page.verdicts.below)


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"provenance": {"git": {"commit": "abc", "dirty": True}}}, "uncommitted changes"),
        ({"score_start": 0.99}, "b ends no better than before training"),
        ({"provenance": {"cpu": "Other CPU", "threads": 1}}, "different CPUs"),
    ],
)
def test_what_one_run_says_can_be_a_caveat(
    result: dict[str, Any], said: str, write_run: Any, out: Path
) -> None:
    write_cells(write_run, a=[0.6 + n / 50 for n in range(8)])
    assert said not in caveats_of(out)
    for seed in range(8):
        write_run(seed, 0.9 - seed / 60, estimator="b", result=result)
    assert said in caveats_of(out)


@pytest.mark.usefixtures("no_figures")
def test_unequal_seeds_failures_and_single_seeds_are_caveats(write_run: Any, out: Path) -> None:
    write_cells(write_run, a=[0.6, 0.7, 0.8], b=[0.6, None, 0.7], c=[0.9])
    text = caveats_of(out)
    assert "Rows have different seeds" in text
    assert "b: 1 of 3 failed; the others alone: 0.650 (n=2)." in text
    assert "c: one seed only" in text


@pytest.mark.usefixtures("no_figures")
def test_what_cannot_be_read_is_named(write_run: Any, out: Path) -> None:
    write_cells(write_run, a=[0.6, 0.7, 0.8])
    torn = write_run(3, 0.7, estimator="a")
    (torn / "result.json").write_text('{"status": "o', encoding="utf-8")
    (out / "runs" / "holiday pictures").mkdir()
    text = words(page_of(read(out)))
    assert "2 folders can't be read" in text
    assert "holiday pictures is not the folder of a run" in text
    assert "result.json" in text


def test_many_cells_with_failures_are_not_listed_one_by_one(write_run: Any, out: Path) -> None:
    for number in range(9):
        write_cells(write_run, **{f"e{number}": [0.5, None]})
    shown = in_order(cells(read(out)))
    found = caveats.collect(shown, ["estimator"], None)
    assert sum("1 of 2 failed" in text for text in found) == 6
    assert "3 more cells with failures: see the failures below." in found


# effects


def write_grid(write_run: Any, gain: float) -> None:
    """Two estimators and two losses; the second of both together have `gain` besides."""
    for seed in range(4):
        for estimator in ("a", "b"):
            for loss in ("x", "y"):
                both = gain if (estimator, loss) == ("b", "y") else 0.0
                score = 0.3 + 0.2 * (loss == "y") + both + seed / 50 + (seed == 2) * 0.003
                write_run(seed, score + 0.001 * (estimator == "b"), estimator=estimator, loss=loss)


@pytest.mark.usefixtures("no_figures")
def test_effects_of_two_factors_are_told(write_run: Any, out: Path) -> None:
    write_grid(write_run, gain=0.1)
    page = page_of(read(out))
    (found,) = page.factors.of_tasks
    means = {(row[0].text, row[1].text): row[2].text for row in found.means.rows}
    # mean over seeds of seed / 50 and of 0.003 at one in four: 0.03 + 0.00075
    # loss x: 0.3 + 0.0005 + 0.03075; loss y: 0.5 + (0.1 + 0.001) / 2 + 0.03075
    assert {key: float(text) for key, text in means.items() if key[0] == "loss"} == {
        ("loss", "x"): pytest.approx(0.331, abs=0.001),
        ("loss", "y"): pytest.approx(0.581, abs=0.001),
    }
    assert [row[0].text for row in found.contrasts.rows] == [
        "estimator",
        "loss",
        "estimator x loss",
    ]
    text = words(page)
    for said in (found.title, *found.answers, *page.factors.legend):
        assert " ".join(said.split()) in text


@pytest.mark.usefixtures("no_figures")
def test_of_one_factor_there_are_no_effects_besides_the_verdicts(write_run: Any, out: Path) -> None:
    write_cells(write_run, a=[0.6, 0.7, 0.8], b=[0.6, 0.5, 0.7])
    page = page_of(read(out))
    assert page.factors.of_tasks == ()
    assert page.factors.reason in words(page)


@pytest.mark.usefixtures("no_figures")
def test_a_grid_that_is_too_large_names_the_command(
    write_run: Any, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factors, "MOST_CELLS", 3)
    write_grid(write_run, gain=0.1)
    found = page_of(read(out)).factors
    assert found.of_tasks == ()
    assert "4 cells" in found.reason
    assert "rlbench effects" in found.reason


# where it comes from


@pytest.mark.usefixtures("no_figures")
def test_provenance_counts_what_differs(write_run: Any, out: Path) -> None:
    for seed in range(3):
        version = "0.1.0" if seed else "0.0.9"
        said = {"rlbench": version, "started": f"2026-12-0{seed + 1}T00:00:00+00:00"}
        phases = {"policy": 2.0, "rollout": 1.25}
        write_run(seed, 0.5 + seed, result={"provenance": said, "wall_s": 4.0, "phases": phases})
    page = page_of(read(out))
    facts = {fact.name: fact for block in page.provenance.blocks for fact in block.facts}
    assert facts["rlbench"].values == ("0.1.0 (2 runs)", "0.0.9 (1 run)")
    assert facts["runs started"].values == ("2026-12-01 00:00:00 UTC to 2026-12-03 00:00:00 UTC",)
    assert facts["policy"].values == ("6.0 s",)
    assert facts["in all"].values == ("12.0 s",)
    assert facts["tokens"].values == ("3,000",)
    assert list(facts).index("in all") == list(facts).index("tokens") - 1
    assert page.provenance.number == 3
    names = [run.stem + end for run in page.provenance.runs for end in run.ends]
    assert names == [record.run_id for record in read(out)]


@pytest.mark.usefixtures("no_figures")
def test_settings_that_differ_and_those_that_are_changed_stand_out(
    write_run: Any, out: Path
) -> None:
    for lr in (0.1, 0.2):
        write_run(0, 0.5, settings={"lr": lr, "updates": 7})
    blocks = {block.title: block.facts for block in page_of(read(out)).provenance.blocks}
    (differs,) = blocks["Settings that differ"]
    assert (differs.name, differs.values) == ("lr", ("0.1 (1 cell)", "0.2 (1 cell)"))
    same = {fact.name: fact for fact in blocks["Settings that all cells share"]}
    assert "lr" not in same
    assert (same["updates"].values, same["updates"].strong) == (("7",), True)
    assert (same["epochs"].values, same["epochs"].strong) == (("2",), False)


@pytest.mark.usefixtures("no_figures")
def test_imported_results_have_a_page(out: Path) -> None:
    for algorithm, values in {"mine": [1.0, 2.0], "theirs": [3.0, 5.0]}.items():
        for seed, score in enumerate(values):
            run_id = f"{algorithm}-s{seed}-0123456789"
            folder = out / "runs" / run_id
            folder.mkdir(parents=True)
            head = {"schema": 1, "run_id": run_id}
            labels = {"algorithm": algorithm, "task": "pong"}
            parts = {n: {"name": v, "label": v, "options": {}} for n, v in labels.items()}
            spec = head | {"seed": seed, "components": parts, "settings": {}, "imported": True}
            result = head | {"status": "ok", "score": score, "provenance": {"imported": "a.csv"}}
            (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
            (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    page = page_of(read(out))
    text = words(page)
    assert "All runs were made elsewhere and imported." in text
    assert "imported from a.csv" in text
    assert page.samples.of_cells == ()
    assert [row[0].text for row in page.scores.rows] == ["theirs", "mine"]


# the file


@pytest.fixture
def hostile(few_figures: None, write_run: Any, out: Path) -> Page:
    """A page in which every text is hostile, figures included."""
    for seed in range(3):
        folder = write_run(seed, 0.5 + seed / 10, estimator=EVIL, task=EVIL)
        (folder / "samples.jsonl").write_text(sample(0, EVIL, EVIL, 1.0, EVIL), encoding="utf-8")
        write_run(seed, 0.4 + seed / 10, estimator="plain", task=EVIL)
    where = {"type": EVIL, "message": EVIL, "where": EVIL}
    said = {"rlbench": EVIL, "cpu": EVIL, "started": EVIL, "plugins": [EVIL]}
    result = {"error": where, "provenance": said, "phases": {EVIL: 1.0}}
    folder = write_run(3, None, status="failed", estimator=EVIL, task=EVIL, result=result)
    (folder / "log.txt").write_text(f"{EVIL}\n{EVIL}\n", encoding="utf-8")
    (out / "runs" / "a<b>&'\"\u202e").mkdir()
    return replace(page_of(read(out), "plain", folder=EVIL), title=EVIL)


def test_no_text_of_a_result_can_do_anything(hostile: Page) -> None:
    text = render(hostile)
    outline = Outline(text)
    assert outline.count("script") == 1
    assert outline.count("img") == 0
    allowed = {"xmlns", "xmlns:xlink"}
    for tag, attributes in outline.tags:
        assert not [name for name in attributes if name.startswith("on")], tag
        for name, value in attributes.items():
            if name in ("href", "src", "xlink:href"):
                assert (value or "").startswith(("#", "data:image/png;base64,")), (tag, value)
            elif name not in allowed:
                assert "javascript:" not in (value or "")
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"\x1b[2J" in text
    shown = "".join(data for _, data in outline.texts)
    assert shown.count("</script><script>alert(1)") > 15  # letter for letter, as text


def test_only_the_script_of_the_page_may_run(hostile: Page) -> None:
    text = render(hostile)
    outline = Outline(text)
    (policy,) = [a["content"] for _, a in outline.tags if "http-equiv" in a]
    assert policy is not None
    (script,) = [data for tag, data in outline.texts if tag == "script"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives.keys() <= {
        "default-src",
        "script-src",
        "style-src",
        "img-src",
        "base-uri",
        "form-action",
    }
    assert "unsafe-inline" not in directives["script-src"]
    # before anything that it is to govern
    assert text.index("Content-Security-Policy") < text.index("<style>")
    style = "".join(data for tag, data in outline.texts if tag == "style")
    assert "url(" not in style
    assert "@import" not in style


def test_headings_go_down_one_step_at_a_time(hostile: Page) -> None:
    tags = [tag for tag, _ in Outline(render(hostile)).tags]
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_figure_is_said_in_words_and_every_link_leads_somewhere(hostile: Page) -> None:
    tags = Outline(render(hostile)).tags
    drawn = [a for tag, a in tags if tag == "svg"]
    assert len(drawn) == len(hostile.pictures.drawn) == 2
    for attributes in drawn:
        assert attributes["role"] == "img"
        assert "plain 0.50" in (attributes["aria-label"] or "")  # (0.4 + 0.5 + 0.6) / 3
    ids = {a["id"] for _, a in tags if "id" in a}
    links = {a["href"] for tag, a in tags if tag == "a"}
    assert {f"#{name}" for name in ids} >= links
    assert "#verdicts" in links


@pytest.mark.usefixtures("few_figures")
def test_the_same_results_give_the_same_bytes(write_run: Any, out: Path) -> None:
    write_cells(write_run, a=[0.6, 0.7, None], b=[0.8, 0.9, 0.7], c=[0.8, 0.9, 0.7])
    records = read(out)
    first = render(page_of(records, "a"))
    random.Random(1).shuffle(records)
    assert render(page_of(records, "a")) == first


def test_a_page_says_which_figures_it_lacks(
    write_run: Any, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlbench.report.plots.NAMES", ("curves",))
    write_cells(write_run, a=[0.6, 0.7])
    page = page_of(read(out))
    absent = dict(page.pictures.absent)
    assert "curves" in absent
    assert f"No curves: {absent['curves']}." in words(page)


def test_too_many_cells_for_a_figure_leave_the_best_and_the_baseline(
    write_run: Any, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlbench.report.plots.panels.MOST", 3)
    monkeypatch.setattr(pictures, "SHOWN", 2)
    monkeypatch.setattr("rlbench.report.plots.NAMES", ("scores",))
    write_cells(write_run, a=[0.9, 0.8], b=[0.7, 0.6], c=[0.5, 0.4], base=[0.1, 0.2])
    page = page_of(read(out), "base")
    assert page.pictures.cut.startswith("The figures show 3 of 4 cells")
    (picture,) = page.pictures.drawn
    assert [name for name in ("a", "b", "c", "base") if f">{name}<" in picture.svg] == [
        "a",
        "b",
        "base",
    ]


@pytest.mark.usefixtures("no_figures")
def test_a_page_is_overwritten_and_another_file_is_not(
    write_run: Any, out: Path, tmp_path: Path
) -> None:
    write_cells(write_run, a=[0.6, 0.7])
    text = render(page_of(read(out)))
    path = tmp_path / "page.html"
    output.write(text, path)
    output.write(text.replace("mine", "yours"), path)
    assert "yours" in path.read_text("utf-8")
    path.write_text("<html>my diary, rlbench report</html>", encoding="utf-8")
    with pytest.raises(UsageError, match="no report of rlbench; --force"):
        output.write(text, path)
    assert "diary" in path.read_text("utf-8")
    output.write(text, path, force=True)
    assert path.read_text("utf-8") == text
    assert list(tmp_path.glob(".page*")) == []


def test_a_page_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    path.write_text("", encoding="utf-8")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(RlbenchError, match=r"page\.html can't be written: No space left"):
        output.write("new", path)
    assert path.read_bytes() == b""


@pytest.mark.parametrize("make", ["folder", "no parent", "fifo"])
def test_a_place_that_is_none_for_a_page_is_refused(make: str, tmp_path: Path) -> None:
    path = tmp_path / "x" if make == "no parent" else tmp_path
    path = path / "page.html"
    if make == "folder":
        path.mkdir()
    elif make == "fifo":
        os.mkfifo(path)
    with pytest.raises(UsageError, match=r"--to .*page\.html"):
        output.check_path(path, force=True)
