"""A suite as a table, one row an algorithm."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlbench.report.tables.columns import interval_text
from rlbench.report.tables.data import FORMATS as DATA_FORMATS
from rlbench.report.tables.data import bounds, separated
from rlbench.report.tables.notes import failure_rates, named, notes
from rlbench.report.tables.table import arranged, check_format
from rlbench.report.text import layout
from rlbench.report.text.fitting import Column, Sacrifice, fitting, page

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlbench.report.suite.suite import Algorithm, Suite
    from rlbench.stats import Interval

# columns that may be left out, the first one first, where a table is too wide
_NEW = "95% new tasks"
_EXPENDABLE = (
    f"IQM {_NEW}",
    f"mean {_NEW}",
    "gap 95%",
    "rank 95%",
    "mean 95%",
    "P(best)",
    "gap",
    "n",
)
_INTERVALS = 5  # so many of them are left out before names are folded
_PLACES_OF_RANKS = 2
_FEWEST = 3  # tasks: of two, an interval of new tasks is wider than any scale
_SMALL = 0.01  # a chance that two places can't tell from none
_NAMED = 5  # tasks that a sentence names


def suite_table(
    suite: Suite,
    format: str = "simple",  # noqa: A002 - as in `tables.table.table`
    width: int | None = None,
) -> str:
    """Show a suite, the best IQM first.

    Args:
        suite: What to show.
        format: Any of `layout.FORMATS`, or ``csv``, ``tsv`` or ``json``, in full precision.
        width: The most columns of the terminal; intervals, and then more, are left out, and named,
            to fit. Where that is not enough, ``simple`` names each row in one column, folded.
            Nothing is ever cut. None means no limit.

    Returns:
        The table with its caption and notes, without a newline at the end. ``csv`` and ``tsv`` hold
        the rows only; `remarks` are what a reader of them has to know besides.

    Raises:
        UsageError: There is no such format.
    """
    check_format(format)
    columns, left_out = [*_labels(suite), *_numbers(suite)], list[str]()
    if format not in DATA_FORMATS and width is not None:
        columns, left_out = fitting(
            suite.algorithms,
            _labels(suite),
            _numbers(suite),
            _sacrifice(suite),
            format=format,
            width=width,
        )
    below = [*_caption(suite, [column.name for column in columns]), *remarks(suite)]
    if format in DATA_FORMATS:
        return _data(suite, below, format)
    return page(suite.algorithms, columns, below, left_out, format=format, width=width)


def _sacrifice(suite: Suite) -> Sacrifice[Algorithm]:
    """Give up intervals, then fold the labels into one column, then give up numbers."""
    return Sacrifice(
        names=_EXPENDABLE,
        whole=_INTERVALS,
        title="algorithm",
        name=lambda one: named(one.columns, suite.labels),
        enough=20,
    )


def remarks(suite: Suite) -> list[str]:
    """List which tasks algorithms lack, what failed, and what is not on one footing."""
    lines = []
    for one in suite.algorithms:
        if one.missing:
            name = named(one.columns, suite.labels)
            lines.append(
                f"{name}: {len(one.missing)} of {len(suite.tasks)} tasks have no value, so there "
                f"is no aggregate: {listed(one.missing)}{_why(one)}."
            )
    alone = {
        task: None
        for one in suite.algorithms
        if not one.missing
        for task, cell in one.cells.items()
        if len(cell.tried) == 1
    }
    if alone:
        lines.append(f"No interval where a task has one run: {listed(list(alone))}.")
    lines += [f"Not on one footing: {why}." for why in suite.footing]
    cells = [cell for one in suite.algorithms for cell in one.cells.values()]
    ordered, labels = arranged(cells)
    return [*lines, *failure_rates(ordered, labels), *notes(ordered, labels)]


def _why(one: Algorithm) -> str:
    """Say in which of the missing tasks it ran, and has no value for all that."""
    if not one.unknown:
        return ""
    where = "there" if one.unknown == one.missing else f"in {listed(one.unknown)}"
    return f" ({where} a run failed, and no floor is known)"


def _caption(suite: Suite, shown: Sequence[str]) -> list[str]:
    tasks = f"{len(suite.tasks)} tasks" if len(suite.tasks) > 1 else "1 task"
    way = "" if suite.higher else "; less is better"
    sentences = [
        f"IQM: mean of the middle half of all runs over {tasks}; {suite.metric} {scale_text(suite)}"
        f"{way}.",
        "mean: over runs, then tasks.",
    ]
    if "gap" in shown:
        sentences.append("gap: by how much runs fall short of 1; less is better.")
    methods = sorted(
        {one.iqm.method for one in suite.algorithms if one.iqm and one.iqm.half_width is not None}
    )
    if methods:  # the first begins all others of its kind
        others = [text.removeprefix(f"{methods[0]}, ") for text in methods[1:]]
        said = "; ".join([methods[0], *others])
        sentences.append(f"95%: {said}; of new seeds on the same tasks.")
    sentences += _of_new_tasks(suite, shown)
    if "n" in shown:
        sentences.append("n: runs that ended well/tried.")
    paragraphs = [" ".join(sentences)]
    if "rank" in shown:
        chance = ", P(best) how often it is the best" if "P(best)" in shown else ""
        paragraphs.append(
            f"rank: mean over tasks among the rows that have all{chance}, when seeds are drawn "
            "anew. It describes these rows and is no test; other rows give other ranks. Drawn "
            "anew, ranks move to the middle: one may lie at the end of its interval, or beyond."
        )
    paragraphs.append(f"Tasks: {listed(suite.tasks)}.")
    return paragraphs


def _of_new_tasks(suite: Suite, shown: Sequence[str]) -> list[str]:
    """Say what the intervals of new tasks are."""
    of: dict[str, Callable[[Algorithm], Interval | None]] = {
        "IQM": lambda one: one.new_iqm,
        "mean": lambda one: one.new_mean,
    }
    methods = sorted(
        {
            f"{found.method} ({name})"
            for name, find in of.items()
            if f"{name} {_NEW}" in shown
            for found in map(find, suite.algorithms)
            if found is not None and found.half_width is not None
        }
    )
    if not methods:
        return []
    return [f"{_NEW}: {'; '.join(methods)}; of new seeds on new tasks like these."]


def scale_text(suite: Suite) -> str:
    """Say on what scale the numbers are."""
    if suite.scaled:
        where = " on import" if suite.scaled == "imported" else ""
        return f"normalised{where} by two reference scores a task, 0 and 1"
    if suite.has_gap:
        return "as it is, from 0 to 1"
    return (
        "as it is, so that the mean goes with the tasks of the largest numbers, and the IQM leaves "
        "out those of the largest and the smallest (--normalise)"
    )


def _labels(suite: Suite) -> list[Column[Algorithm]]:
    def label(name: str) -> Column[Algorithm]:
        return Column(
            name=name, say=lambda one: one.columns.get(name, layout.MISSING), number=False
        )

    return [label(name) for name in suite.labels]


def _numbers(suite: Suite) -> list[Column[Algorithm]]:
    """Choose the columns that are no labels."""
    places = layout.places_by_interval(one.iqm for one in suite.algorithms)
    total = len(suite.tasks)
    columns: list[Column[Algorithm]] = []
    if any(one.missing for one in suite.algorithms):
        columns.append(Column(name="tasks", say=lambda one: f"{total - len(one.missing)}/{total}"))
    columns += [
        Column(name="n", say=lambda one: f"{one.ok}/{one.tried}"),
        *_estimate("IQM", lambda one: one.iqm, places),
        *_new_tasks(suite, "IQM", lambda one: one.new_iqm, places),
        *_estimate("mean", lambda one: one.mean, places),
        *_new_tasks(suite, "mean", lambda one: one.new_mean, places),
    ]
    if suite.has_gap:
        columns += _estimate("gap", lambda one: one.gap, places)
    if suite.has_ranks:
        columns += _estimate("rank", _rank, _PLACES_OF_RANKS)
        columns.append(Column(name="P(best)", say=_chance))
    return columns


def _estimate(
    name: str, of: Callable[[Algorithm], Interval | None], places: int
) -> list[Column[Algorithm]]:
    """Make a column of an estimate and one of its interval."""

    def value(one: Algorithm) -> str:
        found = of(one)
        if found is None:
            return layout.MISSING
        return layout.fixed(found.mid, places) + ("*" if one.tried > one.ok else "")

    def interval(one: Algorithm) -> str:
        found = of(one)
        return layout.MISSING if found is None else interval_text(found, places)

    return [Column(name=name, say=value), Column(name=f"{name} 95%", say=interval)]


def _new_tasks(
    suite: Suite, name: str, of: Callable[[Algorithm], Interval | None], places: int
) -> list[Column[Algorithm]]:
    """Make a column of the intervals that speak of new tasks, where there are any."""
    found = [of(one) for one in suite.algorithms]
    if len(suite.tasks) < _FEWEST or not any(
        one is not None and one.half_width is not None for one in found
    ):
        return []
    return [Column(name=f"{name} {_NEW}", say=_estimate("", of, places)[1].say)]


def _rank(one: Algorithm) -> Interval | None:
    """Give the mean rank; that all resamples agree is no lack of spread."""
    return replace(one.rank.interval, degenerate=False) if one.rank else None


def _chance(one: Algorithm) -> str:
    if one.rank is None or one.rank.best is None:
        return layout.MISSING
    best = one.rank.best
    if 0 < best < _SMALL:
        return f"<{_SMALL:g}"
    return f">{1 - _SMALL:g}" if 1 - _SMALL < best < 1 else f"{best:.2f}"


def _data(suite: Suite, below: Sequence[str], format: str) -> str:  # noqa: A002 - as above
    records = [_record(suite, one) for one in suite.algorithms]
    if format != "json":
        return separated(records, suite.labels, format)
    document = {
        "metric": suite.metric,
        "tasks": list(suite.tasks),
        "scaled": suite.scaled or None,
        "higher_is_better": suite.higher,
        "rows": records,
        "notes": list(below),
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)


def _record(suite: Suite, one: Algorithm) -> dict[str, Any]:
    return {
        **{name: one.columns.get(name) for name in suite.labels},
        "tasks": len(suite.tasks) - len(one.missing),
        "missing_tasks": list(one.missing),
        "ok": one.ok,
        "tried": one.tried,
        **bounds("iqm", one.iqm),
        **bounds("mean", one.mean),
        **bounds("optimality_gap", one.gap),
        **_new_bounds("iqm", one.new_iqm),
        **_new_bounds("mean", one.new_mean),
        **bounds("rank", one.rank.interval if one.rank else None),
        "p_best": one.rank.best if one.rank else None,
    }


def _new_bounds(name: str, found: Interval | None) -> dict[str, Any]:
    ends = bounds(name, found)
    return {f"{name}_new_tasks_{end}": ends[f"{name}_{end}"] for end in ("low", "high")}


def listed(names: Sequence[str]) -> str:
    """Name the first few, and how many more there are."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
