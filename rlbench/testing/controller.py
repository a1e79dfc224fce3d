"""Rules of KL controllers."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from rlbench.testing.rule import Fault, Rule, Subject, check_options

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
        told = f"update({kl}, samples={samples}) raised {type(error).__name__}: {error}"
        raise Fault(told) from error


def _coef(controller: Any) -> float:
    coef = getattr(controller, "coef", None)
    if isinstance(coef, bool) or not isinstance(coef, int | float):
        raise Fault(f"coef is {coef!r}, not a number")
    return float(coef)


def _stops(stop: Any, kl: float) -> bool:
    try:
        answer = stop(kl)
    except Exception as error:
        raise Fault(f"stop({kl:g}) raised {type(error).__name__}: {error}") from error
    if not isinstance(answer, bool):
        raise Fault(f"stop({kl:g}) is {answer!r}, neither True nor False")
    return answer


def _check_range(coef: float, when: str) -> None:
    if not (math.isfinite(coef) and coef >= 0):
        raise Fault(f"coef is {coef} {when}")


def options(subject: Subject) -> None:
    """The signature can be read by the host."""
    check_options(subject, data=0)


def start(subject: Subject) -> None:
    """A controller works with its defaults."""
    controller = subject()
    _check_range(_coef(controller), "at the start")
    statistic = getattr(controller, "statistic", "sequence")
    if statistic not in ("sequence", "token"):
        raise Fault(f"statistic is {statistic!r} instead of 'sequence' or 'token'")


def not_negative(subject: Subject) -> None:
    """A negative coefficient would reward distance."""
    for kl in (0.0, -1.0, -1e9):
        for samples in (1, 256, 10**9):
            coef = _after(subject, [kl] * 200, samples)
            _check_range(coef, f"after 200 updates with KL {kl:g} of {samples} samples")


def bounded(subject: Subject) -> None:
    """A KL that can't be brought down must not end in inf."""
    controller = subject()
    seen = []
    for _ in range(2):
        for _ in range(5000):
            _update(controller, 1e6, 4096)
        seen.append(_coef(controller))
        _check_range(seen[-1], "after 5000 updates with a KL of 1e6")
    if seen[0] != seen[1]:
        raise Fault(f"coef still moves after 5000 updates with a KL of 1e6: {seen[0]} to {seen[1]}")


def within_bounds(subject: Subject) -> None:
    """A controller that names its own bounds keeps them."""
    low = getattr(subject(), "min_coef", 0.0)
    high = getattr(subject(), "max_coef", math.inf)
    for kl in (*LEVELS, math.nan, math.inf, -math.inf):
        for history in ([kl], [kl] * 300, [12.0] * 50 + [kl], [0.0] * 50 + [kl]):
            coef = _after(subject, history, 4096)
            if not low <= coef <= high:
                told = f"coef is {coef} after {len(history)} updates, the last with a KL of {kl:g}"
                raise Fault(f"{told}; its bounds are {low} and {high}")


def not_finite(subject: Subject) -> None:
    """One broken measurement must not break the rest of the run."""
    for kl in (math.nan, math.inf, -math.inf):
        for history in ([kl], [1.0, kl, 1.0], [kl, 1e-3, 12.0]):
            _check_range(_after(subject, history), f"after measurements {history}")


def nan_ignored(subject: Subject) -> None:
    """Nothing was measured, so nothing is known."""
    for kl in (1e-3, 1.0, 12.0):
        if _after(subject, [kl, math.nan]) != _after(subject, [kl]):
            raise Fault(f"a NaN measurement after one of {kl:g} moved coef")


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


def monotone(subject: Subject) -> None:
    """More KL never makes KL cheaper."""
    for history in ([], [0.1], [12.0, 12.0], [1e-3] * 5):
        coefs = [_after(subject, [*history, kl]) for kl in LEVELS]
        for kl, low, high in zip(LEVELS[1:], coefs, coefs[1:], strict=False):
            if high < low:
                raise Fault(f"after {history}, a KL of {kl:g} gives {high:g}, a lower one {low:g}")


def determinism(subject: Subject) -> None:
    """The same measurements give the same coefficient."""
    history = list(LEVELS) + list(reversed(LEVELS))
    if _after(subject, history) != _after(subject, history):
        raise Fault("two controllers with the same measurements differ")


RULES = tuple(
    Rule(name=test.__name__, says=says, mend=mend, test=test)
    for test, says, mend in (
        (
            options,
            "only keyword-only options with defaults",
            "Write __init__(self, *, coef: float = 0.1)",
        ),
        (start, "it starts with a coefficient of at least 0", "Set self.coef in __init__"),
        (not_negative, "the coefficient is never negative", "Keep it above a min_coef"),
        (bounded, "the coefficient is bounded", "Keep it below a max_coef"),
        (
            not_finite,
            "a measurement that is not finite does no harm",
            "Keep NaN and inf out of coef and out of averages",
        ),
        (
            nan_ignored,
            "a NaN leaves the coefficient as it is",
            "Return from update when math.isnan(kl)",
        ),
        (
            within_bounds,
            "the coefficient stays within min_coef and max_coef, where it has them",
            "Clamp coef at the end of update",
        ),
        (
            stopping,
            "stop, where it has one, says True above a limit above 0",
            "Write return kl_old > self.limit",
        ),
        (monotone, "a higher KL never lowers the coefficient", "Check the sign of the error"),
        (determinism, "the same measurements give the same coefficient", "Draw nothing at random"),
    )
)
