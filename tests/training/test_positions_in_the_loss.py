"""Which log-probabilities reach the loss: those of the completion's own tokens, and no others."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from rlbench.builtin import tasks
from rlbench.training import objective
from rlbench.training.distribution import Distribution
from rlbench.training.objective import StepReport, backward
from rlbench.training.parts import Parts, assemble
from rlbench.training.rollout import Collected, collect
from rlbench.training.trainer import train
from rlbench.types import Advantage, Prompts, Vocabulary

EOS = 1
# A prompt 5, 6; two completions that differ in their first token; eight cells for each.
PROMPT = [5, 6]
COMPLETIONS = [[7, 8, EOS, 0, 0, 0, 0, 0], [9, 8, EOS, 0, 0, 0, 0, 0]]
MASK = torch.tensor([[True] * 3 + [False] * 5] * 2)


@pytest.fixture
def small(make_spec: Callable[..., Any], recorder: Any) -> Callable[..., tuple[Parts, Collected]]:
    """One group of two given completions."""

    def make(completions: Any = COMPLETIONS, prompt: Any = PROMPT, **chosen: Any) -> Any:
        spec = make_spec(
            **{"prompts": 1, "group_size": 2, "minibatches": 1, "precision": "float64"} | chosen
        )
        parts = assemble(spec, recorder)
        there = [token > 0 for token in prompt]
        asked = Prompts(torch.tensor([prompt]), torch.tensor([there]), ((),))
        ids = torch.tensor(completions)
        state = parts.policy.spread(parts.policy.read(asked.ids, asked.mask), 2)
        log_probs = parts.policy.run(state, ids).log_softmax(-1).detach()
        logp = log_probs.gather(-1, ids[..., None])[..., 0]
        collected = collect(parts, 1, 0.0)
        rollout = replace(
            collected.rollout,
            prompt_ids=asked.ids.repeat(2, 1),
            prompt_mask=asked.mask.repeat(2, 1),
            completion_ids=ids,
            mask=MASK,
            reward=torch.tensor([1.0, 0.0], dtype=torch.float64),
            token_reward=torch.zeros(2, 8, dtype=torch.float64),
            old_logp=logp,
        )
        return parts, replace(collected, rollout=rollout, prompts=asked)

    return make


ADVANTAGES = torch.tensor([[1.0], [-1.0]], dtype=torch.float64).expand(2, 8)


def step(parts: Parts, collected: Collected) -> tuple[StepReport, torch.Tensor]:
    report = backward(parts, collected, Advantage(ADVANTAGES.clone()), torch.arange(1), 0.0)
    return report, torch.cat([w.grad.reshape(-1) for w in parts.policy.parameters()])


def test_exactly_the_three_tokens_of_a_completion_are_in_the_loss(
    small: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, collected = small(loss="pg")
    seen: list[torch.Tensor] = []
    honest = objective.log_probs_of

    def watched(*given: Any, **named: Any) -> torch.Tensor:
        found = honest(*given, **named)
        found.retain_grad()
        seen.append(found)
        return found

    monkeypatch.setattr(objective, "log_probs_of", watched)
    report, _ = step(parts, collected)
    assert report.tokens == 6
    (log_probs,) = seen
    # d(-A logp)/d logp over 6 tokens: -1/6 at the tokens of the first row, +1/6 of the second
    expected = torch.zeros_like(log_probs)
    for row, sign in ((0, -1), (1, 1)):
        for t, token in enumerate(COMPLETIONS[row][:3]):
            expected[row, t, token] = sign / 6
    torch.testing.assert_close(log_probs.grad, expected)
    # and they are what the network says after 5 6, after 5 6 7 and after 5 6 7 8
    for row in (0, 1):
        text = torch.tensor([[*PROMPT, *COMPLETIONS[row][:3]]])
        hidden, _ = parts.policy.lstm(parts.policy.embedding(text))
        said = parts.policy.head(hidden)[0, 1:4].log_softmax(-1)
        torch.testing.assert_close(log_probs[row, :3], said)


def test_two_completions_that_differ_in_their_first_token_have_a_gradient(
    small: Callable[..., Any],
) -> None:
    parts, collected = small(loss="clip")
    step(parts, collected)
    # d/d bias of 1/6 (log p(9) - log p(7)) at the first position, where both softmaxes agree;
    # later ones differ only in what the state remembers
    bias = parts.policy.head.bias.grad
    assert bias[7].item() == pytest.approx(-1 / 6, abs=0.02)
    assert bias[9].item() == pytest.approx(1 / 6, abs=0.02)


@pytest.mark.parametrize("loss", ["clip", "pg", "gspo", "kl_cov"])
def test_ids_under_the_padding_change_nothing(small: Callable[..., Any], loss: str) -> None:
    found = []
    for junk in (0, 3, 13):
        completions = [[*row[:3], *[junk] * 5] for row in COMPLETIONS]
        found.append(step(*small(completions, loss=loss)))
    for report, gradient in found[1:]:
        assert report.loss == found[0][0].loss
        assert torch.equal(gradient, found[0][1])


def test_padding_after_the_prompt_changes_nothing(small: Callable[..., Any]) -> None:
    plain = step(*small())
    padded = step(*small(prompt=[*PROMPT, 0, 0, 0]))
    assert padded[0].loss == pytest.approx(plain[0].loss, abs=1e-12)
    torch.testing.assert_close(padded[1], plain[1], rtol=0, atol=1e-12)


def test_no_target_inside_the_prompt_is_in_the_loss(small: Callable[..., Any]) -> None:
    """A prompt of other tokens is another condition, with as many tokens in the loss."""
    first, other = step(*small()), step(*small(prompt=[6, 4]))
    assert first[0].tokens == other[0].tokens == 6
    assert first[0].loss == pytest.approx(0, abs=1e-12)  # -1 (3/6) + 1 (3/6), whatever was asked
    assert other[0].loss == pytest.approx(0, abs=1e-12)


class OneEnd(tasks.Addition):
    """Addition with one id for padding and for the end."""

    def __init__(self, *, digits: int = 2) -> None:
        super().__init__(digits=digits)
        self.vocabulary = Vocabulary(tokens=("<end>", "_", *"0123456789", "+", "="), pad=0, eos=0)

    def demonstrations(self, n: int, generator: Any) -> Any:
        prompts, right = super().demonstrations(n, generator)
        ids = torch.where(right.ids == EOS, 0, right.ids)
        return prompts, replace(right, ids=ids)

    def score(self, prompts: Any, completions: Any) -> Any:
        ended = completions.ids.gather(1, completions.mask.sum(1)[:, None] - 1)[:, 0] == 0
        return ended.double()


def test_a_run_whose_end_is_its_padding_trains_on_the_end(
    make_spec: Callable[..., Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is rewarded for ending, and learns to; without its end in the loss it could not."""
    monkeypatch.setattr(tasks, "Addition", OneEnd)
    spec = make_spec(updates=15, prompts=16, lr=1e-2, estimator="rloo", loss="clip")
    parts = assemble(spec, recorder)
    rollout = collect(parts, 1, 0.0).rollout
    lengths = rollout.mask.sum(1)
    ids = rollout.completion_ids
    for i in range(64):
        kept = ids[i, : lengths[i]].tolist()
        assert 0 not in kept[:-1]  # nothing after the end, and no end but the last
        assert bool(rollout.truncated[i]) == (kept[-1] != 0)
        assert rollout.truncated[i] == (rollout.reward[i] == 0)
        assert not rollout.mask[i, lengths[i] :].any()
    assert 0 < rollout.truncated.sum() < 64
    result = train(spec, recorder)
    assert recorder.updates[0]["truncated"] > 0.3
    assert recorder.updates[-1]["truncated"] < recorder.updates[0]["truncated"] / 2
    assert result["score"] > result["score_start"]


def test_bfloat16_logits_lose_nothing_in_the_log_softmax() -> None:
    """Near -3 the steps of bfloat16 are 1/64, which as a ratio would be 1.6 %."""
    logits = torch.randn(64, 20, generator=torch.Generator().manual_seed(0)).bfloat16()
    plain = Distribution(temperature=1.0, top_p=1.0, top_k=0)
    found = plain.log_probs(logits)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, logits.double().log_softmax(-1).float(), rtol=0, atol=1e-6)
    coarse = logits.log_softmax(-1).float()
    assert (coarse - found).abs().max() > 4e-3
