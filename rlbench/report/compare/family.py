"""A family of comparisons, judged together: adjusted p-values and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.report.cells.pairing import Pairs
    from rlbench.stats import Difference, Interval

BASELINE, BETTER, WORSE, EQUIVALENT = "baseline", "+", "-", "="
UNDECIDED, NOT_TESTABLE, NOT_COMPARABLE = "?", "n/a", "x"

MAX_T_FROM = 7  # pairs; below, flipping signs leaves no room for a correction
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
        more: About how many more seeds would decide, where it is undecided; None elsewhere, where
            no difference of interest is known, and where no number of seeds in reach would.
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
        fewest: Pairs of the one that has fewest; None if there is no test.
    """

    level: float
    margin: float | None
    effect: float | None
    size: int = 0
    fewest: int | None = None

    @property
    def alpha(self) -> float:
        """Error rate of the whole family of tests."""
        return round(1 - self.level, 12)  # 1 - 0.95 is a little more than 0.05

    @property
    def joint(self) -> bool:
        """Whether the p-values are those of max-t, and not Holm's."""
        return self.fewest is not None and self.fewest >= MAX_T_FROM


def judge(
    pairs: Mapping[int, Pairs], *, level: float, margin: float | None, effect: float | None
) -> tuple[Family, dict[int, Judgement]]:
    """Judge all comparisons of a table at once.

    The family is all comparisons that have a test. Its p-values are Holm's on the paired t tests
    while any comparison has 6 pairs or fewer, and those of max-t with joint sign flips from 7 on:
    the smallest number of pairs rules. A seed that one comparison lacks is 0 there under every
    flip, so that it adds nothing. Simultaneous intervals are Bonferroni's. Seeds to come are
    planned at the level of one comparison after Bonferroni, by the upper limit of the standard
    deviation, see `rlbench.stats.pairs_needed`.

    Args:
        pairs: One entry a comparison, under any number.
        level: Confidence level in [0.5, 1).
        margin: Largest difference that counts as none; None calls nothing equivalent.
        effect: Difference for which seeds to come are planned; None plans none.

    Returns:
        The family, and a judgement for each comparison.
    """
    from rlbench.stats import paired_difference

    differences = {
        number: paired_difference(pair.ours, pair.theirs, level)
        for number, pair in pairs.items()
        if pair.ours
    }
    tested = {number: pairs[number] for number, found in differences.items() if found.testable}
    family = Family(
        level=level,
        margin=margin,
        effect=effect,
        size=len(tested),
        fewest=min((len(pair.seeds) for pair in tested.values()), default=None),
    )
    adjusted = _adjusted(family, tested, [differences[number].p or 0.0 for number in tested])
    return family, {
        number: _judgement(family, pair, differences.get(number), adjusted.get(number))
        for number, pair in pairs.items()
    }


def _adjusted(family: Family, tested: Mapping[int, Pairs], p: Sequence[float]) -> dict[int, float]:
    """Adjust for the family, by the method that the smallest number of pairs allows."""
    from rlbench.stats import holm, max_t

    if not tested:
        return {}
    if not family.joint:
        return dict(zip(tested, map(float, holm(p)), strict=True))
    seeds = sorted({seed for pair in tested.values() for seed in pair.seeds})
    found = []
    for pair in tested.values():
        both = zip(pair.ours, pair.theirs, strict=True)
        at = dict(zip(pair.seeds, (one - other for one, other in both), strict=True))
        found.append([at.get(seed, 0.0) for seed in seeds])
    return dict(zip(tested, map(float, max_t(list(zip(*found, strict=True)))), strict=True))


def _judgement(
    family: Family, pairs: Pairs, difference: Difference | None, p: float | None
) -> Judgement:
    """Judge one comparison."""
    from rlbench.stats import paired_difference, probability_of_improvement

    if difference is None:
        verdict = NOT_TESTABLE if pairs.comparable else NOT_COMPARABLE
        return Judgement(verdict=verdict, reason=pairs.reason)
    improvement = probability_of_improvement(
        pairs.outcomes, [0] * len(pairs.outcomes), paired=True, level=family.level
    )
    if p is None:
        one = len(pairs.seeds) == 1
        return Judgement(
            verdict=NOT_TESTABLE,
            reason="one common seed" if one else "all differences are equal",
            difference=difference,
            improvement=improvement,
        )
    level = 1 - family.alpha / family.size
    simultaneous = paired_difference(pairs.ours, pairs.theirs, level).interval
    verdict = _verdict(family, simultaneous, p, pairs.sign)
    return Judgement(
        verdict=verdict,
        difference=difference,
        simultaneous=simultaneous,
        p=p,
        improvement=improvement,
        more=_more(family, difference, len(pairs.seeds)) if verdict == UNDECIDED else None,
    )


def _verdict(family: Family, simultaneous: Interval, p: float, sign: int) -> str:
    if p < family.alpha:
        return BETTER if sign * simultaneous.mid > 0 else WORSE
    low, high, margin = simultaneous.low, simultaneous.high, family.margin
    if margin is None or low is None or high is None:
        return UNDECIDED
    return EQUIVALENT if -margin < low and high < margin else UNDECIDED


def _more(family: Family, difference: Difference, n: int) -> int | None:
    """Plan seeds; 0 where those there would have shown the difference of interest."""
    from rlbench.stats import pairs_needed

    if not difference.sd or family.effect is None:
        return None
    alpha = family.alpha / family.size
    try:
        needed = pairs_needed(family.effect, difference.sd, POWER, alpha, pilot_n=n)
    except ValueError:  # more than a billion
        return None
    return max(needed - n, 0)
