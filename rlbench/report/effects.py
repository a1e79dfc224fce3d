"""Main effects and interactions of a grid, as contrasts within each seed: ``rlbench effects``."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from rlbench.report.family import judge
from rlbench.report.partners import Partners, best_partners

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlbench.report.factorial import Grid, Place
    from rlbench.report.family import Family, Judgement
    from rlbench.report.pairing import Pairs
    from rlbench.stats import Interval


@dataclass(frozen=True, kw_only=True)
class Mean:
    """The mean of a level over the levels of all other factors.

    Attributes:
        factor: Name of the factor.
        level: The level.
        interval: Mean over seeds, with its t interval; None where no partner is complete.
        partners: Levels of the other factors that were averaged, with equal weights: those that
            every level of the factor has.
    """

    factor: str
    level: str
    interval: Interval | None
    partners: int


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """One contrast of cells.

    Attributes:
        factors: One name for a main effect, two for an interaction.
        levels: For each of them the two levels that are subtracted, the first less the second.
        judgement: The contrast with its intervals, its p-value adjusted over all contrasts of the
            grid, and a verdict; for an interaction the difference of the differences.
        partners: Combinations of levels of the other factors that were averaged.
    """

    factors: tuple[str, ...]
    levels: tuple[tuple[str, str], ...]
    judgement: Judgement
    partners: int


@dataclass(frozen=True, kw_only=True)
class Effect:
    """All contrasts of one factor, or of two.

    Attributes:
        factors: Names.
        contrasts: Those that the grid can tell.
        p: That there is no effect at all: the smallest p-value, adjusted over this effect alone.
        share: Share of the variance between cells, by least squares; None if the grid has holes.
        missing: How many contrasts holes in the grid forbid.
    """

    factors: tuple[str, ...]
    contrasts: tuple[Contrast, ...]
    p: float | None
    share: float | None
    missing: int


@dataclass(frozen=True, kw_only=True)
class Effects:
    """Everything that a grid says of its factors.

    Attributes:
        grid: The grid of one task.
        means: Marginal means, factor by factor.
        effects: Main effects in the order of the factors, then two-way interactions.
        family: How all contrasts were judged together.
        partners: For each factor, the best partner of its levels, chosen and measured on different
            seeds; None where there is one factor, a hole, or there are too few seeds.
    """

    grid: Grid
    means: tuple[Mean, ...]
    effects: tuple[Effect, ...]
    family: Family
    partners: tuple[Partners, ...]


def effects(grid: Grid, *, level: float = 0.95, margin: float | None = None) -> Effects:
    """Compute main effects and two-way interactions.

    Every effect is a contrast of cell means: within each seed, then over seeds, so that nothing is
    assumed of equal variances or of correlations between cells (see `rlbench.stats.contrast`).
    A main effect of two levels is the difference of their means over the same levels of all other
    factors, with equal weights; an interaction is the difference of such a difference between two
    levels of another factor. Where the grid has holes, only partners that both sides have count.
    All contrasts of the grid are one family, see `rlbench.report.family.judge`.

    Args:
        grid: The cells of one task.
        level: Confidence level in [0.5, 1).
        margin: Largest contrast that counts as none; None calls nothing equivalent.
    """
    numbers = range(len(grid.factors))
    asked = [_main(grid, n) for n in numbers]
    asked += [_interaction(grid, m, n) for m, n in combinations(numbers, 2)]
    flat = [contrast for of_effect in asked for contrast in of_effect.found]
    family, judged = judge(
        {n: contrast.pairs for n, contrast in enumerate(flat)},
        level=level,
        margin=margin,
        effect=margin,
    )
    shares = _shares(grid)
    done: list[Effect] = []
    first = 0
    for of_effect in asked:
        last = first + len(of_effect.found)
        done.append(
            Effect(
                factors=of_effect.factors,
                contrasts=tuple(_contrast(flat[n], judged[n]) for n in range(first, last)),
                p=_omnibus(flat[first:last], level),
                share=shares.get(of_effect.factors),
                missing=of_effect.missing,
            )
        )
        first = last
    return Effects(
        grid=grid,
        means=tuple(mean for n in numbers for mean in _means(grid, n, level)),
        effects=tuple(done),
        family=family,
        partners=best_partners(grid, level=level, margin=margin),
    )


@dataclass(frozen=True, kw_only=True)
class _Wish:
    """A contrast before it is judged."""

    factors: tuple[str, ...]
    levels: tuple[tuple[str, str], ...]
    pairs: Pairs
    partners: int


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """All contrasts of an effect that the grid can tell."""

    factors: tuple[str, ...]
    found: tuple[_Wish, ...]
    missing: int


def _main(grid: Grid, number: int) -> _Asked:
    factor = grid.factors[number]
    pairs = list(combinations(grid.best_first(number), 2))
    found = []
    for one, other in pairs:
        ours, theirs = grid.at({number: one}), grid.at({number: other})
        partners = sorted(ours.keys() & theirs.keys())
        if partners:
            found.append(
                _Wish(
                    factors=(factor.name,),
                    levels=((one, other),),
                    pairs=_pairs(grid, [ours[p] for p in partners], [theirs[p] for p in partners]),
                    partners=len(partners),
                )
            )
    return _Asked(factors=(factor.name,), found=tuple(found), missing=len(pairs) - len(found))


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
            found.append(
                _Wish(  # (ac - bc) - (ad - bd)
                    factors=names,
                    levels=((a, b), (c, d)),
                    pairs=_pairs(grid, ac, bc, plus=bd, minus=ad),
                    partners=len(partners),
                )
            )
    return _Asked(factors=names, found=tuple(found), missing=wanted - len(found))


def _pairs(
    grid: Grid,
    ours: Sequence[Place],
    theirs: Sequence[Place],
    *,
    plus: Sequence[Place] = (),
    minus: Sequence[Place] = (),
) -> Pairs:
    """Pair two sides of a contrast by seed; of an interaction, each side is a sum of two."""
    left, right = grid.mean(ours), grid.mean(theirs)
    if plus:
        left = [x + y for x, y in zip(left, grid.mean(plus), strict=True)]
        right = [x + y for x, y in zip(right, grid.mean(minus), strict=True)]
    return grid.pairs(left, right, grid.seeds)


def _contrast(wish: _Wish, judgement: Judgement) -> Contrast:
    return Contrast(
        factors=wish.factors,
        levels=wish.levels,
        judgement=judgement,
        partners=wish.partners,
    )


def _omnibus(wishes: Iterable[_Wish], level: float) -> float | None:
    """Test that all contrasts of one effect are 0: the largest |t|, adjusted over them alone."""
    pairs = {number: wish.pairs for number, wish in enumerate(wishes)}
    _, judged = judge(pairs, level=level, margin=None, effect=None)
    return min((one.p for one in judged.values() if one.p is not None), default=None)


def _means(grid: Grid, number: int, level: float) -> list[Mean]:
    """Average each level over the partners that all levels of its factor have."""
    from rlbench.stats import mean_interval

    factor = grid.factors[number]
    places = {name: grid.at({number: name}) for name in factor.levels}
    partners = sorted(set.intersection(*(set(of) for of in places.values())))
    return [
        Mean(
            factor=factor.name,
            level=name,
            interval=mean_interval(grid.mean([places[name][p] for p in partners]), level)
            if partners
            else None,
            partners=len(partners),
        )
        for name in factor.levels
    ]


def _shares(grid: Grid) -> Mapping[tuple[str, ...], float]:
    """Split the variance between cells among the effects; what is left is of higher interactions.

    In a full grid effects are orthogonal: the sum of squares of a main effect is that of the
    marginal means, of an interaction that of the means of two factors less both.
    """
    if grid.holes:
        return {}
    means = {place: sum(of) / len(of) for place, of in grid.values.items()}
    middle = sum(means.values()) / len(means)
    total = sum((mean - middle) ** 2 for mean in means.values())
    if not total:
        return {}

    def deviations(numbers: tuple[int, ...]) -> dict[Place, float]:
        """Deviation of the mean of these factors' levels, at each place."""
        sums: dict[Place, list[float]] = {}
        for place, mean in means.items():
            sums.setdefault(tuple(place[n] for n in numbers), []).append(mean)
        return {
            place: sum(of := sums[tuple(place[n] for n in numbers)]) / len(of) - middle
            for place in means
        }

    main = {n: deviations((n,)) for n in range(len(grid.factors))}
    shares: dict[tuple[str, ...], float] = {
        (grid.factors[n].name,): sum(d**2 for d in of.values()) / total for n, of in main.items()
    }
    for m, n in combinations(main, 2):
        both = deviations((m, n))
        names = (grid.factors[m].name, grid.factors[n].name)
        left = sum((both[p] - main[m][p] - main[n][p]) ** 2 for p in means)
        shares[names] = left / total
    return shares
