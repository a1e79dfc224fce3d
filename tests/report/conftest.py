"""Result folders written by hand, as the grid writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

DEFAULTS = {
    "estimator": "group",
    "loss": "clip",
    "kl": "none",
    "task": "addition",
    "reward": "true",
    "model": "lstm",
}


NUMBERS = {"score_start": 0.5, "entropy": 0.4, "length": 4.0, "tokens": 1000}


def component(label: str, owner: dict[str, Any] | None, source: str) -> dict[str, Any]:
    """Describe a component as ``spec.json`` does."""
    name, _, options = label.partition(":")
    return {
        "name": name,
        "label": label,
        "options": dict(part.partition("=")[::2] for part in options.split(",") if part),
        "owner": owner or {"plugin": "rlbench", "distribution": "rlbench", "version": "0.1.0"},
        "source": source,
    }


class WriteRun(Protocol):
    """See `write_run`."""

    def __call__(
        self,
        seed: int,
        score: float | None,
        *,
        status: str = "ok",
        error: tuple[str, str] | None = None,
        settings: dict[str, Any] | None = None,
        spec: dict[str, Any] | None = None,
        owner: dict[str, Any] | None = None,
        source: str = "a1b2c3d4e5",
        sources: dict[str, str] | None = None,
        result: dict[str, Any] | None = None,
        run: bool = True,
        **labels: str,
    ) -> Path: ...


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Folder of results."""
    return tmp_path / "out"


@pytest.fixture
def write_run(out: Path) -> WriteRun:
    """Write one run; kinds are given as labels, such as ``estimator="gae:lam=0.9"``."""

    def write(
        seed: int,
        score: float | None,
        *,
        status: str = "ok",
        error: tuple[str, str] | None = None,
        settings: dict[str, Any] | None = None,
        spec: dict[str, Any] | None = None,
        owner: dict[str, Any] | None = None,
        source: str = "a1b2c3d4e5",
        sources: dict[str, str] | None = None,
        result: dict[str, Any] | None = None,
        run: bool = True,
        **labels: str,
    ) -> Path:
        content = {
            "schema": 1,
            "seed": seed,
            "components": {
                kind: component(label, owner, (sources or {}).get(kind, source))
                for kind, label in (DEFAULTS | labels).items()
            },
            "settings": Settings().values() | (settings or {}),
            "torch": "2.13.0+cpu",
            "training": "0123456789",
        } | (spec or {})
        number = len(list((out / "runs").glob("*"))) if out.exists() else 0
        run_id = f"run-s{seed}-{number:010x}"
        content["run_id"] = run_id
        folder = out / "runs" / run_id
        folder.mkdir(parents=True)
        (folder / "spec.json").write_text(json.dumps(content), encoding="utf-8")
        ended = {
            "schema": 1,
            "run_id": run_id,
            "status": status,
            "error": None if error is None else {"type": error[0], "message": error[1]},
            "floor": 0.0,
            "wall_s": 11.0,
            "provenance": {"rlbench": "0.1.0", "threads": 1, "cpu": "Some CPU"},
        }
        if status == "ok":
            ended |= NUMBERS | {"score": score, "reward": score, "kl": 0.25 + seed / 100}
        if run:
            text = json.dumps(ended | (result or {}), allow_nan=False)
            (folder / "result.json").write_text(text, encoding="utf-8")
        return folder

    return write
