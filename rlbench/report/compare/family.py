"""A family of comparisons, judged together: adjusted p-values and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rlbench.report.cells.pairing import Pairs
    from rlbench.stats import Difference, Interval

BASELINE, BETTER, WORSE, EQUIVALENT = "baseline", "+", "-", "="
UNDECIDED, NOT_TESTABLE, NOT_COMPARABLE = "?", "n/a", "x"

POWER = 0.8


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What the pairs of one comparison say.

    Attributes:
        verdict: One of the marks above.
        reason: Why there is no test; empty where there is one.
        difference: Its mean less the baseline's over the pairs, in the unit of the metric, with the
            paired t interval. None where there is nothing to subtract.
        simultaneous: The same difference with an interval for the whole family.
        p: Two-sided p-value, adjusted for the family; None where there is no test.
        improvement: Share of pairs in which it does better, ties one half.
        more: About how many more seeds would show a difference of interest, where it is undecided;
            None elsewhere, where no such difference is known, where runs failed, whose floor is no
            spread to plan by, and where no number of seeds in reach would.
    """

    verdict: str = BASELINE
    reason: str = ""
    difference: Difference | None = None
    simultaneous: Interval | None = None
    p: float | None = None
    improvement: Interval | None = None
    more: int | None = None


@dataclass(frozen=True, kw_only=True)
class Family:
    """All comparisons of a table.

    Attributes:
        level: Confidence level of all intervals; the tests' error rate is the rest to 1.
        margin: Differences within it are equivalent; None if none is.
        effect: The difference that numbers of seeds are planned for; None if none is.
        size: Number of comparisons with a test.
        many: How many of them were adjusted by max-t, which takes 7 pairs.
        apart: How many of them compare independent runs, and no pairs.
        fewest: Pairs of the one that has fewest; None if there is no test.
    """

    level: float
    margin: float | None
    effect: float | None
    size: int = 0
    many: int = 0
    apart: int = 0
    fewest: int | None = None

    @property
    def alpha(self) -> float:
        """Error rate of the whole family of tests."""
        return round(1 - self.level, 12)  # 1 - 0.95 is a little more than 0.05

    @property
    def joint(self) -> bool:
        """Whether all p-values are those of max-t."""
        return 0 < self.many == self.size

    @property
    def correction(self) -> str | None:
        """How p-values were adjusted, as data name it; None where nothing is tested."""
        if not self.size:
            return None
        return "max_t" if self.joint else "holm" if not self.many else "max_t and holm"


def judge(
    pairs: Mapping[int, Pairs], *, level: float, margin: float | None, effect: float | None
) -> tuple[Family, dict[int, Judgement]]:
    """Judge all comparisons of a table at once.

    The family is all comparisons that have a test. From 7 pairs on p is that of max-t with joint
    sign flips, below it is Holm's on the paired t tests, and so it is of Welch's test where runs
    are independent; how both kinds share the error rate: `rlbench.stats.mixed.adjusted_by_pairs`.
    A seed that one comparison lacks is 0 there under every flip, so that it adds nothing. What
    failures weigh in p: `rlbench.stats.crashes`. Simultaneous intervals are Bonferroni's.
    Seeds to come are planned at the level of one comparison after Bonferroni, by the upper limit of
    the standard deviation, see `rlbench.stats.pairs_needed`.

    Args:
        pairs: One entry a comparison, under any number.
        level: Confidence level in [0.5, 1).
        margin: Largest difference that counts as none; None calls nothing equivalent.
        effect: Difference for which seeds to come are planned; None plans none.

    Returns:
        The family, and a judgement for each comparison.
    """
    from rlbench.stats.mixed import MAX_T_FROM

    differences = {n: difference_of(pair, level) for n, pair in pairs.items() if pair.ours}
    tested = {number: pairs[number] for number, found in differences.items() if found.testable}
    sizes = [_size(pair) for pair in tested.values()]
    family = Family(
        level=level,
        margin=margin,
        effect=effect,
        size=len(tested),
        many=sum(size >= MAX_T_FROM for size in sizes),
        apart=sum(pair.independent for pair in tested.values()),
        fewest=min(
            (size or len(p.seeds) for size, p in zip(sizes, tested.values(), strict=True)),
            default=None,
        ),
    )
    adjusted = dict(zip(tested, _adjusted(tested.values(), sizes, level), strict=True))
    return family, {
        number: _judgement(family, pair, differences.get(number), adjusted.get(number))
        for number, pair in pairs.items()
    }


def difference_of(pairs: Pairs, level: float) -> Difference:
    """Subtract, pair by pair or one side from the other, as the runs are."""
    from rlbench.stats import paired_difference, unpaired_difference

    compare = unpaired_difference if pairs.independent else paired_difference
    return compare(pairs.ours, pairs.theirs, level)


def _size(pairs: Pairs) -> int:
    """Number of pairs that p is computed from; none where runs are independent."""
    return len(pairs.tested[0])


def _adjusted(tested: Collection[Pairs], sizes: Sequence[int], level: float) -> list[float]:
    """Adjust for the family, each comparison by the method that its number of pairs allows."""
    import numpy as np

    from rlbench.stats.mixed import adjusted_by_pairs

    if not tested:
        return []
    place = {
        seed: row for row, seed in enumerate(sorted({s for pair in tested for s in pair.seeds}))
    }
    p, d = [], np.zeros((len(place), len(tested)))
    for column, pair in enumerate(tested):
        by_seed, (ours, theirs) = pair.tested
        weighed = replace(pair, ours=ours, theirs=theirs, failed=((), ()))
        found = difference_of(weighed, level).p
        p.append(1.0 if found is None else found)
        for seed, difference in by_seed.items():
            d[place[seed], column] = difference
    return [float(value) for value in adjusted_by_pairs(p, sizes, d)]


def _judgement(
    family: Family, pairs: Pairs, difference: Difference | None, p: float | None
) -> Judgement:
    """Judge one comparison."""
    from rlbench.stats import probability_of_improvement

    if difference is None:
        verdict = NOT_TESTABLE if pairs.comparable else NOT_COMPARABLE
        return Judgement(verdict=verdict, reason=pairs.reason)
    improvement = probability_of_improvement(
        *pairs.outcomes, paired=not pairs.independent, level=family.level
    )
    if p is None:
        return Judgement(
            verdict=NOT_TESTABLE,
            reason=_untestable(pairs),
            difference=difference,
            improvement=improvement,
        )
    level = 1 - family.alpha / family.size
    simultaneous = difference_of(pairs, level).interval
    verdict = decide(family, simultaneous, p, pairs.sign)
    return Judgement(
        verdict=verdict,
        difference=difference,
        simultaneous=simultaneous,
        p=p,
        improvement=improvement,
        more=_more(family, difference, pairs) if verdict == UNDECIDED else None,
    )


def _untestable(pairs: Pairs) -> str:
    if pairs.independent:
        one = min(len(pairs.ours), len(pairs.theirs)) == 1
        return "one run on a side" if one else "neither side has a spread"
    return "one common seed" if len(pairs.seeds) == 1 else "all differences are equal"


def decide(family: Family, simultaneous: Interval, p: float, sign: int) -> str:
    """Read the verdict off an adjusted p-value and the interval for the whole family.

    Args:
        family: With its level and margin.
        simultaneous: The difference, row less baseline.
        p: Adjusted.
        sign: 1 where more is better, -1 where less is.
    """
    if p < family.alpha:
        return BETTER if sign * simultaneous.mid > 0 else WORSE
    low, high, margin = simultaneous.low, simultaneous.high, family.margin
    if margin is None or low is None or high is None:
        return UNDECIDED
    return EQUIVALENT if -margin < low and high < margin else UNDECIDED


def _more(family: Family, difference: Difference, pairs: Pairs) -> int | None:
    """Plan seeds; 0 where those there would have shown the difference of interest.

    Of independent runs as many are needed on each side as there would be pairs with the same spread
    of differences.
    """
    from rlbench.stats import pairs_needed

    if not difference.sd or family.effect is None or pairs.failures:
        return None
    alpha, n = family.alpha / family.size, min(len(pairs.ours), len(pairs.theirs))
    try:
        needed = pairs_needed(family.effect, difference.sd, POWER, alpha, pilot_n=n)
    except ValueError:  # more than a billion
        return None
    return max(needed - n, 0)
