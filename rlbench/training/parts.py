"""The networks and components of one run, put together."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlbench.errors import ComponentError
from rlbench.training import border
from rlbench.training.base_policy import load_base_policy, precision
from rlbench.training.distribution import Distribution
from rlbench.training.guarded import GuardedReward, GuardedTask
from rlbench.training.seeding import seed_everything
from rlbench.types import RewardContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from rlbench.training.recorder import Recorder
    from rlbench.training.spec import RunSpec
    from rlbench.types import Completions, KLController, Prompts


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a run is made of. What nobody needs is None and never computed."""

    spec: RunSpec
    task: GuardedTask
    reward: GuardedReward
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
        """What the policy is trained on: (B,), in the run's precision.

        Raises:
            ComponentError: A reward is too large for that precision.
        """
        exact = self.reward.score(prompts, completions)
        rounded = exact.to(precision(self.spec.settings))
        if bool(rounded.isinf().any()):
            raise ComponentError(
                f"{border.name_of(self.spec.selections['reward'])}: score returned "
                f"{float(exact[rounded.isinf()][0]):g}, too large for "
                f"precision={self.spec.settings.precision}; scale it down"
            )
        return rounded

    def true_scores(self, prompts: Prompts, completions: Completions) -> Tensor:
        """What the task says: (B,), in float64: it is averaged for people, not trained on."""
        return self.task.score(prompts, completions)


def assemble(spec: RunSpec, recorder: Recorder) -> Parts:
    """Build everything that a run needs, the base policy first."""
    selections = spec.selections
    task = GuardedTask(selections["task"])
    model = border.call(selections["model"], selections["model"].create)
    base = load_base_policy(spec, task, model, recorder)
    # From here on the global generators are the run's own, whether or not the base was cached.
    seed_everything("run", spec.seed)
    policy = copy.deepcopy(base).requires_grad_(requires_grad=True)
    critic = None
    if spec.needs("values"):
        critic = border.call(selections["model"], lambda: model.critic(task.vocabulary, base)).to(
            precision(spec.settings)
        )
    reward = GuardedReward(selections["reward"])
    reward.prepare(RewardContext(task=task, seed=spec.seed, cache=recorder.base_folder))
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
