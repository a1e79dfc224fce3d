"""No statistic trips over floats at the ends of their range, ties, ints, bools or lists."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from rlbench import stats

Call = Callable[[list[float]], object]
OF_ONE_SAMPLE: dict[str, Call] = {
    "mean_interval": stats.mean_interval,
    "iqm": stats.iqm,
    "iqm_interval": stats.iqm_interval,
    "suite_interval": lambda x: stats.suite_interval({"a": x, "b": x}, resamples=200),
    "suite mean": lambda x: stats.suite_interval({"a": x, "b": x}, "mean", resamples=200),
    "optimality_gap": lambda x: stats.optimality_gap({"a": x}),
    "performance_profile": lambda x: stats.performance_profile({"a": x}, x),
    "paired_difference": lambda x: stats.paired_difference(x, [0.0] * len(x)),
    "sign_flip_test": stats.sign_flip_test,
    "max_t": lambda x: stats.max_t(np.column_stack([x, x])),
    "contrast": lambda x: stats.contrast(np.column_stack([x, np.zeros(len(x))]), [1, -1]),
    "probability": lambda x: stats.probability_of_improvement(x, x),
    "paired probability": lambda x: stats.probability_of_improvement(x, x[::-1], paired=True),
    "e_process": stats.e_process,
    "sign_e_process": stats.sign_e_process,
    "confidence_sequence": stats.confidence_sequence,
    "bootstrap_ranks": lambda x: stats.bootstrap_ranks(
        {"a": {"t": x}, "b": {"t": x}}, resamples=200
    ),
}
SAMPLES: dict[str, list[float]] = {
    "huge": [1e300, -1e300, 3e300, 1e299, 2e300, 5e300],
    "tiny": [1e-300, -2e-300, 3e-300, 0.0, 4e-300, 1e-301],
    "denormal": [5e-324, 1e-323, 0.0, 1.5e-323, 5e-324, 2e-323],
    "both": [1e300, 1e-300, 1.0, -1.0, 0.0, 2.0],
    "near the largest": [1.7e308, 1.6e308, 1.5e308, 1.4e308, 1.3e308, 1.2e308],
    "ties": [1.0, 1.0, 2.0, 2.0, 2.0, 3.0],
    "equal": [0.1] * 6,
    "zeros": [0.0] * 6,
    "two": [0.25, 0.75],
    "one": [0.5],
}


def numbers(result: object) -> Iterator[float]:
    """Give every number in a result."""
    if isinstance(result, bool | str) or result is None:
        return
    if isinstance(result, float | int):
        yield float(result)
    elif isinstance(result, np.ndarray):
        yield from result.tolist()
    elif isinstance(result, dict):
        for value in result.values():
            yield from numbers(value)
    elif is_dataclass(result):
        for field in fields(result):
            yield from numbers(getattr(result, field.name))
    else:
        raise TypeError(type(result))


@pytest.mark.parametrize("values", SAMPLES.values(), ids=SAMPLES)
@pytest.mark.parametrize("call", OF_ONE_SAMPLE.values(), ids=OF_ONE_SAMPLE)
def test_never_nan_and_never_a_warning(call: Call, values: list[float]) -> None:
    assert not any(math.isnan(number) for number in numbers(call(values)))


@pytest.mark.parametrize("values", SAMPLES.values(), ids=SAMPLES)
@pytest.mark.parametrize("call", OF_ONE_SAMPLE.values(), ids=OF_ONE_SAMPLE)
def test_zero_width_is_never_certainty(call: Call, values: list[float]) -> None:
    result = call(values)
    interval = getattr(result, "interval", result)
    if isinstance(interval, stats.Interval):
        assert interval.degenerate == (interval.low is not None and interval.low == interval.high)
        assert (interval.low is None) == (interval.high is None)


@pytest.mark.parametrize("call", OF_ONE_SAMPLE.values(), ids=OF_ONE_SAMPLE)
def test_nothing_is_refused(call: Call) -> None:
    with pytest.raises(ValueError, match=r"no values|no seed"):
        call([])


@pytest.mark.parametrize("call", OF_ONE_SAMPLE.values(), ids=OF_ONE_SAMPLE)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_missing_is_refused(call: Call, bad: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        call([1.0, bad, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("scale", [2.0**990, 2.0**-990])
def test_scale_moves_the_interval_and_nothing_else(scale: float) -> None:
    values = [0.5, 0.75, 1.0, 3.0, 0.25, 0.5, 2.0]
    plain = stats.paired_difference(values, [1.0] * 7)
    scaled = stats.paired_difference(np.array(values) * scale, [scale] * 7)
    assert (scaled.t, scaled.p, scaled.effect) == (plain.t, plain.p, plain.effect)
    assert plain.interval.low is not None
    assert scaled.interval.low == plain.interval.low * scale
    assert stats.e_process(np.array(values) * scale) == stats.e_process(values)
    assert stats.mean_interval(np.array(values) * scale).mid == 8 / 7 * scale


def test_a_tiny_spread_is_a_spread() -> None:
    # squares of 1e-300 are 0 in floats; t(2, .975) * 1e-300 / sqrt(3) = 2.484138e-300
    half = stats.mean_interval([1e-300, 2e-300, 3e-300]).half_width
    assert half == pytest.approx(2.484138e-300, rel=1e-6)


@pytest.mark.parametrize(
    "values", [[True, False, True, True, True], [1, 0, 1, 1, 1], (1.0, 0.0, 1.0, 1.0, 1.0)]
)
def test_bools_ints_and_tuples_are_numbers(values: object) -> None:
    expected = np.array([1.0, 0.0, 1.0, 1.0, 1.0])
    for name in ("mean_interval", "iqm_interval", "sign_flip_test", "e_process"):
        function = getattr(stats, name)
        assert function(values) == function(expected)


def test_differences_beyond_floats_are_refused() -> None:
    with pytest.raises(ValueError, match="larger than a float can hold"):
        stats.paired_difference([1.7e308, 1.0], [-1.7e308, 0.0])
    with pytest.raises(ValueError, match="larger than a float can hold"):
        stats.contrast([[1.7e308, -1.7e308]] * 2, [1, -1])


def test_inputs_are_left_alone() -> None:
    for call in OF_ONE_SAMPLE.values():
        values = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
        values.setflags(write=False)
        call(values)  # type: ignore[arg-type]  # an array on purpose


def test_results_are_frozen() -> None:
    with pytest.raises(AttributeError):
        stats.mean_interval([1, 2]).mid = 0  # type: ignore[misc]  # wrong on purpose


def test_the_import_leaves_scipy_stats_out() -> None:
    """It would cost more than all else together."""
    code = "import sys, rlbench.stats; sys.exit('scipy.stats' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
