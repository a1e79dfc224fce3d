import math

import pytest
import torch

from rlbench.training.distribution import Distribution


def distribution(temperature: float = 1.0, top_p: float = 1.0, top_k: int = 0) -> Distribution:
    return Distribution(temperature=temperature, top_p=top_p, top_k=top_k)


def test_temperature_divides_the_logits_before_anything_else() -> None:
    # logits [2, 1, 0] at temperature 0.5 are [4, 2, 0]:
    # log p(2) = -log(e^4 + e^2 + 1) = -4.143; unscaled it is -log(e^2 + e + 1) = -2.408
    logits = torch.tensor([2.0, 1.0, 0.0])
    assert distribution(0.5).log_probs(logits)[2].item() == pytest.approx(-4.143, abs=1e-3)
    assert distribution(1.0).log_probs(logits)[2].item() == pytest.approx(-2.408, abs=1e-3)


def test_low_precision_logits_are_normalised_in_float32() -> None:
    logits = torch.tensor([2.0, 1.0, 0.0], dtype=torch.bfloat16)
    assert distribution().log_probs(logits).dtype == torch.float32


def test_top_k_keeps_the_most_probable_tokens() -> None:
    support = distribution(top_k=2).support(torch.tensor([[0.0, 3.0, 1.0, 2.0]]))
    assert support is not None
    assert support.tolist() == [[False, True, False, True]]


def test_top_p_keeps_the_smallest_set_that_reaches_it() -> None:
    # probabilities .5, .3, .15, .05: .5 + .3 = .8 reaches .7, .5 alone does not
    logits = torch.tensor([[0.05, 0.5, 0.15, 0.3]]).log()
    found = {
        top_p: distribution(top_p=top_p).support(logits).tolist()[0]  # type: ignore[union-attr]  # a set is asked for
        for top_p in (0.4, 0.7, 0.9, 0.96)
    }
    assert found[0.4] == [False, True, False, False]
    assert found[0.7] == [False, True, False, True]
    assert found[0.9] == [False, True, True, True]
    assert found[0.96] == [True, True, True, True]


def test_equal_logits_keep_exactly_as_many_tokens_as_asked_for() -> None:
    support = distribution(top_k=2).support(torch.zeros(1, 5))
    assert support is not None
    assert int(support.sum()) == 2


def test_nothing_is_cut_when_nothing_is_asked_for() -> None:
    assert distribution().support(torch.zeros(1, 5)) is None
    assert distribution(top_k=5).support(torch.zeros(1, 5)) is None


def test_the_support_is_renormalised_and_the_rest_impossible() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log().requires_grad_()
    kept = torch.tensor([[True, True, False, False]])
    log_probs = distribution().log_probs(logits, kept)
    # .5 / .8 and .3 / .8
    assert log_probs[0, 0].item() == pytest.approx(math.log(0.625))
    assert log_probs[0, 1].item() == pytest.approx(math.log(0.375))
    assert log_probs[0, 2:].tolist() == [-math.inf, -math.inf]
    log_probs[0, 0].backward()
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())
    assert logits.grad[0, 2:].tolist() == [0.0, 0.0]
