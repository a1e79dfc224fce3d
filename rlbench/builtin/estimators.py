"""Advantage estimators: how much better than expected was each token?

All return (B, T) advantages, positive for better than expected and 0 outside the mask. Rows without
a reward (NaN) take part in nothing and get 0. Statistics are taken in float64, so that neither the
order of rows nor rounding residue becomes signal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import torch

from rlbench import masked
from rlbench.errors import UsageError
from rlbench.types import Advantage

if TYPE_CHECKING:
    from torch import Tensor

    from rlbench.types import Rollout


def gae(
    rollout: Rollout,
    *,
    gamma: Annotated[float, "[0, 1]"] = 1.0,
    lam: Annotated[float, "[0, 1]"] = 0.95,
    truncation: Literal["terminal", "bootstrap"] = "terminal",
    whiten: bool = False,
    ddof: Annotated[int, "[0, 1]"] = 1,
    eps: Annotated[float, "[0, inf)"] = 1e-6,
) -> Advantage:
    """Weigh the critic's surprises at this and all later tokens (generalised advantage estimation).

    ``delta_t = r_t + gamma V_{t+1} - V_t`` and ``A_t = delta_t + gamma lam A_{t+1}``, where t + 1
    is the next token of the mask: tokens that the policy did not choose are stepped over and cost
    no discount.

    See: Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage
    Estimation", eq. 16 (https://arxiv.org/abs/1506.02438).

    Differs: verl, OpenRLHF and SkyRL default to lam=1. OpenRLHF steps through masked tokens with
    V=0, one discount each. Libraries for language models treat a cut completion as ended.

    Args:
        rollout: Needs ``values`` (B, T), and ``last_value`` (B,) for ``truncation=bootstrap``.
        gamma: Discount for each token, usually 1.
        lam: 0 trusts the critic, 1 the observed reward; usually 0.9 to 1.
        truncation: A cut completion ends where it was cut (``terminal``: its reward judged the cut
            text), or goes on with ``last_value`` (``bootstrap``).
        whiten: Shift and scale the advantages to mean 0 and standard deviation 1 over all tokens.
        ddof: For ``whiten``: the variance divides by the number of tokens minus this.
        eps: For ``whiten``: added to the standard deviation.

    Returns:
        Advantages, and as ``returns`` the critic's targets: unwhitened advantages plus values.

    Raises:
        UsageError: The rollout lacks what the options need.
    """
    advantages, returns = _gae(rollout, gamma=gamma, lam=lam, truncation=truncation)
    if whiten:
        advantages = masked.whiten(advantages, rollout.trained, ddof=ddof, eps=eps)
    return Advantage(advantages, returns)


def group(
    rollout: Rollout,
    *,
    std: bool = True,
    ddof: Annotated[int, "[0, 1]"] = 1,
    eps: Annotated[float, "[0, inf)"] = 1e-6,
) -> Advantage:
    """Compare an outcome with those of the same prompt: ``(R - mean) / (sd + eps)``.

    A is the same for every token of a completion. A group whose outcomes are all equal gives 0.

    See: Shao et al., "DeepSeekMath", section 4.1.2 (https://arxiv.org/abs/2402.03300). With
    ``std=false`` it is the estimator of Dr. GRPO: Liu et al., "Understanding R1-Zero-Like
    Training", section 3.2 (https://arxiv.org/abs/2503.20783), which also changes the aggregation.

    Differs: eps is 1e-4 in TRL and 1e-9 in OpenRLHF; open-instruct divides the variance by n and
    leaves the standard deviation out by default; NeMo-RL's "grpo" leaves the own reward out of the
    mean; verl gives a group of one its raw reward, here 0.

    Args:
        rollout: Only rewards, groups and the mask are read.
        std: Divide by the standard deviation of the group.
        ddof: The variance divides by the number of scored completions minus this.
        eps: Added to the standard deviation.

    Returns:
        Advantages; no returns.
    """
    outcome, counted = _outcomes(rollout)
    advantage = _centred(outcome, counted, rollout.group)
    if std:
        spread = masked.group_standard_deviation(outcome, counted, rollout.group, ddof=ddof)
        advantage = _divide(advantage, spread + eps)
    return Advantage(_to_tokens(advantage, rollout))


def rloo(rollout: Rollout) -> Advantage:
    """Compare an outcome with the mean of the others of the same prompt (leave one out).

    ``R_i - mean_{j != i} R_j``, which is ``n / (n - 1) (R_i - mean)``.

    See: Ahmadian et al., "Back to Basics", eq. 8 (https://arxiv.org/abs/2402.14740); Kool et al.,
    "Buy 4 REINFORCE Samples, Get a Baseline for Free!" (2019).

    Differs: TRL's RLOOTrainer also clips a ratio of whole sequences, which is a loss, not an
    estimator. verl's ``rloo`` gives a group of one its raw reward, here 0.

    Args:
        rollout: Only rewards, groups and the mask are read.

    Returns:
        Advantages; no returns.
    """
    outcome, counted = _outcomes(rollout)
    n = masked.group_count(counted, rollout.group)
    advantage = _centred(outcome, counted, rollout.group) * n / (n - 1).clamp(min=1)
    return Advantage(_to_tokens(advantage, rollout))


def group_gae(
    rollout: Rollout,
    *,
    gamma: Annotated[float, "[0, 1]"] = 1.0,
    lam: Annotated[float, "[0, 1]"] = 0.95,
    truncation: Literal["terminal", "bootstrap"] = "terminal",
    ddof: Annotated[int, "[0, 1]"] = 1,
    eps: Annotated[float, "[0, inf)"] = 1e-6,
) -> Advantage:
    """Standardise GAE advantages within the group, at each token position on its own.

    A hybrid of two ideas: a critic's advantages, then at every position t minus the mean, over the
    standard deviation, of the group's completions that still have a token at t. A completion that
    is alone at t gets 0 there.

    See: `gae` and `group`; no paper proposes the combination, small LSTM trainers have used it.

    Differs: where a completion is alone, the usual code divides by the standard deviation of one
    number and gives NaN.

    Args:
        rollout: Needs ``values`` (B, T), and ``last_value`` (B,) for ``truncation=bootstrap``.
        gamma: Discount for each token, usually 1.
        lam: 0 trusts the critic, 1 the observed reward; usually 0.9 to 1.
        truncation: A cut completion ends where it was cut (``terminal``), or goes on with
            ``last_value`` (``bootstrap``).
        ddof: The variance divides by the number of completions at t minus this.
        eps: Added to the standard deviation.

    Returns:
        Advantages, and as ``returns`` the critic's targets: GAE advantages plus values.

    Raises:
        UsageError: The rollout lacks what the options need.
    """
    advantages, returns = _gae(rollout, gamma=gamma, lam=lam, truncation=truncation)
    live, wide = rollout.trained, advantages.double()
    spread = masked.group_standard_deviation(wide, live, rollout.group, ddof=ddof)
    centred = _centred(wide, live, rollout.group)
    return Advantage(_divide(centred, spread + eps).to(advantages.dtype), returns)


def _gae(rollout: Rollout, *, gamma: float, lam: float, truncation: str) -> tuple[Tensor, Tensor]:
    """Advantages and returns (B, T), 0 outside the trained tokens."""
    if rollout.values is None:
        raise UsageError("gae: the rollout has no values; register with needs=('values',)")
    live = rollout.trained
    reward = masked.select(rollout.token_reward, live)
    values = masked.select(rollout.values, live)
    next_value = torch.zeros_like(values[:, :0].sum(1))  # (B,)
    if truncation == "bootstrap":
        if rollout.last_value is None:
            raise UsageError(
                "truncation=bootstrap: the rollout has no last_value; register with "
                "needs=('values', 'last_value')"
            )
        next_value = masked.select(rollout.last_value, rollout.truncated)
    next_advantage = torch.zeros_like(next_value)
    advantages = torch.zeros_like(values)
    for t in reversed(range(live.shape[1])):
        here = live[:, t]
        delta = reward[:, t] + gamma * next_value - values[:, t]
        # A token outside the mask hands on what comes after it.
        next_advantage = torch.where(here, delta + gamma * lam * next_advantage, next_advantage)
        next_value = torch.where(here, values[:, t], next_value)
        advantages[:, t] = masked.select(next_advantage, here)
    return advantages, advantages + values


def _outcomes(rollout: Rollout) -> tuple[Tensor, Tensor]:
    """Outcome of each completion (B,) in float64, and which completions count (B,).

    The sum over token_reward is the reward when no KL sits in it, exactly, since the other tokens
    hold 0. A completion without a token has nowhere to hold its outcome and doesn't count.
    """
    outcome = masked.total(rollout.token_reward.double(), rollout.trained, 1)
    return outcome, rollout.trained.any(1)


def _centred(x: Tensor, mask: Tensor, group_ids: Tensor) -> Tensor:
    """Subtract the group's mean; exactly 0 in a group that is constant, and outside the mask."""
    signal = mask & ~masked.group_constant(x, mask, group_ids)
    return masked.select(x - masked.group_mean(x, mask, group_ids), signal)


def _divide(centred: Tensor, by: Tensor) -> Tensor:
    """Divide where there is a signal, so that 0 / 0 can't arise with eps=0."""
    return centred / torch.where(centred == 0, 1.0, by)


def _to_tokens(advantage: Tensor, rollout: Rollout) -> Tensor:
    """Give every trained token the advantage of its completion: (B,) to (B, T)."""
    wide = advantage.to(rollout.token_reward.dtype)[:, None].expand(rollout.mask.shape)
    return masked.select(wide, rollout.trained)
