"""Every cell against the baseline of its task, at common seeds: ``rlbench compare``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlbench.report.cells.cell import labels_of
from rlbench.report.cells.metric import SCORE
from rlbench.report.cells.pairing import Pairs, pair, task_of
from rlbench.report.compare.family import Family, Judgement, judge
from rlbench.report.tables.table import ranked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.cells.cell import Cell
    from rlbench.report.cells.metric import Metric
    from rlbench.report.compare.tuning import Tuning
    from rlbench.stats import Interval

SMALLEST_OF_INTEREST = 0.05  # of a score from 0 to 1, where no margin is declared


@dataclass(frozen=True, kw_only=True)
class Row(Judgement):
    """One cell, judged against its baseline.

    Attributes:
        cell: The cell.
        baseline: What it is compared with; None for a baseline, and where its task has none.
        score: Mean of its metric over all of its own seeds, failures at the task's floor; None if
            no seed was tried, or the number of one is not known.
        seeds: The seeds that it shares with the baseline, both tried: the pairs.
        failures: How many of the pairs hold a failed run, on either side.
        independent: Whether its runs and the baseline's have nothing in common: no pairs.
        of_ok: The judgement on the pairs that ended well on both sides, where the table has pairs
            that did not; never to be shown alone.
        seeds_of_ok: Those pairs.
    """

    cell: Cell
    baseline: Cell | None = None
    score: Interval | None
    seeds: tuple[int, ...] = ()
    failures: int = 0
    independent: bool = False
    of_ok: Judgement | None = None
    seeds_of_ok: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All cells, each against the baseline of its task.

    Attributes:
        rows: Task by task, in each the best first, the baseline among them.
        labels: Columns in which the cells differ; the task is the first of them if it is one.
        baselines: What the others are compared with, by task.
        metric: What is compared. In a task from elsewhere the other way round may be better; a
            row's own is that of its cell.
        family: All comparisons that have a test, with the levels.
        named: Whether somebody chose the baseline.
        left_out: What of the results is not among the cells, in words; empty if nothing.
        tuning: How a value was chosen for each cell; None if none was.
    """

    rows: tuple[Row, ...]
    labels: tuple[str, ...]
    baselines: Mapping[str, Cell]
    metric: Metric
    family: Family
    named: bool = True
    left_out: str = ""
    tuning: Tuning | None = None

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks of the rows, in their order."""
        return tuple(dict.fromkeys(task_of(row.cell) for row in self.rows))

    def tuned(self, tuning: Tuning | None) -> Comparison:
        """Say how a value was chosen for each cell.

        As many seeds choose as compare, so that twice as many are to be run.
        """
        if tuning is None:
            return self
        rows = tuple(
            row if row.more is None else replace(row, more=2 * row.more) for row in self.rows
        )
        return replace(self, rows=rows, tuning=tuning)

    @property
    def led_by_baselines(self) -> bool:
        """Whether every baseline has the best mean of its task, as if it was chosen for that."""
        first = {task_of(row.cell): row for row in reversed(self.rows)}
        rivals = {task_of(row.cell) for row in self.rows if row.p is not None}
        return bool(rivals) and all(first[task].baseline is None for task in rivals)

    @property
    def hanging_on_failures(self) -> tuple[Row, ...]:
        """Rows whose verdict is another where failed seeds are left out, not at the floor."""
        return tuple(
            row
            for row in self.rows
            if row.of_ok
            and row.difference
            and row.of_ok.verdict != row.verdict
            # fewer tests elsewhere change verdicts, too, but not by failures of this row
            and set(row.seeds) != set(row.seeds_of_ok)
        )


def in_order(cells: Sequence[Cell]) -> list[Cell]:
    """Order cells: by task, the best first; ties and all in one order, however they came."""
    canonical = sorted(cells, key=lambda cell: sorted((k, str(v)) for k, v in cell.columns.items()))
    return sorted(ranked(canonical, labels_of(canonical)), key=task_of)


def compare(
    cells: Sequence[Cell],
    baseline: Cell | Mapping[str, Cell],
    *,
    level: float = 0.95,
    margin: float | None = None,
) -> Comparison:
    """Compare every cell with the baseline of its task, at common seeds.

    Differences are in the unit of the metric, row less baseline, whichever way is better; verdicts
    and wins follow the direction. A failed seed scores the task's floor, and in the share of wins
    it loses to any seed that ended well. Where there are failures, everything is judged a second
    time on the pairs that ended well, see `Row.of_ok`. How a family is judged: `family.judge`.

    Args:
        cells: What to compare, the baselines among them.
        baseline: One of them, or one for each task, by its label.
        level: Confidence level in [0.5, 1).
        margin: Largest difference, in the unit of the metric, that counts as none; None calls
            nothing equivalent. Seeds to come are planned for a difference of this size; without it
            for 0.05 where the metric is a score and all are from 0 to 1, and else not.

    Returns:
        One row a cell. The order of ``cells`` changes nothing.
    """
    ordered = in_order(cells)
    baselines = baseline if isinstance(baseline, Mapping) else {task_of(baseline): baseline}
    effect = _default_effect(ordered) if margin is None else margin
    against = {
        number: baselines.get(task_of(cell))
        for number, cell in enumerate(ordered)
        if not any(cell is one for one in baselines.values())
    }
    pairs, of_ok = (
        {
            number: pair(ordered[number], one, ended_well=alone) if one else _no_baseline(baselines)
            for number, one in against.items()
        }
        for alone in (False, True)
    )
    family, judgements = judge(pairs, level=level, margin=margin, effect=effect)
    again: dict[int, Judgement] = {}
    if any(found.failures for found in pairs.values()):
        _, again = judge(of_ok, level=level, margin=margin, effect=effect)
    rows = []
    for number, cell in enumerate(ordered):
        row = Row(cell=cell, score=_score(cell, level))
        if number in pairs:
            row = replace(
                row,
                **vars(judgements[number]),
                baseline=against[number],
                seeds=pairs[number].seeds,
                failures=pairs[number].failures,
                independent=pairs[number].independent,
                of_ok=again.get(number),
                seeds_of_ok=of_ok[number].seeds if again else (),
            )
        rows.append(row)
    return Comparison(
        rows=tuple(rows),
        labels=_labels(ordered),
        baselines=baselines,
        metric=next(iter(baselines.values())).metric,
        family=family,
    )


def _labels(ordered: Sequence[Cell]) -> tuple[str, ...]:
    """Name the columns that differ; rows are grouped by task, so this is the first column."""
    return tuple(sorted(labels_of(ordered), key=lambda name: name != "task"))


def _no_baseline(baselines: Mapping[str, Cell]) -> Pairs:
    one = len(baselines) == 1
    return Pairs(reason="another task" if one else "its task has no baseline", comparable=False)


def _default_effect(cells: Sequence[Cell]) -> float | None:
    """Decide what difference matters where nobody said; unknown on a scale that nobody knows."""
    if any(cell.metric.key != SCORE.key for cell in cells):
        return None
    scores = [seed.score for cell in cells for seed in cell.tried if seed.score is not None]
    return SMALLEST_OF_INTEREST if all(0 <= score <= 1 for score in scores) else None


def _score(cell: Cell, level: float) -> Interval | None:
    """Compute the mean of a cell's own seeds at any level; None where the cell has none."""
    if cell.score is None:
        return None
    from rlbench.stats import mean_interval

    return mean_interval([seed.score for seed in cell.tried if seed.score is not None], level)
