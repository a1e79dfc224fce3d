"""What to know before believing a page: only what its results give reason to say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rlbench.grid.importing import is_foreign, seeds_are_counted
from rlbench.report.cells.baseline import spell_cell
from rlbench.report.cells.metric import SCORE
from rlbench.report.compare import legend
from rlbench.report.progress import count
from rlbench.report.tables.table import remarks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.grid.store import Record
    from rlbench.report.cells.cell import Cell
    from rlbench.report.compare.comparison import Comparison

MOST = 30
_NAMED = 6  # cells or runs that a caveat names
_LETTERS = 900  # of one
_UNTUNED = "Equal settings are not equal tuning"  # how the legend of a comparison begins to say it
_OF_FAILURES = re.compile(r": [0-9,]+ of [0-9,]+ failed[.;]")  # as `notes` writes it
_FEWEST = 6  # pairs with which flips of signs can reach 0.05


def collect(
    ordered: Sequence[Cell],
    labels: Sequence[str],
    comparison: Comparison | None,
    unreadable: Sequence[Record] = (),
    first: Sequence[str] = (),
) -> tuple[str, ...]:
    """List what applies, what concerns all of the page first.

    Args:
        ordered: Cells in the order of the tables.
        labels: Columns in which they differ.
        comparison: How they compare with a baseline; None if they don't.
        unreadable: What in the folder is no run that can be read.
        first: What is known besides, and comes before all else.
    """
    found = [
        *first,
        *_seeds(ordered, labels),
        *_few_pairs(ordered, comparison),
        *_untuned(comparison),
        *_no_better_than_the_start(ordered, labels),
        *_foreign(ordered),
        *_uncommitted(ordered),
        *_unreadable(unreadable),
    ]
    said = remarks(ordered) if comparison is None else legend.remarks(comparison)
    # what begins with a dash is one failed run, which has its own place on the page
    found += _fewer_failures([t for t in said if not t.startswith("- ") and t not in first])
    more = len(found) - MOST
    shown = [_short(text) for text in found[:MOST]]
    return (*shown, *([f"And {more:,} more; rlbench table tells all."] if more > 0 else []))


def _fewer_failures(texts: Sequence[str]) -> list[str]:
    """Keep a few of the paragraphs of which each is about one cell with failures."""
    kept: list[str] = []
    left = 0
    for text in texts:
        of_a_cell = _OF_FAILURES.search(text) is not None
        if of_a_cell and sum(map(bool, map(_OF_FAILURES.search, kept))) >= _NAMED:
            left += 1
        else:
            kept.append(text)
    if left:
        kept.append(f"{count(left, 'more cell')} with failures: see the failures below.")
    return kept


def without_untuned(paragraphs: Sequence[str]) -> tuple[str, ...]:
    """Take out of a legend what is among the caveats."""
    return tuple(text for text in paragraphs if not text.startswith(_UNTUNED))


def _seeds(ordered: Sequence[Cell], labels: Sequence[str]) -> list[str]:
    single = [cell for cell in ordered if len(cell.tried) == 1]
    if not single:
        return []
    which = "Every cell has" if len(single) == len(ordered) else f"{_names(single, labels)}:"
    return [f"{which} one seed only: a number without an interval, with which nothing is tested."]


def _few_pairs(ordered: Sequence[Cell], comparison: Comparison | None) -> list[str]:
    if comparison is not None:
        fewest = comparison.family.fewest
    else:
        several = [len(cell.tried) for cell in ordered if len(cell.tried) > 1]
        fewest = min(several) if len(several) > 1 else None
    if fewest is None or fewest >= _FEWEST:
        return []
    counted = (seeds_are_counted(seed.record) for cell in ordered for seed in cell.tried)
    if any(counted) if comparison is None else comparison.family.apart:
        return [f"{count(fewest, 'run')} a cell are few: the tests assume nearly normal values."]
    least = 2.0 ** (1 - fewest)
    return [
        f"{count(fewest, 'pair')} of seeds are few: the tests assume nearly normal differences. "
        f"One that assumes nothing of the kind could not go below p = {least:g}, whatever the "
        "numbers."
    ]


def _untuned(comparison: Comparison | None) -> list[str]:
    if comparison is None:
        return []
    return [text for text in legend.caption(comparison, ()) if text.startswith(_UNTUNED)]


def _no_better_than_the_start(ordered: Sequence[Cell], labels: Sequence[str]) -> list[str]:
    """Name what training made no better, where the score is what is compared."""
    learnt = [
        (cell, cell.metric.sign * (cell.score.mid - start))
        for cell in ordered
        if cell.metric.key == SCORE.key
        and cell.score is not None
        and (start := cell.mean("score_start")) is not None
    ]
    worse = [cell for cell, gain in learnt if gain <= 0]
    if not worse:
        return []
    if len(worse) == len(ordered) > 1:
        which = "Every cell ends"
    else:
        which = f"{_names(worse, labels)} {'ends' if len(worse) == 1 else 'end'}"
    return [f"{which} no better than before training."]


def _foreign(ordered: Sequence[Cell]) -> list[str]:
    foreign = [is_foreign(seed.record) for cell in ordered for seed in cell.seeds]
    if not any(foreign):
        return []
    which = "All runs" if all(foreign) else f"{sum(foreign):,} of {len(foreign):,} runs"
    return [
        f"{which} were made elsewhere and imported. That seeds of one number share anything, and "
        "how the score was measured, is as whoever made them says; rlbench has not seen it."
    ]


def _uncommitted(ordered: Sequence[Cell]) -> list[str]:
    dirty = runs = 0
    for cell in ordered:
        for seed in cell.tried:
            said = (seed.record.result or {}).get("provenance")
            git = said.get("git") if isinstance(said, Mapping) else None
            runs += 1
            dirty += isinstance(git, Mapping) and bool(git.get("dirty"))
    if not dirty:
        return []
    which = "All runs" if dirty == runs else f"{dirty:,} of {runs:,} runs"
    return [
        f"{which} were made from a checkout with uncommitted changes, so the commit alone does not "
        "give the code that made them."
    ]


def _unreadable(records: Sequence[Record]) -> list[str]:
    if not records:
        return []
    named = "; ".join(str(record.problem or record.run_id) for record in records[:_NAMED])
    more = f"; and {len(records) - _NAMED:,} more" if len(records) > _NAMED else ""
    noun = "folder" if len(records) == 1 else "folders"
    return [f"{len(records):,} {noun} can't be read or are odd: {named}{more}."]


def _names(cells: Sequence[Cell], labels: Sequence[str]) -> str:
    more = f" and {len(cells) - _NAMED:,} more" if len(cells) > _NAMED else ""
    return ", ".join(spell_cell(cell, labels) for cell in cells[:_NAMED]) + more


def _short(text: str) -> str:
    if len(text) <= _LETTERS:
        return text
    return f"{text[:_LETTERS]} ... (rlbench table tells the rest)"
