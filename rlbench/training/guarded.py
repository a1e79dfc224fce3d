"""Task and reward of a run behind the border: what they return is checked, what they get is a copy.

A task or a reward that writes into its arguments would otherwise change the mask that training
uses, or the prompts that people read.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from rlbench.errors import ComponentError
from rlbench.training import border
from rlbench.types import Completions, Prompts, Vocabulary

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from rlbench.plugin.selection import Selection
    from rlbench.types import RewardContext, Split


class GuardedTask:
    """A `rlbench.types.Task` that names its owner when something is wrong.

    Args:
        selection: The task that was chosen; it is built here.

    Raises:
        ComponentError: If it can't be built, or lacks what a task must have.
    """

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._task: Any = border.call(selection, selection.create)
        self.vocabulary: Vocabulary = self._attribute("vocabulary", Vocabulary)
        self.completion_limit: int = self._attribute("completion_limit", int)
        self.floor = float(self._attribute("floor", (int, float)))
        if self.completion_limit < 1:
            self._refuse(f"completion_limit is {self.completion_limit}, expected at least 1")
        if not math.isfinite(self.floor):
            self._refuse(f"floor is {self.floor}, expected a finite number")

    @property
    def component(self) -> Any:
        """The task itself."""
        return self._task

    def prompts(self, n: int, generator: Generator, split: Split) -> Prompts:
        """Draw prompts: exactly n."""
        found = border.call(self._selection, lambda: self._task.prompts(n, generator, split=split))
        return self._prompts(found, n)

    def demonstrations(self, n: int, generator: Generator) -> tuple[Prompts, Completions]:
        """Draw prompts with right completions: exactly n of both."""
        found = border.call(self._selection, lambda: self._task.demonstrations(n, generator))
        if not isinstance(found, tuple) or len(found) != 2:
            self._refuse(f"demonstrations returned {type(found).__name__}, expected a pair")
        prompts, completions = found
        if not isinstance(completions, Completions) or completions.ids.shape[0] != n:
            self._refuse(f"demonstrations did not return Completions of {n} rows")
        return self._prompts(prompts, n), completions

    def score(self, prompts: Prompts, completions: Completions) -> Tensor:
        """Score: (B,) in float64, NaN where it can't be."""
        return _score(self._selection, self._task, prompts, completions)

    def _prompts(self, found: Any, n: int) -> Prompts:
        if not isinstance(found, Prompts) or not len(found) == len(found.ids) == len(found.mask):
            self._refuse("prompts did not return Prompts with as many references as rows")
        if len(found) != n:
            self._refuse(f"{n} prompts were asked for, {len(found)} came")
        checked: Prompts = found
        return checked

    def _attribute(self, name: str, wanted: Any) -> Any:
        value = getattr(self._task, name, None)
        if not isinstance(value, wanted) or isinstance(value, bool):
            self._refuse(f"its attribute {name} is {value!r}")
        return value

    def _refuse(self, what: str) -> NoReturn:
        raise ComponentError(f"{border.name_of(self._selection)}: {what}")


class GuardedReward:
    """A `rlbench.types.Reward` that names its owner when something is wrong.

    Args:
        selection: The reward that was chosen; it is built here.
    """

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._reward: Any = border.call(selection, selection.create)

    @property
    def component(self) -> Any:
        """The reward itself."""
        return self._reward

    def prepare(self, context: RewardContext) -> None:
        """Get ready for a run."""
        border.call(self._selection, lambda: self._reward.prepare(context))

    def score(self, prompts: Prompts, completions: Completions) -> Tensor:
        """Reward: (B,) in float64, NaN where it can't be."""
        return _score(self._selection, self._reward, prompts, completions)


def _score(selection: Selection, scorer: Any, prompts: Prompts, completions: Completions) -> Tensor:
    """Have copies scored."""
    asked = Prompts(prompts.ids.clone(), prompts.mask.clone(), prompts.references)
    written = Completions(
        completions.ids.clone(), completions.mask.clone(), completions.truncated.clone()
    )
    found = border.call(selection, lambda: scorer.score(asked, written))
    return border.scores(selection, found, len(prompts)).to(torch.float64)
