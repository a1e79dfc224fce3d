"""Rules of KL controllers."""

from __future__ import annotations

import inspect
import math
from itertools import pairwise
from typing import Any

from rlbench.testing.rule import (
    Differs,
    Fault,
    Subject,
    Unanswered,
    check_options,
    rule,
    when,
)

LEVELS = (0.0, 1e-3, 0.05, 0.1, 0.3, 0.6, 1.0, 3.0, 6.0, 12.0, 1e3, 1e9)
"""KL measurements, in nats, from none to absurd."""


def _after(subject: Subject, measured: list[float], samples: int = 256) -> float:
    """Coefficient of a fresh controller after these measurements."""
    controller = subject()
    for kl in measured:
        _update(controller, kl, samples)
    return _coef(controller)


def _update(controller: Any, kl: float, samples: int = 256) -> None:
    try:
        controller.update(kl, samples=samples)
    except Exception as error:
        told = f"update({kl:g}, samples={samples}) raised {type(error).__name__}: {error}"
        raise Unanswered(told, mend="") from error


def _coef(controller: Any) -> float:
    coef = getattr(controller, "coef", None)
    if isinstance(coef, bool) or not isinstance(coef, int | float):
        raise Unanswered(f"coef is {coef!r}, not a number", "Set self.coef to an int or a float")
    return float(coef)


def _stops(stop: Any, kl: float) -> bool:
    try:
        answer = stop(kl)
    except Exception as error:
        raise Fault(f"stop({kl:g}) raised {type(error).__name__}: {error}") from error
    if not isinstance(answer, bool):
        raise Fault(f"stop({kl:g}) is {answer!r}, neither True nor False")
    return answer


def _check_range(coef: float) -> None:
    if not (math.isfinite(coef) and coef >= 0):
        raise Fault(f"coef is {coef}")


@rule(
    "only keyword-only options with defaults",
    "Write __init__(self, *, coef: float = 0.1)",
    explains=Unanswered,
)
def options(subject: Subject) -> None:
    """The signature can be read by the host."""
    check_options(subject, data=0)


@rule(
    "it starts with a coefficient of at least 0", "Set self.coef in __init__", explains=Unanswered
)
def start(subject: Subject) -> None:
    """A controller works with its defaults."""
    controller = subject()
    with when("at the start"):
        _check_range(_coef(controller))
    statistic = getattr(controller, "statistic", "sequence")
    if statistic not in ("sequence", "token"):
        raise Fault(f"statistic is {statistic!r} instead of 'sequence' or 'token'")


@rule(
    "update takes a KL and the number of samples",
    "Write update(self, kl, *, samples) for any KL, 0 and less among them, and leave coef a float",
    explains=Unanswered,
)
def update(subject: Subject) -> None:
    """The host shows one KL a rollout batch; an estimate of it may be negative."""
    method = getattr(subject(), "update", None)
    if method is None:
        raise Unanswered("it has no update")
    signature = inspect.signature(method)
    try:
        signature.bind(1.0, samples=256)
    except TypeError as error:
        told = f"update{signature} can't be called as update(kl, samples=n): {error}"
        raise Unanswered(told) from error
    for kl in (-1.0, *LEVELS):
        with when("on a fresh controller"):
            _after(subject, [kl])


@rule("the same measurements give the same coefficient", "Draw nothing at random", explains=Differs)
def determinism(subject: Subject) -> None:
    """The same measurements give the same coefficient."""
    history = list(LEVELS) + list(reversed(LEVELS))
    if _after(subject, history) != _after(subject, history):
        raise Differs("two controllers with the same measurements differ")


@rule("the coefficient is never negative", "Keep it above a min_coef")
def not_negative(subject: Subject) -> None:
    """A negative coefficient would reward distance."""
    for kl in (0.0, -1.0, -1e9):
        for samples in (1, 256, 10**9):
            coef = _after(subject, [kl] * 200, samples)
            with when(f"after 200 updates with KL {kl:g} of {samples} samples"):
                _check_range(coef)


@rule(
    "the coefficient is bounded",
    "Keep it below a max_coef; if it grows with time, to an end that is known beforehand, register "
    "with exceptions={'bounded': 'why'}",
)
def bounded(subject: Subject) -> None:
    """A KL that can't be brought down must not end in inf."""
    controller = subject()
    seen = []
    for _ in range(2):
        for _ in range(5000):
            _update(controller, 1e6, 4096)
        seen.append(_coef(controller))
        with when(f"after {5000 * len(seen)} updates with a KL of 1e6"):
            _check_range(seen[-1])
    if seen[1] > seen[0]:
        told = f"coef still grows after 5000 updates with a KL of 1e6: {seen[0]:g} to {seen[1]:g}"
        raise Differs(told)


@rule(
    "the coefficient stays within min_coef and max_coef, where it has them",
    "Clamp coef at the end of update",
)
def within_bounds(subject: Subject) -> None:
    """A controller that names its own bounds keeps them."""
    low = getattr(subject(), "min_coef", 0.0)
    high = getattr(subject(), "max_coef", math.inf)
    for kl in (*LEVELS, math.nan, math.inf, -math.inf):
        for history in ([kl], [kl] * 300, [12.0] * 50 + [kl], [0.0] * 50 + [kl]):
            coef = _after(subject, history, 4096)
            # one that is not finite is found by name elsewhere, and no clamp mends it
            if math.isfinite(coef) and not low <= coef <= high:
                told = f"coef is {coef} after {len(history)} updates, the last with a KL of {kl:g}"
                raise Fault(f"{told}; its bounds are {low} and {high}")


@rule(
    "a measurement that is not finite does no harm",
    "Keep NaN and inf out of coef and out of averages",
)
def not_finite(subject: Subject) -> None:
    """One broken measurement must not break the rest of the run."""
    for kl in (math.nan, math.inf, -math.inf):
        for history in ([kl], [1.0, kl, 1.0], [kl, 1e-3, 12.0]):
            with when(f"after measurements {history}"):
                _check_range(_after(subject, history))


@rule(
    "a NaN leaves the coefficient as it is",
    "Return from update when math.isnan(kl); if it counts updates, whatever was measured in them, "
    "register with exceptions={'nan_ignored': 'why'}",
)
def nan_ignored(subject: Subject) -> None:
    """Nothing was measured, so nothing is known."""
    for kl in (1e-3, 1.0, 12.0):
        if _after(subject, [kl, math.nan]) != _after(subject, [kl]):
            raise Differs(f"a NaN measurement after one of {kl:g} moved coef")


@rule("stop, where it has one, says True above a limit above 0", "Write return kl_old > self.limit")
def stopping(subject: Subject) -> None:
    """A larger move never stops later, and a policy that has not moved is never stopped."""
    stop = getattr(subject(), "stop", None)
    if stop is None:
        return
    answers = [(kl, _stops(stop, kl)) for kl in (*LEVELS, math.inf)]
    _stops(stop, math.nan)
    if answers[0][1]:
        raise Fault("it stops at a KL of 0, before any step")
    for (kl, lower), (_, higher) in pairwise(answers):
        if lower and not higher:
            raise Fault(f"it stops at a KL of {kl:g} and not at a larger one")


@rule("a higher KL never lowers the coefficient", "Check the sign of the error")
def monotone(subject: Subject) -> None:
    """More KL never makes KL cheaper."""
    for history in ([], [0.1], [12.0, 12.0], [1e-3] * 5):
        coefs = [_after(subject, [*history, kl]) for kl in LEVELS]
        for kl, low, high in zip(LEVELS[1:], coefs, coefs[1:], strict=False):
            if high < low:
                raise Differs(
                    f"after {history}, a KL of {kl:g} gives {high:g}, a lower one {low:g}"
                )


RULES = (
    options,
    start,
    update,
    determinism,
    not_negative,
    bounded,
    not_finite,
    nan_ignored,
    within_bounds,
    stopping,
    monotone,
)
