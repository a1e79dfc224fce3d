import random

import numpy as np
import torch

from rlbench.training.seeding import derive, seed_everything, stream


def test_names_are_lists_not_joined_text() -> None:
    names: list[tuple[str | int, ...]] = [("a", 1), ("a1",), ("a", "1"), ("a", 1, 0), ("a", 10)]
    assert len({derive(*name) for name in names}) == len(names)


def test_a_stream_is_known_by_its_name() -> None:
    # a changed value means that every published number changes
    assert derive("prompts", 0, 1) == derive("prompts", 0, 1)
    assert (
        torch.rand(3, generator=stream("x", 1)).tolist()
        == torch.rand(3, generator=stream("x", 1)).tolist()
    )
    assert torch.rand(1, generator=stream("x", 1)) != torch.rand(1, generator=stream("x", 2))


def test_opening_a_stream_leaves_the_global_generators_alone() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    torch.rand(5, generator=stream("x", 1))
    assert torch.equal(before, torch.get_rng_state())


def test_all_three_global_generators_follow_the_seed() -> None:
    draws = []
    for seed in (3, 3, 4):
        seed_everything("run", seed)
        draws.append((random.random(), np.random.rand(), torch.rand(1).item()))
    assert draws[0] == draws[1]
    assert all(a != b for a, b in zip(draws[0], draws[2], strict=True))
