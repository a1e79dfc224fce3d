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
        ddof: For ``whiten``: the variance divides by the number of tokens minus this, usually 0
            or 1.
        eps: For ``whiten``: added to the standard deviation, usually 1e-8 to 1e-5.

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

    See: Sutton and Barto, "Reinforcement Learning: An Introduction", REINFORCE with baseline
    (http://incompleteideas.net/book/the-book.html).

    Differs: it is what verl, OpenRLHF, slime and SkyRL do under the name "gae" by default (lam=1);
    verl whitens it.

    Args:
        rollout: Needs ``values`` (B, T), and ``last_value`` (B,) for ``truncation=bootstrap``.
        gamma: Discount for each token, usually 1.
        truncation: A cut completion ends where it was cut (``terminal``), or goes on with
            ``last_value`` (``bootstrap``).
        whiten: Shift and scale the advantages to mean 0 and standard deviation 1 over all tokens.
        ddof: For ``whiten``: the variance divides by the number of tokens minus this, usually 0
            or 1.
        eps: For ``whiten``: added to the standard deviation, usually 1e-8 to 1e-5.

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

    ``A = gae(lam_policy)`` and ``returns = V + gae(lam_critic)``.
    Below 1, a reward at the end fades on its way to the first tokens, and the critic's targets
    are its own guesses. Targets with lambda 1 are not; advantages keep the smaller variance.

    See: Yuan et al., "What's Behind PPO's Collapse in Long-CoT? Value Optimization Holds the
    Secret" (https://arxiv.org/abs/2503.01491). The paper also trains the critic
    before the policy, which is no part of an estimator.

    Differs: NeMo-RL calls the two ``gae_lambda_policy`` and ``gae_lambda_value``.

    Args:
        rollout: Needs ``values`` (B, T), and ``last_value`` (B,) for ``truncation=bootstrap``.
        gamma: Discount for each token, usually 1.
        lam_policy: As ``lam`` of `gae`, for the advantages, usually 0.95.
        lam_critic: As ``lam`` of `gae`, for the critic's targets, usually 1.
        truncation: A cut completion ends where it was cut (``terminal``), or goes on with
            ``last_value`` (``bootstrap``).
        whiten: Shift and scale the advantages to mean 0 and standard deviation 1 over all tokens.
        ddof: For ``whiten``: the variance divides by the number of tokens minus this, usually 0
            or 1.
        eps: For ``whiten``: added to the standard deviation, usually 1e-8 to 1e-5.

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
        alpha: Share of a completion that advantages reach over, usually 0.05 for thousands of
            tokens, as published, and 0.5 to 2 for tens.
        gamma: Discount for each token, usually 1.
        lam_critic: As ``lam`` of `gae`, for the critic's targets, usually 1.
        truncation: A cut completion ends where it was cut (``terminal``), or goes on with
            ``last_value`` (``bootstrap``).
        whiten: Shift and scale the advantages to mean 0 and standard deviation 1 over all tokens.
        ddof: For ``whiten``: the variance divides by the number of tokens minus this, usually 0
            or 1.
        eps: For ``whiten``: added to the standard deviation, usually 1e-8 to 1e-5.

    Returns:
        Advantages, and as ``returns`` the critic's targets.

    Raises:
        UsageError: The rollout lacks what the options need.
    """
    states = _States(rollout, gamma=gamma, truncation=truncation)
    reach = (alpha * states.live.sum(1).double()).clamp(min=1)
    lam = 1 - 1 / reach  # (B,)
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

    ``A = (a - mean_t) / (sd_t + eps)``, with a from `gae`, and mean and standard deviation over the
    group's completions that have a token at position t. A completion that is alone at t gets 0
    there.

    See: `gae` and `group`; no paper proposes the combination, small LSTM trainers have used it.

    Differs: where a completion is alone, the usual code divides by the standard deviation of one
    number and gives NaN.

    Args:
        rollout: Needs ``values`` (B, T), and ``last_value`` (B,) for ``truncation=bootstrap``.
        gamma: Discount for each token, usually 1.
        lam: 0 trusts the critic, 1 the observed reward; usually 0.9 to 1.
        truncation: A cut completion ends where it was cut (``terminal``), or goes on with
            ``last_value`` (``bootstrap``).
        ddof: The variance divides by the number of completions at t minus this, usually 0 or 1.
        eps: Added to the standard deviation, usually 1e-8 to 1e-5.

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


IN_CACHE = 2**18  # cells of a block of rows that is worked on at once


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
        self.dtype = rollout.token_reward.dtype
        # at least single precision: half of it can't add up a thousand tokens
        work = torch.promote_types(
            torch.promote_types(self.dtype, rollout.values.dtype), torch.float
        )
        # Detached once: targets carry no gradient.
        self.reward = rollout.token_reward.detach().to(work)
        self.values = rollout.values.detach().to(work)
        self.live = rollout.trained
        self.gamma = gamma
        self.by_steps = by_steps
        self.end = self.values.new_zeros(len(self.values))
        self.steps = self.live
        if gaps == "zero":
            self.steps = self.live.flip(1).cumsum(1).flip(1) > 0  # up to the last trained token
        if truncation == "bootstrap":
            if rollout.last_value is None:
                raise UsageError(
                    "truncation=bootstrap: the rollout has no last_value; register with "
                    "needs=('values', 'last_value')"
                )
            cut = rollout.truncated & self.live.any(1)
            self.end = masked.select(rollout.last_value.detach().to(work), cut)
        # Matrix products promise no equal bits to equal rows, and on short rows they don't pay.
        long = self.live.shape[1] > discount.CHUNK and not by_steps
        self.unbroken = long and truncation == "terminal" and discount.unbroken(self.steps)

    def estimate(self, lam: float | Tensor) -> tuple[Tensor, Tensor]:
        """Advantages and lambda-returns (B, T), 0 outside the trained tokens.

        The value of the next token may be any number of cells away, so the recursion gets by
        without it: ``R_t = r_t + gamma Y_{t+1}``, where ``Y_t = (1 - lam) V_t + lam R_t`` is what
        the step before looks forward to, a recursion of its own that is carried over gaps.

        Args:
            lam: One for all, or (B,) in float64.
        """
        with torch.autocast(self.values.device.type, enabled=False):
            advantages, returns = self._estimate(lam)
        return advantages.to(self.dtype), returns.to(self.dtype)

    def _estimate(self, lam: float | Tensor) -> Tensor:
        """Advantages and lambda-returns (2, B, T), by blocks of rows."""
        rows, width = self.live.shape
        # One piece of memory: of two, the allocator gives one back to the system after every call.
        found = self.values.new_empty(2, rows, width)
        block = max(1, IN_CACHE // max(1, width))
        for start in range(0, rows, block):
            part = slice(start, start + block)
            values, inside = self.values[part], discount.selector(self.live[part], found.dtype)
            observed = self._observed(part, inside, lam[part] if isinstance(lam, Tensor) else lam)
            discount.keep(observed, inside, out=found[1, part])
            observed.sub_(values)
            discount.keep(observed, inside, out=found[0, part])
        return found

    def _observed(self, part: slice, inside: Tensor, lam: float | Tensor) -> Tensor:
        """Lambda-returns of some rows, and anything outside the trained tokens."""
        reward, values, ratio = self.reward[part], self.values[part], self.gamma * lam
        weight = lam[:, None].to(values.dtype) if isinstance(lam, Tensor) else lam
        own = torch.lerp(values, reward, weight)
        discount.keep(own, inside, out=own)
        if self.unbroken and isinstance(ratio, float):
            return discount.add_ahead_unbroken(reward, own, weight=self.gamma, ratio=ratio)
        steps = inside
        if self.steps is not self.live:
            steps = discount.selector(self.steps[part], values.dtype)
        end, by_steps = self.end[part], self.by_steps
        return discount.add_ahead(
            reward, own, steps, weight=self.gamma, ratio=ratio, end=end, by_steps=by_steps
        )


def _answer(
    states: _States, advantages: Tensor, returns: Tensor, *, whiten: bool, ddof: int, eps: float
) -> Advantage:
    """Whiten the advantages if asked for."""
    if whiten:
        advantages = masked.whiten(advantages, states.live, ddof=ddof, eps=eps)
    return Advantage(advantages, returns)
