"""The plans of races on disk, ``<out>/race.json``: written before the first run, then kept.

A plan holds its error rate only if it stood before anybody looked. So it is on disk before a run
starts, and another one for the same comparisons at the same seeds is refused. What was decided is
not in the file: that follows from the results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from rlbench.errors import UsageError
from rlbench.grid.race import PLAN, RacePlan, key_of
from rlbench.grid.race_reading import Entry, entries, plain
from rlbench.grid.reading import read_object
from rlbench.grid.store import OWNER_S, SCHEMA, Store, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

LOCK = "race.lock"


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
    if content is None:
        raise _unreadable(path, str(problem).removeprefix(f"{path} "))
    try:
        return entries(content)
    except UsageError as error:
        raise _unreadable(path, str(error)) from error


def spent_by_race(root: Path, specs: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the number of seeds of some cells was decided by what a race saw of them.

    Args:
        root: The folder of results.
        specs: Specifications of runs that are compared, as in ``spec.json``.

    Returns:
        True where both cells of a pair of a race are among them, at seeds of that race.

    Raises:
        UsageError: The plans of races can't be read, so that nobody knows.
    """
    races = races_of(root)
    if not races:
        return False
    there = {(key_of(spec), spec["seed"]) for spec in specs}
    return any(
        (pair.cell, seed) in there and (pair.other, seed) in there
        for race in races
        for pair in race.plan.pairs
        for seed in race.plan.seeds
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
    seen = 0

    def add(there: tuple[Entry, ...]) -> list[Entry]:
        nonlocal seen
        made, seen = _with(there, plan, complete)
        return made

    _change(root, add)
    return seen


def bring(source: Path, target: Path) -> tuple[int, list[str]]:
    """Add the plans of a folder to those of another one, to which its runs are copied.

    Else nobody would know there that the number of seeds was decided by what they showed.

    Args:
        source: The folder that has them; nothing is changed there.
        target: The one that gets them.

    Returns:
        How many plans are new there, and what is to be said of those that don't go together with
        what is there: another plan for the same comparisons at the same seeds. Both are kept, the
        one that was there first.

    Raises:
        UsageError: The plans of one of them can't be read, or not be written.
    """
    brought, before = races_of(source), races_of(target)
    after, said = _together(before, brought)
    if after == list(before):
        return 0, said

    def add(there: tuple[Entry, ...]) -> list[Entry]:
        return _together(there, brought)[0]

    _change(target, add)
    return len(after) - len(before), said


def _unreadable(path: Path, fault: str) -> UsageError:
    return UsageError(
        f"{path}: no plans of races can be read there: {fault}. Without them nobody knows which "
        "looks were planned: put the file back as it was, or race into another folder with -o"
    )


def _change(root: Path, change: Callable[[tuple[Entry, ...]], list[Entry]]) -> None:
    """Write the plans of a folder anew, while nobody else does."""
    Store(root).check_writable()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / LOCK, timeout=OWNER_S):
            races = [plain(entry) for entry in change(races_of(root))]
            write_json(root / PLAN, {"schema": SCHEMA, "races": races})
    except Timeout as error:
        raise UsageError(f"{root / LOCK}: another process is planning now; try again") from error
    except OSError as error:
        raise UsageError(f"the plan can't be written to {root}: {error}") from error


def _together(
    there: tuple[Entry, ...], brought: tuple[Entry, ...]
) -> tuple[list[Entry], list[str]]:
    """Put plans together: each race once, with the most seeds and runs that were seen before it."""
    made, said = list(there), []
    for entry in brought:
        rivals = [n for n, old in enumerate(made) if _share(old.plan, entry.plan)]
        same = next((n for n in rivals if not _differences(made[n].plan, entry.plan)), None)
        if same is not None:
            old = made[same]
            longer = len(entry.plan.seeds) > len(old.plan.seeds)
            plan = entry.plan if longer else old.plan
            made[same] = Entry(plan=plan, seen=max(old.seen, entry.seen))
            continue
        both = ((made[n].plan, entry.plan) for n in rivals)
        said += [
            f"of a race that was planned otherwise there: {_spelled(old, new, 'there', 'here')}. "
            "Both are kept, and the one that was there goes on: whoever chooses by what they show "
            "holds no error rate"
            for old, new in both
        ]
        made.append(entry)
    return made, said


def _share(one: RacePlan, other: RacePlan) -> bool:
    """Whether two races have a comparison and a seed in common."""
    return bool(_unordered(one) & _unordered(other) and set(one.seeds) & set(other.seeds))


def _with(
    there: tuple[Entry, ...], plan: RacePlan, complete: Mapping[int, int]
) -> tuple[list[Entry], int]:
    """Add a plan to those that are there, or find it among them."""
    for number, entry in enumerate(there):
        old = entry.plan
        if not _share(old, plan):
            continue
        if _differences(old, plan):
            raise _refused(old, plan)
        new = plan.seeds[len(old.seeds) :]
        seen = entry.seen + sum(complete.get(seed, 0) for seed in new)
        kept = plan if new else old
        return [*there[:number], Entry(plan=kept, seen=seen), *there[number + 1 :]], seen
    seen = sum(complete.get(seed, 0) for seed in plan.seeds)
    return [*there, Entry(plan=plan, seen=seen)], seen


def _unordered(plan: RacePlan) -> set[frozenset[str]]:
    """Tell the comparisons, whichever cell of a pair is first."""
    return {frozenset((pair.cell, pair.other)) for pair in plan.pairs}


def _differences(old: RacePlan, new: RacePlan) -> list[tuple[str, str]]:
    """Say in what two plans differ that can't both hold; nothing if they are one."""
    said: list[tuple[str, str]] = []
    if _unordered(old) != _unordered(new):
        said.append((_comparisons(old), _comparisons(new)))
    if old.looks != new.looks:
        said.append((_looks(old), _looks(new)))
    shorter = min(len(old.seeds), len(new.seeds))
    extended = old.looks is None and old.seeds[:shorter] == new.seeds[:shorter]
    if old.seeds != new.seeds and not extended:
        said.append((f"seeds {_seeds(old)}", _seeds(new)))
    if old.alpha != new.alpha:
        said.append((f"level {1 - old.alpha:g}", f"{1 - new.alpha:g}"))
    if old.margin != new.margin:
        said.append((_margin(old), _margin(new)))
    return said


def _spelled(old: RacePlan, new: RacePlan, then: str, now: str) -> str:
    return "; ".join(f"{one} {then}, {other} {now}" for one, other in _differences(old, new))


def _refused(old: RacePlan, new: RacePlan) -> UsageError:
    first = max(old.seeds) + 1
    return UsageError(
        f"a race of these cells was planned otherwise: {_spelled(old, new, 'then', 'now')}. A plan "
        "that changes after looks were made does not hold its error rate: go on with the first "
        "plan, or race over seeds that nobody has looked at, "
        f"-s {first}-{first + len(new.seeds) - 1}"
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
