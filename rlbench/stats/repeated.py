"""The level at which a t test is repeated at planned looks, exact at a few seeds a look."""

from __future__ import annotations

import math
import operator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import betaln, roots_jacobi, stdtrit

from rlbench.stats.sample import check_alpha
from rlbench.stats.sequential import MOST_LOOKS, pocock_looks

if TYPE_CHECKING:
    from typing import SupportsIndex

    from numpy.typing import NDArray

NODES = 48  # of each integral; more change the level by less than a hundredth of itself
STEPS = 4  # the rate is nearly proportional to the level


def repeated_t_level(looks: SupportsIndex, block: SupportsIndex, alpha: float = 0.05) -> float:
    """Compute the level of a t test at each of several looks, after equal blocks of seeds.

    What `pocock_looks` is for a known standard deviation: normal data without effect are
    significant at any look with probability ``alpha``. With the standard deviation estimated anew
    at each look, looks agree less with each other, and Pocock's level errs by up to a fifth of
    alpha: at five looks after 5 seeds each it gives 0.054 for 0.05. See Jennison and Turnbull,
    "Exact calculations for sequential t, chi-squared and F tests", Biometrika 78 (1991). Here it is
    one integral a look: the angle between the differences and a constant line says what t is, and
    by Basu's theorem it is independent of their length, so that angles of successive looks form a
    Markov chain. With the share ``b`` of the old seeds in the new sum of squares, a Beta variable,
    and the cosine ``v`` of the new block alone::

        cos' sqrt(n + m) = cos sqrt(n b) + v sqrt(m (1 - b))

    Args:
        looks: Number of looks, from 1 to 100.
        block: Seeds between two looks, at least 3.
        alpha: Two-sided error rate over all looks.

    Returns:
        The nominal two-sided level: at least ``alpha / looks``, at most that of `pocock_looks`.

    Raises:
        ValueError: ``looks``, ``block`` or ``alpha`` is out of range.
        TypeError: ``looks`` or ``block`` is not a whole number.
    """
    count, size = operator.index(looks), operator.index(block)
    check_alpha(alpha)
    if not 1 <= count <= MOST_LOOKS:
        raise ValueError(f"looks {count}: from 1 to {MOST_LOOKS} looks can be planned")
    if size < 3:
        raise ValueError(f"block {size}: a look takes 3 more seeds at least")
    return _level(count, size, alpha)


@lru_cache(maxsize=64)
def _level(looks: int, block: int, alpha: float) -> float:
    if looks == 1:
        return alpha
    level = pocock_looks(looks, alpha)
    for _ in range(STEPS):
        level = max(level * alpha / _crossing(level, looks, block), alpha / looks)
    return level


def _crossing(nominal: float, looks: int, block: int) -> float:
    """Compute the probability that any look is significant at the nominal level.

    Backwards: what is kept is the chance to cross no more, for each cosine at a look.
    """
    grid, weights = np.polynomial.legendre.leggauss(NODES)
    at = np.cos(np.linspace(math.pi, 0, NODES))  # dense at the ends, where chances change most
    limits = [_limit(block * look, nominal) for look in range(1, looks + 1)]
    stays = CubicSpline(limits[-1] * at, np.ones(NODES))
    for look in range(looks - 1, 0, -1):
        old, new = block * look, block * (look + 1)
        power, share = (block - 2) / 2, (old - 2) / 2
        z, mass = roots_jacobi(NODES, power, share)
        b, mass = (1 + z) / 2, mass / mass.sum()
        carried = (limits[look - 1] * at)[:, None] * np.sqrt(old * b / new)
        reach = np.sqrt(block * (1 - b) / new)
        first = np.clip((-limits[look] - carried) / reach, -1, 1)
        last = np.clip((limits[look] - carried) / reach, -1, 1)
        v = first[..., None] + (last - first)[..., None] * (1 + grid) / 2
        kept = stays(carried[..., None] + v * reach[:, None]) * _density(v, block)
        inner = (kept @ weights) * (last - first) / 2
        stays = CubicSpline(limits[look - 1] * at, inner @ mass)
    v = limits[0] * grid
    return 1 - float(weights @ (stays(v) * _density(v, block))) * limits[0]


def _limit(n: int, nominal: float) -> float:
    """The cosine from which n values are significant."""
    t = float(stdtrit(n - 1, 1 - nominal / 2))
    return t / math.sqrt(t * t + n - 1)


def _density(v: NDArray[np.float64], block: int) -> NDArray[np.float64]:
    """Density of the cosine between a block of normal values and a constant line."""
    made: NDArray[np.float64] = np.maximum(1 - v * v, 0.0) ** ((block - 3) / 2)
    return made / math.exp(betaln(0.5, (block - 1) / 2))
