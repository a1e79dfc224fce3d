"""Rollouts and batches from nested lists, with harmless defaults for everything left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from rlbench.types import PolicyBatch, Rollout

Narrow: TypeAlias = Sequence[float] | Tensor
"""One number for each row."""
Wide: TypeAlias = Sequence[float] | Sequence[Sequence[float]] | Tensor
"""One list for each row, filled up on the right if they differ in length; a flat one is a row."""


def make_rollout(
    reward: Narrow | None = None,
    group: Sequence[int] | Tensor | None = None,
    mask: Wide | None = None,
    values: Wide | None = None,
    *,
    token_reward: Wide | None = None,
    last_value: Narrow | None = None,
    truncated: Sequence[bool] | Tensor | None = None,
    old_logp: Wide | None = None,
    ref_logp: Wide | None = None,
    greedy_reward: Narrow | None = None,
    dtype: torch.dtype = torch.float32,
) -> Rollout:
    """Build the input of an estimator.

    Args:
        reward: (B,) outcomes, NaN for unscorable. Left out: the sum of token_reward.
        group: (B,) ids. Left out: all rows are one group.
        mask: (B, T). Left out: all True, as wide as the widest of the others, at least 1.
        values: (B, T), or none.
        token_reward: (B, T). Left out: the reward on the last True of the mask, 0 elsewhere.
        last_value: (B,), or none.
        truncated: (B,). Left out: no row is.
        old_logp: (B, T). Left out: -1 everywhere.
        ref_logp: (B, T), or none.
        greedy_reward: (B,), or none.
        dtype: Of all numbers.

    Returns:
        The rollout, on the CPU.

    Raises:
        ValueError: Neither reward nor token_reward, or shapes that don't fit each other.
    """
    wide = [x for x in (mask, token_reward, values, old_logp, ref_logp) if x is not None]
    if reward is None and token_reward is None:
        raise ValueError("make_rollout: give reward or token_reward")
    rows = len(_wide(token_reward, dtype)) if reward is None else len(reward)
    width = max([1, *(_wide(x, dtype).shape[1] for x in wide)])
    inside = torch.ones(rows, width) if mask is None else _wide(mask, dtype, width)
    inside = inside.bool()
    if token_reward is None:
        outcome = _narrow(reward, rows, dtype)
        per_token = _on_last(outcome, inside)
    else:
        per_token = _wide(token_reward, dtype, width)
        outcome = per_token.sum(1) if reward is None else _narrow(reward, rows, dtype)
    return Rollout(
        prompt_ids=torch.zeros(rows, 1, dtype=torch.int64),
        prompt_mask=torch.ones(rows, 1, dtype=torch.bool),
        completion_ids=torch.zeros(rows, width, dtype=torch.int64),
        mask=inside,
        group=_narrow(group, rows, torch.int64),
        reward=outcome,
        token_reward=per_token,
        truncated=_narrow(truncated, rows, torch.bool),
        old_logp=torch.full((rows, width), -1.0, dtype=dtype)
        if old_logp is None
        else _wide(old_logp, dtype, width),
        ref_logp=None if ref_logp is None else _wide(ref_logp, dtype, width),
        values=None if values is None else _wide(values, dtype, width),
        last_value=None if last_value is None else _narrow(last_value, rows, dtype),
        greedy_reward=None if greedy_reward is None else _narrow(greedy_reward, rows, dtype),
    )


def make_batch(
    logp: Wide,
    old_logp: Wide | None = None,
    advantages: Wide | None = None,
    mask: Wide | None = None,
    *,
    entropy: Wide | None = None,
    group: Sequence[int] | Tensor | None = None,
    reward: Narrow | None = None,
    truncated: Sequence[bool] | Tensor | None = None,
    ref_logp: Wide | None = None,
    dtype: torch.dtype = torch.float32,
) -> PolicyBatch:
    """Build the input of a policy loss.

    Args:
        logp: (B, T). Lists become a leaf that requires a gradient: read it from
            ``batch.logp.grad``. A tensor is used as it is.
        old_logp: (B, T). Left out: equal to logp, so every ratio is 1.
        advantages: (B, T). Left out: 1 everywhere.
        mask: (B, T). Left out: all True.
        entropy: (B, T). Left out: 1 everywhere.
        group: (B,) ids. Left out: all rows are one group.
        reward: (B,). Left out: 0.
        truncated: (B,). Left out: no row is.
        ref_logp: (B, T), or none.
        dtype: Of all numbers.

    Returns:
        The batch, on the CPU.
    """
    current = logp if isinstance(logp, Tensor) else _wide(logp, dtype).requires_grad_()
    rows, width = current.shape
    ones = torch.ones(rows, width, dtype=dtype)
    return PolicyBatch(
        logp=current,
        old_logp=current.detach().clone() if old_logp is None else _wide(old_logp, dtype, width),
        advantages=ones if advantages is None else _wide(advantages, dtype, width),
        mask=ones.bool() if mask is None else _wide(mask, dtype, width).bool(),
        entropy=ones.clone() if entropy is None else _wide(entropy, dtype, width),
        group=_narrow(group, rows, torch.int64),
        reward=_narrow(reward, rows, dtype),
        truncated=_narrow(truncated, rows, torch.bool),
        ref_logp=None if ref_logp is None else _wide(ref_logp, dtype, width),
    )


def _narrow(x: Narrow | Sequence[int] | None, rows: int, dtype: torch.dtype) -> Tensor:
    if x is None:
        return torch.zeros(rows, dtype=dtype)
    return x.to(dtype) if isinstance(x, Tensor) else torch.tensor(x, dtype=dtype)


def _wide(x: Wide | None, dtype: torch.dtype, width: int | None = None) -> Tensor:
    """(B, T) from a tensor, lists of unequal length, or one flat list."""
    if isinstance(x, Tensor):
        return x.to(dtype)
    rows = [list(row) if isinstance(row, Sequence) else [row] for row in x or []]
    if x and not any(isinstance(row, Sequence) for row in x):
        rows = [[number for row in rows for number in row]]
    longest = max([width or 0, *(len(row) for row in rows)])
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows], dtype=dtype)


def _on_last(outcome: Tensor, mask: Tensor) -> Tensor:
    """Put each outcome on the last True of its row: (B,) to (B, T)."""
    later = mask.flip(1).cumsum(1).flip(1)
    last = mask & (later == 1)
    return torch.where(last, outcome[:, None], torch.zeros((), dtype=outcome.dtype))
