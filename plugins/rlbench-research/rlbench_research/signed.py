"""Estimators that train on right completions, on wrong ones, or on both with different weight.

A right outcome counts 1, a wrong one -1; there is no baseline, and no group is needed. A KL penalty
in the reward is not seen, since an outcome is right or wrong: put the penalty into the loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rlbench import masked
from rlbench.types import Advantage

if TYPE_CHECKING:
    from rlbench.types import Rollout


def positives_only(rollout: Rollout, *, threshold: float = 0.5) -> Advantage:
    """Train on right completions alone: 1 for a right one, 0 for a wrong one (PSR).

    ``A = 1 if R > threshold else 0``

    With the loss ``pg`` it is supervised learning on what the policy itself got right.

    See: Zhu et al., "The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
    positive sample reinforcement (https://arxiv.org/abs/2506.01347).

    Differs: RAFT++ keeps right completions too, with a clipped ratio: the loss ``clip``.

    Args:
        rollout: Only rewards and the mask are read.
        threshold: An outcome above it is right; usually 0.5, between 0 and 1.

    Returns:
        Advantages, 0 or 1; no returns.
    """
    return _weighted(rollout, threshold, right=1.0, wrong=0.0)


def negatives_only(rollout: Rollout, *, threshold: float = 0.5) -> Advantage:
    """Train on wrong completions alone: -1 for a wrong one, 0 for a right one (NSR).

    ``A = 0 if R > threshold else -1``

    Probability moves from the mistake to whatever else the policy believes in, so that it stays
    diverse.

    See: Zhu et al., "The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
    negative sample reinforcement (https://arxiv.org/abs/2506.01347).

    Differs: as published.

    Args:
        rollout: Only rewards and the mask are read.
        threshold: An outcome above it is right; usually 0.5, between 0 and 1.

    Returns:
        Advantages, -1 or 0; no returns.
    """
    return _weighted(rollout, threshold, right=0.0, wrong=-1.0)


def w_reinforce(
    rollout: Rollout,
    *,
    weight: Annotated[float, "[0, inf)"] = 0.1,
    threshold: float = 0.5,
) -> Advantage:
    """Train on both with less weight on right completions: the weight for right, -1 for wrong.

    ``A = weight if R > threshold else -1``

    See: Zhu et al., "The Surprising Effectiveness of Negative Reinforcement in LLM Reasoning",
    weighted REINFORCE (https://arxiv.org/abs/2506.01347).

    Differs: as published. A weight of 1 is REINFORCE with outcomes of 1 and -1.

    Args:
        rollout: Only rewards and the mask are read.
        weight: Of right completions, usually 0.1 to 1.
        threshold: An outcome above it is right; usually 0.5, between 0 and 1.

    Returns:
        Advantages, the weight or -1; no returns.
    """
    return _weighted(rollout, threshold, right=weight, wrong=-1.0)


def _weighted(rollout: Rollout, threshold: float, *, right: float, wrong: float) -> Advantage:
    given = rollout.token_reward.new_full(rollout.reward.shape, wrong)
    given = given.masked_fill(rollout.reward > threshold, right)
    wide = given[:, None].expand(rollout.mask.shape)
    return Advantage(masked.select(wide, rollout.trained))
