"""Comparisons as data for programs: every digit, nothing marked, gaps empty or null."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from rlbench.report.cells.baseline import baseline_name, spell_cell
from rlbench.report.cells.metric import SCORE
from rlbench.report.tables.data import bounds
from rlbench.report.tables.notes import shared
from rlbench.report.tables.table import cell_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.compare.comparison import Comparison, Row


def data(comparison: Comparison, below: Sequence[str], format: str) -> str:  # noqa: A002 - as in `table`
    """Write a comparison for programs.

    ``json`` is one object, numbers finite, gaps null::

        baseline     what the rows are compared with, without its task where each has its own
        baselines    task -> name of its baseline, as --baseline reads it
        metric       what is compared
        level        confidence level of all intervals
        margin       differences within it are equivalent
        planned_for  difference that more_seeds is planned for
        comparisons  size of the family that p_adjusted is adjusted for
        correction   "holm", "max_t", "max_t and holm", or null where nothing is tested
        tuning       null, or {axis, values, chosen_on, compared_on, unused}
        rows         one object a row, in the order of the table
        shared       kinds and settings that all rows have
        notes        caption and remarks, as below a table

    A row holds what `cell_record` says of its cell and, in the unit of the metric:

    - ``value`` with ``value_low`` and ``value_high``: the mean of the metric over the row's seeds,
      failures at the task's floor; ``higher_is_better`` says which way is better,
    - ``independent``: whether runs are not paired, since their seeds were numbered on import,
    - ``pairs``, ``paired_seeds``, ``failed_pairs`` (pairs with a failure on either side; of
      independent runs, failures of both sides),
    - ``difference``, row less baseline, with ``_low`` and ``_high`` (paired or Welch t, of one
      comparison alone), ``simultaneous_low`` and ``_high`` (for the whole family, Bonferroni),
      ``sd`` of the differences, ``effect`` (the mean difference over ``sd``, corrected by Hedges),
    - ``p_t`` (of the difference as it is), ``p_adjusted``, ``correction``,
    - ``improvement`` with ``_low`` and ``_high``: the probability of improvement, as the share of
      pairs won,
    - ``verdict`` (``baseline + - = ? n/a x``), ``more_seeds``, ``reason``,
    - ``pairs_of_ok``, ``difference_of_ok``, ``p_of_ok``, ``verdict_of_ok``: the same on the pairs
      that ended well on both sides, where the table has others; not to be shown alone,
    - ``tuned``, the chosen value, and in json ``tuned_means``, value to its mean on the seeds that
      chose.

    Args:
        comparison: What to write.
        below: Caption and remarks, for ``json``.
        format: ``json``, ``csv`` or ``tsv``; the last two hold the rows only.
    """
    records = [_record(comparison, row) for row in comparison.rows]
    if format == "json":
        return json.dumps(
            _document(comparison, records, below), ensure_ascii=False, allow_nan=False, indent=1
        )
    buffer = io.StringIO()
    delimiter = "," if format == "csv" else "\t"
    names = [name for name in records[0] if name != "tuned_means"]
    writer = csv.DictWriter(
        buffer, names, delimiter=delimiter, lineterminator="\n", extrasaction="ignore"
    )
    writer.writeheader()
    for record in records:
        writer.writerow(
            {k: " ".join(map(str, v)) if isinstance(v, list) else v for k, v in record.items()}
        )
    return buffer.getvalue().removesuffix("\n")


def _document(
    comparison: Comparison, records: Sequence[dict[str, Any]], below: Sequence[str]
) -> dict[str, Any]:
    family, tuning = comparison.family, comparison.tuning
    return {
        "baseline": baseline_name(comparison.baselines, comparison.labels),
        "baselines": {
            task: spell_cell(cell, comparison.labels) for task, cell in comparison.baselines.items()
        },
        "metric": comparison.metric.name,
        "level": family.level,
        "margin": family.margin,
        "planned_for": family.effect,
        "comparisons": family.size,
        "correction": comparison.family.correction,
        "tuning": tuning
        and {
            "axis": tuning.axis.name,
            "values": list(tuning.values),
            "chosen_on": list(tuning.chosen_on),
            "compared_on": list(tuning.compared_on),
            "unused": list(tuning.unused),
        },
        "rows": records,
        "shared": shared([row.cell for row in comparison.rows]),
        "notes": list(below),
    }


def _record(comparison: Comparison, row: Row) -> dict[str, Any]:
    """One row as plain data."""
    difference, simultaneous = row.difference, row.simultaneous
    of_ok, alone = row.of_ok, row.of_ok.difference if row.of_ok else None
    return {
        **cell_record(row.cell, comparison.labels),
        **_score(row),
        **_tuned(comparison, row),
        **bounds("value", row.score),
        "higher_is_better": row.cell.metric.higher,
        "independent": row.independent,
        "pairs": 0 if row.independent else len(row.seeds),
        "paired_seeds": [] if row.independent else list(row.seeds),
        "failed_pairs": row.failures,
        **bounds("difference", difference.interval if difference else None),
        "simultaneous_low": simultaneous.low if simultaneous else None,
        "simultaneous_high": simultaneous.high if simultaneous else None,
        "sd": difference.sd if difference else None,
        "effect": difference.effect if difference else None,
        "p_t": difference.p if difference else None,
        "p_adjusted": row.p,
        "correction": _correction(row),
        **bounds("improvement", row.improvement),
        "verdict": row.verdict,
        "more_seeds": row.more,
        "reason": row.reason or None,
        "pairs_of_ok": len(row.seeds_of_ok) if of_ok else None,
        "difference_of_ok": alone.interval.mid if alone else None,
        "p_of_ok": of_ok.p if of_ok else None,
        "verdict_of_ok": of_ok.verdict if of_ok else None,
    }


def _correction(row: Row) -> str | None:
    from rlbench.stats.mixed import MAX_T_FROM

    if row.p is None:
        return None
    return "max_t" if len(row.seeds) >= MAX_T_FROM and not row.independent else "holm"


def _score(row: Row) -> dict[str, Any]:
    """The score at the level of the comparison, or beside another metric its mean alone."""
    if row.cell.metric.key == SCORE.key:
        return bounds("score", row.score)
    mean = row.cell.mean(SCORE.key)
    return {"score": mean, "score_low": None, "score_high": None, "score_of_ok": mean}


def _tuned(comparison: Comparison, row: Row) -> dict[str, Any]:
    if comparison.tuning is None:
        return {}
    choice = comparison.tuning.of(row.cell)
    name = comparison.tuning.axis.name
    setting = {} if comparison.tuning.axis.kind else {name: choice.value}
    return {**setting, "tuned": choice.value, "tuned_means": dict(choice.means)}
