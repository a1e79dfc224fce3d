"""What a failed run is worth: the floor of its task, and never more than one that ended well."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlbench.grid.store import Record


@dataclass(frozen=True)
class Floors:
    """What the tasks of some results say of failures.

    Attributes:
        known: The floor of every task that has one: a run that was killed early does not know it.
        worst: The worst score of every task among the runs that ended well.
    """

    known: Mapping[str, float]
    worst: Mapping[str, float]

    @classmethod
    def of(cls, records: Iterable[Record]) -> Floors:
        """Look the floors up, in whatever order the records come."""
        known: dict[str, float] = {}
        worst: dict[str, float] = {}
        for record in sorted(records, key=lambda record: record.run_id):
            spec, result = record.spec or {}, record.result or {}
            task, floor, score = _task(spec), result.get("floor"), result.get("score")
            if isinstance(floor, (int, float)):
                known[task] = float(floor)
            if record.complete and record.status == "ok" and isinstance(score, (int, float)):
                worst[task] = _worse(float(score), worst.get(task), spec)
        return cls(known, worst)

    def worth(self, record: Record) -> float | None:
        """Say what a failed run scores; None where no floor is known.

        A floor that lies above scores that were reached would make it pay to crash: then the worst
        of these counts.
        """
        spec = record.spec or {}
        task, floor = _task(spec), (record.result or {}).get("floor")
        if not isinstance(floor, (int, float)):
            floor = self.known.get(task)
        return None if floor is None else _worse(float(floor), self.worst.get(task), spec)


def _worse(one: float, other: float | None, spec: Mapping[str, Any]) -> float:
    if other is None:
        return one
    return max(one, other) if spec.get("direction") == "lower" else min(one, other)


def _task(spec: Mapping[str, Any]) -> str:
    return json.dumps(spec.get("components", {}).get("task", {}), sort_keys=True)
