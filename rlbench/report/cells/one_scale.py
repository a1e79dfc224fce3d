"""Scores of all tasks on one scale: put there for a figure, or before, on import."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rlbench.errors import UsageError
from rlbench.grid.normalisation import normalised
from rlbench.report.cells.metric import NORMALISED, SCORE
from rlbench.report.cells.pairing import task_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.grid.normalisation import Scale
    from rlbench.report.cells.cell import Cell, Seed
    from rlbench.report.cells.curves import Curves
    from rlbench.report.cells.metric import Metric

_SCALED = ("score", "score_start", "floor")  # numbers of a result that are scores of the task


def on_one_scale(cells: Sequence[Cell]) -> bool:
    """Whether the scores of all cells were put on one scale, here or on import."""
    return all(cell.metric.name == NORMALISED or _was_imported_so(cell) for cell in cells)


def check(cells: Sequence[Cell], scales: Mapping[str, Scale]) -> None:
    """Refuse scales that don't fit the tasks of some cells.

    Raises:
        UsageError: The cells are compared by no score, their scores have been normalised before, a
            task has no scale, or one that goes the wrong way.
    """
    for cell in cells:
        task = task_of(cell)
        if cell.metric.key != SCORE.key:
            raise UsageError(f"--normalise is for scores, not for {cell.metric.name}")
        if _was_imported_so(cell):
            raise UsageError(
                f"the scores of task {task} were normalised on import; leave --normalise"
            )
        if task not in scales:
            raise UsageError.unknown("task of the results, to be normalised:", task, scales)
        low, high = scales[task]
        if (high > low) != cell.metric.higher:
            way, at = ("more", "below") if cell.metric.higher else ("less", "above")
            raise UsageError(
                f"task {task}: {way} is better, but the score that counts as 1, {high:g}, is {at} "
                f"the one that counts as 0, {low:g}"
            )


def put_on_scales(cells: Sequence[Cell], scales: Mapping[str, Scale]) -> list[Cell]:
    """Put the scores of cells on the scales of their tasks; there more is better.

    A failure of unknown worth counts as what stands for 0, as it does on import.

    Args:
        cells: By their score.
        scales: By task, the scores that count as 0 and as 1.

    Raises:
        UsageError: See `check`; or no float is as large as a score would be.
    """
    check(cells, scales)
    return [_scaled(cell, scales[task_of(cell)]) for cell in cells]


def curves(found: Curves, cells: Sequence[Cell], scales: Mapping[str, Scale]) -> Curves:
    """Put curves of the score on the scales of the cells' tasks.

    Args:
        found: What was read.
        cells: Whose curves these are.
        scales: By task, the scores that count as 0 and as 1.
    """
    return replace(
        found,
        column=NORMALISED,
        cells=tuple(
            tuple(
                replace(
                    curve,
                    values=np.array([normalised(v, scales[task_of(cell)]) for v in curve.values]),
                )
                for curve in of_cell
            )
            for of_cell, cell in zip(found.cells, cells, strict=True)
        ),
    )


def _scaled(cell: Cell, scale: Scale) -> Cell:
    metric: Metric = replace(cell.metric, name=NORMALISED, higher=True)
    return replace(
        cell,
        seeds=tuple(_seed(seed, scale) for seed in cell.seeds),
        repeats=tuple(_seed(seed, scale) for seed in cell.repeats),
        metric=metric,
    )


def _seed(seed: Seed, scale: Scale) -> Seed:
    result = dict(seed.record.result or {})
    for name in _SCALED:
        value = result.get(name)
        if isinstance(value, (int, float)):
            result[name] = normalised(float(value), scale)
    unknown = None if seed.ok else 0.0
    score = unknown if seed.score is None else normalised(seed.score, scale)
    record = seed.record if seed.record.result is None else replace(seed.record, result=result)
    return replace(seed, score=score, record=record)


def _was_imported_so(cell: Cell) -> bool:
    is_score = cell.metric.key == SCORE.key
    return is_score and bool((cell.seeds[0].record.spec or {}).get("scale"))
