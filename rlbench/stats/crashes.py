"""What failed runs weigh in a test: never in their own favour, and never so much that they hide it.

A failed run scores the task's floor, far from all others. In a mean that is right. In a test it is
an outlier, whose size makes the standard error as large as the difference: a cell that is worse at
every seed stops being so once it crashes, and one that crashes where its baseline does, too, can
become better. So a claim is tested without the failures that could only speak for it:

- *better*, without the seeds at which the baseline failed, where the cell is ahead at the others,
- *worse*, without those at which the cell failed, where it is behind at the others.

Failures that speak against a claim stay, at the floor. Either test errs no more often than one on
all seeds, since what is left out would speak for the claim. Where the rest says the opposite, or
has too few seeds for a test (fewer than two, or than half), all are tested: then failures are what
the claim is about.

It is not perfect: where the baseline fails at half of the seeds, one failure more of the cell can
make the rest say the opposite, so that all are tested and the cell becomes better. How rarely, and
how rarely tables with failures claim what is not so: ``benchmarks/verdicts.py``.

To count such failures as the strongest of the other seeds instead would find more, but all cells of
a table share what their baseline lacks, and then err together.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Sample = tuple[float, ...]
Samples = tuple[Sample, Sample]
FEWEST = 2  # values for a test


def weighed(
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


def weighed_pairs(
    scores: Sequence[Sequence[float]],
    failed: Sequence[Sequence[bool]],
    sign: int,
    *,
    means: bool = False,
) -> tuple[float | None, ...]:
    """Give the differences, cell less baseline, that a test of pairs looks at.

    Args:
        scores: Of the cell and of the baseline, in one order of seeds, failures at the floor.
        failed: Which of them failed, or have a failure in them.
        sign: 1 where more is better, -1 where less is.
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
    better = _without(plain, [lost for _, _, _, lost in pairs], 1)
    worse = _without(plain, [gone for _, _, gone, _ in pairs], -1)
    # of means, what is left out may speak against the claim: then nothing is claimed
    mean = _mean_of(plain)
    if _mean_of(better) > 0 and mean > 0:
        return better
    return worse if _mean_of(worse) < 0 and mean < 0 else (0.0,) * len(plain)


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
    left = len(rest) - rest.count(None)
    return rest if _enough(left, len(rest)) and way * _mean_of(rest) > 0 else tuple(plain)


def _spared(side: Sample, failed: Sequence[bool]) -> Sample:
    """Leave failures out, if enough is left."""
    rest = tuple(value for value, crashed in zip(side, failed, strict=True) if not crashed)
    return rest if _enough(len(rest), len(side)) else side


def _enough(left: int, of: int) -> bool:
    return left >= FEWEST and 2 * left >= of


def _mean_of(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return _mean(known) if known else 0.0


def _mean(values: Sequence[float]) -> float:
    return math.fsum(value / len(values) for value in values)
