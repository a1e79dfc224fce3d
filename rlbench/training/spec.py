"""What one run is: a component of each kind, settings and a seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from rlbench.errors import UsageError
from rlbench.plugin.selection import Selection, parse
from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlbench.plugin.registry import Registry
    from rlbench.types import Kind

DEFAULT_SELECTIONS: Mapping[Kind, str] = {
    "estimator": "group",
    "loss": "clip",
    "kl": "none",
    "task": "addition",
    "reward": "true",
    "model": "lstm",
}
NO_ROWS = ("token_mean", "token_sum", "token_sum_norm")  # aggregations that count no completions
CLASSES: tuple[Kind, ...] = ("kl", "task", "reward", "model")  # the rest are functions


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything that decides the numbers of a run."""

    selections: Mapping[Kind, Selection]
    settings: Settings
    seed: int

    def to_payload(self) -> dict[str, Any]:
        """Plain data from which another process builds the same run."""
        return {
            "selections": {kind: chosen.text() for kind, chosen in self.selections.items()},
            "settings": self.settings.values(),
            "seed": self.seed,
        }

    @classmethod
    def from_payload(cls, registry: Registry, payload: Mapping[str, Any]) -> RunSpec:
        """Build what `to_payload` described."""
        return cls(
            selections={
                cast("Kind", kind): parse(registry, cast("Kind", kind), text)
                for kind, text in payload["selections"].items()
            },
            settings=Settings.from_values(payload["settings"]),
            seed=payload["seed"],
        )

    def needs(self, what: str) -> bool:
        """Whether any component of this run declared a need."""
        return any(what in chosen.component.needs for chosen in self.selections.values())


def check(spec: RunSpec) -> None:
    """Refuse settings that can't work with these components, before anything runs.

    Raises:
        UsageError: Names the setting, the component and what would work.
    """
    settings, estimator = spec.settings, spec.selections["estimator"]
    if estimator.component.group_relative and settings.group_size < 2:
        raise UsageError(
            f"group_size={settings.group_size} with estimator {estimator.name!r}: it compares the "
            "completions of one prompt, so it needs at least 2 of them; set group_size=2 or more"
        )
    if settings.minibatches > settings.prompts:
        raise UsageError(
            f"minibatches={settings.minibatches} with prompts={settings.prompts}: a step takes "
            f"whole groups, so minibatches can be 1 to {settings.prompts}"
        )
    if settings.critic_lr is not None and not spec.needs("values"):
        raise UsageError(
            f"critic_lr={settings.critic_lr} with estimator {estimator.name!r}: there is no critic "
            "to train; leave critic_lr out"
        )
    if settings.horizon is not None and not settings.aggregation.endswith("_norm"):
        raise UsageError(
            f"horizon={settings.horizon} with aggregation={settings.aggregation}: only the two "
            "that end in _norm divide by it; leave horizon out"
        )
    if settings.count_masked_rows and settings.aggregation in NO_ROWS:
        raise UsageError(
            f"count_masked_rows=true with aggregation={settings.aggregation}: it divides by no "
            "number of completions, so this changes nothing; leave count_masked_rows out"
        )
    base_updates = settings.option("base_updates")
    if settings.base_score == 0 and settings.base_updates != base_updates.default:
        raise UsageError(
            f"base_updates={settings.base_updates} with base_score=0: the base policy is not "
            "trained at all; leave base_updates out"
        )
    if settings.warmup >= settings.updates and settings.warmup > 0:
        raise UsageError(
            f"warmup={settings.warmup} with updates={settings.updates}: the learning rate would "
            f"never be reached; warmup can be 0 to {settings.updates - 1}"
        )
    for kind, chosen in spec.selections.items():
        # Options that only make sense together are refused by the constructor. Building a component
        # may import torch, so one with default options is taken to be right.
        if kind == "kl" or (kind in CLASSES and chosen.label != chosen.name):
            chosen.create()
