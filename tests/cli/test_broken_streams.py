"""Streams that are closed, full or not there: never a traceback, and runs start."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from rlbench.errors import RlbenchError
from rlbench.report.text.terminal import emit, is_terminal, say

TINY = (
    "updates=1",
    "prompts=2",
    "group_size=2",
    "minibatches=1",
    "eval_prompts=8",
    "base_score=0",
)


def sh(arguments: str, redirections: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f"{sys.executable} -m rlbench {arguments} {redirections}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("redirections", ["2>&-", ">&-", "<&- >&- 2>&-"])
def test_a_run_with_closed_streams_runs(redirections: str, tmp_path: Path) -> None:
    settings = " ".join(f"--set {setting}" for setting in TINY)
    done = sh(f"run -s 0 -o out {settings}", redirections, tmp_path)
    assert done.returncode == 0, done.stderr
    (result,) = tmp_path.glob("out/runs/*/result.json")
    assert '"status": "ok"' in result.read_text("utf-8")
    assert ("estimator" in done.stdout) == (">&-" not in redirections.split())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux only")
@pytest.mark.parametrize("arguments", ["list", "--help", "show loss clip"])
def test_a_full_disk_behind_stdout_is_one_line(arguments: str, tmp_path: Path) -> None:
    done = sh(arguments, "> /dev/full", tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("rlbench: ")
    assert "No space left on device" in line


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux only")
def test_a_full_disk_behind_stderr_costs_no_data(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise ValueError", encoding="utf-8")
    assert sh("list loss", "2> /dev/full", tmp_path).stdout.startswith("loss\n")
    assert sh("list --plugin broken.py", "2> /dev/full", tmp_path).returncode == 2


def test_a_stream_that_is_closed_or_missing_is_no_terminal() -> None:
    closed = io.StringIO()
    closed.close()
    assert [is_terminal(stream) for stream in (None, closed, io.StringIO())] == [False] * 3


@pytest.mark.parametrize("missing", [True, False])
def test_text_for_a_closed_stream_goes_nowhere(
    monkeypatch: pytest.MonkeyPatch,
    missing: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    for name in ("stdout", "stderr"):
        stream = io.StringIO()
        stream.close()
        monkeypatch.setattr(sys, name, None if missing else stream)
    emit("data")
    say("news")


def test_data_that_can_not_be_written_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(RlbenchError, match=r"can't be written: .*No space left"):
        emit("data")
