"""Whether new results are worse than old ones, cell by cell: the numbers of ``rlbench gate``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected, UsageError
from rlbench.report.cells.baseline import spell_cell
from rlbench.report.cells.cell import VERSIONS, labels_of
from rlbench.report.cells.pairing import pair
from rlbench.report.compare import family

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from rlbench.report.cells.cell import Cell
    from rlbench.report.cells.pairing import Pairs
    from rlbench.report.compare.family import Family, Judgement
    from rlbench.stats import Difference, Interval

WORSE, NOT_WORSE, SAME, OPEN = "worse", "ok", "same", "unproved"
NOT_TESTABLE, ABSENT, FAILS = "n/a", "absent", "fails"
_GONE = "not in the new results"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One cell, old and new.

    Attributes:
        name: What is the same in both, as `spell_cell` has it.
        old: The cell in the old folder.
        new: The cell in the new one; None if it is not there.
        seeds: Seeds that both have tried; of independent runs those of the new one.
        means: Of old and new over these seeds, failures at the floor; None where one of the scores
            is not known.
        independent: Whether the seeds were counted on import, so that nothing is paired.
        difference: New less old over these seeds, in the unit of the metric; None where one of the
            scores is not known.
        p: Two-sided p-value, adjusted for all cells, that the loss is just the margin.
        simultaneous: Interval, for all cells at once, of the gain beyond what is tolerated: the
            difference with the margin added where more is better, taken off where less is.
        mark: ``worse``; ``ok``, not shown to be worse; ``same``, the same numbers; ``unproved``,
            not proved to be no worse, where a proof was asked for; ``fails``, seeds fail that ended
            well before, and nothing says what that is worth; ``n/a``, no test; ``absent``.
        reason: Why there is no test; empty where there is one.
    """

    name: str
    old: Cell
    new: Cell | None
    seeds: tuple[int, ...] = ()
    means: tuple[float, float] | None = None
    independent: bool = False
    difference: Difference | None = None
    p: float | None = None
    simultaneous: Interval | None = None
    mark: str = NOT_TESTABLE
    reason: str = ""

    @property
    def passes(self) -> bool:
        """Whether this cell lets the gate open."""
        return self.mark in (NOT_WORSE, SAME)


@dataclass(frozen=True, kw_only=True)
class Gate:
    """All cells of the old folder.

    Attributes:
        verdicts: One for each, by name.
        margin: Losses up to it are tolerated, in the unit of the metric.
        family: How the cells were tested together.
        proof: Whether cells have to be shown to be no worse.
        added: Cells that only the new folder has.
    """

    verdicts: tuple[Verdict, ...]
    margin: float
    family: Family
    proof: bool
    added: tuple[str, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether every cell was judged, and none is worse, or open where a proof is needed."""
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
    # named by what differs among cells of one folder, not between the folders
    labels = [name for name in labels_of(list(olds.values())) if _tells(name)]
    named = sorted((spell_cell(cell, labels) or "all", key) for key, cell in olds.items())
    both = {n: pair(news[key], olds[key]) for n, (_, key) in enumerate(named) if key in news}
    if not both:
        near = _nearest(olds.values(), news.values())
        raise NothingSelected(f"no cell of the old results is in the new ones; {near}")
    beyond = {n: _beyond(pairs, margin) for n, pairs in both.items()}
    tests, judged = family.judge(beyond, level=level, margin=None, effect=None)
    verdicts = []
    for n, (name, key) in enumerate(named):
        found = Verdict(name=name, old=olds[key], new=news.get(key), mark=ABSENT, reason=_GONE)
        if n in both:
            found = _verdict(found, both[n], judged[n], level, proof=proof)
        verdicts.append(found)
    _check_judged(verdicts)
    every = [name for name in labels_of([*olds.values(), *news.values()]) if _tells(name)]
    added = sorted(spell_cell(cell, every) for key, cell in news.items() if key not in olds)
    return Gate(
        verdicts=tuple(verdicts), margin=margin, family=tests, proof=proof, added=tuple(added)
    )


def _nearest(olds: Collection[Cell], news: Collection[Cell]) -> str:
    """Say which two cells differ in least, and in what."""
    if not news:
        return "these have none"

    def apart(old: Cell, new: Cell) -> list[str]:
        names = dict.fromkeys([*old.columns, *new.columns])
        return [n for n in names if _tells(n) and old.columns.get(n) != new.columns.get(n)]

    old, new = min(
        ((old, new) for old in olds for new in news),
        key=lambda pair: (len(apart(*pair)), str(pair[0].columns), str(pair[1].columns)),
    )
    what = ", ".join(
        f"{name}: {old.columns.get(name) or 'none'}, now {new.columns.get(name) or 'none'}"
        for name in apart(old, new)
    )
    return f"the nearest are {spell_cell(old, labels_of([old]))} and one that differs in {what}"


def _beyond(pairs: Pairs, margin: float) -> Pairs:
    """Forgive the margin at every seed, so that what is tested is the loss beyond it."""
    return replace(pairs, ours=tuple(score + pairs.sign * margin for score in pairs.ours))


def _verdict(
    found: Verdict, pairs: Pairs, judged: Judgement, level: float, *, proof: bool
) -> Verdict:
    """Say what a judgement of the loss beyond the margin means for the gate."""
    from rlbench.stats import mean_interval

    unknown = OPEN if proof else NOT_TESTABLE
    found = replace(found, seeds=pairs.seeds, reason=judged.reason, mark=unknown)
    if not pairs.ours:
        return replace(found, mark=FAILS) if _fails_now(found) else found
    found = replace(
        found,
        means=(mean_interval(pairs.theirs).mid, mean_interval(pairs.ours).mid),
        independent=pairs.independent,
        difference=family.difference_of(pairs, level),
    )
    if pairs.ours == pairs.theirs:
        return replace(found, mark=SAME, reason="")
    if judged.p is None:
        if len(pairs.seeds) == 1 or judged.difference is None:
            return found
        lost = judged.difference.interval.mid * pairs.sign < 0  # the same at every seed
        return replace(found, mark=WORSE if lost else NOT_WORSE)
    mark = WORSE if judged.verdict == family.WORSE else NOT_WORSE
    if proof and mark == NOT_WORSE and not _is_proved(judged, pairs.sign):
        mark = OPEN
    return replace(found, p=judged.p, simultaneous=judged.simultaneous, mark=mark)


def _fails_now(found: Verdict) -> bool:
    """Whether a seed failed that ended well before."""
    well = {seed.number for seed in found.old.ok}
    return found.new is not None and any(seed.number in well for seed in found.new.failed)


def _is_proved(judged: Judgement, sign: int) -> bool:
    """Whether the whole simultaneous interval lies on the good side of the margin."""
    interval = judged.simultaneous
    if interval is None or interval.low is None or interval.high is None:
        return False
    return min(sign * interval.low, sign * interval.high) > 0


def _check_judged(verdicts: Sequence[Verdict]) -> None:
    """Raise NothingSelected where nothing at all could be judged: that is no pass."""
    present = [one for one in verdicts if one.new is not None]
    if all(one.p is None and one.mark in (NOT_TESTABLE, OPEN) for one in present):
        reasons = "; ".join(sorted({one.reason for one in present}))
        raise NothingSelected(f"nothing can be judged: {reasons}")


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
