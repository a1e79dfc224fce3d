import math

import pytest
import torch
from rlbench_research.losses import dppo_kl, dppo_tv
from rlbench_research.off_policy import awr, dro, topr

from rlbench.testing import checks, make_batch

NAN = float("nan")


def with_probabilities(pairs, advantages):
    """One completion of tokens that had the first probability and have the second."""
    return make_batch(
        logp=[[math.log(new) for _, new in pairs]],
        old_logp=[[math.log(old) for old, _ in pairs]],
        advantages=[advantages],
        dtype=torch.float64,
    )


def gradient(terms, batch):
    (found,) = torch.autograd.grad(terms.per_token.sum(), batch.logp)
    return found[0].tolist()


def test_dppo_tv_drops_what_moves_on_from_beyond_delta():
    pairs = [(0.5, 0.75), (0.5, 0.75), (0.5, 0.25), (0.5, 0.25), (0.01, 0.1), (0.5, 0.6)]
    batch = with_probabilities(pairs, [1, -1, 1, -1, 1, 1])
    terms = dppo_tv(batch, delta=0.2)
    # the first rose by 0.25 with A > 0, the fourth fell by 0.25 with A < 0; a tenfold rise by 0.09
    # is within delta, where PPO clips
    assert terms.metrics["clip_fraction"][0].tolist() == [1, 0, 0, 1, 0, 0]
    assert terms.per_token[0].tolist() == pytest.approx([0, 1.5, -0.5, 0, -10, -1.2])
    assert gradient(terms, batch) == pytest.approx([0, 1.5, -0.5, 0, -10, -1.2])


def test_dppo_kl_drops_what_moves_on_from_beyond_delta():
    pairs = [(0.5, 0.75), (0.5, 0.75), (0.5, 0.25), (0.5, 0.25), (0.5, 0.6), (0.01, 0.1)]
    batch = with_probabilities(pairs, [1, -1, 1, -1, 1, 1])
    # KL of (q, 1-q) to (p, 1-p): 0.5 log(0.5 / 0.75) + 0.5 log(0.5 / 0.25) = 0.1438, the same for
    # 0.25; 0.5 log(0.5 / 0.6) + 0.5 log(0.5 / 0.4) = 0.0204;
    # 0.01 log(0.01 / 0.1) + 0.99 log(0.99 / 0.9) = 0.0713
    for delta, expected in (
        (0.05, [1, 0, 0, 1, 0, 1]),
        (0.1, [1, 0, 0, 1, 0, 0]),
        (0.143, [1, 0, 0, 1, 0, 0]),
        (0.144, [0, 0, 0, 0, 0, 0]),
        (0.02, [1, 0, 0, 1, 1, 1]),
    ):
        terms = dppo_kl(batch, delta=delta)
        assert terms.metrics["clip_fraction"][0].tolist() == expected
        found = [round(-w, 9) for w in gradient(terms, batch)]
        kept = [1.5, -1.5, 0.5, -0.5, 1.2, 10]
        assert found == pytest.approx([0 if e else k for e, k in zip(expected, kept, strict=True)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dppo_at_probabilities_of_0_and_1(dtype):
    batch = make_batch(
        logp=[[0.0, 0, -100, -100, 0, -1e-7]],
        old_logp=[[-1.0, 0, -100, 0, -100, 0]],
        advantages=[[1, 1, 1, -1, 1, -1]],
        dtype=dtype,
    )
    # sure now and not before; unchanged twice; given up; from nothing to sure; hardly moved
    for loss in (dppo_tv, dppo_kl):
        terms = loss(batch)
        assert terms.metrics["clip_fraction"][0].tolist() == [1, 0, 0, 1, 1, 0]
        assert all(math.isfinite(x) for x in gradient(terms, batch))


def test_topr_tapers_the_completion_that_went_badly():
    batch = make_batch(
        logp=[[-2.0, -2, NAN], [-2, -2, -2], [-2, -2, NAN]],
        old_logp=[[-1.0, -2, NAN], [-1.5, -2, -1], [-2.5, -2.25, NAN]],
        advantages=[[1, 1, NAN], [-2, -2, -2], [-1, -1, NAN]],
        mask=[[1, 1, 0], [1, 1, 1], [1, 1, 0]],
        dtype=torch.float64,
    )
    terms = topr(batch)
    # log-ratios: -1 with A > 0: weight 1; -0.5 + 0 - 1 = -1.5; 0.5 + 0.25 > 0: weight 1
    e = math.exp(-1.5)
    assert terms.metrics["taper"][batch.mask].tolist() == pytest.approx([1, 1, e, e, e, 1, 1])
    (found,) = torch.autograd.grad(terms.per_token[batch.mask].sum(), batch.logp)
    # - weight A
    assert found.tolist() == [[-1, -1, 0], pytest.approx([2 * e] * 3), [1, 1, 0]]


def test_topr_with_the_ratio_of_each_token():
    batch = make_batch(logp=[[-2.0, -2, -2]], old_logp=[[-1.5, -2, -3]], advantages=[[-1, -1, -1]])
    found = gradient(topr(batch, level="token"), batch)
    assert found == pytest.approx([math.exp(-0.5), 1, 1])


def test_dro_by_hand():
    batch = make_batch(logp=[[-2.0, -1, -1]], old_logp=[[-1.0, -1, -101]], advantages=[[1, -2, 0]])
    terms = dro(batch, beta=0.5)
    # 2 + 0.25 * 1, -2, 0.25 * 100²
    assert terms.per_token[0].tolist() == pytest.approx([2.25, -2, 2500])
    # -A + beta * log-ratio
    assert gradient(terms, batch) == pytest.approx([-1 - 0.5, 2, 50])


def test_dro_rests_where_the_log_ratio_is_advantage_over_beta():
    batch = make_batch(logp=[[-1.0, -3]], old_logp=[[-1.5, -2]], advantages=[[0.25, -0.5]])
    assert gradient(dro(batch, beta=0.5), batch) == pytest.approx([0, 0], abs=1e-6)


def test_awr_by_hand():
    batch = make_batch(logp=[[-2.0] * 5], advantages=[[0, 1, -1, 2.9, 3.1]], dtype=torch.float64)
    terms = awr(batch)
    expected = [1, math.e, 1 / math.e, math.exp(2.9), 20]  # exp(3.1) = 22.2
    assert gradient(terms, batch) == pytest.approx([-w for w in expected])
    assert terms.per_token[0].tolist() == pytest.approx([2 * w for w in expected])
    assert terms.metrics["capped_fraction"][0].tolist() == [0, 0, 0, 0, 1]


def test_awr_never_overflows():
    batch = make_batch(logp=[[-2.0, -2]], advantages=[[1e4, -1e4]])
    assert gradient(awr(batch, beta=1e-3), batch) == pytest.approx([-20, 0])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("topr", {"level": "token"}),
        ("dro", {"beta": 0.0}),
        ("awr", {"beta": 0.05, "cap": 1.0}),
        ("dppo_tv", {"delta": 0.01}),
        ("dppo_kl", {"delta": 1e-3}),
    ],
)
def test_conforms_with_other_options_too(name, options):
    for check in checks("loss", name, options=options):
        if check.rule.name not in check.subject.exceptions:
            check()
