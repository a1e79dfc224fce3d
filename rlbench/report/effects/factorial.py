"""A grid of cells as a factorial design: factors, their levels, and what each seed reached."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

from rlbench.report.cells.pairing import Pairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.report.cells.cell import Cell
    from rlbench.report.cells.metric import Metric

Place = tuple[str, ...]  # one level of each factor, in the order of the factors


@dataclass(frozen=True, kw_only=True)
class Factor:
    """A column in which cells differ; or several, where each tells the others.

    Attributes:
        name: The column, or columns joined by ``+``.
        levels: What it holds: numbers by size, then names, of which clip2 comes before clip10.
    """

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Cells by the levels of factors; the seeds are complete blocks.

    Attributes:
        task: The task; empty where cells name none, or where it is among the factors.
        metric: What is compared.
        factors: At least one.
        values: Place to what was reached there at each of the seeds, in their order; failures at
            the floor. A grid can have holes.
        seeds: Seeds that all cells have tried.
        lacking: Seeds that are not used to the names of the cells that have not tried them.
        failed: Name of a cell to its failed seeds among those that count.
        unknown: Name of a cell that is left out to the reason.
        averaged: Names of the other columns in which cells differ, over which every place is
            averaged.
        partners: Number of cells that are averaged in a place.
        uneven: Names of cells that are in no average, because not all places have their like.
        scaled: Whether the values were put on one scale for all tasks.
        named: The cells that count, each with its name.
        broken: Place to the seeds at which a run failed, of any cell that is averaged there.
        order: Name of a factor to its levels, the best first, where that is said for several grids
            at once.
    """

    task: str
    metric: Metric
    factors: tuple[Factor, ...]
    values: Mapping[Place, tuple[float, ...]]
    seeds: tuple[int, ...]
    lacking: Mapping[int, tuple[str, ...]]
    failed: Mapping[str, tuple[int, ...]]
    unknown: Mapping[str, str]
    averaged: tuple[str, ...] = ()
    partners: int = 1
    uneven: tuple[str, ...] = ()
    scaled: bool = False
    named: tuple[tuple[str, Cell], ...] = ()
    broken: Mapping[Place, frozenset[int]] = field(default_factory=dict)
    order: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def holes(self) -> list[Place]:
        """Places of the product of all levels at which there is no cell."""
        places = product(*(factor.levels for factor in self.factors))
        return [place for place in places if place not in self.values]

    def at(self, levels: Mapping[int, str]) -> dict[Place, Place]:
        """Find the places with these levels.

        Args:
            levels: Number of a factor to its level.

        Returns:
            The partners of these levels (the levels of all other factors) to the whole place.
        """
        return {
            tuple(level for number, level in enumerate(place) if number not in levels): place
            for place in self.values
            if all(place[number] == level for number, level in levels.items())
        }

    def mean(self, places: Sequence[Place]) -> list[float]:
        """Average places within each seed, with equal weights."""
        columns = [self.values[place] for place in places]
        return [sum(values) / len(values) for values in zip(*columns, strict=True)]

    def best_first(self, number: int) -> list[str]:
        """Order the levels of a factor by their mean over all places, ties as they are."""
        factor = self.factors[number]
        if factor.name in self.order:
            return [level for level in self.order[factor.name] if level in factor.levels]

        def worth(level: str) -> float:
            means = self.mean(list(self.at({number: level}).values()))
            return -self.metric.sign * sum(means) / len(means)

        return sorted(factor.levels, key=worth)

    def pairs(self, ours: Sequence[Sequence[Place]], theirs: Sequence[Sequence[Place]]) -> Pairs:
        """Pair the two sides of a contrast, seed by seed.

        Args:
            ours: Groups of places; a side is the sum of the means of its groups.
            theirs: Those of the other side.
        """
        sides = [
            [sum(means) for means in zip(*(self.mean(group) for group in side), strict=True)]
            for side in (ours, theirs)
        ]
        failed = [
            [
                any(seed in self.broken.get(place, ()) for group in side for place in group)
                for seed in self.seeds
            ]
            for side in (ours, theirs)
        ]
        return Pairs(
            seeds=self.seeds,
            ours=tuple(sides[0]),
            theirs=tuple(sides[1]),
            failed=(tuple(failed[0]), tuple(failed[1])),
            failures=sum(map(any, zip(*failed, strict=True))),
            means=self.partners > 1 or sum(map(len, ours)) > 1,
            sign=self.metric.sign,
        )

    def over(self, number: int) -> Grid:
        """Average over the levels of one factor; places that lack one become holes."""
        levels = self.factors[number].levels
        values: dict[Place, tuple[float, ...]] = {}
        broken: dict[Place, frozenset[int]] = {}
        for place in self.values:
            rest = place[:number] + place[number + 1 :]
            whole = [(*rest[:number], level, *rest[number:]) for level in levels]
            if all(one in self.values for one in whole):
                values[rest] = tuple(self.mean(whole))
                broken[rest] = frozenset().union(*(self.broken.get(one, ()) for one in whole))
        kept = self.factors[:number] + self.factors[number + 1 :]
        found = (
            replace(
                factor, levels=tuple(x for x in factor.levels if any(x == p[n] for p in values))
            )
            for n, factor in enumerate(kept)
        )
        return replace(self, factors=tuple(found), values=values, broken=broken)


def in_one_order(grids: Sequence[Grid]) -> list[Grid]:
    """Order the levels of each factor alike in all grids: by their mean rank, ties as they are.

    So a contrast is subtracted in one direction in all tasks.
    """
    ranks: dict[str, dict[str, list[int]]] = {}
    for grid in grids:
        for number, factor in enumerate(grid.factors):
            of_factor = ranks.setdefault(factor.name, {})
            best_first = grid.best_first(number)
            for level in factor.levels:
                of_factor.setdefault(level, []).append(best_first.index(level))
    order: dict[str, list[str]] = {}
    for name, of_factor in ranks.items():
        means = {level: sum(found) / len(found) for level, found in of_factor.items()}
        order[name] = sorted(means, key=means.__getitem__)
    return [replace(grid, order=order) for grid in grids]
