"""The plans of races on disk, ``<out>/race.json``: written before the first run, then kept.

A plan holds its error rate only if it stood before anybody looked. So it is on disk before a run
starts, and another one for the same comparisons at the same seeds is refused. What was decided is
not in the file: that follows from the results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from rlbench.errors import UsageError
from rlbench.grid.race import PLAN, Pair, RacePlan, key_of
from rlbench.grid.reading import read_object
from rlbench.grid.store import OWNER_S, SCHEMA, Store, write_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

LOCK = "race.lock"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One race of a folder.

    Attributes:
        plan: Its plan.
        seen: Number of its runs that were complete before the plan: whoever has seen them may have
            planned by them.
    """

    plan: RacePlan
    seen: int


def races_of(root: Path) -> tuple[Entry, ...]:
    """Read the plans of all races of a folder of results; none where nobody raced.

    Where cells of a pair are compared at these seeds by any other rule, its error rate does not
    hold: how many seeds there are depends on what they showed. `rlbench.grid.race.key_of` gives the
    key of a cell.

    Raises:
        UsageError: The file is there and can't be read.
    """
    path = root / PLAN
    content, problem = read_object(path)
    if content is None and problem is None:
        return ()
    try:
        return _entries(content, problem)
    except (KeyError, TypeError, ValueError, UsageError) as error:
        raise UsageError(
            f"{path}: no plans of races can be read there ({error}); without them nobody knows "
            "which looks were planned: put the file back, or move it away and race over new seeds"
        ) from error


def spent_by_race(root: Path, specs: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the number of seeds of some cells was decided by what a race saw of them.

    Args:
        root: The folder of results.
        specs: Specifications of runs that are compared, as in ``spec.json``.

    Returns:
        True where both cells of a pair of a race are among them, at seeds of that race, and where
        the plans of races can't be read.
    """
    try:
        entries = races_of(root)
    except UsageError:
        return True
    if not entries:
        return False
    there = {(key_of(spec), spec["seed"]) for spec in specs}
    return any(
        (pair.cell, seed) in there and (pair.other, seed) in there
        for entry in entries
        for pair in entry.plan.pairs
        for seed in entry.plan.seeds
    )


def enter(root: Path, plan: RacePlan, complete: Mapping[int, int], *, dry: bool = False) -> int:
    """Write a plan down, or find it there.

    A race that looks after every seed may be given more seeds, behind those that it has.

    Args:
        root: The folder of results.
        plan: What is planned.
        complete: For each seed, how many of its cells have a complete run.
        dry: Only check; write nothing.

    Returns:
        How many of its runs were complete before it was planned.

    Raises:
        UsageError: Another plan for some of its comparisons at some of its seeds is there, or the
            file can't be read or written.
    """
    if dry:
        return _with(races_of(root), plan, complete)[1]
    Store(root).check_writable()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / LOCK, timeout=OWNER_S):
            entries, seen = _with(races_of(root), plan, complete)
            races = [_plain(entry) for entry in entries]
            write_json(root / PLAN, {"schema": SCHEMA, "races": races})
    except Timeout as error:
        raise UsageError(f"{root / LOCK}: another process is planning now; try again") from error
    except OSError as error:
        raise UsageError(f"the plan can't be written to {root}: {error}") from error
    return seen


def _entries(content: Mapping[str, Any] | None, problem: str | None) -> tuple[Entry, ...]:
    if content is None or content.get("schema") != SCHEMA:
        found = (content or {}).get("schema")
        raise ValueError(problem or f"schema {found!r}, expected {SCHEMA}")
    return tuple(_entry(race) for race in content["races"])


def _with(
    entries: tuple[Entry, ...], plan: RacePlan, complete: Mapping[int, int]
) -> tuple[list[Entry], int]:
    """Add a plan to those that are there, or find it among them."""
    for number, entry in enumerate(entries):
        old = entry.plan
        if not _unordered(old) & _unordered(plan) or not set(old.seeds) & set(plan.seeds):
            continue
        if different := _differences(old, plan):
            raise _refused(old, plan, different)
        new = plan.seeds[len(old.seeds) :]
        seen = entry.seen + sum(complete.get(seed, 0) for seed in new)
        kept = plan if new else old
        return [*entries[:number], Entry(plan=kept, seen=seen), *entries[number + 1 :]], seen
    seen = sum(complete.get(seed, 0) for seed in plan.seeds)
    return [*entries, Entry(plan=plan, seen=seen)], seen


def _unordered(plan: RacePlan) -> set[frozenset[str]]:
    """Tell the comparisons, whichever cell of a pair is first."""
    return {frozenset((pair.cell, pair.other)) for pair in plan.pairs}


def _differences(old: RacePlan, new: RacePlan) -> list[str]:
    """Say in what two plans differ that can't both hold; nothing if they are one."""
    said = []
    if _unordered(old) != _unordered(new):
        said.append(f"{_comparisons(old)} then, {_comparisons(new)} now")
    if old.looks != new.looks:
        said.append(f"{_looks(old)} then, {_looks(new)} now")
    shorter = min(len(old.seeds), len(new.seeds))
    extended = old.looks is None and old.seeds[:shorter] == new.seeds[:shorter]
    if old.seeds != new.seeds and not extended:
        said.append(f"seeds {_seeds(old)} then, {_seeds(new)} now")
    if old.alpha != new.alpha:
        said.append(f"level {1 - old.alpha:g} then, {1 - new.alpha:g} now")
    if old.margin != new.margin:
        said.append(f"{_margin(old)} then, {_margin(new)} now")
    return said


def _refused(old: RacePlan, new: RacePlan, different: list[str]) -> UsageError:
    first = max(old.seeds) + 1
    return UsageError(
        f"a race of these cells was planned otherwise: {'; '.join(different)}. A plan that changes "
        "after looks were made does not hold its error rate: go on with the first plan, or race "
        f"over seeds that nobody has looked at, -s {first}-{first + len(new.seeds) - 1}"
    )


def _comparisons(plan: RacePlan) -> str:
    named = [
        f"{plan.names.get(pair.cell, pair.cell)} - {plan.names.get(pair.other, pair.other)}"
        for pair in plan.pairs
    ]
    more = f" and {len(named) - 6} more" if len(named) > 6 else ""
    return f"{', '.join(named[:6])}{more}"


def _looks(plan: RacePlan) -> str:
    return "looks after every seed" if plan.looks is None else f"{plan.looks} looks"


def _seeds(plan: RacePlan) -> str:
    """Write the pool in its order, which is part of the plan."""
    first, last, n = plan.seeds[0], plan.seeds[-1], len(plan.seeds)
    if plan.seeds == tuple(range(first, last + 1)):
        return f"{first}-{last}"
    return ",".join(map(str, plan.seeds[:10])) + (f",... ({n})" if n > 10 else "")


def _margin(plan: RacePlan) -> str:
    return "no margin" if plan.margin is None else f"margin {plan.margin:g}"


def _plain(entry: Entry) -> dict[str, Any]:
    plan = entry.plan
    return {
        "looks": plan.looks,
        "alpha": plan.alpha,
        "margin": plan.margin,
        "seeds": list(plan.seeds),
        "pairs": [{"cell": p.cell, "other": p.other, "sign": p.sign} for p in plan.pairs],
        "names": dict(plan.names),
        "seen": entry.seen,
    }


def _entry(content: Any) -> Entry:
    """Read what `_plain` wrote.

    Raises:
        KeyError, TypeError, ValueError, UsageError: Somebody else wrote it.
    """
    plan = RacePlan(
        pairs=tuple(
            Pair(cell=str(pair["cell"]), other=str(pair["other"]), sign=int(pair["sign"]))
            for pair in content["pairs"]
        ),
        seeds=tuple(map(int, content["seeds"])),
        looks=None if content["looks"] is None else int(content["looks"]),
        alpha=float(content["alpha"]),
        margin=None if content["margin"] is None else float(content["margin"]),
        names={str(key): str(name) for key, name in content["names"].items()},
    )
    return Entry(plan=plan, seen=int(content["seen"]))
