"""What is left of the gradient when the ratio is far from 1, and that at 1 all agree."""

import math

import pytest
import torch

from rlbench.builtin.losses.clipping import clip, two_sided
from rlbench.builtin.losses.plain import importance, penalty, pg
from rlbench.builtin.losses.selecting import clip_cov, kl_cov
from rlbench.builtin.losses.sequence import gmpo, gspo, gspo_token
from rlbench.builtin.losses.weighting import cispo, sapo
from rlbench.testing import checks, make_batch

NAN = float("nan")


def with_ratios(ratios, advantages):
    """Completions of one token each, their old log-probs at -8."""
    return make_batch(
        logp=[[-8 + math.log(r)] for r in ratios],
        old_logp=[[-8.0]] * len(ratios),
        advantages=[[a] for a in advantages],
        dtype=torch.float64,
    )


def weights(terms, batch):
    """d objective / d logp of every token, the objective being what is maximised."""
    (gradient,) = torch.autograd.grad(terms.per_token.sum(), batch.logp)
    return (-gradient).flatten().tolist()


def fading(tau, r):
    """4 s (1 - s) r with s = sigmoid(tau (r - 1))."""
    s = 1 / (1 + math.exp(-tau * (r - 1)))
    return 4 * s * (1 - s) * r


@pytest.mark.parametrize(
    ("loss", "options", "expected"),
    [
        # A = 1, r = 0.5;  A = 1, r = 1.5;  A = -1, r = 0.5;  A = -1, r = 5
        (pg, {}, [1, 1, -1, -1]),
        (importance, {}, [0.5, 1.5, -0.5, -5]),
        (clip, {}, [0.5, 0, 0, -5]),
        (clip, {"dual": 3.0}, [0.5, 0, 0, 0]),
        (two_sided, {}, [0.5, 0, 0, 0]),
        (two_sided, {"delta": 6.0}, [0.5, 0, 0, -5]),
        # A r - beta (r - 1)
        (penalty, {}, [1, 1, 0, -9]),
        (penalty, {"beta": 0.1}, [0.55, 1.45, -0.45, -5.4]),
        (cispo, {}, [0.5, 1.5, -0.5, -5]),
        (cispo, {"eps": 0.2, "eps_high": 0.2}, [0.8, 1.2, -0.8, -1.2]),
        (cispo, {"eps_high": 0.2, "bound": "absolute"}, [0.2, 0.2, -0.2, -0.2]),
        (cispo, {"eps_high": 2.0, "bound": "absolute"}, [0.5, 1.5, -0.5, -2]),
        (sapo, {}, [fading(1, 0.5), fading(1, 1.5), -fading(1.05, 0.5), -fading(1.05, 5)]),
        # completions of one token have the ratio of that token
        (gspo, {"eps": 0.2, "eps_high": 0.2}, [0.5, 0, 0, -5]),
        (gspo_token, {"eps": 0.2, "eps_high": 0.2}, [0.5, 0, 0, -5]),
        # log-ratios of -0.69, 0.41, -0.69 and 1.61 against 0.4
        (gmpo, {}, [0.5, 0, 0, -5]),
        # covariances (A - 0)(logp - mean logp), mean -8 + log(0.5 1.5 0.5 5) / 4 = -7.843:
        # -0.85, 0.25, 0.85 and -1.77, all below 1
        (clip_cov, {}, [0.5, 0, 0, -5]),
        # the third has the penalty, and its log-ratio is negative
        (kl_cov, {"beta": 0.25}, [0.5, 1.5, -0.5 + 0.25, -5]),
    ],
)
def test_gradient_far_from_ratio_one(loss, options, expected):
    batch = with_ratios([0.5, 1.5, 0.5, 5], [1, 1, -1, -1])
    terms = loss(batch, **options)
    assert weights(terms, batch) == pytest.approx(expected, abs=1e-9)
    if "clip_fraction" in terms.metrics:
        found = terms.metrics["clip_fraction"].flatten().tolist()
        assert found == [float(weight == 0) for weight in expected]


def test_sapo_fades_on_both_sides_and_harder_for_negative_advantages():
    ratios = [1, 2, 4, 8, 16]
    batch = with_ratios(ratios, [1.0] * 5)
    positive = weights(sapo(batch), batch)
    other = with_ratios(ratios, [-1.0] * 5)
    negative = weights(sapo(other), other)
    assert positive[0] == pytest.approx(1)
    assert negative[0] == pytest.approx(-1)
    # the ratio itself grows: 2 fading(1, 2) = 1.57 is the highest of these
    assert positive[1:] == sorted(positive[1:], reverse=True)
    assert all(-n < p for p, n in zip(positive[1:], negative[1:], strict=True))
    assert positive[-1] < 1e-4  # 4 sigmoid'(15) 16 = 2e-5
    # the value at ratio 1 is -A (4 / tau) / 2
    assert sapo(batch).per_token[0].item() == pytest.approx(-2)
    assert sapo(other).per_token[0].item() == pytest.approx(2 / 1.05)


def test_cispo_keeps_the_gradient_that_clipping_drops():
    batch = with_ratios([8.0, 0.01], [1, -1])
    terms = cispo(batch, eps=0.5)
    assert weights(terms, batch) == pytest.approx([5, -0.5])
    assert terms.metrics["bounded_fraction"].flatten().tolist() == [1, 1]
    # -5 (1) (-8 + log 8) and -0.5 (-1) (-8 + log 0.01)
    expected = [-5 * (-8 + math.log(8)), 0.5 * (-8 + math.log(0.01))]
    assert terms.per_token.flatten().tolist() == pytest.approx(expected)
    assert weights(clip(batch), batch) == [0, 0]


def test_the_penalty_estimates_the_kl_to_the_old_policy():
    """Over all tokens of a distribution: the KL, and its gradient."""
    generator = torch.Generator().manual_seed(0)
    old = torch.randn(6, generator=generator, dtype=torch.float64).log_softmax(0)
    logits = torch.randn(6, generator=generator, dtype=torch.float64).requires_grad_()
    policy = logits.log_softmax(0)
    batch = make_batch(
        logp=policy[None], old_logp=old[None], advantages=[[0.0] * 6], dtype=old.dtype
    )
    expected = (old.exp() * (old - policy)).sum()
    found = (old.exp() * penalty(batch, beta=1.0).per_token[0]).sum()
    assert found.item() == pytest.approx(expected.item(), abs=1e-12)
    (slope,) = torch.autograd.grad(found, logits, retain_graph=True)
    torch.testing.assert_close(slope, torch.autograd.grad(expected, logits)[0])


def test_two_sided_is_dual_clipping_with_its_delta():
    generator = torch.Generator().manual_seed(1)
    ratios = (3 * torch.randn(50, generator=generator)).exp().tolist()
    batch = with_ratios(ratios, torch.randn(50, generator=generator).tolist())
    expected, found = clip(batch, eps_high=0.3, dual=2.5), two_sided(batch, eps_high=0.3, delta=2.5)
    assert torch.equal(found.per_token, expected.per_token)
    assert weights(found, batch) == weights(expected, batch)
    assert torch.equal(found.metrics["clip_fraction"], expected.metrics["clip_fraction"])


def test_a_delta_below_the_upper_bound_also_binds_positive_advantages():
    batch = with_ratios([1.5, 1.5], [1, -1])
    terms = two_sided(batch, eps_high=1.0, delta=1.25)
    # max(-1.25, -1.5), max(1.25, 1.5)
    assert terms.per_token.flatten().tolist() == pytest.approx([-1.25, 1.5])
    assert weights(terms, batch) == pytest.approx([0, -1.5])


TOKEN_LOSSES = [pg, importance, penalty, clip, two_sided, cispo, sapo, gspo_token, kl_cov]


@pytest.mark.parametrize("loss", [*TOKEN_LOSSES, gspo, gmpo])
def test_on_the_first_minibatch_all_have_the_gradient_of_pg(loss):
    """Also with an advantage for each token; a loss of whole completions averages them."""
    advantages = torch.tensor([[1.0, -2, 0.5, NAN], [3, 0, -1, 0.25]], dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]]).bool()
    batch = make_batch(
        logp=[[-1.0, -2, -0.1, NAN], [-3, -0.5, -1, -2]],
        advantages=advantages,
        mask=mask,
        dtype=torch.float64,
    )
    (gradient,) = torch.autograd.grad(loss(batch).per_token[mask].sum(), batch.logp)
    expected = -advantages
    if loss not in TOKEN_LOSSES:
        expected = -torch.tensor([[-1 / 6] * 3 + [0], [0.5625] * 4], dtype=torch.float64)
    torch.testing.assert_close(gradient, torch.where(mask, expected, 0.0))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("two_sided", {"eps_high": 1.0, "delta": 1.25}),
        ("penalty", {"beta": 10.0}),
        ("cispo", {"eps": 0.2, "eps_high": 0.2}),
        ("cispo", {"eps_high": 5.0, "bound": "absolute"}),
        ("sapo", {"tau_pos": 10.0, "tau_neg": 0.1}),
        ("gspo", {"eps": 0.2, "eps_high": None}),
        ("gspo_token", {"eps": 0.2, "eps_high": None}),
        ("gmpo", {"eps": 0.2, "eps_high": 0.3}),
        ("clip_cov", {"fraction": 0.2, "cov_low": 0.1, "eps_high": 0.28}),
        ("kl_cov", {"fraction": 0.3, "beta": 0.1}),
    ],
)
def test_conforms_with_other_options_too(name, options):
    for check in checks("loss", name, options=options):
        if check.rule.name not in check.subject.exceptions:
            check()


@pytest.mark.parametrize("loss", [clip, two_sided, gspo, gspo_token, gmpo, clip_cov])
def test_a_token_without_an_advantage_is_never_counted_as_clipped(loss):
    batch = with_ratios([0.1, 5, 0.1, 5], [0, 0, -1, 1])
    assert loss(batch).metrics["clip_fraction"].flatten().tolist() == [0, 0, 1, 1]
