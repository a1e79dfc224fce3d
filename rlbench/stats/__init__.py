"""Statistics of seeded comparisons: arrays in, numbers out.

The unit is the seed. Nothing here knows of runs, tasks or tables; whoever calls has already decided
what a failed run scores.
"""

from __future__ import annotations

from rlbench.stats.interval import Interval, mean_interval

__all__ = ["Interval", "mean_interval"]
