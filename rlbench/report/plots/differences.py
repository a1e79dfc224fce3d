"""By how much cells differ from the baseline at the same seed: what verdicts are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected
from rlbench.report.cells import one_scale
from rlbench.report.cells.baseline import baseline_name
from rlbench.report.compare.family import BETTER, EQUIVALENT, UNDECIDED, WORSE
from rlbench.report.compare.tests import of_tests
from rlbench.report.plots import against, forest, style
from rlbench.report.plots.prose import LeftOut, in_common, titled
from rlbench.report.text.figures import half_width, p_text, percents, signed
from rlbench.report.text.layout import places_by_interval
from rlbench.report.text.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.figure import Figure

    from rlbench.report.cells.cell import Cell
    from rlbench.report.compare.comparison import Comparison, Row
    from rlbench.report.plots.panels import Entry

_WORDS = {
    BETTER: "better",
    WORSE: "worse",
    EQUIVALENT: "equivalent",
    UNDECIDED: "undecided",
}


def draw(
    cells: Sequence[Cell],
    *,
    width: float,
    note: Callable[[str], None],
    baseline: Mapping[str, Cell] | Cell | None = None,
    margin: float | None = None,
) -> Figure:
    """Draw the difference of each cell from its baseline; see `plots.draw`."""
    made, tasks = against.compared(cells, baseline, margin=margin)
    blocks, left_out, kept = [], LeftOut(note), []
    for title, rows in tasks:
        found = against.shown(rows, lambda row: row.difference is not None, left_out.add)
        if found:
            blocks.append(_block(title, found, made, narrow=width < style.WIDE))
            kept += [row for _, row in found]
    if not blocks:
        reasons = dict.fromkeys(row.reason for _, rows in tasks for _, row in rows)
        raise NothingSelected(f"nothing can be subtracted: {', '.join(reasons)}")
    if one_scale.on_one_scale(cells):
        blocks = forest.on_one_axis(blocks)
    name = printable(baseline_name(made.baselines, made.labels))
    percent = percents(made.family.level)
    metric = titled(cells[0].metric.name)
    return forest.draw(
        blocks,
        width=width,
        axis=f"difference in {metric}: right is better",
        header=("verdict", f"diff ± {percent}", "p", "n"),
        narrow=1,
        caption=_caption(made, kept, name) + left_out.caption() + in_common(cells),
    )


def _block(
    title: str, rows: Sequence[tuple[Entry, Row]], made: Comparison, *, narrow: bool
) -> forest.Block:
    places = places_by_interval(row.difference.interval for _, row in rows if row.difference)
    margin = made.family.margin
    return forest.Block(
        title=title,
        rows=tuple(
            _row(entry, row, places, made.family.alpha, narrow=narrow) for entry, row in rows
        ),
        line=0.0,
        band=None if margin is None else (-margin, margin),
        backwards=rows[0][1].cell.metric.sign < 0,
    )


def _row(entry: Entry, row: Row, places: int, alpha: float, *, narrow: bool) -> forest.Row:
    if row.difference is None:
        raise NothingSelected(f"{entry.name} has no difference")
    interval, joint = row.difference.interval, row.simultaneous
    known = interval.half_width is not None
    spread = half_width(interval, places)
    pairs = f"{len(row.seeds)}"
    star = "*" if row.failures else ""
    verdict = f"{row.verdict} {_WORDS.get(row.verdict, '')}".rstrip()
    return forest.Row(
        name=entry.name,
        look=entry.look,
        mid=interval.mid,
        low=interval.low if known else None,
        high=interval.high if known else None,
        outer=(joint.low, joint.high)
        if known and joint is not None and joint.low is not None and joint.high is not None
        else None,
        texts=(
            verdict + (star if narrow else ""),
            f"{signed(interval.mid, places)}{star} {'± ' if known else ''}{spread}",
            "" if row.p is None else p_text(row.p, alpha),
            f"{pairs}, {row.failures} failed" if row.failures else pairs,
        ),
    )


def _caption(made: Comparison, rows: Sequence[Row], name: str) -> str:
    family = made.family
    percent = percents(family.level)
    apart = [row.independent for row in rows]
    what = "of the means" if all(apart) else "at common seeds"
    by = "Welch t" if all(apart) else "paired t or Welch t" if any(apart) else "paired t"
    sentences = [f"Difference {what} from {name}; thick: {percent} {by} interval of one row alone"]
    if any(row.simultaneous for row in rows) and family.size > 1:
        sentences[0] += f", thin: for all {family.size} rows at once (Bonferroni)"
    sentences[0] += "."
    if any(row.cell.metric.sign < 0 for row in rows):
        sentences.append("Where less is better the axis runs backwards.")
    if family.margin is not None:
        sentences.append(f"Grey: differences within ±{family.margin:g} count as none.")
    if any(row.p is not None for row in rows):
        sentences.append(f"Verdicts go by p. {of_tests(family, 'comparison')}")
    if any(row.p is None for row in rows):
        sentences.append("n/a: not testable.")
    if any(row.failures for row in rows):
        sentences.append(
            "*: pairs with a failed run, which counts with the task's floor, and in p only where "
            "it speaks against the claim."
        )
    return " ".join(sentences)
