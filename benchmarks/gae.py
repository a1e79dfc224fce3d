"""Time `gae` against the loop that everybody writes, side by side in one process, on one thread.

Run ``python benchmarks/gae.py``. Each line gives the best time of both on the same rollout, and
how many times as fast ours is. With torchrl installed, the faster of its two estimators joins on
rollouts without gaps (it doesn't know of any).
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from typing import TYPE_CHECKING

import torch

from rlbench.builtin.estimators.critic import gae
from rlbench.testing import make_rollout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor

    from rlbench.types import Rollout

GAMMA, LAM = 1.0, 0.95
TORCHRL = ("generalized_advantage_estimate", "vec_generalized_advantage_estimate")


def by_loop(rollout: Rollout) -> tuple[Tensor, Tensor]:
    """Advantages and returns, one step of the recursion after the other."""
    live, values = rollout.mask, rollout.values
    assert values is not None  # noqa: S101 - make() put them there
    next_value, next_advantage = torch.zeros(len(live)), torch.zeros(len(live))
    advantages = torch.zeros_like(values)
    for t in reversed(range(live.shape[1])):
        here = live[:, t]
        delta = rollout.token_reward[:, t] + GAMMA * next_value - values[:, t]
        next_advantage = torch.where(here, delta + GAMMA * LAM * next_advantage, next_advantage)
        next_value = torch.where(here, values[:, t], next_value)
        advantages[:, t] = torch.where(here, next_advantage, 0.0)
    return advantages, advantages + values


def by_torchrl(rollout: Rollout, form: str) -> tuple[Tensor, Tensor]:
    """Either form of torchrl's; it wants the next value and the end of each row."""
    from torchrl.objectives.value import functional  # type: ignore[import-not-found]  # optional

    values = rollout.values
    assert values is not None  # noqa: S101 - make() put them there
    done = torch.zeros_like(rollout.mask)
    done[torch.arange(len(done)), rollout.mask.sum(1) - 1] = True
    after = torch.cat([values[:, 1:], torch.zeros(len(values), 1)], dim=1)
    wide = [x[..., None] for x in (values, after, rollout.token_reward, done)]
    advantages, returns = getattr(functional, form)(GAMMA, LAM, *wide)
    return advantages[..., 0], returns[..., 0]


def make(rows: int, width: int, *, gaps: bool) -> Rollout:
    """A rollout of completions of random lengths; with gaps, a tenth of the tokens is masked."""
    draw = torch.Generator().manual_seed(0)
    length = torch.randint(max(1, width // 8), width + 1, (rows, 1), generator=draw)
    mask = torch.arange(width) < length
    if gaps:
        mask &= torch.rand(rows, width, generator=draw) > 0.1
    numbers = [torch.randn(rows, width, generator=draw) for _ in range(2)]
    return make_rollout(token_reward=numbers[0], values=numbers[1], mask=mask)


def best(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Best time of each in seconds; they take turns, so that a busy machine slows all of them."""
    times = {name: float("inf") for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name] = min(times[name], time.perf_counter() - start)
    return times


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    torchrl = importlib.util.find_spec("torchrl") is not None
    say("rows tokens  gaps   loop ms   ours ms  ratio" + "  torchrl ms  ratio" * torchrl)
    for rows, width in ((512, 4), (256, 32), (256, 256), (1024, 2048)):
        for gaps in (False, True):
            rollout = make(rows, width, gaps=gaps)
            calls: dict[str, Callable[[], object]] = {
                "loop": lambda r=rollout: by_loop(r),
                "ours": lambda r=rollout: gae(r, gamma=GAMMA, lam=LAM),
            }
            if torchrl and not gaps:
                for form in TORCHRL:
                    calls[form] = lambda r=rollout, form=form: by_torchrl(r, form)
            found = best(calls, repeats if width > 256 else 20 * repeats)
            loop, ours = found["loop"] * 1e3, found["ours"] * 1e3
            line = f"{rows:4} {width:6} {gaps!s:>5} {loop:9.3f} {ours:9.3f} {loop / ours:6.1f}"
            theirs = min((found[form] * 1e3 for form in TORCHRL if form in found), default=None)
            say(line + ("" if theirs is None else f" {theirs:11.3f} {theirs / ours:6.1f}"))


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
