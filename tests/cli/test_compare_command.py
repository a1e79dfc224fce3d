"""`rlbench compare`: how a baseline is named, what is refused, and what is loaded."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
NAMES = ["group+clip", "gae+clip", "rloo+clip", "group+pg", "rloo+pg", "gae+pg"]


def compare(*arguments: str | Path, folder: Path = REFERENCE) -> Result:
    return CliRunner().invoke(cli, ["compare", *map(str, (folder, *arguments))])


def data(*arguments: str, folder: Path = REFERENCE) -> dict[str, Any]:
    done = compare(*arguments, "--format", "json", folder=folder)
    assert done.exit_code == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.fixture
def variants(tmp_path: Path) -> Path:
    """Four cells: two of one estimator, two learning rates, a value with a plus sign."""
    changes: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("gae", {}, {}),
        ("gae:lam=0.9", {"lam": 0.9}, {}),
        ("gae:lam=0.9", {"lam": 0.9}, {"lr": 0.001}),
        ("gae:gaps=a+b", {"gaps": "a+b"}, {}),
    ]
    for source in sorted((REFERENCE / "runs").glob("gae-clip-*")):
        for number, (label, options, settings) in enumerate(changes):
            spec = json.loads((source / "spec.json").read_text("utf-8"))
            result = json.loads((source / "result.json").read_text("utf-8"))
            spec["components"]["estimator"]["label"] = label
            spec["components"]["estimator"]["options"] |= options
            spec["settings"] |= settings
            spec["run_id"] = result["run_id"] = f"{source.name[:-1]}{number}"
            result["score"] -= number * 0.1 * (1 + spec["seed"] / 10)
            folder = tmp_path / "runs" / spec["run_id"]
            folder.mkdir(parents=True)
            (folder / "spec.json").write_text(json.dumps(spec), "utf-8")
            (folder / "result.json").write_text(json.dumps(result), "utf-8")
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_a_cell_is_named_as_errors_and_captions_name_it(name: str) -> None:
    assert data("--baseline", name)["baseline"] == name


@pytest.mark.parametrize(
    "text",
    [
        "clip+group",
        " group + clip ",
        "grpo+ppo_clip",
        "group:ddof=1+clip",
        "estimator=group+loss=clip",
        "none+addition+clip+group",
        "-e group -l clip",
        "--estimator grpo --loss=clip --set updates=225",
    ],
)
def test_other_ways_to_name_it(text: str) -> None:
    assert data("--baseline", text)["baseline"] == "group+clip"


def test_a_label_means_just_that_cell(variants: Path) -> None:
    # lr is the same in all but one cell, which it tells apart
    assert data("--baseline", "gae", folder=variants)["baseline"] == "gae+lr=0.0005"
    chosen = data("--baseline", "gae:lam=0.90+lr=1e-3", folder=variants)["baseline"]
    assert chosen == "gae:lam=0.9+lr=0.001"
    flags = data("--baseline", "-e gae:lam=0.9 --set lr=1e-3", folder=variants)["baseline"]
    assert flags == chosen


def test_a_plus_sign_inside_a_value(variants: Path) -> None:
    chosen = data("--baseline", "gae:gaps=a+b", folder=variants)["baseline"]
    assert chosen == "gae:gaps=a+b+lr=0.0005"
    assert data("--baseline", f"lr=0.0005+{chosen[:12]}", folder=variants)["baseline"] == chosen


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f"no such cell; there are: {', '.join(NAMES)}"),
        ("nope", f"no such cell; there are: {', '.join(NAMES)}"),
        ("group", "'group' fits 2 cells: group+clip, group+pg; name one"),
        ("grup+clip", f"did you mean 'group+clip'? there are: {', '.join(NAMES)}"),
        ("group+clip+pg", "no such cell"),
        ("gae:lm=0.9+pg", "did you mean 'lam'"),
        ("lr=1+group+clip", "no such cell"),
        ("-e group", "fits 2 cells: group+clip, group+pg; name one"),
        ("-e group -l clip --set lr=1", "no such cell"),
        ("-x group", "No such option '-x'"),
        ("-e 'group", "No closing quotation"),
    ],
)
def test_a_baseline_that_is_no_one_cell(text: str, message: str) -> None:
    done = compare("--baseline", text)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_a_baseline_the_first_of_two_is_it_and_that_is_said() -> None:
    done = compare("-e", "gae", "-e", "rloo", "-l", "clip")
    text = " ".join(done.stdout.split())
    assert "from gae (the first of two; --baseline names the other): score " in text
    assert "Left out: 20 of 30 runs, not selected." in text


def test_without_a_baseline_more_than_two_cells_are_refused_with_the_way_to_write_it() -> None:
    done = compare()
    assert (done.exit_code, done.stdout) == (2, "")
    assert "6 cells and no baseline; write --baseline group+clip, or another of: " in done.stderr
    assert ", ".join(NAMES) in done.stderr


def test_one_cell_is_nothing_to_compare() -> None:
    done = compare("-e", "gae", "-l", "clip")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "one cell only" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--level", "nan"],
        ["--level", "1"],
        ["--level", "95"],
        ["--margin", "nan"],
        ["--margin", "0"],
        ["--margin", "-1"],
        ["--margin", "inf"],
        ["--format", "gitub"],
        ["--baseline", "gae+pg"],  # the second one
    ],
)
def test_values_that_make_no_sense(arguments: list[str]) -> None:
    done = compare("--baseline", "group+clip", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")


def test_it_fits_80_columns_and_says_what_was_left_out() -> None:
    done = compare("--baseline", "group+clip", "--max-width", "80")
    assert done.exit_code == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "Left out for width: wins 95%" in done.stdout


def test_remarks_go_to_stderr_where_a_format_has_no_room(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    shutil.copytree(REFERENCE, folder)
    (gone,) = (folder / "runs").glob("gae-clip-none-addition-s4-*")
    shutil.rmtree(gone)
    arguments = ("-l", "clip", "--baseline", "group")
    done = compare(*arguments, "--format", "csv", folder=folder)
    assert "gae: 4 of 5 seeds make pairs; 4 did not run on both sides." in done.stderr
    assert "make pairs" not in done.stdout
    assert "make pairs" in compare(*arguments, folder=folder).stdout


def test_it_loads_neither_torch_nor_pandas_nor_all_of_scipy() -> None:
    code = (
        "import sys\nfrom rlbench.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = ('torch', 'pandas', 'scipy.stats', 'matplotlib')\n"
        "print([n for n in heavy if n in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "compare", REFERENCE, "--baseline", "grpo+clip"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == "[]\n"
    assert "group+clip" in done.stdout


@pytest.fixture
def rates(tmp_path: Path) -> Path:
    """Two cells at two learning rates; at 0.001 the second one is better by 0.3."""
    for source in sorted((REFERENCE / "runs").glob("*-clip-*")):
        spec = json.loads((source / "spec.json").read_text("utf-8"))
        if spec["components"]["estimator"]["name"] not in ("group", "rloo"):
            continue
        for rate in (0.0005, 0.001):
            changed = spec | {"run_id": f"{source.name[:-1]}{int(1e4 * rate) % 10}"}
            changed["settings"] = spec["settings"] | {"lr": rate}
            result = json.loads((source / "result.json").read_text("utf-8"))
            result["run_id"] = changed["run_id"]
            if rate == 0.001 and spec["components"]["estimator"]["name"] == "rloo":
                result["score"] += 0.3
            folder = tmp_path / "runs" / changed["run_id"]
            folder.mkdir(parents=True)
            (folder / "spec.json").write_text(json.dumps(changed), "utf-8")
            (folder / "result.json").write_text(json.dumps(result), "utf-8")
    return tmp_path


def test_tuned_cells_are_compared_and_named_without_what_was_tuned(rates: Path) -> None:
    document = data("--baseline", "group", "--tune", "lr", folder=rates)
    assert (document["baseline"], document["tuning"]["chosen_on"]) == ("group", [1, 3])
    rows = {row["estimator"]: row for row in document["rows"]}
    assert (rows["rloo"]["tuned"], rows["rloo"]["paired_seeds"]) == ("0.001", [0, 2, 4])
    assert rows["group"]["tuned"] == "0.0005"  # of equal scores the default
    assert rows["rloo"]["difference"] > 0.1


def test_values_to_choose_from_that_are_not_there_are_said(rates: Path) -> None:
    done = compare("--baseline", "group", "--tune", "lr=5e-4,1e-3,2", folder=rates)
    assert done.exit_code == 0
    assert "no result with lr=2; there are: 0.0005, 0.001" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--tune", "lr"], 2, "0.0005 is the only value, nothing to choose from"),
        (["--tune", "lr=1,2"], 3, "no result with lr=1 or 2; there are: 0.0005"),
        (["--tune", "eps"], 2, "such as loss.eps"),
        (["--tune", "loss.gamma"], 3, "no result has it"),
        (["--metric", "scor"], 2, "did you mean 'score'"),
        (["--metric", "entropy"], 2, "--direction higher or --direction lower"),
        (["--direction", "up"], 2, "'up' is not one of"),
    ],
)
def test_metrics_and_axes_that_make_no_sense(arguments: list[str], code: int, message: str) -> None:
    done = compare("--baseline", "group+clip", *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_direction_turns_the_table_round() -> None:
    higher = data("--baseline", "group+clip")
    lower = data("--baseline", "group+clip", "--direction", "lower")
    assert [row["estimator"] for row in lower["rows"]] == [
        row["estimator"] for row in reversed(higher["rows"])
    ]
    turned = {"+": "-", "-": "+"}
    assert [row["verdict"] for row in lower["rows"]] == [
        turned.get(row["verdict"], row["verdict"]) for row in reversed(higher["rows"])
    ]
    entropy = data("--baseline", "group+clip", "--metric", "entropy", "--direction", "higher")
    assert entropy["metric"] == "entropy"


@pytest.fixture
def two_tasks(tmp_path: Path) -> Path:
    """The reference results, and the same of another task, where the scores are half."""
    for source in sorted((REFERENCE / "runs").iterdir()):
        for task in ("addition", "sort"):
            spec = json.loads((source / "spec.json").read_text("utf-8"))
            result = json.loads((source / "result.json").read_text("utf-8"))
            spec["run_id"] = result["run_id"] = source.name.replace("addition", task)
            spec["components"]["task"] |= {"name": task, "label": task}
            result["score"] /= 1 + (task == "sort")
            folder = tmp_path / "runs" / spec["run_id"]
            folder.mkdir(parents=True)
            (folder / "spec.json").write_text(json.dumps(spec), "utf-8")
            (folder / "result.json").write_text(json.dumps(result), "utf-8")
    return tmp_path


def test_of_several_tasks_each_has_its_own_baseline(two_tasks: Path) -> None:
    document = data("--baseline", "grpo+clip", folder=two_tasks)
    assert document["baselines"] == {
        "addition": "addition+group+clip",
        "sort": "sort+group+clip",
    }
    assert (document["baseline"], document["comparisons"]) == ("group+clip", 10)
    assert [row["task"] for row in document["rows"]] == 6 * ["addition"] + 6 * ["sort"]
    one = data("--baseline", "sort+group+clip", folder=two_tasks)
    assert one["baselines"] == {"sort": "sort+group+clip"}
    assert {row["verdict"] for row in one["rows"] if row["task"] == "addition"} == {"x"}


def test_of_several_tasks_what_is_no_one_cell_is_refused(two_tasks: Path) -> None:
    done = compare("--baseline", "group", folder=two_tasks)
    assert done.exit_code == 2
    assert "fits 4 cells" in done.stderr
    done = compare(folder=two_tasks)
    assert done.exit_code == 2
    assert "6 cells of each task and no baseline; write --baseline group+clip" in done.stderr
    done = compare("-e", "group", "-l", "clip", folder=two_tasks)
    assert done.exit_code == 3
    assert "the 2 cells differ in nothing but the task" in done.stderr
