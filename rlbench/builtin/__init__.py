"""The components that come with rlbench, registered like those of any other plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        summary="Reward against its group's mean, in standard deviations: GRPO (Shao et al. 2024).",
        aliases=("grpo", "group_norm"),
        group_relative=True,
        only_if={"ddof": "std=true", "eps": "std=true"},
    )
    register(
        "dr_grpo",
        f"{module}.group:dr_grpo",
        summary="Reward against its group's mean, not divided: Dr. GRPO (Liu et al. 2025).",
        group_relative=True,
    )
    register(
        "rloo",
        f"{module}.group:rloo",
        summary="Reward against the mean of the other completions: RLOO (Ahmadian et al. 2024).",
        group_relative=True,
    )
    register(
        "opo",
        f"{module}.group:opo",
        summary="Reward against its group's mean, weighted by length: OPO (Hao et al. 2025).",
        group_relative=True,
    )
    register(
        "group_mean_batch_std",
        f"{module}.group:group_mean_batch_std",
        summary="Group's mean, batch's standard deviation: Lite PPO (Liu et al. 2025), Magistral.",
        aliases=("lite_ppo",),
        group_relative=True,
    )


def _estimators_of_batches(register: Register, module: str) -> None:
    whitened = {"ddof": "whiten=true", "eps": "whiten=true"}
    register(
        "reinforce",
        f"{module}.reinforce:reinforce",
        summary="Reward against the batch's mean, or raw (Williams 1992).",
        only_if={"ddof": "std=true", "eps": "std=true"},
    )
    register(
        "reinforce_pp",
        f"{module}.reinforce:reinforce_pp",
        summary="Returns of tokens, whitened over the batch: REINFORCE++ (Hu et al. 2025).",
        aliases=("reinforce_plus_plus",),
        only_if=whitened,
    )
    register(
        "reinforce_pp_baseline",
        f"{module}.reinforce:reinforce_pp_baseline",
        summary="Group's mean, then whitened over the batch: REINFORCE++ with baseline.",
        aliases=("reinforce_plus_plus_baseline", "reinforce_baseline"),
        group_relative=True,
        exceptions={
            "equal_rewards": "the mean over the batch's tokens is subtracted after the group's, "
            "which gives a group of equal rewards one small number everywhere"
        },
        only_if=whitened,
    )
    register(
        "remax",
        f"{module}.reinforce:remax",
        summary="Reward against that of the greedy completion: ReMax (Li et al. 2023).",
        needs=("greedy_reward",),
    )


def _estimators_with_a_critic(register: Register, module: str) -> None:
    critic = ("values", "last_value")
    whitened = {"ddof": "whiten=true", "eps": "whiten=true"}
    register(
        "gae",
        f"{module}.critic:gae",
        summary="Generalised advantage estimation with a critic, as in PPO (Schulman et al. 2015).",
        needs=critic,
        only_if=whitened,
    )
    register(
        "mc_returns",
        f"{module}.critic:mc_returns",
        summary="Observed return minus the critic's value: GAE with lambda 1.",
        needs=critic,
        only_if=whitened,
    )
    register(
        "decoupled_gae",
        f"{module}.critic:decoupled_gae",
        summary="GAE with one lambda for the policy and one for the critic: VC-PPO (Yuan 2025).",
        aliases=("vc_ppo",),
        needs=critic,
        only_if=whitened,
    )
    register(
        "length_adaptive_gae",
        f"{module}.critic:length_adaptive_gae",
        summary="GAE whose lambda grows with the completion's length: VAPO (Yue et al. 2025).",
        aliases=("vapo",),
        needs=critic,
        only_if=whitened,
    )
    register(
        "group_gae",
        f"{module}.critic:group_gae",
        summary="GAE first, then normalised over the group at each token position.",
        needs=critic,
        group_relative=True,
    )


@hookimpl
def rlbench_register_losses(register: Register) -> None:
    """Register the built-in policy losses."""
    module = f"{__name__}.losses"
    _losses_of_tokens(register, module)
    _losses_of_sequences(register, module)
    _losses_that_select(register, module)


def _losses_of_tokens(register: Register, module: str) -> None:
    register(
        "pg", f"{module}.plain:pg", summary="Plain policy gradient: REINFORCE (Williams 1992)."
    )
    register(
        "importance",
        f"{module}.plain:importance",
        summary="Unbounded importance ratio, what PPO bounds (Kakade and Langford 2002).",
        aliases=("importance_sampling",),
    )
    register(
        "penalty",
        f"{module}.plain:penalty",
        summary="A KL penalty to the old policy instead of a clip: PPO (Schulman et al. 2017).",
        aliases=("ppo_penalty",),
    )
    register(
        "clip",
        f"{module}.clipping:clip",
        summary="Clipped importance ratio: PPO (Schulman et al. 2017).",
        aliases=("ppo_clip",),
    )
    register(
        "two_sided",
        f"{module}.clipping:two_sided",
        summary="PPO's clip, with the ratio bounded for negative advantages: INTELLECT-2 (2025).",
    )
    register(
        "cispo",
        f"{module}.weighting:cispo",
        summary="Policy gradient, weighted by the clipped ratio: CISPO (MiniMax 2025).",
        exceptions={"value_gradient": "the ratio is a detached weight"},
    )
    register(
        "sapo",
        f"{module}.weighting:sapo",
        summary="A gradient that fades as the ratio leaves 1: SAPO (Gao et al. 2025).",
    )


def _losses_of_sequences(register: Register, module: str) -> None:
    register(
        "gspo",
        f"{module}.sequence:gspo",
        summary="Clipped ratio of the whole completion: GSPO (Zheng et al. 2025).",
    )
    register(
        "gspo_token",
        f"{module}.sequence:gspo_token",
        summary="The completion's ratio with an advantage for each token (Zheng et al. 2025).",
        exceptions={"value_gradient": "the ratio of the completion is a detached weight"},
    )
    register(
        "gmpo",
        f"{module}.sequence:gmpo",
        summary="Geometric mean of clipped ratios: GMPO (Zhao et al. 2025).",
        aliases=("geo_mean",),
    )


def _losses_that_select(register: Register, module: str) -> None:
    covariant = "tokens of high covariance give up a part of their loss, also on-policy"
    register(
        "clip_cov",
        f"{module}.selecting:clip_cov",
        summary="PPO's clip, less the tokens of high covariance (Cui et al. 2025).",
        needs=("whole_step",),
        exceptions={"on_policy_gradient": covariant},
    )
    register(
        "kl_cov",
        f"{module}.selecting:kl_cov",
        summary="Free ratio, with a penalty on tokens of the highest covariance (Cui et al. 2025).",
        needs=("whole_step",),
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
    )
    register(
        "schedule",
        f"{module}.given:Schedule",
        summary="From one coefficient to another, linear or cosine, with a warm-up.",
        needs=reference,
        exceptions={"nan_ignored": "it counts updates, whatever was measured in them"},
    )
    register(
        "adaptive",
        f"{module}.feedback:Adaptive",
        summary="Doubles or halves the coefficient to stay near a target (Schulman et al. 2017).",
        needs=reference,
    )
    register(
        "proportional",
        f"{module}.feedback:Proportional",
        summary="Moves the coefficient in proportion to the error (Ziegler et al. 2019).",
        needs=reference,
        aliases=("ziegler",),
    )
    register(
        "pid",
        f"{module}.feedback:PID",
        summary="Steers to a target as a PID controller: PID Lagrangian (Stooke et al. 2020).",
        needs=reference,
        aliases=("pid_lagrangian",),
    )
    register(
        "target_stop",
        f"{module}.stopping:TargetStop",
        summary="Ends an update early when the policy moved too far; no penalty (target_kl).",
        aliases=("target_kl",),
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
