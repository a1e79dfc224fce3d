"""What policies wrote: a few prompts with their completions, evaluation by evaluation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlbench.grid.reading import read_bytes
from rlbench.report.cells.baseline import spell_cell
from rlbench.report.progress import count
from rlbench.report.text.layout import fixed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.cells.cell import Cell, Seed

FILE = "samples.jsonl"
MOST_CELLS = 24
MOST_PROMPTS = 4
MOST_EVALUATIONS = 6
_MOST_BYTES = 1 << 22  # of a file that is read
_MOST_LETTERS = 160  # of a text that is shown


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One completion.

    Attributes:
        text: What was written, greedily.
        sampled: What was written in sampling; empty if it is the same.
        mark: ``right``, ``wrong``, a score in between, or ``not scored``.
        tone: Name of a style.
    """

    text: str
    sampled: str
    mark: str
    tone: str


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Completions of one run.

    Attributes:
        name: The cell.
        seed: The seed.
        value: What the run reached, with the name of the metric.
        updates: Updates after which was evaluated.
        rows: Prompts, each with an answer an evaluation; None where there is none.
    """

    name: str
    seed: int
    value: str
    updates: tuple[int, ...]
    rows: tuple[tuple[str, tuple[Answer | None, ...]], ...]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Samples of several cells.

    Attributes:
        of_cells: One a cell, the best first.
        without: How many cells have none.
        cut: What is not shown, in words; empty if all is.
    """

    of_cells: tuple[Samples, ...] = ()
    without: int = 0
    cut: str = ""


def collect(ordered: Sequence[Cell], labels: Sequence[str]) -> Shown:
    """Read the samples of one run of each cell: of the middle seed by score, the lower of two.

    Args:
        ordered: Cells, the best of each task first.
        labels: Columns in which they differ.
    """
    found, without = [], 0
    for cell in ordered[:MOST_CELLS]:
        seed = middle(cell)
        samples = None if seed is None else _of_run(cell, seed, spell_cell(cell, labels))
        if samples is None:
            without += 1
        else:
            found.append(samples)
    more = len(ordered) - MOST_CELLS
    cut = f"Of the first {MOST_CELLS} of {len(ordered):,} cells." if more > 0 and found else ""
    return Shown(of_cells=tuple(found), without=without, cut=cut)


def middle(cell: Cell) -> Seed | None:
    """Choose the seed in the middle by score, the lower of two; None if none ended well."""
    known = [(seed.score, seed.number, seed) for seed in cell.ok if seed.score is not None]
    if not known:
        return None
    known.sort(key=lambda one: one[:2])
    return known[(len(known) - 1) // 2][2]


def _of_run(cell: Cell, seed: Seed, name: str) -> Samples | None:
    entries = _read(seed)
    if not entries:
        return None
    updates = _spread_out(sorted({entry["update"] for entry in entries}))
    answers = {(entry["update"], entry["prompt"]): entry for entry in entries}
    prompts = list(dict.fromkeys(entry["prompt"] for entry in entries))[:MOST_PROMPTS]
    floor = (seed.record.result or {}).get("floor")
    rows = tuple(
        (
            _short(prompt),
            tuple(
                _answer(answers[update, prompt], floor) if (update, prompt) in answers else None
                for update in updates
            ),
        )
        for prompt in prompts
    )
    value = "" if seed.score is None else f"{cell.metric.name} {fixed(seed.score, 3)}"
    return Samples(
        name=name,
        seed=seed.number,
        value=value,
        updates=tuple(updates),
        rows=rows,
    )


def _spread_out(updates: Sequence[int]) -> list[int]:
    """Choose the first, the last and some between, evenly."""
    if len(updates) <= MOST_EVALUATIONS:
        return list(updates)
    last = len(updates) - 1
    return [updates[round(i * last / (MOST_EVALUATIONS - 1))] for i in range(MOST_EVALUATIONS)]


def _answer(entry: dict[str, Any], floor: Any) -> Answer:
    score = entry.get("score")
    if not isinstance(score, (int, float)) or isinstance(score, bool):
        mark, tone = "not scored", "open"
    elif score == 1:
        mark, tone = "right", "better"
    elif score == floor:
        mark, tone = "wrong", "worse"
    else:
        mark, tone = fixed(float(score), 2), "open"
    greedy, sampled = (_short(str(entry.get(name) or "")) for name in ("greedy", "sampled"))
    return Answer(text=greedy, sampled="" if sampled == greedy else sampled, mark=mark, tone=tone)


def _short(text: str) -> str:
    if len(text) <= _MOST_LETTERS:
        return text
    return f"{text[:_MOST_LETTERS]} ... ({count(len(text) - _MOST_LETTERS, 'more letter')})"


def _read(seed: Seed) -> list[dict[str, Any]]:
    """Read what can be read; a line that is torn or strange is left out."""
    path = seed.record.folder / FILE
    try:
        if path.stat().st_size > _MOST_BYTES:
            return []
        lines = read_bytes(path).decode("utf-8", "replace").split("\n")
    except OSError:
        return []
    entries = []
    for line in lines:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if (
            isinstance(entry, dict)
            and isinstance(entry.get("update"), int)
            and isinstance(entry.get("prompt"), str)
        ):
            entries.append(entry)
    return entries
