"""What stands first below a table of cells: what its numbers are and how they were found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.grid.importing import is_foreign
from rlbench.report.cells.cell import KINDS
from rlbench.report.cells.metric import SCORE
from rlbench.report.cells.pairing import task_of
from rlbench.report.tables.best import ALPHA
from rlbench.report.tables.notes import name_of, shared
from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from rlbench.report.cells.cell import Cell
    from rlbench.report.tables.best import BestSet
    from rlbench.report.tables.columns import Row

_NAMED = 5  # rows that a sentence names

_AT_SEEDS = " at common seeds"
_MEANS = {
    "KL": "KL (nats a completion, from the base policy)",
    "entropy": "entropy (nats)",
    "length": "length (tokens)",
    "s": "s (seconds on the clock, without the shared base policy)",
}


def caption(
    rows: Sequence[Row],
    labels: Sequence[str],
    shown: Collection[str],
    best: BestSet,
    *,
    sign: str = "±",
    bold: bool = False,
) -> list[str]:
    """Say what the columns are, which rows are among the best, and what all have in common.

    Args:
        rows: The rows.
        labels: The columns that differ between them.
        shown: Every column of the table; no other is explained.
        best: How the best rows were found.
        sign: How a plus-minus sign is written.
        bold: Whether the best rows are in bold, and not marked in a column.

    Returns:
        Paragraphs.
    """
    cells = [row.cell for row in rows]
    paragraphs = [_of_numbers(cells, shown, sign), *_of_iqm(rows, shown)]
    paragraphs += _of_best(rows, labels, best, bold=bold)
    return [*paragraphs, *common(cells, labels)]


def common(cells: Sequence[Cell], labels: Sequence[str] = ()) -> list[str]:
    """Say what all rows have in common: kinds, and settings that are not at their default.

    Args:
        cells: The rows.
        labels: The columns that name a row; a single one is not named twice.

    Returns:
        One paragraph, or none.
    """
    same = shared(cells)
    alone = len(cells) == 1
    kinds = [kind for kind in KINDS if kind in same and not (alone and kind in labels)]
    found = [f"{kind} {same[kind]}" for kind in kinds]
    found += [f"{name}={same[name]}" for name in _changed(same)]
    return [f"{'With' if alone else 'All rows'}: {', '.join(found)}."] if found else []


def less_is_better(cells: Iterable[Cell]) -> str:
    """Say for which cells less is better; empty if for none."""
    found = list(cells)
    tasks = list(dict.fromkeys(task_of(cell) for cell in found if not cell.metric.higher))
    if not tasks:
        return ""
    everywhere = all(not cell.metric.higher for cell in found)
    return "less is better" if everywhere else f"less is better in {', '.join(tasks)}"


def _of_numbers(cells: Sequence[Cell], shown: Collection[str], sign: str) -> str:
    means = [text for name, text in _MEANS.items() if name in shown]
    sentences = [
        f"{_of_metric(cells, shown)}; mean over seeds, {sign} the half-width of its 95% Student t "
        "interval.",
        "n: seeds that ended well/tried.",
    ]
    if cells and cells[0].metric.key != SCORE.key and "score" in shown:
        means.insert(0, "score")
    if means:
        plural = "s" if len(means) > 1 else ""
        sentences.append(f"{', '.join(means)}: mean{plural} over the seeds that ended well.")
    return " ".join(sentences)


def _of_metric(cells: Sequence[Cell], shown: Collection[str]) -> str:
    """Say what is compared, and which way is better where that is not the usual."""
    metric = cells[0].metric if cells else SCORE
    less = less_is_better(cells)
    if metric.key != SCORE.key:
        return f"{metric.name}: at the end; {less or 'more is better'}"
    foreign = [is_foreign(cell.seeds[0].record) for cell in cells]
    if foreign and all(foreign):
        text = "score: as imported"
    else:
        prompts = shared(cells).get("eval_prompts")
        held_out = f"{int(prompts):,} held-out prompts" if prompts else "held-out prompts"
        start = " (start: before training)" if "start" in shown else ""
        text = f"score: the task's own, greedy, on {held_out}, at the end{start}"
        text += "; of imported rows as imported" if any(foreign) else ""
    return f"{text}; {less}" if less else text


def _of_iqm(rows: Sequence[Row], shown: Collection[str]) -> list[str]:
    if "IQM" not in shown:
        return []
    methods = sorted(
        {row.iqm.method for row in rows if row.iqm is not None and row.iqm.half_width is not None}
    )
    by = f", in brackets its 95% interval ({'; '.join(methods)})" if methods else ""
    sentences = [f"IQM: mean of the middle half of the seeds{by}; from 5 seeds on."]
    if any(row.iqm is not None and row.cell.failed for row in rows):
        sentences.append("Failures are in it at the floor; a quarter of them does not show.")
    return [" ".join(sentences)]


def _of_best(rows: Sequence[Row], labels: Sequence[str], best: BestSet, *, bold: bool) -> list[str]:
    """Say which rows are among the best, by which test, and where that is open."""
    if best.reason:
        return [f"Which rows are among the best was not computed: {best.reason}."]
    if not best.standings:
        return []
    of_task = " of its task" if best.tasks > 1 else ""
    rule = f"no test shows another row{of_task} to be better" + ("" if best.apart else _AT_SEEDS)
    t = "Welch's t" if best.apart else "paired t"
    methods = {"max_t": "max-t with joint flips of signs", "holm": f"{t}, adjusted by Holm"}
    method = " or ".join(methods[name] for name in best.correction.split(" and "))
    family = f"all {best.pairs:,} pairs" if best.pairs > 1 else "the one pair"
    if best.untested:
        family = f"the {best.pairs:,} of {best.pairs + best.untested:,} pairs"
    pairs = f"{family} of rows"
    pairs += " that have a test" if best.untested else ""
    if of_task:
        total = best.pairs + best.untested
        pairs = "the pairs of rows of each task"
        pairs += f", of which {best.pairs:,} of {total:,} have a test" if best.untested else ""
    test = f"(p < {ALPHA:g} by {method} over {pairs})"
    alike = {task_of(row.cell): None for row in rows if row.standing and not row.standing.separated}
    told = {task_of(row.cell) for row in rows} - alike.keys()
    nothing = "no test shows any row to be worse than another"
    if not told:
        return [f"{'No row is in bold' if bold else 'best: ?'}: {nothing} {test}."]
    paragraphs = [f"best: yes where {rule} {test}; empty where one does."]
    if bold:
        paragraphs = [f"Bold: {rule} {test}."]
    if alike:
        mark = "not in bold" if bold else "?"
        paragraphs.append(f"In task {_listed(list(alike))} {nothing}: {mark}.")
    open_rows: dict[str, list[str]] = {}
    for row in rows:
        if row.standing is None or not row.standing.separated:
            continue
        if row.standing.among_best is None:
            open_rows.setdefault(row.standing.reason, []).append(name_of(row.cell, labels))
    if open_rows:
        named = "; ".join(f"{_listed(names)} ({why})" for why, names in open_rows.items())
        paragraphs.append(f"{'Not told' if bold else '?: open'} for {named}.")
    return paragraphs


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _changed(same: dict[str, str]) -> list[str]:
    """Name the settings that are not at their default."""
    return [
        option.name
        for option in Settings.options()
        if option.name in same and same[option.name] != option.spell(option.default)
    ]
