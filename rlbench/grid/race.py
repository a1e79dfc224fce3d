"""The rule of a race: seeds go only where the verdict is open, and no look costs any error rate.

What a race claims is a pure function of its plan and of the scores at the looks of that plan, see
`decide`. Whoever runs it, in how many pieces, and whatever else lies in the folder changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from rlbench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rlbench.stats import Interval

    Scores = Mapping[str, Mapping[int, float | None]]
    Failed = Mapping[str, Collection[int]]

PLAN = "race.json"  # in the folder of results, see `rlbench.grid.race_file`
BETTER, WORSE, EQUIVALENT, UNDECIDED = "better", "worse", "equivalent", "undecided"
FEWEST = 3  # seeds of a look
USUAL = 5  # with fewer, a look rarely decides anything
LOOKS = 5


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two cells that are compared, by their keys.

    Attributes:
        cell: Key of the first, from `key_of`.
        other: Key of the second, such as the baseline.
        sign: 1 where more is better, -1 where less is.
    """

    cell: str
    other: str
    sign: int = 1


def usual_looks(seeds: int) -> int:
    """Choose a number of looks: at most 5, of equal numbers of seeds, these 5 or more if possible.

    Args:
        seeds: Size of the pool.

    Returns:
        A number that `RacePlan` takes, if there is one for this pool.
    """
    for fewest in (USUAL, FEWEST):
        for looks in range(LOOKS, 1, -1):
            if seeds % looks == 0 and seeds // looks >= fewest:
                return looks
    return LOOKS


@dataclass(frozen=True, kw_only=True)
class RacePlan:
    """What has to be fixed before the first look.

    Attributes:
        pairs: The family of comparisons.
        seeds: The pool, in the order in which seeds are given out.
        looks: Number of planned looks, each after as many seeds as the others; None means a look
            after every seed.
        alpha: Chance of any false claim in the whole family, over all looks.
        margin: Differences within it are equivalent; None claims nothing equivalent.
        names: What cells are called, by key; no part of the rule.

    Raises:
        UsageError: These can't be a race; says what can.
    """

    pairs: tuple[Pair, ...]
    seeds: tuple[int, ...]
    looks: int | None = LOOKS
    alpha: float = 0.05
    margin: float | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that something can be decided, with equal blocks of seeds."""
        if not self.pairs:
            raise UsageError("a race needs at least one comparison")
        if not 0 < self.alpha < 1:
            raise UsageError(f"alpha={self.alpha}: an error rate lies in (0, 1)")
        if self.margin is not None and not 0 < self.margin < math.inf:
            raise UsageError(f"margin={self.margin}: expected a positive difference")
        n = len(self.seeds)
        if len(set(self.seeds)) < n:
            raise UsageError("a seed is in the pool twice; give each once")
        if self.looks is None:
            if self.stops.start > n:
                raise UsageError(
                    f"{n} seeds for {len(self.pairs)} comparisons: after every seed, nothing can "
                    f"be decided before {self.stops.start}; give more seeds"
                )
        elif self.looks < 2 or n % self.looks or n // self.looks < FEWEST:
            raise UsageError(
                f"{n} seeds don't make {self.looks} looks: a race needs 2 looks or more, of equal "
                f"numbers of seeds, {FEWEST} at least and better {USUAL}; {_advice(n, self.looks)}"
            )

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """Keys of the cells, each once."""
        return tuple(dict.fromkeys(key for p in self.pairs for key in (p.other, p.cell)))

    @cached_property
    def stops(self) -> range:
        """Numbers of seeds after which is looked."""
        n = len(self.seeds)
        if self.looks is not None:
            return range(n // self.looks, n + 1, n // self.looks)
        first = 2  # no data whatever can reject before
        while (1 + first) ** ((first - 1) / 2) <= len(self.pairs) / self.alpha:
            first += 1
        return range(first, n + 1)

    @cached_property
    def nominal(self) -> float:
        """Error rate of one comparison: of each of its looks, or of all where they are unplanned.

        Bonferroni over the comparisons; over planned looks equal levels, exact for t at so few
        seeds. All intervals at this level hold at once with probability 1 - alpha, those of all
        comparisons at all looks; so what is read off them, better, worse and equivalent alike, is
        wrong anywhere with probability alpha at most. (Holm's rule would spend
        more on the comparisons that are left when others are better or worse. It does not cover
        "equivalent", and has no intervals that agree with it.)
        """
        from rlbench.stats import repeated_t_level

        alone = self.alpha / len(self.pairs)
        return alone if self.looks is None else repeated_t_level(self.looks, self.stops.step, alone)

    def after(self, n: int, step: int = 1) -> int:
        """Tell the number of seeds of the look to run for, with n seeds seen.

        Args:
            n: Seeds that were looked at; 0 at first.
            step: Of looks after every seed so many are made at once, to keep workers busy.
        """
        first, last = self.stops[0], self.stops[-1]
        jump = self.stops.step if self.looks is not None else step
        return min(first + ((n - first) // jump + 1) * jump, last) if n >= first else first


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where one comparison stands.

    Attributes:
        pair: What is compared.
        verdict: ``better`` or ``worse`` (the first), ``equivalent``, or ``undecided``.
        n: Number of pairs of seeds at the look that decided, or at the last one; 0 before any.
        interval: The mean difference, first less second, with an interval that holds whenever the
            race stops; None before the first look, and where a score is not known.
        evidence: The p-value of that look, significant below `RacePlan.nominal`; or the e-value of
            all seeds so far, from its inverse on. None where there is no test. What failures weigh
            in it: `rlbench.stats.crashes`.
        sd: Standard deviation of the differences; None likewise.
        reason: Why there is no test; empty where there is one.
    """

    pair: Pair
    verdict: str = UNDECIDED
    n: int = 0
    interval: Interval | None = None
    evidence: float | None = None
    sd: float | None = None
    reason: str = ""

    @property
    def decided(self) -> bool:
        """Whether it needs no more seeds."""
        return self.verdict != UNDECIDED


def decide(plan: RacePlan, scores: Scores, failed: Failed | None = None) -> tuple[Standing, ...]:
    """Judge every comparison from what is there, look by look; the first that decides counts.

    At planned looks, the interval is the paired t interval at the nominal level of
    `rlbench.stats.repeated_t_level`; after every seed, it is
    `rlbench.stats.confidence_sequence`, which excludes 0 exactly where the e-value of
    `rlbench.stats.e_process` exceeds ``pairs / alpha``. An interval
    without 0 is better or worse, one inside the margin equivalent. A look uses the first seeds
    of the pool and no others, and is made when both cells have all of these. Where runs failed,
    better and worse are read off the interval of what `rlbench.stats.crashes` leaves of them.

    Args:
        plan: What was planned.
        scores: For each cell and each seed that was tried to its end, the score, failures at the
            task's floor; None where it is not known.
        failed: For each cell its seeds that failed; None if none did.

    Returns:
        One standing for each pair of the plan.
    """
    return tuple(_standing(plan, pair, scores, failed or {}) for pair in plan.pairs)


def wanted(plan: RacePlan, standings: Sequence[Standing], step: int = 1) -> dict[str, int]:
    """Tell how many of its seeds each cell needs for the next look at what is open.

    Args:
        plan: What was planned.
        standings: From `decide`.
        step: As in `RacePlan.after`.

    Returns:
        The cells of open comparisons only; none when nothing is left to do.
    """
    need: dict[str, int] = {}
    for standing in standings:
        if standing.decided or standing.n == plan.stops[-1]:
            continue
        for key in (standing.pair.cell, standing.pair.other):
            need[key] = max(need.get(key, 0), plan.after(standing.n, step))
    return need


def key_of(spec: Mapping[str, Any]) -> str:
    """Name a cell by all of a specification but the seed, in ten hexadecimal digits.

    Args:
        spec: As in ``spec.json``.
    """
    rest = {name: value for name, value in spec.items() if name not in ("run_id", "seed")}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()[:10]


def _standing(plan: RacePlan, pair: Pair, scores: Scores, failed: Failed) -> Standing:
    """Go through the looks of one comparison up to the first that decides."""
    ours, theirs = scores.get(pair.cell, {}), scores.get(pair.other, {})
    standing = Standing(pair=pair)
    for n in plan.stops:
        seeds = plan.seeds[:n]
        if any(seed not in ours or seed not in theirs for seed in seeds):
            break
        one, other = (
            [_Run(of[seed], seed in failed.get(key, ())) for seed in seeds]
            for key, of in ((pair.cell, ours), (pair.other, theirs))
        )
        standing = _look(plan, pair, one, other)
        if standing.decided:
            break
    return standing


class _Run(NamedTuple):
    score: float | None
    failed: bool


def _look(plan: RacePlan, pair: Pair, ours: Sequence[_Run], theirs: Sequence[_Run]) -> Standing:
    """Judge one comparison at one look."""
    from rlbench.stats import paired_difference
    from rlbench.stats.crashes import weighed_pairs

    n = len(ours)
    known = [
        (a.score, b.score)
        for a, b in zip(ours, theirs, strict=True)
        if a.score is not None and b.score is not None
    ]
    if len(known) < n:
        return Standing(pair=pair, n=n, reason="a failed run has no known floor")
    first, second = zip(*known, strict=True)
    found = paired_difference(first, second, 1 - plan.nominal)
    if not found.testable:
        why = "all differences are equal"
        return Standing(pair=pair, n=n, interval=found.interval, reason=why)
    interval, evidence = _evidence(plan, first, second)
    claim = interval
    failed = [[run.failed for run in side] for side in (ours, theirs)]
    if any(map(any, failed)):
        weighed = weighed_pairs((first, second), failed, pair.sign)
        left = [pair.sign * d for d in weighed if d is not None]
        claim, evidence = _evidence(plan, left, [0.0] * len(left))
    verdict = _better_or_worse(claim, pair.sign)
    if verdict == UNDECIDED and _within(interval, plan.margin):
        verdict = EQUIVALENT
    return Standing(
        pair=pair, verdict=verdict, n=n, interval=interval, evidence=evidence, sd=found.sd
    )


def _evidence(
    plan: RacePlan, first: Sequence[float], second: Sequence[float]
) -> tuple[Interval, float | None]:
    """Give the interval of the difference at this look, and the p-value or e-value."""
    from rlbench.stats import confidence_sequence, e_process, paired_difference

    found = paired_difference(first, second, 1 - plan.nominal)
    if plan.looks is not None or not found.testable:
        return found.interval, found.p
    differences = [a - b for a, b in zip(first, second, strict=True)]
    return confidence_sequence(differences, plan.nominal), e_process(differences)


def _better_or_worse(interval: Interval, sign: int) -> str:
    low, high = interval.low, interval.high
    if low is None or high is None or interval.degenerate or low <= 0 <= high:
        return UNDECIDED
    return BETTER if sign * interval.mid > 0 else WORSE


def _within(interval: Interval, margin: float | None) -> bool:
    low, high = interval.low, interval.high
    if low is None or high is None or margin is None or interval.degenerate:
        return False
    return -margin < low and high < margin


def _advice(n: int, looks: int) -> str:
    """Say which numbers near these would do."""
    wanted_looks = max(looks, 2)
    block = max(n // wanted_looks, FEWEST)
    return f"{block * wanted_looks} or {(block + 1) * wanted_looks} seeds do for {wanted_looks}"
