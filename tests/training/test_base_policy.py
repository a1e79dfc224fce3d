import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from rlbench.errors import RunError
from rlbench.training import sealed
from rlbench.training.base_policy import load_base_policy


def load(spec: Any, recorder: Any) -> Any:
    task, model = (spec.selections[kind].create() for kind in ("task", "model"))
    return load_base_policy(spec, task, model, recorder)


def weights(policy: Any) -> torch.Tensor:
    return torch.cat([weight.reshape(-1) for weight in policy.parameters()])


def test_it_trains_until_the_wanted_score_and_is_frozen(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    policy = load(make_spec(task="sort:shortest=3,longest=3", base_score=0.3), recorder)
    assert not any(weight.requires_grad for weight in policy.parameters())
    saved = sealed.read(next(recorder.base_folder.glob("*.pt")))
    assert saved["facts"]["score"] >= 0.3
    assert saved["facts"]["steps"] % 10 == 0


def test_the_second_time_it_comes_from_the_cache_bit_for_bit(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    spec = make_spec(base_updates=10, base_score=0.0)
    first = weights(load(spec, recorder))
    assert torch.equal(first, weights(load(spec, recorder)))
    assert len(recorder.lines) == 1  # trained once


def test_the_global_generators_do_not_tell_whether_it_was_cached(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    from rlbench.training.parts import assemble

    spec = make_spec(estimator="gae", base_score=0.01, task="sort")
    states = []
    for _ in range(2):
        assemble(spec, recorder)
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


def test_what_the_algorithm_is_does_not_matter_and_what_decides_the_weights_does(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    for chosen in (
        {},
        {"estimator": "gae", "loss": "pg", "kl": "fixed", "updates": 7, "lr": 0.1},
        {"base_seed": 0, "seed": 5},
    ):
        load(make_spec(**chosen), recorder)
    assert len(list(recorder.base_folder.glob("*.pt"))) == 1
    for chosen in ({"seed": 1}, {"task": "sort"}, {"model": "lstm:hidden=64"}, {"base_updates": 9}):
        load(make_spec(**chosen), recorder)
    assert len(list(recorder.base_folder.glob("*.pt"))) == 5


@pytest.mark.parametrize("content", [b"", b"torn", b"PK\x03\x04 not a zip"])
def test_a_torn_file_is_named_and_made_again(
    make_spec: Callable[..., Any], recorder: Any, content: bytes
) -> None:
    first = weights(load(make_spec(), recorder))
    path = next(recorder.base_folder.glob("*.pt"))
    path.write_bytes(content)
    assert torch.equal(first, weights(load(make_spec(), recorder)))
    assert path.name in recorder.lines[1]
    assert "can't be used" in recorder.lines[1]
    assert "\n" not in recorder.lines[1]


def test_a_flipped_bit_is_noticed_and_the_policy_made_again(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    first = weights(load(make_spec(), recorder))
    path = next(recorder.base_folder.glob("*.pt"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert torch.equal(first, weights(load(make_spec(), recorder)))
    assert "it is torn" in recorder.lines[1]


def test_a_policy_under_another_ones_name_is_not_used(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    first = weights(load(make_spec(), recorder))
    own = next(recorder.base_folder.glob("*.pt"))
    load(make_spec(seed=1), recorder)
    other = next(path for path in recorder.base_folder.glob("*.pt") if path != own)
    own.write_bytes(other.read_bytes())
    assert torch.equal(first, weights(load(make_spec(), recorder)))
    assert "its seed is not that of this run" in recorder.lines[-2]


def test_a_pipe_in_the_place_of_a_policy_holds_nobody_up(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    first = weights(load(make_spec(), recorder))
    path = next(recorder.base_folder.glob("*.pt"))
    path.unlink()
    os.mkfifo(path)
    assert torch.equal(first, weights(load(make_spec(), recorder)))
    assert "it is no file" in recorder.lines[1]
    assert path.is_file()


def test_a_score_out_of_reach_fails_with_what_to_do(
    make_spec: Callable[..., Any], recorder: Any
) -> None:
    with pytest.raises(RunError, match=r"after 12 steps .* below base_score=0.9; raise base_up"):
        load(make_spec(base_score=0.9, base_updates=12), recorder)
    assert list(recorder.base_folder.glob("*.pt")) == []


def test_two_at_the_same_time_train_it_once(
    make_spec: Callable[..., Any], recorder: Any, tmp_path: Path
) -> None:
    spec = make_spec(task="sort:shortest=3,longest=3", base_score=0.1)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: load(spec, recorder), range(2)))
    assert len([line for line in recorder.lines if "trained" in line]) == 1
    assert torch.equal(weights(found[0]), weights(found[1]))
    assert not list(tmp_path.rglob("*.partial"))
