"""Long sequences, where the recursion is done by matrix products, against the recursion."""

import dataclasses

import pytest
import torch

from rlbench.builtin.estimators.critic import gae, group_gae, length_adaptive_gae
from rlbench.testing import make_rollout

NAN = float("nan")


def by_loop(rollout, gamma, lam, gaps, *, bootstrap):
    """The recursion as it is written down, token by token; lam is one number or one a row."""
    live, reward, values = rollout.trained, rollout.token_reward, rollout.values
    advantages = torch.zeros_like(values)
    ahead_value = torch.zeros(len(live), dtype=values.dtype)
    if bootstrap:
        ahead_value = torch.where(rollout.truncated, rollout.last_value, 0.0)
    ahead = torch.zeros_like(ahead_value)
    begun = torch.zeros(len(live), dtype=torch.bool)
    for t in reversed(range(live.shape[1])):
        here = live[:, t]
        begun = begun | here
        step = begun if gaps == "zero" else here
        r, v = torch.where(here, reward[:, t], 0.0), torch.where(here, values[:, t], 0.0)
        ahead = torch.where(step, r + gamma * ahead_value - v + gamma * lam * ahead, ahead)
        ahead_value = torch.where(step, v, ahead_value)
        advantages[:, t] = torch.where(here, ahead, 0.0)
    return advantages


def long_rollout(rows, width, dtype, *, holes, seed=0):
    draw = torch.Generator().manual_seed(seed)
    mask = torch.arange(width) < torch.randint(0, width + 1, (rows, 1), generator=draw)
    if holes:
        mask &= torch.rand(rows, width, generator=draw) > 0.2
    reward, values = (torch.randn(rows, width, generator=draw, dtype=dtype) for _ in range(2))
    reward, values = (torch.where(mask, x, NAN) for x in (reward, values))
    return make_rollout(
        reward=torch.ones(rows, dtype=dtype),
        token_reward=reward,
        values=values,
        mask=mask,
        last_value=torch.randn(rows, generator=draw, dtype=dtype),
        truncated=torch.rand(rows, generator=draw) < 0.5,
        dtype=dtype,
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("gaps", ["carry", "zero"])
@pytest.mark.parametrize("width", [64, 65, 128, 200])
@pytest.mark.parametrize("discounts", [(1.0, 0.95), (0.99, 0.9), (0.9, 0.3), (1.0, 0.0)])
def test_long_sequences_agree_with_the_loop(dtype, holes, gaps, width, discounts):
    (gamma, lam), tolerance = discounts, 1e-10 if dtype == torch.float64 else 1e-5
    rollout = long_rollout(7, width, dtype, holes=holes)
    for truncation in ("terminal", "bootstrap"):
        found = gae(rollout, gamma=gamma, lam=lam, gaps=gaps, truncation=truncation)
        wanted = by_loop(rollout, gamma, lam, gaps, bootstrap=truncation == "bootstrap")
        torch.testing.assert_close(found.advantages, wanted, rtol=tolerance, atol=tolerance)
        targets = torch.where(rollout.mask, wanted + rollout.values, 0.0)
        torch.testing.assert_close(found.returns, targets, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 0.95), (0.99, 1.0), (1.0, 1.0)])
def test_thousands_of_tokens_agree_with_the_loop(gamma, lam, holes):
    double = long_rollout(150, 2048, torch.float64, holes=holes)
    wanted = by_loop(double, gamma, lam, "carry", bootstrap=False)
    found = gae(double, gamma=gamma, lam=lam).advantages
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)
    single = long_rollout(150, 2048, torch.float32, holes=holes)
    wanted = by_loop(single, gamma, lam, "carry", bootstrap=False)
    found = gae(single, gamma=gamma, lam=lam).advantages
    # without a discount, two ways of adding 2048 numbers in float32 are further apart
    scale = wanted.abs().max().clamp(min=1).item()
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5 * scale)


@pytest.mark.parametrize("holes", [False, True])
def test_a_row_depends_neither_on_the_padding_nor_on_other_rows(holes):
    rollout = long_rollout(300, 100, torch.float32, holes=holes)
    whole = gae(rollout).advantages
    wide = torch.nn.functional.pad
    padded = make_rollout(
        reward=rollout.reward,
        token_reward=wide(rollout.token_reward, (0, 1500), value=NAN),
        values=wide(rollout.values, (0, 1500), value=NAN),
        mask=wide(rollout.mask, (0, 1500)),
    )
    torch.testing.assert_close(gae(padded).advantages[:, :100], whole, rtol=1e-6, atol=1e-6)
    for row in (0, 5, 299):
        alone = make_rollout(
            reward=rollout.reward[row : row + 1],
            token_reward=rollout.token_reward[row : row + 1],
            values=rollout.values[row : row + 1],
            mask=rollout.mask[row : row + 1],
        )
        torch.testing.assert_close(gae(alone).advantages[0], whole[row], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("width", [3, 200])
def test_large_rewards_stay_finite(width):
    mask = torch.ones(3, width).bool()
    mask[:, 1] = False
    for reward in ([1e4, -1e4, 0.0], [1e4] * 3):
        rollout = make_rollout(reward=reward, mask=mask, values=torch.full((3, width), -1e4))
        for lam in (0.0, 0.5, 1.0):
            result = gae(rollout, gamma=0.5, lam=lam)
            assert result.advantages.isfinite().all()
            assert result.returns.isfinite().all()


def test_group_gae_of_identical_long_rows_is_exactly_zero():
    draw = torch.Generator().manual_seed(0)
    values = torch.randn(1, 150, generator=draw).expand(37, 150)
    rollout = make_rollout(reward=[0.1] * 37, values=values)
    assert not group_gae(rollout, eps=0.0).advantages.any()


@pytest.mark.parametrize("holes", [False, True])
def test_length_adaptive_gae_agrees_with_the_loop(holes):
    rollout = long_rollout(40, 300, torch.float64, holes=holes)
    found = length_adaptive_gae(rollout, gamma=0.99)
    length = rollout.mask.sum(1).double()
    lam = 1 - 1 / (0.05 * length).clamp(min=1)
    wanted = by_loop(rollout, 0.99, lam, "carry", bootstrap=False)
    torch.testing.assert_close(found.advantages, wanted, rtol=1e-10, atol=1e-10)
    targets = by_loop(rollout, 0.99, 1.0, "carry", bootstrap=False)
    targets = torch.where(rollout.mask, targets + rollout.values, 0.0)
    torch.testing.assert_close(found.returns, targets, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_worked_on_in_single(dtype):
    rollout = long_rollout(5, 100, torch.float32, holes=True)
    half = {
        name: getattr(rollout, name).to(dtype)
        for name in ("reward", "token_reward", "values", "last_value")
    }
    found = gae(dataclasses.replace(rollout, **half), truncation="bootstrap")
    single = {name: value.float() for name, value in half.items()}
    wanted = gae(dataclasses.replace(rollout, **single), truncation="bootstrap")
    for name in ("advantages", "returns"):
        assert torch.equal(getattr(found, name), getattr(wanted, name).to(dtype))


def test_values_may_be_more_precise_than_rewards():
    rollout = long_rollout(5, 100, torch.float32, holes=True)
    found = gae(dataclasses.replace(rollout, values=rollout.values.double()))
    assert found.advantages.dtype == torch.float32
    torch.testing.assert_close(found.advantages, gae(rollout).advantages, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("estimator", [gae, length_adaptive_gae, group_gae])
def test_autocast_changes_nothing(estimator, holes):
    rollout = long_rollout(5, 100, torch.float32, holes=holes)
    wanted = estimator(rollout)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = estimator(rollout)
    assert torch.equal(found.advantages, wanted.advantages)
    assert torch.equal(found.returns, wanted.returns)


@pytest.mark.parametrize("lam", [0.9995, 0.9999, 0.99999])
@pytest.mark.parametrize("hole", [[], [1], [700, 701, 2000]])
def test_a_discount_near_1_loses_nothing_over_thousands_of_tokens(lam, hole):
    mask = torch.ones(1, 3000).bool()
    mask[0, hole] = False
    rollout = make_rollout(reward=[1.0], mask=mask, values=torch.zeros(1, 3000))
    found = gae(rollout, lam=lam).advantages[0, 0].item()
    assert found == pytest.approx(lam ** (2999 - len(hole)), rel=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 5.0])
def test_a_lambda_of_each_row_loses_nothing_either(alpha):
    rollout = make_rollout(reward=[1.0], mask=torch.ones(1, 3000), values=torch.zeros(1, 3000))
    found = length_adaptive_gae(rollout, alpha=alpha).advantages[0, 0].item()
    assert found == pytest.approx((1 - 1 / (alpha * 3000)) ** 2999, rel=1e-6)
