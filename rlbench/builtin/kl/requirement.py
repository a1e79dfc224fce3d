"""Refuse settings of a KL controller that can't work, before a run starts."""

from __future__ import annotations

import math
from typing import Literal

from rlbench.errors import UsageError

Statistic = Literal["sequence", "token"]


def require(condition: bool, message: str) -> None:  # noqa: FBT001 - reads like an assertion
    """Raise UsageError with a message unless the condition holds."""
    if not condition:
        raise UsageError(message)


def require_number(name: str, value: float, *, above: bool = False) -> None:
    """Require a finite number of at least 0, or above 0."""
    low = "above 0" if above else "of at least 0"
    fits = 0 < value < math.inf or (value == 0 and not above)
    require(fits, f"{name}={value}: expected a finite number {low}")


def require_target(target: float) -> None:
    """Require a KL that can be aimed at."""
    require(0 < target < math.inf, f"target={target}: expected a finite KL above 0 nats")
