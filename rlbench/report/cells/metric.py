"""What cells are compared by: the score, or another number of their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rlbench.errors import UsageError
from rlbench.grid.reading import COLUMNS

Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class Metric:
    """A number of a run, and which way is up.

    Attributes:
        name: Its column in tables for programs, such as ``score`` or ``kl_nats``.
        key: Its key in ``result.json``.
        higher: Whether more is better.
        asked: Whether somebody asked for this direction, whatever results say of theirs.
    """

    name: str
    key: str
    higher: bool = True
    asked: bool = False

    @property
    def sign(self) -> int:
        """1 where more is better, -1 where less is: better has the larger ``sign * value``."""
        return 1 if self.higher else -1


NORMALISED = "normalised score"  # what a score is called on the scale of its task
SCORE = Metric("score", "score")

_DIRECTIONS: dict[str, Direction] = {
    "score": "higher",
    "reward_mean": "higher",
    "kl_nats": "lower",
    "tokens": "lower",
    "wall_s": "lower",
}


def metric(name: str, direction: Direction | None = None) -> Metric:
    """Look up what is to be compared.

    Args:
        name: A column of `rlbench.results`.
        direction: Which way is better; None means what is usual for it.

    Raises:
        UsageError: There is no such number, or nobody can say which way is better.
    """
    known = [column for column in COLUMNS if column != "score_start"]  # before anything differs
    if name not in known:
        raise UsageError.unknown("metric", name, known)
    way = direction or _DIRECTIONS.get(name)
    if way is None:
        raise UsageError(
            f"metric {name!r}: neither more nor less of it is better as such; say which, "
            "--direction higher or --direction lower"
        )
    return Metric(name, COLUMNS[name], way == "higher", direction is not None)
