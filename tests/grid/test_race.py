"""A race on its way: what is run and what is not, how it stops, its plan on disk, a real one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from rlbench.errors import UsageError
from rlbench.grid.race import PLAN, Pair, RacePlan, key_of
from rlbench.grid.race_file import enter, races_of, spent_by_race
from rlbench.grid.race_loop import Raced, race
from rlbench.grid.store import Record
from rlbench.grid.supervisor import Outcome

from .conftest import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

A, B, C = "a", "b", "c"


def plan(others: str = A, n: int = 20, looks: int | None = 4, **more: Any) -> RacePlan:
    pairs = tuple(Pair(cell=other, other=B) for other in others)
    return RacePlan(pairs=pairs, seeds=tuple(range(n)), looks=looks, **more)


@dataclass(frozen=True)
class Run:
    """What the loop knows of a planned run."""

    run_id: str


class World:
    """Runs that have their scores before they run, or fail; and what of them is on disk.

    Args:
        scores: For each cell a function of the seed; None is a failure, which scores -1.
        there: Names of runs that are complete already.
    """

    def __init__(
        self, scores: Mapping[str, Callable[[int], float | None]], there: Sequence[str] = ()
    ) -> None:
        self.scores = scores
        self.done: dict[str, str] = dict.fromkeys(there, "ok")
        self.asked: list[list[str]] = []
        self.limits: list[int | None] = []
        self.dies_after = 1_000_000  # runs, before a signal comes
        self.killed: set[str] = set()

    def runs(self, made: RacePlan) -> dict[str, list[Any]]:
        return {key: [Run(f"{key}{seed}") for seed in made.seeds] for key in made.cells}

    def read(self, runs: Sequence[Any]) -> list[Record]:
        return [self._record(run.run_id) for run in runs]

    def execute(self, runs: Sequence[Any], most: int | None) -> tuple[list[Record], Outcome]:
        self.asked.append([run.run_id for run in runs])
        self.limits.append(most)
        failed, interrupted = 0, False
        for run in runs:
            if self.dies_after == 0:
                interrupted = True
                break
            self.dies_after -= 1
            if run.run_id in self.killed:
                self.done[run.run_id] = "killed"
                continue
            fails = self._value(run.run_id) is None
            self.done[run.run_id] = "failed" if fails else "ok"
            failed += fails
            if most is not None and failed >= most:
                break
        outcome = Outcome(0, failed, 0, interrupted=interrupted, exit_code=0)
        return self.read(runs), outcome

    def score(self, records: Sequence[Record]) -> dict[str, float | None]:
        tried = (record.run_id for record in records if record.complete)
        return {name: -1.0 if (v := self._value(name)) is None else v for name in tried}

    def race(self, made: RacePlan, **more: Any) -> Raced:
        return race(made, self.runs(made), self.read, self.execute, self.score, **more)

    def _value(self, run_id: str) -> float | None:
        return self.scores[run_id[0]](int(run_id[1:]))

    def _record(self, run_id: str) -> Record:
        status = self.done.get(run_id)
        result = None if status is None else {"status": status}
        return Record(run_id, None, {}, result, None)  # type: ignore[arg-type]  # nobody looks there


def wave(seed: int) -> float:
    """A spread of 0.1 around 0, whatever the number of seeds."""
    return (-0.1, 0.1, 0.05, -0.05, 0.0)[seed % 5]


def ahead(seed: int) -> float:
    return 1 + wave(seed)


def flat(_seed: int) -> float:
    return 0.0


@dataclass(frozen=True)
class Stands:
    """The part of a standing that these tests are about."""

    verdict: str
    n: int


def verdicts(raced: Raced) -> list[Stands]:
    return [Stands(one.verdict, one.n) for one in raced.standings]


def test_a_decided_cell_gets_no_more_seeds_and_the_baseline_runs_on() -> None:
    world = World({A: ahead, B: flat, C: wave})
    raced = world.race(plan("ac"))
    assert verdicts(raced) == [Stands("better", 5), Stands("undecided", 20)]
    first, *later = world.asked
    assert first == [f"{cell}{seed}" for seed in range(5) for cell in "bac"]
    assert later[0] == [f"{cell}{seed}" for seed in range(5, 10) for cell in "bc"]
    assert raced.used == {B: 20, A: 5, C: 20}
    assert (raced.stopped, raced.missing, raced.exit_code) == ("", 0, 0)


def test_it_stops_when_all_is_decided() -> None:
    world = World({A: ahead, B: flat})
    raced = world.race(plan())
    assert len(world.asked) == 1
    assert raced.complete == 10


def test_what_is_there_is_not_run_and_extra_seeds_are_not_looked_at() -> None:
    there = [f"{cell}{seed}" for cell in "ab" for seed in (0, 1, 2, 17)]
    world = World({A: ahead, B: flat}, there)
    raced = world.race(plan())
    assert world.asked == [["b3", "a3", "b4", "a4"]]
    assert verdicts(raced) == [Stands("better", 5)]
    assert (raced.complete, sum(raced.used.values())) == (12, 10)


@pytest.mark.parametrize("looks", [4, None])
@pytest.mark.parametrize("after", range(0, 40, 7))
def test_an_interrupted_race_goes_on_to_the_same_standings(looks: int | None, after: int) -> None:
    scores = {A: lambda seed: 0.1 + wave(seed), B: flat, C: wave}
    made = plan("ac", looks=looks)
    whole, torn = World(scores), World(scores)
    wanted = whole.race(made, step=3)
    torn.dies_after = after
    early = torn.race(made, step=3)
    assert (early.stopped, early.exit_code) == ("interrupted", 130)
    torn.dies_after = 1_000_000
    again = torn.race(made, step=3)
    assert again.standings == wanted.standings
    assert torn.done == whole.done


def test_seeds_that_were_run_ahead_change_no_decision() -> None:
    made = plan(looks=None)
    scores = {A: lambda seed: 0.12 + wave(seed), B: flat}
    one, four = World(scores), World(scores)
    assert one.race(made, step=1).standings == four.race(made, step=4).standings
    assert 0 < len(four.done) - len(one.done) < 2 * 4


def test_a_budget_stops_before_the_look_that_exceeds_it_and_may_grow() -> None:
    world = World({A: wave, B: flat})
    raced = world.race(plan(), budget=25)
    assert (raced.stopped, raced.missing, raced.exit_code) == ("budget", 10, 0)
    assert (raced.complete, verdicts(raced)) == (20, [Stands("undecided", 10)])
    # the same again spends nothing; what is on disk counts
    assert world.race(plan(), budget=25).complete == 20
    assert world.race(plan(), budget=30).complete == 30


def test_a_run_that_came_to_no_end_stops_it_before_the_look() -> None:
    world = World({A: ahead, B: flat})
    world.killed = {"a3"}
    raced = world.race(plan())
    assert (raced.stopped, raced.exit_code, raced.missing) == ("incomplete", 1, 1)
    assert verdicts(raced) == [Stands("undecided", 0)]
    world.killed = set()
    assert verdicts(world.race(plan())) == [Stands("better", 5)]


def test_a_failure_counts_with_its_floor_and_is_told_by_the_exit_code() -> None:
    world = World({A: lambda seed: None if seed == 2 else ahead(seed), B: flat})
    raced = world.race(plan())
    # 0.9, 1.1, -1, 0.95, 1: no longer clear after five; the floor is in every look
    assert raced.standings[0].n > 5
    assert raced.exit_code == 1
    assert world.race(plan()).exit_code == 1  # nothing is left to run, and still one failed


def test_where_everything_fails_no_more_seeds_are_spent() -> None:
    world = World({A: lambda _: None, B: lambda _: None})
    raced = world.race(plan())
    assert (len(world.asked), raced.stopped, raced.exit_code) == (1, "failures", 1)
    assert world.race(plan()).complete == 10  # nor by the same command again


def test_a_cell_that_always_fails_is_worse() -> None:
    world = World({A: lambda _: None, B: wave})
    assert verdicts(world.race(plan())) == [Stands("worse", 5)]


def test_what_failed_is_known_to_the_rule() -> None:
    # behind at every seed; at the floor, seed 2 alone makes the spread as large as the difference
    world = World({A: lambda seed: None if seed == 2 else -0.2 + 0.01 * (seed % 3), B: flat})
    assert verdicts(world.race(plan())) == [Stands("worse", 5)]


def test_allowed_failures_count_over_all_looks() -> None:
    world = World({A: lambda seed: None if seed in (1, 6) else wave(seed), B: flat})
    raced = world.race(plan(), most_failures=2)
    assert world.limits == [2, 1]
    assert (raced.stopped, raced.exit_code) == ("failures", 1)
    assert "a7" not in world.done


def test_retry_repeats_what_failed_before_anything_else() -> None:
    broken = World({A: lambda seed: None if seed in (1, 9) else ahead(seed), B: flat})
    broken.race(plan())
    mended = World({A: ahead, B: flat})
    mended.done = dict(broken.done)
    raced = mended.race(plan(), retry=True)
    assert mended.asked[0] == [name for name in ("a1", "a9") if name in broken.done]
    assert verdicts(raced) == [Stands("better", 5)]
    assert raced.exit_code == 0


def test_standings_are_told_after_each_look() -> None:
    world = World({A: ahead, B: flat, C: wave})
    told: list[list[int]] = []
    world.race(plan("ac"), tell=lambda _, after: told.append([one.n for one in after]))
    assert told == [[0, 0], [5, 5], [5, 10], [5, 15], [5, 20]]


def test_a_plan_is_on_disk_and_found_there_again(tmp_path: Path) -> None:
    made = plan("ac", margin=0.02, names={A: "x+y", B: "b", C: "c"})
    assert enter(tmp_path, made, {0: 2, 3: 1, 40: 2}) == 3
    assert [entry.plan for entry in races_of(tmp_path)] == [made]
    # what is complete by now was not before the plan
    assert enter(tmp_path, made, dict.fromkeys(range(20), 3)) == 3
    assert len(races_of(tmp_path)) == 1


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    assert enter(tmp_path / "new", plan(), {1: 1}, dry=True) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (plan(looks=2), "4 looks then, 2 looks now"),
        (plan(looks=None), "4 looks then, looks after every seed now"),
        (plan(n=40), "seeds 0-19 then, 0-39 now"),
        (plan("ac"), "a - b then, a - b, c - b now"),
        (plan(margin=0.02), "no margin then, margin 0.02 now"),
        (plan(alpha=0.1), "level 0.95 then, 0.9 now"),
    ],
)
def test_another_plan_for_the_same_is_refused(tmp_path: Path, other: RacePlan, said: str) -> None:
    enter(tmp_path, plan(), {})
    before = (tmp_path / PLAN).read_bytes()
    with pytest.raises(UsageError, match=r"-s 20-") as refused:
        enter(tmp_path, other, {})
    assert said in str(refused.value)
    assert (tmp_path / PLAN).read_bytes() == before


def test_the_order_of_seeds_is_part_of_the_plan(tmp_path: Path) -> None:
    enter(tmp_path, plan(), {})
    turned = RacePlan(pairs=plan().pairs, seeds=tuple(range(19, -1, -1)), looks=4)
    with pytest.raises(UsageError, match=r"seeds 0-19 then, 19,18,17"):
        enter(tmp_path, turned, {})


def test_other_cells_or_other_seeds_make_another_race(tmp_path: Path) -> None:
    fresh = RacePlan(pairs=plan().pairs, seeds=tuple(range(20, 40)), looks=2)
    for made in (plan(), plan("c"), fresh, plan()):
        enter(tmp_path, made, {})
    assert [entry.plan for entry in races_of(tmp_path)] == [plan(), plan("c"), fresh]


def test_a_race_that_looks_after_every_seed_may_get_more(tmp_path: Path) -> None:
    short, long = plan(looks=None), plan(n=50, looks=None)
    assert enter(tmp_path, short, {0: 1}) == 1
    # of the new seeds 30 was there; what came to be of the old ones is the race's own
    assert enter(tmp_path, long, {0: 2, 1: 2, 30: 1}) == 2
    assert enter(tmp_path, short, {}) == 2
    assert [entry.plan.seeds for entry in races_of(tmp_path)] == [tuple(range(50))]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "no json",
        '{"schema": 2, "races": []}',
        '{"schema": 1, "races": [{}]}',
        '{"schema": 1}',
        '{"schema": 1, "races": 7}',
        '{"schema": 1, "races": [{"pairs": [], "seeds": [], "looks": 2, "alpha": 0.05, '
        '"margin": null, "names": {}, "seen": 0}]}',
    ],
)
def test_plans_that_can_t_be_read_are_said_and_never_overwritten(tmp_path: Path, text: str) -> None:
    (tmp_path / PLAN).write_text(text, "utf-8")
    with pytest.raises(UsageError, match=r"race\.json: no plans of races can be read"):
        enter(tmp_path, plan(), {})
    assert (tmp_path / PLAN).read_text("utf-8") == text
    with pytest.raises(UsageError, match=r"put the file back as it was, or race into another"):
        spent_by_race(tmp_path, [])


def test_what_a_race_has_spent_is_known_by_cell_and_seed(tmp_path: Path) -> None:
    def spec(name: str, seed: int) -> dict[str, Any]:
        return {"components": {"loss": name}, "seed": seed, "run_id": f"{name}{seed}"}

    keys = {name: key_of(spec(name, 0)) for name in ("clip", "pg", "mine")}
    assert keys["clip"] == key_of(spec("clip", 7)) != keys["pg"]
    made = RacePlan(
        pairs=(Pair(cell=keys["pg"], other=keys["clip"]),), seeds=tuple(range(10)), looks=2
    )
    assert not spent_by_race(tmp_path, [spec("pg", 0), spec("clip", 0)])
    enter(tmp_path, made, {})
    assert spent_by_race(tmp_path, [spec("pg", 3), spec("clip", 3), spec("mine", 3)])
    assert not spent_by_race(tmp_path, [spec("pg", 3), spec("mine", 3)])
    assert not spent_by_race(tmp_path, [spec("pg", 12), spec("clip", 12)])


TINY = (
    "updates=2",
    "prompts=4",
    "group_size=2",
    "minibatches=1",
    "epochs=1",
    "eval_prompts=16",
    "base_score=0",
)
COMMAND = [sys.executable, "-m", "rlbench", "race", "-t", "sort", "--set", "lr=1e-3,0.1"]
COMMAND += [*(word for setting in TINY for word in ("--set", setting)), "-s", "3,1,0,2,5,4"]
COMMAND += ["--format", "json"]


def tiny(folder: Path) -> subprocess.CompletedProcess[str]:
    command, environment = [*COMMAND, "-o", str(folder)], os.environ | {"NO_COLOR": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_real_race_that_is_killed_goes_on_to_the_same_table(tmp_path: Path) -> None:
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    with subprocess.Popen([*COMMAND, "-q", "-o", str(torn)], stdout=subprocess.DEVNULL) as first:
        some = wait_until(
            lambda: len(list(torn.glob("runs/*/result.json"))) >= 2 or first.poll() is not None, 120
        )
        first.send_signal(signal.SIGKILL)
    assert some
    assert first.returncode == -signal.SIGKILL
    assert races_of(torn)[0].plan.seeds == (3, 1, 0, 2, 5, 4)
    there = len(list(torn.glob("runs/*/result.json")))
    done = tiny(torn)
    assert done.returncode == 0, done
    assert f"{there} of them there already" in done.stderr
    table = json.loads(done.stdout)
    assert (table["seeds"], table["looks"]) == ([3, 1, 0, 2, 5, 4], [3, 6])
    (row,) = table["rows"]
    assert row["difference_low"] < row["difference_high"]
    assert table["runs"] == {"used": 2 * row["pairs"], "complete": 2 * row["pairs"], "grid": 12}
    # the same runs judged in one go, with nothing left to run
    shutil.copytree(torn / "runs", whole / "runs")
    at_once = json.loads(tiny(whole).stdout)
    assert at_once["rows"] == table["rows"]
    assert "were there before its plan" in at_once["notes"][-1]
    assert not any("before its plan" in note for note in table["notes"])
