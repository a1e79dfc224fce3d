"""Records of runs that nobody ran, in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlbench.grid.store import Record
from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULTS = {
    "estimator": "group",
    "loss": "clip",
    "kl": "none",
    "task": "addition",
    "reward": "true",
    "model": "lstm",
}


def component(label: str) -> dict[str, Any]:
    """Describe a component as ``spec.json`` does; its options are those of the label."""
    name, _, options = label.partition(":")
    return {
        "name": name,
        "label": label,
        "options": dict(part.partition("=")[::2] for part in options.split(",") if part),
        "owner": {"plugin": "rlbench", "distribution": "rlbench", "version": "0.1.0"},
        "source": "a1b2c3d4e5",
    }


def record(
    seed: int,
    score: float | None,
    *,
    settings: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    result: Mapping[str, Any] | None = None,
    **labels: str,
) -> Record:
    """Make one run; no score means that it diverged, and would have scored 0 at the floor."""
    components = {kind: component(label) for kind, label in (DEFAULTS | labels).items()}
    content = {
        "schema": 1,
        "seed": seed,
        "components": components,
        "settings": Settings().values() | dict(settings or {}),
        "torch": "2.13.0",
        "training": "0123456",
    } | dict(spec or {})
    stem = "-".join(
        part.replace(":", "_").replace("=", "").replace(",", "_")
        for part in [*labels.values(), *map(str, (settings or {}).values())]
    )
    run_id = f"{stem or 'run'}-s{seed}"
    ended: dict[str, Any] = {
        "status": "diverged" if score is None else "ok",
        "error": {"type": "Diverged", "message": "the loss is NaN"} if score is None else None,
        "floor": 0.0,
    }
    if score is not None:
        ended |= {"score": score, "reward": score, "kl": 0.2 + seed / 50, "wall_s": 10.0 + seed}
    return Record(run_id, Path("runs") / run_id, content, ended | dict(result or {}), None)


def records(scores: Mapping[str, Sequence[float | None]], **more: Any) -> list[Record]:
    """Make the runs of several estimators at seeds 0, 1, 2, ..."""
    return [
        record(seed, score, estimator=estimator, **more)
        for estimator, values in scores.items()
        for seed, score in enumerate(values)
    ]
