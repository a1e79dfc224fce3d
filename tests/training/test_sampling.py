import itertools
from typing import Any

import pytest
import torch

from rlbench.builtin.models import LSTM
from rlbench.builtin.tasks import Addition, Sort
from rlbench.errors import Diverged
from rlbench.training.distribution import Distribution, chosen
from rlbench.training.sampling import log_probs_of, sample
from rlbench.training.seeding import stream
from rlbench.types import Prompts, Vocabulary

PLAIN = Distribution(temperature=1.0, top_p=1.0, top_k=0)


class Fixed:
    """A policy that says the same logits at each position, whatever it reads."""

    def __init__(self, logits: list[list[float]]) -> None:
        self.logits = torch.tensor(logits)  # (T, V)

    def read(self, prompt_ids: torch.Tensor, prompt_mask: torch.Tensor) -> tuple[int, int]:
        return len(prompt_ids), 0

    def spread(self, state: tuple[int, int], group_size: int) -> tuple[int, int]:
        return state[0] * group_size, state[1]

    def output(self, state: tuple[int, int]) -> torch.Tensor:
        return self.logits[state[1]].expand(state[0], -1)

    def step(self, token: torch.Tensor, state: tuple[int, int]) -> tuple[torch.Tensor, Any]:
        state = (state[0], state[1] + 1)
        return self.output(state), state

    def run(self, state: tuple[int, int], completion_ids: torch.Tensor) -> torch.Tensor:
        return self.logits[: completion_ids.shape[1]].expand(state[0], -1, -1)


def prompts(n: int) -> Prompts:
    return Prompts(
        torch.zeros(n, 1, dtype=torch.int64), torch.ones(n, 1, dtype=torch.bool), (None,) * n
    )


def test_the_end_token_counts_and_what_follows_does_not() -> None:
    vocabulary = Vocabulary(tokens=("<pad>", "<eos>", "a"), pad=0, eos=1)
    policy = Fixed([[0, 0, 9], [0, 9, 0], [0, 0, 9], [0, 0, 9]])  # a, eos, ...
    found = sample(policy, prompts(1), vocabulary=vocabulary, limit=4, distribution=PLAIN)
    assert found.completions.ids.tolist() == [[2, 1]]
    assert found.completions.mask.tolist() == [[True, True]]
    assert found.completions.truncated.tolist() == [False]


def test_a_completion_that_reaches_the_limit_is_truncated_and_gets_no_end_token() -> None:
    vocabulary = Vocabulary(tokens=("<pad>", "<eos>", "a"), pad=0, eos=1)
    policy = Fixed([[0, 0, 9]] * 3)
    found = sample(policy, prompts(1), vocabulary=vocabulary, limit=3, distribution=PLAIN)
    assert found.completions.ids.tolist() == [[2, 2, 2]]
    assert found.completions.truncated.tolist() == [True]


def test_end_and_padding_may_share_an_id() -> None:
    # the end token is in the mask, the padding after it is not
    vocabulary = Vocabulary(tokens=("<end>", "a", "b"), pad=0, eos=0)
    policy = Fixed([[-9, 0, 0], [0.5, 0, 0], [-9, 0, 0], [0, 0, 0]])
    found = sample(
        policy,
        prompts(1),
        vocabulary=vocabulary,
        limit=3,
        distribution=PLAIN,
        group_size=50,
        generator=stream("test", 1),
    )
    ended = found.completions.ids[:, 1] == 0
    assert 0 < int(ended.sum()) < 50
    assert found.completions.mask[ended].tolist() == [[True, True, False]] * int(ended.sum())
    assert found.completions.mask[~ended].all()
    assert found.completions.truncated.tolist() == (~ended).tolist()


def test_tokens_are_drawn_with_their_probabilities() -> None:
    vocabulary = Vocabulary(tokens=("<pad>", "<eos>", "a", "b"), pad=0, eos=1)
    wanted = torch.tensor([0.05, 0.15, 0.3, 0.5])
    found = sample(
        Fixed([wanted.log().tolist()]),
        prompts(1),
        vocabulary=vocabulary,
        limit=1,
        distribution=PLAIN,
        group_size=40_000,
        generator=stream("test", 2),
    )
    drawn = torch.bincount(found.completions.ids[:, 0], minlength=4) / 40_000
    # four standard deviations of the most uncertain share: 4 * sqrt(.5 * .5 / 40000) = .01
    assert (drawn - wanted).abs().max().item() < 0.01


def test_tokens_outside_the_support_are_never_drawn() -> None:
    vocabulary = Vocabulary(tokens=("<pad>", "<eos>", "a", "b"), pad=0, eos=1)
    found = sample(
        Fixed([[0.0, 0.1, 0.2, 0.3]]),
        prompts(1),
        vocabulary=vocabulary,
        limit=1,
        distribution=Distribution(temperature=1.0, top_p=1.0, top_k=2),
        group_size=2_000,
        generator=stream("test", 3),
    )
    assert set(found.completions.ids[:, 0].tolist()) == {2, 3}
    assert found.support is not None
    # log-probabilities are those of the cut distribution: p(b) = 1 / (1 + e^-.1)
    b = found.completions.ids[:, 0] == 3
    assert found.logp[b, 0].exp().unique().item() == pytest.approx(0.52498, abs=1e-5)


def test_nan_logits_are_reported_not_sampled() -> None:
    vocabulary = Vocabulary(tokens=("<pad>", "<eos>", "a"), pad=0, eos=1)
    policy = Fixed([[0, 0, 9], [0, float("nan"), 0]])
    with pytest.raises(Diverged, match="completion token 2 is not finite in 3 of 3"):
        sample(policy, prompts(3), vocabulary=vocabulary, limit=2, distribution=PLAIN)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.5])
@pytest.mark.parametrize(("top_p", "top_k"), [(1.0, 0), (0.8, 0), (1.0, 5)])
def test_scoring_gives_the_log_probabilities_of_sampling(
    temperature: float, top_p: float, top_k: int
) -> None:
    """The first ratios of an update are 1 within 1e-6."""
    task = Sort()
    torch.manual_seed(0)
    policy = LSTM().policy(task.vocabulary)
    for weight in policy.parameters():  # far from uniform, as after training
        weight.data.mul_(4.0)
    asked = task.prompts(16, stream("test", 4), split="train")
    distribution = Distribution(temperature=temperature, top_p=top_p, top_k=top_k)
    drawn = sample(
        policy,
        asked,
        vocabulary=task.vocabulary,
        limit=task.completion_limit,
        distribution=distribution,
        group_size=8,
        generator=stream("test", 5),
    )
    ids, mask = drawn.completions.ids, drawn.completions.mask
    log_probs = log_probs_of(
        policy, asked, ids, distribution=distribution, group_size=8, support=drawn.support
    )
    ratio = (chosen(log_probs, ids) - drawn.logp).exp()
    assert drawn.logp.min().item() < -2.0  # unlikely tokens are among them
    assert (ratio[mask] - 1).abs().max().item() < 1e-6


def test_the_same_stream_writes_the_same_text_whoever_asks_beside_it() -> None:
    task = Addition()
    torch.manual_seed(0)
    policy = LSTM().policy(task.vocabulary)
    asked = task.prompts(6, stream("test", 6), split="train")
    written = [
        sample(
            policy,
            asked,
            vocabulary=task.vocabulary,
            limit=4,
            distribution=PLAIN,
            group_size=3,
            generator=stream("test", 7),
        ).completions.ids
        for _ in range(2)
    ]
    assert torch.equal(*written)


def test_padding_and_neighbours_change_no_log_probability() -> None:
    """A completion scored alone, beside a longer one, and under more padding."""
    task = Sort()
    torch.manual_seed(0)
    policy = LSTM(layers=2).policy(task.vocabulary)
    asked = task.prompts(5, stream("test", 8), split="train")
    ids = torch.randint(2, 12, (5, 9), generator=stream("test", 9))
    together = chosen(log_probs_of(policy, asked, ids, distribution=PLAIN), ids)
    for i, length in itertools.product(range(5), (3, 9)):
        n = int(asked.mask[i].sum())
        alone = Prompts(asked.ids[i : i + 1, :n], asked.mask[i : i + 1, :n], (None,))
        some = ids[i : i + 1, :length]
        lone = chosen(log_probs_of(policy, alone, some, distribution=PLAIN), some)
        assert torch.allclose(lone[0], together[i, :length], atol=1e-6, rtol=0)


def test_the_first_completion_token_has_a_gradient() -> None:
    """Two completions that differ only in their first token are told apart."""
    task = Addition()
    torch.manual_seed(0)
    policy = LSTM().policy(task.vocabulary)
    asked = task.prompts(1, stream("test", 10), split="train")
    ids = torch.tensor([[3, 4, 5, 1], [6, 4, 5, 1]])
    log_probs = log_probs_of(policy, asked, ids, distribution=PLAIN, group_size=2)
    first = chosen(log_probs, ids)[:, 0]
    (first[0] - first[1]).backward()
    assert policy.head.bias.grad is not None
    # d/d bias of log p(3) - log p(6) is +1 at 3, -1 at 6, 0 elsewhere
    expected = torch.zeros(14)
    expected[3], expected[6] = 1.0, -1.0
    assert torch.allclose(policy.head.bias.grad, expected, atol=1e-6)
