"""Whether new results are worse than old ones, cell by cell: the numbers of ``rlbench gate``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected, UsageError
from rlbench.report.baseline import spell_cell
from rlbench.report.cells import VERSIONS, labels_of
from rlbench.report.comparison import MAX_T_FROM

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlbench.report.cells import Cell
    from rlbench.stats import Difference

WORSE, NOT_WORSE, SAME, OPEN = "worse", "ok", "same", "open"
NOT_TESTABLE, ABSENT = "n/a", "absent"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One cell, old and new.

    Attributes:
        name: What is the same in both, as `spell_cell` has it.
        old: The cell in the old folder.
        new: The cell in the new one; None if it is not there.
        seeds: Seeds that both have tried.
        difference: New less old over these seeds, in the unit of the metric; None where one of the
            scores is not known.
        p: Two-sided p-value, adjusted for all cells, that the loss is just the margin.
        low: Lower end of the simultaneous interval of the gain (upwards is better); None likewise.
        mark: ``worse``; ``ok``, not shown to be worse; ``same``, the same numbers; ``open``, not
            proved to be no worse, where a proof was asked for; ``n/a``, no test; ``absent``.
        reason: Why there is no test; empty where there is one.
    """

    name: str
    old: Cell
    new: Cell | None
    seeds: tuple[int, ...] = ()
    difference: Difference | None = None
    p: float | None = None
    low: float | None = None
    mark: str = NOT_TESTABLE
    reason: str = ""

    @property
    def passes(self) -> bool:
        """Whether this cell lets the gate open."""
        return self.mark in (NOT_WORSE, SAME, NOT_TESTABLE)


@dataclass(frozen=True, kw_only=True)
class Gate:
    """All cells of the old folder.

    Attributes:
        verdicts: One for each, by name.
        margin: Losses up to it are tolerated, in the unit of the metric.
        alpha: Error rate of all tests together.
        proof: Whether cells have to be shown to be no worse.
        joint: Whether p-values are those of max-t, and not Holm's.
        added: Cells that only the new folder has.
    """

    verdicts: tuple[Verdict, ...]
    margin: float
    alpha: float
    proof: bool
    joint: bool
    added: tuple[str, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether nothing is worse, or missing, or open where a proof was asked for."""
        return all(verdict.passes for verdict in self.verdicts)

    @property
    def metric(self) -> str:
        """What is compared."""
        return self.verdicts[0].old.metric.name


def gate(
    old: Sequence[Cell],
    new: Sequence[Cell],
    *,
    margin: float = 0.0,
    level: float = 0.95,
    proof: bool = False,
) -> Gate:
    """Judge whether new results are worse than old ones.

    A cell of the old folder is compared with the one of the new folder that has the same components
    and settings, whatever versions and sources made it. Seeds are paired by number; a failed one
    scores the task's floor. The null hypothesis is that the mean loss is the margin; p-values are
    adjusted over all cells by Holm on paired t tests, or by max-t with joint sign flips where every
    cell has 7 pairs or more. A cell is worse if its p-value is below alpha and its mean loss above
    the margin; so is one that loses more than the margin by the same amount at every seed.

    Args:
        old: Cells of the old folder.
        new: Cells of the new one, with the same metric.
        margin: Mean loss that is tolerated, in the unit of the metric.
        level: Confidence level; all tests together err at a rate of the rest to 1.
        proof: Also stop at cells whose simultaneous (Bonferroni) interval does not exclude a loss
            above the margin.

    Raises:
        NothingSelected: The old folder has no cell, or none can be tested.
        UsageError: A folder has one cell made by two versions of something.
    """
    if not old:
        raise NothingSelected("there is nothing in the old results to compare with")
    olds, news = _by_key(old, "old"), _by_key(new, "new")
    alpha = round(1 - level, 12)
    # named by what differs among cells of one folder, not between the folders
    labels = [name for name in labels_of(list(olds.values())) if _tells(name)]
    pairs = [
        _paired(spell_cell(cell, labels) or "all", cell, news.get(key), level, margin)
        for key, cell in olds.items()
    ]
    if all(one.new is None for one in pairs):
        raise NothingSelected("no cell of the old results is in the new ones")
    tested = [number for number, one in enumerate(pairs) if one.p is not None]
    if not any(one.mark in (SAME, WORSE) for one in pairs) and not tested:
        reasons = sorted({one.reason for one in pairs if one.reason})
        raise NothingSelected(f"nothing can be judged: {'; '.join(reasons)}")
    joint = bool(tested) and min(len(pairs[n].seeds) for n in tested) >= MAX_T_FROM
    for number, p in zip(tested, _adjusted([pairs[n] for n in tested], margin, joint), strict=True):
        pairs[number] = _judged(pairs[number], p, alpha, margin, len(tested), proof=proof)
    added = [spell_cell(cell, labels) for key, cell in news.items() if key not in olds]
    verdicts = sorted(pairs, key=lambda one: one.name)
    return Gate(
        verdicts=tuple(verdicts),
        margin=margin,
        alpha=alpha,
        proof=proof,
        joint=joint,
        added=tuple(sorted(added)),
    )


def _tells(name: str) -> bool:
    """Whether a column says what was run, and not who made it."""
    return "." not in name and name not in VERSIONS


def _by_key(cells: Iterable[Cell], which: str) -> dict[tuple[tuple[str, str], ...], Cell]:
    found: dict[tuple[tuple[str, str], ...], Cell] = {}
    for cell in cells:
        key = tuple(sorted((k, v) for k, v in cell.columns.items() if _tells(k)))
        if key in found:
            name = spell_cell(cell, labels_of([cell]))
            raise UsageError(
                f"the {which} results have {name} twice, made by different versions or sources; "
                "select one, or remove old runs with rlbench rm --outdated"
            )
        found[key] = cell
    return found


def _paired(name: str, old: Cell, new: Cell | None, level: float, margin: float) -> Verdict:
    """Subtract at common seeds; what can be said without a test is said here."""
    from rlbench.stats import paired_difference

    if new is None:
        return Verdict(name=name, old=old, new=None, mark=ABSENT, reason="not in the new results")
    verdict = Verdict(name=name, old=old, new=new)
    scores = _scores(old, new)
    if not scores:
        return replace(verdict, reason="no common seed")
    verdict = replace(verdict, seeds=tuple(scores))
    known = [
        (one, other) for one, other in scores.values() if one is not None and other is not None
    ]
    if len(known) < len(scores):
        return replace(verdict, reason=f"a failed seed has no {old.metric.name}")
    difference = paired_difference([b for _, b in known], [a for a, _ in known], level)
    verdict = replace(verdict, difference=difference)
    if all(one == other for one, other in known):
        return replace(verdict, mark=SAME)
    if difference.testable:
        return replace(verdict, p=1.0)  # until it is adjusted
    if len(known) == 1:
        return replace(verdict, reason="one common seed")
    loses = -old.metric.sign * difference.interval.mid > margin
    return replace(verdict, mark=WORSE if loses else NOT_WORSE, reason="all differences are equal")


def _scores(old: Cell, new: Cell) -> dict[int, tuple[float | None, float | None]]:
    theirs = {seed.number: seed.score for seed in old.tried}
    ours = {seed.number: seed.score for seed in new.tried}
    return {seed: (theirs[seed], ours[seed]) for seed in sorted(theirs.keys() & ours.keys())}


def _gains(verdict: Verdict) -> dict[int, float]:
    """New less old at each seed, upwards is better."""
    if verdict.new is None:
        return {}
    sign = verdict.old.metric.sign
    return {
        seed: sign * (new - old)
        for seed, (old, new) in _scores(verdict.old, verdict.new).items()
        if old is not None and new is not None
    }


def _adjusted(tested: Sequence[Verdict], margin: float, joint: bool) -> list[float]:  # noqa: FBT001 - private
    """Give the p-values that the loss is the margin, adjusted for the family."""
    from rlbench.stats import holm, max_t, paired_difference

    if not tested:
        return []
    shifted: list[Mapping[int, float]] = [
        {seed: gain + margin for seed, gain in _gains(one).items()} for one in tested
    ]
    if joint:
        seeds = sorted({seed for gains in shifted for seed in gains})
        rows = [[gains.get(seed, 0.0) for gains in shifted] for seed in seeds]
        return [float(p) for p in max_t(rows)]
    plain = [
        paired_difference(list(gains.values()), [0.0] * len(gains)).p or 0.0 for gains in shifted
    ]
    return [float(p) for p in holm(plain)]


def _judged(
    verdict: Verdict, p: float, alpha: float, margin: float, family: int, *, proof: bool
) -> Verdict:
    from rlbench.stats import paired_difference

    gains = list(_gains(verdict).values())
    interval = paired_difference(gains, [0.0] * len(gains), 1 - alpha / family).interval
    mark = NOT_WORSE
    if p < alpha and interval.mid < -margin:
        mark = WORSE
    elif proof and (interval.low is None or interval.low < -margin):
        mark = OPEN
    return replace(verdict, p=p, low=interval.low, mark=mark)
