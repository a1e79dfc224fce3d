"""One rollout: prompts, completions, rewards, and what the components need to know of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from rlbench import masked
from rlbench.divergence import EXACT, exact_kl, kl_estimate
from rlbench.errors import ComponentError, Diverged, RunError
from rlbench.training import border
from rlbench.training.distribution import chosen
from rlbench.training.sampling import log_probs_of, sample
from rlbench.training.seeding import stream
from rlbench.types import Rollout

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from rlbench.training.parts import Parts
    from rlbench.training.sampling import Sampled
    from rlbench.types import Network, Prompts


@dataclass(frozen=True, kw_only=True)
class Collected:
    """A rollout and what the trainer needs beside it."""

    rollout: Rollout
    prompts: Prompts  # N, not repeated
    support: Tensor | None  # (B, T, V) tokens that could have been drawn; None if all
    true_reward: Tensor  # (B,) the task's own score
    kl: Tensor | None  # (B, T) by the run's KL estimator, only with a reference
    ref_log_probs: Tensor | None  # (B, T, V) of the base policy, only for an exact KL in the loss


@torch.no_grad()
def collect(parts: Parts, update: int, coef: float) -> Collected:
    """Sample and score one rollout.

    Args:
        parts: The networks and components of the run.
        update: Number of the update, from 1: it names the streams of prompts and noise.
        coef: Coefficient of the KL penalty, for the case that it is placed in the reward.

    Returns:
        The rollout, with reference log-probabilities, values and greedy rewards only if needed.

    Raises:
        RunError: If no completion could be scored.
        Diverged: If a log-probability is not finite.
    """
    spec, settings = parts.spec, parts.spec.settings
    prompts = parts.task.prompts(
        settings.prompts, stream("prompts", spec.seed, update), split="train"
    )
    sampled = _draw(parts, prompts, settings.group_size, stream("sampling", spec.seed, update))
    completions, rows = sampled.completions, sampled.completions.mask.shape[0]
    repeated = prompts.rows([i for i in range(len(prompts)) for _ in range(settings.group_size)])
    reward = parts.rewards(repeated, completions)
    if bool(reward.isnan().all()):
        raise RunError(
            f"update {update}: none of {rows} completions could be scored by "
            f"{border.name_of(spec.selections['reward'])}"
        )
    ref_logp, ref_log_probs, kl = _reference(parts, prompts, sampled)
    penalty = kl if parts.kl_place == "reward" and coef > 0 else None
    values, last_value = _values(parts, prompts, sampled)
    greedy_reward = None
    if spec.needs("greedy_reward"):
        greedy = _draw(parts, prompts, 1, None)
        greedy_reward = parts.rewards(prompts, greedy.completions)
        greedy_reward = greedy_reward.repeat_interleave(settings.group_size)
    rollout = Rollout(
        prompt_ids=repeated.ids,
        prompt_mask=repeated.mask,
        completion_ids=completions.ids,
        mask=completions.mask,
        group=torch.arange(len(prompts)).repeat_interleave(settings.group_size),
        reward=reward,
        token_reward=token_rewards(reward, completions.mask, penalty, coef),
        truncated=completions.truncated,
        old_logp=sampled.logp,
        ref_logp=ref_logp,
        values=values,
        last_value=last_value,
        greedy_reward=greedy_reward,
    )
    return Collected(
        rollout=rollout,
        prompts=prompts,
        support=sampled.support,
        true_reward=parts.true_scores(repeated, completions),
        kl=kl,
        ref_log_probs=ref_log_probs,
    )


def token_rewards(reward: Tensor, mask: Tensor, penalty: Tensor | None, coef: float) -> Tensor:
    """Spread outcomes over tokens: (B, T).

    The outcome lies on the last token of the row, whatever padding follows, and the penalty, if
    any, is taken off every token. A row that could not be scored has NaN on its last token.
    """
    spread = torch.zeros(mask.shape, dtype=reward.dtype)
    last = mask.shape[1] - 1 - mask.flip(1).int().argmax(1)  # (B,) position of the last True
    spread.scatter_(1, last[:, None], reward[:, None])
    if penalty is not None:
        spread = spread - coef * masked.select(penalty, mask)
    return masked.select(spread, mask)


def _draw(parts: Parts, prompts: Prompts, group_size: int, generator: Generator | None) -> Sampled:
    return sample(
        parts.policy,
        prompts,
        vocabulary=parts.task.vocabulary,
        limit=parts.task.completion_limit,
        distribution=parts.distribution,
        group_size=group_size,
        generator=generator,
    )


def _reference(
    parts: Parts, prompts: Prompts, sampled: Sampled
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """What the base policy thinks of the completions, if anybody asks.

    Returns:
        Its log-probabilities of the tokens (B, T); those of the vocabulary (B, T, V), if the loss
        needs them; and the KL to it (B, T), if there is a penalty.
    """
    if not parts.spec.needs("ref_logp"):
        return None, None, None
    ids, mask = sampled.completions.ids, sampled.completions.mask
    ref_log_probs = _score(parts, parts.base, prompts, sampled)
    ref_logp = masked.select(chosen(ref_log_probs, ids), mask)
    if parts.kl_kind is None:
        return ref_logp, None, None
    if parts.kl_kind != EXACT:
        kl = kl_estimate(sampled.logp, ref_logp, parts.kl_kind, old_logp=sampled.logp)
        return ref_logp, None, kl
    log_probs = _score(parts, parts.policy, prompts, sampled)
    kl = masked.select(exact_kl(log_probs.double(), ref_log_probs.double()), mask)
    kept = ref_log_probs if parts.kl_place == "loss" else None
    return ref_logp, kept, kl.to(ref_logp.dtype)


def _score(parts: Parts, network: Network, prompts: Prompts, sampled: Sampled) -> Tensor:
    """Log-probabilities (B, T, V) of a network over the tokens that could have been drawn."""
    return log_probs_of(
        network,
        prompts,
        sampled.completions.ids,
        distribution=parts.distribution,
        group_size=parts.spec.settings.group_size,
        support=sampled.support,
    )


def _values(
    parts: Parts, prompts: Prompts, sampled: Sampled
) -> tuple[Tensor | None, Tensor | None]:
    """The critic's values before each token (B, T), and after the last one (B,), if needed."""
    if parts.critic is None:
        return None, None
    ids, mask = sampled.completions.ids, sampled.completions.mask
    wants_last = parts.spec.needs("last_value")
    if wants_last:  # one more column, so that there is an output after the last token
        ids = torch.cat([ids, ids[:, :1]], dim=1)
    state = parts.critic.read(prompts.ids, prompts.mask)
    state = parts.critic.spread(state, parts.spec.settings.group_size)
    said = parts.critic.run(state, ids)  # (B, T, 1) or (B, T + 1, 1)
    if said.shape != (*ids.shape, 1):
        raise ComponentError(
            f"{border.name_of(parts.spec.selections['model'])}: its critic said "
            f"{tuple(said.shape)}, expected {(*ids.shape, 1)}, one value a token"
        )
    values = said[..., 0]
    if not bool(values[:, : mask.shape[1]][mask].isfinite().all()):
        raise Diverged(
            f"{border.name_of(parts.spec.selections['model'])}: a value of its critic is not finite"
        )
    last_value = values.gather(1, mask.sum(1)[:, None])[:, 0] if wants_last else None
    return masked.select(values[:, : mask.shape[1]], mask), last_value
