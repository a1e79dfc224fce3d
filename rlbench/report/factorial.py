"""A grid of cells as a factorial design: factors, their levels, and what each seed reached."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected, UsageError
from rlbench.report.baseline import spell_cell
from rlbench.report.cells import labels_of
from rlbench.report.pairing import Pairs, off_footing
from rlbench.report.spelling import natural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlbench.report.cells import Cell
    from rlbench.report.metric import Metric

LARGEST = 1e150  # sums of squares have to fit in a float
Place = tuple[str, ...]  # one level of each factor, in the order of the factors


@dataclass(frozen=True, kw_only=True)
class Factor:
    """A column in which cells differ.

    Attributes:
        name: The column.
        levels: What it holds, in natural order.
    """

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Cells of one task, by the levels of the factors.

    Attributes:
        task: The task; empty where cells name none.
        factors: At least one.
        cells: The cell at each place; a grid can have holes.
        seeds: Seeds that all cells have tried and that have a number in all.
        unused: Seeds that some cell has tried and that are not among these.
        values: What each cell reached at these seeds, in their order; failures at the floor.
        failed: Cells with a failed seed among these, and which ones.
        unknown: Places at which there is a cell, and a failed seed of it has no number: these are
            holes.
    """

    task: str
    factors: tuple[Factor, ...]
    cells: Mapping[Place, Cell]
    seeds: tuple[int, ...]
    unused: tuple[int, ...]
    values: Mapping[Place, tuple[float, ...]]
    failed: Mapping[Place, tuple[int, ...]]
    unknown: Mapping[Place, tuple[int, ...]]

    @property
    def metric(self) -> Metric:
        """What is compared."""
        return next(iter(self.cells.values())).metric

    @property
    def holes(self) -> list[Place]:
        """Places of the product of all levels at which there is no cell that can be compared."""
        places = product(*(factor.levels for factor in self.factors))
        return [place for place in places if place not in self.cells]

    def at(self, levels: Mapping[int, str]) -> dict[Place, Place]:
        """Find the places with these levels.

        Args:
            levels: Number of a factor to its level.

        Returns:
            The partners of these levels (the levels of all other factors) to the whole place.
        """
        return {
            tuple(level for number, level in enumerate(place) if number not in levels): place
            for place in self.cells
            if all(place[number] == level for number, level in levels.items())
        }

    def mean(self, places: Sequence[Place]) -> list[float]:
        """Average places within each seed, with equal weights."""
        columns = [self.values[place] for place in places]
        return [sum(values) / len(values) for values in zip(*columns, strict=True)]

    def best_first(self, number: int) -> list[str]:
        """Order the levels of a factor by their mean over all places, ties as they are.

        A level with nothing but holes comes last.
        """
        factor = self.factors[number]

        def worth(level: str) -> float:
            places = list(self.at({number: level}).values())
            if not places:
                return math.inf
            means = self.mean(places)
            return -self.metric.sign * sum(means) / len(means)

        return sorted(factor.levels, key=worth)

    def pairs(self, ours: Sequence[float], theirs: Sequence[float], seeds: Sequence[int]) -> Pairs:
        """Pair two sides of a contrast, a number a seed each."""
        sign = self.metric.sign
        gains = [sign * (x - y) for x, y in zip(ours, theirs, strict=True)]
        return Pairs(
            seeds=tuple(seeds),
            ours=tuple(ours),
            theirs=tuple(theirs),
            outcomes=tuple((gain > 0) - (gain < 0) for gain in gains),
            sign=sign,
        )


def grids(cells: Iterable[Cell], wanted: Sequence[str] = ()) -> list[Grid]:
    """Lay cells out as a grid for each task.

    Args:
        cells: In any order.
        wanted: The factors, in this order; empty means all columns in which cells differ, but the
            task. Cells may differ in nothing else.

    Returns:
        A grid a task, in natural order of the tasks.

    Raises:
        NothingSelected: Nothing differs, or no seed is common to all cells of a task.
        UsageError: A factor is not there, two cells have one place, cells are not on one footing,
            or a number is too large to be squared.
    """
    found = list(cells)
    if not found:
        raise NothingSelected("none of these folders holds a run that can be read")
    by_task: dict[str, list[Cell]] = {}
    for cell in found:
        by_task.setdefault(cell.columns.get("task", ""), []).append(cell)
    order = sorted(by_task, key=lambda task: (natural(task), task))
    return [_grid(task, by_task[task], wanted) for task in order]


def _grid(task: str, cells: Sequence[Cell], wanted: Sequence[str]) -> Grid:
    names, placed = _placed(cells, wanted)
    for cell in cells[1:]:
        if why := off_footing(cell, cells[0]):
            label, first = (spell_cell(one, names) for one in (cell, cells[0]))
            raise UsageError(
                f"{label} can't be in one grid with {first}, as to a baseline: {why}; select one"
            )
    order = sorted(placed, key=lambda place: [_rank(level) for level in place])
    factors = tuple(
        Factor(name=name, levels=tuple(dict.fromkeys(sorted((p[n] for p in order), key=_rank))))
        for n, name in enumerate(names)
    )
    seeds, unknown = _common(placed)
    known = [place for place in order if place not in unknown]
    of = f" of task {task}" if task else ""
    if not known:
        raise NothingSelected(f"every cell{of} has a failed seed, and no {_name(cells)} is known")
    scores = {place: {s.number: s.score for s in placed[place].tried} for place in known}
    seeds = [seed for seed in seeds if all(of.get(seed) is not None for of in scores.values())]
    if not seeds:
        raise NothingSelected(f"no seed has a {_name(cells)} in all cells{of}")
    largest = max(abs(of[seed] or 0.0) for of in scores.values() for seed in seeds)
    if largest > LARGEST:
        raise UsageError(f"a {_name(cells)} of {largest:g} is too large to compute with")
    failed = {
        place: tuple(s.number for s in placed[place].failed if s.number in seeds) for place in known
    }
    tried = {seed.number for cell in cells for seed in cell.tried}
    return Grid(
        task=task,
        factors=factors,
        cells={place: placed[place] for place in known},
        seeds=tuple(seeds),
        unused=tuple(sorted(tried - set(seeds))),
        values={place: tuple(float(scores[place][s] or 0.0) for s in seeds) for place in known},
        failed={place: numbers for place, numbers in failed.items() if numbers},
        unknown={place: unknown[place] for place in order if place in unknown},
    )


def _placed(cells: Sequence[Cell], wanted: Sequence[str]) -> tuple[list[str], dict[Place, Cell]]:
    """Name the factors and find the place of every cell."""
    differ = [name for name in labels_of(cells) if len({c.columns.get(name) for c in cells}) > 1]
    for name in wanted:
        if name not in differ:
            raise UsageError.unknown("factor", name, differ, "a factor is what cells differ in")
    names = list(dict.fromkeys(wanted)) or differ
    if not names:
        only = spell_cell(cells[0], labels_of(cells))
        raise NothingSelected(f"there is one cell only, {only}: no factor has an effect")
    placed: dict[Place, Cell] = {}
    for cell in cells:
        place = tuple(cell.columns.get(name, "-") for name in names)
        if place in placed:
            others = [n for n in differ if placed[place].columns.get(n) != cell.columns.get(n)]
            raise UsageError(
                f"several cells have {spell_cell(cell, names)}: they differ in "
                f"{', '.join(others) or 'nothing that is shown'}; add --factor "
                f"{others[0] if others else 'NAME'}, or select one"
            )
        placed[place] = cell
    return names, placed


def _common(placed: Mapping[Place, Cell]) -> tuple[list[int], dict[Place, tuple[int, ...]]]:
    """Find the seeds that all cells have tried, and failures among them that have no number.

    To leave out such a seed would compare cells where they went well, so that the cell has to go.
    """
    common = set.intersection(*({s.number for s in cell.tried} for cell in placed.values()))
    unknown = {
        place: tuple(s.number for s in cell.failed if s.score is None and s.number in common)
        for place, cell in placed.items()
    }
    return sorted(common), {place: seeds for place, seeds in unknown.items() if seeds}


def _name(cells: Sequence[Cell]) -> str:
    return cells[0].metric.name


def _rank(level: str) -> tuple[int, float, list[tuple[int, int, str]], str]:
    """Order levels: numbers by size, then names, of which clip2 comes before clip10."""
    try:
        number = float(level)
    except ValueError:
        number = math.nan
    named = not math.isfinite(number)  # "nan" and "inf" are names, too
    return int(named), 0.0 if named else number, natural(level), level
