"""What a rule is, what it is applied to, and the comparisons that rules share."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torch import Tensor


class Fault(Exception):  # noqa: N818 - a finding that a check turns into a message, not an error
    """What a rule found; `Check` adds whose it is and how to mend it.

    Args:
        found: What was found, as the end of a sentence.
        mend: What to do about this finding; left out, the rule's own advice holds, and an empty one
            is none at all.
    """

    def __init__(self, found: str, mend: str | None = None) -> None:
        super().__init__(found)
        self.mend = mend


class Unanswered(Fault):
    """There is no answer to judge: it raised, or what came back has not the right form."""


class Differs(Fault):
    """Two answers that should be the same are not."""


@contextmanager
def when(circumstance: str) -> Iterator[None]:
    """Tell under which input a fault was found; the rule's own advice fits what it varies."""
    try:
        yield
    except Fault as fault:
        raise type(fault)(f"{circumstance}, {fault}") from fault.__cause__


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A component under test."""

    kind: str
    name: str
    owner: str
    target: Callable[..., Any]
    needs: tuple[str, ...] = ()
    group_relative: bool = False
    exceptions: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, *data: Any) -> Any:
        """Call the component with its options; whatever it raises is a fault."""
        try:
            return self.target(*data, **self.options)
        except Exception as error:
            raise Unanswered(f"it raised {type(error).__name__}: {error}", mend="") from error


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule of a kind: its name for ``exceptions``, what it says, how to mend a fault.

    A rule that ``explains`` faults of a sort speaks for later ones too: while it finds such a fault
    itself, theirs of that sort are its consequences, and their advice would mislead.
    """

    name: str
    says: str
    mend: str
    test: Callable[[Subject], None]
    explains: type[Fault] | None = None


def rule(
    says: str, mend: str, *, explains: type[Fault] | None = None
) -> Callable[[Callable[[Subject], None]], Rule]:
    """Make a test a rule with its name. See `Rule` for the arguments."""

    def named(test: Callable[[Subject], None]) -> Rule:
        return Rule(name=test.__name__, says=says, mend=mend, test=test, explains=explains)

    return named


def check_options(subject: Subject, data: int) -> None:
    """Require ``data`` positional arguments, and keyword-only options with literal defaults."""
    signature = inspect.signature(subject.target)
    parameters = list(signature.parameters.values())
    positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    try:
        signature.bind(*[None] * data)
        kind = Fault
    except TypeError:
        kind = Unanswered  # no other rule can call it either
    if len(positional) != data:
        found = ", ".join(p.name for p in positional) or "none"
        raise kind(f"{len(positional)} positional arguments ({found}) instead of {data}")
    for parameter in parameters:
        if parameter in positional:
            continue
        if parameter.kind is not parameter.KEYWORD_ONLY:
            raise kind(f"{parameter} collects arguments, so a misspelt option is no error")
        if parameter.default is parameter.empty:
            raise kind(f"option {parameter.name} has no default")
        if not isinstance(parameter.default, int | float | str | None):
            raise kind(f"the default of {parameter.name}, {parameter.default!r}, is no literal")


@contextmanager
def undeclared_needs(
    subject: Subject, build: Callable[[Subject], Any], optional: Sequence[str]
) -> Iterator[None]:
    """Say it if the component raised only for want of an input that it did not declare.

    Args:
        subject: The component.
        build: Makes an input with what a subject needs.
        optional: Every input that a component may need.
    """
    try:
        yield
    except Unanswered as fault:
        absent = [name for name in optional if name not in subject.needs]
        groups = (g for n in range(1, len(absent) + 1) for g in combinations(absent, n))
        for names in groups if isinstance(fault.__cause__, Exception) else ():
            wider = replace(subject, needs=(*subject.needs, *names))
            try:
                wider(build(wider))
            except Unanswered:
                continue
            told = f"it reads {' and '.join(names)}, which it does not declare: {fault}"
            mend = (
                f"Register it with needs={wider.needs}; checks takes needs= for a function that is "
                "not registered"
            )
            raise Unanswered(told, mend) from fault.__cause__
        raise


def check_tensor(what: str, x: Any, like: Tensor, where: Tensor) -> None:
    """Require a tensor of the shape and dtype of ``like``, finite inside the mask."""
    if not isinstance(x, torch.Tensor):
        raise Unanswered(f"{what} is a {type(x).__name__} instead of a tensor")
    if x.shape != like.shape:
        raise Unanswered(f"{what} has shape {tuple(x.shape)} instead of {tuple(like.shape)}")
    if x.dtype != like.dtype:
        told = f"{what} has dtype {x.dtype} instead of {like.dtype}"
        raise Unanswered(told, "Compute in any dtype and give back that of the input: x.to(dtype)")
    bad = where & ~x.isfinite()
    if bad.any():
        row, token = bad.nonzero()[0].tolist()
        raise Unanswered(f"{what} is {x[row, token].item()} at row {row}, token {token}")


def check_close(what: str, found: Tensor, expected: Tensor, where: Tensor) -> None:
    """Require equal numbers inside the mask, up to rounding in float64."""
    close = torch.isclose(found, expected, rtol=1e-7, atol=1e-9, equal_nan=True)
    bad = where & ~close
    if bad.any():
        row, token = bad.nonzero()[0].tolist()
        raise Differs(
            f"{what} is {found[row, token].item():.6g} instead of "
            f"{expected[row, token].item():.6g} at row {row}, token {token}"
        )


def check_untouched(subject: Subject, data: Any) -> None:
    """Call the component and require that no tensor of its input changed."""
    tensors = {name: x for name, x in vars(data).items() if isinstance(x, torch.Tensor)}
    before = {name: (x.detach().clone(), x._version) for name, x in tensors.items()}
    subject(data)
    for name, x in tensors.items():
        value, version = before[name]
        same = torch.equal(x.detach().nan_to_num(), value.nan_to_num())
        if x._version != version or not same:
            raise Fault(f"{name} was changed in place")
