"""Losses with one ratio for a completion, against their papers' formulas written out."""

import math

import pytest
import torch

from rlbench.aggregation import aggregate
from rlbench.builtin.losses.sequence import gmpo, gspo, gspo_token
from rlbench.testing import make_batch

NAN = float("nan")
EPS = {"eps": 0.2, "eps_high": 0.3}


def random_batch(seed=0, rows=8, width=6, spread=0.6):
    """Completions of different lengths, one advantage each, NaN outside."""
    generator = torch.Generator().manual_seed(seed)
    length = torch.randint(1, width + 1, (rows, 1), generator=generator)
    mask = torch.arange(width) < length
    draw = torch.randn(3, rows, width, generator=generator, dtype=torch.float64)
    old = torch.where(mask, -2 + 0.3 * draw[0], NAN)
    logp = (old + spread * draw[1]).requires_grad_()
    advantages = torch.where(mask, draw[2, :, :1], NAN)
    return make_batch(
        logp=logp, old_logp=old, advantages=advantages, mask=mask, dtype=torch.float64
    )


def objective(loss, batch, **options):
    """What is minimised, as published, and its gradient."""
    total = aggregate(loss(batch, **options).per_token, batch.mask, "seq_mean_token_mean")
    return total, torch.autograd.grad(total, batch.logp)[0]


def completions(batch):
    """Log-ratios (with gradient) and the advantage of each completion."""
    for i in range(len(batch.mask)):
        kept = batch.mask[i]
        yield (batch.logp[i] - batch.old_logp[i])[kept], batch.advantages[i][kept][0]


def test_gspo_by_hand():
    batch = make_batch(
        logp=[[math.log(4) - 3, -3, NAN], [math.log(4) - 3, -3, NAN], [-3, -3, -3]],
        old_logp=[[-3, -3, NAN], [-3, -3, NAN], [-3, -3, -3]],
        advantages=[[1, 1, NAN], [-1, -1, NAN], [2, 2, 2]],
        mask=[[1, 1, 0], [1, 1, 0], [1, 1, 1]],
        dtype=torch.float64,
    )
    terms = gspo(batch, **EPS)
    # s = sqrt(4 * 1) = 2: max(-2, -1.3), max(2, 1.3); and s = 1
    assert terms.per_token.tolist() == [
        pytest.approx([-1.3, -1.3, 0]),
        pytest.approx([2, 2, 0]),
        pytest.approx([-2, -2, -2]),
    ]
    assert terms.metrics["clip_fraction"].tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 0]]
    total, gradient = objective(gspo, batch, **EPS)
    assert total.item() == pytest.approx((-1.3 + 2 - 2) / 3)  # not weighted by length
    # d loss / d logp = -A s / length, over 3 completions
    assert gradient.tolist() == [
        [0, 0, 0],
        pytest.approx([1 / 3, 1 / 3, 0]),
        pytest.approx([-2 / 9] * 3),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_gspo_is_the_published_objective(seed):
    batch = random_batch(seed)
    terms = []
    for log_ratio, advantage in completions(batch):
        s = log_ratio.exp().prod() ** (1 / len(log_ratio))
        terms.append(torch.minimum(s * advantage, s.clamp(0.8, 1.3) * advantage))
    expected = -torch.stack(terms).mean()
    found, gradient = objective(gspo, batch, **EPS)
    assert found.item() == pytest.approx(expected.item(), abs=1e-12)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, batch.logp)[0])


@pytest.mark.parametrize("seed", range(5))
def test_with_equal_advantages_gspo_token_has_the_loss_and_gradient_of_gspo(seed):
    batch = random_batch(seed)
    for name, (found, expected) in enumerate(
        zip(objective(gspo_token, batch, **EPS), objective(gspo, batch, **EPS), strict=True)
    ):
        torch.testing.assert_close(found, expected, msg=f"part {name}")


def test_gspo_token_gives_each_token_its_own_advantage():
    batch = make_batch(
        logp=[[math.log(1.21) - 3, -3]],
        old_logp=[[-3, -3]],
        advantages=[[1, -2]],
        dtype=torch.float64,
    )
    terms = gspo_token(batch, eps=0.05)
    # s = sqrt(1.21) = 1.1: beyond 1 + 0.0004 for the first, free for the second
    assert terms.per_token[0].tolist() == pytest.approx([-1.0004, 2.2])
    (gradient,) = torch.autograd.grad(terms.per_token.sum(), batch.logp)
    assert gradient[0].tolist() == pytest.approx([0, 2.2])


def test_gspo_averages_advantages_that_differ():
    batch = make_batch(logp=[[-1.0, -1, -1]], advantages=[[3, 1, NAN]], mask=[[1, 1, 0]])
    assert gspo(batch).per_token.tolist() == [[-2, -2, 0]]
    assert gmpo(batch).per_token.tolist() == [[-2, -2, 0]]


def test_gspo_clips_as_published_by_default():
    """3e-4 below and 4e-4 above."""
    log_ratios = [-3.5e-4, -2.5e-4, 3.5e-4, 4.5e-4]
    for sign, expected in ((1, [0, 0, 0, 1]), (-1, [1, 0, 0, 0])):
        batch = make_batch(
            logp=[[-1 + x] for x in log_ratios],
            old_logp=[[-1.0]] * 4,
            advantages=[[sign]] * 4,
            dtype=torch.float64,
        )
        for loss in (gspo, gspo_token):
            assert loss(batch).metrics["clip_fraction"].flatten().tolist() == expected


def test_one_unlikely_token_of_many_does_not_saturate_the_ratio():
    """Its log-ratio of -100 counts as -100 / 50, not as the -20 that exp is limited to."""
    logp = torch.full((1, 50), -1.0, dtype=torch.float64)
    logp[0, 7] = -101
    batch = make_batch(
        logp=logp.requires_grad_(),
        old_logp=torch.full((1, 50), -1.0),
        advantages=torch.full((1, 50), 1.0),
        dtype=torch.float64,
    )
    assert gspo(batch).per_token[0, 0].item() == pytest.approx(-math.exp(-2))
    assert gmpo(batch).per_token[0, 0].item() == pytest.approx(-math.exp(-2))


def test_gmpo_by_hand():
    batch = make_batch(
        logp=[[-2.5, -2.9], [-3.5, -2.1]],
        old_logp=[[-3, -3], [-3, -3]],
        advantages=[[1, 1], [-2, -2]],
        dtype=torch.float64,
    )
    terms = gmpo(batch, eps=0.4)
    # min(0.5, 0.4) and 0.1, mean 0.25; max(-0.5, -0.4) and 0.9, mean 0.25
    e = math.exp(0.25)
    assert terms.per_token.tolist() == [pytest.approx([-e, -e]), pytest.approx([2 * e, 2 * e])]
    assert terms.metrics["clip_fraction"].tolist() == [[1, 0], [1, 0]]
    (gradient,) = torch.autograd.grad(terms.per_token.sum(), batch.logp)
    assert gradient.tolist() == [pytest.approx([0, -e]), pytest.approx([0, 2 * e])]


@pytest.mark.parametrize("seed", range(5))
def test_gmpo_is_the_published_objective(seed):
    """min(r^sgn, clip(r^sgn))^(sgn / length), where both bounds are equal on the log scale."""
    batch = random_batch(seed)
    terms = []
    for log_ratio, advantage in completions(batch):
        sign = float(advantage.sign())
        r = log_ratio.exp() ** sign
        held = torch.minimum(r, r.clamp(math.exp(-0.4), math.exp(0.4)))
        terms.append(held.prod() ** (sign / len(log_ratio)) * advantage)
    expected = -torch.stack(terms).mean()
    found, gradient = objective(gmpo, batch)
    assert found.item() == pytest.approx(expected.item(), abs=1e-12)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, batch.logp)[0])


def test_gmpo_takes_eps_for_negative_advantages_and_eps_high_for_positive_ones():
    batch = make_batch(
        logp=[[-1.7], [-2.3]],
        old_logp=[[-2.0], [-2.0]],
        advantages=[[1], [-1]],
        dtype=torch.float64,
    )
    terms = gmpo(batch, eps=0.1, eps_high=0.2)
    assert terms.per_token.flatten().tolist() == pytest.approx([-math.exp(0.2), math.exp(-0.1)])


@pytest.mark.parametrize("loss", [gspo, gspo_token, gmpo])
def test_a_row_without_tokens_gives_nothing(loss):
    batch = make_batch(
        logp=[[NAN, NAN], [-1, -1]],
        old_logp=[[NAN, NAN], [-1.5, -1]],
        advantages=[[NAN, NAN], [1, 1]],
        mask=[[0, 0], [1, 1]],
    )
    terms = loss(batch)
    assert terms.per_token[0].tolist() == [0, 0]
    terms.per_token.sum().backward()
    assert batch.logp.grad[0].tolist() == [0, 0]
    assert batch.logp.grad.isfinite().all()
