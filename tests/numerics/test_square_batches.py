"""As many completions as tokens: a statistic spread over the wrong axis raises no error there."""

import pytest
import torch

from rlbench.plugin.loading import load
from rlbench.plugin.selection import parse
from rlbench.testing import make_batch, make_rollout

REGISTRY = load()
NAN = float("nan")
ESTIMATORS = [
    *(c.name for c in REGISTRY.components("estimator") if c.target.startswith("rlbench.builtin")),
    "gae:whiten=true,gaps=zero",
    "mc_returns:whiten=true",
    "decoupled_gae:whiten=true,truncation=bootstrap",
    "length_adaptive_gae:alpha=0.9,truncation=bootstrap,lam_critic=0.5",
    "group:leave_one_out=true,kl=per_token",
    "group:kl=after,singleton=raw",
    "rloo:kl=after",
    "reinforce_pp:kl=per_token,gamma=0.5",
    "reinforce_pp_baseline:kl=after",
]
LOSSES = [
    *(c.name for c in REGISTRY.components("loss") if c.target.startswith("rlbench.builtin")),
    "clip:dual=1.2,eps_high=0.3",
    "gspo:eps=0.1",
    "gspo_token:eps=0.1",
    "clip_cov:fraction=0.3,cov_low=0,cov_high=50",
    "kl_cov:fraction=0.3",
]
LENGTHS = [4, 2, 3, 1]


def numbers(seed, rows=4, width=4):
    return torch.rand(rows, width, generator=torch.Generator().manual_seed(seed)).double()


def widened(x, fill=NAN):
    """One more column, of padding."""
    return torch.cat([x, torch.full((len(x), 1), fill, dtype=x.dtype)], 1)


MASK = torch.tensor([[t < n for t in range(4)] for n in LENGTHS])


def rollout(change=lambda x: x, mask=MASK, rows=slice(None)):
    reward = torch.tensor([1.0, 0.25, 0.5, 0.0], dtype=torch.float64)
    last = MASK & (torch.arange(4) == torch.tensor(LENGTHS)[:, None] - 1)
    given = torch.where(last, reward[:, None] - 0.1 * numbers(0), -0.1 * numbers(0))
    return make_rollout(
        reward=reward[rows],
        group=[0, 1, 0, 1][rows],
        token_reward=change(torch.where(MASK, given, NAN))[rows],
        values=change(torch.where(MASK, numbers(1), NAN))[rows],
        mask=mask[rows],
        last_value=numbers(2)[rows, 0],
        truncated=[True, False, True, True][rows],
        greedy_reward=numbers(3)[rows, 0],
        ref_logp=change(-numbers(4))[rows],
        old_logp=change(-numbers(5))[rows],
        dtype=torch.float64,
    )


@pytest.mark.parametrize("text", ESTIMATORS)
def test_an_estimator_gives_what_it_gives_with_one_more_column(text):
    estimate = parse(REGISTRY, "estimator", text).create()
    square = estimate(rollout())
    oblong = estimate(rollout(widened, torch.cat([MASK, MASK[:, :1] & False], 1)))
    assert square.advantages[MASK].unique().numel() > 1
    torch.testing.assert_close(square.advantages, oblong.advantages[:, :4])
    if square.returns is not None:
        torch.testing.assert_close(square.returns, oblong.returns[:, :4])


@pytest.mark.parametrize(
    "text",
    [
        "gae:lam=0.7,gamma=0.9,truncation=bootstrap",
        "gae:lam=0.7,gaps=zero,truncation=bootstrap",
        "mc_returns:gamma=0.9,truncation=bootstrap",
        "decoupled_gae:lam_policy=0.3,lam_critic=0.8,truncation=bootstrap",
        "length_adaptive_gae:alpha=0.9,lam_critic=0.8,truncation=bootstrap",
        "reinforce_pp:whiten=false,gamma=0.5",
        "remax",
    ],
)
def test_completions_side_by_side_get_what_each_gets_alone(text):
    estimate = parse(REGISTRY, "estimator", text).create()
    together = estimate(rollout())
    for row in range(4):
        alone = estimate(rollout(rows=slice(row, row + 1)))
        torch.testing.assert_close(together.advantages[row], alone.advantages[0])
        if together.returns is not None:
            torch.testing.assert_close(together.returns[row], alone.returns[0])


@pytest.mark.parametrize("text", LOSSES)
def test_a_loss_gives_what_it_gives_with_one_more_column(text):
    loss = parse(REGISTRY, "loss", text).create()
    found = []
    for change, mask in ((lambda x: x, MASK), (widened, widened(MASK, fill=False))):
        logp = change(torch.where(MASK, -2 * numbers(6) - 0.1, NAN)).requires_grad_()
        batch = make_batch(
            logp=logp,
            old_logp=change(torch.where(MASK, -2 * numbers(7) - 0.1, NAN)),
            advantages=change(torch.where(MASK, 4 * numbers(8) - 2, NAN)),
            ref_logp=change(-numbers(9)),
            mask=mask,
            group=[0, 1, 0, 1],
            reward=[1.0, -0.25, 0.5, -1.0],
            dtype=torch.float64,
        )
        per_token = loss(batch).per_token
        (gradient,) = torch.autograd.grad(per_token[mask].sum(), logp)
        found.append((per_token[mask], gradient[mask]))
    assert found[0][1].unique().numel() > 1
    torch.testing.assert_close(found[0], found[1])
