"""Estimators that reward one success among k completions instead of every success.

All give every token of a completion the same advantage, positive for what makes a group of k
better, and 0 to rows without a reward and to groups whose outcomes are all equal. They need more
completions for a prompt than k: with ``group_size=k`` there is no group left to compare with.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Annotated

import torch

from rlbench import masked
from rlbench.types import Advantage

if TYPE_CHECKING:
    from torch import Tensor

    from rlbench.types import Rollout


def passk_best(
    rollout: Rollout,
    *,
    std: bool = True,
    ddof: Annotated[int, "[0, 1]"] = 1,
    eps: Annotated[float, "[0, inf)"] = 1e-6,
) -> Advantage:
    """Reward the best completion of a group by its lead over the second best, and no other.

    ``R_1 - R_2`` is what the best outcome of the whole group would lose without this completion.
    A tie for the best gives 0.

    See: Tang et al., "Optimizing Language Models for Inference Time Objectives using Reinforcement
    Learning" (https://arxiv.org/abs/2503.19595), with k the group size.

    Differs: verl calls it ``grpo_passk`` and refuses a group of one, here 0. EasyR1's version
    leaves an advantage on the others. The paper does not divide by the standard deviation
    (``std=false``).

    Args:
        rollout: Only rewards, groups and the mask are read.
        std: Divide by the standard deviation of the group.
        ddof: The variance divides by the number of scored completions minus this; usually 1.
        eps: Added to the standard deviation, usually 1e-6.

    Returns:
        Advantages; no returns.
    """
    outcome = masked.total(rollout.token_reward.double(), rollout.trained, 1)
    counted, ids = rollout.trained.any(1), rollout.group
    advantage = torch.zeros_like(outcome)
    for rows in _groups(counted, ids):
        if len(rows) > 1:
            first, second = outcome[rows].topk(2).values
            advantage[rows[outcome[rows].argmax()]] = first - second
    if std:
        deviation = masked.group_standard_deviation(outcome, counted, ids, ddof=ddof)
        advantage = advantage / torch.where(advantage == 0, 1.0, deviation + eps)
    return _to_tokens(advantage, rollout)


def passk_analytic(
    rollout: Rollout,
    *,
    k: Annotated[int, "[1, inf)"] = 2,
    threshold: float = 0.5,
) -> Advantage:
    """Standardise the reward of all groups of k that can be drawn from a prompt's completions.

    Of N completions, N- are wrong. The mean reward of a group of k is ``p = 1 - C(N-, k) / C(N,
    k)``, its standard deviation ``s = sqrt(p (1 - p))``. A right completion gets ``(1 - p) / s``, a
    wrong one the mean over the groups that it is in, ``(1 - p - C(N- - 1, k - 1) / C(N - 1, k -
    1)) / s``. The advantages of a group sum to 0. With fewer than k wrong, every group of k has a
    success, and all get 0. With k=1 it is `group` with ``ddof=0,eps=0``.

    See: Chen et al., "Pass@k Training for Adaptively Balancing Exploration and Exploitation of
    Large Reasoning Models" (https://arxiv.org/abs/2508.10751).

    Differs: as published. verl's ``grpo_passk`` is `passk_best`.

    Args:
        rollout: Only rewards, groups and the mask are read. A KL penalty in the reward is not seen:
            an outcome is right or wrong.
        k: Completions that are judged together, usually 2 to 8 and less than the group size.
        threshold: An outcome above it is right; usually 0.5, between 0 and 1.

    Returns:
        Advantages; no returns.
    """
    counted, ids = rollout.trained.any(1), rollout.group
    right = counted & (rollout.reward > threshold)
    n = masked.group_count(counted, ids).double()
    wrong = n - masked.group_count(right, ids)
    none_right = _chance(wrong, n, k)  # that a group of k has no success: 1 - p
    others_wrong = _chance(wrong - 1, n - 1, k - 1)
    deviation = (none_right * (1 - none_right)).sqrt()
    signal = counted & (deviation > 0)
    by = torch.where(signal, deviation, 1.0)
    advantage = torch.where(right, none_right, none_right - others_wrong) / by
    return _to_tokens(masked.select(advantage, signal), rollout)


def pkpo(rollout: Rollout, *, k: Annotated[int, "[2, inf)"] = 2) -> Advantage:
    """Ascend the best outcome of k completions without bias (PKPO), for outcomes of any size.

    A completion's effective reward is ``sum of max(I) / C(n, k)`` over the sets I of k out of n
    completions that it is in: for outcomes of 0 and 1, k / n for a right one, and k / n times the
    chance that another of its set is right for a wrong one. From each set is taken what its other
    k - 1 members reach alone, which leaves the expected gradient as it is: only completions that
    are the best of some set have an advantage.

    See: Walder and Karkhanis, "Pass@K Policy Optimization: Solving Harder Reinforcement Learning
    Problems" (https://arxiv.org/abs/2505.15201), with the baseline called loo minus one.

    Differs: as published, with this baseline alone. The one that leaves one completion out has more
    variance, and gives groups of equal outcomes an advantage. The published gradient is a sum over
    the n completions, so that under a mean over completions, as here, it is n times smaller.

    Args:
        rollout: Only rewards, groups and the mask are read.
        k: Completions of which the best counts, usually 2 to 8. Groups of fewer than k get 0.

    Returns:
        Advantages, never negative; no returns.
    """
    outcome = masked.total(rollout.token_reward.double(), rollout.trained, 1)
    counted, ids = rollout.trained.any(1), rollout.group
    signal = counted & ~masked.group_constant(outcome, counted, ids)
    advantage = torch.zeros_like(outcome)
    for rows in _groups(signal, ids):
        if len(rows) >= k:
            advantage[rows] = _gain(outcome[rows], k)
    return _to_tokens(advantage, rollout)


def _gain(outcome: Tensor, k: int) -> Tensor:
    """How much a completion adds to the sets of k that it is in, over all sets: (n,).

    It adds something to the sets in which it is the best, and there its distance to the second
    best. Of those whose second best is at a lower place q, there are C(q, k - 2).
    """
    n = len(outcome)
    ascending, order = outcome.sort()
    sets = torch.tensor([comb(q, k - 2) for q in range(n)], dtype=torch.float64)
    lead = (ascending[:, None] - ascending).tril(-1)  # of a row's completion over a column's
    found = torch.empty_like(outcome)
    found[order] = lead @ sets.to(outcome) / comb(n, k)
    return found


def _chance(wrong: Tensor, n: Tensor, k: int) -> Tensor:
    """Chance that k out of n are all among the wrong: ``C(wrong, k) / C(n, k)``, 0 if k > wrong."""
    chance = torch.ones_like(n)
    for i in range(k):
        chance = chance * ((wrong - i).clamp(min=0) / (n - i).clamp(min=1))
    return chance


def _groups(rows: Tensor, ids: Tensor) -> list[Tensor]:
    """Indices of the given rows, group by group."""
    return [(rows & (ids == one)).nonzero()[:, 0] for one in torch.unique(ids[rows])]


def _to_tokens(advantage: Tensor, rollout: Rollout) -> Advantage:
    wide = advantage.to(rollout.token_reward.dtype)[:, None].expand(rollout.mask.shape)
    return Advantage(masked.select(wide, rollout.trained))
