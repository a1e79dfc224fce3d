"""Settings of the trainer: everything that moves the numbers and is no component."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rlbench.errors import UsageError
from rlbench.training import elsewhere

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlbench.plugin.signature import Option

Aggregation = Literal[
    "token_mean",
    "token_mean_local",
    "token_sum",
    "seq_mean_token_mean",
    "seq_mean_token_sum",
    "seq_mean_token_sum_norm",
    "token_sum_norm",
    "prompt_mean",
]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One value for each ``--set name=value``.

    Attributes:
        updates: Rollouts, each followed by its optimiser steps.
        prompts: Prompts drawn for a rollout.
        group_size: Completions sampled for each prompt.
        epochs: Passes over a rollout.
        minibatches: Optimiser steps in an epoch; each takes whole groups.
        microbatches: Forward passes of an optimiser step; more take less memory. A loss that needs
            the whole step takes one.
        lr: Learning rate of the policy (Adam).
        critic_lr: Learning rate of the critic; none means the same as lr.
        lr_schedule: Course of both learning rates after the warm-up.
        warmup: Updates over which the learning rates rise linearly from 0.
        max_grad_norm: Gradients longer than this are scaled down to it.
        temperature: Logits are divided by it, in sampling and in scoring.
        top_p: Sample from the smallest set of tokens with this much probability.
        top_k: Sample from so many most probable tokens; 0 means all.
        aggregation: How losses per token become one number.
        horizon: What aggregations that end in ``_norm`` divide by; none means the length limit of
            a completion.
        count_masked_rows: Count completions that could not be scored in means over completions.
        entropy_coef: Weight of the entropy bonus.
        eval_every: Updates between two evaluations.
        eval_prompts: Held-out prompts of an evaluation.
        base_score: The base policy is trained on demonstrations until it scores this much.
        base_updates: The most optimiser steps that may take.
        base_seed: Seed of the base policy; none means the run's own seed.
        precision: Floating-point type of networks and losses.
    """

    updates: Annotated[int, "[1, inf)"] = 225
    prompts: Annotated[int, "[1, inf)"] = 64
    group_size: Annotated[int, "[1, inf)"] = 8
    epochs: Annotated[int, "[1, inf)"] = 2
    minibatches: Annotated[int, "[1, inf)"] = 4
    microbatches: Annotated[int, "[1, inf)"] = 1
    lr: Annotated[float, "(0, inf)"] = 5e-4
    critic_lr: Annotated[float, "(0, inf)"] | None = None
    lr_schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup: Annotated[int, "[0, inf)"] = 0
    max_grad_norm: Annotated[float, "(0, inf)"] = 1.0
    temperature: Annotated[float, "(0, inf)"] = 1.0
    top_p: Annotated[float, "(0, 1]"] = 1.0
    top_k: Annotated[int, "[0, inf)"] = 0
    aggregation: Aggregation = "token_mean"
    horizon: Annotated[int, "[1, inf)"] | None = None
    count_masked_rows: bool = False
    entropy_coef: Annotated[float, "[0, inf)"] = 0.0
    eval_every: Annotated[int, "[1, inf)"] = 25
    eval_prompts: Annotated[int, "[1, inf)"] = 1000
    base_score: Annotated[float, "[0, 1]"] = 0.5
    base_updates: Annotated[int, "[0, inf)"] = 3000
    base_seed: Annotated[int, "[0, inf)"] | None = None
    precision: Literal["float32", "float64"] = "float32"

    def __post_init__(self) -> None:
        for option in self.options():
            object.__setattr__(self, option.name, option.check(getattr(self, option.name)))

    @staticmethod
    @cache
    def options() -> tuple[Option, ...]:
        """Name, type, range and default of every setting, read from this class."""
        from rlbench.plugin.signature import read_options

        found = read_options(Path(__file__), "Settings", "trainer setting")
        values = elsewhere.VALUES
        return tuple(replace(option, elsewhere=values.get(option.name, {})) for option in found)

    @classmethod
    def option(cls, name: str) -> Option:
        """Find one setting; UsageError with what to write if there is none."""
        for option in cls.options():
            if option.name == name:
                return option
        known = [option.name for option in cls.options()]
        advice = elsewhere.advice(name, known)
        if advice:
            raise UsageError(f"unknown setting {name!r}; write {advice}")
        raise UsageError.unknown("setting", name, known)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Settings:
        """Build from some values; the rest are defaults."""
        return cls(**{cls.option(name).name: value for name, value in values.items()})

    def values(self) -> dict[str, Any]:
        """All settings, in the order of their declaration."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
