"""How good a policy is on held-out prompts, and how far it moved from the base policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from rlbench import masked
from rlbench.divergence import entropy, exact_kl
from rlbench.training.sampling import log_probs_of, sample
from rlbench.training.seeding import stream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from rlbench.training.parts import Parts
    from rlbench.types import Completions, Prompts

SHOWN = 5  # prompts whose completions are kept for people to read


@dataclass(frozen=True)
class Evaluation:
    """One evaluation: a row of ``evals.csv`` and a few samples."""

    row: Mapping[str, float | int | None]
    samples: list[dict[str, Any]]


@torch.no_grad()
def evaluate(parts: Parts, update: int) -> Evaluation:
    """Evaluate the policy as it is.

    The prompts and the sampling noise are the same at every evaluation and in every cell of one
    seed. The columns of the row:

    score
        The task's score of the greedy completion, averaged over prompts.
    reward
        What the policy is trained on, of one completion a prompt sampled as in training.
    sampled_score
        The task's score of the same completions.
    kl
        KL from the base policy in nats: exact over the vocabulary at every token of the sampled
        completions, summed over a completion, averaged over completions.
    entropy
        Of the sampled distribution, in nats, averaged over tokens.
    length, truncated
        Tokens of a sampled completion, and the share cut at the limit.
    unscored
        Greedy completions that could not be scored; they are left out of ``score``.

    Args:
        parts: The run.
        update: Updates done so far.

    Returns:
        The row and samples.

    Raises:
        Diverged: If a log-probability is not finite.
    """
    spec, task = parts.spec, parts.task
    prompts = task.prompts(
        spec.settings.eval_prompts, stream("evaluation", spec.seed), split="eval"
    )
    greedy, _ = _write(parts, prompts, greedy=True)
    drawn, support = _write(parts, prompts, greedy=False)
    score = parts.true_scores(prompts, greedy)
    reward = parts.rewards(prompts, drawn)
    sampled_score = parts.true_scores(prompts, drawn)
    log_probs, base_log_probs = (
        log_probs_of(network, prompts, drawn.ids, distribution=parts.distribution, support=support)
        for network in (parts.policy, parts.base)
    )
    divergence = exact_kl(log_probs.double(), base_log_probs.double())  # (B, T)
    row = {
        "update": update,
        "score": _mean(score),
        "reward": _mean(reward),
        "sampled_score": _mean(sampled_score),
        "kl": float(masked.total(divergence, drawn.mask, 1).mean()),
        "entropy": float(masked.mean(entropy(log_probs.double()), drawn.mask)),
        "length": float(drawn.mask.sum(1).double().mean()),
        "truncated": float(drawn.truncated.double().mean()),
        "unscored": int(score.isnan().sum()),
    }
    return Evaluation(
        row, _samples(parts, prompts, update, greedy=greedy, drawn=drawn, score=score)
    )


def _write(parts: Parts, prompts: Prompts, *, greedy: bool) -> tuple[Completions, Tensor | None]:
    written = sample(
        parts.policy,
        prompts,
        vocabulary=parts.task.vocabulary,
        limit=parts.task.completion_limit,
        distribution=parts.distribution,
        generator=None if greedy else stream("evaluation noise", parts.spec.seed),
    )
    return written.completions, written.support


def _mean(values: Tensor) -> float | None:
    """Mean over what could be scored; None if nothing could."""
    known = ~values.isnan()
    return float(masked.mean(values.double(), known)) if bool(known.any()) else None


def _samples(
    parts: Parts,
    prompts: Prompts,
    update: int,
    *,
    greedy: Completions,
    drawn: Completions,
    score: Tensor,
) -> list[dict[str, Any]]:
    decode = parts.task.vocabulary.decode
    return [
        {
            "update": update,
            "prompt": decode(prompts.ids[i][prompts.mask[i]].tolist()),
            "greedy": decode(greedy.ids[i][greedy.mask[i]].tolist()),
            "sampled": decode(drawn.ids[i][drawn.mask[i]].tolist()),
            "score": None if bool(score[i].isnan()) else float(score[i]),
        }
        for i in range(min(SHOWN, len(prompts)))
    ]
