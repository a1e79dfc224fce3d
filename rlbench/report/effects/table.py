"""Effects as text: the answer in sentences, means, contrasts, and who suits whom best."""

from __future__ import annotations

import re
from textwrap import wrap
from typing import TYPE_CHECKING

from rlbench.report.compare.family import BETTER, WORSE
from rlbench.report.effects.data import contrast_name, data, effect_name
from rlbench.report.effects.means import crossed, marginal
from rlbench.report.effects.prose import answers, has_shares, legend, p_and_sign, title
from rlbench.report.effects.remarks import remarks
from rlbench.report.tables.table import DATA_FORMATS, check_format
from rlbench.report.text import layout
from rlbench.report.text.figures import half_width, p_text, percents, signed
from rlbench.report.text.folding import fold, width_of
from rlbench.report.text.headed import Row, headed
from rlbench.report.text.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlbench.report.compare.family import Family, Judgement
    from rlbench.report.effects.contrasts import Contrast, Effect, Effects, TaskEffects
    from rlbench.report.effects.partners import Partners

_MOST, _LEAST = 12, 3  # contrasts of an effect that a terminal shows
_LINES = 36  # that they take there, where names are long
_NO_LIMIT = 10_000
_TIE = "\xa0"  # where a line may not break; never in a name, see `printable`


def effects_table(
    found: Effects,
    format: str = "simple",  # noqa: A002 - as in `table`
    width: int | None = None,
    *,
    ascii_only: bool = False,
) -> str:
    """Show effects.

    Args:
        found: The effects.
        format: Any of `layout.FORMATS`, or ``csv``, ``tsv`` or ``json``, in full precision. But for
            ``simple`` it is one table of all contrasts.
        width: The most columns of the terminal: names are folded to fit. None means no limit.
        ascii_only: Write ``+/-`` for a plus-minus sign.

    Returns:
        The text, without a newline at the end.

    Raises:
        UsageError: There is no such format.
    """
    check_format(format)
    if format in DATA_FORMATS:
        return data(found, format, remarks(found))
    sign = "+/-" if ascii_only else "±"
    if format != "simple":
        return _document(found, format, sign)
    prose_width = min(width or layout.PROSE_WIDTH, layout.PROSE_WIDTH)
    blocks = [
        block
        for one in found.tasks
        for block in _blocks(one, found.family, sign, width or _NO_LIMIT)
    ]
    below = [*legend(found, sign), *remarks(found)]
    return "\n\n".join([*blocks, _wrapped(below, sign, prose_width)])


def _blocks(found: TaskEffects, family: Family, sign: str, width: int) -> Iterator[str]:
    prose_width = min(width, layout.PROSE_WIDTH)
    yield _wrapped([title(found)], sign, prose_width)
    yield _wrapped([f"- {text}" for text in answers(found, family, sign)], sign, prose_width)
    yield from _means(found, sign, width)
    contrasts = _contrasts(found, family, sign, width)
    if contrasts:
        yield contrasts
    for partners in found.partners:
        yield _partners(partners, family, sign, width)


def _wrapped(paragraphs: Sequence[str], sign: str, width: int) -> str:
    """Wrap prose, never inside a number or a short difference; a name too long is broken."""
    number = rf"(?<=p) (?=[=<>])|(?<=[=<]) (?=[0-9+-])|(?<=>=) | (?={re.escape(sign)}[0-9])"
    short = r"(?<!\S)(\S{1,16}) - (\S{1,16})(?!\S)"
    tied = (
        re.sub(short, rf"\1{_TIE}-{_TIE}\2", re.sub(number, _TIE, printable(text)))
        for text in paragraphs
    )
    lines = [
        line
        for text in tied
        for line in wrap(
            text,
            width,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]
    wrapped = [fold(line, width) if width_of(line) > width else line for line in lines]
    return "\n".join(wrapped).replace(_TIE, " ")


def _means(found: TaskEffects, sign: str, width: int) -> Iterator[str]:
    """Two factors: one table crosses them. More: the levels, and each pair that interacts."""
    grid = found.grid
    if len(grid.factors) == 2:
        yield crossed(found, (0, 1), sign, width) or marginal(found, sign, width)
        return
    yield marginal(found, sign, width)
    numbers = {factor.name: number for number, factor in enumerate(grid.factors)}
    for effect in found.effects:
        verdicts = {one.judgement.verdict for one in effect.contrasts}
        if len(effect.factors) == 2 and verdicts & {BETTER, WORSE}:
            one, other = (numbers[name] for name in effect.factors)
            table = crossed(found, (one, other), sign, width)
            if table:
                yield table


def _contrasts(found: TaskEffects, family: Family, sign: str, width: int) -> str:
    """All effects in one table, under a heading each."""
    rows: list[Row] = []
    places = _places(found)
    for effect in found.effects:
        shown = _surest(effect.contrasts, width)
        heading = _heading(found, effect, family, len(shown))
        rows += [
            (heading, contrast_name(one), _numbers(one.judgement, family, places)) for one in shown
        ]
    if not rows:
        return ""
    header = ["contrast", "diff", f"{sign}{percents(family.level)}", "p", "verdict"]
    return headed(rows, header, [False, True, True, True, False], width)


def _places(found: TaskEffects) -> int:
    """Decimal places of all contrasts of a task."""
    differences = (one.judgement.difference for effect in found.effects for one in effect.contrasts)
    return layout.places_by_interval(one.interval for one in differences if one)


def _surest(contrasts: Sequence[Contrast], width: int) -> list[Contrast]:
    """All of them, or the surest where there are many, or long ones: few where p is 1."""
    longest = max((width_of(contrast_name(one)) for one in contrasts), default=0)
    most = min(_MOST, max(_LINES // (1 + longest // (width // 2)), _LEAST))
    if len(contrasts) <= most:
        return list(contrasts)

    def doubt(one: Contrast) -> tuple[float, float]:
        judged = one.judgement
        alone = judged.difference.p if judged.difference else None
        return 2.0 if judged.p is None else judged.p, 2.0 if alone is None else alone

    chosen = sorted(contrasts, key=doubt)[:most]
    return [one for n, one in enumerate(chosen) if n < _LEAST or doubt(one)[0] < 1]


def _heading(found: TaskEffects, effect: Effect, family: Family, shown: int) -> str:
    parts = []
    if len(effect.contrasts) > 1 and effect.p is not None:
        parts.append(f"p {p_and_sign(effect.p, family)} as a whole")
    if effect.share is not None and has_shares(found):
        parts.append(f"{100 * effect.share:.0f}% of variance")
    if shown < len(effect.contrasts):
        parts.append(f"the surest {shown} of {len(effect.contrasts)} (csv has all)")
    return f"{effect_name(effect)}: {', '.join(parts)}" if parts else effect_name(effect)


def _numbers(judged: Judgement, family: Family, places: int) -> list[str]:
    if judged.difference is None:
        return ["", "", "", judged.verdict]
    interval = judged.difference.interval
    more = "" if judged.more is None else f" {judged.more:,} more"
    return [
        signed(interval.mid, places),
        half_width(interval, places),
        "" if judged.p is None else p_text(judged.p, family.alpha),
        f"{judged.verdict}{more}",
    ]


def _partners(partners: Partners, family: Family, sign: str, width: int) -> str:
    places = layout.places_by_interval(one.interval for one in partners.levels)
    half = f"{sign}{percents(family.level)}"
    first = partners.levels[0].level
    numbers = []
    for one in partners.levels:
        row = [layout.fixed(one.interval.mid, places), half_width(one.interval, places), "", ""]
        if one.level != first:
            interval = partners.differences[first, one.level].interval
            row[2:] = [signed(-interval.mid, places), half_width(interval, places)]
        numbers.append(row)
    header, right = ["mean", half, "diff", half], [True] * 4
    room = (width - layout.widest(layout.simple(header, numbers, right)) - 4) // 2
    rows = [
        [fold(printable(one.level), room), fold(printable(_chosen(one.chosen)), room), *row]
        for one, row in zip(partners.levels, numbers, strict=True)
    ]
    names = [partners.factor, f"best {'+'.join(partners.others)}"]
    shown = [
        printable(name) if width_of(name) <= max(room, len(short)) else short
        for name, short in zip(names, ("level", "partner"), strict=True)
    ]
    return layout.simple([*shown, *header], rows, [False, False, *right])


def _chosen(chosen: tuple[tuple[str, ...], tuple[str, ...]]) -> str:
    """Name what both halves chose, or what each did."""
    one, other = ("+".join(place) for place in chosen)
    return one if one == other else f"{one} / {other}"


def _document(found: Effects, format: str, sign: str) -> str:  # noqa: A002 - as above
    """All contrasts in one table, for a document; below it only what concerns them."""
    half = f"{sign}{percents(found.family.level)}"
    header = ["task", "effect", "contrast", "diff", half, "p", "verdict"]
    right = [False, False, False, True, True, True, False]
    rows, said = [], []
    for one in found.tasks:
        said += [title(one), *answers(one, found.family, sign)]
        places = _places(one)
        rows += [
            [
                one.grid.task,
                effect_name(effect),
                contrast_name(contrast),
                *_numbers(contrast.judgement, found.family, places),
            ]
            for effect in one.effects
            for contrast in effect.contrasts
        ]
    if len(found.tasks) == 1:
        header, right, rows = header[1:], right[1:], [row[1:] for row in rows]
    below = [*said, *legend(found, sign, contrasts_only=True), *remarks(found)]
    return layout.page(
        [layout.escape(name, format) for name in header],
        [[layout.escape(text, format) for text in row] for row in rows],
        right,
        below=[printable(text) for text in below],
        format=format,
    )
