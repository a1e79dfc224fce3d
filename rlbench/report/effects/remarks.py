"""What to know before believing effects: what is not used, can't be told, failed or looks wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.grid.importing import seeds_are_counted
from rlbench.report.cells.pairing import task_of
from rlbench.report.compare.family import NOT_TESTABLE
from rlbench.report.effects.data import contrast_name, effect_name
from rlbench.report.tables.caption import common
from rlbench.report.tables.raced import raced
from rlbench.report.tables.suspicion import suspicions
from rlbench.report.text.spelling import spell_seeds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlbench.report.cells.cell import Cell
    from rlbench.report.effects.contrasts import Effects, TaskEffects
    from rlbench.report.effects.factorial import Grid

_UNLIKE = 4  # times as far apart are the scores of one task as those of another
_NAMED = 5  # holes, cells and the like that a note names


def remarks(found: Effects) -> list[str]:
    """List what is not used, what can't be told, what failed, and what looks wrong."""
    cells = [cell for one in found.tasks for _, cell in one.grid.named]
    lines = [*raced(cells), *_counted(cells), *(f"{reason}." for reason in found.skipped)]
    for one in found.tasks:
        of_task = [
            *_averaged(one.grid),
            *_unlike_scales(one.grid),
            *_left_out(one.grid),
            *_holes(one),
            *_untested(one),
            *suspicions(one.grid.named),
        ]
        where = f"{one.grid.task}: " if len(found.tasks) > 1 else ""
        lines += [f"{where}{line}" for line in of_task]
    return [*lines, *common(cells)]


def _counted(cells: Sequence[Cell]) -> Iterator[str]:
    if any(seeds_are_counted(seed.record) for cell in cells for seed in cell.tried):
        yield (
            "Seeds were counted on import: runs of one number are taken as one seed, but they may "
            "have nothing in common. Tests hold all the same, but find less than they could."
        )


def _averaged(grid: Grid) -> Iterator[str]:
    if grid.averaged:
        over = ", ".join(grid.averaged)
        yield f"Averaged within each seed over {over}: {grid.partners} cells for each one here."
    if grid.uneven:
        yield f"Not averaged, for want of their like everywhere: {_some(grid.uneven)}."


def _unlike_scales(grid: Grid) -> Iterator[str]:
    """Say where raw scores of tasks are averaged, of which some have far larger differences."""
    if grid.scaled:
        return
    scores: dict[str, list[float]] = {}
    for _, cell in grid.named:
        for seed in cell.ok:
            if seed.number in grid.seeds and seed.score is not None:
                scores.setdefault(task_of(cell), []).append(seed.score)
    spans = {task: max(values) - min(values) for task, values in scores.items()}
    if len(spans) < 2:
        return
    widest, narrowest = max(spans, key=spans.__getitem__), min(spans, key=spans.__getitem__)
    if spans[widest] > _UNLIKE * spans[narrowest]:
        yield (
            "Scores of tasks are averaged as they are: they differ by up to "
            f"{spans[widest]:.3g} in {widest} and by up to {spans[narrowest]:.3g} in "
            f"{narrowest}, so that the former decides. --normalise FILE puts all on one scale."
        )


def _left_out(grid: Grid) -> Iterator[str]:
    by_cells: dict[tuple[str, ...], list[int]] = {}
    for seed, names in grid.lacking.items():
        by_cells.setdefault(names, []).append(seed)
    for names, seeds in by_cells.items():
        noun = "Seed" if len(seeds) == 1 else "Seeds"
        verb = "counts" if len(seeds) == 1 else "count"
        yield f"{noun} {spell_seeds(seeds)} {verb} nowhere: not tried by {_some(names)}."
    for name, why in grid.unknown.items():
        yield f"{name} is left out: {why}."
    for name, failed in grid.failed.items():
        noun = "failed seed" if len(failed) == 1 else "failed seeds"
        yield f"{name}: {noun} {spell_seeds(failed)} at the floor."


def _holes(found: TaskEffects) -> Iterator[str]:
    grid = found.grid
    if not grid.holes:
        return
    yield (
        f"No cell at {_some(['+'.join(hole) for hole in grid.holes])}: each mean and contrast is "
        "over the partners that all of its levels have, which differ from row to row."
    )
    for effect in found.effects:
        if effect.missing:
            count = effect.missing + len(effect.contrasts)
            yield f"{effect_name(effect)}: {effect.missing} of {count} contrasts can't be told."


def _untested(found: TaskEffects) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for effect in found.effects:
        for contrast in effect.contrasts:
            if contrast.judgement.reason:
                reasons.setdefault(contrast.judgement.reason, []).append(contrast_name(contrast))
    every = sum(len(effect.contrasts) for effect in found.effects)
    for reason, names in reasons.items():
        which = "all contrasts" if len(names) == every > _NAMED else _some(names)
        yield f"{NOT_TESTABLE}: {which}: {reason}."


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{'; '.join(names[:_NAMED])}{more}"
