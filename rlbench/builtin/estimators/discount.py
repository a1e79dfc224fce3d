"""Discounted sums along a sequence, from its end, fast on long ones."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

CHUNK = 32  # tokens that one row of a matrix product sums
SMALLEST = 0.5  # ratio ** CHUNK must stay far from the smallest float32
LEAST = -600.0  # logarithm of a float64 far from the smallest
INTEGER = {torch.float32: torch.int32, torch.float64: torch.int64}


def selector(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a mask into words of the width of ``dtype``, all ones or all zeros."""
    return mask.view(torch.int8).neg().to(INTEGER[dtype])


def keep(x: Tensor, selector: Tensor, *, out: Tensor) -> Tensor:
    """Write x into ``out``, and 0 outside the mask: `rlbench.masked.select` without a gradient.

    Selecting bits takes a fifth of the time of ``torch.where``, which branches on every cell.
    """
    words = selector.dtype
    torch.bitwise_and(x.view(words), selector, out=out.view(words))
    return out


def unbroken(steps: Tensor) -> bool:
    """Whether every row is a run of True from the first cell on, then False: no gaps."""
    begins = steps[:, 1:] > steps[:, :-1]
    # the largest byte: twenty times as fast as any()
    return begins.numel() == 0 or not bool(begins.view(torch.uint8).max())


def add_ahead(
    own: Tensor,
    x: Tensor,
    steps: Tensor,
    *,
    weight: float,
    ratio: Tensor | float,
    end: Tensor | None = None,
    by_steps: bool = False,
) -> Tensor:
    """Add to each token what comes after it, discounted once for each step from the next one on.

    The result is ``own_t + weight y_{t+1}``, of ``y_t = x_t + ratio y_{t+1}`` for steps, and
    ``y_t = y_{t+1}`` elsewhere: tokens that are no step cost no discount.

    Args:
        own: (B, T)
        x: (B, T), 0 where no step is.
        steps: (B, T), a `selector`.
        weight: Of what comes after.
        ratio: Discount of a step in [0, 1], one for all or (B,) in float64: what is lost in it is
            lost once a token.
        end: (B,) what comes after the last token; left out: 0.
        by_steps: Go one token after the other, however many there are: equal rows then have equal
            sums to the last bit, which matrix products don't promise.

    Returns:
        (B, T); what it says where no step is means nothing.
    """
    rows, width = x.shape
    end = x.new_zeros(rows) if end is None else end
    ratio = torch.as_tensor(ratio, dtype=torch.float64, device=x.device).expand(rows)
    slow = ratio < SMALLEST
    if by_steps or width <= CHUNK or bool(slow.all()):
        return _by_steps(own, x, steps, weight=weight, ratio=ratio, end=end)
    if not bool(slow.any()):
        return _by_chunks(own, x, steps, weight=weight, ratio=ratio, end=end)
    found = torch.empty_like(own)
    for rule, part in ((_by_steps, slow), (_by_chunks, ~slow)):
        found[part] = rule(
            own[part], x[part], steps[part], weight=weight, ratio=ratio[part], end=end[part]
        )
    return found


def add_ahead_unbroken(own: Tensor, x: Tensor, *, weight: float, ratio: float) -> Tensor:
    """Do what `add_ahead` does where every cell is a step and nothing comes after the last one.

    What lies after the end of a row is 0 and adds nothing, so `unbroken` rows may be of any length.

    Args:
        own: (B, T)
        x: (B, T), 0 after the end of a row.
        weight: Of what comes after.
        ratio: Discount of a step in [0, 1], one for all.

    Returns:
        (B, T)
    """
    rows, width = x.shape
    count = -(-width // CHUNK)
    own, x = (
        torch.nn.functional.pad(y, (0, count * CHUNK - width)).contiguous().view(-1, CHUNK)
        for y in (own, x)
    )
    powers, further = _powers(ratio, CHUNK, x.dtype, x.device)
    whole = (x @ powers).view(rows, count).double()  # chunks, each seen from its first token
    _, chunks_further = _powers(ratio**CHUNK, count, whole.dtype, x.device)
    after = (whole @ chunks_further).to(x.dtype).view(-1, 1)
    found = torch.addmm(own, x, further, alpha=weight)
    found.addmm_(after, powers.flip(0)[None], alpha=weight)
    return found.view(rows, -1)[:, :width]


@lru_cache(maxsize=8)  # the same for every block of rows, and for every update of a run
def _powers(
    ratio: float, n: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Weights of n tokens seen from the first of them, and (n, n) from just before each token."""
    place = torch.arange(n, dtype=torch.float64, device=device)
    further = (ratio ** (place[:, None] - place - 1).clamp(min=0)).tril(-1)
    return (ratio**place).to(dtype), further.to(dtype)


def _by_steps(
    own: Tensor, x: Tensor, steps: Tensor, *, weight: float, ratio: Tensor, end: Tensor
) -> Tensor:
    """Do what `add_ahead` does, one token after the other."""
    factor = torch.where(steps.t().bool(), ratio, 1.0).to(x.dtype)  # (T, B)
    columns = [end]
    for now, passed_on in zip(reversed(x.t()[1:]), reversed(factor[1:]), strict=True):
        columns.append(torch.addcmul(now, passed_on, columns[-1]))
    return torch.add(own, torch.stack(columns[::-1], dim=1), alpha=weight)


def _by_chunks(
    own: Tensor, x: Tensor, steps: Tensor, *, weight: float, ratio: Tensor, end: Tensor
) -> Tensor:
    """Do what `add_ahead` does with matrix products over the tokens of a chunk.

    With ``e_t`` the product of the factors from the first token of a chunk to t, and Y what comes
    after the chunk, ``e_t ratio y_{t+1} = sum_{s > t} e_s x_s + e_last ratio Y``. The sum has later
    tokens only, so nothing in it is large beside what is left after the division.
    """
    rows, width = x.shape
    count = -(-width // CHUNK)
    shape = (rows, count, CHUNK)
    log = ratio.log()
    cells = x.new_empty(rows, count * CHUNK)
    cells[:, width:] = 0
    bits = log.to(x.dtype).view(steps.dtype)[:, None]
    torch.bitwise_and(steps, bits, out=cells.view(steps.dtype)[:, :width])
    up_to, later = _triangles(CHUNK, x.dtype, x.device)
    logs = (cells.view(-1, CHUNK) @ up_to).view(shape)
    last = logs[:, :, -1].to(torch.float64, copy=True)
    factor = logs.exp_()
    torch.mul(x, factor.view(rows, -1)[:, :width], out=cells[:, :width])
    sums = (cells.view(-1, CHUNK) @ later).view(shape)
    whole = (sums[:, :, 0] + cells.view(shape)[:, :, 0]).double()
    sums.add_(_handed(whole, last, log.min(), ratio * end).to(x.dtype)[:, :, None])
    least, most = ratio.aminmax()
    if least == most:
        weight /= float(most)
    else:
        factor.mul_(ratio[:, None, None].to(x.dtype))
    after, share = (y.view(rows, -1)[:, :width] for y in (sums, factor))
    return torch.addcdiv(own, after, share, value=weight)


@lru_cache(maxsize=8)  # the same for every block of rows, and for every update of a run
def _triangles(n: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Weights (n, n) that sum a row up to each column, and what comes after each column."""
    ones = torch.ones(n, n, dtype=dtype, device=device)
    return ones.triu(), ones.tril(-1)


def _handed(whole: Tensor, log: Tensor, least: Tensor, end: Tensor) -> Tensor:
    """What each chunk is handed by the next one: ``f_k y_{k+1}`` of ``y_k = w_k + f_k y_{k+1}``.

    Args:
        whole: (B, K) float64, w.
        log: (B, K), the logarithm of f.
        least: The logarithm of the smallest discount.
        end: (B,), y_K.

    Returns:
        (B, K)
    """
    handed = torch.empty_like(whole)
    together = int(LEAST / min(CHUNK * float(least), LEAST / whole.shape[1]))
    for stop in range(whole.shape[1], 0, -together):
        part = slice(max(0, stop - together), stop)
        up_to = log[:, part].cumsum(1)
        before = (up_to - log[:, part]).exp_()
        _, later = _triangles(before.shape[1], before.dtype, before.device)
        found = torch.addmm((up_to[:, -1].exp() * end)[:, None], before * whole[:, part], later)
        torch.div(found, before, out=handed[:, part])
        end = whole[:, part.start] + handed[:, part.start]
    return handed
