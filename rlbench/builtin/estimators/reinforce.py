"""Estimators with a baseline from the batch, or from one more completion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import torch

from rlbench import masked
from rlbench.builtin.estimators import discount, outcome
from rlbench.errors import UsageError
from rlbench.types import Advantage

if TYPE_CHECKING:
    from torch import Tensor

    from rlbench.types import Rollout


def reinforce(
    rollout: Rollout,
    *,
    baseline: Literal["batch", "none"] = "batch",
    std: bool = False,
    ddof: Annotated[int, "[0, 1]"] = 1,
    eps: Annotated[float, "[0, inf)"] = 1e-6,
) -> Advantage:
    """Compare an outcome with the mean of the whole batch: ``R - mean``.

    See: Williams, "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement
    Learning" (https://doi.org/10.1007/BF00992696).

    Differs: OpenRLHF's ``reinforce`` is `reinforce_pp`. NeMo-RL's ``raw_reward`` is
    ``baseline=none``. ROLL's ``norm_mean_type=batch`` is this, its ``running`` mean over updates is
    not offered: an estimator sees one rollout.

    Args:
        rollout: Only rewards and the mask are read.
        baseline: What is subtracted: the mean over the completions of the batch, or nothing.
        std: Divide by the standard deviation over the completions of the batch.
        ddof: For ``std``: the variance divides by the number of scored completions minus this,
            usually 1.
        eps: For ``std``: added to the standard deviation, usually 1e-8 to 1e-4.

    Returns:
        Advantages; no returns. A batch of equal outcomes gives exactly 0 with a baseline.
    """
    outcomes, counted = outcome.outcomes(rollout)
    advantage = outcomes
    if baseline == "batch":
        advantage = outcome.centred(outcomes, counted, torch.zeros_like(rollout.group))
    if std:
        deviation = masked.standard_deviation(outcomes, counted, ddof=ddof)
        equal = masked.group_constant(outcomes, counted, torch.zeros_like(rollout.group))
        advantage = torch.where(equal, advantage, outcome.divide(advantage, deviation + eps))
    return outcome.spread(advantage, rollout)


def reinforce_pp(
    rollout: Rollout,
    *,
    gamma: Annotated[float, "[0, 1]"] = 1.0,
    kl: Literal["to_go", "per_token"] = "to_go",
    whiten: bool = True,
    ddof: Annotated[int, "[0, 1]"] = 1,
    eps: Annotated[float, "[0, inf)"] = 1e-6,
) -> Advantage:
    """Whiten the returns of single tokens over the whole batch (REINFORCE++).

    ``G_t = r_t + gamma G_{t+1}`` with r from ``token_reward``, which holds the KL penalty where the
    controller places it in the reward (``place=reward``, as the paper does), then ``(G - mean) /
    (sd + eps)`` over all trained tokens of the rollout. Long completions weigh more in the mean.
    Tokens that the policy did not choose are stepped over.

    See: Hu et al., "REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global Advantage
    Normalization" (https://arxiv.org/abs/2501.03262), first published as "REINFORCE++: A Simple and
    Efficient Approach for Aligning Large Language Models".

    Differs: OpenRLHF calls it ``reinforce`` and whitens with ``ddof=0``; verl and SkyRL put eps
    (1e-8) inside the root. SkyRL, and verl in many versions, start the return again at every masked
    token, so that earlier turns never see the reward. NeMo-RL takes each token's own KL only
    (``kl=per_token,ddof=0``).

    Args:
        rollout: Reads token_reward and the mask.
        gamma: Discount for each token, usually 1.
        kl: A penalty in the reward is summed over a token and all later ones (``to_go``), or each
            token loses its own only (``per_token``).
        whiten: False leaves the returns as they are: no baseline at all.
        ddof: The variance divides by the number of tokens minus this, usually 0 or 1.
        eps: Added to the standard deviation, usually 1e-8 to 1e-5.

    Returns:
        Advantages; no returns, since there is no critic.
    """
    live = rollout.trained
    token_reward = masked.select(rollout.token_reward, live).double()
    own = masked.select(outcome.penalty(rollout), live) if kl == "per_token" else None
    summed = token_reward if own is None else token_reward - own
    steps = discount.selector(live, summed.dtype)
    found = discount.add_ahead(summed, summed, steps, weight=gamma, ratio=gamma)
    if own is not None:
        found = found + own
    return Advantage(_whiten(found, rollout, whiten=whiten, ddof=ddof, eps=eps))


def reinforce_pp_baseline(
    rollout: Rollout,
    *,
    kl: Literal["before", "after", "per_token"] = "before",
    singleton: Literal["zero", "raw"] = "zero",
    whiten: bool = True,
    ddof: Annotated[int, "[0, 1]"] = 1,
    eps: Annotated[float, "[0, inf)"] = 1e-6,
) -> Advantage:
    """Subtract the group's mean, then whiten over the tokens of the whole batch (REINFORCE++).

    ``A = (x - mean x) / (sd x + eps)`` over all trained tokens, with ``x = R - mean_group``. The
    standard deviation is that of the batch: a group of nearly equal outcomes is not blown up.
    The second mean is over tokens, so long completions weigh more, and a group without a signal
    gets the same small number everywhere instead of 0.

    See: Hu et al., "REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global Advantage
    Normalization", the variant "w/ baseline" (https://arxiv.org/abs/2501.03262).

    Differs: OpenRLHF calls it ``reinforce_baseline`` (``kl=after,ddof=0``). verl groups the sum of
    the token rewards (``kl=before``). slime takes each token's own KL (``kl=per_token``). ms-swift
    divides by the standard deviation over completions, which is `group_mean_batch_std` with
    ``spread_of=centred``. verl gives a group of one its raw reward.

    Args:
        rollout: Only rewards, groups and the mask are read.
        kl: A penalty in the reward is taken off before the baseline, after it (each token loses
            its own and all later penalties), or each token loses its own only (``per_token``).
        singleton: A completion alone in its group, because the others could not be scored, enters
            the whitening with 0 (``zero``) or with its outcome (``raw``).
        whiten: False leaves the centred outcomes as they are.
        ddof: The variance divides by the number of tokens minus this, usually 0 or 1.
        eps: Added to the standard deviation, usually 1e-8 to 1e-5.

    Returns:
        Advantages; no returns.
    """
    outcomes, counted = outcome.outcomes(rollout, kl)
    centred = outcome.centred(outcomes, counted, rollout.group, singleton)
    found = outcome.to_tokens(centred, rollout, kl)
    return Advantage(_whiten(found, rollout, whiten=whiten, ddof=ddof, eps=eps))


def remax(rollout: Rollout) -> Advantage:
    """Compare a return with the reward of the greedy completion of the same prompt (ReMax).

    ``A_t = G_t - R_greedy``, where G_t is the undiscounted sum of ``token_reward`` from t on: the
    reward itself, unless a KL penalty sits in it. The baseline costs one more completion for each
    prompt and no second draw, so ``group_size=1`` is enough. Where the greedy completion could not
    be scored there is no baseline, and the advantage is 0.

    See: Li et al., "ReMax: A Simple, Effective, and Efficient Reinforcement Learning Method for
    Aligning Large Language Models" (https://arxiv.org/abs/2310.10505).

    Differs: as published; verl's ``remax`` is the same.

    Args:
        rollout: Needs ``greedy_reward`` (B,).

    Returns:
        Advantages; no returns.

    Raises:
        UsageError: The rollout has no greedy rewards.
    """
    if rollout.greedy_reward is None:
        raise UsageError("the rollout has no greedy_reward; register with needs=('greedy_reward',)")
    baseline = rollout.greedy_reward.double()
    live = rollout.trained & ~baseline.isnan()[:, None]
    token_reward = masked.select(rollout.token_reward, live).double()
    steps = discount.selector(live, token_reward.dtype)
    to_go = discount.add_ahead(token_reward, token_reward, steps, weight=1.0, ratio=1.0)
    found = masked.select(to_go - baseline[:, None], live)
    return Advantage(found.to(rollout.token_reward.dtype))


def _whiten(x: Tensor, rollout: Rollout, *, whiten: bool, ddof: int, eps: float) -> Tensor:
    """Whiten in float64 if asked for; 0 outside the trained tokens, in the rollout's dtype."""
    live = rollout.trained
    found = masked.whiten(x, live, ddof=ddof, eps=eps) if whiten else masked.select(x, live)
    return found.to(rollout.token_reward.dtype)
