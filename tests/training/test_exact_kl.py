"""The penalty on the exact KL: what is kept for it, and its gradient against the long way."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from rlbench.training.objective import backward
from rlbench.training.parts import Parts, assemble
from rlbench.training.rollout import Collected, collect
from rlbench.types import Advantage


def moved(parts: Parts, factor: float = 1.1) -> None:
    with torch.no_grad():
        for weight in parts.policy.parameters():
            weight.mul_(factor)


def gradients(network: Any) -> torch.Tensor:
    return torch.cat([weight.grad.reshape(-1) for weight in network.parameters()])


def silent(collected: Collected) -> Advantage:
    return Advantage(torch.zeros_like(collected.rollout.old_logp))


def log_probs_by_hand(network: Any, collected: Collected, row: int) -> torch.Tensor:
    """Log-probs (length, V) of one row, from the whole text at once, over its support."""
    rollout = collected.rollout
    prompt = rollout.prompt_ids[row][rollout.prompt_mask[row]]
    length = int(rollout.mask[row].sum())
    text = torch.cat([prompt, rollout.completion_ids[row, :length]])[None]
    hidden, _ = network.lstm(network.embedding(text))
    logits = network.head(hidden)[0, len(prompt) - 1 : -1]
    if collected.support is not None:
        logits = logits.masked_fill(~collected.support[row, :length], float("-inf"))
    return torch.as_tensor(logits.log_softmax(-1))


def kl_by_hand(parts: Parts, collected: Collected, row: int) -> torch.Tensor:
    """KL at each token of one row, summed token by token over what could be drawn: (length,)."""
    ours = log_probs_by_hand(parts.policy, collected, row)
    base = log_probs_by_hand(parts.base, collected, row).detach()
    found = []
    for p, q in zip(ours, base, strict=True):
        used = [v for v in range(len(p)) if p[v] > -torch.inf]
        found.append(torch.stack([p[v].exp() * (p[v] - q[v]) for v in used]).sum())
    return torch.stack(found)


@pytest.mark.parametrize("cut", [{}, {"top_p": 0.8}, {"top_k": 4}], ids=str)
def test_value_and_gradient_are_those_of_the_long_way(
    make_spec: Callable[..., Any], recorder: Any, cut: dict[str, Any]
) -> None:
    spec = make_spec(kl="fixed:estimator=full", task="sort", precision="float64", **cut)
    parts = assemble(spec, recorder)
    moved(parts)  # away from the base policy, before it samples
    collected = collect(parts, 1, 0.2)
    assert collected.kl is not None
    for row in range(16):
        hand = kl_by_hand(parts, collected, row)
        assert collected.kl[row, : len(hand)].tolist() == pytest.approx(hand.tolist(), abs=1e-12)
        assert bool((collected.kl[row, len(hand) :] == 0).all())
    moved(parts)  # and away from the policy that sampled
    backward(parts, collected, silent(collected), torch.arange(4), 0.2)
    found = gradients(parts.policy)
    parts.policy.zero_grad()
    total = torch.stack([kl_by_hand(parts, collected, row).sum() for row in range(16)]).sum()
    (0.2 * total / int(collected.rollout.mask.sum())).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    assert torch.allclose(found, gradients(parts.policy), atol=1e-12, rtol=1e-9)
    assert found.abs().max().item() > 1e-5


def test_microbatches_do_not_change_it(make_spec: Callable[..., Any], recorder: Any) -> None:
    found = []
    for count in (1, 3):
        spec = make_spec(
            kl="fixed:estimator=full", task="sort", precision="float64", microbatches=count
        )
        parts = assemble(spec, recorder)
        collected = collect(parts, 1, 0.2)
        moved(parts)
        backward(parts, collected, silent(collected), torch.tensor([2, 0, 3, 1]), 0.2)
        found.append(gradients(parts.policy))
    assert torch.allclose(found[0], found[1], atol=1e-12, rtol=1e-9)


def test_the_vocabulary_is_kept_only_for_an_exact_kl_in_the_loss(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    for text, kept in (
        ("none", False),
        ("fixed", False),
        ("fixed:estimator=full,place=reward", False),
        ("fixed:estimator=full", True),
    ):
        collected = collect(assemble(make_spec(kl=text), recorder), 1, 0.1)
        assert (collected.ref_log_probs is not None) == kept
    assert collected.ref_log_probs is not None
    assert collected.ref_log_probs.shape[:2] == collected.rollout.mask.shape


def test_in_the_reward_it_is_taken_off_each_token(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    parts = assemble(make_spec(kl="fixed:estimator=full,place=reward", task="sort"), recorder)
    moved(parts)
    plain, charged = (collect(parts, 1, coef).rollout for coef in (0.0, 0.5))
    collected = collect(parts, 1, 0.5)
    assert collected.kl is not None
    assert float(collected.kl.max()) > 1e-4
    assert torch.allclose(charged.token_reward, plain.token_reward - 0.5 * collected.kl, atol=1e-7)
    assert torch.equal(charged.reward, plain.reward)


def test_a_row_without_a_reward_takes_no_part(make_spec: Callable[..., Any], recorder: Any) -> None:
    parts = assemble(make_spec(kl="fixed:estimator=full"), recorder)
    collected = collect(parts, 1, 0.2)
    moved(parts)
    collected.rollout.reward[5] = float("nan")
    backward(parts, collected, silent(collected), torch.arange(4), 0.2)
    found = gradients(parts.policy)
    parts.policy.zero_grad()
    assert collected.ref_log_probs is not None
    collected.ref_log_probs[5] = float("nan")
    backward(parts, collected, silent(collected), torch.arange(4), 0.2)
    assert torch.equal(found, gradients(parts.policy))
    assert bool(found.isfinite().all())


def test_before_the_first_step_it_is_exactly_zero(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    collected = collect(assemble(make_spec(kl="fixed:estimator=full"), recorder), 1, 0.2)
    assert collected.kl is not None
    assert bool((collected.kl == 0).all())
