import math

import pytest
import torch

from rlbench.aggregation import aggregate
from rlbench.builtin.estimators.critic import gae
from rlbench.builtin.losses.clipping import clip, two_sided
from rlbench.builtin.losses.plain import importance, penalty, pg
from rlbench.builtin.losses.selecting import clip_cov, kl_cov
from rlbench.builtin.losses.sequence import gmpo, gspo, gspo_token
from rlbench.builtin.losses.weighting import cispo, sapo
from rlbench.testing import make_batch, make_rollout

NAN = float("nan")
LOSSES = [
    *(clip, two_sided, pg, importance, penalty, cispo, sapo, gspo, gspo_token, gmpo),
    *(clip_cov, kl_cov),
    lambda b: clip(b, eps_high=0.28, dual=3.0),
]


def with_ratios(ratios, advantages):
    """A batch of one row, its old log-probs at -1."""
    logp = [-1 + math.log(r) for r in ratios]
    return make_batch(
        logp=logp, old_logp=[-1.0] * len(ratios), advantages=advantages, dtype=torch.float64
    )


def weights(terms, batch):
    """d objective / d logp of every token, the objective being what is maximised."""
    (gradient,) = torch.autograd.grad(terms.per_token.sum(), batch.logp)
    return (-gradient)[0].tolist()


def test_clipping_is_one_sided():
    batch = with_ratios([1.5, 0.5, 0.5, 1.5], [1, 1, -1, -1])
    terms = clip(batch, eps=0.2)
    # -min(1.5, 1.2), -min(0.5, 0.8), -min(-0.5, -0.8), -min(-1.5, -1.2)
    assert terms.per_token[0].tolist() == pytest.approx([-1.2, -0.5, 0.8, 1.5])
    assert terms.metrics["clip_fraction"][0].tolist() == [1, 0, 1, 0]
    # the gradient vanishes exactly where the clip fraction counts
    assert weights(terms, batch) == pytest.approx([0, 0.5, 0, -1.5])


def test_clip_higher_moves_only_the_upper_bound():
    batch = with_ratios([1.25, 1.5, 0.7], [1, 1, -1])
    assert clip(batch, eps_high=0.28).per_token[0].tolist() == pytest.approx([-1.25, -1.28, 0.8])
    assert clip(batch).per_token[0].tolist() == pytest.approx([-1.2, -1.2, 0.8])


def test_dual_clip_bounds_negative_advantages_only():
    batch = with_ratios([5.0, 2.0, 5.0], [-1, -1, 1])
    terms = clip(batch, dual=3.0)
    # min(5, 3), min(2, 3), and -min(5, 1.2) untouched by dual
    assert terms.per_token[0].tolist() == pytest.approx([3, 2, -1.2])
    assert terms.metrics["clip_fraction"][0].tolist() == [1, 0, 1]
    assert weights(terms, batch) == pytest.approx([0, -2, 0])
    assert clip(batch).per_token[0].tolist() == pytest.approx([5, 2, -1.2])


def test_clip_fraction_counts_no_masked_token():
    batch = make_batch(
        logp=[[1.0, NAN, 1.0]],
        old_logp=[[0.0, 0.0, 0.0]],
        mask=[[1, 0, 0]],
        advantages=[[1, NAN, 1]],
    )
    assert clip(batch).metrics["clip_fraction"].tolist() == [[1, 0, 0]]


def test_clip_and_free_terms_are_the_same_on_policy():
    advantages = torch.tensor([[1.0, 2.0, 3.0]])
    batch = make_batch(logp=[[-1.0, -2.0, -3.0]], advantages=advantages - advantages.mean())
    terms = clip(batch)
    assert terms.per_token.sum().item() == 0
    assert terms.metrics["clip_fraction"].sum() == 0
    assert weights(terms, batch) == [-1, 0, 1]


def test_pg_is_minus_advantage_times_log_prob():
    batch = make_batch(logp=[[-1.0, -2.0]], old_logp=[[-5.0, -0.1]], advantages=[[2, -3]])
    terms = pg(batch)
    assert terms.per_token.tolist() == [[2, -6]]
    assert weights(terms, batch) == [2, -3]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("logp", "old"), [(0.0, -100.0), (-100.0, 0.0)])
@pytest.mark.parametrize("advantage", [0.0, 1e4, -1e4])
def test_large_log_ratios_give_finite_losses_and_gradients(loss, logp, old, advantage):
    batch = make_batch(logp=[[logp]], old_logp=[[old]], advantages=[[advantage]])
    result = loss(batch).per_token
    result.sum().backward()
    assert result.isfinite().all()
    assert batch.logp.grad.isfinite().all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("advantage", [0.0, 1.0, -1.0])
def test_a_nan_log_prob_stays_visible(loss, advantage):
    batch = make_batch(
        logp=[[NAN, -1.0], [-1.0, -2.0]],
        old_logp=[[-1.0, -1.0], [-1.0, -1.0]],
        advantages=[[advantage] * 2] * 2,
    )
    found = loss(batch).per_token.isnan().tolist()
    assert found[0][0]  # a loss of whole completions has it on both tokens of this one
    assert found[1] == [False, False]


@pytest.mark.parametrize(
    "loss", [clip, two_sided, pg, importance, penalty, cispo, sapo, gspo_token]
)
def test_a_nan_log_prob_of_one_token_is_not_that_of_another(loss):
    batch = make_batch(logp=[[-2.0], [NAN]], old_logp=[[-1.0], [-1.0]], mask=[[1], [1]])
    assert loss(batch).per_token.isnan().tolist() == [[False], [True]]


@pytest.mark.parametrize("loss", LOSSES)
def test_an_empty_batch_gives_no_nan(loss):
    batch = make_batch(logp=[[NAN, NAN]], advantages=[[NAN, NAN]], mask=[[0, 0]])
    terms = loss(batch)
    aggregate(terms.per_token, batch.mask, "token_mean").backward()
    assert batch.logp.grad.tolist() == [[0, 0]]
    assert all(metric.isfinite().all() for metric in terms.metrics.values())


@pytest.mark.parametrize("loss", LOSSES)
def test_minibatches_with_one_row_are_like_any_other(loss):
    rollout = make_rollout(reward=[float(i % 3) for i in range(9)], values=[[0.5, 0.2]] * 9)
    advantages = gae(rollout, whiten=True).advantages  # once, over all nine
    for rows in (slice(0, 4), slice(4, 8), slice(8, 9)):
        part = advantages[rows]
        batch = make_batch(logp=torch.full_like(part, -1.0).requires_grad_(), advantages=part)
        assert loss(batch).per_token.isfinite().all()
