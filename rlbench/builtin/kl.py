"""KL controllers: how much a distance from the reference policy costs.

A controller holds ``coef`` and sees the measured KL once for each rollout batch. ``statistic``
says which number it is shown: the KL summed over a completion and averaged over completions
("sequence"), or averaged over tokens ("token"). A NaN leaves the coefficient as it is.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from rlbench.errors import UsageError

Statistic = Literal["sequence", "token"]


class NoPenalty:
    """No penalty: the reference policy is not even computed."""

    coef: float = 0.0

    def update(self, kl: float, *, samples: int) -> None:
        """Ignore the measurement."""


class Fixed:
    """A coefficient that never changes.

    Differs: libraries disagree on the size: 0.001 in verl, 0.04 for GRPO as published, 0.05 in
    TRL's RLOO, 0.2 in ROLL.

    Args:
        coef: Cost of one nat.

    Raises:
        UsageError: A negative coefficient, which would reward distance.
    """

    def __init__(self, *, coef: Annotated[float, "[0, inf)"] = 0.1) -> None:
        _require(0 <= coef < math.inf, f"coef={coef}: expected a finite number of at least 0")
        self.coef = float(coef)

    def update(self, kl: float, *, samples: int) -> None:
        """Ignore the measurement."""


class Adaptive:
    """Double the coefficient when the KL is far above the target, halve it when far below.

    Far means by a factor of 1.5.

    See: Schulman et al., "Proximal Policy Optimization Algorithms", section 4
    (https://arxiv.org/abs/1707.06347).

    Differs: verl, TRL and OpenRLHF call the proportional rule adaptive (`Proportional` here).
    RLlib uses a factor of 2 for the band and 1.5 up, 0.5 down, without a bound.

    Args:
        coef: Cost of one nat at the start; above 0, since doubling and halving can't move 0.
        target: Desired KL in nats. The default suits completions of a few tokens; 6 is usual for
            long texts, 0.1 for ``statistic=token``.
        min_coef: The coefficient never falls below this.
        max_coef: The coefficient never rises above this.
        statistic: The KL that is compared with the target: of a "sequence" or of a "token".

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

    ``coef <- coef * (1 + clip(kl / target - 1, -clip, clip) * samples / horizon)``

    See: Ziegler et al., "Fine-Tuning Language Models from Human Preferences", section 2.2
    (https://arxiv.org/abs/1909.08593).

    Differs: the original measures the KL of a sequence; verl, ROLL and SkyRL feed the mean over
    tokens with a target of 0.1, which is ``statistic=token`` here.

    Args:
        coef: Cost of one nat at the start; above 0, since a factor can't move 0.
        target: Desired KL in nats. The default suits completions of a few tokens; 6 is usual for
            long texts.
        horizon: Completions over which a full error multiplies the coefficient by about e.
        clip: The relative error counts for at most this much.
        min_coef: The coefficient never falls below this.
        max_coef: The coefficient never rises above this.
        statistic: The KL that is compared with the target: of a "sequence" or of a "token".

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
        _require(horizon >= 1, f"horizon={horizon}: expected at least 1 completion")
        _require(0 < clip <= 1, f"clip={clip}: expected a number above 0 and at most 1")
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


def _check_multiplicative(coef: float, target: float, min_coef: float, max_coef: float) -> None:
    """Refuse settings under which a rule that multiplies could not work."""
    _require(
        coef > 0,
        f"coef={coef}: this rule multiplies the coefficient, so one that starts at 0 never moves; "
        "start above 0, or use none or fixed",
    )
    _require(0 < target < math.inf, f"target={target}: expected a finite KL above 0 nats")
    _require(min_coef > 0, f"min_coef={min_coef}: at 0 the coefficient could never rise again")
    _require(
        min_coef <= coef <= max_coef < math.inf,
        f"coef={coef}: expected a start within min_coef={min_coef} and max_coef={max_coef}",
    )


def _require(condition: bool, message: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not condition:
        raise UsageError(message)
