"""Where and with what a run was made. None of it is part of a run's name."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def checkout(folder: Path) -> dict[str, Any] | None:
    """Tell the commit of a folder's git checkout; None if it is none, or git is not there.

    Returns:
        ``commit`` and ``dirty``: whether a tracked file differs from it.
    """
    command = ["git", "-C", str(folder), "--no-optional-locks"]
    try:
        commit, changes = (
            subprocess.run(  # noqa: S603 - a fixed command
                [*command, *arguments], capture_output=True, text=True, timeout=5, check=True
            ).stdout.strip()
            for arguments in (
                ("rev-parse", "HEAD"),
                ("status", "--porcelain", "--untracked-files=no"),
            )
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return {"commit": commit, "dirty": bool(changes)}


def checkouts(plugins: Iterable[str] = ()) -> dict[str, Any]:
    """Tell what was given as plugins and which commits the code is of, once for a whole grid.

    Args:
        plugins: Paths of loose plugin files, and names of modules.

    Returns:
        ``git`` of rlbench, ``plugins`` as they are given again from this folder, and
        ``plugins_git`` by the names of the files.
    """
    home = Path(__file__).parents[1]
    # An installed copy can lie below somebody else's checkout, whose commit would say nothing.
    own = checkout(home) if (home.parent / "pyproject.toml").is_file() else None
    given = list(plugins)
    files = [plugin for plugin in given if plugin.endswith(".py")]
    return {
        "git": own,
        "plugins": [_from_here(plugin) if plugin in files else plugin for plugin in given],
        "plugins_git": {Path(file).name: checkout(Path(file).parent) for file in files},
    }


def _from_here(file: str) -> str:
    """Write a path below the working folder without the name of that folder."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


@cache
def machine() -> dict[str, Any]:
    """Describe the machine: results are bit for bit the same on one instruction set only."""
    import torch  # not above: the process that supervises stays without it

    system = os.uname()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": metadata.version("numpy"),
        "rlbench": metadata.version("rlbench"),
        "platform": f"{system.sysname} {system.machine}",
        "cpu": _cpu_model(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "Hardware", "cpu model"):
                return value.strip()
    except (OSError, ValueError):
        pass  # not Linux, or a container that hides it
    return platform.machine()


def describe(started: str, given: Mapping[str, Any], threads: int) -> dict[str, Any]:
    """Put together what ``result.json`` says under ``provenance``.

    Args:
        started: Time of the start, UTC, ISO 8601.
        given: What the process that supervises already knows: see `checkouts`.
        threads: Threads that numerical code may use.
    """
    return {**machine(), "threads": threads, "started": started, **given}
