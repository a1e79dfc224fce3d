"""The file of the plans of races: each fault in it has a key, what was found, and a way out."""

from __future__ import annotations

import copy
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from rlbench.cli import cli
from rlbench.errors import UsageError
from rlbench.grid.race import PLAN, Pair, RacePlan
from rlbench.grid.race_file import enter, races_of, spent_by_race
from rlbench.grid.race_reading import Entry, entries, plain

if TYPE_CHECKING:
    from pathlib import Path

GOOD: dict[str, Any] = {
    "looks": 2,
    "alpha": 0.05,
    "margin": None,
    "seeds": [0, 1, 2, 3, 4, 5],
    "pairs": [{"cell": "a", "other": "b", "sign": 1}, {"cell": "c", "other": "b", "sign": -1}],
    "names": {"a": "x+y"},
    "seen": 3,
}
GONE = object()


def changed(path: str, value: Any) -> dict[str, Any]:
    """Change one place of a good file; a place is written as messages write it."""
    content: Any = {"schema": 1, "races": [copy.deepcopy(GOOD), copy.deepcopy(GOOD)]}
    *way, last = path.replace("[", ".").replace("]", "").split(".")
    place = content
    for step in way:
        place = place[int(step) if step.isdigit() else step]
    key = int(last) if last.isdigit() else last
    if value is GONE:
        del place[key]
    else:
        place[key] = value
    return content


def test_what_is_written_is_read() -> None:
    pairs = (Pair(cell="a", other="b"), Pair(cell="c", other="b", sign=-1))
    plan = RacePlan(pairs=pairs, seeds=tuple(range(6)), looks=2, names={"a": "x+y"})
    entry = Entry(plan=plan, seen=3)
    assert plain(entry) == GOOD
    assert entries({"schema": 1, "races": [GOOD]}) == (entry,)
    every = Entry(plan=RacePlan(pairs=pairs, seeds=tuple(range(20)), looks=None, margin=2), seen=0)
    assert entries({"schema": 1, "races": [plain(every)]}) == (every,)


WHOLE = "a whole number"


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("schema", 2, "schema is 2; this version of rlbench reads 1"),
        ("schema", GONE, "schema is not there; this version of rlbench reads 1"),
        ("races", GONE, "races is not there"),
        ("races", 7, "races is 7, expected a list of plans"),
        ("races[1]", "x", "races[1] is 'x', expected an object"),
        ("races[1].looks", GONE, "races[1].looks is not there"),
        ("races[1].looks", "2", f"races[1].looks is '2', expected {WHOLE} or null"),
        ("races[1].looks", 2.0, f"races[1].looks is 2.0, expected {WHOLE} or null"),
        ("races[1].looks", True, f"races[1].looks is true, expected {WHOLE} or null"),
        ("races[1].looks", 0, "races[1]: 6 seeds don't make 0 looks"),
        ("races[1].looks", 4, "races[1]: 6 seeds don't make 4 looks"),
        ("races[0].alpha", None, "races[0].alpha is null, expected a number"),
        ("races[0].alpha", 1, "races[0]: alpha=1.0: an error rate lies in (0, 1)"),
        ("races[0].margin", -1, "races[0]: margin=-1.0: expected a positive difference"),
        ("races[0].margin", [], "races[0].margin is [], expected a number or null"),
        ("races[0].margin", 10**400, "races[0].margin is 1000000000"),
        ("races[0].seeds", 5, "races[0].seeds is 5, expected a list with something in it"),
        ("races[0].seeds", [], "races[0].seeds is [], expected a list with something in it"),
        ("races[0].seeds[2]", "2", f"races[0].seeds[2] is '2', expected {WHOLE}"),
        ("races[0].seeds[2]", 1, "races[0]: a seed is in the pool twice"),
        ("races[0].pairs", None, "races[0].pairs is null, expected a list with something in it"),
        ("races[0].pairs[1]", [1], "races[0].pairs[1] is [1], expected an object"),
        ("races[0].pairs[1].sign", GONE, "races[0].pairs[1].sign is not there"),
        ("races[0].pairs[1].sign", 0, "races[0].pairs[1].sign is 0, expected 1 or -1"),
        ("races[0].pairs[1].sign", True, "races[0].pairs[1].sign is true, expected 1 or -1"),
        ("races[0].pairs[0].cell", 3, "races[0].pairs[0].cell is 3, expected the key of a cell"),
        ("races[0].pairs[0].other", "a", "pairs[0].other is 'a', expected another cell than its"),
        ("races[0].names", ["a"], "races[0].names is ['a'], expected an object"),
        ("races[0].names.a", 1, "races[0].names.a is 1, expected text"),
        ("races[0].seen", -1, "races[0].seen is -1, expected a number of runs"),
        ("races[0].seen", GONE, "races[0].seen is not there"),
    ],
    ids=str,
)
def test_a_fault_is_named_with_its_key_and_what_to_do(
    tmp_path: Path, path: str, value: Any, said: str
) -> None:
    content = changed(path, value)
    (tmp_path / PLAN).write_text(json.dumps(content), "utf-8")
    with pytest.raises(UsageError) as refused:
        races_of(tmp_path)
    message = str(refused.value)
    begins = f"{tmp_path / PLAN}: no plans of races can be read there: "
    assert message.startswith(begins)
    assert said in message.removeprefix(begins)
    assert message.endswith("put the file back as it was, or race into another folder with -o")
    assert len(message.splitlines()) == 1


def test_a_level_that_no_number_of_seeds_reaches_is_named(tmp_path: Path) -> None:
    race = GOOD | {"looks": None, "alpha": 5e-324}
    (tmp_path / PLAN).write_text(json.dumps({"schema": 1, "races": [race]}), "utf-8")
    with pytest.raises(UsageError, match=r"races\[0\]\.alpha is 5e-324, expected an error rate"):
        races_of(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"schema": 1, "races": [{"looks": 1e400}]}', "1e400 is too large for a number"),
        ("[]", "holds list, expected an object"),
        ("", "can't be read"),
    ],
)
def test_what_is_no_json_is_said_once(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / PLAN).write_text(text, "utf-8")
    with pytest.raises(UsageError) as refused:
        spent_by_race(tmp_path, [])
    assert said in str(refused.value)
    assert str(refused.value).count(PLAN) == 1


def test_a_fifo_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / PLAN)
    plan = RacePlan(pairs=(Pair(cell="a", other="b"),), seeds=tuple(range(6)), looks=2)
    with pytest.raises(UsageError, match="it is a FIFO, expected a file"):
        enter(tmp_path, plan, {})


def test_the_command_says_it_in_a_line(tmp_path: Path) -> None:
    (tmp_path / PLAN).write_text(json.dumps(changed("races[0].names", ["a"])), "utf-8")
    command = ["race", "-e", "group", "-e", "rloo", "-o", str(tmp_path), "--dry-run"]
    done = CliRunner().invoke(cli, command)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{tmp_path / PLAN}: no plans of races can be read there: races[0].names" in done.stderr
    assert len(done.stderr.splitlines()) == 1
