"""What cells are compared by: the score, or another number of their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rlbench.errors import UsageError

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


SCORE = Metric("score", "score")

_KEYS = {
    "score": "score",
    "reward_mean": "reward",
    "kl_nats": "kl",
    "entropy": "entropy",
    "length": "length",
    "tokens": "tokens",
    "wall_s": "wall_s",
}
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
    if name not in _KEYS:
        raise UsageError.unknown("metric", name, _KEYS)
    way = direction or _DIRECTIONS.get(name)
    if way is None:
        raise UsageError(
            f"metric {name!r}: neither more nor less of it is better as such; say which, "
            "--direction higher or --direction lower"
        )
    return Metric(name, _KEYS[name], way == "higher", direction is not None)
