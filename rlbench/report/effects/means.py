"""The means of a grid for a terminal: those of all levels, or two factors crossed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.report.text import layout
from rlbench.report.text.figures import half_width, percents
from rlbench.report.text.folding import fold
from rlbench.report.text.headed import headed
from rlbench.report.text.spelling import printable

if TYPE_CHECKING:
    from rlbench.report.effects.contrasts import Mean, TaskEffects


def marginal(found: TaskEffects, sign: str, width: int) -> str:
    """List the mean of each level, factor by factor, the best first."""
    means = [mean for mean in found.means if len(mean.factors) == 1]
    places = layout.places_by_interval(mean.interval for mean in means)
    rows = [(mean.factors[0], mean.levels[0], _numbers(mean, places)) for mean in means]
    level = next((mean.interval.level for mean in means if mean.interval), None)
    half = sign if level is None else f"{sign}{percents(level)}"
    return headed(rows, ["level", "mean", half], [False, True, True], width)


def _numbers(mean: Mean, places: int) -> list[str]:
    if mean.interval is None:
        return [layout.MISSING, layout.MISSING]
    return [layout.fixed(mean.interval.mid, places), half_width(mean.interval, places)]


def crossed(found: TaskEffects, pair: tuple[int, int], sign: str, width: int) -> str:
    """Cross two factors, with the mean of each level at the end of its row or column.

    Args:
        found: The effects.
        pair: Numbers of the factors; the one with more levels makes the rows if that fits.
        sign: How a plus-minus sign is written.
        width: The most columns.

    Returns:
        The table; empty where it is too wide either way.
    """
    m, n = sorted(pair, key=lambda number: -len(found.grid.factors[number].levels))
    for rows, columns in ((m, n), (n, m)):
        text = _cross(found, rows, columns, sign)
        if layout.widest(text) <= width:
            return text
    return ""


def _cross(found: TaskEffects, m: int, n: int, sign: str) -> str:
    grid = found.grid
    one, other = grid.factors[m].name, grid.factors[n].name
    at = {frozenset(zip(mean.factors, mean.levels, strict=True)): mean for mean in found.means}
    down = [*(frozenset({(one, level)}) for level in grid.best_first(m)), frozenset()]
    across = [*(frozenset({(other, level)}) for level in grid.best_first(n)), frozenset()]
    shown = [at[key] for key in (a | b for a in down for b in across) if key in at]
    places = layout.places_by_interval(mean.interval for mean in shown)
    texts = [
        [fold(name, 24), *(_text(at.get(a | b), places, sign) for b in across)]
        for name, a in zip([*map(printable, grid.best_first(m)), "all"], down, strict=True)
    ]
    heads = [f"{one} \\ {other}", *grid.best_first(n), "all"]
    right = [False, *[True] * len(across)]
    return layout.simple([printable(head) for head in heads], texts, right)


def _text(mean: Mean | None, places: int, sign: str) -> str:
    """A mean with half its interval; empty where there is no cell."""
    if mean is None:
        return ""
    if mean.interval is None:
        return layout.MISSING
    number, half = _numbers(mean, places)
    return f"{number} ({half})" if mean.interval.half_width is None else f"{number} {sign}{half}"
