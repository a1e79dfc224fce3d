"""What failed runs weigh in a test: never in their own favour, and never so much that they hide it.

A failed run scores the task's floor, far from all others. In a mean that is right. In a test it is
an outlier, whose size makes the standard error as large as the difference: a cell that is worse at
every seed stops being so once it crashes, and one that crashes where its baseline does, too, can
become better. So failures that could only speak for a claim weigh less in its test, where the other
seeds speak for it, too:

- of *better*, those of the baseline,
- of *worse*, those of the cell.

In a t test they are left out; where they are more than half of the seeds, they are what the claim
is about, and count as no more than the strongest of the others. So they do in every test that flips
signs, which an even spread does not mislead. Failures that speak against a claim stay, at the
floor. No seed speaks louder for a claim than before, so that the test does not err more often.
Where the rest says the opposite, or has too few seeds for a test, all are tested as they are.

Simulated, the cell and its baseline alike but failing at a tenth, a quarter, half or three quarters
of the seeds, each for itself: false claims in 0.007 to 0.045 at 5 seeds (t), in 0.009 to 0.051 at
10 (flips); see ``benchmarks/simulation.py``.
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
    better = ours, _spared(theirs, failed[1])
    worse = _spared(ours, failed[0]), theirs
    if not _mean(better[0]) > _mean(better[1]):
        better = ours, theirs
    if not _mean(worse[0]) < _mean(worse[1]):
        worse = ours, theirs
    if _mean(better[0]) > _mean(better[1]):
        return better
    if _mean(worse[0]) < _mean(worse[1]):
        return worse
    return (0.0,) * len(ours), (0.0,) * len(theirs)


def tested_pairs(
    scores: Sequence[Sequence[float]],
    failed: Sequence[Sequence[bool]],
    sign: int,
    *,
    flips: bool,
    means: bool,
) -> tuple[float | None, ...]:
    """Give the differences, cell less baseline, that a test of pairs looks at.

    Args:
        scores: Of the cell and of the baseline, in one order of seeds, failures at the floor.
        failed: Which of them failed, or have a failure in them.
        sign: 1 where more is better, -1 where less is.
        flips: Whether the test flips signs; else it is a t test.
        means: Whether scores are means over several runs, of which some may have failed.

    Returns:
        One a pair, in their order, positive where the cell is better; None where a pair is left
        out.
    """
    pairs = list(zip(*scores, *failed, strict=True))
    plain = tuple(
        sign * (one - other) if means else _difference(sign * one, sign * other, gone, lost)
        for one, other, gone, lost in pairs
    )
    better = _weighed(plain, [lost for _, _, _, lost in pairs], 1, flips=flips)
    worse = _weighed(plain, [gone for _, _, gone, _ in pairs], -1, flips=flips)
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


def _weighed(
    plain: Sequence[float], for_it: Sequence[bool], way: int, *, flips: bool
) -> tuple[float | None, ...]:
    """Weigh the pairs whose failures speak for a claim less, if the others speak for it, too."""
    rest = [d for d, crashed in zip(plain, for_it, strict=True) if not crashed]
    if len(rest) == len(plain) or len(rest) < FEWEST or way * _mean(rest) <= 0:
        return tuple(plain)
    if not flips and 2 * len(rest) >= len(plain):
        return tuple(None if crashed else d for d, crashed in zip(plain, for_it, strict=True))
    strongest = max(way * d for d in rest)
    return tuple(
        way * min(way * d, strongest) if crashed else d
        for d, crashed in zip(plain, for_it, strict=True)
    )


def _spared(side: Sample, failed: Sequence[bool]) -> Sample:
    """Leave failures out, or, where they are more than half, count them as the worst of the rest.

    As they are where the rest has too few for a test.
    """
    rest = tuple(value for value, crashed in zip(side, failed, strict=True) if not crashed)
    if len(rest) < FEWEST:
        return side
    if 2 * len(rest) >= len(side):
        return rest
    worst = min(rest)
    return tuple(
        max(value, worst) if crashed else value for value, crashed in zip(side, failed, strict=True)
    )


def _mean_of(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return _mean(known) if known else 0.0


def _mean(values: Sequence[float]) -> float:
    return math.fsum(value / len(values) for value in values)
