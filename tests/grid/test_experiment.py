"""From flags to runs: axes, seeds, repeats, and what is refused before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from rlbench.errors import UsageError
from rlbench.grid.axes import parse_seeds, spell_settings
from rlbench.grid.experiment import build, cells_of
from rlbench.plugin.loading import load

if TYPE_CHECKING:
    from rlbench.training.spec import RunSpec


def grid(*settings: str, seeds: object = "0", note=None, **axes: list[str]) -> list[RunSpec]:
    return build(load(), selections=axes, settings=settings, seeds=seeds, note=note)


def labels(specs: list[RunSpec], kind: str) -> list[str]:
    return [spec.selections[kind].label for spec in specs]


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("0-4", [0, 1, 2, 3, 4]),
        ("0,3,7", [0, 3, 7]),
        ("0-2,7", [0, 1, 2, 7]),
        ("007", [7]),
        (" 1 , 2 - 3 ", [1, 2, 3]),
        ("5-5", [5]),
        ("0,0,1", [0, 0, 1]),
    ],
)
def test_seeds(text: str, seeds: list[int]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    "text",
    ["", " ", "0-", "-1", "-", "a", "1.5", "4-0", "0,,1", "0,", "1e3", "٣", "0-99999999", "0-1-2"],
)
def test_seeds_that_are_none(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_seeds(text)
    assert len(str(caught.value).splitlines()) == 1


def test_defaults_make_one_cell() -> None:
    specs = grid(seeds="0-1")
    assert [spec.seed for spec in specs] == [0, 1]
    assert {kind: chosen.label for kind, chosen in specs[0].selections.items()} == {
        "estimator": "group",
        "loss": "clip",
        "kl": "none",
        "task": "addition",
        "reward": "true",
        "model": "lstm",
    }


def test_product_of_axes_all_cells_of_a_seed_first() -> None:
    specs = grid("lr=1e-3,3e-4", seeds="0-1", estimator=["group", "rloo"], loss=["clip"])
    assert [spec.seed for spec in specs] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert labels(specs[:4], "estimator") == ["group", "rloo", "group", "rloo"]
    assert [spec.settings.lr for spec in specs[:4]] == [0.001, 0.001, 0.0003, 0.0003]
    assert cells_of(specs) == 4


def test_repeats_are_dropped_and_noted() -> None:
    said: list[str] = []
    specs = grid(
        "lr=1e-3,0.001", "lr=1.0E-3", seeds="0,0,1", estimator=["grpo", "group"], note=said.append
    )
    assert len(specs) == 2
    assert said == [
        "dropped a repeated estimator: group (the same as grpo)",
        "dropped a repeated lr: 0.001 (the same as 1e-3)",
        "dropped a repeated lr: 1.0E-3 (the same as 1e-3)",
        "dropped a repeated seed: 0",
    ]


def test_written_defaults_are_the_same_component() -> None:
    assert len(grid(loss=["clip", "clip:eps=0.2"])) == 1


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("updtes=5", "did you mean 'updates'"),
        ("group-size=4", "did you mean 'group_size'"),
        ("lr", "write name=value"),
        ("lr=", "a value is missing"),
        ("lr=1e-3,", "a value is missing"),
        ("lr=abc", r"lr=abc.*\(0, inf\)"),
        ("lr=nan", "lr=nan"),
        ("lr=-1", "lr=-1"),
        ("updates=1.5", "updates=1.5"),
        ("eps=0.1", r"write -e group:eps=0\.1 or -l clip:eps=0.1"),
        ("loss.eps=0.1", "write -l clip:eps=0.1"),
        ("loss.ep=0.1", "unknown option of any loss 'ep'; did you mean 'eps'"),
        ("lam=0.9", "write -e .*gae:lam=0.9"),  # though it is not in this grid
        ("kl.target=3", "write -k adaptive:target=3 or"),
        ("los.eps=3", r"'los\.eps' is no trainer setting .*-l clip:eps=3"),
        ("group_size=1", "at least 2"),
    ],
)
def test_bad_settings_are_refused(setting: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        grid(setting)


def test_an_option_of_a_selected_component_shows_its_place() -> None:
    with pytest.raises(UsageError, match=r"write -e gae:lam=0\.9"):
        grid("lam=0.9", estimator=["gae"])


def test_too_many_runs_are_refused_before_they_are_built() -> None:
    with pytest.raises(UsageError, match="200,000 runs"):
        grid("lr=1e-3,3e-4", seeds=range(100_000))


def test_seeds_as_numbers() -> None:
    assert [spec.seed for spec in grid(seeds=range(2))] == [0, 1]
    assert [spec.seed for spec in grid(seeds=np.arange(2))] == [0, 1]


@pytest.mark.parametrize("seeds", [5, [], ["7"], [1.5], [True], [-1], None])
def test_seeds_as_something_else(seeds: object) -> None:
    with pytest.raises(UsageError, match="seed"):
        grid(seeds=seeds)


def test_settings_from_python() -> None:
    assert spell_settings({"lr": [1e-3, np.float64(3e-4)], "updates": 1e2, "base_seed": None}) == [
        "lr=0.001,0.0003",
        "updates=100",
        "base_seed=none",
    ]
    assert spell_settings({"updtes": 3}) == ["updtes=3"]  # refused where components are known
    with pytest.raises(UsageError, match="lr"):
        spell_settings({"lr": True})
