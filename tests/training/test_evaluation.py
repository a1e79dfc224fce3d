from collections.abc import Callable
from typing import Any

import pytest
import torch

from rlbench.training.evaluation import evaluate
from rlbench.training.parts import assemble


def move(parts: Any) -> None:
    with torch.no_grad():
        for weight in parts.policy.parameters():
            weight.mul_(1.5)


def test_the_base_policy_has_not_moved(make_spec: Callable[..., Any], recorder: Any) -> None:
    row = evaluate(assemble(make_spec(), recorder), 0).row
    assert row["kl"] == 0.0
    assert row["update"] == 0


def test_an_evaluation_repeats_itself(make_spec: Callable[..., Any], recorder: Any) -> None:
    parts = assemble(make_spec(task="sort"), recorder)
    assert evaluate(parts, 0).row == evaluate(parts, 0).row


def test_kl_entropy_and_length_are_those_of_the_sampled_completions(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    parts = assemble(make_spec(task="sort", precision="float64", temperature=0.7), recorder)
    move(parts)
    row = evaluate(parts, 3).row
    # the same again, one completion at a time
    from rlbench.training.sampling import sample
    from rlbench.training.seeding import stream

    task = parts.task
    prompts = task.prompts(20, stream("evaluation", 0), split="eval")
    drawn = sample(
        parts.policy,
        prompts,
        vocabulary=task.vocabulary,
        limit=task.completion_limit,
        distribution=parts.distribution,
        generator=stream("evaluation noise", 0),
    ).completions
    kl, entropies, lengths = [], [], []
    for i in range(20):
        one = prompts.rows([i])
        length = int(drawn.mask[i].sum())
        ids = drawn.ids[i : i + 1, :length]
        p, q = (
            (net.run(net.read(one.ids, one.mask), ids)[0] / 0.7).softmax(-1).detach()
            for net in (parts.policy, parts.base)
        )
        kl.append(float((p * (p / q).log()).sum()))
        entropies += (-(p * p.log()).sum(-1)).tolist()
        lengths.append(length)
    assert row["kl"] == pytest.approx(sum(kl) / 20, rel=1e-9)
    assert row["kl"] is not None
    assert row["kl"] > 0.001
    assert row["entropy"] == pytest.approx(sum(entropies) / len(entropies), rel=1e-9)
    assert row["length"] == pytest.approx(sum(lengths) / 20)


def test_top_p_compares_the_two_policies_on_what_could_be_sampled(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    parts = assemble(make_spec(task="sort", top_p=0.5), recorder)
    move(parts)
    row = evaluate(parts, 1).row
    assert row["kl"] is not None
    assert 0 < row["kl"] < float("inf")
    assert row["entropy"] is not None
    assert 0 < row["entropy"] < 2.565  # log 13 would be the whole vocabulary


def test_unscorable_completions_are_left_out_and_counted(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    parts = assemble(make_spec(), recorder)
    parts.task._task.score = lambda prompts, _: [None] + [0.5] * (len(prompts) - 1)
    row = evaluate(parts, 0).row
    assert row["score"] == 0.5
    assert row["unscored"] == 1


def test_samples_can_be_read(make_spec: Callable[..., Any], recorder: Any) -> None:
    samples = evaluate(assemble(make_spec(), recorder), 4).samples
    assert len(samples) == 5
    for sample in samples:
        assert sample["update"] == 4
        assert len(sample["prompt"]) == len("12+34=")
        assert set(sample["greedy"]) <= set("0123456789+=")
