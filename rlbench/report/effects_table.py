"""Effects as text: the answer in sentences, marginal means, contrasts, and who suits whom best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.report import layout, tables
from rlbench.report.effects_data import contrast_name, data, effect_name
from rlbench.report.family import (
    BETTER,
    EQUIVALENT,
    MAX_T_FROM,
    NOT_TESTABLE,
    POWER,
    UNDECIDED,
    WORSE,
)
from rlbench.report.figures import half_width, p_text, percents, signed
from rlbench.report.folding import fold, width_of
from rlbench.report.spelling import printable, spell_seeds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlbench.report.effects import Contrast, Effect, Effects
    from rlbench.report.family import Judgement
    from rlbench.report.partners import Partners

_MOST = 12  # contrasts of an effect that a terminal shows
_LINES = 36  # that they take there, where names are long


@dataclass(frozen=True, kw_only=True)
class _Table:
    """A table for a terminal: `names` is how many columns, the first ones, hold names."""

    title: str
    header: list[str]
    rows: list[list[str]]
    right: list[bool]
    names: int = 1
    cut: bool = False


def effects_table(
    found: Sequence[Effects],
    format: str = "simple",  # noqa: A002 - as in `tables.table`
    width: int | None = None,
    *,
    ascii_only: bool = False,
) -> str:
    """Show the effects in the grids of all tasks.

    Args:
        found: One entry a task.
        format: Any format of tabulate, or ``csv``, ``tsv`` or ``json``, in full precision. But for
            ``simple`` it is one table of all contrasts.
        width: The most columns of the prose; None means 80.
        ascii_only: Write ``+/-`` for a plus-minus sign.

    Returns:
        The text, without a newline at the end.

    Raises:
        UsageError: There is no such format.
    """
    tables.check_format(format)
    if format in tables.DATA_FORMATS:
        return data(found, format, _all_remarks(found))
    sign = "+/-" if ascii_only else "±"
    prose_width = min(width or layout.PROSE_WIDTH, layout.PROSE_WIDTH)
    if format == "simple":
        blocks = [_blocks(one, sign, prose_width) for one in found]
        return "\n\n".join(block for of_task in blocks for block in of_task)
    rows = [row for one in found for row in _rows_of_all(one, format)]
    percent = percents(found[0].family.level)
    header = ["effect", "contrast", "diff", f"{sign}{percent}", "p", "verdict"]
    right = [False, False, True, True, True, False]
    texts = (text for one in found for text in (_title(one), *_contrasts_below(one, sign)))
    below = [printable(text) for text in dict.fromkeys([*texts, *_all_remarks(found)])]
    if len({one.grid.task for one in found}) > 1:
        header, right = ["task", *header], [False, *right]
    else:
        rows = [row[1:] for row in rows]
    header = [layout.escape(name, format) for name in header]
    return layout.page(header, rows, right, below=below, format=format)


def answers(found: Effects, sign: str = "±") -> list[str]:
    """Say each effect in a sentence, with the surest contrast of it."""
    return [_answer(found, effect, sign) for effect in found.effects]


def remarks(found: Effects) -> list[str]:
    """List what a reader has to know: what is not used, what can't be told, what failed."""
    grid = found.grid
    lines = []
    if grid.unused:
        lines.append(
            f"Seeds {spell_seeds(grid.seeds)} count; {spell_seeds(grid.unused)} have no "
            f"{grid.metric.name} in all cells."
        )
    names = [factor.name for factor in grid.factors]
    if grid.holes:
        shown = [_place(names, hole) for hole in grid.holes[:5]]
        more = f" and {len(grid.holes) - 5} more" if len(grid.holes) > 5 else ""
        lines.append(
            f"The grid has holes: {'; '.join(shown)}{more}. Means and contrasts are over the "
            "partners that all of their levels have."
        )
    lines += [
        f"{effect_name(effect)}: holes forbid {effect.missing} of its contrasts."
        for effect in found.effects
        if effect.missing
    ]
    for place, seeds in grid.unknown.items():
        lines.append(
            f"{_place(names, place)}: failed seeds ({spell_seeds(seeds)}) have no "
            f"{grid.metric.name}, so that it is a hole."
        )
    for place, seeds in grid.failed.items():
        lines.append(
            f"{_place(names, place)}: failed seeds ({spell_seeds(seeds)}) count with the floor."
        )
    return lines


def _all_remarks(found: Sequence[Effects]) -> list[str]:
    """List the remarks of all tasks; where there are several, each says of which it is."""
    if len(found) == 1:
        return remarks(found[0])
    return [f"{one.grid.task}: {line}" for one in found for line in remarks(one)]


def _title(found: Effects) -> str:
    grid = found.grid
    sizes = " x ".join(str(len(factor.levels)) for factor in grid.factors)
    where = f" of task {grid.task}" if grid.task else ""
    noun = "seed" if len(grid.seeds) == 1 else "seeds"
    return (
        f"effects on {grid.metric.name}{where}: {len(grid.cells)} cells "
        f"({' x '.join(f.name for f in grid.factors)}: {sizes}), {len(grid.seeds)} {noun}"
    )


def _blocks(found: Effects, sign: str, width: int) -> Iterator[str]:
    yield _prose([_title(found)], width)
    yield _prose([f"- {text}" for text in answers(found, sign)], width)
    for table in _tables(found, sign):
        yield _laid_out(table, width)
    yield _prose(_below(found, sign), width)


def _prose(paragraphs: Sequence[str], width: int) -> str:
    """Wrap prose; a name that is longer than a line is broken."""
    text = layout.prose([printable(paragraph) for paragraph in paragraphs], "simple", width)
    lines = text.split("\n")
    return "\n".join(fold(line, width) if width_of(line) > width else line for line in lines)


def _laid_out(table: _Table, width: int) -> str:
    """Lay a table out in the width there is: names are folded, and what is too much is cut."""
    numbers = zip(*(row[table.names :] for row in [table.header, *table.rows]), strict=True)
    taken = sum(2 + max(map(width_of, column)) for column in numbers)
    room = (width - taken - 2 * (table.names - 1)) // table.names
    heads = [name if width_of(name) <= room else "level" for name in table.header[: table.names]]
    rows: list[list[str]] = []
    lines = 0
    for row in table.rows:
        names = [fold(name, room) for name in row[: table.names]]
        lines += 1 + max(name.count("\n") for name in names)
        if table.cut and rows and (len(rows) == _MOST or lines > _LINES):
            break
        rows.append([*names, *row[table.names :]])
    of = f": {len(rows)} of {len(table.rows)} (csv has all)" if len(rows) < len(table.rows) else ""
    title = fold(printable(table.title) + of, width)
    header = [*heads, *table.header[table.names :]]
    return f"{title}\n{layout.simple(header, rows, table.right)}"


def _tables(found: Effects, sign: str) -> Iterator[_Table]:
    percent = percents(found.family.level)
    for factor in found.grid.factors:
        means = [mean for mean in found.means if mean.factor == factor.name]
        places = layout.places_by_interval(mean.interval for mean in means)
        yield _Table(
            title=f"mean of each {factor.name}",
            header=[printable(factor.name), "mean", f"{sign}{percent}"],
            rows=[
                [
                    printable(mean.level),
                    layout.fixed(mean.interval.mid, places) if mean.interval else layout.MISSING,
                    half_width(mean.interval, places) if mean.interval else layout.MISSING,
                ]
                for mean in sorted(means, key=lambda mean: _worth(found, mean.interval))
            ],
            right=[False, True, True],
        )
    for effect in found.effects:
        if effect.contrasts:
            many = len(effect.contrasts) > _MOST
            yield _Table(
                title=effect_name(effect),
                header=["contrast", "diff", f"{sign}{percent}", "p", "verdict"],
                rows=_contrast_rows(
                    found, _surest_first(effect) if many else effect.contrasts, "simple"
                ),
                right=[False, True, True, True, False],
                cut=True,
            )
    for partners in found.partners:
        yield _partner_table(partners, sign, percent)


def _worth(found: Effects, interval: object) -> float:
    mid = getattr(interval, "mid", None)
    return 0.0 if mid is None else -found.grid.metric.sign * mid


def _surest_first(effect: Effect) -> list[Contrast]:
    """Order by p, what is equal after the correction by what is left out of it."""

    def key(one: Contrast) -> tuple[float, float]:
        difference, p = one.judgement.difference, one.judgement.p
        alone = difference.p if difference else None
        return (2.0 if p is None else p, 2.0 if alone is None else alone)

    return sorted(effect.contrasts, key=key)


def _contrast_rows(found: Effects, contrasts: Sequence[Contrast], format: str) -> list[list[str]]:  # noqa: A002 - as above
    places = layout.places_by_interval(
        one.judgement.difference.interval for one in contrasts if one.judgement.difference
    )
    return [
        [
            layout.escape(text, format)
            for text in (contrast_name(one), *_numbers(found, one.judgement, places))
        ]
        for one in contrasts
    ]


def _numbers(found: Effects, judged: Judgement, places: int) -> list[str]:
    if judged.difference is None:
        return ["", "", "", judged.verdict]
    interval = judged.difference.interval
    more = "" if judged.more is None else f" +{judged.more:,}"
    return [
        signed(interval.mid, places),
        half_width(interval, places),
        "" if judged.p is None else p_text(judged.p, found.family.alpha),
        f"{judged.verdict}{more}",
    ]


def _rows_of_all(found: Effects, format: str) -> Iterator[list[str]]:  # noqa: A002 - as above
    for effect in found.effects:
        task, name = (layout.escape(t, format) for t in (found.grid.task, effect_name(effect)))
        for row in _contrast_rows(found, effect.contrasts, format):
            yield [task, name, *row]


def _partner_table(partners: Partners, sign: str, percent: str) -> _Table:
    places = layout.places_by_interval(one.interval for one in partners.levels)
    return _Table(
        title=f"best partner of each {partners.factor}",
        header=[printable(partners.factor), "best partner", "mean", f"{sign}{percent}"],
        rows=[
            [
                printable(one.level),
                printable(_place(partners.others, one.chosen)),
                layout.fixed(one.interval.mid, places),
                half_width(one.interval, places),
            ]
            for one in partners.levels
        ],
        right=[False, False, True, True],
        names=2,
    )


def _answer(found: Effects, effect: Effect, sign: str) -> str:
    """One effect in words."""
    name = effect_name(effect)
    if not effect.contrasts:
        return f"{name}: holes in the grid leave nothing to compare."
    tested = [one for one in effect.contrasts if one.judgement.p is not None]
    if not tested:
        return f"{name}: {effect.contrasts[0].judgement.reason or 'nothing can be tested'}."
    surest = min(tested, key=lambda one: one.judgement.p or 0.0)
    shown = [one for one in tested if one.judgement.verdict in (BETTER, WORSE)]
    share = "" if effect.share is None else f"; {100 * effect.share:.0f}% of the variance of cells"
    main = len(effect.factors) == 1
    if not shown:
        what = "no difference shown" if main else "no interaction shown"
        alone = f" (p = {p_text(effect.p, found.family.alpha)})" if effect.p is not None else ""
        return f"{name}: {what}{alone}{share}."
    judged = surest.judgement
    if judged.difference is None or judged.p is None:
        return f"{name}: nothing can be tested."
    interval = judged.difference.interval
    places = layout.places_by_interval([interval])
    p = p_text(judged.p, found.family.alpha)
    equals = "" if p.startswith("<") else "= "
    many = "" if len(tested) == 1 else f" ({len(shown)} of {len(tested)} contrasts shown)"
    return (
        f"{name}: {contrast_name(surest)} = {signed(interval.mid, places)} {sign}"
        f"{half_width(interval, places)}, p {equals}{p}{many}{share}."
    )


def _place(names: Sequence[str], place: Sequence[str]) -> str:
    return ", ".join(f"{name} {level}" for name, level in zip(names, place, strict=True))


def _below(found: Effects, sign: str) -> list[str]:
    """Explain all tables of a terminal."""
    percent = percents(found.family.level)
    lines = [
        f"mean: over the levels of all other factors with equal weights, then over seeds, {sign} "
        f"half of its {percent} t interval.",
        *_contrasts_below(found, sign),
    ]
    if any(effect.share is not None for effect in found.effects):
        lines.append(
            "Shares of the variance of cells describe this grid; they depend on which levels were "
            "tried, and noise is in them."
        )
    if found.partners:
        one = found.partners[0]
        lines.append(
            f"best partner: chosen on seeds {spell_seeds(one.chosen_on)}, its mean is over seeds "
            f"{spell_seeds(one.compared_on)}: the maximum over the same seeds would be too high."
        )
    return [*lines, *remarks(found)]


def _contrasts_below(found: Effects, sign: str) -> list[str]:
    """Explain the contrasts: these are the tables of documents, too."""
    family = found.family
    way = "positive is better" if found.grid.metric.higher else "negative is better"
    diff = (
        f"diff: within each seed, then over seeds; {way}; {sign} half of its "
        f"{percents(family.level)} t interval, of one contrast alone."
    )
    if len(found.grid.factors) > 1:
        diff += (
            " (a - b) at c less at d: the difference of two differences; 0 where factors only add "
            "up."
        )
    if not family.size:
        return [diff]
    method = (
        f"max-t with joint sign flips over all {family.size} contrasts (Westfall and Young; "
        f"from {MAX_T_FROM} seeds)"
        if family.joint
        else f"t tests of the contrasts of seeds, adjusted by Holm over all {family.size}"
    )
    marks = f"{BETTER} shown to be better, {WORSE} worse (p < {family.alpha:g})"
    if family.margin is not None:
        marks += f", {EQUIVALENT} within {sign}{family.margin:g} (simultaneous by Bonferroni)"
    if family.effect is not None:
        marks += (
            f", {UNDECIDED} +n undecided: about n more seeds show {sign}{family.effect:g} with "
            f"{100 * POWER:g}% power"
        )
    else:
        marks += f", {UNDECIDED} undecided"
    return [
        diff,
        f"p: two-sided, {method}. verdict: the first level, or the first of two differences, is "
        f"{marks}, {NOT_TESTABLE} not testable.",
    ]
