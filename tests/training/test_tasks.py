import itertools
from typing import Any

import pytest
import torch

from rlbench.builtin.tasks import Addition, Sort
from rlbench.training.seeding import stream
from rlbench.types import Completions


def completions(task: Any, texts: list[str], *, limit: int) -> Completions:
    """Spell completions; ``.`` is the end token."""
    rows = [[1 if c == "." else task.vocabulary.tokens.index(c) for c in text] for text in texts]
    ids = torch.tensor([row + [0] * (limit - len(row)) for row in rows])
    mask = torch.tensor([[i < len(row) for i in range(limit)] for row in rows])
    return Completions(ids, mask, torch.tensor([not text.endswith(".") for text in texts]))


def test_addition_writes_the_sum_least_significant_digit_first() -> None:
    task = Addition()
    prompts, right = task.demonstrations(50, stream("test", 1))
    for i in range(50):
        text = task.vocabulary.decode(prompts.ids[i].tolist())
        answer = task.vocabulary.decode(right.ids[i].tolist())
        a, b = text.removesuffix("=").split("+")
        assert len(a) == len(b) == 2
        assert answer == f"{int(a) + int(b):03d}"[::-1]
        assert right.ids[i, -1].item() == task.vocabulary.eos
    assert task.score(prompts, right).tolist() == [1.0] * 50


def test_addition_pays_for_the_exact_answer_alone() -> None:
    task = Addition()
    prompts, _ = task.demonstrations(1, stream("test", 2))
    right = task.vocabulary.decode(prompts.references[0])
    wrong = right[:-1] + ("1" if right[-1] == "0" else "0")
    texts = [right + ".", wrong + ".", right, right[:2] + ".", ".", right + "0"]
    found = task.score(prompts.rows([0] * 6), completions(task, texts, limit=4))
    assert found.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_sort_pays_for_positions() -> None:
    task = Sort(shortest=3, longest=3)
    prompts = task.prompts(1, stream("test", 3), split="train")
    right = task.vocabulary.decode(prompts.references[0])
    other = next(d for d in "0123456789" if d not in right)
    texts = [
        right + ".",  # 3 of 3
        other + right[1:] + ".",  # 2 of 3
        right[:2] + ".",  # 2 of 3: one is missing
        right + other + ".",  # 3 of 4: one is too many
        right,  # 3 of 4: it never ends
        ".",  # 0 of 3
    ]
    found = task.score(prompts.rows([0] * 6), completions(task, texts, limit=5))
    assert found.tolist() == pytest.approx([1, 2 / 3, 2 / 3, 3 / 4, 3 / 4, 0])


def test_sort_mixes_lengths() -> None:
    prompts = Sort().prompts(400, stream("test", 4), split="train")
    lengths = prompts.mask.sum(1) - 1
    assert set(lengths.tolist()) == {3, 4, 5, 6, 7, 8}


@pytest.mark.parametrize("task", [Addition(), Sort(), Sort(shortest=3, longest=3)], ids=str)
def test_no_held_out_answer_is_ever_shown(task: Any) -> None:
    """Not in training, not in validation, not in another order of the same operands."""
    seen: dict[str, set[Any]] = {}
    for split in ("train", "validation", "eval"):
        prompts = task.prompts(3000, stream("test", split), split=split)
        texts = [task.vocabulary.decode(row.tolist()) for row in prompts.ids]
        seen[split] = {tuple(sorted(text.rstrip("=>").split("+"))) for text in texts}
        if isinstance(task, Sort):
            seen[split] = set(prompts.references)
    for one, other in itertools.combinations(seen.values(), 2):
        assert one
        assert not one & other
    shown, _ = task.demonstrations(3000, stream("test", 5))
    references = {tuple(r) for r in shown.references}
    if isinstance(task, Sort):
        assert not references & (seen["eval"] | seen["validation"])


def test_the_evaluation_asks_nothing_twice() -> None:
    prompts = Addition().prompts(1000, stream("test", 6), split="eval")
    assert len({tuple(row) for row in prompts.ids.tolist()}) == 1000


def test_more_prompts_than_there_are_begin_again() -> None:
    prompts = Addition(digits=1).prompts(500, stream("test", 7), split="eval")
    assert len(prompts) == 500


@pytest.mark.parametrize("task", [Addition(), Sort()], ids=str)
def test_a_task_too_small_for_its_splits_says_so(
    task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlbench.builtin.tasks._split_of", lambda _: "train")
    with pytest.raises(ValueError, match="no prompt in its split 'eval'"):
        task.prompts(5, stream("test", 8), split="eval")


def test_prompts_depend_on_the_generator_alone() -> None:
    first = Sort().prompts(20, stream("test", 9), split="train")
    second = Sort().prompts(20, stream("test", 9), split="train")
    assert torch.equal(first.ids, second.ids)
    assert not torch.equal(
        first.ids,
        Sort().prompts(20, stream("test", 10), split="train").ids[:, : first.ids.shape[1]],
    )


def test_sort_refuses_lengths_in_the_wrong_order() -> None:
    with pytest.raises(ValueError, match="shortest=9 is above longest=8"):
        Sort(shortest=9)
