"""Effects in words: the answer, a sentence an effect; and what the numbers are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.report.compare.family import (
    BETTER,
    EQUIVALENT,
    NOT_TESTABLE,
    POWER,
    UNDECIDED,
    WORSE,
)
from rlbench.report.compare.tests import of_tests
from rlbench.report.effects.data import contrast_name, effect_name
from rlbench.report.text import layout
from rlbench.report.text.figures import half_width, p_text, percents, signed
from rlbench.report.text.spelling import spell_seeds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlbench.report.compare.family import Family
    from rlbench.report.effects.contrasts import Contrast, Effect, Effects, TaskEffects

_SAID = 3  # contrasts that a sentence names
_MANY = 30  # contrasts from which on few seeds show little


def title(found: TaskEffects) -> str:
    """Name the factors, what they act on, and the seeds."""
    grid = found.grid
    names = " x ".join(factor.name for factor in grid.factors)
    sizes = " x ".join(str(len(factor.levels)) for factor in grid.factors)
    size = f"({sizes})" if len(grid.factors) > 1 else f"({sizes} levels)"
    scaled = "normalised " if grid.scaled else ""
    way = "" if grid.metric.higher else " (less is better)"
    where = f", task {grid.task}" if grid.task else ""
    noun = "seed" if len(grid.seeds) == 1 else "seeds"
    seeds = spell_seeds(grid.seeds)
    what = f"{scaled}{grid.metric.name}{way}"
    return f"Effects of {names} {size} on {what}{where}, {noun} {seeds}"


def answers(found: TaskEffects, family: Family, sign: str = "±") -> list[str]:
    """Say each main effect and interaction in a sentence, the largest shown contrasts first."""
    return [_answer(effect, family, sign) for effect in found.effects if not effect.within]


def legend(found: Effects, sign: str = "±", *, contrasts_only: bool = False) -> list[str]:
    """Say what the numbers are and how they were tested.

    Args:
        found: The effects.
        sign: How a plus-minus sign is written.
        contrasts_only: Whether nothing else is shown, as in documents.
    """
    family = found.family
    percent = percents(family.level)
    effects = [effect for one in found.tasks for effect in one.effects]
    averaging = "over the levels of all other factors with equal weights, within each seed"
    spread = f"{sign} half of its {percent} t interval"
    diff = f"; {_direction(found)}; {spread}, of one contrast alone."
    if contrasts_only:
        lines = [f"diff: of two levels, {averaging}; then over seeds{diff}"]
    else:
        lines = [
            f"mean: {averaging}; then over seeds, {spread}. diff: of two levels, likewise{diff}"
        ]
    if any(len(effect.factors) == 2 for effect in effects):
        more = any(len(one.grid.factors) > 2 for one in found.tasks)
        lines.append(
            "(a - b) x (c - d): a - b at c, less a - b at d; 0 where effects add up."
            f"{' Interactions of three factors or more are not looked at.' if more else ''}"
        )
    lines += _of_tests(family, effects, sign, contrasts_only=contrasts_only)
    if contrasts_only:
        return lines
    if any(map(has_shares, found.tasks)):
        lines.append(
            "variance: share of the sum of squares between cells, by least squares; it describes "
            "these levels, with the noise of the means in it."
        )
    partners = [some for one in found.tasks for some in one.partners]
    if partners:
        one, other = map(spell_seeds, partners[0].halves)
        lines.append(
            f"best: seeds {one} choose the first (or only) one named, for seeds {other}, and these "
            "for those. mean and diff (from the first row) are over all seeds, none with a partner "
            "that it chose: the best mean of the same seeds would be too high. Intervals are of "
            "one row alone and a little narrow (where partners are nearly alike, those of 95% hold "
            "about 90 times in 100); these rows are in no test."
        )
    return lines


def has_shares(found: TaskEffects) -> bool:
    """Whether shares of the variance say anything: one factor alone has all of it."""
    several = len(found.grid.factors) > 1
    return several and any(effect.share is not None for effect in found.effects)


def _answer(effect: Effect, family: Family, sign: str) -> str:
    name = effect_name(effect)
    if not effect.contrasts:
        return f"{name}: holes in the grid leave nothing to compare."
    tested = [one for one in effect.contrasts if one.judgement.p is not None]
    if not tested:
        return f"{name}: not testable, {effect.contrasts[0].judgement.reason}."
    shown = [one for one in tested if one.judgement.verdict in (BETTER, WORSE)]
    if not shown:
        return f"{name}: {_nothing_shown(effect, tested, family, sign)}."
    shown.sort(key=lambda one: -abs(_mid(one)))
    parts = [_said(one, family, sign) for one in shown[:_SAID]]
    if len(shown) > _SAID:
        parts.append(f"{len(shown) - _SAID} more of {len(tested)} contrasts shown")
    equal = [one for one in tested if one.judgement.verdict == EQUIVALENT]
    if equal:
        parts.append(f"{_few(equal)} within {sign}{family.margin:g}")
    still = [one for one in tested if one.judgement.verdict == UNDECIDED]
    if still:
        parts.append(f"{_few(still)} not shown (p {_least(still, family)}{_more(still)})")
    return f"{name}: {'; '.join(parts)}."


def _nothing_shown(effect: Effect, tested: Sequence[Contrast], family: Family, sign: str) -> str:
    still = [one for one in tested if one.judgement.verdict == UNDECIDED]
    noun = "interaction" if len(effect.factors) == 2 else "difference"
    if not still:
        return f"no {noun} beyond {sign}{family.margin:g}"
    equal = len(tested) - len(still)
    but = f", {equal} of {len(tested)} within {sign}{family.margin:g}" if equal else ""
    alone = ""
    if len(tested) > 1 and effect.p is not None and effect.p < family.alpha:
        own = f"{p_and_sign(effect.p, family)} over its own {len(tested)} alone"
        alone = f" over all {family.size:,} contrasts, {own}"
    return f"no {noun} shown (p {_least(still, family)}{alone}{_more(still)}){but}"


def _said(contrast: Contrast, family: Family, sign: str) -> str:
    """Say one contrast with its numbers; of an interaction, what the second factor does."""
    judged = contrast.judgement
    if judged.difference is None or judged.p is None:
        return contrast_name(contrast)
    interval = judged.difference.interval
    places = layout.places_by_interval([interval])
    half = half_width(interval, places)
    p = p_and_sign(judged.p, family)
    if len(contrast.levels) == 1:
        value = signed(interval.mid, places)
        return f"{contrast_name(contrast)} = {value} {sign}{half}, p {p}"
    (one, other), (here, there) = contrast.levels
    way = "higher" if interval.mid > 0 else "lower"
    value = layout.fixed(abs(interval.mid), places)
    return f"{one} - {other} is {value} {sign}{half} {way} at {here} than at {there}, p {p}"


def _mid(contrast: Contrast) -> float:
    difference = contrast.judgement.difference
    return difference.interval.mid if difference else 0.0


def _few(contrasts: Sequence[Contrast]) -> str:
    if len(contrasts) == 1:
        return contrast_name(contrasts[0])
    return f"{len(contrasts)} contrasts"


def _least(contrasts: Sequence[Contrast], family: Family) -> str:
    known = [one.judgement.p for one in contrasts if one.judgement.p is not None]
    equal = p_and_sign(min(known), family)
    return equal if len(known) == 1 or min(known) == 1 else f">{equal}"


def p_and_sign(p: float, family: Family) -> str:
    """Write a p-value as it follows the letter: ``= 0.012`` or ``< 0.001``."""
    text = p_text(p, family.alpha)
    return f"< {text.removeprefix('<')}" if text.startswith("<") else f"= {text}"


def _more(contrasts: Sequence[Contrast]) -> str:
    most = max((one.judgement.more or 0 for one in contrasts), default=0)
    return f"; about {most:,} more seeds would decide" if most else ""


def _direction(found: Effects) -> str:
    less = [one.grid.task for one in found.tasks if not one.grid.metric.higher]
    if not less:
        return "positive is better"
    if len(less) == len(found.tasks):
        return "negative is better"
    return f"positive (in {', '.join(less)} negative) is better"


def _of_tests(
    family: Family, effects: Sequence[Effect], sign: str, *, contrasts_only: bool
) -> Iterator[str]:
    yield of_tests(family, "contrast", few="t test over seeds")
    if not family.size:
        return
    if family.size >= _MANY:
        yield (
            "The more contrasts share one correction, the less it shows: --main-effects, --factor "
            "and -e to -m ask fewer questions."
        )
    parts = [f"verdict: {BETTER} the first level is better, {WORSE} worse (p < {family.alpha:g})"]
    if any(len(effect.factors) == 2 for effect in effects):
        parts = [f"{parts[0][:-1]}; of an interaction, a - b is better or worse at c than at d)"]
    verdicts = {c.judgement.verdict for effect in effects for c in effect.contrasts}
    if family.margin is not None:
        parts.append(
            f"{EQUIVALENT} within {sign}{family.margin:g} (the whole {percents(family.level)} "
            "interval, simultaneous by Bonferroni)"
        )
    if UNDECIDED in verdicts:
        how = "" if family.margin is None else f" +n: about n more seeds show {family.margin:g}"
        parts.append(f"{UNDECIDED} undecided{how and f'{how} with {100 * POWER:g}% power'}")
    if NOT_TESTABLE in verdicts:
        parts.append(f"{NOT_TESTABLE} not testable")
    yield f"{', '.join(parts)}."
    if not contrasts_only and any(len(effect.contrasts) > 1 for effect in effects):
        yield "as a whole: the smallest p of an effect, adjusted over its own contrasts only."
