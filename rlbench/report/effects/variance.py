"""How the variance between the cells of a grid falls to its effects."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlbench.report.effects.factorial import Grid, Place


def shares(grid: Grid) -> dict[tuple[str, ...], float]:
    """Split the variance between cells among main effects and two-way interactions.

    This is least squares on the means of cells over seeds, as with a block for each seed. In a full
    grid effects are orthogonal: the sum of squares of a main effect is that of the marginal means,
    of an interaction that of the means of two factors less both. Noise of the means is in it.

    Args:
        grid: The cells of one task.

    Returns:
        Names of factors, one or two, to their share in [0, 1]. What is left to 1 is of higher
        interactions. Nothing where the grid has holes, or all cells have one mean.
    """
    if grid.holes:
        return {}
    means = {place: sum(of) / len(of) for place, of in grid.values.items()}
    middle = sum(means.values()) / len(means)
    total = sum((mean - middle) ** 2 for mean in means.values())
    if total <= 1e-24 * sum(mean**2 for mean in means.values()):  # rounding
        return {}
    main = {n: _deviations(means, (n,), middle) for n in range(len(grid.factors))}
    found: dict[tuple[str, ...], float] = {
        (grid.factors[n].name,): sum(d**2 for d in of.values()) / total for n, of in main.items()
    }
    for m, n in combinations(main, 2):
        both = _deviations(means, (m, n), middle)
        left = sum((both[place] - main[m][place] - main[n][place]) ** 2 for place in means)
        found[grid.factors[m].name, grid.factors[n].name] = left / total
    return found


def _deviations(
    means: dict[Place, float], numbers: tuple[int, ...], middle: float
) -> dict[Place, float]:
    """Deviation of the mean of these factors' levels, at each place."""
    sums: dict[Place, list[float]] = {}
    for place, mean in means.items():
        sums.setdefault(tuple(place[n] for n in numbers), []).append(mean)
    return {
        place: sum(of := sums[tuple(place[n] for n in numbers)]) / len(of) - middle
        for place in means
    }
