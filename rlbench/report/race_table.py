"""A race as text: what it may cost, how it stands after each look, what it decided."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from rlbench.report import layout, tables
from rlbench.report.figures import p_text, signed
from rlbench.report.folding import fold
from rlbench.report.progress import count, spell_seconds
from rlbench.report.spelling import printable, spell_seeds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlbench.grid.race import Plan, Standing, State
    from rlbench.report.cells import Cell
    from rlbench.report.race import Race

MARKS = {"better": "+", "worse": "-", "equivalent": "=", "open": "?"}
_NAME_WIDTH = 30


def announcement(plan: Plan, run_s: float | None, workers: int) -> str:
    """Say what a race will spend at most, before it starts.

    Args:
        plan: The plan.
        run_s: Seconds of a run, from earlier ones; None if none is known.
        workers: Runs at the same time.
    """
    looks = plan.looks
    shown = ", ".join(map(str, looks)) if len(looks) <= 6 else f"each of {looks[0]} to {looks[-1]}"
    comparisons, cells = count(len(plan.pairs), "comparison"), count(len(plan.cells), "cell")
    text = f"race of {comparisons} among {cells}: at most {count(plan.most, 'run')}"
    if run_s is not None:
        text += f", {spell_seconds(run_s * plan.most / workers)} at the pace of earlier runs"
    return f"{text}; looks after {shown} seeds"


def standing_line(state: State) -> str:
    """Say in a line how a race stands."""
    decided = [one for one in state.standings if one.decision != "open"]
    text = f"{len(decided)} of {count(len(state.standings), 'comparison')} decided"
    if state.look is None:
        return f"{text}; {count(state.spent, 'run')} counted"
    runs = sum(map(len, state.missing.values()))
    return f"{text}; look {state.look} needs {count(runs, 'more run')}"


def race_table(
    made: Race,
    format: str = "simple",  # noqa: A002 - as in `tables.table`
) -> str:
    """Show a race.

    Args:
        made: What to show.
        format: Any format of tabulate, or ``csv``, ``tsv`` or ``json``, in full precision.

    Returns:
        The table with what stands below it; ``csv`` and ``tsv`` hold the rows only.

    Raises:
        UsageError: There is no such format.
    """
    tables.check_format(format)
    if format in tables.DATA_FORMATS:
        return _data(made, format)
    plan = made.plan
    against = _only_baseline(plan)
    places = layout.places_by_interval(one.interval for one in made.state.standings)
    means = layout.places_by_interval(cell.score for cell in made.cells.values())
    evidence = "p" if plan.mode == "planned" else "e"
    header = ["cell", *([] if against else ["against"]), "n", "mean", "KL", "diff", "interval"]
    header += [evidence, "verdict"]
    right = [False, *([] if against else [False]), True, True, True, True, True, True, False]
    rows = []
    if against:
        blank = [against, str(_seeds_of(made, against)), *_of_cell(made.cells, against, means)]
        rows.append([*blank, "", "", "", "baseline"])
    for one in made.state.standings:
        names = [one.pair[0]] if against else list(one.pair)
        rows.append([*names, *_figures(made, one, places, means)])
    texts = [
        [
            fold(printable(text), _NAME_WIDTH)
            if format == "simple" and number == 0
            else layout.escape(text, format)
            for number, text in enumerate(row)
        ]
        for row in rows
    ]
    header = [layout.escape(name, format) for name in header]
    return layout.page(header, texts, right, below=[*_caption(made), *remarks(made)], format=format)


def remarks(made: Race) -> list[str]:
    """List what a reader has to know before believing a verdict."""
    lines = []
    stopped = made.state.look is not None
    if made.out_of_budget:
        lines.append("Stopped: the next look would cost more than the budget.")
    elif stopped:
        lines.append("Not over: not every run of the next look has a score; type it again.")
    if made.early:
        lines.append(
            f"{count(made.early, 'run')} of this race had ended before its plan was made. If you "
            "looked at them to decide what to race, the error rate does not hold."
        )
    for name, cell in made.cells.items():
        if cell.failed:
            seeds = spell_seeds(seed.number for seed in cell.failed)
            lines.append(f"{name}: failed seeds ({seeds}) count with the task's floor.")
    return lines


def _only_baseline(plan: Plan) -> str:
    """The one cell that all others are compared with; empty if all pairs are compared."""
    seconds = {other for _, other in plan.pairs}
    firsts = {one for one, _ in plan.pairs}
    return next(iter(seconds)) if len(seconds) == 1 and not seconds & firsts else ""


def _seeds_of(made: Race, name: str) -> int:
    return max((one.n for one in made.state.standings if name in one.pair), default=0)


def _of_cell(cells: Mapping[str, Cell], name: str, places: int) -> list[str]:
    cell = cells[name]
    kl = cell.mean("kl")
    return [
        tables.score_text(cell, places),
        layout.MISSING if kl is None else layout.fixed(kl, 2),
    ]


def _figures(made: Race, one: Standing, places: int, means: int) -> list[str]:
    texts = [str(one.n), *_of_cell(made.cells, one.pair[0], means)]
    if one.mean is None:
        return [*texts, "", "", "", MARKS[one.decision]]
    interval, evidence = one.interval, one.evidence
    bounds = layout.MISSING
    if interval is not None and interval.low is not None and interval.high is not None:
        bounds = f"[{layout.fixed(interval.low, places)}, {layout.fixed(interval.high, places)}]"
    said = layout.MISSING
    if evidence is not None and made.plan.mode == "planned":
        said = p_text(evidence, made.plan.nominal)
    elif evidence is not None:
        said = f"{evidence:.3g}"
    return [*texts, signed(one.mean, places), bounds, said, MARKS[one.decision]]


def _caption(made: Race) -> list[str]:
    plan, state = made.plan, made.state
    way = "positive is better" if plan.higher else "negative is better"
    family = count(len(plan.pairs), "comparison")
    rate = f"wrong with probability {plan.alpha:g} at most for all {family} and all looks together"
    if plan.mode == "planned":
        rule = (
            f"Verdicts: Pocock's rule, {count(len(plan.looks), 'look')} planned after "
            f"{', '.join(map(str, plan.looks))} seeds, paired t tests, each at p < "
            f"{plan.nominal:.3g}"
        )
        of = "the repeated confidence interval of that look"
    else:
        rule = (
            f"Verdicts: e-process of the paired differences, at e of {1 / plan.share:.4g} or more"
        )
        of = "the confidence sequence"
    marks = "+ better, - worse, ? open"
    if plan.margin is not None:
        marks += f", = equivalent (the interval lies within {plan.margin:g})"
    percent = f"{100 * (1 - plan.share):.4g}%"
    return [
        f"n: seeds that counted. mean: over all seeds that are there. diff: over these pairs, "
        f"{way}; interval: {of}, {percent} over all looks.",
        f"{rule}; Bonferroni; {rate}. {marks}.",
        f"{count(state.spent, 'run')} counted; the whole grid is {made.full:,}. p-values of "
        "rlbench compare do not hold for these results: seeds were spent by what was seen.",
    ]


def _data(made: Race, format: str) -> str:  # noqa: A002 - as above
    rows = [_record(made, one) for one in made.state.standings]
    if format == "json":
        plan = made.plan
        document = {
            "mode": plan.mode,
            "alpha": plan.alpha,
            "comparisons": len(plan.pairs),
            "looks": list(plan.looks),
            "nominal": plan.nominal if plan.mode == "planned" else None,
            "margin": plan.margin,
            "spent": made.state.spent,
            "full": made.full,
            "over": made.state.look is None,
            "rows": rows,
            "notes": remarks(made),
        }
        return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    buffer = io.StringIO()
    delimiter = "," if format == "csv" else "\t"
    writer = csv.DictWriter(buffer, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().removesuffix("\n")


def _record(made: Race, one: Standing) -> dict[str, Any]:
    interval = one.interval
    planned = made.plan.mode == "planned"
    return {
        "cell": one.pair[0],
        "against": one.pair[1],
        "pairs": one.n,
        "difference": one.mean,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "p": one.evidence if planned else None,
        "e": None if planned else one.evidence,
        "decision": one.decision,
    }
