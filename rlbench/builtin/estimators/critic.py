"""Estimators that compare what came with what a critic expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import torch
from torch import Tensor

from rlbench import masked
from rlbench.builtin.estimators import discount, outcome
from rlbench.errors import UsageError
from rlbench.types import Advantage

if TYPE_CHECKING:
    from rlbench.types import Rollout

IN_CACHE = 2**18  # cells of a block of rows that is worked on at once


def gae(
    rollout: Rollout,
    *,
    gamma: Annotated[float, "[0, 1]"] = 1.0,
    lam: Annotated[float, "[0, 1]"] = 0.95,
    truncation: Literal["terminal", "bootstrap"] = "terminal",
    gaps: Literal["carry", "zero"] = "carry",
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

    Differs: verl, OpenRLHF, slime and SkyRL default to lam=1; verl always whitens. OpenRLHF steps
    through masked tokens (``gaps=zero``); ROLL, SkyRL and slime's PPO don't know of the mask.
    Libraries for language models treat a cut completion as ended; torchrl tells ``done`` from
    ``terminated``. CleanRL whitens each minibatch, here it is the whole rollout.

    Args:
        rollout: Needs ``values`` (B, T), and ``last_value`` (B,) for ``truncation=bootstrap``.
        gamma: Discount for each token, usually 1.
        lam: 0 trusts the critic, 1 the observed reward; usually 0.9 to 1.
        truncation: A cut completion ends where it was cut (``terminal``: its reward judged the cut
            text), or goes on with ``last_value`` (``bootstrap``).
        gaps: Masked tokens between others are stepped over (``carry``), or are states of value 0
            that cost a discount each (``zero``), which bends advantages after several turns.
        whiten: Shift and scale the advantages to mean 0 and standard deviation 1 over all tokens.
        ddof: For ``whiten``: the variance divides by the number of tokens minus this.
        eps: For ``whiten``: added to the standard deviation.

    Returns:
        Advantages, and as ``returns`` the critic's targets: unwhitened advantages plus values.

    Raises:
        UsageError: The rollout lacks what the options need.
    """
    states = _States(rollout, gamma=gamma, truncation=truncation, gaps=gaps)
    advantages, returns = states.estimate(lam)
    return _answer(states, advantages, returns, whiten=whiten, ddof=ddof, eps=eps)


def mc_returns(
    rollout: Rollout,
    *,
    gamma: Annotated[float, "[0, 1]"] = 1.0,
    truncation: Literal["terminal", "bootstrap"] = "terminal",
    whiten: bool = False,
    ddof: Annotated[int, "[0, 1]"] = 1,
    eps: Annotated[float, "[0, inf)"] = 1e-6,
) -> Advantage:
    """Compare the observed return with the critic's value: ``A_t = G_t - V_t``.

    ``G_t = r_t + gamma G_{t+1}``: no bias from the critic, more variance. It is `gae` with lam=1.

    See: Sutton and Barto, "Reinforcement Learning: An Introduction", section 13.4, REINFORCE with
    baseline (http://incompleteideas.net/book/the-book.html).

    Differs: it is what verl, OpenRLHF, slime and SkyRL do under the name "gae" by default (lam=1);
    verl whitens it.

    Args:
        rollout: Needs ``values`` (B, T), and ``last_value`` (B,) for ``truncation=bootstrap``.
        gamma: Discount for each token, usually 1.
        truncation: A cut completion ends where it was cut (``terminal``), or goes on with
            ``last_value`` (``bootstrap``).
        whiten: Shift and scale the advantages to mean 0 and standard deviation 1 over all tokens.
        ddof: For ``whiten``: the variance divides by the number of tokens minus this.
        eps: For ``whiten``: added to the standard deviation.

    Returns:
        Advantages, and as ``returns`` the critic's targets G.

    Raises:
        UsageError: The rollout lacks what the options need.
    """
    states = _States(rollout, gamma=gamma, truncation=truncation)
    advantages, returns = states.estimate(1.0)
    return _answer(states, advantages, returns, whiten=whiten, ddof=ddof, eps=eps)


def decoupled_gae(
    rollout: Rollout,
    *,
    gamma: Annotated[float, "[0, 1]"] = 1.0,
    lam_policy: Annotated[float, "[0, 1]"] = 0.95,
    lam_critic: Annotated[float, "[0, 1]"] = 1.0,
    truncation: Literal["terminal", "bootstrap"] = "terminal",
    whiten: bool = False,
    ddof: Annotated[int, "[0, 1]"] = 1,
    eps: Annotated[float, "[0, inf)"] = 1e-6,
) -> Advantage:
    """Estimate advantages with one lambda and the critic's targets with another (VC-PPO).

    Below 1, a reward at the end fades on its way to the first tokens, and the critic's targets
    are its own guesses. Targets with lambda 1 are not; advantages keep the smaller variance.

    See: Yuan et al., "What's Behind PPO's Collapse in Long-CoT? Value Optimization Holds the
    Secret" (https://arxiv.org/abs/2503.01491). The paper also trains the critic
    before the policy, which is no part of an estimator.

    Differs: NeMo-RL calls the two ``gae_lambda_policy`` and ``gae_lambda_value``.

    Args:
        rollout: Needs ``values`` (B, T), and ``last_value`` (B,) for ``truncation=bootstrap``.
        gamma: Discount for each token, usually 1.
        lam_policy: As ``lam`` of `gae`, for the advantages.
        lam_critic: As ``lam`` of `gae`, for the critic's targets.
        truncation: A cut completion ends where it was cut (``terminal``), or goes on with
            ``last_value`` (``bootstrap``).
        whiten: Shift and scale the advantages to mean 0 and standard deviation 1 over all tokens.
        ddof: For ``whiten``: the variance divides by the number of tokens minus this.
        eps: For ``whiten``: added to the standard deviation.

    Returns:
        Advantages, and as ``returns`` the critic's targets.

    Raises:
        UsageError: The rollout lacks what the options need.
    """
    states = _States(rollout, gamma=gamma, truncation=truncation)
    advantages, _ = states.estimate(lam_policy)
    _, returns = states.estimate(lam_critic)
    return _answer(states, advantages, returns, whiten=whiten, ddof=ddof, eps=eps)


def length_adaptive_gae(
    rollout: Rollout,
    *,
    alpha: Annotated[float, "(0, inf)"] = 0.05,
    gamma: Annotated[float, "[0, 1]"] = 1.0,
    lam_critic: Annotated[float, "[0, 1]"] = 1.0,
    truncation: Literal["terminal", "bootstrap"] = "terminal",
    whiten: bool = False,
    ddof: Annotated[int, "[0, 1]"] = 1,
    eps: Annotated[float, "[0, inf)"] = 1e-6,
) -> Advantage:
    """Choose lambda by the length l of a completion: ``1 - 1 / (alpha l)`` (VAPO).

    The reach of `gae` is then ``alpha l`` tokens. Completions of up to ``1 / alpha`` tokens get
    lambda 0: with the paper's alpha of 0.05 these are 20 tokens, so raise it for short tasks.

    See: Yue et al., "VAPO: Efficient and Reliable Reinforcement Learning for Advanced Reasoning
    Tasks" (https://arxiv.org/abs/2504.05118).

    Differs: as published. NeMo-RL writes the bound at 0 as ``1 - 1 / max(alpha l, 1)``, the same.

    Args:
        rollout: Needs ``values`` (B, T), and ``last_value`` (B,) for ``truncation=bootstrap``.
        alpha: Share of a completion that advantages reach over. The paper's 0.05 is for thousands
            of tokens; 0.5 to 2 suits tens.
        gamma: Discount for each token, usually 1.
        lam_critic: As ``lam`` of `gae`, for the critic's targets.
        truncation: A cut completion ends where it was cut (``terminal``), or goes on with
            ``last_value`` (``bootstrap``).
        whiten: Shift and scale the advantages to mean 0 and standard deviation 1 over all tokens.
        ddof: For ``whiten``: the variance divides by the number of tokens minus this.
        eps: For ``whiten``: added to the standard deviation.

    Returns:
        Advantages, and as ``returns`` the critic's targets.

    Raises:
        UsageError: The rollout lacks what the options need.
    """
    states = _States(rollout, gamma=gamma, truncation=truncation)
    reach = (alpha * states.live.sum(1).double()).clamp(min=1)
    lam = (1 - 1 / reach).to(states.values.dtype)  # (B,)
    advantages, _ = states.estimate(lam)
    _, returns = states.estimate(lam_critic)
    return _answer(states, advantages, returns, whiten=whiten, ddof=ddof, eps=eps)


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
    # Step by step: completions that are alike must have advantages that are, to the last bit.
    states = _States(rollout, gamma=gamma, truncation=truncation, by_steps=True)
    advantages, returns = states.estimate(lam)
    wide, live, ids = advantages.double(), states.live, rollout.group
    deviation = masked.group_standard_deviation(wide, live, ids, ddof=ddof)
    centred = outcome.centred(wide, live, ids)
    return Advantage(outcome.divide(centred, deviation + eps).to(returns.dtype), returns)


class _States:
    """Rewards and values of a rollout's trained tokens, and where each row ends."""

    def __init__(
        self,
        rollout: Rollout,
        *,
        gamma: float,
        truncation: str,
        gaps: str = "carry",
        by_steps: bool = False,
    ) -> None:
        if rollout.values is None:
            raise UsageError("the rollout has no values; register with needs=('values',)")
        # Detached once: targets carry no gradient.
        self.reward, self.values = rollout.token_reward.detach(), rollout.values.detach()
        self.live = rollout.trained
        self.gamma = gamma
        self.by_steps = by_steps
        self.end: Tensor | None = None
        self.steps = self.live
        if gaps == "zero":
            self.steps = self.live.flip(1).cumsum(1).flip(1) > 0  # up to the last trained token
        # On short rows gaps cost nothing, and with or without them the bits are the same.
        long = self.live.shape[1] > discount.CHUNK and not by_steps
        self.unbroken = long and discount.unbroken(self.steps)
        if truncation == "bootstrap":
            if rollout.last_value is None:
                raise UsageError(
                    "truncation=bootstrap: the rollout has no last_value; register with "
                    "needs=('values', 'last_value')"
                )
            cut = rollout.truncated & self.live.any(1)
            self.end = masked.select(rollout.last_value.detach(), cut)

    def estimate(self, lam: float | Tensor) -> tuple[Tensor, Tensor]:
        """Advantages and lambda-returns (B, T), 0 outside the trained tokens.

        Args:
            lam: One for all, or (B,).
        """
        rows, width = self.live.shape
        block = max(1, IN_CACHE // max(1, width))
        if rows <= block:
            found, values = self._estimate(slice(0, rows), lam)
            return found, found + values
        advantages, returns = torch.empty_like(self.values), torch.empty_like(self.values)
        for start in range(0, rows, block):
            part = slice(start, start + block)
            found, values = self._estimate(part, lam[part] if isinstance(lam, Tensor) else lam)
            advantages[part] = found
            torch.add(found, values, out=returns[part])
        return advantages, returns

    def _estimate(self, part: slice, lam: float | Tensor) -> tuple[Tensor, Tensor]:
        """Advantages and values of some rows, 0 outside the trained tokens."""
        inside = discount.selector(self.live[part], self.values.dtype)
        reward = discount.keep(self.reward[part], inside)
        values = discount.keep(self.values[part], inside)
        if not self.unbroken:
            return discount.keep(self._over_gaps(reward, values, part, lam), inside), values
        found = self._next_to_next(reward, values, part, lam)
        return (found if self.steps is self.live else discount.keep(found, inside)), values

    def _next_to_next(
        self, reward: Tensor, values: Tensor, part: slice, lam: float | Tensor
    ) -> Tensor:
        """Sum the surprises, as the recursion is written down."""
        surprise = reward - values
        surprise[:, :-1].add_(values[:, 1:], alpha=self.gamma)
        if self.end is not None:
            last = (self.steps[part].sum(1) - 1).clamp(min=0)  # the end of an empty row is 0
            surprise.scatter_add_(1, last[:, None], self.gamma * self.end[part, None])
        return discount.to_go_unbroken(surprise, self.gamma * lam)

    def _over_gaps(
        self, reward: Tensor, values: Tensor, part: slice, lam: float | Tensor
    ) -> Tensor:
        """Get by without the value of the next token, which may be any number of cells away.

        The lambda-return is ``R_t = r_t + gamma Y_{t+1}``, where ``Y_t = (1 - lam) V_t + lam R_t``
        is what the step before looks forward to, a recursion of its own, carried over gaps.
        """
        own = torch.lerp(values, reward, lam[:, None] if isinstance(lam, Tensor) else lam)
        end = None if self.end is None else self.end[part]
        ratio, steps = self.gamma * lam, self.steps[part]
        ahead = discount.to_go(own, steps, ratio, end, by_steps=self.by_steps)
        return torch.add(reward - values, ahead[:, 1:], alpha=self.gamma)


def _answer(
    states: _States, advantages: Tensor, returns: Tensor, *, whiten: bool, ddof: int, eps: float
) -> Advantage:
    """Whiten the advantages if asked for."""
    if whiten:
        advantages = masked.whiten(advantages, states.live, ddof=ddof, eps=eps)
    return Advantage(advantages, returns)
