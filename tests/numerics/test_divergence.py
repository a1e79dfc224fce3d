import math

import pytest
import torch

from rlbench.divergence import (
    KINDS,
    LOG_RATIO_LIMIT,
    entropy,
    exact_kl,
    importance_ratio,
    kl_estimate,
    log_ratio,
)
from rlbench.errors import UsageError


def one(x):
    return torch.tensor([[x]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("policy", "reference", "kind", "expected"),
    [
        (-1.0, -1.7, "k1", 0.7),
        (-1.0, -1.7, "k2", 0.245),  # 0.49 / 2
        (-1.0, -1.7, "k3", 0.19658530379),  # exp(-0.7) - 1 + 0.7
        (-1.7, -1.0, "k1", -0.7),
        (-1.7, -1.0, "k3", 0.31375270747),  # exp(0.7) - 1 - 0.7
        (-1.0, -1.3, "k1", 0.3),
        (-1.3, -1.0, "k1", -0.3),
        (-1.0, -1.3, "k2", 0.045),
        (-1.3, -1.0, "k2", 0.045),
        (-1.0, -1.3, "k3", 0.040818220682),
        (-1.3, -1.0, "k3", 0.049858807576),
        (-1.3, -1.0, "abs", 0.3),
        (-1.3, -1.0, "k1_plus", -0.3),
        (-1.3, -1.0, "k3_plus", 0.049858807576),
    ],
)
def test_values(policy, reference, kind, expected):
    assert kl_estimate(one(policy), one(reference), kind).item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kind", "at_plus", "at_minus"),
    [
        ("k1", 1.0, 1.0),
        ("k2", 0.3, -0.3),
        ("k3", 0.25918178, -0.34985881),  # 1 - exp(-0.3), 1 - exp(0.3)
        ("k3_ratio", 0.3, -0.3),  # ratio * d, ratio 1
        ("k1_plus", 0.3, -0.3),
        ("k3_plus", 0.3, -0.3),
        ("abs", 1.0, -1.0),
    ],
)
def test_gradients_of_a_token(kind, at_plus, at_minus):
    for d, expected in ((0.3, at_plus), (-0.3, at_minus)):
        logp = one(-1.0).requires_grad_()
        reference, old = one(-1.0 - d), one(-1.0)
        kl_estimate(logp, reference, kind, old_logp=old).backward()
        assert logp.grad.item() == pytest.approx(expected)


LOGITS = torch.tensor([0.3, -1.2, 0.8, 0.0, 1.1, -0.4], dtype=torch.float64)
REFERENCE = torch.tensor([0.0, 0.5, -0.7, 0.9, 0.2, -1.5], dtype=torch.float64).log_softmax(0)
OLD = torch.tensor([0.5, -1.0, 0.4, 0.2, 0.9, -0.3], dtype=torch.float64).log_softmax(0)


def expected_gradient(kind, sampler=None):
    """Gradient with respect to the logits of the estimate's mean over all six tokens."""
    logits = LOGITS.clone().requires_grad_()
    logp = logits.log_softmax(0)
    sampler = logp.detach() if sampler is None else sampler
    per_token = kl_estimate(logp[None], REFERENCE[None], kind, old_logp=sampler[None])
    (sampler.exp() * per_token).sum().backward()
    return logits.grad


def reverse_kl_gradient():
    """d KL(p || q) / d z_j = p_j (log p_j - log q_j - KL)."""
    logp = LOGITS.log_softmax(0)
    d = logp - REFERENCE
    return logp.exp() * (d - (logp.exp() * d).sum())


@pytest.mark.parametrize("kind", ["k2", "k3_ratio", "k1_plus", "k3_plus"])
def test_these_have_the_gradient_of_the_kl_in_the_loss(kind):
    torch.testing.assert_close(expected_gradient(kind), reverse_kl_gradient())


def test_k3_ratio_has_it_off_policy_too():
    torch.testing.assert_close(expected_gradient("k3_ratio", OLD), reverse_kl_gradient())


def test_k1_in_the_loss_regularises_nothing():
    assert expected_gradient("k1").abs().max() < 1e-15


def test_k3_in_the_loss_has_the_gradient_of_the_other_direction():
    # d KL(q || p) / d z_j = p_j - q_j
    torch.testing.assert_close(expected_gradient("k3"), LOGITS.softmax(0) - REFERENCE.exp())


def test_abs_in_the_loss_is_biased():
    # The mean over v of sign(d_v) (1[j = v] - p_j): p_j (sign(d_j) - mean sign)
    p = LOGITS.softmax(0)
    sign = (LOGITS.log_softmax(0) - REFERENCE).sign()
    torch.testing.assert_close(expected_gradient("abs"), p * (sign - (p * sign).sum()))
    assert (expected_gradient("abs") - reverse_kl_gradient()).abs().max() > 0.01


@pytest.mark.parametrize("kind", ["k1", "k3", "k3_ratio", "k1_plus", "k3_plus"])
def test_these_are_unbiased(kind):
    logp = LOGITS.log_softmax(0)
    value = (logp.exp() * kl_estimate(logp, REFERENCE, kind, old_logp=logp)).sum()
    torch.testing.assert_close(value, exact_kl(logp, REFERENCE))


def test_a_step_on_the_loss_lowers_the_measured_kl():
    for kind in ("k2", "k3", "k3_ratio", "k1_plus", "k3_plus"):
        after = (LOGITS - 0.1 * expected_gradient(kind)).log_softmax(0)
        assert exact_kl(after, REFERENCE) < exact_kl(LOGITS.log_softmax(0), REFERENCE)


@pytest.mark.parametrize("kind", KINDS)
def test_estimates_stay_finite_far_away(kind):
    logp = torch.tensor([[-100.0, 0.0, -1000.0]], requires_grad=True)
    reference = torch.tensor([[0.0, -100.0, 0.0]])
    result = kl_estimate(logp, reference, kind, old_logp=torch.tensor([[0.0, -100.0, 0.0]]))
    result.sum().backward()
    assert result.isfinite().all()
    assert logp.grad.isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_masked_cells_reach_neither_estimate_nor_gradient(kind):
    logp = torch.tensor([[-1.0, math.nan, math.inf]], requires_grad=True)
    reference = torch.tensor([[-1.5, -1.0, math.nan]])
    mask = torch.tensor([[True, False, False]])
    result = kl_estimate(logp, reference, kind, old_logp=reference, mask=mask)
    result.sum().backward()
    assert result[0, 1:].tolist() == [0, 0]
    assert logp.grad[0, 1:].tolist() == [0, 0]
    assert logp.grad[0, 0] != 0


@pytest.mark.parametrize("kind", KINDS)
def test_nan_under_the_mask_stays_visible(kind):
    nan = torch.tensor([[math.nan]])
    result = kl_estimate(nan, torch.zeros(1, 1), kind, old_logp=torch.zeros(1, 1))
    assert result.isnan().all()


@pytest.mark.parametrize("kind", ["k2", "k3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_k2_and_k3_are_never_negative(kind, dtype):
    d = torch.cat([torch.logspace(-12, 2, 4001), -torch.logspace(-12, 2, 4001)]).to(dtype)
    assert (kl_estimate(d, torch.zeros_like(d), kind) >= 0).all()


def test_unknown_estimator_names_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'k3_plus'"):
        kl_estimate(one(0.0), one(0.0), "k3plus")


def test_k3_ratio_needs_the_sampling_log_probs():
    with pytest.raises(UsageError, match="old_logp"):
        kl_estimate(one(0.0), one(0.0), "k3_ratio")


def test_large_log_ratios_are_limited_and_ordinary_ones_unchanged():
    logp = torch.tensor([[0.0, -100.0, -1.25, 0.0]], requires_grad=True)
    old = torch.tensor([[-100.0, 0.0, -1.5, -19.999]])
    mask = torch.ones(1, 4, dtype=torch.bool)
    ratio = importance_ratio(logp, old, mask)
    ratio.sum().backward()
    limit = torch.tensor([LOG_RATIO_LIMIT, -LOG_RATIO_LIMIT])
    assert torch.equal(ratio[0, :2], limit.exp())
    assert torch.equal(ratio[0, 2:], (logp - old).exp()[0, 2:])  # bit for bit
    assert logp.grad[0, :2].tolist() == [0, 0]
    assert torch.equal(logp.grad[0, 2:], ratio.detach()[0, 2:])


def test_ratio_selects_before_exp():
    logp = torch.tensor([[-1.0, math.inf, math.nan]], requires_grad=True)
    mask = torch.tensor([[True, False, False]])
    ratio = importance_ratio(logp, torch.tensor([[-1.0, -math.inf, 0.0]]), mask)
    ratio.sum().backward()
    assert ratio.tolist() == [[1, 1, 1]]
    assert logp.grad.tolist() == [[1, 0, 0]]


def test_nan_log_prob_is_not_clamped_into_a_number():
    nan = torch.tensor([[math.nan]])
    assert log_ratio(nan, torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool)).isnan().all()


def test_exact_kl_by_hand():
    p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.75])
    # 0.5 ln 2 + 0.5 ln (2 / 3) = 0.143841
    assert exact_kl(p.log(), q.log()).item() == pytest.approx(0.14384104, rel=1e-6)


def test_exact_kl_over_a_truncated_vocabulary():
    logits = torch.tensor([[0.0, 0.0, -math.inf], [0.0, -math.inf, -300.0]], requires_grad=True)
    reference = torch.tensor([[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]]).log()
    result = exact_kl(logits.log_softmax(-1), reference)
    result.sum().backward()
    assert result.tolist() == pytest.approx([0.14384104, 0])
    assert logits.grad.isfinite().all()


def test_exact_kl_is_infinite_where_the_reference_never_goes():
    assert exact_kl(torch.tensor([0.5, 0.5]).log(), torch.tensor([1.0, 0.0]).log()) == math.inf


def test_entropy_of_uniform_tokens_whatever_the_support():
    logits = torch.zeros(3, 12, 6)
    logits[..., 4:] = -math.inf  # as top-k=4 leaves it
    result = entropy(logits.log_softmax(-1))
    torch.testing.assert_close(result, torch.full((3, 12), math.log(4)))  # 1.386


def test_entropy_has_finite_gradients_and_is_not_negative():
    logits = torch.tensor([[0.0, -math.inf], [0.0, -200.0], [5.0, 4.0]], requires_grad=True)
    result = entropy(logits.log_softmax(-1))
    result.sum().backward()
    assert (result >= 0).all()
    assert logits.grad.isfinite().all()
    assert logits.grad[2, 0] < 0  # making the likelier token likelier lowers entropy


def test_nan_logits_stay_visible():
    nan = torch.tensor([math.nan, 0.0])
    assert entropy(nan).isnan()
    assert exact_kl(nan, torch.zeros(2)).isnan()
