"""Result folders written by hand, in any place."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from rlbench.training.settings import Settings
from rlbench.training.spec import DEFAULT_SELECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CURVE = "update,loss,reward\n1,0.5,0.25\n2,0.25,0.5\n"
OWNER = {"plugin": "rlbench", "distribution": "rlbench", "version": "0.1.0"}


def component(kind: str, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": name,
        "options": {"eps": 0.2} if kind == "loss" else {},
        "needs": [],
        "owner": OWNER,
        "source": f"{kind}0123456789",
    }


def write(
    out: Path,
    *,
    seed: int = 0,
    status: str | None = "ok",
    metrics: str | None = CURVE,
    result: dict[str, Any] | None = None,
    components: dict[str, dict[str, Any]] | None = None,
    **spec: Any,
) -> Path:
    """Write one run; equal arguments give it one name in every folder."""
    kinds = {kind: component(kind, name) for kind, name in DEFAULT_SELECTIONS.items()}
    for kind, change in (components or {}).items():
        kinds[kind] |= change
    settings = Settings().values() | spec.pop("settings", {})
    versions = {"torch": "2.13.0+cpu", "training": "0123456789"}
    content = {"components": kinds, "settings": settings, **versions} | spec
    text = json.dumps([seed, content], sort_keys=True)
    run_id = f"group-clip-s{seed}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"
    folder = out / "runs" / run_id
    folder.mkdir(parents=True)
    head = {"schema": spec.get("schema", 1), "run_id": run_id, "seed": seed}
    (folder / "spec.json").write_text(json.dumps(head | content, indent=1), "utf-8")
    if metrics is not None:
        (folder / "metrics.csv").write_text(metrics, "utf-8")
    if status is not None:
        ended = {
            "schema": 1,
            "run_id": run_id,
            "status": status,
            "error": None if status == "ok" else {"type": "E", "message": "boom"},
            "floor": 0.0,
            "wall_s": 11.0,
            "score": 0.75 if status == "ok" else None,
            "provenance": {"rlbench": "0.1.0", "threads": 1, "cpu": "Some CPU"},
        }
        (folder / "result.json").write_text(json.dumps(ended | (result or {})), "utf-8")
    return folder


@pytest.fixture
def write_run() -> Callable[..., Path]:
    return write
