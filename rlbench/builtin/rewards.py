"""Rewards: what the policy is trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from rlbench.types import Completions, Prompts, RewardContext, Task


class TrueReward:
    """The task's own score, ``reward = score``: training and evaluation want the same.

    A completion that the task can't score, NaN, takes no part in anything.
    """

    _task: Task

    def prepare(self, context: RewardContext) -> None:
        """Keep the task."""
        self._task = context.task

    def score(self, prompts: Prompts, completions: Completions) -> Tensor:
        """Score as the task does: (B,)."""
        return self._task.score(prompts, completions)
