"""Effects in a grid of cells: one number per seed, then the machinery for one sample."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rlbench.stats.paired import Difference, one_sample
from rlbench.stats.sample import sample, scaled, table, unscaled

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def contrast(y: ArrayLike, weights: ArrayLike, level: float = 0.95) -> Difference:
    """Estimate a contrast of cells: a main effect, an interaction, a difference of marginal means.

    Within each seed, ``c = sum(weights * y)`` over the cells; then the t interval and test of c
    over seeds. This is exact for normal data, needs no equal variances or correlations between
    cells and no mixed model. In a two-by-two grid with cells (a1b1, a1b2, a2b1, a2b2) the main
    effect of a is ``(1, 1, -1, -1) / 2`` and the interaction ``(1, -1, -1, 1)``. From n = 2 seeds.
    For several contrasts adjust their p, or give `max_t` the `contrast_values`.

    Args:
        y: Values (n, cells), one row per seed; a seed at which a cell is missing has no contrast.
        weights: One weight per cell (cells,), adding up to 0.
        level: Confidence level in (0, 1).

    Returns:
        The contrast in the unit of ``y``; positive means that the cells with positive weights are
        larger. One seed has no interval and no test.

    Raises:
        ValueError: Shapes don't fit, a value is not finite, the weights are all 0 or don't add up
            to 0, or ``level`` is not in (0, 1).
    """
    values = contrast_values(y, weights)
    largest = float(np.abs(np.asarray(y, dtype=np.float64)).max())
    scale = largest * float(np.abs(np.asarray(weights, dtype=np.float64)).max())
    return one_sample(values, level=level, scale=scale, what="contrasts")


def contrast_values(y: ArrayLike, weights: ArrayLike) -> NDArray[np.float64]:
    """Compute a contrast within each seed.

    Args:
        y: Values (n, cells), one row per seed.
        weights: One weight per cell (cells,), adding up to 0.

    Returns:
        The contrast of each seed (n,).

    Raises:
        ValueError: Shapes don't fit, a value is not finite, or the weights are all 0 or don't add
            up to 0.
    """
    values, by = table(y, "cells"), sample(weights)
    if values.shape[1] != len(by):
        raise ValueError(
            f"{len(by)} weights for {values.shape[1]} cells: y has one row per seed and one column "
            "per cell"
        )
    small, exponent = scaled(by)
    if not small.any() or abs(math.fsum(small)) > 1e-9:
        raise ValueError(
            f"the weights add up to {math.fsum(by):.6g}: those of a contrast add up to 0 and are "
            "not all 0; for a mean use mean_interval"
        )
    near, finer = scaled(values)
    summed = [unscaled(math.fsum(row * small), exponent + finer) for row in near]
    if not np.isfinite(summed).all():
        raise ValueError("a contrast is larger than a float can hold: use a larger unit")
    return np.array(summed)
