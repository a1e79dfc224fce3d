"""`rlbench export`: one tidy table, with every digit, for other programs."""

from __future__ import annotations

import io
import os
import signal
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli
from rlbench.report.cells import export as exporting

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCORE = 0.1 + 0.2  # 0.30000000000000004


def export(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["export", *map(str, arguments)])


def read(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text), dtype_backend="numpy_nullable")


@pytest.fixture
def filled(tmp_path: Path, write_run: Callable[..., Path]) -> Path:
    out = tmp_path / "out"
    write_run(out, seed=0, result={"score": SCORE, "tokens": 12345678901})
    write_run(out, seed=1, status="failed", metrics=None)
    write_run(
        out,
        seed=2,
        settings={"horizon": 8},
        metrics="update,extra\n1,0.1\n2,0.30000000000000004\n3,0.",
    )
    return out


def test_one_row_a_run_in_full_precision(filled: Path) -> None:
    done = export(filled)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "0.30000000000000004" in done.stdout
    frame = read(done.stdout)
    assert sorted(frame["seed"]) == [0, 1, 2]
    lines = sorted(done.stdout.splitlines()[1:], key=lambda line: line.split(",")[7])
    assert [line.split(",")[7:11] for line in lines] == [
        ["0", "", "ok", ""],  # a gap makes neither a seed nor a horizon a float
        ["1", "", "failed", "E: boom"],
        ["2", "8", "ok", ""],
    ]
    assert "12345678901," in lines[0]


def test_curves_have_a_row_for_each_update(filled: Path) -> None:
    done = export(filled, "--curves")
    assert done.exit_code == 0
    assert "without a curve: there is no " in done.stderr
    frame = read(done.stdout).sort_values(["seed", "update"]).reset_index(drop=True)
    assert list(frame["seed"]) == [0, 0, 2, 2]  # the cut line of the last one is no row
    assert list(frame["update"]) == [1, 2, 1, 2]
    assert list(frame["loss_metric"].fillna(-1)) == [0.5, 0.25, -1, -1]
    assert frame["extra"][3] == SCORE
    assert frame["loss"][0] == "clip"
    assert "score" not in frame
    assert "0.30000000000000004" in done.stdout


def test_flags_select(filled: Path) -> None:
    assert list(read(export(filled, "-s", "0,2").stdout)["seed"]) in ([0, 2], [2, 0])
    assert list(read(export(filled, "--set", "horizon=8").stdout)["seed"]) == [2]
    done = export(filled, "-e", "gae")
    assert (done.exit_code, done.stdout) == (3, "")


def test_a_file_is_never_overwritten_unasked(filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    assert export(filled, "--to", file).exit_code == 0
    written = file.read_text("utf-8")
    assert written == export(filled).stdout
    file.write_text("mine", "utf-8")
    done = export(filled, "--to", file)
    assert (done.exit_code, file.read_text("utf-8")) == (2, "mine")
    assert "--force overwrites it" in done.stderr
    assert export(filled, "--to", file, "--force").exit_code == 0
    assert file.read_text("utf-8") == written
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "runs.csv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "runs.txt"], "ends in .csv or .parquet"),
        (["--to", "no/runs.csv"], "there is no folder no"),
        (["--to", ".csv"], "ends in .csv or .parquet"),
        (["--force"], "there is no --to"),
    ],
)
def test_mistakes_write_nothing(
    filled: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(filled.parent)
    done = export(filled, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert [path.name for path in filled.parent.iterdir()] == ["out"]


def test_parquet_without_its_library_says_how_to_get_it(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "_writes_parquet", lambda: False)
    done = export(filled, "--to", tmp_path / "runs.parquet")
    assert done.exit_code == 2
    assert "pip install 'rlbench[parquet]'" in done.stderr


@pytest.mark.parametrize("more", [[], ["--curves"]])
def test_parquet_keeps_numbers_and_whole_seeds(
    filled: Path, tmp_path: Path, more: list[str]
) -> None:
    pytest.importorskip("pyarrow", reason="the optional library for Parquet")
    file = tmp_path / "runs.parquet"
    assert export(filled, "--to", file, *more).exit_code == 0
    frame = pd.read_parquet(file)
    assert sorted(set(frame["seed"])) == ([0, 2] if more else [0, 1, 2])
    assert SCORE in set(frame["extra" if more else "score"].dropna())


def test_settings_of_several_types_become_text_in_parquet() -> None:
    frame = pd.DataFrame({"a": [1, "x", None], "b": [1.0, 2.0, 3.0]}, dtype=object)
    frame["b"] = frame["b"].astype(float)
    one = exporting._one_type_a_column(frame)
    assert list(one["a"].dropna()) == ["1", "x"]
    assert one["b"].dtype == float


def test_a_full_disk_leaves_the_old_file(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("old", "utf-8")

    def full(self: Path, *rest: object, **named: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(file), "write_text", full)
    done = CliRunner().invoke(cli, ["export", str(filled), "--to", str(file), "--force"])
    assert isinstance(done.exception, SystemExit)
    assert done.exit_code == 1
    assert "No space left" in done.stderr
    assert file.read_text("utf-8") == "old"


def test_what_can_not_be_a_row_is_named(filled: Path) -> None:
    (filled / "runs" / "notes.txt").write_text("mine", "utf-8")
    done = export(filled)
    assert done.exit_code == 0
    assert "notes.txt is not the folder of a run" in done.stderr


# --- where it goes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkdir, "it is a folder; name a file"),
        (os.mkfifo, "it is a FIFO; name a file"),
        (lambda path: path.symlink_to("nowhere"), "it is a link to nowhere; name a file"),
        (lambda path: path.symlink_to(path.name), "it is a link in a circle; name a file"),
    ],
)
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_what_is_no_file_is_refused_before_anything_is_read(
    tmp_path: Path, make: Any, said: str, force: list[str]
) -> None:
    path = tmp_path / "runs.csv"
    make(path)
    before = os.lstat(path)
    done = export(tmp_path / "no results here", "--to", path, *force)
    assert (done.exit_code, done.stderr) == (2, f"rlbench: --to {path}: {said}\n")
    assert (os.lstat(path).st_ino, os.lstat(path).st_mode) == (before.st_ino, before.st_mode)


def test_a_link_to_a_file_is_followed(filled: Path, tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old", "utf-8")
    (tmp_path / "runs.csv").symlink_to("real")
    assert export(filled, "--to", tmp_path / "runs.csv").exit_code == 2
    assert export(filled, "--to", tmp_path / "runs.csv", "--force").exit_code == 0
    assert (tmp_path / "runs.csv").is_symlink()
    assert (tmp_path / "real").read_text("utf-8") == export(filled).stdout


def test_a_folder_that_may_not_be_written_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    done = export(tmp_path / "no results here", "--to", tmp_path / "runs.csv")
    assert done.exit_code == 2
    assert done.stderr == (
        f"rlbench: --to {tmp_path / 'runs.csv'}: the folder {tmp_path} is not writable\n"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_told_and_leaves_the_old_file(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("old", "utf-8")
    monkeypatch.setattr(exporting, "csv", lambda frame: os.kill(os.getpid(), number))
    done = export(filled, "--to", file, "--force")
    assert done.exit_code == 130
    assert done.stderr == f"interrupted: {file} is as it was; the same command begins again\n"
    assert file.read_text("utf-8") == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "runs.csv"]
    done = export(filled)
    assert (done.exit_code, done.stdout) == (130, "")
    assert done.stderr.startswith("interrupted: what is on stdout is not all")


# --- settings that are called like columns --------------------------------------------------------

TAKEN = ("run_id", "algorithm", "loss", "seed", "status", "error", "score", "wall_s", "torch")


def test_a_setting_that_is_called_like_a_column_has_its_own(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    for seed in range(2):
        settings: dict[str, Any] = dict.fromkeys(TAKEN, 100 + seed)
        write_run(tmp_path, seed=seed, settings=settings | {"setting.score": seed, "plain": 7})
    done = export(tmp_path)
    header = done.stdout.partition("\n")[0].split(",")
    assert len(header) == len(set(header))
    frame = read(done.stdout).sort_values("seed")
    for name in TAKEN:
        assert list(frame[f"setting.{name}"]) == [100, 101]
    assert list(frame["setting.setting.score"]) == [0, 1]
    assert list(frame["seed"]) == [0, 1]
    assert list(frame["score"]) == [0.75, 0.75]
    assert set(frame["status"]) == {"ok"}
    assert "algorithm" not in frame  # no run here has one
    curves = read(export(tmp_path, "--curves").stdout)
    assert len(set(curves.columns)) == len(curves.columns)
    assert list(curves["setting.score"]) == [100, 100, 101, 101]


def test_such_settings_go_to_parquet(tmp_path: Path, write_run: Callable[..., Path]) -> None:
    pytest.importorskip("pyarrow", reason="the optional library for Parquet")
    for seed, value in enumerate((1.5, "high")):
        write_run(tmp_path, seed=seed, settings={"score": value, "run_id": 2**70 + seed})
    file = tmp_path / "runs.parquet"
    done = export(tmp_path, "--to", file)
    assert done.exit_code == 0, done.stderr
    frame = pd.read_parquet(file).sort_values("seed")
    assert list(frame["setting.score"]) == ["1.5", "high"]
    assert list(frame["setting.run_id"].astype(str)) == [str(2**70), str(2**70 + 1)]
    assert list(frame["score"]) == [0.75, 0.75]


def test_metrics_that_are_called_alike_stay_apart(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    write_run(tmp_path, metrics="update,loss,loss_metric\n1,0.5,0.25\n")
    frame = read(export(tmp_path, "--curves").stdout)
    assert list(frame["loss"]) == ["clip"]
    assert list(frame["loss_metric"]) == [0.5]
    assert list(frame["loss_metric_metric"]) == [0.25]
