"""Main effects and interactions of a grid, as contrasts within each seed: ``rlbench effects``."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import TYPE_CHECKING

from rlbench.report.compare.family import judge
from rlbench.report.effects.design import grids
from rlbench.report.effects.partners import Partners, best_partners
from rlbench.report.effects.variance import shares

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rlbench.grid.normalisation import Scale
    from rlbench.report.cells.cell import Cell
    from rlbench.report.cells.pairing import Pairs
    from rlbench.report.compare.family import Family, Judgement
    from rlbench.report.effects.factorial import Grid
    from rlbench.stats import Interval


@dataclass(frozen=True, kw_only=True)
class Mean:
    """The mean of a level, or of a level of one factor with one of another.

    Attributes:
        factors: One name, or two.
        levels: The level of each.
        interval: Mean over the levels of all other factors and then over seeds, with the t interval
            of the latter; None where no partner is complete.
        partners: Combinations of levels of the other factors that were averaged, with equal
            weights: those that all levels have which stand beside this one.
    """

    factors: tuple[str, ...]
    levels: tuple[str, ...]
    interval: Interval | None
    partners: int


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """One contrast of cells.

    Attributes:
        levels: The two levels that are subtracted, the first less the second; for an interaction
            two levels of each factor, and the difference of the differences.
        at: The level of the other factor at which a simple effect is; else empty.
        judgement: The contrast with its intervals, its p-value adjusted over all contrasts of all
            tasks, and a verdict.
        partners: Combinations of levels of the other factors that were averaged.
    """

    levels: tuple[tuple[str, str], ...]
    at: str
    judgement: Judgement
    partners: int


@dataclass(frozen=True, kw_only=True)
class Effect:
    """All contrasts of one factor, of two, or of one at each level of another.

    Attributes:
        factors: One name for a main effect, two for an interaction.
        within: For a simple effect the name of the other factor; else empty.
        contrasts: Those that the grid can tell; of the levels that do better before the others.
        p: That there is no effect at all: the smallest p-value, adjusted over this effect alone.
        share: Share of the variance between cells, by least squares; None if the grid has holes.
        missing: How many contrasts holes in the grid forbid.
    """

    factors: tuple[str, ...]
    within: str
    contrasts: tuple[Contrast, ...]
    p: float | None
    share: float | None
    missing: int


@dataclass(frozen=True, kw_only=True)
class TaskEffects:
    """What the grid of one task says of its factors.

    Attributes:
        grid: The grid.
        means: Of every level, then of every pair of levels of two factors.
        effects: Main effects in the order of the factors, then two-way interactions, then simple
            effects.
        partners: For each factor, the best partner of its levels, chosen and measured on different
            seeds; empty where there is nothing to choose, or there are too few seeds.
    """

    grid: Grid
    means: tuple[Mean, ...]
    effects: tuple[Effect, ...]
    partners: tuple[Partners, ...]


@dataclass(frozen=True, kw_only=True)
class Effects:
    """Effects in all tasks.

    Attributes:
        tasks: In natural order; one only where the task is a factor.
        family: How all contrasts were judged together.
        skipped: Tasks that have no effects, each with the reason.
    """

    tasks: tuple[TaskEffects, ...]
    family: Family
    skipped: tuple[str, ...]


def effects(
    cells: Iterable[Cell],
    factors: Sequence[str] = (),
    *,
    level: float = 0.95,
    margin: float | None = None,
    interactions: bool = True,
    simple: bool = False,
    across_tasks: bool = False,
    scales: Mapping[str, Scale] | None = None,
) -> Effects:
    """Compute main effects and two-way interactions.

    Every effect is a contrast of cell means: within each seed, then over seeds, so that nothing is
    assumed of equal variances or of correlations between cells (see `rlbench.stats.contrast`).
    A main effect of two levels is the difference of their means over the same levels of all other
    factors, with equal weights; an interaction is the difference of such a difference between two
    levels of another factor. Where the grid has holes, only partners that both sides have count.
    All contrasts are one family, over all tasks: see `rlbench.report.compare.family.judge`. A seed
    at which any cell of a side failed weighs in p as a failure of that side does, see
    `rlbench.stats.crashes`.

    Args:
        cells: In any order; it changes nothing.
        factors: The factors, in this order; empty means all columns in which cells differ. Others
            are averaged over.
        level: Confidence level in [0.5, 1).
        margin: Largest contrast that counts as none; None calls nothing equivalent.
        interactions: Whether there are contrasts of two factors.
        simple: Whether the levels of each factor are also compared at each level of the others.
        across_tasks: Make the task a factor; else every task has its own effects.
        scales: By task, the scores that count as 0 and as 1; for `across_tasks`.

    Raises:
        NothingSelected: Nothing differs, or no seed is common to all cells of a task.
        UsageError: A factor is not there, or cells are not comparable; see `design.grids`.
    """
    made, skipped = grids(cells, factors, across_tasks=across_tasks, scales=scales)
    asked = [list(_asked(grid, interactions=interactions, simple=simple)) for grid in made]
    wishes = [wish for of_grid in asked for one in of_grid for wish in one.found]
    family, judged = judge(
        {number: wish.pairs for number, wish in enumerate(wishes)},
        level=level,
        margin=margin,
        effect=margin,
    )
    judgements = iter(judged.values())
    return Effects(
        tasks=tuple(
            TaskEffects(
                grid=grid,
                means=tuple(_means(grid, level)),
                effects=tuple(_effects(grid, of_grid, judgements, level)),
                partners=best_partners(grid, level=level),
            )
            for grid, of_grid in zip(made, asked, strict=True)
        ),
        family=family,
        skipped=tuple(skipped),
    )


@dataclass(frozen=True, kw_only=True)
class _Wish:
    """A contrast before it is judged."""

    levels: tuple[tuple[str, str], ...]
    pairs: Pairs
    partners: int
    at: str = ""


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """All contrasts of an effect that the grid can tell."""

    factors: tuple[str, ...]
    found: tuple[_Wish, ...]
    missing: int
    within: str = ""


def _asked(grid: Grid, *, interactions: bool, simple: bool) -> Iterator[_Asked]:
    numbers = range(len(grid.factors))
    for number in numbers:
        yield _main(grid, number)
    if interactions:
        for m, n in combinations(numbers, 2):
            yield _interaction(grid, m, n)
    if simple:
        for m, n in permutations(numbers, 2):
            yield _simple(grid, m, n)


def _main(grid: Grid, number: int) -> _Asked:
    pairs = list(combinations(grid.best_first(number), 2))
    wishes = (
        _difference(grid, (one, other), {number: one}, {number: other}) for one, other in pairs
    )
    found = tuple(wish for wish in wishes if wish)
    name = grid.factors[number].name
    return _Asked(factors=(name,), found=found, missing=len(pairs) - len(found))


def _simple(grid: Grid, m: int, n: int) -> _Asked:
    """Compare the levels of factor m at each level of factor n."""
    asked = [
        (at, pair) for at in grid.best_first(n) for pair in combinations(grid.best_first(m), 2)
    ]
    wishes = (
        _difference(grid, (one, other), {m: one, n: at}, {m: other, n: at}, at)
        for at, (one, other) in asked
    )
    found = tuple(wish for wish in wishes if wish)
    return _Asked(
        factors=(grid.factors[m].name,),
        within=grid.factors[n].name,
        found=found,
        missing=len(asked) - len(found),
    )


def _difference(
    grid: Grid,
    levels: tuple[str, str],
    here: Mapping[int, str],
    there: Mapping[int, str],
    at: str = "",
) -> _Wish | None:
    """Subtract the means of two sides over the partners that both have; None if they share none."""
    ours, theirs = grid.at(here), grid.at(there)
    partners = sorted(ours.keys() & theirs.keys())
    if not partners:
        return None
    pairs = grid.pairs([[ours[p] for p in partners]], [[theirs[p] for p in partners]])
    return _Wish(levels=(levels,), pairs=pairs, partners=len(partners), at=at)


def _interaction(grid: Grid, m: int, n: int) -> _Asked:
    names = (grid.factors[m].name, grid.factors[n].name)
    found, wanted = [], 0
    for a, b in combinations(grid.best_first(m), 2):
        for c, d in combinations(grid.best_first(n), 2):
            wanted += 1
            corners = [grid.at({m: x, n: y}) for x, y in ((a, c), (b, d), (b, c), (a, d))]
            partners = sorted(set.intersection(*(set(corner) for corner in corners)))
            if not partners:
                continue
            ac, bd, bc, ad = ([corner[p] for p in partners] for corner in corners)
            pairs = grid.pairs([ac, bd], [bc, ad])  # (ac - bc) - (ad - bd)
            found.append(_Wish(levels=((a, b), (c, d)), pairs=pairs, partners=len(partners)))
    return _Asked(factors=names, found=tuple(found), missing=wanted - len(found))


def _effects(
    grid: Grid, asked: Iterable[_Asked], judgements: Iterator[Judgement], level: float
) -> Iterator[Effect]:
    by_effect = shares(grid)
    for one in asked:
        yield Effect(
            factors=one.factors,
            within=one.within,
            contrasts=tuple(
                Contrast(
                    levels=wish.levels,
                    at=wish.at,
                    judgement=next(judgements),
                    partners=wish.partners,
                )
                for wish in one.found
            ),
            p=_omnibus(one.found, level),
            share=None if one.within else by_effect.get(one.factors),
            missing=one.missing,
        )


def _omnibus(wishes: Sequence[_Wish], level: float) -> float | None:
    """Test that all contrasts of one effect are 0: the largest |t|, adjusted over them alone."""
    pairs = {number: wish.pairs for number, wish in enumerate(wishes)}
    _, judged = judge(pairs, level=level, margin=None, effect=None)
    return min((one.p for one in judged.values() if one.p is not None), default=None)


def _means(grid: Grid, level: float) -> Iterator[Mean]:
    numbers = range(len(grid.factors))
    for m in numbers:
        yield from _means_of(grid, (m,), level)
    for pair in combinations(numbers, 2):
        yield from _means_of(grid, pair, level)


def _means_of(grid: Grid, numbers: tuple[int, ...], level: float) -> Iterator[Mean]:
    """Average over the partners that all these levels have; none where there is no cell."""
    from rlbench.stats import mean_interval

    found = {
        levels: there
        for levels in product(*(grid.best_first(number) for number in numbers))
        if (there := grid.at(dict(zip(numbers, levels, strict=True))))
    }
    partners = sorted(set.intersection(*(set(there) for there in found.values())))
    for levels, there in found.items():
        yield Mean(
            factors=tuple(grid.factors[number].name for number in numbers),
            levels=levels,
            interval=mean_interval(grid.mean([there[p] for p in partners]), level)
            if partners
            else None,
            partners=len(partners),
        )
