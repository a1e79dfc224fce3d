"""Records of runs, grouped into cells: everything but the seed is the same in a cell."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from rlbench.grid.reading import describes_a_run
from rlbench.report.cells.floors import Floors
from rlbench.report.cells.metric import SCORE, Metric
from rlbench.report.text.spelling import spelled

if TYPE_CHECKING:
    from rlbench.grid.store import Record
    from rlbench.stats import Interval

KINDS_OF_RUNS = ("estimator", "loss", "kl", "task", "reward", "model")
KINDS = ("algorithm", *KINDS_OF_RUNS)  # what was measured elsewhere has an algorithm as a whole
NOT_RUN = "not run"

# what beside kinds, settings and the seed makes two runs incomparable
VERSIONS = ("torch", "training", "schema")


@dataclass(frozen=True)
class Seed:
    """One seed of a cell, with what it counts as.

    Attributes:
        number: The seed.
        record: Its run.
        status: ``ok``, ``failed``, ``diverged``, ``timeout``, or ``not run``.
        score: The metric at the end, such as the score; the task's floor where the run failed, or
            the worst score of its task that a run ended well with, if that is worse; None where it
            did not run, or where a failed run has no known floor.
    """

    number: int
    record: Record
    status: str
    score: float | None

    @property
    def ok(self) -> bool:
        """Whether the run ended with a score."""
        return self.status == "ok"

    def value(self, name: str) -> float | None:
        """One number of a run that ended well; None if it has none of that name."""
        number = (self.record.result or {}).get(name) if self.ok else None
        return float(number) if isinstance(number, (int, float)) else None

    def error(self) -> str:
        """First line of what went wrong; empty if nothing did."""
        return error_line(self.record)


@dataclass(frozen=True)
class Cell:
    """All seeds of one combination of components, settings and versions.

    Attributes:
        columns: Everything that two cells may differ in, as text: the kinds (``"gae:lam=0.9"``),
            the settings in one spelling, versions and source hashes.
        seeds: In the order of their numbers, each number once.
        repeats: Runs of a seed that is among these already; they count nowhere.
        metric: What `Seed.score` and `score` are.
    """

    columns: Mapping[str, str]
    seeds: tuple[Seed, ...]
    repeats: tuple[Seed, ...] = ()
    metric: Metric = SCORE

    @cached_property
    def tried(self) -> list[Seed]:
        """Seeds that ran to an end, good or bad: the denominator."""
        return [seed for seed in self.seeds if seed.status != NOT_RUN]

    @cached_property
    def ok(self) -> list[Seed]:
        """Seeds that ended well."""
        return [seed for seed in self.seeds if seed.ok]

    @cached_property
    def failed(self) -> list[Seed]:
        """Seeds that were tried and did not end well."""
        return [seed for seed in self.tried if not seed.ok]

    @cached_property
    def score(self) -> Interval | None:
        """Mean over the tried seeds, failures at the task's floor.

        None if no seed was tried, or if a failed one has no known floor.
        """
        return _interval([seed.score for seed in self.tried])

    @cached_property
    def score_of_ok(self) -> Interval | None:
        """Mean over the seeds that ended well; to be shown beside `score`, never alone."""
        return _interval([seed.score for seed in self.ok])

    def mean(self, name: str) -> float | None:
        """Mean of a number over the seeds that ended well and have it; None if none has."""
        values = [value for seed in self.ok if (value := seed.value(name)) is not None]
        if not values:
            return None
        mean = sum(values) / len(values)
        # the sum of numbers near the largest float is none
        return mean if math.isfinite(mean) else sum(value / len(values) for value in values)


def cells(records: Iterable[Record], metric: Metric = SCORE) -> list[Cell]:
    """Group records by everything but the seed.

    Runs of different versions of rlbench, of a plugin or of torch make different cells: they are
    never averaged together. Records without a specification are left out.

    Args:
        records: In any order; a run that is given twice counts once.
        metric: What cells are to be compared by. Results that were made elsewhere can say that
            less of their score is better. Only a score has a floor.

    Returns:
        Cells in the order in which they first occur.
    """
    readable = {record.run_id: record for record in records if describes_a_run(record.spec)}
    floors = Floors.of(readable.values())
    groups: dict[Hashable, list[Record]] = {}
    keys: dict[Hashable, str] = {}
    for record in readable.values():
        spec = record.spec or {}
        shared = _shared(spec)
        if shared not in keys:
            keys[shared] = key_of(spec)
        groups.setdefault(keys[shared], []).append(record)
    made = []
    for group in groups.values():
        spec = group[0].spec or {}
        of_cell, has_floor = _directed(metric, spec)
        known = floors if has_floor else None
        once, again = _once([_seed(record, known, of_cell.key) for record in group])
        made.append(Cell(columns=_columns(spec), seeds=once, repeats=again, metric=of_cell))
    return made


def _once(seeds: Iterable[Seed]) -> tuple[tuple[Seed, ...], tuple[Seed, ...]]:
    """Keep one run of each seed, one that ended well if there is one; and give the rest."""

    def key(seed: Seed) -> tuple[int, bool, bool, str]:
        return seed.number, not seed.ok, seed.status == NOT_RUN, seed.record.run_id

    ordered = sorted(seeds, key=key)
    once: list[Seed] = []
    again: list[Seed] = []
    for seed in ordered:
        (again if once and once[-1].number == seed.number else once).append(seed)
    return tuple(once), tuple(again)


def labels_of(shown: Sequence[Cell]) -> list[str]:
    """Name the columns that tell cells apart; estimator, loss and KL controller if none does."""
    usual = [name for name in KINDS[:4] if any(name in cell.columns for cell in shown)]
    return differing(shown) or usual


def differing(shown: Sequence[Cell]) -> list[str]:
    """Name the columns in which cells differ, versions only where the rest does not tell.

    A version or source of a component is listed only if it differs between cells that show the
    same component: two losses have two sources anyway.
    """
    names = list(dict.fromkeys(name for cell in shown for name in cell.columns))
    visible = [name for name in names if "." not in name and name not in VERSIONS]
    labels = [name for name in visible if len({c.columns.get(name) for c in shown}) > 1]
    for name in names:
        kind, dot, _ = name.partition(".")
        if name in VERSIONS:
            if len({cell.columns.get(name) for cell in shown}) > 1:
                labels.append(name)
        elif dot:
            seen: dict[str | None, set[str | None]] = {}
            for cell in shown:
                seen.setdefault(cell.columns.get(kind), set()).add(cell.columns.get(name))
            if any(len(values) > 1 for values in seen.values()):
                labels.append(name)
    return labels


def error_line(record: Record) -> str:
    """First line of a run's error, with its type; empty if it has none."""
    error = (record.result or {}).get("error")
    if not isinstance(error, Mapping):
        return record.problem or ""
    lines = str(error.get("message") or "").strip().splitlines()
    kind, message = str(error.get("type") or ""), lines[0] if lines else ""
    return ": ".join(part for part in (kind, message) if part)


def _shared(spec: Mapping[str, Any]) -> Hashable:
    """Tell specifications apart that share no objects; most seeds of a cell do, see `reading`."""
    return tuple(
        (name, id(value) if isinstance(value, (Mapping, list)) else (type(value), value))
        for name, value in spec.items()
        if name not in ("run_id", "seed")
    )


def key_of(spec: Mapping[str, Any]) -> str:
    """Everything of a specification but the seed, in one spelling."""
    rest = {name: value for name, value in spec.items() if name not in ("run_id", "seed")}
    return _respell(json.dumps(rest, sort_keys=True))


@lru_cache(maxsize=1024)  # all seeds of a cell have the same text
def _respell(text: str) -> str:
    rest = json.loads(text)
    for component in rest["components"].values():
        component["options"] = spelled(component.get("options"))
    rest["settings"] = spelled(rest["settings"])
    return json.dumps(rest, sort_keys=True)


def _columns(spec: Mapping[str, Any]) -> dict[str, str]:
    """Flatten a specification into named texts; ``kind.version`` and ``kind.source`` come last."""
    components = spec.get("components", {})
    columns = {kind: str(components[kind]["label"]) for kind in KINDS if kind in components}
    for name, value in spec.get("settings", {}).items():
        columns[name] = spelled(value)
    for kind in KINDS:
        component = components.get(kind, {})
        owner = component.get("owner") or {}
        parts = (owner.get("distribution") or owner.get("plugin"), owner.get("version"))
        columns[f"{kind}.version"] = " ".join(str(part) for part in parts if part)
        columns[f"{kind}.source"] = str(component.get("source", ""))[:7]
        if component.get("contents"):
            columns[f"{kind}.contents"] = _digest_of(component["contents"])
    for name in VERSIONS:
        columns[name] = str(spec.get(name, ""))[: 7 if name == "training" else None]
    return columns


def _digest_of(contents: object) -> str:
    """Name what is in the files that options of a component name."""
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:7]


def _directed(metric: Metric, spec: Mapping[str, Any]) -> tuple[Metric, bool]:
    """Turn the score round where the specification says that less is better, unless asked not to.

    Returns:
        The metric, and whether it has a floor: only the score has one, and what a task gives for
        nothing would be the best there is where somebody turns the direction round.
    """
    if metric.key != SCORE.key:
        return metric, False
    higher = spec.get("direction") != "lower"
    if metric.asked:
        return metric, metric.higher == higher
    return replace(metric, higher=higher), True


def _seed(record: Record, floors: Floors | None, key: str) -> Seed:
    """Decide what a run counts as; without floors, the worth of a failure is not known."""
    spec, result = record.spec or {}, record.result or {}
    score: float | None = None
    status = record.status if record.complete else NOT_RUN
    if status == "ok":
        score = result.get(key)
        status = "ok" if isinstance(result.get("score"), (int, float)) else "failed"
    if status not in ("ok", NOT_RUN):
        score = None if floors is None else floors.worth(record)
    return Seed(number=int(spec.get("seed", 0)), record=record, status=status, score=score)


def _interval(scores: Sequence[float | None]) -> Interval | None:
    """Interval of the mean; None if there is nothing to average or something is unknown."""
    known = [score for score in scores if score is not None]
    if not known or len(known) < len(scores):
        return None
    from rlbench.stats import mean_interval

    return mean_interval(known)
