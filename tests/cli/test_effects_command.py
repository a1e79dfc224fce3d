"""`rlbench effects` as people and programs call it."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import random
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli
from rlbench.report.text.folding import width_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
TEXT = Path(__file__).with_name("effects_of_the_reference.txt")


def rlbench(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, [*map(str, arguments)])
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def folder(out: Path, rows: Sequence[Sequence[object]], head: str, *flags: str) -> Path:
    """Import a table."""
    file = out.with_suffix(".csv")
    with file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([head.split(","), *rows])
    result = rlbench("import", file, "-o", out, *flags)
    assert result.exit_code == 0, result.output
    return out


def grid(out: Path, estimators: Sequence[str], losses: Sequence[str], n: int = 5) -> Path:
    luck = random.Random(0)
    rows = [
        (e, k, s, 0.5 + 0.1 * i + luck.gauss(0, 0.02))
        for (i, e), k, s in product(enumerate(estimators), losses, range(n))
    ]
    return folder(out, rows, "estimator,loss,seed,score")


def numbers(document: Any) -> Iterator[float]:
    if isinstance(document, dict):
        document = list(document.values())
    if isinstance(document, list):
        for part in document:
            yield from numbers(part)
    elif isinstance(document, (int, float)):
        yield document


# formats


def test_the_text_of_the_reference_at_80_columns() -> None:
    """``RLBENCH_REWRITE=1`` writes it anew; read the diff."""
    result = rlbench("effects", "-o", REFERENCE, "--max-width", "80")
    assert result.exit_code == 0
    if os.environ.get("RLBENCH_REWRITE"):
        TEXT.write_text(result.stdout, "utf-8")
    assert result.stdout == TEXT.read_text("utf-8")


@pytest.mark.parametrize(
    ("form", "start"), [("github", "| effect"), ("latex", "\\begin{table}"), ("html", "<table")]
)
def test_documents_hold_one_table_of_all_contrasts(form: str, start: str) -> None:
    result = rlbench("effects", "-o", REFERENCE, "--format", form)
    assert result.exit_code == 0
    assert result.stdout.removeprefix("% needs \\usepackage{booktabs}\n").startswith(start)
    assert result.stdout.count(start) == 1
    assert "Effects of estimator x loss (3 x 2) on score, task addition" in result.stdout
    for name in ("group - rloo", "clip - pg", "(group - gae) x (clip - pg)"):
        assert name in result.stdout
    for of_no_table_here in ("best:", "mean: over", "as a whole", "variance"):
        assert of_no_table_here not in result.stdout


def test_csv_has_a_row_a_contrast_and_its_notes_on_stderr(tmp_path: Path) -> None:
    out = folder(
        tmp_path / "out",
        [
            ("a", 0, 0.5),
            ("a", 1, 0.7),
            ("a", 2, 0.9),
            ("b", 0, 0.4),
            ("b", 1, 0.4),
        ],
        "algorithm,seed,score",
    )
    result = rlbench("effects", "-o", out, "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(result.stdout))
    assert (row["effect"], row["contrast"]) == ("algorithm", "a - b")
    assert float(row["difference"]) == pytest.approx(0.2)  # (0.1 + 0.3) / 2
    assert float(row["sd"]) == pytest.approx(0.2 / math.sqrt(2))
    assert "Seed 2 counts nowhere: not tried by b." in result.stderr


def test_json_has_everything_in_finite_numbers() -> None:
    result = rlbench("effects", "-o", REFERENCE, "--format", "json")
    document = json.loads(result.stdout, parse_constant=pytest.fail)
    assert all(map(math.isfinite, numbers(document)))
    (task,) = document["tasks"]
    assert task["factors"] == {"estimator": ["gae", "group", "rloo"], "loss": ["clip", "pg"]}
    assert (document["contrasts"], document["correction"]) == (7, "holm")
    assert [effect["effect"] for effect in task["effects"]] == [
        "estimator",
        "loss",
        "estimator x loss",
    ]
    assert sum(effect["share"] for effect in task["effects"]) == pytest.approx(1)
    assert [len(effect["contrasts"]) for effect in task["effects"]] == [3, 1, 3]
    assert [partners["halves"] for partners in task["best_partners"]] == [[[0, 2, 4], [1, 3]]] * 2


def test_json_of_equal_scores_and_of_one_seed_has_null_and_no_nan(tmp_path: Path) -> None:
    equal = [(e, k, s, 0.5) for e, k, s in product("ab", "pq", range(4))]
    for name, rows in (("equal", equal), ("one", [row for row in equal if row[2] == 0])):
        out = folder(tmp_path / name, rows, "estimator,loss,seed,score")
        result = rlbench("effects", "-o", out, "--format", "json")
        assert result.exit_code == 0
        (task,) = json.loads(result.stdout, parse_constant=pytest.fail)["tasks"]
        (one,) = task["effects"][0]["contrasts"]
        assert (one["difference"], one["p_adjusted"], one["verdict"]) == (0, None, "n/a")


# width


@pytest.mark.parametrize("width", [60, 80])
def test_no_line_is_wider_than_asked_with_long_names(tmp_path: Path, width: int) -> None:
    long = "advantages_of_a_plugin_with_a_very_long_name_that_nobody_should_give_to_anything_at_all"
    estimators = [f"{long}_{n}:lam=0.95" for n in range(12)]
    out = grid(tmp_path / "out", estimators, ["clip", "x" * 100])
    result = rlbench("effects", "-o", out, "--max-width", str(width), "--margin", "0.2")
    assert result.exit_code == 0
    assert max(map(width_of, result.stdout.splitlines())) <= width
    # the 66 contrasts are not all shown, and it is said how many are
    assert " of 66 (csv has all)" in " ".join(result.stdout.split())
    assert len(result.stdout.splitlines()) < 400
    rows = rlbench("effects", "-o", out, "--format", "csv").stdout.splitlines()
    assert len(rows) == 1 + 66 + 1 + 66


def test_many_short_contrasts_are_cut_at_12_and_the_surest_are_shown(tmp_path: Path) -> None:
    out = grid(tmp_path / "out", [f"e{n}" for n in range(8)], ["p", "q"])
    result = rlbench("effects", "-o", out)
    lines = result.stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if "the surest 12 of 28 (csv has all)" in line)
    shown = lines[at + 1 : at + 13]
    assert not lines[at + 13].startswith("  ")
    found = csv.DictReader(io.StringIO(rlbench("effects", "-o", out, "--format", "csv").stdout))
    rows = [row for row in found if row["effect"] == "estimator"]
    rows.sort(key=lambda row: (float(row["p_adjusted"]), float(row["p_t"])))
    assert [line.strip().partition("  ")[0] for line in shown] == [
        row["contrast"] for row in rows[:12]
    ]


def test_a_caption_says_what_more_seeds_would_show(tmp_path: Path) -> None:
    out = grid(tmp_path / "out", ["a", "b"], ["p", "q"], n=3)
    with_margin = " ".join(rlbench("effects", "-o", out, "--margin", "0.001").stdout.split())
    assert "? undecided +n: about n more seeds show 0.001 with 80% power" in with_margin
    assert "undecided +n" not in rlbench("effects", "-o", out).stdout


def test_where_less_is_better_the_text_says_so() -> None:
    text = " ".join(rlbench("effects", "-o", REFERENCE, "--metric", "wall_s").stdout.split())
    assert "on wall_s (less is better), task addition" in text
    assert "; negative is better;" in text
    text = " ".join(rlbench("effects", "-o", REFERENCE).stdout.split())
    assert "less is better" not in text
    assert "; positive is better;" in text


def test_lines_break_at_no_number_and_in_no_short_difference() -> None:
    for width in range(40, 120, 7):
        lines = rlbench("effects", "-o", REFERENCE, "--max-width", str(width)).stdout.splitlines()
        said = lines[: next(n for n, line in enumerate(lines) if "---" in line) - 1]
        for line in said:
            assert not line.endswith((" -", " =", " p", " <", " >="))
            assert not line.lstrip().startswith(("±", "- g", "- r", "- p"))


# what is refused


def test_nothing_selected_is_3_and_says_so(tmp_path: Path) -> None:
    out = grid(tmp_path / "out", ["a", "b"], ["p"])
    for flags in (["-e", "a"], ["-s", "77"], ["-e", "nobody"]):
        result = rlbench("effects", "-o", out, *flags)
        assert (result.exit_code, result.stdout) == (3, "")
        assert result.stderr.startswith("rlbench: ")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--factor", "losss"], "did you mean 'loss'"),
        (["--factor", "kl"], "a factor is a column in which cells differ"),
        (["--normalise", "scales.csv"], "--normalise is for --across-tasks"),
        (["--normalise", "x.csv", "--across-tasks", "--metric", "kl_nats"], "for scores"),
        (["--margin", "0"], "not a positive difference"),
        (["--margin", "nan"], "not a positive difference"),
        (["--format", "papyrus"], "papyrus"),
        (["--level", "1"], "1"),
    ],
)
def test_mistakes_are_2_and_say_what_to_do(flags: list[str], words: str) -> None:
    result = rlbench("effects", "-o", REFERENCE, *flags)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in " ".join(result.stderr.split())


def test_an_empty_folder_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "out" / "runs").mkdir(parents=True)
    assert rlbench("effects", "-o", tmp_path / "out").exit_code == 3
    assert rlbench("effects", "-o", tmp_path / "nowhere").exit_code in (2, 3)


def test_numbers_beyond_what_can_be_squared_are_refused(tmp_path: Path) -> None:
    rows = [(e, s, f"{1 + s}e{size}") for e, size in (("a", 307), ("b", 2)) for s in range(3)]
    out = folder(tmp_path / "out", rows, "algorithm,seed,score")
    result = rlbench("effects", "-o", out)
    assert (result.exit_code, "too large" in result.stderr) == (2, True)


def test_control_characters_of_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    rows = [(e, s, 0.5 + 0.1 * s) for e in ("a\x1b[31m", "b") for s in range(3)]
    out = folder(tmp_path / "out", rows, "algorithm,seed,score")
    for form in ("simple", "github"):
        assert "\x1b" not in rlbench("effects", "-o", out, "--format", form).stdout
