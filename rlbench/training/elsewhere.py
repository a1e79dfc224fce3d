"""Trainer settings by the names and values that other libraries have.

They are no aliases: asking for one is refused with what to write here. Options of components are
told by whoever registers the component, see `rlbench.hookspecs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_PASSES = "in which epochs are passes over one rollout"

NAMES: Mapping[str, tuple[str, ...]] = {
    "updates, the number of rollouts, " + _PASSES: (
        "total_epochs",
        "total_training_steps",
        "max_steps",
        "steps",
        "num_train_epochs",
        "num_episodes",
    ),
    "prompts, the number drawn for a rollout": ("train_batch_size", "rollout_batch_size"),
    "group_size": (
        "num_generations",
        "n",
        "n_samples_per_prompt",
        "num_samples_per_prompt",
        "rollout_n",
        "num_return_sequences",
    ),
    "epochs": ("num_iterations", "ppo_epochs", "num_ppo_epochs", "max_epochs"),
    "minibatches, the number of optimiser steps in an epoch, not their size": (
        "mini_batch_size",
        "ppo_mini_batch_size",
        "num_mini_batches",
    ),
    "microbatches, the number of parts of an optimiser step, not their size": (
        "micro_batch_size",
        "ppo_micro_batch_size",
        "ppo_micro_batch_size_per_gpu",
        "micro_train_batch_size",
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
    ),
    "lr": ("learning_rate", "actor_lr", "actor_learning_rate"),
    "critic_lr": ("critic_learning_rate",),
    "lr_schedule": ("lr_scheduler", "lr_scheduler_type", "lr_decay_style"),
    "warmup, the number of updates": ("warmup_steps", "lr_warmup_steps", "lr_warmup_iters"),
    "max_grad_norm": ("grad_clip", "clip_grad", "max_norm"),
    "aggregation": ("loss_agg_mode", "loss_aggregation", "loss_reduction"),
    "aggregation for what TRL's means, -l for a loss": ("loss_type",),
    "horizon, with an aggregation that ends in _norm": ("loss_scale_factor",),
    "entropy_coef": ("entropy_coeff", "entropy_loss_coef", "ent_coef"),
    "eval_every, the number of updates": ("test_freq", "eval_steps", "eval_freq"),
    "precision": ("dtype", "torch_dtype"),
    "-s, such as -s 0-4": ("seed", "seeds"),
    "-e NAME": ("adv_estimator", "advantage_estimator"),
    "-l NAME": ("loss_mode", "policy_loss", "policy_loss_type"),
}
"""What to write, starting with the setting or flag, for each of some names."""

VALUES: Mapping[str, Mapping[str, str]] = {
    "aggregation": {
        "grpo": "seq_mean_token_mean",
        "dapo": "token_mean",
        "bnpo": "token_mean_local",
        "dr_grpo": "seq_mean_token_sum_norm",
        "token-mean": "token_mean",
        "token-sum": "token_sum",
        "seq-mean-token-mean": "seq_mean_token_mean",
        "seq-mean-token-sum": "seq_mean_token_sum",
        "seq-mean-token-sum-norm": "seq_mean_token_sum_norm for verl's, or token_sum_norm for "
        "that of ROLL and of older copies of verl, with no mean over rows",
    }
}
"""For some settings, what to write for each of some values."""


def advice(name: str, known: Collection[str]) -> str | None:
    """Say what to write for a setting of another library.

    Args:
        name: The setting as it is called there, with or without the sections it stands in:
            ``optim.learning_rate``.
        known: The settings here.

    Returns:
        What to write, and what it means where that differs; None for a name nobody knows.
    """
    last = name.rpartition(".")[2].lower().replace("-", "_")
    if last != name and last in known and "." in name:
        return last
    return next((text for text, names in NAMES.items() if last in names), None)


def names_of(setting: str) -> list[str]:
    """List what others call a setting."""
    return [
        name
        for text, names in NAMES.items()
        if text.replace(",", " ").split()[0] == setting
        for name in names
    ]
