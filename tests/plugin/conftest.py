"""Plugins that exist for one test only: inline, in a file, or installed."""

from __future__ import annotations

import sys
import textwrap
from importlib import metadata
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from rlbench.plugin import staging
from rlbench.plugin.registry import Component, Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

INSTALLED = {point.name for point in metadata.entry_points(group="rlbench")}
OWNER = Owner("demo", "rlbench-demo", "1.2")


@pytest.fixture(autouse=True)
def clean_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide the plugins that happen to be installed; leave no module to the next test."""
    monkeypatch.delenv("RLBENCH_STRICT_PLUGINS", raising=False)
    monkeypatch.setenv("RLBENCH_DISABLE_PLUGINS", ",".join(INSTALLED))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("demo", "rlbench_file_")):
            del sys.modules[name]


@pytest.fixture
def staged() -> Callable[[str], tuple[Component, ...]]:
    """Run the hooks of a plugin, given as source, on a fresh host."""

    def stage(source: str) -> tuple[Component, ...]:
        module = ModuleType("demo_inline")
        exec(textwrap.dedent(source), vars(module))
        return staging.stage(staging.manager(), module, OWNER)

    return stage


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a file and return its path."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put a distribution on sys.path the way pip does."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def install(
        distribution: str,
        modules: dict[str, str],
        *,
        version: str = "1.2",
        entry_points: str | None = None,
        folder: Path = site,
    ) -> Path:
        info = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {distribution}\nVersion: {version}\n")
        points = "\n".join(f"{name} = {name}" for name in modules)
        (info / "entry_points.txt").write_text(entry_points or f"[rlbench]\n{points}\n")
        for name, source in modules.items():
            (folder / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        return info

    return install
