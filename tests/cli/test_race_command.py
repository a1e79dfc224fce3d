"""`rlbench race`: what it says before, on the way and at the end, and what it refuses."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli
from rlbench.grid import launch as launching
from rlbench.grid.identity import canonical
from rlbench.grid.race_file import races_of
from rlbench.grid.store import Store, write_json
from rlbench.grid.supervisor import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rlbench.grid.attempt import Planned
    from rlbench.grid.store import Record

TRIO = ("-e", "group", "-e", "rloo", "-e", "gae")


def wave(seed: int) -> float:
    """A spread of 0.02 around 0; other numbers for each cell give each its own."""
    return 0.02 * math.sin(12.9898 * seed + 1)


def scores(run: Planned) -> float | None:
    """What runs reach here: rloo as much as group, gae 0.2 less, and pg fails at seed 2."""
    spec = run.spec
    name, seed = spec.selections["estimator"].name, spec.seed
    if spec.selections["loss"].name == "pg" and seed == 2:
        return None
    luck = 0.5 + 5 * wave(seed)
    own = {"group": 0.0, "rloo": wave(seed + 100), "gae": wave(seed + 200) - 0.2}
    return luck + own.get(name, wave(seed + 300))


class World:
    """Results that need no training; hears what was asked."""

    def __init__(self) -> None:
        self.score: Callable[[Planned], float | None] = scores
        self.asked: list[list[str]] = []
        self.options: dict[str, Any] = {}
        self.stops_after = 1_000_000

    def launch(
        self, _registry: object, planned: list[Planned], **options: Any
    ) -> tuple[list[Record], Outcome]:
        store, failed, interrupted = Store(options["out"]), 0, False
        self.options = options
        self.asked.append([run.run_id for run in planned])
        for run in planned:
            if self.stops_after == 0:
                interrupted = True
                break
            self.stops_after -= 1
            score = self.score(run)
            failed += score is None
            result: dict[str, Any] = {"schema": 1, "run_id": run.run_id, "floor": 0.0}
            result |= {"status": "ok", "score": score, "wall_s": 30.0}
            if score is None:
                result |= {"status": "failed", "error": {"type": "ValueError", "message": "no"}}
            folder = store.run_folder(run.run_id)
            folder.mkdir(parents=True, exist_ok=True)
            write_json(folder / "spec.json", canonical(run.spec))
            write_json(folder / "result.json", result)
        code = 130 if interrupted else int(failed > 0)
        outcome = Outcome(0, failed, 0, interrupted=interrupted, exit_code=code)
        return list(store.records(run.run_id for run in planned)), outcome


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    made = World()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launching, "launch", made.launch)
    return made


def race(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["race", *arguments, "-o", "out", "-j", "2"])


def data(*arguments: str) -> dict[str, Any]:
    done = race(*arguments, "--format", "json")
    assert done.exit_code in (0, 1), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


# the differences of rloo are wave(seed + 100), their mean over ten seeds 0.0078
WHOLE = """\
cell   n   score     diff        95% interval  verdict
----  --  ------  -------  ------------------  ----------
rloo  10  0.5173  +0.0078  [-0.0041, +0.0196]  equivalent
gae    5  0.3634  -0.2164  [-0.2245, -0.2083]  worse

Against group: 1 worse, 1 equivalent. It took 25 runs of the 75 of the whole
  grid.
n: pairs of seeds at the look that decided, or at the last one. score: the row's
  mean over its pairs. diff: mean difference, row less baseline, positive is
  better; where a race stops early it tends to be too large. 95% interval: right
  for all comparisons at all looks together, also where it stops early.
verdict: better or worse where the interval excludes 0, equivalent where it lies
  inside ±0.02; the first look that decides counts. 5 looks are planned, one
  after every 5 seeds; each takes the paired t interval at 99.31% (Pocock's
  rule, exact for t; Bonferroni over 2 comparisons). Chance of any wrong claim
  in the whole race: at most 0.05 for differences that are near normal; failures
  so rare that none has shown are in no interval.
rlbench compare does not hold for these seeds: what they showed decided how many
  there are.
All rows: loss clip, kl none, task addition, reward true, model lstm.
"""


def test_the_whole_text() -> None:
    done = race(*TRIO, "--baseline", "group", "--margin", "0.02")
    assert done.exit_code == 0
    assert done.stdout == WHOLE
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_progress_goes_to_stderr_a_line_a_comparison_that_was_open() -> None:
    lines = race(*TRIO, "--baseline", "group", "--margin", "0.02").stderr.splitlines()
    assert lines[:2] == [
        "2 comparisons with group; pool of 25 seeds (0-24): 5 looks, one after every 5",
        "at most 75 runs, no timing yet",
    ]
    assert lines[2:] == [
        "5 pairs: rloo - group: +0.003 [-0.024, +0.031] open",
        "5 pairs: gae - group: -0.2164 [-0.2245, -0.2083] worse",
        "10 pairs: rloo - group: +0.008 [-0.004, +0.020] equivalent",
    ]


def test_only_what_is_open_is_run(world: World) -> None:
    race(*TRIO, "--baseline", "group", "--margin", "0.02")
    first, second = world.asked
    assert len(first) == 15
    assert len(second) == 10
    assert not any(name.startswith("gae") for name in second)


def test_typed_again_it_runs_nothing_and_prints_the_same(world: World) -> None:
    arguments = (*TRIO, "--baseline", "group", "--margin", "0.02")
    first = race(*arguments)
    again = race(*arguments)
    assert again.stdout == first.stdout
    assert len(world.asked) == 2
    assert "at most 75 runs, 25 of them there already, about 12 min at 2 at a time" in again.stderr


def test_an_interrupted_race_shows_its_table_and_goes_on(world: World) -> None:
    arguments = (*TRIO, "--baseline", "group", "--margin", "0.02")
    world.stops_after = 18
    torn = race(*arguments)
    assert torn.exit_code == 130
    assert "Interrupted: the next look takes 7 more runs; the same command goes on." in flat(torn)
    world.stops_after = 1_000_000
    assert race(*arguments).stdout == WHOLE


def flat(done: Result) -> str:
    return " ".join(done.stdout.split())


def test_data_for_programs() -> None:
    found = data(*TRIO, "--baseline", "group", "--margin", "0.02")
    assert [(r["cell"], r["against"], r["pairs"], r["verdict"]) for r in found["rows"]] == [
        ("rloo", "group", 10, "="),
        ("gae", "group", 5, "-"),
    ]
    assert (found["rule"], found["looks"]) == ("planned looks", [5, 10, 15, 20, 25])
    assert found["runs"] == {"used": 25, "complete": 25, "grid": 75}
    worse = found["rows"][1]
    # what a reader can compute: the mean of five differences, wave(seed + 200) - 0.2
    assert worse["difference"] == pytest.approx(sum(wave(s + 200) for s in range(5)) / 5 - 0.2)
    assert worse["difference_low"] < worse["difference"] < worse["difference_high"] < 0
    assert worse["p"] < found["nominal"]
    assert worse["e_value"] is None


@pytest.mark.parametrize("format_", ["csv", "tsv"])
def test_rows_go_to_stdout_and_notes_to_stderr(format_: str) -> None:
    done = race(*TRIO, "--baseline", "group", "--max-seeds", "10", "--format", format_)
    header, *rows = done.stdout.splitlines()
    assert header.split("," if format_ == "csv" else "\t")[:4] == [
        "cell",
        "against",
        "task",
        "pairs",
    ]
    assert len(rows) == 2
    assert "Undecided after all 10 seeds" in done.stderr


@pytest.mark.parametrize("format_", ["github", "latex", "html", "rst", "grid"])
def test_any_format_is_whole(format_: str) -> None:
    done = race(*TRIO, "--baseline", "group", "--format", format_)
    assert done.exit_code == 0
    assert "rloo" in done.stdout
    assert "Pocock" in done.stdout


def test_without_a_baseline_all_pairs_are_raced() -> None:
    rows = data(*TRIO)["rows"]
    pairs = {frozenset((row["cell"], row["against"])) for row in rows}
    assert len(rows) == len(pairs) == 3
    assert "Of 3 pairs: " in race(*TRIO).stdout


def test_after_every_seed_the_pool_may_grow(world: World) -> None:
    arguments = ("-e", "group", "-e", "rloo", "--anytime", "--max-seeds")
    short = data(*arguments, "10")
    assert (short["rule"], short["rows"][0]["verdict"]) == ("every seed", "?")
    assert any("more of them" in note for note in short["notes"])
    long = data(*arguments, "12")
    assert long["rows"][0]["pairs"] == 12
    assert long["rows"][0]["e_value"] < 20
    assert sum(map(len, world.asked)) == 24
    assert len(races_of(Store("out").root)) == 1  # type: ignore[arg-type]  # a text is a path there


def test_another_plan_for_the_same_is_refused_before_anything_runs(world: World) -> None:
    race(*TRIO, "--baseline", "group")
    world.asked.clear()
    for more, said in [
        (("--looks", "4", "--max-seeds", "20"), "5 looks then, 4 looks now; seeds 0-24 then"),
        (("--margin", "0.02"), "no margin then, margin 0.02 now"),
        (("--anytime",), "5 looks then, looks after every seed now"),
        (("--anytime", "--dry-run"), "5 looks then, looks after every seed now"),
    ]:
        done = race(*TRIO, "--baseline", "group", *more)
        assert done.exit_code == 2
        assert said in done.stderr
        assert "-s 25-" in done.stderr
    assert world.asked == []
    assert race(*TRIO, "--baseline", "group", "--margin", "0.02", "-s", "25-34").exit_code == 0


def test_results_from_before_the_plan_are_warned_of(world: World) -> None:
    some = ("-e", "group", "-e", "rloo")
    planned = launching.plan(
        launching.ask(
            None,
            load=launching.load,
            axes={"estimator": ["group"]},
            settings=(),
            seeds="0-2",
            plugins=(),
            how={},
        ).specs
    )
    world.launch(None, planned, out="out")
    said = "3 runs of this race were there before its plan"
    done = race(*some)
    assert f"warning: {said}" in done.stderr
    assert f"Beware: {said}" in flat(done)
    assert f"Beware: {said}" in flat(race(*some))  # for ever, not by counting again
    assert f"warning: {said}" in race(*some, "-q").stderr


def test_a_dry_run_says_what_it_takes_and_writes_nothing(tmp_path: Path, world: World) -> None:
    done = race(*TRIO, "--baseline", "group", "--dry-run")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "2 comparisons with group; pool of 25 seeds (0-24): 5 looks, one after every 5",
        "at most 75 runs, no timing yet",
    ]
    assert world.asked == []
    assert not list(tmp_path.iterdir())


def test_a_budget_ends_it_and_says_how_it_goes_on() -> None:
    done = race("-e", "group", "-e", "rloo", "--budget", "29")
    assert done.exit_code == 0
    assert "Stopped by the budget of 29 runs: the next look takes 10 more runs." in flat(done)
    assert "It took 20 runs of the 50 of the whole grid." in flat(done)


def test_failures_are_scored_counted_and_named() -> None:
    done = race("-l", "clip", "-l", "pg", "--baseline", "clip", "--max-seeds", "10")
    assert done.exit_code == 1
    header, _, row = done.stdout.splitlines()[:3]
    assert header.split()[:3] == ["cell", "n", "failed"]
    assert row.split()[:3] == ["pg", "10", "1"]
    assert "pg: 1 of 10 failed (seeds 2; rate 0.10" in flat(done)
    assert "the first by ValueError: no" in flat(done)


def test_quiet_says_nothing(world: World) -> None:
    assert race(*TRIO, "-q").stderr == ""


def test_flags_of_running_reach_the_runs(world: World) -> None:
    race(*TRIO, "--timeout", "9", "--retries", "2", "--fail-fast")
    options = world.options
    assert (options["timeout_s"], options["retries"], options["workers"]) == (9.0, 2, 2)
    assert (options["fail_fast"], options["max_failures"]) == (False, 1)


def test_an_experiment_file_gives_cells_and_the_pool(tmp_path: Path) -> None:
    text = 'seeds = "3-12"\n[axes]\nestimator = ["group", "rloo"]\n'
    (tmp_path / "night.toml").write_text(text, "utf-8")
    assert data("night.toml")["seeds"] == list(range(3, 13))
    (tmp_path / "night.toml").write_text(text.partition("\n")[2], "utf-8")
    assert data("night.toml", "-s", "100-124")["seeds"] == list(range(100, 125))
    assert "pool of 25 seeds (0-24)" in race("night.toml", "--dry-run", "-t", "sort").stdout


def test_each_task_has_its_own_baseline() -> None:
    rows = data("-e", "group", "-e", "gae", "-t", "addition", "-t", "sort", "--baseline", "group")[
        "rows"
    ]
    assert sorted((row["task"], row["cell"], row["against"]) for row in rows) == [
        ("addition", "gae+addition", "group+addition"),
        ("sort", "gae+sort", "group+sort"),
    ]


def test_what_can_t_be_compared_is_left_out_and_said() -> None:
    cells = ("-e", "group", "-e", "gae", "--set", "eval_prompts=1000,500")
    done = race(*cells, "--baseline", "group+eval_prompts=1000")
    assert "Not raced: " in flat(done)
    assert "eval_prompts is 500, the baseline's 1000" in flat(done)
    assert len(data(*cells, "--baseline", "group+eval_prompts=1000")["rows"]) == 1


def test_long_names_fold_at_the_width_of_a_terminal() -> None:
    names = [f"gae:gamma=0.99{n},lam=0.9{n}1,whiten=true" for n in (1, 2)]
    cells = [word for name in names for word in ("-e", name)]
    table, _, prose = race(*cells, "--max-width", "60").stdout.partition("\n\n")
    assert all(len(line) <= 60 for line in [*table.splitlines(), *prose.splitlines()])
    rule, *rows = table.splitlines()[1:]
    shown = "".join(row[: len(rule.split()[0])] for row in rows)
    assert shown.replace(" ", "") == "-".join(names)
    wide = race(*cells, "--max-width", "0").stdout.splitlines()[2]
    assert wide.startswith(" - ".join(names))


def test_an_open_race_says_how_many_fresh_seeds_would_decide() -> None:
    cells = ("-e", "group", "-e", "rloo", "--max-seeds", "10", "--margin", "0.001")
    (note,) = (note for note in data(*cells)["notes"] if note.startswith("Fresh seeds"))
    assert "a difference of 0.001 (power 80%, one look): about" in note
    assert note.endswith(" for group - rloo.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--anytime", "--looks", "4"], "give one of them"),
        (["-s", "0-9", "--max-seeds", "10"], "give one of them"),
        (["--looks", "5", "--max-seeds", "26"], "26 seeds don't make 5 looks"),
        (["--max-seeds", "5"], "5 seeds don't make 5 looks"),
        (["--budget", "9"], "the first look alone takes 10 runs"),
        (["--baseline", "grop"], "did you mean 'group'?"),
        (["--margin", "0"], "not a positive difference"),
        (["--margin", "nan"], "not a positive difference"),
        (["--alpha", "0.9"], "not in [0.001, 0.5]"),
        (["--looks", "1"], "not in the range"),
        (["--format", "no"], "no"),
    ],
    ids=" ".join,
)
def test_mistakes_are_named_and_nothing_is_written(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    done = race("-e", "group", "-e", "rloo", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_one_cell_is_no_race() -> None:
    done = race("-e", "group")
    assert done.exit_code == 2
    assert "nothing to race" in done.stderr


def test_its_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom rlbench.cli import cli\n"
        "try:\n    cli.main(['race', '--help'])\nexcept SystemExit:\n    pass\n"
        "print([n for n in ('torch', 'numpy', 'scipy', 'pandas') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
