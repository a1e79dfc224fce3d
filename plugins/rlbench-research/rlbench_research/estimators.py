"""Group-relative estimators of recent papers; those of pass@k are in `rlbench_research.passk`.

Both give every token of a completion the same advantage, positive for better than its group, and 0
to rows without a reward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from rlbench import masked
from rlbench.types import Advantage

if TYPE_CHECKING:
    from torch import Tensor

    from rlbench.types import Rollout


def gpg(rollout: Rollout) -> Advantage:
    """Centre within the group, and make up for groups that teach nothing.

    ``alpha (R - mean)`` with ``alpha = B / (B - M)``, where M of the B scored completions belong to
    groups whose outcomes are all equal. The gradient of a batch then has the size it would have if
    every group carried a signal.

    See: Chu et al., "GPG: A Simple and Strong Reinforcement Learning Baseline for Model Reasoning"
    (https://arxiv.org/abs/2504.02546). The published loss is ``pg``.

    Differs: verl's ``gpg`` divides by the number of outcomes that are not 0 instead of B - M. The
    authors' code adds 1e-5 to 1 / alpha and draws new prompts when too few groups carry a signal.

    Args:
        rollout: Only rewards, groups and the mask are read.

    Returns:
        Advantages; no returns.
    """
    centred, counted, signal = _centred(rollout)
    alpha = masked.count(counted).double() / masked.count(signal).clamp(min=1)
    return _to_tokens(alpha * centred, rollout)


def max_rl(rollout: Rollout) -> Advantage:
    """Centre within the group, and divide by the group's mean.

    ``(R - mean) / mean``: for outcomes of 0 and 1 the gradient approaches that of the log of the
    success probability as groups grow, so that hard prompts weigh more.

    See: Tajwar et al., "Maximum Likelihood Reinforcement Learning"
    (https://arxiv.org/abs/2602.02710).

    Differs: SkyRL adds 1e-6 to the mean. As in prime-rl, a group whose mean is not positive gets 0;
    the paper has no negative outcomes.

    Args:
        rollout: Only rewards, groups and the mask are read.

    Returns:
        Advantages; no returns.
    """
    centred, counted, _ = _centred(rollout)
    outcome = masked.total(rollout.token_reward.double(), rollout.trained, 1)
    mean = masked.group_mean(outcome, counted, rollout.group)
    # Outcomes of both signs can cancel to a mean that is only rounding residue. Asked this way
    # round, a mean of NaN is usable, and seen.
    usable = ~(mean <= 1e-6 * masked.group_mean(outcome.abs(), counted, rollout.group))
    return _to_tokens(masked.select(centred / torch.where(usable, mean, 1.0), usable), rollout)


def _centred(rollout: Rollout) -> tuple[Tensor, Tensor, Tensor]:
    """Outcome minus the group's mean in float64, which rows count, and which carry a signal."""
    outcome = masked.total(rollout.token_reward.double(), rollout.trained, 1)
    counted = rollout.trained.any(1)
    # A group that is constant must give exactly 0; its mean is rounded.
    signal = counted & ~masked.group_constant(outcome, counted, rollout.group)
    mean = masked.group_mean(outcome, counted, rollout.group)
    return masked.select(outcome - mean, signal), counted, signal


def _to_tokens(advantage: Tensor, rollout: Rollout) -> Advantage:
    wide = advantage.to(rollout.token_reward.dtype)[:, None].expand(rollout.mask.shape)
    return Advantage(masked.select(wide, rollout.trained))
