"""Every pair of cells at its common seeds, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr

from rlbench.stats.crashes import weighed, weighed_pairs
from rlbench.stats.mixed import MAX_T_FROM, adjusted_by_pairs
from rlbench.stats.sample import ROUNDING, table
from rlbench.stats.unpaired import unpaired_difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, kw_only=True)
class PairTests:
    """Tests of many pairs of cells.

    Attributes:
        n: Common seeds of each pair (m,); of independent ones the fewer of both numbers.
        difference: Mean over them of the first cell less the second (m,), 0 where there is none.
        tied: Whether both cells have the same value at every common seed (m,); true without any.
        testable: Whether there is a test (m,): at least two common seeds, and a spread.
        p: Two-sided p-values of the paired t test (m,), 1 where there is no test.
        adjusted: The same, adjusted for all pairs with a test (m,), 1 where there is none.
        joint: Whether all with a test were adjusted by max-t with joint flips of signs.
        mixed: Whether some were, and others by Holm.
    """

    n: NDArray[np.int64]
    difference: NDArray[np.float64]
    tied: NDArray[np.bool_]
    testable: NDArray[np.bool_]
    p: NDArray[np.float64]
    adjusted: NDArray[np.float64]
    joint: bool
    mixed: bool


def pair_tests(
    y: ArrayLike,
    pairs: ArrayLike,
    present: ArrayLike | None = None,
    independent: ArrayLike | None = None,
    failed: ArrayLike | None = None,
) -> PairTests:
    """Test pairs of cells by paired t at common seeds, as one family.

    Computes what `paired_difference` does for one pair (to rounding) for thousands at once; p is
    adjusted by `adjusted_by_pairs`. A seed that a pair lacks is 0 under every flip and adds
    nothing.

    Args:
        y: Values (n, cells), one row per seed.
        pairs: Columns of the first and second cell (m, 2).
        present: Which values are there (n, cells); all if it is not given. What stands in the place
            of a value that is not there has to be finite and is not looked at.
        independent: Which pairs (m,) are of cells whose rows have nothing in common: they are
            tested by Welch's t on all of their values, as `unpaired_difference` does, and never by
            flips. None if it is not given.
        failed: Which values are floors of runs that failed (n, cells), where more is better; none
            if it is not given. What they weigh in p: `rlbench.stats.crashes`.

    Returns:
        One entry a pair, in the order given. Differences are in the unit of ``y``; positive means
        that the first cell is larger. The order of the cells changes nothing.

    Raises:
        ValueError: Shapes don't fit, or a value is not finite.
    """
    values = table(y, "cells")
    index = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    there = np.ones(values.shape, dtype=bool) if present is None else np.asarray(present, bool)
    if there.shape != values.shape:
        raise ValueError(f"present has shape {there.shape}, y has {values.shape}")
    if index.size and (index.min() < 0 or index.max() >= values.shape[1]):
        raise ValueError(f"pairs name columns outside [0, {values.shape[1] - 1}]")
    values = np.where(there, values, 0.0)
    first, second = index.T
    common = there[:, first] & there[:, second]
    left, right = np.where(common, values[:, first], 0.0), np.where(common, values[:, second], 0.0)
    # a power of two for each pair: one task's scores may be far beyond another's
    exponents = _exponents(np.maximum(np.abs(left), np.abs(right)).max(axis=0, initial=0.0))
    left, right = np.ldexp(left, -exponents), np.ldexp(right, -exponents)
    d = left - right
    n = common.sum(axis=0)
    mean = d.sum(axis=0) / np.maximum(n, 1)
    testable = (n >= 2) & _spread(d, left, right, common)
    p = np.where(testable, _paired_t(d, mean, n, common), 1.0)
    apart = np.zeros(len(index), bool) if independent is None else np.asarray(independent, bool)
    crashed = there & (np.zeros(values.shape, bool) if failed is None else np.asarray(failed, bool))
    looked_at, kept = d, common
    touched = ((crashed[:, first] | crashed[:, second]) & common).any(axis=0) & ~apart
    if touched.any():
        sides = (crashed[:, first[touched]], crashed[:, second[touched]])
        looked_at, kept = d.copy(), common.copy()
        looked_at[:, touched], kept[:, touched] = _weighed(
            (left[:, touched], right[:, touched]), sides, common[:, touched]
        )
        p[touched] = np.where(testable, _tested(looked_at, kept), 1.0)[touched]
    if apart.any():
        welch = _welch(values, there, crashed, index[apart])
        n[apart], mean[apart], p[apart], testable[apart] = welch
        exponents[apart] = 0
    of_flips = np.where(apart, 0, kept.sum(axis=0))[testable]
    adjusted, many = np.ones(len(index)), of_flips >= MAX_T_FROM
    if testable.any():
        adjusted[testable] = adjusted_by_pairs(p[testable], of_flips, looked_at[:, testable])
    with np.errstate(over="ignore"):  # what no float can hold is infinite
        difference = np.ldexp(mean, exponents)
    return PairTests(
        n=n,
        difference=difference,
        tied=(d == 0).all(axis=0),
        testable=testable,
        p=p,
        adjusted=adjusted,
        joint=bool(testable.any() and many.all()),
        mixed=bool(many.any() and not many.all()),
    )


def _weighed(
    sides: Sequence[NDArray[np.float64]],
    failed: Sequence[NDArray[np.bool_]],
    common: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Give the differences of pairs with failures as a test looks at them, and which are left.

    Args:
        sides: Of the first and of the second cells (n, m).
        failed: Which of these failed.
        common: Which are there.
    """
    d, kept = np.zeros(common.shape), np.zeros(common.shape, bool)
    for column in range(common.shape[1]):
        rows = np.flatnonzero(common[:, column])
        scores, crashed = ([side[rows, column].tolist() for side in of] for of in (sides, failed))
        found = weighed_pairs(scores, crashed, 1)
        for row, difference in zip(rows, found, strict=True):
            if difference is not None:
                d[row, column], kept[row, column] = difference, True
    return d, kept


def _tested(d: NDArray[np.float64], kept: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Compute p-values of what is left of pairs with failures, 1 where it has no spread."""
    n = kept.sum(axis=0)
    spread = (n >= 2) & _spread(d, d, np.zeros(d.shape), kept)
    return np.where(spread, _paired_t(d, d.sum(axis=0) / np.maximum(n, 1), n, kept), 1.0)


def _welch(
    values: NDArray[np.float64],
    there: NDArray[np.bool_],
    crashed: NDArray[np.bool_],
    index: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Give the fewer values, the difference, p and whether there is a test, one pair at a time."""
    columns = [values[there[:, column], column] for column in range(values.shape[1])]
    failed = [crashed[there[:, column], column] for column in range(values.shape[1])]
    n, mean, p, testable = [], [], [], []
    for one, other in index:
        first, second = columns[one], columns[other]
        n.append(min(len(first), len(second)))
        found = unpaired_difference(first, second) if n[-1] else None
        mean.append(found.interval.mid if found else 0.0)
        known = found.p if found else None
        if known is not None and (failed[one].any() or failed[other].any()):
            sides = first.tolist(), second.tolist()
            known = unpaired_difference(
                *weighed(sides, (failed[one].tolist(), failed[other].tolist()), 1)
            ).p
            known = 1.0 if known is None else known
        p.append(1.0 if known is None else known)
        testable.append(known is not None)
    return np.array(n), np.array(mean), np.array(p), np.array(testable)


def _exponents(sizes: NDArray[np.float64]) -> NDArray[np.int32]:
    """Give the powers of two that bring numbers of these sizes below 1."""
    found: NDArray[np.int32] = np.frexp(sizes)[1]
    return found


def _spread(
    d: NDArray[np.float64],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    common: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Say which pairs have differences that differ by more than rounding."""
    highest = np.where(common, d, -np.inf).max(axis=0, initial=-np.inf)
    lowest = np.where(common, d, np.inf).min(axis=0, initial=np.inf)
    size = np.where(common, np.maximum(np.abs(first), np.abs(second)), 0.0).max(axis=0, initial=0.0)
    with np.errstate(invalid="ignore"):  # -inf less inf, where nothing is common
        found: NDArray[np.bool_] = highest - lowest > ROUNDING * size
    return found


def _paired_t(
    d: NDArray[np.float64],
    mean: NDArray[np.float64],
    n: NDArray[np.int64],
    common: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Compute two-sided p-values; what has no spread gives a number that means nothing."""
    apart = np.where(common, d - mean, 0.0)
    largest = np.abs(apart).max(axis=0, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)  # squares of tiny numbers would be 0
    df = np.maximum(n - 1, 1)
    error = unit * np.sqrt(((apart / unit) ** 2).sum(axis=0) / df / np.maximum(n, 1))
    t = np.abs(mean) / np.where(error > 0, error, 1.0)
    found: NDArray[np.float64] = 2 * stdtr(df, -t)
    return found
