"""The course of the learning rates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlbench.training.settings import Settings


def factor(settings: Settings, update: int) -> float:
    """What the learning rates are multiplied by in an update.

    Linear from 1 / (warmup + 1) over the warm-up; then 1, or linear or half a cosine from 1 down to
    0, which would be reached one update after the last.

    Args:
        settings: ``lr_schedule``, ``warmup`` and ``updates``.
        update: Number of the update, from 1.

    Returns:
        A number above 0 and at most 1.
    """
    if update <= settings.warmup:
        return update / (settings.warmup + 1)
    done = (update - 1 - settings.warmup) / (settings.updates - settings.warmup)
    if settings.lr_schedule == "linear":
        return 1.0 - done
    if settings.lr_schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * done))
    return 1.0
