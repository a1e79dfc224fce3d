"""``rlbench compare`` over tasks: on one scale, and algorithm by algorithm."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from rlbench.cli import cli

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

LUCK = (0.00, 0.02, -0.01, 0.03, -0.02, 0.01, -0.03, 0.00)
OWN = (0.004, -0.003, 0.001, 0.002, -0.004, 0.003, -0.002, -0.001)
MARKS = ("baseline", "=", "+")
SCALES = {"pong": (-21.0, 21.0), "ape": (0.0, 8000.0)}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(one) for one in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A and B are alike, C is ahead by a fifth of the scale of each task."""
    root = tmp_path_factory.mktemp("theirs")
    lines = ["algorithm,task,seed,score"]
    for turn, (name, ahead) in enumerate((("A", 0.0), ("B", 0.0), ("C", 0.2))):
        for task, (low, high) in SCALES.items():
            for seed, luck in enumerate(LUCK):
                share = 0.5 + ahead + luck + OWN[(seed + 3 * turn) % 8]
                lines.append(f"{name},{task},{seed},{low + (high - low) * share!r}")
    (root / "x.csv").write_text("\n".join(lines), "utf-8")
    scales = [f"{task},{low},{high}" for task, (low, high) in SCALES.items()]
    (root / "scales.csv").write_text("\n".join(["task,low,high", *scales]), "utf-8")
    done = run("import", root / "x.csv", "-o", root / "out")
    assert done.exit_code == 0, done.output
    return root


def compared(folder: Path, *more: object) -> dict[str, Any]:
    done = run("compare", folder / "out", "--baseline", "A", "--format", "json", *more)
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_on_one_scale_one_margin_is_that_of_all_tasks(folder: Path) -> None:
    found = compared(folder, "--normalise", folder / "scales.csv", "--margin", "0.03")
    assert found["metric"] == "normalised score"
    verdicts = {(row["task"], row["algorithm"]): row["verdict"] for row in found["rows"]}
    assert verdicts == {
        (task, name): mark for task in SCALES for name, mark in zip("ABC", MARKS, strict=True)
    }
    raw = {(row["task"], row["algorithm"]): row["difference"] for row in compared(folder)["rows"]}
    for row in found["rows"]:
        if row["algorithm"] == "C":
            low, high = SCALES[row["task"]]
            assert row["difference"] == pytest.approx(raw[row["task"], "C"] / (high - low))


def test_over_all_tasks_each_algorithm_is_one_row(folder: Path) -> None:
    flags = ("--suite", "--normalise", folder / "scales.csv", "--margin", "0.03")
    found = compared(folder, *flags)
    assert found["rows"][0]["algorithm"] == "C"
    assert {row["algorithm"]: row["verdict"] for row in found["rows"]} == {
        "A": "baseline",
        "B": "=",
        "C": "+",
    }
    assert found["scaled"] == "here"
    text = run("compare", folder / "out", "--baseline", "A", *flags).stdout
    assert "Against A, over 2 tasks, by the IQM: 1 better (C), 1 equivalent (B)." in text


def test_of_two_algorithms_nobody_has_to_name_one(folder: Path) -> None:
    done = run("compare", folder / "out", "--suite", "-a", "A", "-a", "C")
    assert done.exit_code == 0, done.output
    assert "(the first of two; --baseline names the other)" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--suite", "--tune", "lr"), "--tune compares task by task; leave --suite, or --tune"),
        (("--normalise", "no.csv"), "no.csv can't be read"),
        (("--metric", "kl_nats", "--normalise", "no.csv"), "--normalise is for scores"),
    ],
)
def test_what_makes_no_sense_is_refused(folder: Path, flags: tuple[str, ...], said: str) -> None:
    done = run("compare", folder / "out", "--baseline", "A", *flags)
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_failure_of_unknown_worth_is_0_on_a_scale_in_every_table(folder: Path) -> None:
    text = (folder / "x.csv").read_text("utf-8").splitlines()
    at = next(n for n, line in enumerate(text) if line.startswith("B,pong,3,"))
    text[at] = "B,pong,3,"
    (folder / "failing.csv").write_text("\n".join(text), "utf-8")
    out = folder / "failing"
    assert run("import", folder / "failing.csv", "-o", out).exit_code == 0
    for more in ((), ("--suite",)):
        flags = ("--baseline", "A", "--normalise", folder / "scales.csv", *more)
        said = " ".join(run("compare", out, *flags).stdout.split())
        assert "count with the task's floor in the score (0 where none is known)" in said
        assert "so there is no score" not in said
    found = json.loads(
        run(
            "compare",
            out,
            "--baseline",
            "A",
            "--normalise",
            folder / "scales.csv",
            "--format",
            "json",
        ).stdout
    )
    row = next(r for r in found["rows"] if (r["task"], r["algorithm"]) == ("pong", "B"))
    shares = [0.5 + luck + OWN[(seed + 3) % 8] for seed, luck in enumerate(LUCK)]
    assert row["value"] == pytest.approx((sum(shares) - shares[3]) / 8)
    raw = " ".join(run("compare", out, "--baseline", "A").stdout.split())
    assert "no score (rlbench import --floor gives one)" in raw
