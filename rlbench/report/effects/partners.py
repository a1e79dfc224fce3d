"""Which levels of the other factors suit a level best, chosen and measured on different seeds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.report.effects.factorial import Grid, Place
    from rlbench.stats import Difference, Interval

FEWEST = 4  # seeds: two in each half


@dataclass(frozen=True, kw_only=True)
class Partner:
    """The best partner of one level.

    Attributes:
        level: The level.
        chosen: Levels of the other factors, in their order, that did best: on the first half of the
            seeds, and on the second.
        interval: What the level reached with them, each on the seeds that did not choose it: mean
            over all seeds, with the t interval.
    """

    level: str
    chosen: tuple[Place, Place]
    interval: Interval


@dataclass(frozen=True, kw_only=True)
class Partners:
    """The levels of one factor, each with its own best partner.

    Attributes:
        factor: Name of the factor.
        others: Names of the other factors, in the order of `Partner.chosen`.
        halves: The seeds of each half: each chooses for the other.
        levels: The levels, in the order of their marginal means.
        differences: First level less second, each with its partners: mean over seeds with the t
            interval of one difference alone. In no family of tests.
    """

    factor: str
    others: tuple[str, ...]
    halves: tuple[tuple[int, ...], tuple[int, ...]]
    levels: tuple[Partner, ...]
    differences: Mapping[tuple[str, str], Difference]


def best_partners(grid: Grid, *, level: float) -> tuple[Partners, ...]:
    """Give every level its best partner, never by the maximum over the seeds that are shown.

    The largest of several means is too large, the more so the more there are. So each half of the
    seeds chooses for the other half (every second seed is in the first), and no seed is measured
    with a partner that it chose. The two halves may choose differently; the mean is then that of
    choosing by so many seeds, not of one partner. The intervals take the seeds for independent,
    but those of a half share a choice, on which the other half hangs: where partners are alike
    or nearly so, one of 95% holds the truth about 90 times in 100 (``benchmarks/effects.py``).

    Args:
        grid: The cells. If the task is a factor, it is averaged over.
        level: Confidence level.

    Returns:
        One entry a factor; none where there is one factor only, there are fewer than 4 seeds, or no
        two partners are there for all levels.
    """
    tasks = [number for number, factor in enumerate(grid.factors) if factor.name == "task"]
    for number in tasks:  # nobody chooses a task
        grid = grid.over(number)
    if len(grid.factors) < 2 or not grid.values or len(grid.seeds) < FEWEST:
        return ()
    found = (_partners(grid, number, level) for number in range(len(grid.factors)))
    return tuple(one for one in found if one)


def _partners(grid: Grid, number: int, level: float) -> Partners | None:
    from rlbench.stats import mean_interval, paired_difference

    factor = grid.factors[number]
    places = {name: grid.at({number: name}) for name in factor.levels}
    partners = sorted(set.intersection(*(set(of) for of in places.values())))
    if len(partners) < 2:
        return None
    ways = (slice(0, None, 2), slice(1, None, 2))
    order = grid.best_first(number)
    chosen: dict[str, tuple[Place, Place]] = {}
    held: dict[str, list[float]] = {}
    for name in order:
        values = {partner: grid.values[places[name][partner]] for partner in partners}
        one, other = (_best(values, way, grid.metric.sign) for way in ways)
        chosen[name] = (one, other)
        held[name] = list(values[other])  # the second half chose it for the first
        held[name][ways[1]] = values[one][ways[1]]
    return Partners(
        factor=factor.name,
        others=tuple(other.name for other in grid.factors if other is not factor),
        halves=(grid.seeds[ways[0]], grid.seeds[ways[1]]),
        levels=tuple(
            Partner(level=name, chosen=chosen[name], interval=mean_interval(held[name], level))
            for name in order
        ),
        differences={
            (a, b): paired_difference(held[a], held[b], level) for a, b in combinations(order, 2)
        },
    )


def _best(values: Mapping[Place, Sequence[float]], way: slice, sign: int) -> Place:
    """Choose on some of the seeds; ties go to the first."""

    def mean(partner: Place) -> float:
        chosen = values[partner][way]
        return sign * sum(chosen) / len(chosen)

    return max(values, key=mean)
