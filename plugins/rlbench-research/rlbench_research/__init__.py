"""Estimators and losses of recent papers, registered with rlbench."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench import hookimpl

if TYPE_CHECKING:
    from rlbench.hookspecs import Register


@hookimpl
def rlbench_register_estimators(register: Register) -> None:
    """Register the estimators."""
    register(
        "gpg",
        f"{__name__}.estimators:gpg",
        summary="Centred in the group, scaled up for groups without signal: GPG (Chu et al. 2025).",
        group_relative=True,
    )
    register(
        "max_rl",
        f"{__name__}.estimators:max_rl",
        summary="Centred in the group, over its mean: MaxRL (Tajwar et al. 2026).",
        group_relative=True,
    )


@hookimpl
def rlbench_register_losses(register: Register) -> None:
    """Register the losses."""
    register(
        "simple_po",
        f"{__name__}.losses:simple_po",
        summary="A quadratic pull to the edge of the trust region: SPO (Xie et al. 2024).",
    )
    register(
        "dppo_tv",
        f"{__name__}.losses:dppo_tv",
        summary="Drops tokens that moved too far in total variation: DPPO (2026).",
    )
    register(
        "dppo_kl",
        f"{__name__}.losses:dppo_kl",
        summary="Drops tokens that moved too far in KL: DPPO (2026).",
    )
    register(
        "topr",
        f"{__name__}.off_policy:topr",
        summary="Full weight on what went well, tapered on the rest: TOPR (Le Roux et al. 2025).",
        exceptions={"value_gradient": "the ratio is a detached weight"},
    )
    register(
        "dro",
        f"{__name__}.off_policy:dro",
        summary="Policy gradient with a quadratic pull to the old policy (Richemond et al. 2024).",
    )
    register(
        "awr",
        f"{__name__}.off_policy:awr",
        summary="Imitation, weighted by exp(advantage): AWR (Peng et al. 2019).",
        exceptions={"on_policy_gradient": "weights are exp(A / beta), never negative"},
    )
