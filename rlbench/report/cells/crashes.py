"""What failed runs weigh in a test: never in their own favour, and never so much that they hide it.

A failed run scores the task's floor, far from all others. In a mean that is right. In a t test it
is an outlier, whose size makes the standard error as large as the difference: a cell that is worse
at every seed stops being so once it crashes, and one that crashes where its baseline does, too, can
become better. So a claim is tested without the failures that could only speak for it:

- *better*, without the seeds at which the baseline failed, where the cell is ahead at the others,
- *worse*, without those at which the cell failed, where it is behind at the others.

Failures that speak against a claim stay, at the floor. Either test errs no more often than one on
all seeds, since what is left out would speak for the claim. Where the rest says the opposite, or
has too few seeds for a test, all are tested: then failures are what the claim is about.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Sample = tuple[float, ...]
Samples = tuple[Sample, Sample]
FEWEST = 2  # values for a test


def tested(
    scores: Sequence[Sequence[float]], failed: Sequence[Sequence[bool]], sign: int
) -> Samples:
    """Give the two samples of independent runs that a test compares.

    Without failures they are the scores. Where neither claim has a mean in its favour, both samples
    are zeros: nothing is claimed.

    Args:
        scores: Of the cell and of the baseline, failures at the floor.
        failed: Which of them failed.
        sign: 1 where more is better, -1 where less is.

    Returns:
        Two samples of which the larger is the better.
    """
    ours, theirs = (tuple(sign * score for score in side) for side in scores)
    ours_ok, theirs_ok = (
        tuple(value for value, gone in zip(side, crashed, strict=True) if not gone)
        for side, crashed in zip((ours, theirs), failed, strict=True)
    )
    better, worse = (ours, theirs), (ours, theirs)
    if len(theirs_ok) >= FEWEST and _mean(ours) > _mean(theirs_ok):
        better = ours, theirs_ok
    if len(ours_ok) >= FEWEST and _mean(ours_ok) < _mean(theirs):
        worse = ours_ok, theirs
    if _mean(better[0]) > _mean(better[1]):
        return better
    if _mean(worse[0]) < _mean(worse[1]):
        return worse
    return (0.0,) * len(ours), (0.0,) * len(theirs)


def tested_pairs(
    scores: Sequence[Sequence[float]], failed: Sequence[Sequence[bool]], sign: int
) -> tuple[float | None, ...]:
    """Give the differences, row less baseline, that a test of pairs looks at; see `tested`.

    Returns:
        One a pair, in their order, positive where the cell is better; None where a pair is left
        out.
    """
    pairs = list(zip(*scores, *failed, strict=True))
    plain = tuple(
        _difference(sign * one, sign * other, gone, lost) for one, other, gone, lost in pairs
    )
    better = _without(plain, [lost for _, _, _, lost in pairs], 1)
    worse = _without(plain, [gone for _, _, gone, _ in pairs], -1)
    if _mean_of(better) > 0:
        return better
    return worse if _mean_of(worse) < 0 else (0.0,) * len(plain)


def ranked(
    scores: Sequence[Sequence[float]], failed: Sequence[Sequence[bool]], sign: int
) -> Samples:
    """Give samples for counting wins: places among all scores; failures share the last one."""
    ended_well = {
        sign * score
        for side, crashed in zip(scores, failed, strict=True)
        for score, gone in zip(side, crashed, strict=True)
        if not gone
    }
    place = {score: float(number) for number, score in enumerate(sorted(ended_well), 1)}
    first, second = (
        tuple(
            0.0 if gone else place[sign * score] for score, gone in zip(side, crashed, strict=True)
        )
        for side, crashed in zip(scores, failed, strict=True)
    )
    return first, second


def _difference(ours: float, theirs: float, gone: bool, lost: bool) -> float:  # noqa: FBT001 - a row of a table
    """Subtract; a failure is no better than what ended well, whatever the floor."""
    if gone and lost:
        return 0.0
    d = ours - theirs
    return min(d, 0.0) if gone else max(d, 0.0) if lost else d


def _without(
    plain: Sequence[float], left_out: Sequence[bool], way: int
) -> tuple[float | None, ...]:
    """Leave pairs out where the others speak for the claim; all stay where they do not."""
    rest = tuple(None if out else d for d, out in zip(plain, left_out, strict=True))
    enough = sum(d is not None for d in rest) >= FEWEST
    return rest if enough and way * _mean_of(rest) > 0 else tuple(plain)


def _mean_of(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return _mean(known) if known else 0.0


def _mean(values: Sequence[float]) -> float:
    return math.fsum(value / len(values) for value in values)
