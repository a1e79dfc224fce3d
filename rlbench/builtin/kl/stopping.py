"""Stopping early: how far one update may move the policy."""

from __future__ import annotations

from typing import Annotated, Literal

from rlbench.builtin.kl.requirement import Statistic, require_number, require_target


class TargetStop:
    """End the optimiser steps of an update when the policy has moved far enough.

    ``stop if KL(old || new) > factor * target``

    Before every optimiser step the KL from the policy that sampled to the one that is trained is
    estimated on the step's own minibatch, by k3: the mean of ``r - 1 - log r`` with
    ``r = exp(logp - old_logp)``, which is never negative. When it is too large, this step and the
    rest of the update's epochs are left out, for the critic too. The first step of an update can't
    be stopped, so with one epoch of one minibatch nothing ever is. There is no penalty and no
    reference policy: this bounds how fast the policy moves, not how far it gets.

    See: Achiam, "Spinning Up in Deep RL", PPO
    (https://spinningup.openai.com/en/latest/algorithms/ppo.html).

    Differs: Spinning Up has target 0.01 with factor 1.5 and the estimate k1, which can be negative
    and then never stops; Stable-Baselines3 checks before the step, as here, with factor 1.5 and
    k3; CleanRL checks after each epoch, with factor 1 and k3. All three take the mean over
    actions, which is ``statistic=token``. All three spell it ``target_kl``, which has nothing to
    do with the target KL of verl and TRL: that is ``target`` of ``proportional`` here.

    Args:
        target: KL of one update in nats, usually 0.01 to 0.05 for a token.
        factor: The target may be exceeded by this factor, usually 1 or 1.5.
        statistic: The KL that is compared: averaged over tokens ("token"), or summed over a
            completion and averaged over completions ("sequence").

    Metrics:
        kl_old: The estimate, averaged over the tokens of the steps that were taken.
        stopped: Share of the update's optimiser steps that were left out.

    Raises:
        UsageError: A value outside its range.
    """

    coef: float = 0.0

    def __init__(
        self,
        *,
        target: Annotated[float, "(0, inf)"] = 0.02,
        factor: Annotated[float, "(0, inf)"] = 1.5,
        statistic: Literal["token", "sequence"] = "token",
    ) -> None:
        require_target(target)
        require_number("factor", factor, above=True)
        self.limit = factor * target
        self.statistic: Statistic = statistic

    def update(self, kl: float, *, samples: int) -> None:
        """Ignore the KL to the reference."""

    def stop(self, kl_old: float) -> bool:
        """Say whether the rest of the update is left out.

        Args:
            kl_old: KL(old || new) on the next minibatch, nats, as ``statistic`` says.

        Returns:
            True above the limit; a NaN stops nothing, since the trainer ends such a run itself.
        """
        return kl_old > self.limit
