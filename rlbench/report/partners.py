"""Which levels of the other factors suit a level best, chosen and measured on different seeds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from rlbench.report.family import judge

if TYPE_CHECKING:
    from rlbench.report.factorial import Grid, Place
    from rlbench.report.family import Family, Judgement
    from rlbench.stats import Interval

FEWEST = 4  # seeds: two that choose, and two that are compared


@dataclass(frozen=True, kw_only=True)
class Partner:
    """The best partner of one level.

    Attributes:
        level: The level.
        chosen: Levels of the other factors, in their order, that did best on the seeds that choose.
        interval: What the level reached with them on the other seeds.
    """

    level: str
    chosen: Place
    interval: Interval


@dataclass(frozen=True, kw_only=True)
class Partners:
    """The levels of one factor, each with its own best partner.

    Attributes:
        factor: Name of the factor.
        others: Names of the other factors, in the order of `Partner.chosen`.
        levels: The levels.
        chosen_on: Seeds that chose.
        compared_on: Seeds that were compared; no seed is in both.
        differences: First level less second, each with its own partner, judged on these seeds.
        family: How the differences were judged together.
    """

    factor: str
    others: tuple[str, ...]
    levels: tuple[Partner, ...]
    chosen_on: tuple[int, ...]
    compared_on: tuple[int, ...]
    differences: dict[tuple[str, str], Judgement]
    family: Family


def best_partners(grid: Grid, *, level: float, margin: float | None) -> tuple[Partners, ...]:
    """Give every level its best partner, never by the maximum over the seeds that are shown.

    The largest of several means is too large, the more so the more there are. So every second
    common seed chooses, as in ``compare --tune``, and the others are compared.

    Args:
        grid: The cells of one task.
        level: Confidence level.
        margin: Largest difference that counts as none.

    Returns:
        One entry a factor; none where there is one factor only, the grid has holes, or there are
        fewer than 4 seeds.
    """
    if len(grid.factors) < 2 or grid.holes or len(grid.seeds) < FEWEST:
        return ()
    return tuple(_partners(grid, n, level, margin) for n in range(len(grid.factors)))


def _partners(grid: Grid, number: int, level: float, margin: float | None) -> Partners:
    from rlbench.stats import mean_interval

    factor = grid.factors[number]
    places = {name: grid.at({number: name}) for name in factor.levels}
    chosen = {name: _best(grid, of) for name, of in places.items()}
    values = {name: grid.values[places[name][chosen[name]]][::2] for name in factor.levels}
    seeds = grid.seeds[::2]
    both = list(combinations(grid.best_first(number), 2))
    pairs = {n: grid.pairs(values[a], values[b], seeds) for n, (a, b) in enumerate(both)}
    family, judged = judge(pairs, level=level, margin=margin, effect=margin)
    return Partners(
        factor=factor.name,
        others=tuple(f.name for f in grid.factors if f is not factor),
        levels=tuple(
            Partner(level=name, chosen=chosen[name], interval=mean_interval(values[name], level))
            for name in grid.best_first(number)
        ),
        chosen_on=grid.seeds[1::2],
        compared_on=seeds,
        differences={pair: judged[n] for n, pair in enumerate(both)},
        family=family,
    )


def _best(grid: Grid, places: dict[Place, Place]) -> Place:
    """Choose on every second seed; ties go to the first in the order of levels."""

    def mean(partner: Place) -> float:
        values = grid.values[places[partner]][1::2]
        return grid.metric.sign * sum(values) / len(values)

    return max(places, key=mean)
