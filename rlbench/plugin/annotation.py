"""Read the type of an option from its annotation.

Understood are ``int``, ``float``, ``str``, ``bool``, ``Literal["a", "b"]``, a range as in
``Annotated[float, "[0, 1]"]``, ``… | None``, and a module's own name for one of these.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Literal, Protocol, Union, cast, get_args, get_origin

from rlbench.plugin.option import Interval

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEPTH = 10  # names for names for types; an end for a circle


class Scope(Protocol):
    """Where names in an annotation are looked up."""

    def find(self, name: str) -> tuple[ast.AST, Scope] | None:
        """Find the expression that a name stands for, and the scope of the names in it."""
        ...


@dataclass(frozen=True)
class OptionType:
    """What an annotation says; see `rlbench.plugin.option.Option`."""

    type: Literal["int", "float", "str", "bool"] | None = None
    choices: tuple[int | str, ...] = ()
    interval: str | None = None
    optional: bool = False


@dataclass(frozen=True)
class Namespace:
    """The scope of an imported function: what its names stand for when it runs."""

    names: Mapping[str, object]

    def find(self, name: str) -> tuple[ast.AST, Scope] | None:
        """Find a name and write what it stands for as source."""
        return (as_source(self.names[name]), self) if name in self.names else None


def as_source(annotation: object) -> ast.AST:
    """Write an annotation that exists at run time as the source that makes it.

    Raises:
        ValueError: It can't be written so.
    """
    text = annotation if isinstance(annotation, str) else _written(annotation)
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise ValueError(f"{text} is no type of an option") from None


def _written(annotation: object) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        # what other libraries put there has no source; only text can be a range
        texts = [repr(extra) for extra in arguments[1:] if isinstance(extra, str)]
        base = _written(arguments[0])
        return f"Annotated[{', '.join([base, *texts])}]" if texts else base
    if origin in (Union, UnionType):
        return " | ".join(map(_written, arguments))
    if annotation is NoneType:
        return "None"
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def read_type(node: ast.AST, scope: Scope, depth: int = _DEPTH) -> OptionType:
    """Read an annotation.

    Raises:
        ValueError: It is not one of those that the module's docstring lists.
    """
    match node:
        case ast.Constant(value=None):
            return OptionType(optional=True)
        case ast.Constant(value=str(text)):
            return read_type(as_source(text), scope, depth)
        case ast.Name(id="int" | "float" | "str" | "bool" as name):
            return OptionType(name)
        case ast.Name(id=name) if depth and (found := scope.find(name)):
            return read_type(*found, depth - 1)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _union([read_type(part, scope, depth) for part in (left, right)])
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            if name == "Literal":
                return _literal(parts)
            if name == "Annotated":
                return _annotated(read_type(parts[0], scope, depth), parts[1:])
            if name in ("Optional", "Union"):
                types = [read_type(part, scope, depth) for part in parts]
                return _union([*types, OptionType(optional=name == "Optional")])
    raise ValueError(
        f"{ast.unparse(node)} is no type of an option; use int, float, str, bool, Literal[...], "
        'Annotated[float, "[0, 1]"] or one of them with "| None"'
    )


def _union(types: list[OptionType]) -> OptionType:
    proper = [one for one in types if one.type]
    if len(proper) != 1:
        raise ValueError("an option has one type, besides None")
    return replace(proper[0], optional=any(one.optional for one in types))


def _literal(parts: list[ast.expr]) -> OptionType:
    values = [part.value for part in parts if isinstance(part, ast.Constant)]
    choices = [value for value in values if value is not None]
    types = {type(value) for value in choices}
    if len(values) != len(parts) or types not in ({str}, {int}):
        raise ValueError("the choices of a Literal are all text or all integers")
    return OptionType(
        "str" if types == {str} else "int",
        choices=cast("tuple[int | str, ...]", tuple(choices)),
        optional=None in values,
    )


def _annotated(base: OptionType, extras: list[ast.expr]) -> OptionType:
    """Take the interval from what is annotated; anything but text is somebody else's."""
    for extra in extras:
        if isinstance(extra, ast.Constant) and isinstance(extra.value, str):
            Interval.read(extra.value)
            if base.type not in ("int", "float"):
                raise ValueError(f"{extra.value!r} is a range, and {base.type} has none")
            return replace(base, interval=extra.value)
    return base
