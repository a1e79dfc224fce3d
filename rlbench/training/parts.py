"""The networks and components of one run, put together."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from rlbench.training import border
from rlbench.training.base_policy import load_base_policy, precision
from rlbench.training.distribution import Distribution
from rlbench.training.seeding import seed_everything
from rlbench.types import RewardContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from rlbench.training.recorder import Recorder
    from rlbench.training.spec import RunSpec
    from rlbench.types import Completions, KLController, Prompts, Reward, Task


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a run is made of. What nobody needs is None and never computed."""

    spec: RunSpec
    task: Task
    reward: Reward
    estimator: Callable[..., Any]
    loss: Callable[..., Any]
    controller: KLController
    policy: Any  # a torch.nn.Module that is a Network; so are the next two
    base: Any  # frozen
    critic: Any | None
    distribution: Distribution

    @property
    def kl_kind(self) -> str | None:
        """The KL estimator of the penalty; None without a penalty."""
        kind = self.spec.selections["kl"].options.get("estimator")
        return None if kind is None else str(kind)

    @property
    def kl_place(self) -> str | None:
        """Where the penalty goes, "loss" or "reward"; None without a penalty."""
        place = self.spec.selections["kl"].options.get("place")
        return None if place is None else str(place)

    def rewards(self, prompts: Prompts, completions: Completions) -> Tensor:
        """What the policy is trained on: (B,), in the run's precision."""
        chosen = self.spec.selections["reward"]
        found = border.call(chosen, lambda: self.reward.score(prompts, completions))
        return border.rewards(chosen, found, len(prompts), precision(self.spec.settings))

    def true_scores(self, prompts: Prompts, completions: Completions) -> Tensor:
        """What the task says: (B,), in float64: it is averaged for people, not trained on."""
        chosen = self.spec.selections["task"]
        found = border.call(chosen, lambda: self.task.score(prompts, completions))
        return border.rewards(chosen, found, len(prompts), torch.float64)


def assemble(spec: RunSpec, recorder: Recorder) -> Parts:
    """Build everything that a run needs, the base policy first."""
    selections = spec.selections
    task: Task = selections["task"].create()
    model = selections["model"].create()
    base = load_base_policy(spec, task, model, recorder)
    # From here on the global generators are the run's own, whether or not the base was cached.
    seed_everything("run", spec.seed)
    policy = copy.deepcopy(base).requires_grad_(requires_grad=True)
    critic = None
    if spec.needs("values"):
        critic = model.critic(task.vocabulary, base).to(precision(spec.settings))
    reward: Reward = selections["reward"].create()
    context = RewardContext(task=task, seed=spec.seed, cache=recorder.base_folder)
    border.call(selections["reward"], lambda: reward.prepare(context))
    return Parts(
        spec=spec,
        task=task,
        reward=reward,
        estimator=selections["estimator"].component.load(),
        loss=selections["loss"].component.load(),
        controller=selections["kl"].create(),
        policy=policy,
        base=base,
        critic=critic,
        distribution=Distribution.of(spec.settings),
    )
