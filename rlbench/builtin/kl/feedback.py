"""Coefficients that follow the measured KL: two rules that multiply, and a PID controller."""

from __future__ import annotations

import math
from collections import deque
from typing import Annotated, Literal

from rlbench.builtin.kl.requirement import Statistic, require, require_number, require_target


class Adaptive:
    """Double the coefficient when the KL is far above the target, halve it when far below.

    ``kl > 1.5 * target:  coef <- min(2 * coef, max_coef)``

    ``kl < target / 1.5:  coef <- max(coef / 2, min_coef)``

    See: Schulman et al., "Proximal Policy Optimization Algorithms", section 4
    (https://arxiv.org/abs/1707.06347).

    Differs: verl, TRL and OpenRLHF call another rule adaptive: ``proportional`` here.
    RLlib uses a factor of 2 for the band and 1.5 up, 0.5 down, without a bound. In the paper the
    KL is that between the policies before and after an update; here it is to the base policy.

    Args:
        coef: Cost of one nat at the start, usually 0.01 to 1; above 0, since doubling and halving
            can't move 0.
        target: Desired KL in nats. The default suits completions of a few tokens; 6 is usual for
            long texts, 0.1 for ``statistic=token``.
        min_coef: The coefficient never falls below this; a guard, usually far below coef.
        max_coef: The coefficient never rises above this; a guard, usually far above coef.
        statistic: The KL that is compared with the target: of a "sequence" or of a "token".

    Metrics:
        coef: As it was in this update, before it saw the update's KL.

    Raises:
        UsageError: A value outside its range, or a start outside the bounds.
    """

    def __init__(
        self,
        *,
        coef: Annotated[float, "(0, inf)"] = 0.1,
        target: Annotated[float, "(0, inf)"] = 0.5,
        min_coef: Annotated[float, "(0, inf)"] = 0.01,
        max_coef: Annotated[float, "(0, inf)"] = 10.0,
        statistic: Literal["sequence", "token"] = "sequence",
    ) -> None:
        _check_multiplicative(coef, target, min_coef, max_coef)
        self.coef = float(coef)
        self.target = target
        self.min_coef = min_coef
        self.max_coef = max_coef
        self.statistic: Statistic = statistic

    def update(self, kl: float, *, samples: int) -> None:  # noqa: ARG002 - the protocol's argument
        """Compare the measured KL with the target; ``samples`` plays no part.

        Args:
            kl: Nats, as ``statistic`` says; NaN is ignored.
            samples: Completions that were averaged.
        """
        if kl > 1.5 * self.target:
            self.coef = min(2 * self.coef, self.max_coef)
        elif kl < self.target / 1.5:
            self.coef = max(self.coef / 2, self.min_coef)


class Proportional:
    """Raise or lower the coefficient in proportion to the relative error, a little at a time.

    ``e = clip(kl / target - 1, -clip, clip)``

    ``coef <- coef * (1 + e * samples / horizon)``, kept within min_coef and max_coef.

    See: Ziegler et al., "Fine-Tuning Language Models from Human Preferences"
    (https://arxiv.org/abs/1909.08593).

    Differs: The original measures the KL of a sequence; verl, ROLL and SkyRL feed the mean over
    tokens with a target of 0.1, which is ``statistic=token`` here. None of them bounds the
    coefficient, and many samples (``samples * clip > horizon``) make theirs negative.

    Args:
        coef: Cost of one nat at the start, usually 0.05 to 0.2; above 0, since a factor can't move
            0.
        target: Desired KL in nats. The default suits completions of a few tokens; 6 is usual for
            long texts.
        horizon: Completions over which a relative error of 1 would multiply the coefficient by
            about 2.7; usually 10000, and much less in a short run.
        clip: The relative error counts for at most this much, usually 0.2.
        min_coef: The coefficient never falls below this; a guard, usually far below coef.
        max_coef: The coefficient never rises above this; a guard, usually far above coef.
        statistic: The KL that is compared with the target: of a "sequence" or of a "token".

    Metrics:
        coef: As it was in this update, before it saw the update's KL.

    Raises:
        UsageError: A value outside its range, or a start outside the bounds.
    """

    def __init__(
        self,
        *,
        coef: Annotated[float, "(0, inf)"] = 0.2,
        target: Annotated[float, "(0, inf)"] = 0.5,
        horizon: Annotated[int, "[1, inf)"] = 10000,
        clip: Annotated[float, "(0, 1]"] = 0.2,
        min_coef: Annotated[float, "(0, inf)"] = 1e-4,
        max_coef: Annotated[float, "(0, inf)"] = 10.0,
        statistic: Literal["sequence", "token"] = "sequence",
    ) -> None:
        _check_multiplicative(coef, target, min_coef, max_coef)
        require(horizon >= 1, f"horizon={horizon}: expected at least 1 completion")
        require(0 < clip <= 1, f"clip={clip}: expected a number above 0 and at most 1")
        self.coef = float(coef)
        self.target = target
        self.horizon = horizon
        self.clip = clip
        self.min_coef = min_coef
        self.max_coef = max_coef
        self.statistic: Statistic = statistic

    def update(self, kl: float, *, samples: int) -> None:
        """Multiply the coefficient by one plus the clipped relative error.

        Args:
            kl: Nats, as ``statistic`` says; NaN is ignored.
            samples: Completions that were averaged; more of them move the coefficient further.
        """
        if math.isnan(kl):
            return
        error = min(max(kl / self.target - 1, -self.clip), self.clip)
        moved = self.coef * (1 + error * samples / self.horizon)
        self.coef = min(max(moved, self.min_coef), self.max_coef)


class PID:
    """Steer the KL to a target with a proportional, an integral and a derivative term.

    With ``e = kl - target``, and P and D the moving averages of e and of kl:

    ``P <- ema_p * P + (1 - ema_p) * e``

    ``D <- ema_d * D + (1 - ema_d) * kl``

    ``I <- clip(I + ki * e, 0, max_coef)``

    ``coef = clip(kp * P + I + kd * max(0, D - D'), 0, max_coef)``

    where D' is D of ``delay`` measurements ago, or 0 before there were so many. The integral finds
    the coefficient that holds the target; the other two keep it from swinging around it.

    See: Stooke, Achiam and Abbeel, "Responsive Safety in Reinforcement Learning by PID Lagrangian
    Methods" (https://arxiv.org/abs/2007.03964), where the KL is a cost and the coefficient a
    Lagrange multiplier.

    Differs: The paper's algorithm has no averages and ``delay=1``; its code and OmniSafe's
    ``PIDLagrangian`` have ema 0.95 and a delay of 10 with gains 0.1, 0.01, 0.01. As in both, the
    first D' is 0, so the first KL counts as a rise. Neither bounds the integral from above: after
    a long excess theirs needs as long to come down again.

    Args:
        coef: Cost of one nat at the start, and the integral's start; usually 0, as in the paper.
        target: Desired KL in nats. The default suits completions of a few tokens; 6 is usual for
            long texts, 0.1 for ``statistic=token``.
        kp: Gain of the averaged error, for each nat; usually 0 to 1.
        ki: Gain of the summed error, for each nat and update; usually 0.001 to 0.1.
        kd: Gain of the KL's rise, for each nat; a fall counts as 0. Usually 0 to 1.
        ema_p: Share of the old average in P; 0 takes the last error alone, usually 0 to 0.95.
        ema_d: Share of the old average in D; 0 takes the last KL alone, usually 0 to 0.95.
        delay: Measurements over which a rise is looked for, usually 1 to 10.
        max_coef: Neither coefficient nor integral rises above this; a guard, usually never reached.
        statistic: The KL that is compared with the target: of a "sequence" or of a "token".

    Metrics:
        coef: As it was in this update, before it saw the update's KL.

    Raises:
        UsageError: A value outside its range, no gain above 0, or a start above the bound.
    """

    def __init__(
        self,
        *,
        coef: Annotated[float, "[0, inf)"] = 0.0,
        target: Annotated[float, "(0, inf)"] = 0.5,
        kp: Annotated[float, "[0, inf)"] = 0.1,
        ki: Annotated[float, "[0, inf)"] = 0.01,
        kd: Annotated[float, "[0, inf)"] = 0.01,
        ema_p: Annotated[float, "[0, 1)"] = 0.95,
        ema_d: Annotated[float, "[0, 1)"] = 0.95,
        delay: Annotated[int, "[1, inf)"] = 10,
        max_coef: Annotated[float, "(0, inf)"] = 10.0,
        statistic: Literal["sequence", "token"] = "sequence",
    ) -> None:
        require_target(target)
        for name, gain in (("kp", kp), ("ki", ki), ("kd", kd)):
            require_number(name, gain)
        require(kp + ki + kd > 0, "kp=0, ki=0, kd=0: without a gain above 0 nothing is steered")
        for name, share in (("ema_p", ema_p), ("ema_d", ema_d)):
            require(0 <= share < 1, f"{name}={share}: expected a share of at least 0 and below 1")
        require(delay >= 1, f"delay={delay}: expected at least 1 measurement")
        require_number("max_coef", max_coef, above=True)
        require(0 <= coef <= max_coef, f"coef={coef}: expected a start within 0 and {max_coef=}")
        self.coef = float(coef)
        self.target = target
        self.kp, self.ki, self.kd = kp, ki, kd
        self.ema_p, self.ema_d = ema_p, ema_d
        self.max_coef = max_coef
        self.statistic: Statistic = statistic
        self._error = 0.0
        self._level = 0.0
        self._integral = self.coef
        self._before = deque([0.0], maxlen=delay)

    def update(self, kl: float, *, samples: int) -> None:  # noqa: ARG002 - the protocol's argument
        """Take in one measurement; ``samples`` plays no part.

        Args:
            kl: Nats, as ``statistic`` says. NaN and inf are ignored: an average would never get
                rid of them.
            samples: Completions that were averaged.
        """
        if not math.isfinite(kl):
            return
        error = kl - self.target
        self._error = self.ema_p * self._error + (1 - self.ema_p) * error
        self._level = self.ema_d * self._level + (1 - self.ema_d) * kl
        self._integral = min(max(self._integral + self.ki * error, 0.0), self.max_coef)
        rise = max(self._level - self._before[0], 0.0)
        self._before.append(self._level)
        wanted = self.kp * self._error + self._integral + self.kd * rise
        self.coef = min(max(wanted, 0.0), self.max_coef)


def _check_multiplicative(coef: float, target: float, min_coef: float, max_coef: float) -> None:
    """Refuse settings under which a rule that multiplies could not work."""
    require(
        coef > 0,
        f"coef={coef}: this rule multiplies the coefficient, so one that starts at 0 never moves; "
        "start above 0, or use none or fixed",
    )
    require_target(target)
    require(min_coef > 0, f"min_coef={min_coef}: at 0 the coefficient could never rise again")
    require(
        min_coef <= coef <= max_coef < math.inf,
        f"coef={coef}: expected a start within min_coef={min_coef} and max_coef={max_coef}",
    )
