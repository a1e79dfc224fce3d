"""The hooks of rlbench: START HERE to extend it.

A plugin is a module with functions named like the ones below and marked with `hookimpl`. Each
receives ``register``, which is bound to that plugin. A whole plugin::

    # my_loss.py
    from rlbench import hookimpl
    from rlbench.types import LossTerms

    def my_loss(batch, *, scale: float = 1.0):
        return LossTerms(-scale * batch.advantages * batch.logp)

    @hookimpl
    def rlbench_register_losses(register):
        register("my_loss", f"{__name__}:my_loss", summary="Plain policy gradient, scaled.")

Use it from its file, ``rlbench run -l my_loss --plugin my_loss.py``, or install it with the entry
point ``[project.entry-points.rlbench]  my_loss = "my_loss"``.

``register(name, target, *, summary, needs=(), aliases=(), group_relative=False, exceptions={},
only_if={}, elsewhere={})``:

name
    What users write. It matches ``^[a-z][a-z0-9_.-]*$``. A name with two owners can't be used.
target
    ``"module:attribute"``, a string: listing and help import nothing. Worker processes import it.
summary
    One line for ``rlbench list``.
needs
    What the host has to compute for this component, and computes for nobody else. Estimators:
    ``values`` (trains a critic), ``last_value``, ``greedy_reward``, ``ref_logp``. Losses:
    ``ref_logp``, and ``whole_step`` for a loss that compares tokens across completions: it gets the
    whole optimiser step in one batch, whatever ``microbatches`` says. KL controllers: ``ref_logp``.
aliases
    Other names for the same component, with the same single-owner rule.
group_relative
    Estimators only: rewards are compared within a group, so a group needs two completions, and a
    group whose rewards are all equal gets exactly 0.
exceptions
    Rules of the conformance kit that this component breaks on purpose, each with its reason:
    ``{"on_policy_gradient": "selects tokens by covariance"}``.
only_if
    Options that have no effect unless another one has a certain value: ``{"eps": "std=true"}``.
    Setting such an option where it does nothing is refused, or two cells would be one.
elsewhere
    Names that others use for something near, each with the selection to write here, and more words
    if needed: ``{"dual_clip": "clip:dual=3"}``. They are no aliases: asking for one is refused with
    this advice. A name that means exactly this component with its defaults is an alias. Options
    start with a colon: ``{":clip_ratio": "eps"}``. Advice that is one name takes the same values;
    other advice starts with what to write: ``{":scale": "std=false for none"}``.

A plugin written for a later version of these hooks says so at its top, ``RLBENCH_API = 2``: an
rlbench that has `API` 1 then refuses it by name, instead of failing somewhere inside.

When they are called: once per plugin, when a command first needs to know the components; built-ins
first, then entry points in order of (distribution, name), then ``--plugin`` files in the order
given. No order changes what a name means. All registrations of a plugin count, or none does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pluggy import HookimplMarker, HookspecMarker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROJECT = "rlbench"
API = 1  # of the hooks; one more when a plugin could rely on something new

hookspec = HookspecMarker(PROJECT)
hookimpl = HookimplMarker(PROJECT)


class Register(Protocol):
    """The callback that a hook receives; see the module's docstring."""

    def __call__(
        self,
        name: str,
        target: str,
        *,
        summary: str,
        needs: Sequence[str] = (),
        aliases: Sequence[str] = (),
        group_relative: bool = False,
        exceptions: Mapping[str, str] | None = None,
        only_if: Mapping[str, str] | None = None,
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        """Stage one component."""


@hookspec
def rlbench_register_estimators(register: Register) -> None:
    """Register advantage estimators: ``f(rollout, *, options) -> Advantage``."""


@hookspec
def rlbench_register_losses(register: Register) -> None:
    """Register policy losses: ``f(batch, *, options) -> LossTerms``, per token and unreduced."""


@hookspec
def rlbench_register_kl_controllers(register: Register) -> None:
    """Register KL controllers: a class with ``coef`` and ``update(kl, *, samples)``."""


@hookspec
def rlbench_register_tasks(register: Register) -> None:
    """Register tasks: see `rlbench.types.Task`."""


@hookspec
def rlbench_register_rewards(register: Register) -> None:
    """Register rewards, what the policy is trained on: see `rlbench.types.Reward`."""


@hookspec
def rlbench_register_models(register: Register) -> None:
    """Register models, which build policy and critic networks: see `rlbench.types.Model`."""


@hookspec
def rlbench_register_trackers(register: Register) -> None:
    """Register trackers, which see a run's numbers as they come: see `rlbench.types.Tracker`."""


@hookspec
def rlbench_register_engines(register: Register) -> None:
    """Register engines, which execute jobs somewhere: see `rlbench.types.Engine`."""
