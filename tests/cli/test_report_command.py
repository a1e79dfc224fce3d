"""`rlbench report`: where the page goes, which baseline it takes, what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli
from rlbench.report.page import pictures

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"


@pytest.fixture(autouse=True)
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have tests of their own, and take most of the time."""
    monkeypatch.setattr(pictures, "draw", lambda *_: pictures.Pictures())


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results of the reference, to be written to."""
    copy = tmp_path / "my results"
    shutil.copytree(REFERENCE / "runs", copy / "runs")
    return copy


def report(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["report", *map(str, arguments)])


def test_the_page_goes_into_the_folder_of_results(results: Path) -> None:
    done = report(results)
    assert done.exit_code == 0, done.stderr
    assert done.stdout == f"{results / 'report.html'}\n"
    text = (results / "report.html").read_text("utf-8")
    assert "<bdi>my results</bdi>" in text
    # and the command that it names is one that works
    assert f"rlbench report {str(results).replace('my results', '')}" in text
    again = report(results, "--baseline", "group+clip")
    assert again.exit_code == 0
    assert "All 5 others are worse than group+clip." in (results / "report.html").read_text("utf-8")


def test_the_same_command_gives_the_same_bytes(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one.html", "two.html")]
    for path in paths:
        assert report(REFERENCE, "--to", path).stdout == f"{path}\n"
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_of_two_cells_the_first_is_the_baseline(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert report(REFERENCE, "-e", "group", "--to", path).exit_code == 0
    text = path.read_text("utf-8")
    assert "pg is worse than clip." in text
    assert "Nobody named a baseline" in text
    assert "Not all results are on this page: 20 of 30 runs, not selected." in text


def test_margin_and_level_are_those_of_the_comparison(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    arguments = ["--baseline", "rloo+clip", "--margin", "0.2", "--level", "0.9"]
    assert report(REFERENCE, "-l", "clip", *arguments, "--to", path).exit_code == 0
    text = path.read_text("utf-8")
    assert "equivalent" in text
    assert "90% interval" in text


def test_another_metric_can_be_compared(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    arguments = ["--metric", "kl_nats", "--baseline", "group+clip", "--to", path]
    assert report(REFERENCE, *arguments).exit_code == 0
    assert "kl_nats +1.8" in path.read_text("utf-8")  # gae+pg: 2.54 - 0.71


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """Imported results of two algorithms in two tasks, at two learning rates."""
    rows = ["algorithm,task,seed,score,lr"]
    for algorithm, gain in (("old", 0.0), ("new", 0.2)):
        for task in ("one", "two"):
            for seed in range(4):
                for lr in (0.1, 0.2):
                    score = gain + lr + seed * seed / 100
                    rows.append(f"{algorithm},{task},{seed},{score},{lr}")
    file = tmp_path / "all.csv"
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    out = tmp_path / "theirs"
    arguments = ["import", str(file), "--map", "set.lr=lr", "-o", str(out)]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.stderr
    return out


def test_a_learning_rate_is_chosen_for_each_cell(tasks: Path) -> None:
    done = report(tasks, "--baseline", "old", "--tune", "lr")
    assert done.exit_code == 0, done.stderr
    text = (tasks / "report.html").read_text("utf-8")
    assert "seeds 1,3 chose it among 0.1, 0.2, and all verdicts come from the other" in text
    assert "at lr 0.2" in text
    assert "Equal settings are not equal tuning" not in text


def test_a_value_to_choose_that_is_not_there_is_said(tasks: Path) -> None:
    done = report(tasks, "--baseline", "old", "--tune", "lr=0.1,0.2,0.3")
    assert done.exit_code == 0
    assert "no result with lr=0.3; there are: 0.1, 0.2" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tune", "lr", "-a", "old"], "there is nothing to compare"),
        (["--tune", "lr", "-a", "old", "-t", "one"], "there is nothing to compare"),
        (["--tune", "lr=0.1"], "one value leaves nothing to choose"),
        (["--tune", "nothing"], "--tune 'nothing'"),
        (["--tune", "lr", "-s", "0-2"], "4 seeds that all have tried are needed"),
    ],
)
def test_what_cannot_be_tuned_is_one_line(
    arguments: list[str], said: str, tasks: Path, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    done = report(tasks, *arguments, "--to", path)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not path.exists()


def test_scores_of_tasks_are_put_on_one_scale(tasks: Path, tmp_path: Path) -> None:
    scale = tmp_path / "scale.csv"
    scale.write_text("task,low,high\none,0,1\ntwo,0,2\n", encoding="utf-8")
    done = report(tasks, "--set", "lr=0.1", "--normalise", scale)
    assert done.exit_code == 0, done.stderr
    text = (tasks / "report.html").read_text("utf-8")
    assert "Each algorithm over all tasks" in text
    assert "normalised by two reference scores a task" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-t", "one"], "over several tasks, and these results have one task"),
        ([], "two"),
        (["--metric", "reward_mean"], "--normalise is for scores, not for reward_mean"),
    ],
)
def test_a_scale_that_fits_nothing_is_one_line(
    arguments: list[str], said: str, tasks: Path, tmp_path: Path
) -> None:
    scale = tmp_path / "scale.csv"
    scale.write_text("task,low,high\none,0,1\n", encoding="utf-8")
    path = tmp_path / "page.html"
    done = report(tasks, *arguments, "--normalise", scale, "--to", path)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not path.exists()


def test_paths_and_log_lines_on_a_page_are_said_once(results: Path) -> None:
    page = results / "report.html"
    folder = min((results / "runs").glob("gae-*"))
    result = json.loads((folder / "result.json").read_text("utf-8"))
    result |= {"status": "failed", "score": None, "error": {"type": "E", "message": "m"}}
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    (folder / "log.txt").write_text('File "/home/me/my_loss.py", line 3', encoding="utf-8")
    done = report(results)
    said = "the page holds paths of a machine and log lines: read it before you send it."
    assert done.stderr.count(said) == 1
    assert page.read_text("utf-8").count(said[1:]) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--baseline", "grop+clip"], 2, "did you mean 'group+clip'?"),
        (["--baseline", "clip"], 2, "fits 3 cells"),
        (["--margin", "-1"], 2, "is not a positive difference"),
        (["--metric", "kl"], 2, "unknown metric"),
        (["-e", "nothing_of_the_kind"], 3, "nothing_of_the_kind"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    arguments: list[str], code: int, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    done = report(REFERENCE, *arguments, "--to", path)
    assert done.exit_code == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not path.exists()


def test_a_file_of_somebody_else_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "thesis.html"
    path.write_text("<html>mine</html>", encoding="utf-8")
    done = report(REFERENCE, "--to", path)
    assert done.exit_code == 2
    assert "--force overwrites it" in done.stderr
    assert path.read_text("utf-8") == "<html>mine</html>"
    assert report(REFERENCE, "--to", path, "--force").exit_code == 0
    assert "rlbench report" in path.read_text("utf-8")


def test_no_results_are_nothing_to_show(tmp_path: Path) -> None:
    done = report(tmp_path / "none")
    assert done.exit_code == 3
    assert "no results in" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_readable_run_is_nothing_to_show(tmp_path: Path) -> None:
    (tmp_path / "runs" / "junk").mkdir(parents=True)
    done = report(tmp_path)
    assert done.exit_code == 3
    assert not (tmp_path / "report.html").exists()


def test_a_run_that_is_torn_is_named_and_the_rest_is_shown(results: Path) -> None:
    torn = min((results / "runs").iterdir())
    (torn / "result.json").write_text("{", encoding="utf-8")
    done = report(results, "--baseline", "group+clip")
    assert done.exit_code == 0
    assert "warning:" in done.stderr
    assert torn.name in (results / "report.html").read_text("utf-8")


def test_runs_of_a_plugin_that_is_gone_have_a_page(results: Path) -> None:
    for folder in (results / "runs").glob("gae-*"):
        spec = json.loads((folder / "spec.json").read_text("utf-8"))
        loss = spec["components"]["loss"]
        loss["name"] = loss["label"] = "of_a_plugin_that_is_gone"
        loss["owner"] = {"plugin": "gone", "distribution": None, "version": None}
        (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        result = json.loads((folder / "result.json").read_text("utf-8"))
        result |= {"status": "failed", "score": None, "error": {"type": "E", "message": "m"}}
        result["provenance"]["plugins"] = ["gone.py"]
        (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    done = report(results)
    assert done.exit_code == 0, done.stderr
    text = (results / "report.html").read_text("utf-8")
    assert "--plugin gone.py" in text
