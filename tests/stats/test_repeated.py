"""The level of a t test at planned looks keeps its error rate at a few seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import stdtr

from rlbench.stats import pocock_looks, repeated_t_level
from rlbench.stats.repeated import _crossing


def simulated(nominal: float, looks: int, block: int, runs: int) -> float:
    """Share of samples without effect whose t is significant at any look."""
    rng = np.random.default_rng(looks * 100 + block)
    d = rng.normal(size=(runs, looks * block))
    crossed = np.zeros(runs, dtype=bool)
    for n in range(block, looks * block + 1, block):
        seen = d[:, :n]
        t = seen.mean(1) / (seen.std(1, ddof=1) / np.sqrt(n))
        crossed |= 2 * stdtr(n - 1, -np.abs(t)) < nominal
    return float(crossed.mean())


@pytest.mark.parametrize(("looks", "block"), [(2, 3), (5, 3), (5, 5), (3, 8)])
def test_the_error_rate_over_all_looks_is_alpha(looks: int, block: int) -> None:
    # three standard errors of 40,000 samples: 0.0033; Pocock's own level gives 0.056 at (5, 3)
    rate = simulated(repeated_t_level(looks, block), looks, block, 40_000)
    assert rate == pytest.approx(0.05, abs=0.0033)


@pytest.mark.parametrize(("looks", "block"), [(5, 3), (5, 5)])
def test_what_is_integrated_is_what_is_simulated(looks: int, block: int) -> None:
    nominal = pocock_looks(looks)
    assert _crossing(nominal, looks, block) == pytest.approx(
        simulated(nominal, looks, block, 100_000), abs=0.0022
    )


@pytest.mark.parametrize(
    ("looks", "block", "alpha"), [(2, 3, 0.05), (5, 4, 0.01), (5, 5, 0.001), (10, 3, 0.05)]
)
def test_the_level_solves_what_it_says(looks: int, block: int, alpha: float) -> None:
    level = repeated_t_level(looks, block, alpha)
    assert alpha / looks < level < pocock_looks(looks, alpha)
    assert _crossing(level, looks, block) == pytest.approx(alpha, rel=1e-4)


def test_with_many_seeds_a_look_it_is_pococks() -> None:
    levels = [repeated_t_level(3, block) for block in (3, 30, 300)]
    assert levels == sorted(levels)
    assert levels[-1] == pytest.approx(pocock_looks(3), rel=2e-3)


def test_one_look_is_a_t_test() -> None:
    assert repeated_t_level(1, 3, 0.03) == 0.03


@pytest.mark.parametrize(
    ("looks", "block", "alpha", "message"),
    [
        (0, 5, 0.05, "looks 0"),
        (101, 5, 0.05, "looks 101"),
        (5, 2, 0.05, "block 2"),
        (5, 5, 0.0, "alpha"),
        (5, 5, 1.0, "alpha"),
    ],
)
def test_what_is_refused(looks: int, block: int, alpha: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        repeated_t_level(looks, block, alpha)


def test_whole_numbers_only() -> None:
    with pytest.raises(TypeError):
        repeated_t_level(2.5, 5)  # type: ignore[arg-type]  # what is tested
