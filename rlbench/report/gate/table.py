"""The gate as text: one row a cell, what the test was, and one line that says how it ended."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from rlbench.report.cells.pairing import task_of
from rlbench.report.compare.tests import of_tests
from rlbench.report.gate.gate import ABSENT, FAILS, NOT_TESTABLE, OPEN, SAME, WORSE, Gate, Verdict
from rlbench.report.tables.table import DATA_FORMATS, check_format, score_text
from rlbench.report.text import layout
from rlbench.report.text.figures import p_text
from rlbench.report.text.folding import fold
from rlbench.report.text.spelling import printable, spell_seeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.cells.cell import Cell

_HEADER = ("cell", "n", "old", "new", "diff", "p", "gate")
_NAME_WIDTH = 36


def gate_table(
    gate: Gate,
    format: str = "simple",  # noqa: A002 - as in `table`
    *,
    ascii_only: bool = False,
) -> str:
    """Show a gate.

    Args:
        gate: What to show.
        format: Any of `layout.FORMATS`, or ``csv``, ``tsv`` or ``json``, in full precision.
        ascii_only: Write ``+/-`` for a plus-minus sign.

    Returns:
        The table with what stands below it; ``csv`` and ``tsv`` hold the rows only.

    Raises:
        UsageError: There is no such format.
    """
    check_format(format)
    if format in DATA_FORMATS:
        return _data(gate, format)
    sign = "+/-" if ascii_only else "±"
    places = _places(gate)
    rows = [
        _row(one, places[task_of(one.old)], sign, gate.family.alpha, format)
        for one in gate.verdicts
    ]
    header = [layout.escape(name, format) for name in _HEADER]
    right = [False, True, True, True, True, True, False]
    below = [*_caption(gate, sign), *remarks(gate)]
    return layout.page(header, rows, right, below=below, format=format)


def _places(gate: Gate) -> dict[str, tuple[int, int]]:
    """Choose the places of means and differences, for each task its own."""
    by_task: dict[str, list[Verdict]] = {}
    for one in gate.verdicts:
        by_task.setdefault(task_of(one.old), []).append(one)
    return {
        task: (
            layout.places_by_interval(cell.score for one in of_task for cell in _cells(one)),
            layout.places_by_interval(one.difference.interval for one in of_task if one.difference),
        )
        for task, of_task in by_task.items()
    }


def headline(gate: Gate) -> str:
    """Say in one line how it ended."""
    stopped = [one for one in gate.verdicts if not one.passes]
    total = len(gate.verdicts)
    if not stopped:
        return f"gate open: none of {total} {_cells_word(total)} is shown to be worse"
    words = {
        WORSE: "worse",
        FAILS: "failing",
        ABSENT: "not there",
        OPEN: "not proved to be no worse",
        NOT_TESTABLE: "not judged",
    }
    counts = {mark: sum(one.mark == mark for one in stopped) for mark in words}
    said = ", ".join(f"{count} {words[mark]}" for mark, count in counts.items() if count)
    return f"gate closed: {said}, of {total} {_cells_word(total)}"


def remarks(gate: Gate) -> list[str]:
    """List what has no test, which seeds make no pair, where seeds failed, and what is new."""
    lines = []
    for one in gate.verdicts:
        if one.reason:
            lines.append(f"{one.mark}: {one.name}: {one.reason}.")
        if one.new is None:
            continue
        alone = {s.number for s in one.old.tried} ^ {s.number for s in one.new.tried}
        if alone and one.seeds and not one.independent:
            lines.append(
                f"{one.name}: seeds {spell_seeds(one.seeds)} make pairs; "
                f"{spell_seeds(alone)} did not run on both sides."
            )
        failed = [
            f"{which} {spell_seeds(seed.number for seed in cell.failed)}"
            for which, cell in (("old", one.old), ("new", one.new))
            if cell.failed
        ]
        if failed and one.difference is not None:
            lines.append(f"{one.name}: failed seeds count with the floor: {', '.join(failed)}.")
        newly = {s.number for s in one.new.failed} & {s.number for s in one.old.ok}
        if newly and one.passes and not one.independent:
            lines.append(
                f"{one.name}: seeds {spell_seeds(newly)} fail that ended well before; that is not "
                "shown to be more than chance."
            )
    if gate.added:
        lines.append(f"Only in the new results: {', '.join(gate.added)}.")
    return lines


def _cells(one: Verdict) -> list[Cell]:
    return [cell for cell in (one.old, one.new) if cell is not None]


def _cells_word(count: int) -> str:
    return "cell" if count == 1 else "cells"


def _row(
    one: Verdict,
    places: tuple[int, int],
    sign: str,
    alpha: float,
    format: str,  # noqa: A002 - as above
) -> list[str]:
    means, finer = places
    difference = ""
    if one.difference is not None:
        text = layout.fixed(one.difference.interval.mid, finer)
        half = one.difference.interval.half_width
        plus = "" if text.startswith("-") or float(text) == 0 else "+"
        difference = f"{plus}{text}" + ("" if half is None else f" {sign}{half:.{finer}f}")
    name = printable(one.name)
    texts = [
        str(len(one.seeds)),
        *_means(one, means),
        difference,
        "" if one.p is None else p_text(one.p, alpha),
        one.mark,
    ]
    shown = fold(name, _NAME_WIDTH) if format == "simple" else layout.escape(name, format)
    return [shown, *(layout.escape(text, format) for text in texts)]


def _means(one: Verdict, places: int) -> list[str]:
    """Show what both have reached at the seeds of the difference; else what there is."""
    if one.means is None or one.new is None:
        return [
            score_text(one.old, places),
            layout.MISSING if one.new is None else score_text(one.new, places),
        ]
    texts = []
    for cell, mean in zip((one.old, one.new), one.means, strict=True):
        own = {seed.number for seed in cell.failed}
        starred = bool(own if one.independent else own & set(one.seeds))
        texts.append(layout.fixed(mean, places) + ("*" if starred else ""))
    return texts


def _caption(gate: Gate, sign: str) -> list[str]:
    metric = gate.verdicts[0].old.metric
    way = "more" if metric.higher else "less"
    percent = f"{100 * (1 - gate.family.alpha):g}%"
    tested = sum(one.p is not None for one in gate.verdicts)
    text = (
        f"{metric.name}: {way} is better. n: {_of_n(gate)}; old, new and diff (new less old, "
        f"{sign} the half-width of its {percent} {_interval(gate)}, of one cell alone) are over "
        "these. "
        f"{SAME}: the same numbers."
    )
    if tested:
        text += (
            f" {WORSE}: p < {gate.family.alpha:g} and a mean loss above {gate.margin:g}. A small p "
            f"says that the loss is not {gate.margin:g}: where it is above, that it is worse, and "
            "where it is below, that it is not. "
        )
        text += of_tests(gate.family, "cell")
    if any(one.mark == NOT_TESTABLE for one in gate.verdicts):
        text += f" {NOT_TESTABLE}: no test."
    if gate.proof:
        text += (
            f" {OPEN}: the simultaneous {percent} interval does not exclude a loss above "
            f"{gate.margin:g}."
        )
    return [text]


def _of_n(gate: Gate) -> str:
    apart = [one.independent for one in gate.verdicts if one.difference is not None]
    return "new runs, all against all old ones" if apart and all(apart) else "common seeds"


def _interval(gate: Gate) -> str:
    apart = [one.independent for one in gate.verdicts if one.difference is not None]
    return "Welch t interval" if apart and all(apart) else "paired t interval"


def _data(gate: Gate, format: str) -> str:  # noqa: A002 - as above
    records = [_record(one) for one in gate.verdicts]
    if format == "json":
        document = {
            "passes": gate.passes,
            "metric": gate.metric,
            "margin": gate.margin,
            "alpha": gate.family.alpha,
            "correction": gate.family.correction,
            "rows": records,
            "added": list(gate.added),
            "notes": remarks(gate),
        }
        return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    return _csv(records, "," if format == "csv" else "\t")


def _csv(records: Sequence[dict[str, Any]], delimiter: str) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(records[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow(record | {"seeds": " ".join(map(str, record["seeds"]))})
    return buffer.getvalue().removesuffix("\n")


def _record(one: Verdict) -> dict[str, Any]:
    interval = one.difference.interval if one.difference else None
    certain = interval is not None and interval.half_width is not None
    return {
        "cell": one.name,
        "seeds": list(one.seeds),
        "old": one.old.score.mid if one.old.score else None,
        "new": one.new.score.mid if one.new and one.new.score else None,
        "difference": interval.mid if interval else None,
        "difference_low": interval.low if interval and certain else None,
        "difference_high": interval.high if interval and certain else None,
        "beyond_margin_low": one.simultaneous.low if one.simultaneous else None,
        "beyond_margin_high": one.simultaneous.high if one.simultaneous else None,
        "p_adjusted": one.p,
        "gate": one.mark,
        "reason": one.reason or None,
    }
