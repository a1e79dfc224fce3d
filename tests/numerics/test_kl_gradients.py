"""Gradients of every KL estimate, by going through all completions of two tokens over three.

The first token comes from logits (3,), the second from a row of (3, 3) that the first one chooses.
"""

import pytest
import torch

from rlbench.divergence import exact_kl, kl_estimate

FIRST = torch.tensor([0.4, -0.3, 0.9], dtype=torch.float64)
SECOND = torch.tensor([[0.1, 1.2, -0.5], [-1.0, 0.3, 0.2], [0.7, 0.0, -0.8]], dtype=torch.float64)
REFERENCE = (FIRST.flip(0).log_softmax(-1), (SECOND.T * 0.8).log_softmax(-1))
OLD = ((FIRST * 0.5).log_softmax(-1), (SECOND + 0.3 * SECOND.T).log_softmax(-1))
ALL = [(a, b) for a in range(3) for b in range(3)]


def policy():
    """Log-probs with a gradient, and the parameters it goes to."""
    logits = [FIRST.clone().requires_grad_(), SECOND.clone().requires_grad_()]
    return tuple(x.log_softmax(-1) for x in logits), logits


def gradient(scalar, logits):
    found = torch.autograd.grad(scalar, logits, allow_unused=True)
    parts = [torch.zeros_like(x) if g is None else g for x, g in zip(logits, found, strict=True)]
    return torch.cat([part.reshape(-1) for part in parts])


def tokens(log_probs):
    """Log-probs of both tokens in all completions: (9, 2)."""
    return torch.stack([torch.stack([log_probs[0][a], log_probs[1][a, b]]) for a, b in ALL])


def vocabularies(log_probs):
    """Log-probs over the vocabulary at both tokens of all completions: (9, 2, 3)."""
    return torch.stack([torch.stack([log_probs[0], log_probs[1][a]]) for a, _ in ALL])


def penalties(kind, log_probs, sampler):
    """KL on both tokens of all completions: (9, 2)."""
    if kind == "full":
        return exact_kl(vocabularies(log_probs), vocabularies(REFERENCE))
    return kl_estimate(tokens(log_probs), tokens(REFERENCE), kind, old_logp=tokens(sampler))


def in_the_loss(kind, sampler=None):
    """Expected gradient of the penalty, summed over a completion, as a loss."""
    log_probs, logits = policy()
    sampler = tuple(x.detach() for x in log_probs) if sampler is None else sampler
    chance = tokens(sampler).sum(1).exp()
    return gradient((chance[:, None] * penalties(kind, log_probs, sampler)).sum(), logits)


def in_the_reward(kind):
    """Expected gradient that lowers the penalty when each token answers for what follows it."""
    log_probs, logits = policy()
    logp = tokens(log_probs)
    chance = logp.detach().sum(1).exp()
    cost = penalties(kind, log_probs, tuple(x.detach() for x in log_probs)).detach()
    to_go = cost.flip(1).cumsum(1).flip(1)
    return gradient((chance[:, None] * logp * to_go).sum(), logits)


def at_fixed_prefixes(direction, sampler=None):
    """Analytic gradient of the KL of both tokens, prefixes drawn from the sampler."""
    log_probs, logits = policy()
    first = (log_probs if sampler is None else sampler)[0].detach().exp()

    def kl(p, q):
        p, q = (p, q) if direction == "policy to reference" else (q, p)
        return (p.exp() * (p - q)).sum(-1)

    value = kl(log_probs[0], REFERENCE[0]) + (first * kl(log_probs[1], REFERENCE[1])).sum()
    return gradient(value, logits)


def of_whole_completions():
    """Analytic gradient of the KL between the two distributions over completions."""
    log_probs, logits = policy()
    logp, reference = tokens(log_probs).sum(1), tokens(REFERENCE).sum(1)
    return gradient((logp.exp() * (logp - reference)).sum(), logits)


RIGHT = ["k2", "k3_ratio", "k1_plus", "k3_plus", "full"]


@pytest.mark.parametrize("kind", RIGHT)
def test_in_the_loss_these_have_the_gradient_of_the_kl_at_the_given_prefixes(kind):
    torch.testing.assert_close(in_the_loss(kind), at_fixed_prefixes("policy to reference"))


@pytest.mark.parametrize("kind", ["k3_ratio", "full"])
def test_these_two_keep_it_when_an_older_policy_sampled(kind):
    expected = at_fixed_prefixes("policy to reference", OLD)
    torch.testing.assert_close(in_the_loss(kind, OLD), expected)


@pytest.mark.parametrize("kind", ["k2", "k1_plus", "k3_plus"])
def test_the_others_lose_it(kind):
    expected = at_fixed_prefixes("policy to reference", OLD)
    assert (in_the_loss(kind, OLD) - expected).abs().max() > 0.01


def test_in_the_loss_k3_has_the_gradient_of_the_other_direction():
    torch.testing.assert_close(in_the_loss("k3"), at_fixed_prefixes("reference to policy"))


def test_in_the_loss_k1_has_none():
    assert in_the_loss("k1").abs().max() < 1e-15


def test_in_the_reward_k1_has_the_gradient_of_the_kl_of_whole_completions():
    torch.testing.assert_close(in_the_reward("k1"), of_whole_completions())


@pytest.mark.parametrize("kind", ["k2", "k3", "abs"])
def test_in_the_reward_the_others_are_biased(kind):
    assert (in_the_reward(kind) - of_whole_completions()).abs().max() > 0.01


def test_in_the_reward_the_exact_kl_charges_no_token_for_itself():
    found = in_the_reward("full")
    assert found[3:].abs().max() < 1e-15  # the last token
    assert found[:3].abs().max() > 0.01  # the first one chooses what the second may cost


def test_loss_and_reward_together_make_the_gradient_of_whole_completions():
    torch.testing.assert_close(in_the_loss("full") + in_the_reward("full"), of_whole_completions())


def test_the_exact_kl_has_no_noise():
    """At one prefix, every completion gives the same value and the same gradient."""
    log_probs, _ = policy()
    assert penalties("full", log_probs, OLD)[:, 0].unique().numel() == 1
    assert penalties("k3_ratio", log_probs, OLD)[:, 0].unique().numel() == 3
