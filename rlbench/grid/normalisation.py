"""Reference scores of tasks, by which scores of different tasks get one scale."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlbench.errors import UsageError
from rlbench.grid.reading import read_bytes

if TYPE_CHECKING:
    from pathlib import Path

_LEAST = 1e-100  # between the two ends of a scale
_LOW = ("low", "random")
_HIGH = ("high", "human", "expert")

Scale = tuple[float, float]


def read_normalisation(path: Path) -> dict[str, Scale]:
    """Read what counts as 0 and as 1 in each task.

    Args:
        path: A ``.csv`` with columns ``task``, ``low`` (or ``random``) and ``high`` (or ``human``,
            ``expert``); or ``.json``, ``{"task": [low, high]}`` or the same with these names.

    Returns:
        Task to the scores that count as 0 and as 1.

    Raises:
        UsageError: It can't be read, a task is there twice, or its two scores are one.
    """
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no UTF-8: byte {error.start}") from error
    pairs = _of_json(path, text) if path.suffix.lower() == ".json" else _of_csv(path, text)
    scales: dict[str, Scale] = {}
    for task, low, high in pairs:
        if task in scales:
            raise UsageError(f"{path}: task {task!r} is there twice")
        scales[task] = (_number(path, task, low), _number(path, task, high))
        ends = scales[task]
        if ends[0] == ends[1]:
            raise UsageError(f"{path}: task {task!r} has one score for 0 and for 1, {low}")
        if not _LEAST <= abs(ends[1] - ends[0]) < math.inf:
            raise UsageError(f"{path}: task {task!r}: {low} and {high} are no scale for scores")
    return scales


def normalised(score: float, scale: Scale) -> float:
    """Put a score on the scale of its task: 0 at the low score, 1 at the high one.

    Raises:
        UsageError: No float is so large.
    """
    low, high = scale
    found = (score - low) / (high - low)
    if not math.isfinite(found):
        raise UsageError(f"the score {score:g} is out of the scale from {low:g} to {high:g}")
    return found


def _of_csv(path: Path, text: str) -> list[tuple[str, Any, Any]]:
    rows = csv.DictReader(io.StringIO(text))
    names = list(rows.fieldnames or ())
    low, high = (next((n for n in known if n in names), None) for known in (_LOW, _HIGH))
    if "task" not in names or low is None or high is None:
        raise UsageError(
            f"{path} has columns {', '.join(names) or 'none'}; expected task, low and high"
        )
    return [(row["task"], row[low], row[high]) for row in rows]


def _of_json(path: Path, text: str) -> list[tuple[str, Any, Any]]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON: {error}") from error
    if not isinstance(content, Mapping):
        raise UsageError(f"{path} holds {content!r:.40}, expected tasks with two scores each")
    return [(task, *_pair(path, task, scale)) for task, scale in content.items()]


def _pair(path: Path, task: str, scale: object) -> tuple[Any, Any]:
    if isinstance(scale, list) and len(scale) == 2:
        return scale[0], scale[1]
    if isinstance(scale, Mapping):
        found = [next((scale[n] for n in known if n in scale), None) for known in (_LOW, _HIGH)]
        if None not in found:
            return found[0], found[1]
    raise UsageError(f"{path}: task {task!r} has {scale!r:.60}, expected [low, high]")


def _number(path: Path, task: str, value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{path}: task {task!r} has the score {value!r:.40}, expected a number")
    return number
