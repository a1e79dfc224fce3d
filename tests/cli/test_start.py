"""What starting costs, and what happens to output: real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = ("torch", "numpy", "pandas", "scipy", "matplotlib")
WATCH = f"""
import sys
from rlbench.cli import main
try:
    main()
except SystemExit as end:
    code = end.code
print(code, [name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""


def start(
    *arguments: str, program: tuple[str, ...] = ("-m", "rlbench"), cwd: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["run", "--help"],
        ["list"],
        ["list", "setting"],
        ["show", "model", "lstm"],
        ["show", "loss", "clip"],
        ["plugins"],
    ],
    ids=" ".join,
)
def test_these_load_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    done = start(*arguments, program=("-c", WATCH), cwd=tmp_path)
    assert done.stderr == "0 []\n"
    assert done.stdout


def test_a_mistake_loads_nothing_heavy_and_writes_nothing(tmp_path: Path) -> None:
    done = start("run", "--set", "lr=abc", program=("-c", WATCH), cwd=tmp_path)
    assert done.stderr.splitlines()[1] == "2 []"
    assert not list(tmp_path.iterdir())


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    # the reader is gone before anything is written
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "rlbench", "list"],
        stdout=write,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_closed_stderr_does_not_hide_the_exit_code(tmp_path: Path) -> None:
    command = f"{sys.executable} -m rlbench list nonsense 2>&-"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 2


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_help_and_list_in_any_encoding(encoding: str, tmp_path: Path) -> None:
    for arguments in (["--help"], ["list"], ["show", "estimator", "group"]):
        done = start(*arguments, cwd=tmp_path, PYTHONIOENCODING=encoding)
        assert (done.returncode, done.stderr) == (0, "")


def test_importing_rlbench_is_light(tmp_path: Path) -> None:
    code = f"import rlbench, sys; print([n for n in {HEAVY!r} if n in sys.modules])"
    assert start(program=("-c", code), cwd=tmp_path).stdout == "[]\n"
