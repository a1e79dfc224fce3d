"""How p-values of a family were computed, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.report.compare.family import BETTER, EQUIVALENT, WORSE
from rlbench.report.text.figures import percents

if TYPE_CHECKING:
    from rlbench.report.compare.family import Family

_MAX_T = "max-t with joint sign flips"


def of_tests(family: Family, what: str, against: str = "", few: str = "paired t test") -> str:
    """Say which test and which correction gave the p-values.

    Args:
        family: All tests of a table.
        what: What one of them is: ``comparison`` or ``contrast``.
        against: What stands behind their number, such as ``with the baseline``.
        few: What tests those that have too few pairs for flips.
    """
    from rlbench.stats.mixed import MAX_T_FROM

    count = family.size
    against = f" {against}" if against else ""
    if not count:
        return f"p: no {what} can be tested."
    over = f"of the one {what}" if count == 1 else f"over the {count:,} {what}s"
    over += against
    test = _of_few(family, few)
    if family.joint:
        rule = "sign flips" if count == 1 else _MAX_T
        source = "" if count == 1 else "Westfall and Young; "
        return (
            f"p: two-sided, {rule} {over} ({source}from {MAX_T_FROM} pairs)"
            f"{_least_possible(family)}."
        )
    if family.many:
        return (
            f"p: two-sided, {over}: {_MAX_T} for the {family.many:,} with {MAX_T_FROM} pairs or "
            f"more (Westfall and Young), {test} adjusted by Holm for the others, each kind at "
            "its share of the error rate."
        )
    adjusted = "" if count == 1 else ", adjusted by Holm"
    return f"p: two-sided {test}{adjusted} {over}{_assumption(family)}."


def of_claims(family: Family, difference: str, sign: str) -> list[str]:
    """Say when something is better, worse or equivalent.

    Args:
        family: All tests of a table.
        difference: What the table calls a difference.
        sign: How a plus-minus sign is written.
    """
    parts = [f"verdict: p decides: {BETTER} better, {WORSE} worse (p < {family.alpha:g})"]
    if family.margin is None:
        return [*parts, "nothing is called equivalent without --margin"]
    return [
        *parts,
        f"{EQUIVALENT} equivalent: the {percents(family.level)} interval of {difference}, "
        f"simultaneous by Bonferroni, lies inside {sign}{family.margin:g}",
    ]


def _of_few(family: Family, few: str) -> str:
    """Name the test of those that are not flipped."""
    if family.apart == family.size - family.many:
        return "Welch's t test"
    return f"{few} and Welch's" if family.apart else few


def _assumption(family: Family) -> str:
    """Say what tests of few pairs rest on."""
    if family.apart or (family.fewest or 0) >= 6:
        return ""
    return (
        f"; it takes differences to be near normal, which {family.fewest} pairs can't show: flips "
        "of signs could not reject with fewer than 6"
    )


def _least_possible(family: Family) -> str:
    """Say how small p can be at all, where flips of few seeds bound it."""
    if family.fewest is None or family.fewest > 10:
        return ""
    return f"; of {family.fewest} pairs none is below {2.0 ** (1 - family.fewest):.2g}"
