"""What a rule is, what it is applied to, and the comparisons that rules share."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor


class Fault(Exception):  # noqa: N818 - a finding that a check turns into a message, not an error
    """What a rule found; `Check` adds whose it is and how to mend it."""


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
            raise Fault(f"it raised {type(error).__name__}: {error}") from error


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule of a kind: its name for ``exceptions``, what it says, how to mend a fault."""

    name: str
    says: str
    mend: str
    test: Callable[[Subject], None]


def check_options(subject: Subject, data: int) -> None:
    """Require ``data`` positional arguments, and keyword-only options with literal defaults."""
    parameters = list(inspect.signature(subject.target).parameters.values())
    positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if len(positional) != data:
        found = ", ".join(p.name for p in positional) or "none"
        raise Fault(f"{len(positional)} positional arguments ({found}) instead of {data}")
    for parameter in parameters:
        if parameter in positional:
            continue
        if parameter.kind is not parameter.KEYWORD_ONLY:
            raise Fault(f"{parameter} collects arguments, so a misspelt option is no error")
        if parameter.default is parameter.empty:
            raise Fault(f"option {parameter.name} has no default")
        if not isinstance(parameter.default, int | float | str | None):
            raise Fault(f"the default of {parameter.name}, {parameter.default!r}, is no literal")


def check_tensor(what: str, x: Any, like: Tensor, where: Tensor) -> None:
    """Require a detached tensor of the shape and dtype of ``like``, finite inside the mask."""
    if not isinstance(x, torch.Tensor):
        raise Fault(f"{what} is a {type(x).__name__} instead of a tensor")
    if x.shape != like.shape:
        raise Fault(f"{what} has shape {tuple(x.shape)} instead of {tuple(like.shape)}")
    if x.dtype != like.dtype:
        raise Fault(f"{what} has dtype {x.dtype} instead of {like.dtype}")
    bad = where & ~x.isfinite()
    if bad.any():
        row, token = bad.nonzero()[0].tolist()
        raise Fault(f"{what} is {x[row, token].item()} at row {row}, token {token}")


def check_close(what: str, found: Tensor, expected: Tensor, where: Tensor) -> None:
    """Require equal numbers inside the mask, up to rounding in float64."""
    close = torch.isclose(found, expected, rtol=1e-7, atol=1e-9, equal_nan=True)
    bad = where & ~close
    if bad.any():
        row, token = bad.nonzero()[0].tolist()
        raise Fault(
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
