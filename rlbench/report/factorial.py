"""A grid of cells as a factorial design: factors, their levels, and what each seed reached."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected, UsageError
from rlbench.report.baseline import spell_cell
from rlbench.report.cells import labels_of
from rlbench.report.pairing import Pairs
from rlbench.report.spelling import natural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlbench.report.cells import Cell
    from rlbench.report.metric import Metric

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
    """

    task: str
    factors: tuple[Factor, ...]
    cells: Mapping[Place, Cell]
    seeds: tuple[int, ...]
    unused: tuple[int, ...]
    values: Mapping[Place, tuple[float, ...]]
    failed: Mapping[Place, tuple[int, ...]]

    @property
    def metric(self) -> Metric:
        """What is compared."""
        return next(iter(self.cells.values())).metric

    @property
    def holes(self) -> list[Place]:
        """Places of the product of all levels at which there is no cell."""
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
        """Order the levels of a factor by their mean over all places, ties as they are."""
        factor = self.factors[number]

        def worth(level: str) -> float:
            means = self.mean(list(self.at({number: level}).values()))
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
        UsageError: A factor is not there, or two cells have one place.
    """
    found = list(cells)
    if not found:
        raise NothingSelected("none of these folders holds a run that can be read")
    by_task: dict[str, list[Cell]] = {}
    for cell in found:
        by_task.setdefault(cell.columns.get("task", ""), []).append(cell)
    return [_grid(task, by_task[task], wanted) for task in sorted(by_task, key=natural)]


def _grid(task: str, cells: Sequence[Cell], wanted: Sequence[str]) -> Grid:
    differ = [name for name in labels_of(cells) if len({c.columns.get(name) for c in cells}) > 1]
    for name in wanted:
        if name not in differ:
            raise UsageError.unknown("factor", name, differ, "a factor is what cells differ in")
    names = list(wanted) or differ
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
    order = sorted(placed, key=lambda place: [_rank(level) for level in place])
    factors = tuple(
        Factor(name=name, levels=tuple(dict.fromkeys(sorted((p[n] for p in order), key=_rank))))
        for n, name in enumerate(names)
    )
    scores = {
        place: {s.number: s.score for s in placed[place].tried if s.score is not None}
        for place in order
    }
    seeds = tuple(sorted(set.intersection(*(set(of) for of in scores.values()))))
    if not seeds:
        of = f" of task {task}" if task else ""
        raise NothingSelected(f"no seed has a {cells[0].metric.name} in all cells{of}")
    tried = {seed.number for cell in cells for seed in cell.tried}
    failed = {
        place: tuple(s.number for s in placed[place].failed if s.number in seeds) for place in order
    }
    return Grid(
        task=task,
        factors=factors,
        cells={place: placed[place] for place in order},
        seeds=seeds,
        unused=tuple(sorted(tried - set(seeds))),
        values={place: tuple(float(scores[place][s]) for s in seeds) for place in order},
        failed={place: numbers for place, numbers in failed.items() if numbers},
    )


def _rank(level: str) -> tuple[int, float, list[tuple[int, int, str]]]:
    """Order levels: numbers by size, then names, of which clip2 comes before clip10."""
    try:
        return 0, float(level), []
    except ValueError:
        return 1, 0.0, natural(level)
