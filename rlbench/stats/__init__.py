"""Statistics of seeded comparisons: arrays in, numbers out.

The unit is the seed. Nothing here knows of runs or tables; whoever calls has already decided what a
failed run scores. A value that is not finite is refused, never dropped and never imputed. The same
call gives the same bytes, in whatever order the seeds come.

- One cell: `mean_interval`, `iqm`, `iqm_interval`, `failure_interval`.
- Two cells: `paired_difference`, `unpaired_difference`, `sign_flip_test`,
  `probability_of_improvement`.
- A family of comparisons: `holm` (up to 6 seeds), `max_t` (from 7).
- A grid of cells: `contrast`, `contrast_values`.
- A suite of tasks: `suite_interval`, `new_tasks_interval`, `optimality_gap`,
  `performance_profile`, `bootstrap_ranks`; two algorithms over one: `suite_difference`,
  `suite_improvement`.
- How many seeds: `pairs_needed`, `pocock_looks`, `e_process`, `sign_e_process`,
  `confidence_sequence`.
"""

from __future__ import annotations

from rlbench.stats.contrasts import contrast, contrast_values
from rlbench.stats.failures import failure_interval
from rlbench.stats.improvement import probability_of_improvement
from rlbench.stats.interval import Interval, mean_interval
from rlbench.stats.multiplicity import holm, max_t
from rlbench.stats.new_tasks import new_tasks_interval
from rlbench.stats.paired import Difference, paired_difference, sign_flip_test
from rlbench.stats.power import pairs_needed
from rlbench.stats.profiles import optimality_gap, performance_profile
from rlbench.stats.ranks import Rank, bootstrap_ranks
from rlbench.stats.repeated import repeated_t_level
from rlbench.stats.robust import iqm, iqm_interval
from rlbench.stats.sequential import (
    confidence_sequence,
    e_process,
    pocock_looks,
    sign_e_process,
)
from rlbench.stats.suite import suite_interval
from rlbench.stats.suite_difference import SuiteDifference, suite_difference
from rlbench.stats.suite_improvement import suite_improvement
from rlbench.stats.unpaired import unpaired_difference

__all__ = [
    "Difference",
    "Interval",
    "Rank",
    "SuiteDifference",
    "bootstrap_ranks",
    "confidence_sequence",
    "contrast",
    "contrast_values",
    "e_process",
    "failure_interval",
    "holm",
    "iqm",
    "iqm_interval",
    "max_t",
    "mean_interval",
    "new_tasks_interval",
    "optimality_gap",
    "paired_difference",
    "pairs_needed",
    "performance_profile",
    "pocock_looks",
    "probability_of_improvement",
    "repeated_t_level",
    "sign_e_process",
    "sign_flip_test",
    "suite_difference",
    "suite_improvement",
    "suite_interval",
    "unpaired_difference",
]
