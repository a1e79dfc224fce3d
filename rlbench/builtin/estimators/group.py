"""Estimators that compare an outcome with those of the same prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import torch

from rlbench import masked
from rlbench.builtin.estimators import outcome

if TYPE_CHECKING:
    from torch import Tensor

    from rlbench.types import Advantage, Rollout


def group(
    rollout: Rollout,
    *,
    std: bool = True,
    ddof: Annotated[int, "[0, 1]"] = 1,
    eps: Annotated[float, "[0, inf)"] = 1e-6,
    leave_one_out: bool = False,
    singleton: Literal["zero", "raw"] = "zero",
    kl: Literal["before", "after", "per_token"] = "before",
) -> Advantage:
    """Compare an outcome with those of the same prompt: ``(R - mean) / (sd + eps)``.

    A is the same for every token of a completion. A group whose outcomes are all equal gives 0.

    See: Shao et al., "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language
    Models", section 4.1.2 (https://arxiv.org/abs/2402.03300), where it is called GRPO.

    Differs: libraries give different numbers under the name "grpo". verl and SkyRL:
    ``singleton=raw``. slime: the defaults here. TRL and torchtune: ``eps=1e-4``.
    OpenRLHF's ``group_norm``: ``eps=1e-9,kl=after``. open-instruct: ``std=false`` by default, else
    ``ddof=0,eps=1e-8``. prime-rl: ``std=false``. NeMo-RL: ``leave_one_out=true``, where rounding
    residue of a lone winner's rivals can make it a thousand; not here. torchrl keeps the standard
    deviation above 1e-6 instead of adding to it: ``eps=0`` for all but the smallest. The name
    often means an aggregation too, which is a setting of its own here.

    Args:
        rollout: Only rewards, groups and the mask are read.
        std: Divide by the standard deviation of the group.
        ddof: The variance divides by the number of scored completions minus this; usually 1.
        eps: Added to the standard deviation, usually 1e-9 to 1e-4.
        leave_one_out: Mean and standard deviation are those of the others. Where the others are
            all equal, or only one, nothing is divided.
        singleton: A completion alone in its group, because the others could not be scored, gets 0
            (``zero``) or its outcome (``raw``).
        kl: A penalty in the reward is taken off before the baseline, after it (each token loses
            its own and all later penalties), or each token loses its own only (``per_token``).

    Returns:
        Advantages; no returns.
    """
    outcomes, counted = outcome.outcomes(rollout, kl)
    ids = rollout.group
    if leave_one_out:
        centre, deviation = _others(outcomes, counted, ids, ddof)
        advantage = masked.select(outcomes - centre, counted)
        # A lone winner's rivals are equal; dividing by eps alone would make it a million.
        by = torch.where(deviation > 0, deviation + eps, 1.0)
    else:
        advantage = outcome.centred(outcomes, counted, ids)
        by = masked.group_standard_deviation(outcomes, counted, ids, ddof=ddof) + eps
    if std:
        advantage = outcome.divide(advantage, by)
    advantage = outcome.alone_as(singleton, outcomes, advantage, counted, ids)
    return outcome.spread(advantage, rollout, kl)


def dr_grpo(
    rollout: Rollout,
    *,
    singleton: Literal["zero", "raw"] = "zero",
    kl: Literal["before", "after", "per_token"] = "before",
) -> Advantage:
    """Subtract the group's mean and divide by nothing: ``R - mean``.

    Dividing by the standard deviation weighs prompts that are nearly solved, or nearly hopeless,
    more than the others. The paper also divides the loss by a constant instead of the length:
    set ``aggregation=seq_mean_token_sum_norm`` for the whole method.

    See: Liu et al., "Understanding R1-Zero-Like Training: A Critical Perspective", section 3.2
    (https://arxiv.org/abs/2503.20783).

    Differs: it is `group` with ``std=false``; verl says ``norm_adv_by_std_in_grpo=False``, TRL
    ``scale_rewards="none"``, open-instruct ``centered`` (its default), and prime-rl just "grpo".
    TRL's ``loss_type="dr_grpo"`` is the aggregation and leaves the estimator alone. verl gives a
    group of one its raw reward.

    Args:
        rollout: Only rewards, groups and the mask are read.
        singleton: A completion alone in its group, because the others could not be scored, gets 0
            (``zero``) or its outcome (``raw``).
        kl: A penalty in the reward is taken off before the baseline, after it (each token loses
            its own and all later penalties), or each token loses its own only (``per_token``).

    Returns:
        Advantages; no returns.
    """
    outcomes, counted = outcome.outcomes(rollout, kl)
    advantage = outcome.centred(outcomes, counted, rollout.group, singleton)
    return outcome.spread(advantage, rollout, kl)


def rloo(
    rollout: Rollout,
    *,
    singleton: Literal["zero", "raw"] = "zero",
    kl: Literal["before", "after", "per_token"] = "before",
) -> Advantage:
    """Compare an outcome with the mean of the others of the same prompt (leave one out).

    ``R_i - mean_{j != i} R_j``, which is ``n / (n - 1) (R_i - mean)``.

    See: Ahmadian et al., "Back to Basics: Revisiting REINFORCE Style Optimization for Learning
    from Human Feedback in LLMs" (https://arxiv.org/abs/2402.14740); Kool et al., "Buy 4
    REINFORCE Samples, Get a Baseline for Free!" (https://openreview.net/forum?id=r1lgTGL5DE).

    Differs: TRL's RLOOTrainer takes the KL of the whole completion off before the baseline
    (``kl=before``) and clips a ratio of whole sequences, which is a loss, not an estimator.
    OpenRLHF takes the KL of each token off after it (``kl=after``). verl's ``rloo`` gives a group
    of one its raw reward, its ``rloo_vectorized`` gives 0.

    Args:
        rollout: Only rewards, groups and the mask are read.
        singleton: A completion alone in its group, because the others could not be scored, gets 0
            (``zero``) or its outcome (``raw``).
        kl: A penalty in the reward is taken off before the baseline, after it (each token loses
            its own and all later penalties), or each token loses its own only (``per_token``).

    Returns:
        Advantages; no returns.
    """
    outcomes, counted = outcome.outcomes(rollout, kl)
    n = masked.group_count(counted, rollout.group)
    advantage = outcome.centred(outcomes, counted, rollout.group, singleton)
    return outcome.spread(advantage * n / (n - 1).clamp(min=1), rollout, kl)


def opo(
    rollout: Rollout,
    *,
    singleton: Literal["zero", "raw"] = "zero",
) -> Advantage:
    """Subtract the group's mean weighted by length: ``R - sum(l R) / sum(l)``.

    The baseline with the least variance weighs outcomes by the squared norm of their gradient;
    the number of tokens stands in for it.

    See: Hao et al., "On-Policy RL with Optimal Reward Baseline"
    (https://arxiv.org/abs/2505.23585).

    Differs: verl gives a group of one its raw reward, and counts completions without a token,
    which divides 0 by 0 if there is nothing else.

    Args:
        rollout: Only rewards, groups and the mask are read.
        singleton: A completion alone in its group, because the others could not be scored, gets 0
            (``zero``) or its outcome (``raw``).

    Returns:
        Advantages; no returns.
    """
    outcomes, counted = outcome.outcomes(rollout)
    ids, length = rollout.group, rollout.trained.sum(1)
    weighted = masked.group_total(length * outcomes, counted, ids)
    baseline = weighted / masked.group_total(length, counted, ids).clamp(min=1)
    signal = counted & ~masked.group_constant(outcomes, counted, ids)
    advantage = masked.select(outcomes - baseline, signal)
    advantage = outcome.alone_as(singleton, outcomes, advantage, counted, ids)
    return outcome.spread(advantage, rollout)


def group_mean_batch_std(
    rollout: Rollout,
    *,
    spread_of: Literal["outcomes", "centred"] = "outcomes",
    ddof: Annotated[int, "[0, 1]"] = 1,
    eps: Annotated[float, "[0, inf)"] = 1e-6,
) -> Advantage:
    """Subtract the group's mean, divide by the batch's standard deviation.

    ``(R - mean_group) / (sd_batch + eps)``: a group of nearly equal outcomes is not blown up.
    Groups without a signal get 0, and take part in the standard deviation.

    See: Liu et al., "Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning"
    (https://arxiv.org/abs/2508.08221), the estimator of Lite PPO; Mistral AI, "Magistral"
    (https://arxiv.org/abs/2506.10910).

    Differs: TRL's ``scale_rewards="batch"`` takes the spread of the outcomes and eps=1e-4;
    Magistral that of the centred outcomes, over a minibatch. Here it is over the whole rollout.

    Args:
        rollout: Only rewards, groups and the mask are read.
        spread_of: The standard deviation is that of the ``outcomes``, or of what is left when the
            means of their groups are subtracted (``centred``).
        ddof: The variance divides by the number of scored completions minus this; usually 1.
        eps: Added to the standard deviation, usually 1e-6 to 1e-4.

    Returns:
        Advantages; no returns.
    """
    outcomes, counted = outcome.outcomes(rollout)
    centred = outcome.centred(outcomes, counted, rollout.group)
    measured = outcomes if spread_of == "outcomes" else centred
    deviation = masked.standard_deviation(measured, counted, ddof=ddof)
    return outcome.spread(outcome.divide(centred, deviation + eps), rollout)


def _others(x: Tensor, counted: Tensor, group: Tensor, ddof: int) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (B,) of the other counted rows of a row's group.

    Each in two passes over the others themselves: subtracting the own share from a sum of squares
    leaves rounding residue where the others are equal. A row without others gets its own x and 0.
    """
    centre, deviation = x.clone(), torch.zeros_like(x)
    for one in torch.unique(group[counted]):
        rows = (counted & (group == one)).nonzero()[:, 0]
        n = len(rows)
        if n < 2:
            continue
        not_own = ~torch.eye(n, dtype=torch.bool, device=x.device)
        others = x[rows].expand(n, n)[not_own].view(n, n - 1)
        equal = others.amax(1) == others.amin(1)
        centre[rows] = torch.where(equal, others[:, 0], others.mean(1))
        if n - 1 > ddof:
            found = others.std(1, correction=ddof)
            deviation[rows] = torch.where(equal, 0.0, found)
    return centre, deviation
