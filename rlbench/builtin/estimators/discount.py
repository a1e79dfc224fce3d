"""Discounted sums along a sequence, from its end, fast on long ones."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

CHUNK = 64  # tokens that one row of a matrix product sums
SMALLEST = 0.5  # over gaps, ratio ** -CHUNK must stay far from the largest float32
INTEGER = {torch.float32: torch.int32, torch.float64: torch.int64}


def selector(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a mask into words of the width of ``dtype``, all ones or all zeros, for `keep`."""
    return mask.to(torch.int8).neg_().to(INTEGER[dtype])


def keep(x: Tensor, selector: Tensor) -> Tensor:
    """Replace cells outside the mask by 0, as `rlbench.masked.select` does, without a gradient.

    Selecting bits takes a fifth of the time of ``torch.where``, which branches on every cell.
    """
    return (x.view(selector.dtype) & selector).view(x.dtype)


def unbroken(steps: Tensor) -> bool:
    """Whether every row is a run of True from the first cell on, then False: no gaps."""
    begins = steps[:, 1:] > steps[:, :-1]
    # the largest byte: twenty times as fast as any()
    return begins.numel() == 0 or not bool(begins.view(torch.uint8).max())


def to_go(
    x: Tensor,
    steps: Tensor,
    ratio: Tensor | float,
    end: Tensor | None = None,
    *,
    by_steps: bool = False,
) -> Tensor:
    """Sum what is still to come, discounted once for each step.

    ``y_t = x_t + ratio y_{t+1}`` where ``steps`` is True, and ``y_t = y_{t+1}`` elsewhere: tokens
    that are no step cost no discount.

    Args:
        x: (B, T), 0 where ``steps`` is False.
        steps: (B, T) bool.
        ratio: Discount of a step in [0, 1], one for all or (B,).
        end: (B,) what comes after the last token; left out: 0.
        by_steps: Go one token after the other, however many there are: equal rows then have equal
            sums to the last bit, which matrix products don't promise.

    Returns:
        (B, T + 1) with ``end`` in the last column.
    """
    rows, width = x.shape
    end = x.new_zeros(rows) if end is None else end
    ratio = torch.as_tensor(ratio, dtype=x.dtype, device=x.device).expand(rows)
    slow = ratio < SMALLEST
    if by_steps or width <= CHUNK or bool(slow.all()):
        return _by_steps(x, steps, ratio, end)
    fast = ~slow
    if bool(fast.all()):
        return _by_chunks(x, steps, ratio, end)
    y = x.new_empty(rows, width + 1)
    y[slow] = _by_steps(x[slow], steps[slow], ratio[slow], end[slow])
    y[fast] = _by_chunks(x[fast], steps[fast], ratio[fast], end[fast])
    return y


def to_go_unbroken(x: Tensor, ratio: Tensor | float) -> Tensor:
    """Do what `to_go` does where every cell is a step and nothing comes after the last one.

    What lies after the end of a row is 0 and adds nothing, so `unbroken` rows may be of any length.

    Args:
        x: (B, T), 0 after the end of a row.
        ratio: Discount of a step in [0, 1], one for all or (B,).

    Returns:
        (B, T)
    """
    rows, width = x.shape
    if isinstance(ratio, Tensor):
        return to_go(x, torch.ones_like(x, dtype=torch.bool), ratio)[:, :-1]
    ratio = float(torch.tensor(ratio, dtype=x.dtype))  # as rounded as the recursion would have it
    if width <= CHUNK:
        return x @ _powers(ratio, width, x.dtype, x.device)
    chunks = -(-width // CHUNK)
    weight = _powers(ratio, CHUNK, x.dtype, x.device)
    cells = torch.nn.functional.pad(x, (0, chunks * CHUNK - width)).contiguous()
    sums = (cells.view(-1, CHUNK) @ weight).view(rows, chunks, CHUNK)
    # Each chunk is handed the sum at the first cell of the next one: the same question, 64 times
    # shorter.
    handed = to_go_unbroken(sums[:, :, 0].contiguous(), ratio**CHUNK)[:, 1:, None]
    sums[:, :-1].addcmul_(handed, weight[-1] * ratio)
    return sums.view(rows, -1)[:, :width]


@lru_cache(maxsize=8)  # the same for every block of rows, and for every update of a run
def _powers(ratio: float, n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Weights (n, n) with which the cell of a row enters the sum of a column: later ones only."""
    place = torch.arange(n, dtype=torch.float64, device=device)
    away = place[:, None] - place
    return (ratio ** away.clamp(min=0)).tril().to(dtype)


def _by_steps(x: Tensor, steps: Tensor, ratio: Tensor, end: Tensor) -> Tensor:
    """Do what `to_go` does, one token after the other."""
    one = torch.ones((), dtype=x.dtype, device=x.device)
    factor = torch.where(steps.t(), ratio, one)  # (T, B)
    columns = [end]
    for now, passed_on in zip(reversed(x.t()), reversed(factor), strict=True):
        columns.append(torch.addcmul(now, passed_on, columns[-1]))
    return torch.stack(columns[::-1], dim=1)


def _carry(first: Tensor, factor: Tensor, end: Tensor) -> Tensor:
    """What each chunk is handed by the next one, (chunks, B), from the sums at first cells."""
    carried = torch.empty_like(first)
    for chunk in reversed(range(len(first))):
        carried[chunk] = end
        end = torch.addcmul(first[chunk], factor[chunk], end)
    return carried


def _by_chunks(x: Tensor, steps: Tensor, ratio: Tensor, end: Tensor) -> Tensor:
    """Do what `to_go` does with two matrix products and a scan over chunks.

    With ``e_t`` the product of the factors from t to the end of its chunk, and ``c`` the first sum
    of the next chunk, ``y_t = e_t (sum_{s >= t} x_s / e_s + c)``. The quotients are at most
    ``1 / SMALLEST ** CHUNK`` times larger than x, and the largest are those that weigh most.
    """
    rows, width = x.shape
    chunks = width // CHUNK + 1  # at least one cell after the last token, which holds the end
    later = torch.ones(CHUNK, CHUNK, dtype=x.dtype, device=x.device).tril()
    cells = x.new_zeros(rows, chunks * CHUNK)
    cells[:, :width] = steps
    left = (cells.view(-1, CHUNK) @ later).view(rows, chunks, CHUNK)  # steps to the chunk's end
    passed_on = left.mul_(ratio.double().log().to(x.dtype)[:, None, None]).exp_()
    cells[:, :width] = x
    scaled = cells.view(rows, chunks, CHUNK).div_(passed_on)
    sums = (scaled.view(-1, CHUNK) @ later).view(rows, chunks, CHUNK)
    at_first = passed_on[:, :, 0].t().contiguous()
    carried = _carry(sums[:, :, 0].t() * at_first, at_first, end)
    y = sums.add_(carried.t()[:, :, None]).mul_(passed_on)
    return y.view(rows, -1)[:, : width + 1]
