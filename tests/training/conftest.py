from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from rlbench.plugin.loading import load
from rlbench.plugin.selection import parse
from rlbench.training.settings import Settings
from rlbench.training.spec import DEFAULT_SELECTIONS, RunSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rlbench.plugin.registry import Registry

SMALL = {
    "updates": 2,
    "prompts": 4,
    "group_size": 4,
    "minibatches": 2,
    "eval_prompts": 20,
    "base_score": 0.0,
}


class MemoryRecorder:
    """Keeps what a run tells."""

    def __init__(self, base_folder: Path) -> None:
        self.base_folder = base_folder
        self.updates: list[dict[str, Any]] = []
        self.timings: list[dict[str, Any]] = []
        self.evaluations: list[dict[str, Any]] = []
        self.shown: list[Mapping[str, Any]] = []
        self.steps: list[tuple[int, int, str]] = []
        self.lines: list[str] = []

    def update(self, row: Mapping[str, Any]) -> None:
        self.updates.append(dict(row))

    def timing(self, row: Mapping[str, Any]) -> None:
        self.timings.append(dict(row))

    def evaluation(self, row: Mapping[str, Any]) -> None:
        self.evaluations.append(dict(row))

    def samples(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.shown.extend(rows)

    def progress(self, done: int, total: int, phase: str) -> None:
        self.steps.append((done, total, phase))

    def log(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def registry() -> Registry:
    return load()


@pytest.fixture
def recorder(tmp_path: Path) -> MemoryRecorder:
    return MemoryRecorder(tmp_path / "base")


@pytest.fixture
def make_spec(registry: Registry) -> Callable[..., RunSpec]:
    """Build a small run: `make_spec(estimator="gae", seed=1, updates=3)`."""

    def make(*, seed: int = 0, source: Registry = registry, **chosen: Any) -> RunSpec:
        texts = {kind: chosen.pop(kind, text) for kind, text in DEFAULT_SELECTIONS.items()}
        return RunSpec(
            selections={kind: parse(source, kind, text) for kind, text in texts.items()},
            settings=Settings.from_values({**SMALL, **chosen}),
            seed=seed,
        )

    return make
