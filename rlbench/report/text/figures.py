"""Numbers of comparisons as text: differences, p-values, half-widths, levels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rlbench.report.text.layout import MISSING, fixed

if TYPE_CHECKING:
    from rlbench.stats import Interval


def signed(value: float, places: int) -> str:
    """Write a difference; what rounds to zero has no sign."""
    text = fixed(value, places)
    return text if text.startswith("-") or float(text) == 0 else f"+{text}"


def p_text(p: float, alpha: float) -> str:
    """Write a p-value in three places, or so many that rounding does not carry it across alpha.

    No p-value is zero: below a thousandth, or a tenth of a smaller alpha, that bound is written.
    """
    least = 0.001
    while least >= alpha and least > 1e-12:
        least /= 10
    if p < least:
        return f"<{least:.{round(-math.log10(least))}f}"
    places = 3
    while places < 12 and (round(p, places) < alpha) != (p < alpha):
        places += 1
    return f"{p:.{places}f}"


def half_width(interval: Interval, places: int) -> str:
    """Write half the width of an interval, or why there is none."""
    if interval.n == 1:
        return "n=1"
    half = interval.half_width
    if half is None:
        return "all equal" if interval.degenerate else MISSING
    if half and float(fixed(half, places)) == 0:
        return f"<{10**-places:.{places}f}"  # small is not certain
    return fixed(half, places)


def percents(level: float) -> str:
    """Write a confidence level."""
    return f"{100 * level:g}%"
