import math
import subprocess
import sys

import pytest

from rlbench.builtin.kl import Adaptive, Fixed, NoPenalty, Proportional
from rlbench.errors import UsageError


def after(controller, *measured, samples=64):
    for kl in measured:
        controller.update(kl, samples=samples)
    return controller.coef


@pytest.mark.parametrize(
    ("kl", "samples", "expected"),
    [
        (12.0, 256, 0.201024),  # 0.2 (1 + 0.2 * 256 / 10000)
        (3.0, 256, 0.198976),
        (12.0, 64, 0.200256),
        (3.0, 64, 0.199744),
        (6.3, 64, 0.200064),  # 0.2 (1 + 0.05 * 64 / 10000)
        (6.0, 64, 0.2),
    ],
)
def test_proportional_by_hand(kl, samples, expected):
    controller = Proportional(coef=0.2, target=6.0)
    assert after(controller, kl, samples=samples) == pytest.approx(expected, rel=1e-12)


def test_proportional_stays_positive_whatever_the_sample_count():
    assert after(Proportional(), 0.0, samples=10**9) == 1e-4
    assert after(Proportional(), 1e9, samples=10**9) == 10.0


@pytest.mark.parametrize(
    ("kl", "expected"),
    [(9.1, 0.2), (9.0, 0.1), (6.0, 0.1), (4.0, 0.1), (3.9, 0.05), (0.0, 0.05), (-1.0, 0.05)],
)
def test_adaptive_doubles_and_halves_outside_its_band(kl, expected):
    # target 6: the band is 4 to 9
    assert after(Adaptive(coef=0.1, target=6.0), kl) == expected


def test_adaptive_is_bounded():
    assert after(Adaptive(), *[1e9] * 50) == 10.0
    assert after(Adaptive(), *[0.0] * 50) == 0.01


@pytest.mark.parametrize("make", [NoPenalty, Fixed, Adaptive, Proportional])
def test_nan_leaves_the_coefficient(make):
    controller = make()
    before = controller.coef
    assert after(controller, math.nan) == before


@pytest.mark.parametrize("make", [Adaptive, Proportional])
@pytest.mark.parametrize("kl", [math.inf, -math.inf])
def test_an_infinite_kl_does_no_harm(make, kl):
    assert math.isfinite(after(make(), *[kl] * 100))


def test_fixed_and_none_never_move():
    assert after(Fixed(coef=0.3), 100.0, 0.0) == 0.3
    assert after(NoPenalty(), 100.0) == 0.0


@pytest.mark.parametrize("make", [Adaptive, Proportional])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": 0}, "target=0"),
        ({"target": -1}, "target=-1"),
        ({"target": math.nan}, "target=nan"),
        ({"coef": 0}, "starts at 0 never moves"),
        ({"coef": -0.1}, "coef=-0.1"),
        ({"coef": math.nan}, "coef=nan"),
        ({"min_coef": 0}, "min_coef=0"),
        ({"coef": 20.0}, "max_coef=10.0"),
        ({"max_coef": math.inf}, "max_coef=inf"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(make, options, message):
    with pytest.raises(UsageError, match=message):
        make(**options)


@pytest.mark.parametrize("options", [{"horizon": 0}, {"clip": 0.0}])
def test_proportional_refuses_what_would_stop_it(options):
    with pytest.raises(UsageError, match=next(iter(options))):
        Proportional(**options)


@pytest.mark.parametrize("coef", [-1.0, math.nan, math.inf])
def test_fixed_refuses_what_is_no_cost(coef):
    with pytest.raises(UsageError, match="coef"):
        Fixed(coef=coef)


def test_statistic_is_what_was_asked_for():
    assert Adaptive().statistic == Proportional().statistic == "sequence"
    assert Adaptive(statistic="token").statistic == "token"


def test_controllers_import_no_torch():
    code = "import sys, rlbench.builtin.kl; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
