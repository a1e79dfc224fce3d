"""Learning curves that were made elsewhere: rows of one run at several steps become one run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from rlbench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.grid.scores_file import Entry

HEADER = "update,score"  # of the ``evals.csv`` of such a run


def runs_of_steps(entries: Sequence[Entry]) -> tuple[list[Entry], list[str]]:
    """Put the rows of each run together: its score is that of its last step.

    A row without a score on the way is a gap in the curve; at the last step it is a run that
    failed.

    Args:
        entries: Of one file, in its order; those without a step are left as they are.

    Returns:
        One entry a run, in the order in which runs begin, and remarks.

    Raises:
        UsageError: A row has a step and no seed, or a run has a step twice.
    """
    steps: dict[str, dict[float, Entry]] = {}
    for number, entry in enumerate(entries):
        if entry.step is None:
            steps[str(number)] = {0.0: entry}
            continue
        if entry.seed is None:
            raise UsageError(
                f"{entry.where}: steps of which run? Name the column of its seed with --map "
                "seed=COLUMN"
            )
        key = json.dumps([dict(entry.parts), dict(entry.settings), entry.seed], sort_keys=True)
        of_run = steps.setdefault(key, {})
        first = of_run.setdefault(entry.step, entry)
        if first is not entry:
            raise UsageError(
                f"step {entry.step:g} of one run is there twice, in {first.where} and in "
                f"{entry.where}; remove one"
            )
    found = [_run(of_run) for of_run in steps.values()]
    return found, _remarks(entries, found)


def as_text(curve: Sequence[tuple[float, float]]) -> str:
    """Write a curve as ``evals.csv`` has it."""
    rows = [f"{_spelled(step)},{score!r}" for step, score in curve]
    return "\n".join([HEADER, *rows, ""])


def _run(of_run: Mapping[float, Entry]) -> Entry:
    ordered = sorted(of_run)
    last = of_run[ordered[-1]]
    if len(ordered) < 2:
        return last
    curve = [
        (step, score)
        for step in ordered
        if (score := of_run[step].numbers.get("score")) is not None
    ]
    return replace(last, curve=tuple(curve))


def _remarks(entries: Sequence[Entry], runs: Sequence[Entry]) -> list[str]:
    """Say that rows became runs, and how many end before the longest."""
    if len(runs) == len(entries):
        return []
    last = [run.step for run in runs if run.step is not None]
    early = sum(step < max(last) for step in last)
    said = [f"{len(entries):,} rows are steps of {len(runs):,} runs; the last one of each counts"]
    if early:
        end = _spelled(max(last))
        said.append(f"{early:,} of {len(last):,} runs end before step {end}, the last of any")
    return said


def _spelled(step: float) -> str:
    return str(int(step)) if step.is_integer() else repr(step)
