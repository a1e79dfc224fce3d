"""Coefficients that are given beforehand: none, one that stays, one that follows a schedule."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from rlbench.builtin.kl.requirement import require, require_number


class NoPenalty:
    """Leave the penalty out: the reference policy is not even computed.

    ``coef = 0``

    See: Yu et al., "DAPO: An Open-Source LLM Reinforcement Learning System at Scale", section 2.3
    (https://arxiv.org/abs/2503.14476), which drops the penalty.

    Differs: This is the default here, as ``beta=0`` is in TRL's GRPO and ``use_kl_loss=False`` in
    verl. OpenRLHF has 0.01, TRL's PPO and RLOO have 0.05.

    Metrics:
        coef: Always 0. The exact KL to the base policy is in every evaluation all the same.
    """

    coef: float = 0.0

    def update(self, kl: float, *, samples: int) -> None:
        """Ignore the measurement."""


class Fixed:
    """Keep one coefficient throughout.

    ``L = policy loss + coef * KL`` with ``place=loss``, ``r_t - coef * KL_t`` with
    ``place=reward``.

    See: Shao et al., "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language
    Models", eq. 3 for the loss (https://arxiv.org/abs/2402.03300); Ouyang et al., "Training
    language models to follow instructions with human feedback", eq. 2 for the reward
    (https://arxiv.org/abs/2203.02155).

    Differs: Libraries disagree on the size: 0.001 in verl, 0.01 in OpenRLHF and NeMo RL, 0.04 for
    GRPO as published, 0.05 in TRL's RLOO and PPO, 0.2 in ROLL.

    Args:
        coef: Cost of one nat, usually 0.001 to 0.2; 0 measures the KL and penalises nothing.

    Metrics:
        coef: As given, in every update.

    Raises:
        UsageError: A negative coefficient, which would reward distance.
    """

    def __init__(self, *, coef: Annotated[float, "[0, inf)"] = 0.1) -> None:
        require_number("coef", coef)
        self.coef = float(coef)

    def update(self, kl: float, *, samples: int) -> None:
        """Ignore the measurement."""


class Schedule:
    """Move the coefficient from one value to another over a number of updates.

    In update n, counted from 1, with ``d = min((n - 1 - warmup) / updates, 1)``:

    ``n <= warmup:  coef = start * n / (warmup + 1)``

    ``linear:       coef = start + (end - start) * d``

    ``cosine:       coef = end + (start - end) * (1 + cos(pi * d)) / 2``

    so that update warmup + 1 has ``start``, and update warmup + 1 + updates and all later ones have
    ``end``. The measured KL plays no part.

    See: Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", eq. 5, for
    the cosine, there of the learning rate and with restarts (https://arxiv.org/abs/1608.03983).

    Differs: Few libraries have one. Trinity-RFT and custom trainers count optimiser steps; here
    one step of the schedule is a rollout with all its optimiser steps.

    Args:
        start: Cost of one nat after the warm-up, usually 0 to 0.2.
        end: Cost of one nat at the end, usually 0; below start to let go, above it to tighten.
        updates: Updates from start to end, usually those of the run less the warm-up.
        warmup: Updates before, over which the coefficient rises linearly from near 0 to start;
            usually 0 to a tenth of the run.
        shape: The course between start and end.

    Metrics:
        coef: Of this update.

    Raises:
        UsageError: A negative or infinite coefficient, or no update to move in.
    """

    def __init__(
        self,
        *,
        start: Annotated[float, "[0, inf)"] = 0.1,
        end: Annotated[float, "[0, inf)"] = 0.0,
        updates: Annotated[int, "[1, inf)"] = 200,
        warmup: Annotated[int, "[0, inf)"] = 0,
        shape: Literal["linear", "cosine"] = "linear",
    ) -> None:
        require_number("start", start)
        require_number("end", end)
        require(updates >= 1, f"updates={updates}: expected at least 1 update to move in")
        require(warmup >= 0, f"warmup={warmup}: expected 0 updates or more")
        self.start = float(start)
        self.end = float(end)
        self.updates = updates
        self.warmup = warmup
        self.shape = shape
        self.max_coef = max(self.start, self.end)
        self._done = 0
        self.coef = self._now()

    def update(self, kl: float, *, samples: int) -> None:  # noqa: ARG002 - the protocol's argument
        """Go on to the next update, whatever was measured."""
        self._done += 1
        self.coef = self._now()

    def _now(self) -> float:
        if self._done < self.warmup:
            return self.start * (self._done + 1) / (self.warmup + 1)
        done = min((self._done - self.warmup) / self.updates, 1.0)
        if self.shape == "cosine":
            done = (1.0 - math.cos(math.pi * done)) / 2
        # Weights instead of a difference: exact at both ends. Rounding may still leave the range.
        between = self.start * (1.0 - done) + self.end * done
        return min(max(between, min(self.start, self.end)), self.max_coef)
