"""Checks of the values that every statistic is given, and exact, unbreakable sums of floats."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

FEWEST_RESAMPLES = 100
# a few roundings: 0.1 + 0.2 and 0.3 are one value
ROUNDING = 4 * float(np.finfo(np.float64).eps)


def sample(x: ArrayLike) -> Array:
    """Check and convert the values of one group, in their order.

    Args:
        x: Values (n,), one per seed: numbers, bools, a list or an array.

    Returns:
        The values (n,) as floats.

    Raises:
        ValueError: There is no value, more than one dimension, or a value that is not finite.
    """
    values = _floats(x)
    if values.ndim != 1:
        raise ValueError(f"expected one value per seed, shape (n,), got shape {values.shape}")
    if len(values) == 0:
        raise ValueError("no values: an interval needs at least one")
    _refuse_missing(values)
    return values


def table(x: ArrayLike, columns: str) -> Array:
    """Check and convert values of several cells at the same seeds.

    Args:
        x: Values (n, k), one row per seed.
        columns: What the k columns are, for messages.

    Returns:
        The values (n, k) as floats.

    Raises:
        ValueError: It has not two dimensions, no row, or a value that is not finite.
    """
    values = _floats(x)
    if values.ndim != 2:
        raise ValueError(f"expected shape (seeds, {columns}), got shape {values.shape}")
    if len(values) == 0:
        raise ValueError(f"no values: shape {values.shape} has no seed")
    _refuse_missing(values)
    return values


def suite(scores: Mapping[str, ArrayLike]) -> dict[str, Array]:
    """Check the scores of a suite and put them in an order that the caller's order can't change.

    Args:
        scores: For every task, its values (runs,).

    Returns:
        The same, tasks by name and values sorted.

    Raises:
        ValueError: There is no task, or the values of one are no sample; the task is named.
    """
    if not hasattr(scores, "keys"):
        raise ValueError(
            f"expected a mapping from task to the scores of its runs, got {type(scores).__name__}; "
            "a bare array does not say which axis is the task"
        )
    if not scores:
        raise ValueError("no tasks: a suite needs at least one")
    checked: dict[str, Array] = {}
    for task in sorted(scores):
        try:
            checked[task] = np.sort(sample(scores[task]))
        except ValueError as error:
            raise ValueError(f"task {task!r}: {error}") from None
    return checked


def two_sides(
    a: Mapping[str, ArrayLike], b: Mapping[str, ArrayLike], *, paired: bool
) -> tuple[list[Array], list[Array]]:
    """Check the scores of two algorithms over one suite.

    Args:
        a: For every task, the values (n,) of the first.
        b: Those of the second, for the same tasks.
        paired: Whether both have as many in each task, in the same order of seeds.

    Returns:
        The values of each side, task by task in one order.

    Raises:
        ValueError: There is no task, one is on one side only, or its values are no samples.
    """
    for side in (a, b):
        if not hasattr(side, "keys"):
            raise ValueError(
                "expected mappings from task to the scores of its runs, got "
                f"{type(side).__name__}; a bare array does not say which axis is the task"
            )
    lacking = [*(task for task in a if task not in b), *(task for task in b if task not in a)]
    if lacking:
        raise ValueError(f"task {lacking[0]!r} is on one side only")
    if not a:
        raise ValueError("no tasks: a suite needs at least one")
    first: list[Array] = []
    second: list[Array] = []
    for task in sorted(a):
        try:
            one, other = sample(a[task]), sample(b[task])
        except ValueError as error:
            raise ValueError(f"task {task!r}: {error}") from None
        if paired and len(one) != len(other):
            raise ValueError(
                f"task {task!r}: {len(one)} runs beside {len(other)}; pairs need the same seeds on "
                "both sides (paired=False compares independent runs)"
            )
        first.append(one)
        second.append(other)
    return first, second


def check_level(level: float) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if not 0 < level < 1:
        raise ValueError(f"level {level}: a confidence level lies in (0, 1)")


def check_alpha(alpha: float) -> None:
    """Refuse an error rate outside (0, 1)."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha {alpha}: an error rate lies in (0, 1)")


def check_resamples(resamples: int) -> None:
    """Refuse a number of resamples that can't give a quantile."""
    if resamples < FEWEST_RESAMPLES:
        raise ValueError(
            f"resamples {resamples}: quantiles of a resampling need at least {FEWEST_RESAMPLES}"
        )


def constant(values: Array, scale: float | None = None) -> bool:
    """Say whether values differ by nothing but rounding.

    Args:
        values: Values (n,).
        scale: Size of the numbers they were computed from; by default their own.

    Returns:
        True when all of them count as one value.
    """
    size = float(np.abs(values).max()) if scale is None else scale
    # halves: the difference of two huge numbers would overflow
    return float(values.max() / 2 - values.min() / 2) <= ROUNDING * size / 2


def scaled(values: Array) -> tuple[Array, int]:
    """Divide by a power of two, which is exact, so that neither squares nor sums overflow.

    Args:
        values: Values of any shape, at least one.

    Returns:
        The values within (-1, 1), and the exponent for `unscaled`.
    """
    exponent = math.frexp(float(np.abs(values).max()))[1]
    return np.ldexp(values, -exponent), exponent


def unscaled(value: float, exponent: int) -> float:
    """Undo `scaled`; what no float can hold becomes infinite."""
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.copysign(math.inf, value)


def average(values: Array) -> float:
    """Compute the mean of at least one value, the same bits in any order."""
    small, exponent = scaled(values)
    # fsum is exact, hence independent of the order; np.sum is neither
    return unscaled(math.fsum(small) / len(small), exponent)


def moments(values: Array) -> tuple[float, float]:
    """Compute mean and standard deviation (over n - 1), the same bits in any order of the values.

    Args:
        values: Values (n,), n at least 2.

    Returns:
        Both, in the unit of the values.
    """
    small, exponent = scaled(values)
    mean = math.fsum(small) / len(small)
    apart, finer = scaled(small - mean)
    sd = math.sqrt(math.fsum(apart**2) / (len(small) - 1))
    return unscaled(mean, exponent), unscaled(sd, exponent + finer)


def _floats(x: ArrayLike) -> Array:
    if isinstance(x, np.ma.MaskedArray):
        # a masked entry is a missing value, whatever number lies beneath the mask
        return np.where(np.ma.getmaskarray(x), np.nan, np.ma.getdata(x).astype(np.float64))
    return np.asarray(x, dtype=np.float64)


def _refuse_missing(values: Array) -> None:
    missing = int((~np.isfinite(values)).sum())
    if missing:
        raise ValueError(
            f"{missing} of {values.size} values are not finite; give failed runs a score, such as "
            "the task's floor, or leave them out and say so"
        )
