"""What outcome estimators share: one number for each completion, compared and spread over tokens.

Where the KL penalty sits in the reward, ``kl`` says how it meets the baseline:

``before``
    The outcome is the sum over ``token_reward``, so the baseline sees the penalty.
``after``
    Rewards are compared alone; every token then loses the penalty of itself and what follows.
``per_token``
    Rewards are compared alone; every token then loses its own penalty.

Without a penalty the three are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from rlbench import masked
from rlbench.types import Advantage

if TYPE_CHECKING:
    from torch import Tensor

    from rlbench.types import Rollout


def outcomes(rollout: Rollout, kl: str = "before") -> tuple[Tensor, Tensor]:
    """Outcome of each completion (B,) in float64, and which completions count (B,).

    The sum over token_reward is the reward when no KL sits in it, exactly, since the other tokens
    hold 0. A completion without a token has nowhere to hold its outcome and doesn't count.
    """
    counted = rollout.trained.any(1)
    if kl == "before":
        return masked.total(rollout.token_reward.double(), rollout.trained, 1), counted
    return masked.select(rollout.reward.double(), counted), counted


def centred(x: Tensor, mask: Tensor, group: Tensor, singleton: str = "zero") -> Tensor:
    """Subtract the group's mean; exactly 0 in a group that is constant, and outside the mask.

    ``singleton="raw"`` leaves a row that is alone in its group as it is.
    """
    signal = mask & ~masked.group_constant(x, mask, group)
    found = masked.select(x - masked.group_mean(x, mask, group), signal)
    return alone_as(singleton, x, found, mask, group)


def alone_as(singleton: str, x: Tensor, found: Tensor, mask: Tensor, group: Tensor) -> Tensor:
    """Give a row that is alone in its group its own outcome, if that is what is asked for."""
    if singleton == "zero":
        return found
    return torch.where(mask & (masked.group_count(mask, group) == 1), x, found)


def divide(centred: Tensor, by: Tensor) -> Tensor:
    """Divide where there is a signal, so that 0 / 0 can't arise with eps=0."""
    return centred / torch.where(centred == 0, 1.0, by)


def spread(advantage: Tensor, rollout: Rollout, kl: str = "before") -> Advantage:
    """Give every trained token its completion's advantage (B,), and its part of the penalty."""
    found = to_tokens(advantage, rollout, kl).to(rollout.token_reward.dtype)
    return Advantage(masked.select(found, rollout.trained))


def to_tokens(advantage: Tensor, rollout: Rollout, kl: str = "before") -> Tensor:
    """Do what `spread` does, without the mask: (B, T) in float64."""
    wide = advantage[:, None].expand(rollout.mask.shape)
    if kl == "before":
        return wide
    own = penalty(rollout)
    return wide + (own if kl == "per_token" else own.flip(1).cumsum(1).flip(1))


def penalty(rollout: Rollout) -> Tensor:
    """What token_reward holds beside the reward: (B, T) in float64, minus the coefficient's KL."""
    live = rollout.trained
    from_the_end = live.long().flip(1).cumsum(1).flip(1)
    last = live & (from_the_end == 1)
    given = masked.select(rollout.token_reward, live).double()
    reward = masked.select(rollout.reward, live.any(1)).double()
    return given - masked.select(reward[:, None].expand(live.shape), last)
