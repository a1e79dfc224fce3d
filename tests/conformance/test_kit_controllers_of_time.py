"""Controllers that count updates: what is sound passes, and the advice names the way out."""

import unittest

import pytest

from rlbench.testing import checks


def judge(component, **more):
    """What fails and what is declared: two dictionaries from a rule's name to its message."""
    failed, declared = {}, {}
    for check in checks("kl", component, **more):
        try:
            check()
        except AssertionError as error:
            failed[check.rule.name] = str(error)
        except unittest.SkipTest as skip:
            declared[check.rule.name] = str(skip)
    return failed, declared


class Decays:
    """Bounded by where it starts, though it moves for ever."""

    coef = 0.1

    def update(self, kl, *, samples):
        self.coef *= 0.99


class Grows:
    """Ends at 1, after 20,000 updates."""

    coef = 0.0
    seen = 0

    def update(self, kl, *, samples):
        self.seen += 1
        self.coef = min(self.seen / 20_000, 1.0)


class NeverEnds:
    coef = 0.1

    def update(self, kl, *, samples):
        self.coef += 0.01 if kl > 1 else 0


def test_a_coefficient_that_decays_is_bounded():
    failed, _ = judge(Decays)
    assert failed.keys() == {"nan_ignored"}
    assert failed["nan_ignored"].endswith(
        "a NaN measurement after one of 0.001 moved coef. Return from update when math.isnan(kl); "
        "if it counts updates, whatever was measured in them, register with "
        "exceptions={'nan_ignored': 'why'}."
    )


def test_a_controller_that_counts_updates_can_say_so():
    failed, declared = judge(Decays, exceptions={"nan_ignored": "it counts updates"})
    assert failed == {}
    assert declared == {"nan_ignored": "nan_ignored: it counts updates"}


@pytest.mark.parametrize(
    ("component", "growth"),
    [
        (Grows, "0.25 to 0.5"),  # 5,000 and 10,000 of 20,000
        (NeverEnds, "50.1 to 100.1"),  # 0.1 and 0.01 an update
    ],
)
def test_a_coefficient_that_still_grows_is_found(component, growth):
    failed, _ = judge(component)
    assert failed["bounded"].endswith(
        f"coef still grows after 5000 updates with a KL of 1e6: {growth}. Keep it below a "
        "max_coef; if it grows with time, to an end that is known beforehand, register with "
        "exceptions={'bounded': 'why'}."
    )


class Poisoned:
    """NaN passes through min and max."""

    coef = 0.1
    min_coef, max_coef = 0.0, 10.0

    def update(self, kl, *, samples):
        self.coef = min(max(self.coef + 0.01 * (kl - 1), 0.0), 10.0)


def test_a_coefficient_of_nan_is_not_advised_to_clamp():
    failed, _ = judge(Poisoned)
    assert failed.keys() == {"not_finite", "nan_ignored"}
    assert "Keep NaN and inf out of coef" in failed["not_finite"]
