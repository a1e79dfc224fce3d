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
