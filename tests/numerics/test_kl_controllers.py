import math
import subprocess
import sys

import pytest

from rlbench.builtin.kl.feedback import PID, Adaptive, Proportional
from rlbench.builtin.kl.given import Fixed, NoPenalty, Schedule
from rlbench.builtin.kl.stopping import TargetStop
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


@pytest.mark.parametrize("make", [NoPenalty, Fixed, Adaptive, Proportional, PID])
def test_nan_leaves_the_coefficient(make):
    controller = make()
    before = controller.coef
    assert after(controller, math.nan) == before


@pytest.mark.parametrize("make", [Adaptive, Proportional, PID])
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


@pytest.mark.parametrize("module", ["given", "feedback", "stopping"])
def test_controllers_import_no_torch(module):
    code = f"import sys, rlbench.builtin.kl.{module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def course(controller, updates):
    """The coefficients of so many updates."""
    found = []
    for _ in range(updates):
        found.append(controller.coef)
        controller.update(0.3, samples=64)
    return found


def test_a_linear_schedule_by_hand():
    # from 0.4 down by (0.4 - 0.1) / 3 = 0.1 in each of 3 updates, then constant
    schedule = Schedule(start=0.4, end=0.1, updates=3)
    assert course(schedule, 6) == pytest.approx([0.4, 0.3, 0.2, 0.1, 0.1, 0.1])


def test_a_cosine_schedule_by_hand():
    # halfway: 0.1 + 0.3 / 2; at a quarter: 0.1 + 0.3 (1 + cos(pi / 4)) / 2 = 0.356066
    schedule = Schedule(start=0.4, end=0.1, updates=4, shape="cosine")
    expected = [0.4, 0.35606602, 0.25, 0.14393398, 0.1, 0.1]
    assert course(schedule, 6) == pytest.approx(expected)


def test_the_warm_up_comes_first_and_does_not_start_at_zero():
    # 0.3 * 1/3 and 0.3 * 2/3 before the start, which comes in update 3
    schedule = Schedule(start=0.3, end=0.6, updates=1, warmup=2)
    assert course(schedule, 5) == pytest.approx([0.1, 0.2, 0.3, 0.6, 0.6])


@pytest.mark.parametrize("shape", ["linear", "cosine"])
@pytest.mark.parametrize(("start", "end"), [(0.1, 0.7), (0.7, 0.1), (0.3, 0.3), (0.0, 0.1)])
def test_a_schedule_reaches_both_ends_exactly_and_stays_between(shape, start, end):
    found = course(Schedule(start=start, end=end, updates=37, shape=shape), 45)
    assert found[0] == start
    assert set(found[37:]) == {end}
    assert all(min(start, end) <= coef <= max(start, end) for coef in found)
    assert sorted(found, reverse=end < start) == found


def test_a_schedule_goes_on_after_a_broken_measurement():
    schedule = Schedule(start=0.4, end=0.2, updates=2)
    assert after(schedule, math.nan) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": -0.1}, "start=-0.1"),
        ({"start": math.nan}, "start=nan"),
        ({"end": math.inf}, "end=inf"),
        ({"updates": 0}, "updates=0"),
        ({"warmup": -1}, "warmup=-1"),
    ],
)
def test_a_schedule_refuses_what_is_no_course(options, message):
    with pytest.raises(UsageError, match=message):
        Schedule(**options)


def test_pid_by_hand():
    pid = PID(coef=0.2, target=1.0, kp=0.5, ki=0.1, kd=0.25, ema_p=0.0, ema_d=0.0, delay=1)
    # e = 2, I = 0.2 + 0.1 * 2 = 0.4, rise 3 - 0: 0.5 * 2 + 0.4 + 0.25 * 3 = 2.15
    assert after(pid, 3.0) == pytest.approx(2.15)
    # e = -0.5, I = 0.4 - 0.05 = 0.35, a fall counts as 0: -0.25 + 0.35 = 0.1
    assert after(pid, 0.5) == pytest.approx(0.1)
    # e = -1, I = 0.25: -0.5 + 0.25 < 0
    assert after(pid, 0.0) == 0.0
    # e = 0, I = 0.25, rise 1 - 0: 0.25 + 0.25
    assert after(pid, 1.0) == pytest.approx(0.5)


def test_pid_averages_by_hand():
    pid = PID(target=1.0, kp=1.0, ki=0.0, kd=1.0, ema_p=0.5, ema_d=0.75, delay=2)
    # P = 0.5 * 2 = 1, D = 0.25 * 3 = 0.75, D' = 0: 1.75
    assert after(pid, 3.0) == pytest.approx(1.75)
    # P = 0.5 + 0.5 * 1 = 1, D = 0.5625 + 0.5 = 1.0625, D' = 0 still: 2.0625
    assert after(pid, 2.0) == pytest.approx(2.0625)
    # P = 0.5 + 0 = 0.5, D = 0.796875 + 0.25 = 1.046875, D' = 0.75: 0.796875
    assert after(pid, 1.0) == pytest.approx(0.796875)


def test_the_integral_alone_is_the_usual_lagrange_multiplier():
    pid = PID(target=1.0, kp=0.0, ki=0.5, kd=0.0)
    # I: 0 + 0.5 * 1, + 0.5 * 0.5, then - 0.5 * 1 leaves 0.25, and never below 0
    assert after(pid, 2.0) == 0.5
    assert after(pid, 1.5) == 0.75
    assert after(pid, 0.0) == 0.25
    assert after(pid, 0.0) == 0.0
    assert after(pid, 2.0) == 0.5


def test_a_long_excess_does_not_wind_the_integral_up():
    pid = PID(target=1.0, kp=0.0, ki=1.0, kd=0.0, max_coef=2.0)
    assert after(pid, *[1e6] * 1000) == 2.0
    assert after(pid, 0.0) == 1.0  # one error of -1 from the bound, not from a thousand million


def test_pid_stays_within_its_bounds_whatever_it_sees():
    pid = PID(kp=1.0, ki=1.0, kd=1.0, max_coef=3.0)
    for kl in [1e300, -1e300, math.nan, math.inf, -math.inf, 0.0, 5.0, -5.0] * 20:
        assert 0.0 <= after(pid, kl) <= 3.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": 0}, "target=0"),
        ({"target": math.nan}, "target=nan"),
        ({"kp": -1.0}, "kp=-1.0"),
        ({"ki": math.nan}, "ki=nan"),
        ({"kd": math.inf}, "kd=inf"),
        ({"kp": 0.0, "ki": 0.0, "kd": 0.0}, "nothing is steered"),
        ({"ema_p": 1.0}, "ema_p=1.0"),
        ({"ema_d": -0.1}, "ema_d=-0.1"),
        ({"delay": 0}, "delay=0"),
        ({"max_coef": math.inf}, "max_coef=inf"),
        ({"max_coef": 0.0}, "max_coef=0.0"),
        ({"coef": 11.0}, "coef=11.0"),
        ({"coef": -1.0}, "coef=-1.0"),
        ({"coef": math.nan}, "coef=nan"),
    ],
)
def test_pid_refuses_what_could_not_steer(options, message):
    with pytest.raises(UsageError, match=message):
        PID(**options)


@pytest.mark.parametrize(
    ("kl", "stops"),
    [(0.0, False), (0.03, False), (0.0301, True), (math.inf, True), (-1.0, False)],
)
def test_stop_above_the_factor_times_the_target(kl, stops):
    # 1.5 * 0.02 = 0.03
    assert TargetStop(target=0.02).stop(kl) is stops


def test_a_stop_costs_nothing_and_a_nan_stops_nothing():
    stop = TargetStop()
    assert after(stop, 1e9, math.nan) == 0.0
    assert stop.stop(math.nan) is False
    assert TargetStop(factor=1.0, target=0.1).stop(0.11)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": 0.0}, "target=0.0"),
        ({"target": math.inf}, "target=inf"),
        ({"factor": 0.0}, "factor=0.0"),
        ({"factor": math.nan}, "factor=nan"),
    ],
)
def test_a_stop_refuses_what_would_stop_everything_or_nothing(options, message):
    with pytest.raises(UsageError, match=message):
        TargetStop(**options)
