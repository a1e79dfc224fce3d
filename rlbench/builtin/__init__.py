"""The components that come with rlbench, registered like those of any other plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.builtin import elsewhere
from rlbench.hookspecs import hookimpl

if TYPE_CHECKING:
    from rlbench.hookspecs import Register


@hookimpl
def rlbench_register_estimators(register: Register) -> None:
    """Register the built-in advantage estimators."""
    module = f"{__name__}.estimators"
    _estimators_of_groups(register, module)
    _estimators_of_batches(register, module)
    _estimators_with_a_critic(register, module)


def _estimators_of_groups(register: Register, module: str) -> None:
    register(
        "group",
        f"{module}.group:group",
        summary="Less the group's mean, over its sd: GRPO (Shao 2024).",
        aliases=("grpo",),
        group_relative=True,
        only_if={"ddof": "std=true", "eps": "std=true"},
        elsewhere={
            **elsewhere.GROUP,
            "group_norm": "group:eps=1e-9,kl=after",
            "grpo_vectorized": "group:singleton=raw",
            "standard": "group:ddof=0,eps=1e-8",
            "dapo": "group, with -l clip:eps_high=0.28 and --set aggregation=token_mean",
            "gdpo": "group for one reward; several, each normalised by itself, are not here",
            "gigpo": "group to compare completions; comparing steps is not here",
        },
    )
    register(
        "dr_grpo",
        f"{module}.group:dr_grpo",
        summary="Reward less its group's mean: Dr. GRPO (Liu 2025).",
        aliases=("centered",),
        group_relative=True,
    )
    register(
        "rloo",
        f"{module}.group:rloo",
        summary="Reward less the others' mean: RLOO (Ahmadian 2024).",
        aliases=("rloo_vectorized",),
        group_relative=True,
    )
    register(
        "opo",
        f"{module}.group:opo",
        summary="Reward less a mean weighted by length: OPO (Hao 2025).",
        group_relative=True,
        elsewhere=dict.fromkeys(
            ("optimal_token_baseline", "tir_optimal_token_baseline"),
            "opo for one baseline a completion; one a token is not here",
        ),
    )
    register(
        "group_mean_batch_std",
        f"{module}.group:group_mean_batch_std",
        summary="Group's mean, batch's sd: Lite PPO (Liu 2025).",
        aliases=("lite_ppo",),
        group_relative=True,
    )


def _estimators_of_batches(register: Register, module: str) -> None:
    whitened = {"ddof": "whiten=true", "eps": "whiten=true"}
    register(
        "reinforce",
        f"{module}.reinforce:reinforce",
        summary="Reward less the batch's mean, or raw (Williams 1992).",
        only_if={"ddof": "std=true", "eps": "std=true"},
        elsewhere={"raw_reward": "reinforce:baseline=none"},
    )
    register(
        "reinforce_pp",
        f"{module}.reinforce:reinforce_pp",
        summary="Returns whitened over the batch: REINFORCE++ (Hu 2025).",
        aliases=("reinforce_plus_plus",),
        only_if=whitened,
        elsewhere={"reinforce++": "reinforce_pp"},
    )
    register(
        "reinforce_pp_baseline",
        f"{module}.reinforce:reinforce_pp_baseline",
        summary="Less the group's mean, then whitened: REINFORCE++.",
        aliases=("reinforce_plus_plus_baseline",),
        group_relative=True,
        exceptions={
            "equal_rewards": "the mean over the batch's tokens is subtracted after the group's, "
            "which gives a group of equal rewards one small number everywhere"
        },
        only_if=whitened,
        elsewhere={"reinforce_baseline": "reinforce_pp_baseline:kl=after,ddof=0"},
    )
    register(
        "remax",
        f"{module}.reinforce:remax",
        summary="Reward less that of the greedy answer: ReMax (Li 2023).",
        needs=("greedy_reward",),
    )


def _estimators_with_a_critic(register: Register, module: str) -> None:
    critic = ("values", "last_value")
    whitened = {"ddof": "whiten=true", "eps": "whiten=true"}
    register(
        "gae",
        f"{module}.critic:gae",
        summary="Generalised advantage estimation (Schulman 2015).",
        needs=critic,
        only_if=whitened,
        elsewhere={**elsewhere.GAE, "ppo": "gae, with -l clip"},
    )
    register(
        "mc_returns",
        f"{module}.critic:mc_returns",
        summary="Return less the critic's value: GAE with lambda 1.",
        needs=critic,
        only_if=whitened,
    )
    register(
        "decoupled_gae",
        f"{module}.critic:decoupled_gae",
        summary="GAE, another lambda for the critic: VC-PPO (Yuan 2025).",
        aliases=("vc_ppo",),
        needs=critic,
        only_if=whitened,
        elsewhere=elsewhere.DECOUPLED_GAE,
    )
    register(
        "length_adaptive_gae",
        f"{module}.critic:length_adaptive_gae",
        summary="GAE with lambda by length: VAPO (Yue 2025).",
        aliases=("vapo",),
        needs=critic,
        only_if=whitened,
    )
    register(
        "group_gae",
        f"{module}.critic:group_gae",
        summary="GAE, then standardised in the group by position.",
        needs=critic,
        group_relative=True,
        elsewhere=elsewhere.GAE,
    )


@hookimpl
def rlbench_register_losses(register: Register) -> None:
    """Register the built-in policy losses."""
    module = f"{__name__}.losses"
    _losses_of_tokens(register, module)
    _losses_with_a_clip(register, module)
    _losses_of_sequences(register, module)
    _losses_that_select(register, module)


def _losses_of_tokens(register: Register, module: str) -> None:
    register(
        "pg",
        f"{module}.plain:pg",
        summary="Plain policy gradient: REINFORCE (Williams 1992).",
        aliases=("gpg",),
        elsewhere={"reinforce": "pg", "policy_gradient": "pg", "vanilla": "pg for ROLL's"},
    )
    register(
        "importance",
        f"{module}.plain:importance",
        summary="Unbounded importance ratio (Kakade and Langford 2002).",
        aliases=("importance_sampling",),
    )
    register(
        "penalty",
        f"{module}.plain:penalty",
        summary="A KL penalty to the old policy instead of a clip (Schulman 2017).",
        aliases=("ppo_penalty",),
    )
    register(
        "cispo",
        f"{module}.weighting:cispo",
        summary="Policy gradient times the clipped ratio: CISPO (MiniMax 2025).",
        exceptions={"value_gradient": "the ratio is a detached weight"},
        elsewhere=elsewhere.CISPO,
    )
    register(
        "sapo",
        f"{module}.weighting:sapo",
        summary="A gradient that fades as the ratio leaves 1: SAPO (Gao 2025).",
        elsewhere=elsewhere.SAPO,
    )


def _losses_with_a_clip(register: Register, module: str) -> None:
    register(
        "clip",
        f"{module}.clipping:clip",
        summary="Clipped importance ratio: PPO (Schulman 2017).",
        aliases=("ppo_clip",),
        elsewhere={
            **elsewhere.CLIP,
            "vanilla": "clip:dual=3 for verl's",
            "dual_clip": "clip:dual=3",
            "clip_higher": "clip:eps_high=0.28",
            "regular": "clip",
            "ppo": "clip, with -e gae",
            "grpo": "clip, with -e group; for TRL's loss_type --set "
            "aggregation=seq_mean_token_mean",
            "dr_grpo": "clip, with -e dr_grpo; for TRL's loss_type --set "
            "aggregation=seq_mean_token_sum_norm",
            "dapo": "clip:eps_high=0.28, with -e group and --set aggregation=token_mean; TRL's "
            "loss_type is the aggregation alone",
            "bnpo": "clip, with --set aggregation=token_mean_local",
            "bypass_mode": "clip; the ratio here always is the one to the policy that sampled",
        },
    )
    register(
        "two_sided",
        f"{module}.clipping:two_sided",
        summary="A clip that bounds negative advantages too: INTELLECT-2 (2025).",
        aliases=("two_sided_clip",),
        elsewhere=elsewhere.TWO_SIDED,
    )


def _losses_of_sequences(register: Register, module: str) -> None:
    register(
        "gspo",
        f"{module}.sequence:gspo",
        summary="Clipped ratio of the whole completion: GSPO (Zheng 2025).",
        elsewhere={
            **elsewhere.BOUNDS,
            "luspo": "gspo, with --set aggregation=seq_mean_token_sum",
            "gepo": "gspo for a ratio of whole completions; GEPO's over a group is not here",
            "vespo": "gspo for a ratio of whole completions; VESPO's weight of it is not here",
        },
    )
    register(
        "gspo_token",
        f"{module}.sequence:gspo_token",
        summary="The completion's ratio, an advantage a token (Zheng 2025).",
        exceptions={"value_gradient": "the ratio of the completion is a detached weight"},
        elsewhere=elsewhere.BOUNDS,
    )
    register(
        "gmpo",
        f"{module}.sequence:gmpo",
        summary="Geometric mean of clipped ratios: GMPO (Zhao 2025).",
        elsewhere={
            **elsewhere.BOUNDS,
            "geo_mean": "gmpo:eps=0.2, with --set aggregation=seq_mean_token_mean",
        },
    )


def _losses_that_select(register: Register, module: str) -> None:
    covariant = "tokens of high covariance give up a part of their loss, also on-policy"
    register(
        "clip_cov",
        f"{module}.selecting:clip_cov",
        summary="PPO's clip, less tokens of high covariance (Cui 2025).",
        needs=("whole_step",),
        exceptions={"on_policy_gradient": covariant},
        elsewhere=elsewhere.CLIP_COV,
    )
    register(
        "kl_cov",
        f"{module}.selecting:kl_cov",
        summary="Free ratio, with a penalty on high covariance (Cui 2025).",
        needs=("whole_step",),
        elsewhere=elsewhere.KL_COV,
    )


@hookimpl
def rlbench_register_kl_controllers(register: Register) -> None:
    """Register the built-in KL controllers."""
    module = f"{__name__}.kl"
    reference = ("ref_logp",)
    register("none", f"{module}.given:NoPenalty", summary="No penalty and no reference pass.")
    register(
        "fixed",
        f"{module}.given:Fixed",
        summary="A coefficient that never changes.",
        needs=reference,
        elsewhere=elsewhere.PENALTY | elsewhere.PENALTY_ALONE,
    )
    register(
        "schedule",
        f"{module}.given:Schedule",
        summary="From one coefficient to another, with a warm-up.",
        needs=reference,
        exceptions={"nan_ignored": "it counts updates, whatever was measured in them"},
        elsewhere=elsewhere.SCHEDULE,
    )
    register(
        "adaptive",
        f"{module}.feedback:Adaptive",
        summary="Doubles or halves the coefficient by a target (Schulman 2017).",
        needs=reference,
        elsewhere=elsewhere.ADAPTIVE,
    )
    register(
        "proportional",
        f"{module}.feedback:Proportional",
        summary="Moves the coefficient in proportion to the error (Ziegler 2019).",
        needs=reference,
        aliases=("ziegler", "adaptive_proportional"),
        elsewhere={
            **elsewhere.PROPORTIONAL,
            "target_kl": "proportional to steer the penalty (verl, TRL)",
        },
    )
    register(
        "pid",
        f"{module}.feedback:PID",
        summary="Steers to a target as a PID controller (Stooke 2020).",
        needs=reference,
        aliases=("pid_lagrangian",),
        elsewhere=elsewhere.STEERED,
    )
    register(
        "target_stop",
        f"{module}.stopping:TargetStop",
        summary="Ends an update early when the policy moved too far; no penalty.",
        aliases=("target_kl_stop",),
        elsewhere={
            **elsewhere.STOP,
            "target_kl": "target_stop to end updates early (CleanRL, Stable-Baselines3)",
        },
    )


@hookimpl
def rlbench_register_tasks(register: Register) -> None:
    """Register the built-in tasks."""
    module = f"{__name__}.tasks"
    register("addition", f"{module}:Addition", summary="Add two numbers; exact answers count.")
    register("sort", f"{module}:Sort", summary="Sort digits; partly right answers count partly.")


@hookimpl
def rlbench_register_rewards(register: Register) -> None:
    """Register the built-in rewards."""
    register("true", f"{__name__}.rewards:TrueReward", summary="The task's own score.")


@hookimpl
def rlbench_register_models(register: Register) -> None:
    """Register the built-in models."""
    register("lstm", f"{__name__}.models:LSTM", summary="A small LSTM language model.")


@hookimpl
def rlbench_register_engines(register: Register) -> None:
    """Register the built-in engines."""
    register(
        "local",
        f"{__name__}.engines:Local",
        summary="A fresh process on this machine for every run.",
    )
