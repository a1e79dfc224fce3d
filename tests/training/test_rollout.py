import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from rlbench.errors import RunError
from rlbench.training.parts import assemble
from rlbench.training.rollout import collect, token_rewards

NAN = math.nan


def test_the_outcome_lies_on_the_last_token_of_the_mask() -> None:
    mask = torch.tensor([[True, True, True], [True, False, False], [True, True, False]])
    found = token_rewards(torch.tensor([1.0, 2.0, 3.0]), mask, None, 0.0)
    assert found.tolist() == [[0, 0, 1], [2, 0, 0], [0, 3, 0]]


def test_a_masked_token_in_the_middle_does_not_end_the_row() -> None:
    mask = torch.tensor([[True, False, True, False]])
    assert token_rewards(torch.tensor([5.0]), mask, None, 0.0).tolist() == [[0, 0, 5, 0]]


def test_the_penalty_is_taken_off_every_token_and_padding_stays_zero() -> None:
    mask = torch.tensor([[True, True, False]])
    penalty = torch.tensor([[0.5, -1.0, NAN]])
    # 0 - .2 * .5 = -.1 and 1 - .2 * -1 = 1.2
    found = token_rewards(torch.tensor([1.0]), mask, penalty, 0.2)
    assert found[0].tolist() == pytest.approx([-0.1, 1.2, 0.0])


def test_a_row_without_a_reward_is_marked_on_its_last_token() -> None:
    mask = torch.tensor([[True, True, False]])
    found = token_rewards(torch.tensor([NAN]), mask, None, 0.0)[0].tolist()
    assert found[0] == 0
    assert math.isnan(found[1])
    assert found[2] == 0


def test_what_nobody_needs_is_not_computed(make_spec: Callable[..., Any], recorder: Any) -> None:
    parts = assemble(make_spec(), recorder)
    rollout = collect(parts, 1, 0.0).rollout
    assert parts.critic is None
    assert rollout.values is None
    assert rollout.ref_logp is None
    assert rollout.greedy_reward is None


def test_the_reference_is_the_base_policy(make_spec: Callable[..., Any], recorder: Any) -> None:
    """Before the first step the policy is the base policy, so its KL is exactly 0."""
    parts = assemble(make_spec(kl="fixed", task="sort"), recorder)
    collected = collect(parts, 1, 0.1)
    assert collected.kl is not None
    assert collected.kl.abs().max().item() < 1e-10


def test_rows_of_one_prompt_form_a_group(make_spec: Callable[..., Any], recorder: Any) -> None:
    rollout = collect(assemble(make_spec(), recorder), 1, 0.0).rollout
    assert rollout.group.tolist() == [i for i in range(4) for _ in range(4)]
    prompts = rollout.prompt_ids.reshape(4, 4, -1)
    assert bool((prompts == prompts[:, :1]).all())


def test_values_come_from_the_state_before_each_token(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    parts = assemble(make_spec(estimator="gae", task="sort", precision="float64"), recorder)
    assert parts.critic is not None
    torch.nn.init.normal_(parts.critic.head.weight)
    rollout = collect(parts, 1, 0.0).rollout
    assert rollout.values is not None
    assert rollout.last_value is not None
    for row in range(0, 16, 3):
        prompt = rollout.prompt_ids[row][rollout.prompt_mask[row]]
        length = int(rollout.mask[row].sum())
        text = torch.cat([prompt, rollout.completion_ids[row, :length]])[None]
        hidden, _ = parts.critic.lstm(parts.critic.embedding(text))
        said = parts.critic.head(hidden)[0, :, 0]
        before = said[len(prompt) - 1 : -1]
        assert torch.allclose(rollout.values[row, :length], before, atol=1e-12)
        assert rollout.last_value[row].item() == pytest.approx(said[-1].item(), abs=1e-12)


def test_a_rollout_that_nothing_can_score_fails_the_run(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    parts = assemble(make_spec(), recorder)
    parts.reward._reward.score = lambda prompts, _: [None] * len(prompts)
    with pytest.raises(RunError, match=r"none of 16 completions could be scored by reward 'true'"):
        collect(parts, 1, 0.0)


def test_all_algorithms_see_the_same_prompts_and_noise(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    seen = [
        collect(assemble(make_spec(**chosen), recorder), 1, 0.0).rollout
        for chosen in (
            {"estimator": "group", "loss": "clip"},
            {"estimator": "gae", "loss": "pg", "kl": "fixed"},
        )
    ]
    assert torch.equal(seen[0].prompt_ids, seen[1].prompt_ids)
    assert torch.equal(seen[0].completion_ids, seen[1].completion_ids)


def test_seeds_and_updates_have_their_own_prompts(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    parts = [assemble(make_spec(seed=seed), recorder) for seed in (0, 1)]
    seen = [collect(p, update, 0.0).rollout.prompt_ids for p in parts for update in (1, 2)]
    for i in range(4):
        for j in range(i):
            assert not torch.equal(seen[i], seen[j])
