"""The conformance kit: each rule of a kind as one small check with a message that helps."""

from __future__ import annotations

import unittest
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlbench.errors import UsageError
from rlbench.plugin.loading import load
from rlbench.plugin.registry import Component
from rlbench.testing import controller, estimator, loss
from rlbench.testing.rule import Fault, Rule, Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

RULES = {"estimator": estimator.RULES, "loss": loss.RULES, "kl": controller.RULES}


@dataclass(frozen=True)
class Check:
    """One rule applied to one component. Call it; ``str()`` makes a test id."""

    rule: Rule
    subject: Subject
    earlier: tuple[Rule, ...] = ()  # those that may explain what it finds

    def __str__(self) -> str:
        return f"{self.subject.kind} {self.subject.name}: {self.rule.says}"

    def __call__(self) -> None:
        """Raise AssertionError if the component breaks the rule.

        Raises:
            AssertionError: Naming the component, its owner, the rule, the fault and what to do.
            unittest.SkipTest: The component declares that it breaks this rule, with its reason; or
                an earlier rule fails for the same cause, and tells what to do.
        """
        reason = self.subject.exceptions.get(self.rule.name)
        if reason is not None:
            raise unittest.SkipTest(f"{self.rule.name}: {reason}")
        try:
            self.rule.test(self.subject)
        except Fault as fault:
            for rule in self.earlier:
                if _explains(rule, self.subject, fault):
                    told = f"{self.rule.name}: it can't be judged before {rule.name!r} holds"
                    raise unittest.SkipTest(f"{told}; see there") from None
            raise AssertionError(self._message(fault)) from fault.__cause__

    def _message(self, fault: Fault) -> str:
        subject, mend = self.subject, self.rule.mend if fault.mend is None else fault.mend
        told = (
            f"{subject.kind} {subject.name} ({subject.owner}) breaks {self.rule.name!r} "
            f"({self.rule.says}): {fault}."
        )
        return f"{told} {mend}." if mend else told


def _explains(rule: Rule, subject: Subject, fault: Fault) -> bool:
    """Whether an earlier rule finds the sort of fault that it explains, and this is one too."""
    # one that may be broken on purpose tells nothing of the others
    if rule.explains is None or rule.name in subject.exceptions:
        return False
    if isinstance(fault, rule.explains):
        try:
            rule.test(subject)
        except rule.explains:
            return True
        except Fault:
            return False
    return False


def checks(
    kind: str,
    component: str | Component | Callable[..., Any],
    *,
    plugins: Sequence[str | Path | ModuleType] = (),
    options: Mapping[str, Any] | None = None,
    needs: Sequence[str] = (),
    group_relative: bool = False,
    exceptions: Mapping[str, str] | None = None,
) -> list[Check]:
    """List the rules of a kind, each bound to one component.

    Args:
        kind: "estimator", "loss" or "kl".
        component: A registered name, a component of the registry, or a function or class that is
            not registered (yet).
        plugins: Modules or files that hold a name which is not installed.
        options: Options to test it with; the rest are its defaults.
        needs: As at registration, for a function or class that is not registered.
        group_relative: The same.
        exceptions: The same.

    Returns:
        Checks that raise AssertionError when called.

    Raises:
        UsageError: Unknown kind, name or rule.
    """
    if kind not in RULES:
        raise UsageError.unknown("kind with conformance rules", kind, RULES)
    if isinstance(component, str):
        component = _find(kind, component, plugins)
    chosen = dict(options or {})
    if isinstance(component, Component):
        subject = Subject(
            kind=kind,
            name=_label(component.name, chosen),
            owner=str(component.owner),
            target=component.load(),
            needs=tuple(component.needs),
            group_relative=component.group_relative,
            exceptions=dict(component.exceptions),
            options=chosen,
        )
    else:
        subject = Subject(
            kind=kind,
            name=_label(getattr(component, "__name__", repr(component)), chosen),
            owner=f"module {component.__module__}",
            target=component,
            needs=tuple(needs),
            group_relative=group_relative,
            exceptions=dict(exceptions or {}),
            options=chosen,
        )
    rules = RULES[kind]
    known = [rule.name for rule in rules]
    for name in subject.exceptions:
        if name not in known:
            raise UsageError.unknown(
                f"conformance rule in exceptions of {subject.name}", name, known
            )
    return [Check(rule, subject, rules[:i]) for i, rule in enumerate(rules)]


def _find(kind: str, name: str, plugins: Sequence[str | Path | ModuleType]) -> Component:
    """Look a name up; one that is in no installed plugin may lie in a file that was not given."""
    try:
        return load(plugins).find(kind, name)  # type: ignore[arg-type]  # the caller checked it
    except UsageError as error:
        if plugins:
            raise
        raise UsageError(f"{error}; for a plugin in a file, give plugins=[path]") from error


def _label(name: str, options: Mapping[str, Any]) -> str:
    return ":".join([name, *filter(None, [",".join(f"{k}={v}" for k, v in options.items())])])
