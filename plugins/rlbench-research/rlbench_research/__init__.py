"""Estimators and losses of recent papers, registered with rlbench."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench import hookimpl

if TYPE_CHECKING:
    from rlbench.hookspecs import Register


BUDGET = dict.fromkeys((":clip_ratio", ":clip_ratio_low", ":clip_ratio_high"), "delta")
NO_PENALTY = "outcomes are right or wrong, which a penalty can't shift; place it in the loss"


@hookimpl
def rlbench_register_estimators(register: Register) -> None:
    """Register the estimators."""
    register(
        "gpg",
        f"{__name__}.estimators:gpg",
        summary="Centred, scaled up for flat groups: GPG (Chu 2025).",
        group_relative=True,
    )
    register(
        "max_rl",
        f"{__name__}.estimators:max_rl",
        summary="Centred, over the group's mean: MaxRL (Tajwar 2026).",
        group_relative=True,
    )
    register(
        "passk_best",
        f"{__name__}.passk:passk_best",
        summary="The best of a group, by its lead alone (Tang 2025).",
        aliases=("grpo_passk",),
        group_relative=True,
        only_if={"ddof": "std=true", "eps": "std=true"},
    )
    register(
        "passk_analytic",
        f"{__name__}.passk:passk_analytic",
        summary="Success of groups of k: Pass@k Training (Chen 2025).",
        group_relative=True,
        exceptions={"kl_in_reward": NO_PENALTY},
    )
    register(
        "pkpo",
        f"{__name__}.passk:pkpo",
        summary="Best outcome of k: PKPO (Walder and Karkhanis 2025).",
        group_relative=True,
    )
    register(
        "positives_only",
        f"{__name__}.signed:positives_only",
        summary="Right completions alone: PSR (Zhu 2025).",
        aliases=("psr",),
        exceptions={"kl_in_reward": NO_PENALTY},
    )
    register(
        "negatives_only",
        f"{__name__}.signed:negatives_only",
        summary="Wrong completions alone: NSR (Zhu 2025).",
        aliases=("nsr",),
        exceptions={"kl_in_reward": NO_PENALTY},
    )
    register(
        "w_reinforce",
        f"{__name__}.signed:w_reinforce",
        summary="Both, right ones with less weight (Zhu 2025).",
        exceptions={"kl_in_reward": NO_PENALTY},
    )


@hookimpl
def rlbench_register_losses(register: Register) -> None:
    """Register the losses."""
    register(
        "simple_po",
        f"{__name__}.losses:simple_po",
        summary="A quadratic pull to the trust region's edge: SPO (Xie 2024).",
        elsewhere={
            "spo": "simple_po for simple policy optimisation; those of segments and of single "
            "streams are not here"
        },
    )
    register(
        "dppo_tv",
        f"{__name__}.losses:dppo_tv",
        summary="Drops what moved too far in total variation: DPPO (Qi 2026).",
        elsewhere={"dppo": "dppo_tv", **BUDGET},
    )
    register(
        "dppo_kl",
        f"{__name__}.losses:dppo_kl",
        summary="Drops what moved too far in KL: DPPO (Qi 2026).",
        elsewhere={"dppo": "dppo_kl", **BUDGET},
    )
    register(
        "topr",
        f"{__name__}.off_policy:topr",
        summary="Full weight on what went well: TOPR (Le Roux 2025).",
        exceptions={"value_gradient": "the ratio is a detached weight"},
    )
    register(
        "dro",
        f"{__name__}.off_policy:dro",
        summary="Policy gradient with a quadratic pull: DRO (Richemond 2024).",
        elsewhere={"kimi15": "dro:beta=0.1 for ROLL's"},
    )
    register(
        "awr",
        f"{__name__}.off_policy:awr",
        summary="Imitation, weighted by exp(advantage): AWR (Peng 2019).",
        exceptions={
            "on_policy_gradient": "weights are exp(A / beta), never negative",
            "pushed_back": "what went badly is imitated too, only less",
        },
    )
