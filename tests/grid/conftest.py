from __future__ import annotations

import os
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rlbench.grid.attempt import Planned
from rlbench.grid.experiment import build
from rlbench.grid.identity import run_id
from rlbench.plugin.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlbench.training.spec import RunSpec


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet reaped does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def wait_until(condition: Callable[[], object], seconds: float = 5.0) -> bool:
    """Wait for something that must come true; the time is a limit, never a measurement."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Write a module that this process and its children can import."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)

    def write(name: str, text: str) -> Path:
        path = folder / f"{name}.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


def make_specs(
    seeds: str = "0",
    settings: tuple[str, ...] = (),
    plugins: tuple[str, ...] = (),
    **selections: str,
) -> list[RunSpec]:
    """Build runs as the command line does."""
    chosen = {kind: [text] for kind, text in selections.items()}
    return build(load(plugins), selections=chosen, settings=settings, seeds=seeds)


def make_plan(seeds: str, **selections: str) -> list[Planned]:
    """Build and name runs."""
    return [Planned(run_id(spec), spec) for spec in make_specs(seeds, **selections)]


class StillAlive:
    """Gives the processes that don't end within five seconds."""

    wait_until = staticmethod(wait_until)

    def __call__(self, pids) -> list[int]:
        pids = list(pids)
        wait_until(lambda: not any(map(alive, pids)))
        return [pid for pid in pids if alive(pid)]


@pytest.fixture
def still_alive() -> StillAlive:
    return StillAlive()


@pytest.fixture
def grid(tmp_path: Path, module: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch):
    """A store, an engine, and runs that do as they are told."""
    from .acting import TARGET, Grid

    folder = module("grid_targets", TARGET).parent
    monkeypatch.setattr("rlbench.grid.attempt.TARGET", "grid_targets:execute")
    monkeypatch.setattr("rlbench.grid.supervisor.PRELOAD", ("rlbench.grid.store",))
    return Grid(tmp_path / "out", folder)
