"""Completions from a policy: prompts are read once, their state is shared by the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from rlbench.errors import Diverged
from rlbench.training.distribution import Distribution, chosen
from rlbench.types import Completions

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from rlbench.types import Network, Prompts, Vocabulary


@dataclass(frozen=True)
class Sampled:
    """What a policy wrote. Row = prompt * group_size + draw."""

    completions: Completions
    logp: Tensor  # (B, T) of each token under the distribution it was drawn from, 0 under padding
    support: Tensor | None  # (B, T, V) tokens that could have been drawn; None if all


@torch.no_grad()
def sample(
    network: Network,
    prompts: Prompts,
    *,
    vocabulary: Vocabulary,
    limit: int,
    distribution: Distribution,
    group_size: int = 1,
    generator: Generator | None = None,
) -> Sampled:
    """Write completions, each up to its end token or the limit.

    A token is the argmax of its log-probability plus Gumbel noise. The noise depends on the
    generator alone, so two policies that agree write the same text from the same stream.

    Args:
        network: The policy.
        prompts: N prompts.
        vocabulary: For the ids of the end and padding tokens, which may be the same.
        limit: The most tokens in a completion, end token included.
        distribution: What to sample from.
        group_size: Completions for each prompt, G.
        generator: Where the noise comes from; none means greedy.

    Returns:
        N * G completions.

    Raises:
        Diverged: If a token's log-probability is not finite.
    """
    state = network.spread(network.read(prompts.ids, prompts.mask), group_size)
    output = network.output(state)  # (B, V)
    finished = torch.zeros(output.shape[0], dtype=torch.bool)
    ids, mask, logp, supports = [], [], [], []
    for position in range(limit):
        support = distribution.support(output)
        log_probs = distribution.log_probs(output, support)
        token = _draw(log_probs, generator)
        token_logp = chosen(log_probs, token)
        _check_finite(token_logp, ~finished, position)
        ids.append(token.masked_fill(finished, vocabulary.pad))
        mask.append(~finished)
        logp.append(token_logp.masked_fill(finished, 0.0))
        if support is not None:
            supports.append(support)
        finished = finished | (token == vocabulary.eos)
        if position + 1 == limit or bool(finished.all()):
            break
        output, state = network.step(ids[-1], state)
    completions = Completions(torch.stack(ids, 1), torch.stack(mask, 1), truncated=~finished)
    return Sampled(
        completions, torch.stack(logp, 1), torch.stack(supports, 1) if supports else None
    )


def _draw(log_probs: Tensor, generator: Generator | None) -> Tensor:
    """One token a row (B,): the most probable one, or one at random."""
    if generator is None:
        return log_probs.argmax(-1)
    noise = torch.empty(log_probs.shape, dtype=log_probs.dtype).exponential_(generator=generator)
    tiny = torch.finfo(noise.dtype).tiny  # log(0) would make a forbidden token's score NaN
    return (log_probs - noise.clamp(min=tiny).log()).argmax(-1)


def _check_finite(logp: Tensor, alive: Tensor, position: int) -> None:
    bad = ~logp.isfinite() & alive
    if bool(bad.any()):
        raise Diverged(
            f"the policy's log-probability of completion token {position + 1} is not finite in "
            f"{int(bad.sum())} of {int(alive.sum())} completions: its weights have diverged"
        )


def log_probs_of(
    network: Network,
    prompts: Prompts,
    completion_ids: Tensor,
    *,
    distribution: Distribution,
    group_size: int = 1,
    support: Tensor | None = None,
) -> Tensor:
    """Log-probabilities of every token at every position of given completions: (B, T, V).

    Differentiable; prompts are read once and their state is spread over the group.
    """
    state = network.spread(network.read(prompts.ids, prompts.mask), group_size)
    return distribution.log_probs(network.run(state, completion_ids), support)
