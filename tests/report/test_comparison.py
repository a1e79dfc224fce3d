"""Cells against a baseline: the numbers, by hand and by another program."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scipy import stats as scipy_stats

from rlbench.grid.store import Store
from rlbench.report.cells.cell import cells
from rlbench.report.compare.comparison import Comparison, Row, compare, in_order
from rlbench.report.compare.table import comparison_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"


def versus(out: Path, baseline: str = "base", **more: Any) -> Comparison:
    """Compare with the cell of that estimator."""
    found = cells(Store(out).read())
    chosen = next(cell for cell in found if cell.columns["estimator"] == baseline)
    return compare(found, chosen, **more)


def row(comparison: Comparison, estimator: str) -> Row:
    return next(row for row in comparison.rows if row.cell.columns["estimator"] == estimator)


def write(write_run: Any, scores: Mapping[str, Sequence[float | None]]) -> None:
    for estimator, values in scores.items():
        for seed, score in enumerate(values):
            status = "ok" if score is not None else "diverged"
            write_run(seed, score, estimator=estimator, status=status)


def numbers(comparison: Comparison) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(comparison_table(comparison, "json"))["rows"]
    return rows


def every_number(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from every_number(inner)
    elif isinstance(value, (int, float)):
        yield value


def test_a_difference_by_hand(out: Path, write_run) -> None:
    write(write_run, {"base": [0.5, 0.6, 0.4], "one": [0.7, 0.7, 0.7]})
    # d = .2, .1, .3: mean .2, sd .1, error .1/sqrt(3); t(2, .975) = 4.302653 -> half .248414;
    # t = 3.464102; two-sided p with 2 degrees of freedom: 1 - t / sqrt(t**2 + 2) = .074180
    found = row(versus(out), "one")
    assert found.difference is not None
    assert found.difference.interval.mid == pytest.approx(0.2)
    assert found.difference.interval.half_width == pytest.approx(0.248414, abs=1e-6)
    assert found.p == pytest.approx(0.074180, abs=1e-6)
    assert (found.seeds, found.verdict) == ((0, 1, 2), "?")
    assert found.improvement is not None
    assert found.improvement.mid == 1


def test_the_reference_results_as_scipy_computes_them() -> None:
    found = cells(Store(REFERENCE).read())
    baseline = next(
        cell
        for cell in found
        if (cell.columns["estimator"], cell.columns["loss"]) == ("group", "clip")
    )
    comparison = compare(found, baseline)
    others = [row for row in comparison.rows if row.verdict != "baseline"]
    assert len(others) == 5
    base = [seed.score for seed in baseline.seeds]
    tests = [
        scipy_stats.ttest_rel([seed.score for seed in other.cell.seeds], base) for other in others
    ]
    # Holm: the i-th smallest p times 5, 4, 3, 2, 1, never below the one before, at most 1
    adjusted: dict[int, float] = {}
    least = 0.0
    for place, number in enumerate(sorted(range(5), key=lambda number: tests[number].pvalue)):
        least = max(least, min(1.0, (5 - place) * tests[number].pvalue))
        adjusted[number] = least
    for number, other in enumerate(others):
        low, high = tests[number].confidence_interval(0.95)
        difference, simultaneous = other.difference, other.simultaneous
        assert difference is not None
        assert simultaneous is not None
        assert (difference.interval.low, difference.interval.high) == pytest.approx((low, high))
        wide = tests[number].confidence_interval(0.99)  # 1 - .05 / 5
        assert (simultaneous.low, simultaneous.high) == pytest.approx(tuple(wide))
        assert other.p == pytest.approx(adjusted[number], rel=1e-9)
        assert other.verdict == ("-" if adjusted[number] < 0.05 else "?")


def oracle(d: Sequence[Sequence[float | None]]) -> list[float]:
    """Step-down max-t with joint flips, slowly; a seed that is not there is in no sum."""

    def size(values: Sequence[float | None], signs: Sequence[int]) -> float:
        there = [(value, sign) for value, sign in zip(values, signs, strict=True) if value]
        total = math.fsum(value * sign for value, sign in there)
        return abs(total) / math.sqrt(math.fsum(value * value for value, _ in there))

    n = len(d[0])
    observed = [size(column, [1] * n) for column in d]
    strongest_first = sorted(range(len(d)), key=lambda number: -observed[number])
    adjusted = [0.0] * len(d)
    least = 0.0
    for place, number in enumerate(strongest_first):
        rest = strongest_first[place:]
        every = [
            max(size(d[other], signs) for other in rest) >= observed[number] - 1e-12
            for signs in itertools.product((-1, 1), repeat=n)
        ]
        least = max(least, sum(every) / len(every))
        adjusted[number] = least
    return adjusted


def test_from_seven_pairs_on_signs_are_flipped_jointly(out: Path, write_run) -> None:
    one = [0.11, 0.12, 0.13, 0.14, 0.15, 0.16, 0.17, 0.10]
    other = [0.05, -0.02, 0.04, 0.03, -0.01, 0.06, 0.02]  # no seed 7
    write(
        write_run,
        {"base": [0.5] * 8, "one": [0.5 + x for x in one], "other": [0.5 + x for x in other]},
    )
    comparison = versus(out)
    assert (comparison.family.joint, comparison.family.fewest) == (True, 7)
    expected = oracle([one, [*other, None]])
    assert expected[0] == 2 / 256  # all signs as they are, or all turned
    assert [row(comparison, name).p for name in ("one", "other")] == pytest.approx(expected)
    assert row(comparison, "one").verdict == "+"
    assert "max-t" in comparison_table(comparison)


def test_each_number_of_pairs_has_its_own_method(out: Path, write_run) -> None:
    steps = [0.01 * (seed + 1) for seed in range(8)]
    write(
        write_run,
        {
            "base": [0.5] * 8,
            "one": [0.5 + step for step in steps],
            "few": [0.5 + step for step in steps[:6]],
        },
    )
    comparison = versus(out)
    assert (comparison.family.correction, comparison.family.fewest) == ("max_t and holm", 6)
    # one of two by flips, all of one sign: 2 / 2**8; one of two by t: each has half of the level
    p = scipy_stats.ttest_1samp(steps[:6], 0).pvalue
    assert row(comparison, "one").p == pytest.approx(2 * 2 / 256)
    assert row(comparison, "few").p == pytest.approx(2 * p)
    text = comparison_table(comparison)
    assert "max-t with joint sign flips for the 1 with 7 pairs or more" in " ".join(text.split())
    assert "few: 6 of 8 seeds make pairs; 6,7 did not run on both sides." in text


def test_pairs_are_formed_by_seed_and_never_by_position(out: Path, write_run) -> None:
    for seed, score in [(0, 0.1), (1, 0.2), (2, 0.4)]:
        write_run(seed, score, estimator="base")
    for seed, score in [(1, 0.3), (2, 0.6), (5, 0.9)]:
        write_run(seed, score, estimator="one")
    found = row(versus(out), "one")
    assert found.seeds == (1, 2)
    assert found.difference is not None
    assert found.difference.interval.mid == pytest.approx(0.15)  # (.1 + .2) / 2
    assert found.score is not None
    assert found.score.mid == pytest.approx(0.6)  # of its own three seeds


def test_equivalent_is_what_the_simultaneous_interval_says(out: Path, write_run) -> None:
    base = [0.50, 0.52, 0.48, 0.51, 0.49]
    near = [score + step for score, step in zip(base, (0.01, -0.01, 0.0, 0.01, -0.01), strict=True)]
    write(write_run, {"base": base, "near": near, "far": [score + 0.3 for score in near]})
    # near: mean 0, sd .01, half-widths t(4, .975) = 2.776 -> .012416, and for two comparisons
    # t(4, .9875) = 3.4954 -> .015632
    assert row(versus(out), "near").verdict == "?"
    assert row(versus(out, margin=0.014), "near").verdict == "?"
    assert row(versus(out, margin=0.016), "near").verdict == "="
    assert row(versus(out, margin=0.5), "far").verdict == "+"


@pytest.mark.parametrize("sign", [1, -1])
def test_equivalent_takes_both_ends_inside(out: Path, write_run, sign: int) -> None:
    # d = 0, .5, .1, .4: mean .25, sd .238, half-width t(3, .975) .238 / 2 = .379: -.13 to .63
    write(write_run, {"base": [0.5] * 4, "one": [0.5 + sign * x for x in (0.0, 0.5, 0.1, 0.4)]})
    assert row(versus(out, margin=0.2), "one").verdict == "?"
    assert row(versus(out, margin=0.7), "one").verdict == "="


def test_seeds_that_would_decide(out: Path, write_run) -> None:
    write(write_run, {"base": [0.5] * 5, "one": [0.4, 0.6, 0.45, 0.55, 0.5]})
    found = row(versus(out), "one")
    # sd .0790569, its upper limit times sqrt(4 / chi2(.2, 4)) = 1.55746: .123128, so the effect is
    # .05 / .123128 = .40608; then the least n with power .8
    d = [-0.1, 0.1, -0.05, 0.05, 0.0]
    sd = math.sqrt(sum(x * x for x in d) / 4) * math.sqrt(4 / scipy_stats.chi2.ppf(0.2, 4))

    def power(n: int) -> float:
        critical = scipy_stats.t.ppf(0.975, n - 1)
        shift = 0.05 * math.sqrt(n) / sd
        return float(
            scipy_stats.nct.sf(critical, n - 1, shift)
            + scipy_stats.nct.cdf(-critical, n - 1, shift)
        )

    needed = next(n for n in range(2, 1000) if power(n) >= 0.8)
    assert found.more == needed - 5 > 20
    wider = row(versus(out, margin=0.09), "one")  # the interval is ±.098
    assert wider.more is not None
    assert 0 < wider.more < found.more
    assert f"? {found.more} more" in comparison_table(versus(out))
    assert row(versus(out, margin=1e-9), "one").more is None  # beyond a billion


def test_a_failed_seed_counts_with_the_floor_and_wins_nothing(out: Path, write_run) -> None:
    write(write_run, {"base": [0.5, 0.0, 0.5], "one": [0.9, None, 0.7]})
    found = row(versus(out), "one")
    assert found.difference is not None
    assert found.difference.interval.mid == pytest.approx(0.2)  # (.4 + (0 - 0) + .2) / 3
    assert found.improvement is not None
    assert found.improvement.mid == pytest.approx(2 / 3)  # 0 and ok beats the failure
    assert found.score is not None
    assert (found.score.n, found.score.mid) == (3, pytest.approx(1.6 / 3))
    text = comparison_table(versus(out))
    assert "0.53*" in text  # (.9 + 0 + .7) / 3
    assert "one: 1 of 3 failed; the others alone: 0.800 (n=2)" in text


def test_failures_on_both_sides_are_a_tie(out: Path, write_run) -> None:
    write(write_run, {"base": [0.5, None], "one": [0.9, None]})
    found = row(versus(out), "one")
    assert found.improvement is not None
    assert found.improvement.mid == 0.75


def test_a_failure_without_a_known_floor_is_not_left_out_of_the_pairs(out: Path, write_run) -> None:
    write_run(0, 0.5, estimator="base", result={"floor": None})
    write_run(1, 0.5, estimator="base", result={"floor": None})
    write_run(0, 0.9, estimator="one", result={"floor": None})
    write_run(1, None, estimator="one", status="failed", result={"floor": None})
    found = row(versus(out), "one")
    assert (found.verdict, found.reason) == ("n/a", "a failed seed has no known floor")
    assert found.difference is None


@pytest.mark.parametrize(
    ("scores", "reason", "difference"),
    [
        ([0.7], "one common seed", 0.2),
        ([0.6, 0.7], "all differences are equal", 0.1),
        ([0.5, 0.6], "all differences are equal", 0.0),
    ],
)
def test_what_can_not_be_tested_says_why(
    out: Path, write_run, scores: list[float], reason: str, difference: float
) -> None:
    write(write_run, {"base": [0.5, 0.6], "one": scores, "two": [0.9, 0.7]})
    comparison = versus(out)
    found = row(comparison, "one")
    assert (found.verdict, found.reason, found.p) == ("n/a", reason, None)
    assert comparison.family.size == 1  # what can't be tested does not tighten the rest
    text = comparison_table(comparison)
    assert f"n/a: one: {reason}." in text
    assert "0.50-0.50" not in text  # nothing but ties says nothing of wins
    (data,) = [data for data in numbers(comparison) if data["estimator"] == "one"]
    assert data["difference"] == pytest.approx(difference)
    assert data["difference_low"] is data["difference_high"] is data["p_adjusted"] is None


def test_no_common_seed_and_never_run(out: Path, write_run) -> None:
    write_run(0, 0.5, estimator="base")
    write_run(1, 0.6, estimator="one")
    write_run(0, None, estimator="absent", run=False)
    comparison = versus(out)
    assert row(comparison, "one").reason == "no common seed"
    assert row(comparison, "absent").reason == "no common seed"
    text = comparison_table(comparison)
    assert "not run" in text
    assert "no comparison can be tested" in text


def test_another_task_is_not_comparable(out: Path, write_run) -> None:
    for seed in range(3):
        write_run(seed, 0.5 + seed / 10, estimator="base")
        write_run(seed, 0.9 + seed / 50, estimator="base", task="sort")
    found = cells(Store(out).read())
    baseline = next(cell for cell in found if cell.columns["task"] == "addition")
    comparison = compare(found, baseline)
    assert [row.verdict for row in comparison.rows] == ["baseline", "x"]
    assert comparison.family.size == 0
    assert "x: sort: another task." in comparison_table(comparison)


def test_rows_are_ordered_by_all_digits(out: Path, write_run) -> None:
    write(write_run, {"base": [0.1, 0.2], "aaa": [0.74996, 0.94996], "zzz": [0.75004, 0.95004]})
    order = [row.cell.columns["estimator"] for row in versus(out).rows]
    assert order == ["zzz", "aaa", "base"]


@pytest.mark.parametrize("format_", ["simple", "json", "csv"])
def test_the_order_of_files_changes_no_byte(out: Path, write_run, format_: str) -> None:
    draw = random.Random(0)
    for seed in range(18):  # so many that flips are drawn
        for estimator in ("base", "one", "two", "three"):
            write_run(seed, 0.5 + draw.gauss(0, 0.05), estimator=estimator)
    records = Store(out).read()
    texts = set()
    for _ in range(3):
        draw.shuffle(records)
        found = cells(records)
        baseline = next(cell for cell in found if cell.columns["estimator"] == "base")
        texts.add(comparison_table(compare(found, baseline), format_))
    assert len(texts) == 1


def test_cells_with_equal_scores_have_one_order(out: Path, write_run) -> None:
    for name in ("run10", "run2", "run1", "run01"):
        write_run(0, 0.5, estimator=name)
    records = Store(out).read()
    for given in (records, records[::-1]):
        order = [cell.columns["estimator"] for cell in in_order(cells(given))]
        assert order == ["run01", "run1", "run2", "run10"]


def test_data_have_every_digit_and_no_nan(out: Path, write_run) -> None:
    write(write_run, {"base": [0.5, 0.6, 1 / 3], "one": [0.7, 0.1 + 0.2, None], "two": [0.5]})
    comparison = versus(out)
    text = comparison_table(comparison, "json")
    assert "nan" not in text.lower()
    assert all(math.isfinite(number) for number in every_number(json.loads(text)))
    rows = list(csv.DictReader(io.StringIO(comparison_table(comparison, "csv"))))
    (one,) = [data for data in rows if data["estimator"] == "one"]
    assert one["paired_seeds"] == "0 1 2"
    found = row(comparison, "one").difference
    assert found is not None
    assert float(one["difference"]) == found.interval.mid
    assert float(one["p_t"]) == found.p
    assert {"simultaneous_low", "p_adjusted", "correction", "improvement_low"} <= set(one)


@pytest.mark.parametrize(
    ("ratio", "verdict", "shown"), [(2.4846, "+", "0.04998"), (2.4837, "?", "0.050")]
)
def test_rounding_carries_no_p_value_across_the_level(
    out: Path, write_run, ratio: float, verdict: str, shown: str
) -> None:
    # d = m - s, m, m + s: t = m sqrt(3) / s, which is t(2, .975) = 4.302653 at m / s = 2.484138
    one = [0.5 + 0.02 * (ratio + step) for step in (-1, 0, 1)]
    write(write_run, {"base": [0.5] * 3, "one": one})
    found = row(versus(out), "one")
    assert found.p is not None
    assert round(found.p, 3) == 0.05
    assert found.verdict == verdict
    assert f"  {shown}  " in comparison_table(versus(out))


def test_the_caption_names_what_was_done(out: Path, write_run) -> None:
    write(write_run, {"base": [0.5, 0.6, 0.4], "one": [0.7, 0.7, 0.7]})
    text = " ".join(comparison_table(versus(out, level=0.9, margin=0.02)).split())
    for part in (
        "one is better than base: score +0.20 (90% interval +0.03 to +0.37; p = 0.074; 3 pairs).",
        "90% paired t interval",
        "two-sided paired t test of the one comparison",
        "differences to be near normal, which 3 pairs can't show",
        "p < 0.1",
        "simultaneous by Bonferroni, lies inside ±0.02",
        "Equal settings are not equal tuning",
    ):
        assert part in text
    assert "±" not in comparison_table(versus(out), ascii_only=True)


def test_a_table_that_is_too_wide_leaves_out_the_wins_and_never_the_kl(
    out: Path, write_run
) -> None:
    write(write_run, {"base": [0.5, 0.6, 0.4], "one": [0.7, 0.7, 0.8]})
    narrow = comparison_table(versus(out), width=70)
    assert max(map(len, narrow.split("\n\n")[0].splitlines())) <= 70
    assert " KL " in narrow.splitlines()[0]
    assert "Left out for width: wins 95%" in narrow


def test_markdown_and_latex_are_escaped_once(out: Path, write_run) -> None:
    write(write_run, {"base": [0.5, 0.6], "a|b_c": [0.7, 0.9]})
    write_run(0, 0.1, estimator="1e5")
    text = comparison_table(versus(out), "github")
    assert "| 1e5 " in text
    github = text.split("\n\n")[0].splitlines()
    assert len({line.replace("\\|", "").count("|") for line in github}) == 1
    latex = comparison_table(versus(out), "latex_booktabs")
    assert r"a\textbar{}b\_c" in latex
    assert r"\toprule" in latex
    assert r"$\pm$95\%" in latex
    assert "\\\\_" not in latex


def test_labels_and_numbers_are_printed_letter_for_letter(out: Path, write_run) -> None:
    write(write_run, {"1e5": [0.5, 0.7], "2e3": [0.75, 0.95]})
    lines = comparison_table(versus(out, "1e5"), "github").splitlines()[2:4]
    assert [line.split()[1] for line in lines] == ["2e3", "1e5"]
    assert " 0.60 " in lines[1]  # not 0.6
