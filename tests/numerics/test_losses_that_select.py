"""Clip-Cov and KL-Cov against the papers' procedures: every draw, and a sort."""

import itertools
import math

import pytest
import torch

from rlbench.builtin.losses.clipping import clip
from rlbench.builtin.losses.plain import importance
from rlbench.builtin.losses.selecting import clip_cov, kl_cov
from rlbench.testing import make_batch

NAN = float("nan")


def random_batch(seed, rows=4, width=5):
    generator = torch.Generator().manual_seed(seed)
    length = torch.randint(1, width + 1, (rows, 1), generator=generator)
    mask = torch.arange(width) < length
    draw = torch.randn(3, rows, width, generator=generator, dtype=torch.float64)
    old = torch.where(mask, -3 + 1.5 * draw[0], NAN)
    return make_batch(
        logp=(old + 0.2 * draw[1]).requires_grad_(),
        old_logp=old,
        advantages=torch.where(mask, draw[2], NAN),
        mask=mask,
        dtype=torch.float64,
    )


def tokens(batch):
    """The trained tokens and each one's covariance, by plain arithmetic."""
    cells = [tuple(cell) for cell in batch.mask.nonzero().tolist()]
    a = [batch.advantages[cell].item() for cell in cells]
    b = [batch.logp[cell].item() for cell in cells]
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    covariance = [(x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True)]
    return dict(zip(cells, covariance, strict=True))


def gradient(loss, batch):
    return torch.autograd.grad(loss[batch.mask].sum(), batch.logp)[0]


# Advantages 3, 1, -1, -3 with mean 0; logp -1, -3, -2, -2 with mean -2: covariances 3, -1, 0, 0.
HAND = {
    "logp": [[-1.0, -3, -2, -2, NAN]],
    "old_logp": [[-1.1, -3, -2, -2, NAN]],
    "advantages": [[3.0, 1, -1, -3, NAN]],
    "mask": [[1, 1, 1, 1, 0]],
    "dtype": torch.float64,
}


def test_clip_cov_by_hand():
    batch = make_batch(**HAND)
    terms = clip_cov(batch)
    # only the first token lies in (1, 5); 2e-4 of 4 tokens is at least 1
    assert terms.metrics["selected_fraction"].tolist() == [[1, 0, 0, 0, 0]]
    assert terms.per_token[0].tolist() == pytest.approx([0, -1, 1, 3, 0])
    assert gradient(terms.per_token, batch)[0].tolist() == pytest.approx([0, -1, 1, 3, 0])
    # out of the band there is nothing to select
    for band in ({"cov_low": 3.5}, {"cov_high": 2.5}):
        assert torch.equal(clip_cov(batch, **band).per_token, clip(batch).per_token)


def test_kl_cov_by_hand():
    batch = make_batch(**HAND)
    terms = kl_cov(batch, beta=0.5)
    r = math.exp(0.1)
    assert terms.metrics["selected_fraction"].tolist() == [[1, 0, 0, 0, 0]]
    assert terms.per_token[0].tolist() == pytest.approx([-3 * r + 0.5 * 0.1, -1, 1, 3, 0])
    # d |log r| / d logp = 1
    assert gradient(terms.per_token, batch)[0].tolist() == pytest.approx(
        [-3 * r + 0.5, -1, 1, 3, 0]
    )


@pytest.mark.parametrize("seed", range(6))
def test_clip_cov_is_the_mean_over_all_random_draws(seed):
    batch = random_batch(seed)
    options = {"fraction": 0.25, "cov_low": 0.2, "cov_high": 5.0}
    plain = clip(batch)
    covariance = tokens(batch)
    band = [
        cell
        for cell, value in covariance.items()
        if 0.2 < value < 5.0 and not plain.metrics["clip_fraction"][cell]
    ]
    k = max(1, math.floor(0.25 * len(covariance)))
    draws = list(itertools.combinations(band, min(k, len(band))))
    expected = torch.zeros_like(batch.logp)
    for draw in draws:
        kept = plain.per_token.clone()
        for cell in draw:
            kept[cell] = 0
        expected = expected + kept / len(draws)
    found = clip_cov(batch, **options)
    torch.testing.assert_close(found.per_token, expected)
    torch.testing.assert_close(gradient(found.per_token, batch), gradient(expected, batch))
    assert found.metrics["selected_fraction"].sum().item() == pytest.approx(min(k, len(band)))


def test_there_is_more_than_one_draw_to_average():
    covariance = tokens(random_batch(0)).values()
    assert sum(0.2 < value < 5 for value in covariance) > math.floor(0.25 * len(covariance)) >= 1


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("fraction", [0.01, 0.2, 0.5, 1.0])
def test_kl_cov_penalises_the_highest_covariances(seed, fraction):
    batch = random_batch(seed)
    covariance = tokens(batch)
    k = max(1, math.floor(fraction * len(covariance) + 1e-9))
    chosen = sorted(covariance, key=covariance.__getitem__, reverse=True)[:k]
    expected = importance(batch).per_token
    for cell in chosen:
        one = torch.zeros_like(batch.mask)
        one[cell] = True
        expected = expected + torch.where(one, 0.7 * (batch.logp - batch.old_logp).abs(), 0.0)
    found = kl_cov(batch, fraction=fraction, beta=0.7).per_token
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradient(found, batch), gradient(expected, batch))


def test_tied_tokens_share_the_last_places():
    """One completion sampled twice: which copy came first can't matter."""
    batch = make_batch(
        logp=[[-1.0, -3], [-1, -3], [-4, -2]],
        advantages=[[1, 1], [1, 1], [-2, -2]],
        dtype=torch.float64,
    )
    # logp has mean -14/6, so covariances are 4/3, -2/3 (twice each), then 10/3, -2/3
    shares = {1 / 6: [0, 0, 1], 2 / 6: [0.5, 0.5, 1], 3 / 6: [1, 1, 1]}
    for fraction, expected in shares.items():
        found = kl_cov(batch, fraction=fraction).metrics["selected_fraction"]
        assert found[:, 0].tolist() == pytest.approx(expected)
    # with five places, two are left for three tokens at -2/3
    found = kl_cov(batch, fraction=5 / 6).metrics["selected_fraction"]
    assert found.tolist() == [pytest.approx([1, 2 / 3])] * 3


def test_equal_advantages_select_without_preference():
    batch = make_batch(logp=[[-1.0, -2], [-3, -4]], advantages=[[2, 2], [2, 2]])
    terms = kl_cov(batch, fraction=0.25)
    assert terms.metrics["selected_fraction"].tolist() == [[0.25, 0.25], [0.25, 0.25]]
    assert clip_cov(batch).metrics["selected_fraction"].sum() == 0


@pytest.mark.parametrize(("fraction", "expected"), [(0.29, 29), (0.57, 57), (1e-9, 1), (1.0, 100)])
def test_the_fraction_counts_tokens_exactly(fraction, expected):
    """0.29 * 100 is 28.999999999999996."""
    logp = -torch.arange(1.0, 101).reshape(10, 10)
    advantages = torch.arange(100.0).roll(37).reshape(10, 10)
    batch = make_batch(logp=logp.requires_grad_(), advantages=advantages)
    found = kl_cov(batch, fraction=fraction).metrics["selected_fraction"].sum()
    assert found.item() == pytest.approx(expected)


def test_the_kl_cov_penalty_sleeps_at_ratio_one_and_pulls_back_from_anywhere():
    for log_ratio, slope in ((0.0, 0), (0.5, 1), (-0.5, -1), (100, 1), (-100, -1)):
        batch = make_batch(
            logp=[[-1.0]], old_logp=[[-1.0 - log_ratio]], advantages=[[0.0]], dtype=torch.float64
        )
        found = gradient(kl_cov(batch, beta=1.0).per_token, batch)
        assert found.item() == pytest.approx(slope)


@pytest.mark.parametrize("loss", [clip_cov, kl_cov])
def test_padding_and_the_order_of_rows_leave_the_selection_alone(loss):
    batch = random_batch(3)
    options = {"fraction": 0.25} | ({"cov_low": 0.1} if loss is clip_cov else {})
    expected = loss(batch, **options).metrics["selected_fraction"]
    order = torch.tensor([2, 0, 3, 1])

    def moved(x):
        return torch.nn.functional.pad(x.detach()[order], (0, 7), value=NAN)

    other = make_batch(
        logp=moved(batch.logp).requires_grad_(),
        old_logp=moved(batch.old_logp),
        advantages=moved(batch.advantages),
        mask=torch.nn.functional.pad(batch.mask[order], (0, 7)),
        dtype=torch.float64,
    )
    found = loss(other, **options).metrics["selected_fraction"]
    assert expected.sum() > 0
    torch.testing.assert_close(found[:, :5], expected[order])
    assert found[:, 5:].sum() == 0
