"""`rlbench why`: what differs between two runs, and from where on their numbers do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlbench.cli import cli
from rlbench.grid import compare
from rlbench.grid.store import Store

if TYPE_CHECKING:
    from pathlib import Path

RESEARCH = {"plugin": "research", "distribution": "rlbench-research", "version": "2"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"seed": 1}, ("seed", "0 | 1")),
        ({"settings": {"lr": 0.001}}, ("setting lr", "0.0005 | 0.001")),
        ({"settings": {"new": True}}, ("setting new", "- | true")),
        ({"torch": "2.9"}, ("torch", "2.13.0+cpu | 2.9")),
        ({"training": "99"}, ("source of the training wing", "0123456789 | 99")),
        ({"components": {"loss": {"name": "pg", "label": "pg"}}}, ("loss", "clip | pg")),
        (
            {"components": {"loss": {"options": {"eps": 0.3}, "label": "clip:eps=0.3"}}},
            ("loss clip, option eps", "0.2 | 0.3"),
        ),
        (
            {"components": {"loss": {"source": "fedcba98"}}},
            ("source of loss clip", "loss012 | fedcba9"),
        ),
        (
            {"components": {"loss": {"owner": RESEARCH}}},
            ("owner of loss clip", "rlbench 0.1.0 | rlbench-research 2"),
        ),
        (
            {"components": {"task": {"contents": {"file": "content 12"}}}},
            ("task addition, contents of the file in option file", "- | content 12"),
        ),
    ],
)
def test_each_part_of_a_name_is_named(tmp_path: Path, write_run, change, expected) -> None:
    one = Store(tmp_path / "a").record(write_run(tmp_path / "a").name)
    other = Store(tmp_path / "b").record(write_run(tmp_path / "b", **change).name)
    assert compare.of_specs(one.spec, other.spec) == [expected]


def test_what_is_no_part_of_the_name_stands_beside_it(tmp_path: Path, write_run) -> None:
    there = {"rlbench": "0.1.0", "threads": 8, "cpu": "Other CPU", "started": "later"}
    git = {"commit": "0123456789abcdef", "dirty": True}
    first = Store(tmp_path / "a").record(write_run(tmp_path / "a").name)
    made = there | {"git": git}
    second = Store(tmp_path / "b").record(
        write_run(tmp_path / "b", result={"provenance": made}).name
    )
    assert compare.of_specs(first.spec, second.spec) == []
    assert compare.of_provenance(first, second) == [
        ("threads", "1 | 8"),
        ("cpu", "Some CPU | Other CPU"),
        ("git commit of rlbench", "- | 0123456789 with changes"),
    ]


HEAD = "update,loss,reward\n"


@pytest.mark.parametrize(
    ("one", "other", "where"),
    [
        (f"{HEAD}1,0.5,0\n", f"{HEAD}1,0.5,0\n", None),
        (None, None, None),
        (f"{HEAD}1,0.5,0\n2,1,1\n", f"{HEAD}1,0.5,0\n2,1,3\n", "parts at update 2: reward 1 | 3"),
        (
            f"{HEAD}7,0.5,0\n",
            f"{HEAD}7,0.6,1\n",
            "parts at update 7: loss 0.5 | 0.6 (and 1 more column)",
        ),
        (
            f"{HEAD}1,1,1\n2,1,1\n",
            f"{HEAD}1,1,1\n",
            "parts at update 2: one of them ends before it",
        ),
        (f"{HEAD}1,1,1\n", f"{HEAD}1,1", "parts at update 1: it is cut there"),
        (
            f"{HEAD}1,1,1\n",
            "update,loss\n1,1\n",
            "is equal in all 2 shared columns; only first has reward",
        ),
        (
            f"{HEAD}1,1,1\n2,1,4\n",
            "update,clipped,reward\n1,9,1\n2,9,5\n",
            "parts at update 2: reward 4 | 5, of 2 shared columns; only first has loss; "
            "only second has clipped",
        ),
        (
            f"{HEAD}1,1,1\n",
            "update,reward,loss\n1,1,1\n",
            "is equal in all 3 shared columns; their order differs",
        ),
        (f"{HEAD}1,1,1\n", "a,b\n1,1\n", "has other columns"),
        (f"{HEAD}1,1,1\n", f"{HEAD}1,1,1", "differs in how it is written"),
        (f"{HEAD}1,1,1\n", None, "is there in one of them only"),
        (f"{HEAD}1,1,1\n", "", "has other columns"),
    ],
)
def test_the_first_row_that_differs_is_named(tmp_path: Path, one, other, where) -> None:
    for name, text in (("a", one), ("b", other)):
        (tmp_path / name).mkdir()
        if text is not None:
            (tmp_path / name / "metrics.csv").write_text(text, "utf-8")
    found = compare.of_files(tmp_path / "a" / "metrics.csv", tmp_path / "b" / "metrics.csv")
    assert found == (where and f"metrics.csv {where}")


def test_results_are_compared_without_their_times(tmp_path: Path, write_run) -> None:
    def record(name: str, **result: object):
        return Store(tmp_path / name).record(write_run(tmp_path / name, result=result).name)

    one = record("a")
    assert compare.of_numbers(one, record("b", wall_s=99.0, phases={"rollout": 3})) is None
    assert compare.of_numbers(one, record("c", score=0.5)) == "score of the result: 0.75 | 0.5"


def why(out: Path, *arguments: str | Path):
    return CliRunner().invoke(cli, ["why", "-o", str(out), *map(str, arguments)])


def test_why_names_runs_by_beginning_end_or_path(tmp_path: Path, write_run) -> None:
    one = write_run(tmp_path)
    other = write_run(tmp_path, seed=3, settings={"lr": 0.5})
    by_end = why(tmp_path, one.name[-10:], "group-clip-s3")
    assert by_end.exit_code == 0
    assert "setting lr  0.0005 | 0.5" in by_end.stdout
    assert "numbers: the same, byte by byte" in by_end.stdout
    assert why(tmp_path / "elsewhere", one, other).stdout == by_end.stdout


def test_why_of_equal_runs_says_so(tmp_path: Path, write_run) -> None:
    one, other = write_run(tmp_path / "a"), write_run(tmp_path / "b")
    done = why(tmp_path, one, other)
    assert done.exit_code == 0
    assert "one run: nothing of what can move its numbers differs" in done.stdout
    assert "numbers: the same, byte by byte" in done.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("group-clip", "2 runs in"),
        ("groop-clip-s0-0", "unknown run"),
        ("", "unknown run"),
    ],
)
def test_why_refuses_what_is_no_run_or_many(tmp_path: Path, write_run, name, message) -> None:
    one = write_run(tmp_path)
    write_run(tmp_path, seed=1)
    done = why(tmp_path, one.name, name)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
