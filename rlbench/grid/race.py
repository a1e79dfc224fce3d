"""Seeds only where the verdict is open: the rule of a race, and the plan that it is held to.

What is decided is a pure function of the plan and of scores at the seeds of its looks. So a race
that was interrupted, repeated or watched by somebody decides the same.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from rlbench.errors import UsageError
from rlbench.grid.reading import read_object
from rlbench.grid.store import write_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlbench.stats import Interval

Mode = Literal["planned", "anytime"]
Decision = Literal["better", "worse", "equivalent", "open"]

PLAN = "race.json"
SCHEMA = 1
FEWEST = 3  # pairs at the first look


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is fixed before the first result is looked at.

    Attributes:
        cells: Names of the cells, no two alike.
        pairs: Which cells are compared: the first with the second.
        seeds: The pool of seeds, in the order in which they are spent.
        looks: After how many seeds the open comparisons are judged, ascending.
        mode: ``planned`` (Pocock's levels) or ``anytime`` (e-process).
        alpha: Error rate of all comparisons and looks together.
        margin: Differences within it are equivalent; None calls nothing so.
        higher: Whether more is better.
    """

    cells: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    seeds: tuple[int, ...]
    looks: tuple[int, ...]
    mode: Mode = "planned"
    alpha: float = 0.05
    margin: float | None = None
    higher: bool = True

    @property
    def share(self) -> float:
        """Error rate of one comparison over all of its looks, after Bonferroni."""
        return self.alpha / len(self.pairs)

    @cached_property
    def nominal(self) -> float:
        """Level of one comparison at one planned look."""
        from rlbench.stats import pocock_looks

        return pocock_looks(len(self.looks), self.share)

    @property
    def most(self) -> int:
        """Runs that are spent at most."""
        return len(self.cells) * self.looks[-1]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How one comparison stands.

    Attributes:
        pair: The first cell and the second.
        decision: What is decided of the first against the second.
        n: Pairs at the last look at which it was judged; 0 before the first.
        mean: Mean difference over these, first less second.
        interval: An interval that holds at all looks together; None where there is none yet.
        evidence: The p-value of the last look, or the e-value.
    """

    pair: tuple[str, str]
    decision: Decision = "open"
    n: int = 0
    mean: float | None = None
    interval: Interval | None = None
    evidence: float | None = None


@dataclass(frozen=True, kw_only=True)
class State:
    """How a race stands.

    Attributes:
        standings: One for each pair of the plan.
        look: The number of the next look, from 1; None when the race is over.
        missing: What has to be run before it: cell to seeds.
        spent: Runs that counted for the looks so far.
    """

    standings: tuple[Standing, ...]
    look: int | None = None
    missing: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    spent: int = 0

    @property
    def open(self) -> list[Standing]:
        """Comparisons that are not decided."""
        return [one for one in self.standings if one.decision == "open"]


def make_plan(
    cells: tuple[str, ...],
    seeds: tuple[int, ...],
    *,
    baseline: str | None = None,
    looks: int = 5,
    mode: Mode = "planned",
    alpha: float = 0.05,
    margin: float | None = None,
    higher: bool = True,
) -> Plan:
    """Plan a race.

    Args:
        cells: Names of the cells.
        seeds: The pool of seeds; the last look takes all of them.
        baseline: What the others are compared with; None compares all pairs.
        looks: Number of planned looks, after about equal numbers of seeds; an e-process looks after
            every seed.
        mode: Which rule holds the error rate.
        alpha: Error rate of the whole race.
        margin: Differences within it are equivalent.
        higher: Whether more is better.

    Raises:
        UsageError: There are too few cells or seeds.
    """
    if len(cells) < 2:
        raise UsageError(f"a race needs two cells or more; there is {len(cells)}")
    if len(seeds) < FEWEST:
        raise UsageError(f"a race needs {FEWEST} seeds or more; there are {len(seeds)}")
    if baseline is None:
        pairs = tuple((a, b) for n, a in enumerate(cells) for b in cells[n + 1 :])
    else:
        pairs = tuple((cell, baseline) for cell in cells if cell != baseline)
    if mode == "anytime":
        at = tuple(range(FEWEST, len(seeds) + 1))
    else:
        most = len(seeds) // FEWEST
        if looks > most:
            raise UsageError(
                f"{looks} looks at {len(seeds)} seeds: each needs {FEWEST} new ones; give at most "
                f"{most} looks, or more seeds"
            )
        at = tuple(round(len(seeds) * (look + 1) / looks) for look in range(looks))
    return Plan(
        cells=cells,
        pairs=pairs,
        seeds=seeds,
        looks=at,
        mode=mode,
        alpha=alpha,
        margin=margin,
        higher=higher,
    )


def decide(plan: Plan, scores: Mapping[str, Mapping[int, float]]) -> State:
    """Judge as far as the scores reach.

    At each look every open comparison is judged on the first seeds of the pool, never on others
    that happen to be there. It is decided once and for all: better or worse where its p-value (the
    paired t test) is below the nominal level of the plan, or its e-value reaches the inverse of its
    share of alpha; equivalent where its interval lies within the margin. Both hold the error rate
    over all looks and, by Bonferroni, over all comparisons.

    Args:
        plan: The plan.
        scores: Cell to seed to score, of runs that ended; failed ones at the task's floor.

    Returns:
        How it stands, and what has to be run before the next look.
    """
    standings = {pair: Standing(pair=pair) for pair in plan.pairs}
    used: dict[str, int] = {}
    for number, n in enumerate(plan.looks, 1):
        undecided = [pair for pair, one in standings.items() if one.decision == "open"]
        if not undecided:
            break
        racing = dict.fromkeys(cell for pair in undecided for cell in pair)
        pool = plan.seeds[:n]
        missing = {
            cell: absent
            for cell in racing
            if (absent := tuple(seed for seed in pool if seed not in scores.get(cell, {})))
        }
        if missing:
            return State(
                standings=tuple(standings.values()),
                look=number,
                missing=missing,
                spent=sum(used.values()),
            )
        used |= dict.fromkeys(racing, n)
        for one, other in undecided:
            differences = [scores[one][seed] - scores[other][seed] for seed in pool]
            standings[one, other] = _judge(plan, (one, other), differences)
    return State(standings=tuple(standings.values()), spent=sum(used.values()))


def _judge(plan: Plan, pair: tuple[str, str], d: list[float]) -> Standing:
    from rlbench.stats import confidence_sequence, e_process, paired_difference

    mean = sum(d) / len(d)
    if plan.mode == "anytime":
        evidence: float | None = e_process(d)
        told = evidence is not None and evidence >= 1 / plan.share
        interval = confidence_sequence(d, plan.share)
    else:
        found = paired_difference(d, [0.0] * len(d), 1 - plan.nominal)
        evidence, interval = found.p, found.interval
        told = evidence is not None and evidence < plan.nominal
    decision: Decision = "open"
    if told:
        decision = "better" if (mean > 0) == plan.higher else "worse"
    elif plan.margin is not None and interval.low is not None and interval.high is not None:
        inside = -plan.margin < interval.low and interval.high < plan.margin
        decision = "equivalent" if inside and not interval.degenerate else "open"
    return Standing(
        pair=pair, decision=decision, n=len(d), mean=mean, interval=interval, evidence=evidence
    )


def plan_of(root: Path) -> dict[str, Any] | None:
    """Read the plan that a folder's race was started with; None if there was no race.

    Raises:
        UsageError: It can't be read.
    """
    content, problem = read_object(root / PLAN)
    if problem:
        raise UsageError(f"{problem}; a race in {root} can't go on without its plan")
    return content


def hold(root: Path, plan: Plan, runs: Mapping[str, str]) -> bool:
    """Write the plan of a new race, or check that the race of a folder has this one.

    Args:
        root: Folder of results.
        plan: The plan.
        runs: Cell to the name of its run at the first seed, which tells cells of one name apart.

    Returns:
        Whether the race is new.

    Raises:
        UsageError: The folder has a race with another plan: with two plans, no error rate holds.
    """
    wanted = {"schema": SCHEMA, "runs": dict(runs), **_plain(plan)}
    there = plan_of(root)
    if there is None:
        root.mkdir(parents=True, exist_ok=True)
        write_json(root / PLAN, wanted)
        return True
    differ = [name for name in wanted if there.get(name) != wanted[name]]
    if differ:
        named = "; ".join(
            f"{name} was {_short(there.get(name))}, is {_short(wanted[name])}" for name in differ
        )
        raise UsageError(
            f"{root} has a race with another plan ({named}); its error rate holds for one plan "
            "only: name another folder with -o"
        )
    return False


def _plain(plan: Plan) -> dict[str, Any]:
    """The plan as JSON has it."""
    content = asdict(plan)
    content["pairs"] = [list(pair) for pair in plan.pairs]
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in content.items()
    }


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
