from dataclasses import replace

import pytest

from rlbench.plugin.loading import load
from rlbench.testing import checks
from rlbench.testing.conformance import RULES

REGISTRY = load()
COMPONENTS = [c for kind in RULES for c in REGISTRY.components(kind)]
# What the defaults leave switched off.
VARIANTS = [
    ("estimator", "gae", {"whiten": True, "truncation": "bootstrap"}),
    ("estimator", "gae", {"gamma": 0.9, "lam": 1.0}),
    ("estimator", "group", {"std": False}),
    ("estimator", "group", {"ddof": 0, "eps": 0.0}),
    ("estimator", "group_gae", {"truncation": "bootstrap", "ddof": 0, "eps": 0.0}),
    ("loss", "clip", {"eps_high": 0.28, "dual": 3.0}),
    ("kl", "adaptive", {"statistic": "token", "target": 0.1}),
    ("kl", "proportional", {"coef": 0.01, "target": 6.0, "horizon": 1}),
    ("kl", "schedule", {"start": 0.0, "end": 0.2, "warmup": 5, "shape": "cosine"}),
    ("kl", "pid", {"coef": 0.1, "kp": 1.0, "ki": 1.0, "kd": 1.0, "ema_p": 0.0, "delay": 1}),
    ("kl", "target_stop", {"factor": 1.0, "statistic": "sequence"}),
]


@pytest.mark.parametrize(
    "check", [check for c in COMPONENTS for check in checks(c.kind, c)], ids=str
)
def test_component_conforms(check):
    check()


@pytest.mark.parametrize(
    "check",
    [check for kind, name, options in VARIANTS for check in checks(kind, name, options=options)],
    ids=str,
)
def test_component_conforms_with_other_options(check):
    check()


@pytest.mark.parametrize(
    ("component", "rule"),
    [
        pytest.param(c, rule, id=f"{c.kind} {c.name}: {rule}")
        for c in COMPONENTS
        for rule in c.exceptions
    ],
)
def test_no_declared_exception_is_idle(component, rule):
    (check,) = (
        check
        for check in checks(component.kind, replace(component, exceptions={}))
        if check.rule.name == rule
    )
    with pytest.raises(AssertionError, match=f"{component.name} .* breaks '{rule}'"):
        check()


def test_the_built_ins_are_among_them():
    names = {(c.kind, c.name) for c in COMPONENTS}
    assert {("estimator", "gae"), ("loss", "clip"), ("kl", "adaptive")} <= names
