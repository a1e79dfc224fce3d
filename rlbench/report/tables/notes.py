"""What stands below a table: what rows share, and what went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rlbench.grid.importing import is_foreign
from rlbench.report.cells.cell import KINDS, NOT_RUN, VERSIONS, Cell, Seed
from rlbench.report.cells.metric import NORMALISED, SCORE
from rlbench.report.tables.learning import unlearned
from rlbench.report.tables.raced import raced
from rlbench.report.tables.suspicion import suspicions
from rlbench.report.text.spelling import spell_seeds

if TYPE_CHECKING:
    from collections.abc import Sequence

_OF_THE_MACHINE = {
    "CPUs": ("cpu", "cpu_capability"),
    "thread counts": ("threads",),
    "versions of rlbench": ("rlbench",),
}


def shared(cells: Sequence[Cell]) -> dict[str, str]:
    """Collect the kinds and settings that are the same in all rows, in the order of columns."""
    if not cells:
        return {}
    first, *others = cells
    return {
        name: value
        for name, value in first.columns.items()
        if all(cell.columns.get(name) == value for cell in others) and "." not in name and value
    }


def notes(cells: Sequence[Cell], labels: Sequence[str]) -> list[str]:
    """List what a reader has to know before believing the numbers.

    Args:
        cells: The rows.
        labels: The columns that name a row.

    Returns:
        Paragraphs; none if there is nothing to say.
    """
    named = [(name_of(cell, labels), cell) for cell in cells]
    return [
        *raced(cells),
        *_failures(named),
        *_not_run(named),
        *_repeated_seeds(named),
        *_unequal_seeds(named),
        *unlearned(named),
        *suspicions(named),
        *_mixed(named, labels),
    ]


def failure_rates(cells: Sequence[Cell], labels: Sequence[str]) -> list[str]:
    """Say how often rows fail, with the uncertainty of few seeds; nothing where none did.

    Args:
        cells: The rows.
        labels: The columns that name a row.

    Returns:
        One paragraph at most.
    """
    from rlbench.stats import failure_interval

    rates = []
    for cell in cells:
        if cell.failed:
            rate = failure_interval(len(cell.failed), len(cell.tried))
            bounds = f"[{rate.low:.2f}, {rate.high:.2f}]"
            rates.append(f"{name_of(cell, labels)} {rate.mid:.2f} {bounds}")
    return [f"Failure rate with Jeffreys' 95% interval: {'; '.join(rates)}."] if rates else []


def name_of(cell: Cell, labels: Sequence[str]) -> str:
    """Name a row by the columns that differ."""
    return named(cell.columns, labels)


def named(columns: Mapping[str, str], labels: Sequence[str]) -> str:
    """Name what has these columns by some of them."""
    return ", ".join(
        value if name in KINDS else f"{name}={value}"
        for name in labels
        if (value := columns.get(name))
    )


def _failures(named: Sequence[tuple[str, Cell]]) -> list[str]:
    if not any(cell.failed for _, cell in named):
        return []
    paragraphs = []
    if any(cell.failed and cell.score is not None for _, cell in named):
        scaled = any(cell.metric.name == NORMALISED for _, cell in named)
        text = "Rows with *: failed seeds count with the task's floor in the score"
        text += " (0 where none is known)" if scaled else ""
        if any(map(_below_the_floor, (cell for _, cell in named))):
            text += (
                ", or with the worst score of the task that a run ended well with, if that is worse"
            )
        paragraphs.append(f"{text}.")
    for name, cell in named:
        if not cell.failed:
            continue
        alone = cell.score_of_ok
        what = f"{name}: {len(cell.failed)} of {len(cell.tried)} failed"
        what += f"; the others alone: {alone.mid:.3f} (n={alone.n})" if alone else ""
        if cell.score is None:
            lacks = "the floor is unknown, so there is no score"
            lacks += (
                " (rlbench import --floor gives one)" if is_foreign(cell.failed[0].record) else ""
            )
            of_score = cell.metric.key == SCORE.key
            what += f"; {lacks}" if of_score else f"; a failed seed has no {cell.metric.name}"
        paragraphs.append(f"{what}.")
        paragraphs += _errors(cell)
    return paragraphs


def _below_the_floor(cell: Cell) -> bool:
    """Whether a failed seed counts less than its own floor says."""
    floors = ((seed.score, (seed.record.result or {}).get("floor")) for seed in cell.failed)
    return any(
        score is not None and floor is not None and score != floor for score, floor in floors
    )


def _errors(cell: Cell) -> list[str]:
    """Say what went wrong, once for all seeds that ended with the same error."""
    groups: dict[tuple[str, str], list[Seed]] = {}
    foreign = is_foreign(cell.seeds[0].record)  # without a log, and each with the place of its row
    for seed in cell.failed:
        groups.setdefault((seed.status, "" if foreign else seed.error()), []).append(seed)
    lines = []
    for (status, _), seeds in groups.items():
        what = f"{status}: {said}" if (said := seeds[0].error()) else status
        if foreign:
            lines.append(f"- {_seeds(seeds)} {what}{' and the like' if len(seeds) > 1 else ''}")
            continue
        log = seeds[0].record.folder / "log.txt"
        which = f"seed {seeds[0].number}: " if len(seeds) > 1 else ""
        lines.append(f"- {_seeds(seeds)} {what} ({which}{log})")
    return lines


def _seeds(seeds: Sequence[Seed]) -> str:
    return f"seed{'' if len(seeds) == 1 else 's'} {spell_seeds(seed.number for seed in seeds)}"


def _not_run(named: Sequence[tuple[str, Cell]]) -> list[str]:
    lines = []
    for name, cell in named:
        missing = [seed for seed in cell.seeds if seed.status == NOT_RUN]
        if missing:
            states = sorted({seed.record.status for seed in missing} - {"missing"})
            why = f" ({', '.join(states)})" if states else ""
            seeds = spell_seeds(seed.number for seed in missing)
            noun = "seed" if len(missing) == 1 else "seeds"
            lines.append(f"Not run: {name}, {noun} {seeds}{why}.")
            lines += [
                f"- seed {seed.number} killed: {seed.error()}; the same command runs it again"
                for seed in missing
                if seed.record.status == "killed"
            ]
    return lines


def _repeated_seeds(named: Sequence[tuple[str, Cell]]) -> list[str]:
    return [
        f"{name}: seed {seed.number} is there more than once; {seed.record.folder} does not count."
        for name, cell in named
        for seed in cell.repeats
    ]


def _unequal_seeds(named: Sequence[tuple[str, Cell]]) -> list[str]:
    rows: dict[str, list[str]] = {}
    for name, cell in named:
        if cell.tried:
            rows.setdefault(spell_seeds(seed.number for seed in cell.tried), []).append(name)
    if len(rows) < 2:
        return []
    most = max(rows, key=lambda seeds: len(rows[seeds]))
    parts = [f"{name}: {seeds}" for seeds, names in rows.items() for name in names if seeds != most]
    rest = f"{most} in {rows[most][0] if len(rows[most]) == 1 else 'the others'}"
    made_here = not any(is_foreign(cell.seeds[0].record) for _, cell in named)
    so = ", so their means are of different conditions" if made_here else ""
    return [f"Rows have different seeds{so}: {'; '.join(parts)}; {rest}."]


def _mixed(named: Sequence[tuple[str, Cell]], labels: Sequence[str]) -> list[str]:
    """Say what differs between runs that a column does not show, or that is no part of a cell."""
    lines = []
    if any("." in name or name in VERSIONS for name in labels):
        lines.append(
            "Where a version or source differs, rows are different code under one name; they are "
            "never averaged."
        )
    for what, keys in _OF_THE_MACHINE.items():
        by_row = {name: _facts(cell, keys) for name, cell in named}
        found = sorted({fact for facts in by_row.values() for fact in facts})
        if len(found) < 2:
            continue
        inside = [name for name, facts in by_row.items() if len(facts) > 1]
        shown = ", ".join(inside[:5]) + (", ..." if len(inside) > 5 else "")
        mixed = f", mixed inside of {shown}" if shown else ""
        lines.append(
            f"Runs from different {what} ({'; '.join(found)}){mixed}: the same seed can end "
            "differently there."
        )
    return lines


def _facts(cell: Cell, keys: Sequence[str]) -> set[str]:
    """Collect what the results of a cell say of where they were made."""
    found = set()
    for seed in cell.tried:
        provenance = (seed.record.result or {}).get("provenance")
        if isinstance(provenance, Mapping):
            found.add(" ".join(str(provenance[key]) for key in keys if provenance.get(key)))
    return found - {""}
