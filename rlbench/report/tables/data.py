"""Cells as plain data, for programs: full precision, nothing rounded, nothing marked."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING, Any

from rlbench.grid.reading import COLUMNS
from rlbench.report.cells.cell import KINDS, KINDS_OF_RUNS, Cell
from rlbench.report.cells.metric import SCORE
from rlbench.report.tables.notes import shared
from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.report.tables.best import BestSet
    from rlbench.report.tables.columns import Row
    from rlbench.stats import Interval

FORMATS = ("csv", "tsv", "json")

# beside the score
_MEANS = ("reward_mean", "kl_nats", "entropy", "length", "wall_s")


def data(
    rows: Sequence[Row],
    labels: Sequence[str],
    best: BestSet,
    below: Sequence[str],
    format: str,  # noqa: A002 - as in `tables.table`
    *,
    iqm: bool,
) -> str:
    """Write rows: what `cell_record` says of each cell, and where it stands.

    Besides, in the unit of the metric:

    - ``value`` with ``value_low`` and ``value_high``: the mean of the metric over the tried seeds,
      failures at the task's floor; ``higher_is_better`` says which way is better,
    - ``in_best_set``: whether no test shows another row of its task to be better, null where that
      is open; ``p_worse``, the least p against one that does better, and ``p_against_best``, the p
      against the first that has a test; both adjusted by ``correction`` over all pairs,
    - ``iqm``, ``iqm_low``, ``iqm_high``, if they are asked for.

    Args:
        rows: In their order.
        labels: Columns that differ.
        best: How rows were told from the best one.
        below: Caption and notes, for ``json``.
        format: ``json``, ``csv`` or ``tsv``; the last two hold the rows only.
        iqm: Whether to write the interquartile mean.
    """
    records = [_record(row, labels, best, iqm=iqm) for row in rows]
    if format == "json":
        document = {
            "metric": rows[0].cell.metric.name if rows else SCORE.name,
            "pairs": best.pairs,
            "correction": best.correction if best.pairs else None,
            "rows": records,
            "shared": shared([row.cell for row in rows]),
            "notes": list(below),
        }
        return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    return separated(records, labels, format)


def separated(
    records: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    format: str,  # noqa: A002 - as in `tables.table`
) -> str:
    """Write records as ``csv`` or ``tsv``; lists are joined by spaces.

    Args:
        records: All with the same keys.
        names: The columns where there is no record.
        format: ``csv`` or ``tsv``.
    """
    buffer = io.StringIO()
    writer = csv.DictWriter(
        buffer,
        fieldnames=list(records[0]) if records else list(names),
        delimiter="," if format == "csv" else "\t",
        lineterminator="\n",
    )
    writer.writeheader()
    for record in records:
        writer.writerow(
            {k: " ".join(map(str, v)) if isinstance(v, list) else v for k, v in record.items()}
        )
    return buffer.getvalue().removesuffix("\n")


def cell_record(cell: Cell, labels: Sequence[str]) -> dict[str, Any]:
    """One cell as plain data; its score has bounds where the score is what is compared."""
    kinds = [kind for kind in KINDS if kind in KINDS_OF_RUNS or kind in cell.columns]
    settings = [option.name for option in Settings.options()]
    names = list(dict.fromkeys([*kinds, *labels, *settings]))
    score, of_ok = _score(cell)
    return {
        **{name: cell.columns.get(name) for name in names},
        "ok": len(cell.ok),
        "tried": len(cell.tried),
        "not_run": len(cell.seeds) - len(cell.tried),
        "seeds": [seed.number for seed in cell.tried],
        "failed_seeds": [seed.number for seed in cell.failed],
        "score_start": cell.mean("score_start"),
        **score,
        "score_of_ok": of_ok,
        **{name: cell.mean(COLUMNS[name]) for name in _MEANS},
    }


def bounds(name: str, interval: Interval | None) -> dict[str, float | None]:
    """An estimate with its bounds; a degenerate interval has none, nor has an infinite bound."""
    low, high = None, None
    if interval is not None and interval.half_width is not None:
        low, high = interval.low, interval.high
    return {
        name: interval.mid if interval else None,
        f"{name}_low": low if low is not None and math.isfinite(low) else None,
        f"{name}_high": high if high is not None and math.isfinite(high) else None,
    }


def _score(cell: Cell) -> tuple[dict[str, float | None], float | None]:
    """The score with its interval, or beside another metric its mean alone; and that of the ok."""
    if cell.metric.key == SCORE.key:
        return bounds("score", cell.score), cell.score_of_ok.mid if cell.score_of_ok else None
    mean = cell.mean(SCORE.key)
    return {"score": mean, "score_low": None, "score_high": None}, mean


def _record(row: Row, labels: Sequence[str], best: BestSet, *, iqm: bool) -> dict[str, Any]:
    standing = row.standing
    tested = standing is not None and (standing.p, standing.p_first) != (None, None)
    return {
        **cell_record(row.cell, labels),
        **bounds("value", row.cell.score),
        "higher_is_better": row.cell.metric.higher,
        "in_best_set": standing.among_best if standing else None,
        "p_worse": standing.p if standing else None,
        "p_against_best": standing.p_first if standing else None,
        "correction": best.correction if tested else None,
        **(bounds("iqm", row.iqm) if iqm else {}),
    }
