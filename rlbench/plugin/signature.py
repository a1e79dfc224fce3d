"""Read a component's options from its signature: from the source, so that nothing is imported.

Where the source does not tell (a decorator, an inherited ``__init__`` out of sight, a function
made by another one), the component is imported and asked.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlbench.errors import PluginError, UsageError
from rlbench.plugin import definition, kl
from rlbench.plugin.annotation import Namespace, OptionType, Scope, as_source, read_type
from rlbench.plugin.docstring import descriptions
from rlbench.plugin.option import Interval, Option
from rlbench.plugin.registry import FUNCTION_KINDS, Component

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Interval", "Option", "options", "read_options"]

_NONE: Any = object()  # no default, or none that the source shows
_BARE = ("object", "Protocol", "Generic", "ABC")  # base classes without an __init__ of their own


@dataclass(frozen=True)
class _Parameter:
    name: str
    annotation: object  # ast.AST, or what stands there at run time; None without one
    default: Any


@dataclass(frozen=True, kw_only=True)
class _Signature:
    """What a component takes, from whichever source."""

    is_class: bool
    positional: tuple[str, ...] = ()
    stars: tuple[str, ...] = ()
    keywords: tuple[_Parameter, ...] = ()
    doc: str
    scope: Scope
    unlike: str = ""  # how a function differs from one that returns its answer when it is called


def options(component: Component) -> tuple[Option, ...]:
    """List the options of a component in the order of its signature, the trainer's at the end.

    Raises:
        PluginError: The signature is not that of a component; the message names the component,
            its owner and the parameter.
    """
    module, _, attribute = component.target.partition(":")
    source = definition.read_module(module)
    signature = _from_source(source, attribute) or _from_object(component.load(), component.title)
    if signature.is_class == (component.kind in FUNCTION_KINDS):
        wanted, found = ("function", "class") if signature.is_class else ("class", "function")
        raise PluginError(
            f"{component.title}: {component.target} is a {found}; a component of the kind "
            f"{component.kind} is a {wanted}"
        )
    if signature.unlike and not signature.is_class:
        raise PluginError(
            f"{component.title}: {component.target} is {signature.unlike}; write a plain function "
            "that returns its answer"
        )
    own = _options(signature, component.title)
    added = kl.host_options(component)
    for name in {option.name for option in own} & {option.name for option in added}:
        raise PluginError(
            f"{component.title}: option {name!r} is one that rlbench gives to every KL controller "
            "that needs ref_logp; choose another name"
        )
    return own + added


def read_options(path: Path, attribute: str, owner: str) -> tuple[Option, ...]:
    """Read the options of a function or class in a source file.

    Args:
        path: The file.
        attribute: Name of the function or class, at the file's top level.
        owner: How messages speak of it.

    Raises:
        PluginError: It isn't there, or its signature is not that of a component.
    """
    signature = _from_source(definition.read_file(path), attribute)
    if signature is None:
        raise PluginError(f"{owner}: the signature of {attribute} can't be read from {path}")
    return _options(signature, owner)


def _options(signature: _Signature, owner: str) -> tuple[Option, ...]:
    """Turn keyword-only parameters into options; refuse all others."""
    for star in signature.stars:
        raise PluginError(f"{owner}: takes {star}; name each option and give it a default")
    extra = signature.positional if signature.is_class else signature.positional[1:]
    for name in extra:
        raise PluginError(f"{owner}: parameter {name!r} is positional; write '*' before options")
    if not signature.is_class and not signature.positional:
        raise PluginError(f"{owner}: takes no data; its first parameter is the rollout or batch")
    docs = descriptions(signature.doc)
    found = []
    for parameter in signature.keywords:
        try:
            found.append(_option(parameter, signature.scope, owner, docs.get(parameter.name, "")))
        except ValueError as error:
            raise PluginError(f"{owner}: option {parameter.name!r}: {error}") from None
        except UsageError as error:
            raise PluginError(f"its own default is refused: {error}") from None
    return tuple(found)


def _option(parameter: _Parameter, scope: Scope, owner: str, doc: str) -> Option:
    default = parameter.default
    if default is _NONE or not isinstance(default, (bool, int, float, str, type(None))):
        raise ValueError("its default is missing or not a plain number, text, True, False or None")
    annotation = parameter.annotation
    if annotation is None:
        found = OptionType() if default is None else read_type(as_source(type(default)), scope)
    else:
        node = annotation if isinstance(annotation, ast.AST) else as_source(annotation)
        found = read_type(node, scope)
    if found.type is None:
        raise ValueError("it needs a type, such as float | None")
    option = Option(
        name=parameter.name,
        type=found.type,
        default=default,
        optional=found.optional,
        choices=found.choices,
        interval=found.interval,
        doc=doc,
        owner=owner,
    )
    # text that the grammar can't carry is fine as a default: it is never written down
    if option.type == "str" and isinstance(default, str) and not option.choices:
        return option
    return dataclasses.replace(option, default=option.check(default))


def _from_source(source: definition.Source | None, attribute: str) -> _Signature | None:
    """Read a signature from the source; None where the source does not tell."""
    found = source.find(attribute) if source else None
    match found:
        case (
            (ast.FunctionDef(decorator_list=[]) | ast.AsyncFunctionDef(decorator_list=[])) as node,
            scope,
        ):
            plain = _from_arguments(node.args, 0, ast.get_docstring(node), scope)
            return dataclasses.replace(plain, unlike=_unlike(node))
        case (ast.ClassDef(decorator_list=[]) as node, scope):
            return _from_init(node, scope)
        case (ast.ClassDef(decorator_list=[decorator]) as node, scope):
            bare = all(_last_name(base) in _BARE for base in node.bases)
            return _from_fields(node, scope) if bare and _is_dataclass(decorator) else None
    return None


def _from_arguments(
    arguments: ast.arguments, bound: int, doc: str | None, scope: Scope, *, is_class: bool = False
) -> _Signature:
    """Read the parameters of a function, without the first `bound` ones."""
    positional = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    stars = [
        f"{star}{one.arg}"
        for star, one in (("*", arguments.vararg), ("**", arguments.kwarg))
        if one is not None
    ]
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    keywords = [_Parameter(one.arg, one.annotation, _literal(value)) for one, value in pairs]
    return _Signature(
        is_class=is_class,
        positional=tuple(positional[bound:]),
        stars=tuple(stars),
        keywords=tuple(keywords),
        doc=doc or "",
        scope=scope,
    )


def _unlike(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Say what calling a function gives instead of its answer; empty for a plain one."""
    if isinstance(node, ast.AsyncFunctionDef):
        return "async"
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, (ast.Yield, ast.YieldFrom)):
            return "a generator"
        if not isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(inner)
    return ""


def _from_init(node: ast.ClassDef, scope: definition.Source) -> _Signature | None:
    """Read ``__init__``, of the class or of a base class that can be followed in the source."""
    doc = ast.get_docstring(node) or ""
    if node.keywords:
        return None
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name in ("__init__", "__new__"):
            if statement.decorator_list or statement.name == "__new__":
                return None
            both = f"{doc}\n\n{ast.get_docstring(statement) or ''}"
            return _from_arguments(statement.args, 1, both, scope, is_class=True)
    for base in node.bases:
        if _last_name(base) in _BARE:
            continue
        found = scope.find(base.id) if isinstance(base, ast.Name) else None
        match found:
            case (ast.ClassDef(decorator_list=[]) as parent, where):
                inherited = _from_init(parent, where)
            case _:
                return None
        if inherited is None or inherited.keywords or inherited.positional or inherited.stars:
            return inherited and dataclasses.replace(inherited, doc=f"{inherited.doc}\n\n{doc}")
    return _Signature(is_class=True, doc=doc, scope=scope)


def _from_fields(node: ast.ClassDef, scope: Scope) -> _Signature:
    """Read the fields of a dataclass."""
    keywords = []
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                inner = annotation.value if isinstance(annotation, ast.Subscript) else annotation
                if _last_name(inner) in ("ClassVar", "KW_ONLY"):
                    continue
                if isinstance(value, ast.Call) and _last_name(value.func) == "field":
                    said = {keyword.arg: keyword.value for keyword in value.keywords}
                    if "init" in said and _literal(said["init"]) is False:
                        continue
                    value = said.get("default")
                keywords.append(_Parameter(name, annotation, _literal(value)))
    return _Signature(
        is_class=True,
        keywords=tuple(keywords),
        doc=ast.get_docstring(node) or "",
        scope=scope,
    )


def _is_dataclass(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return _last_name(called) == "dataclass"


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return _last_name(value)
    return ""


def _literal(node: ast.expr | None) -> Any:
    if node is None:
        return _NONE
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return _NONE


def _from_object(component: Any, owner: str) -> _Signature:
    """Ask an imported function or class."""
    try:
        parameters = list(inspect.signature(component).parameters.values())
    except (TypeError, ValueError):
        raise PluginError(f"{owner}: {component!r} has no signature") from None
    is_class = inspect.isclass(component)
    if is_class and getattr(component.__init__, "__module__", None) == "typing":
        parameters = []  # a Protocol's placeholder, which takes anything and does nothing
    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    positional = [inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if is_class and dataclasses.is_dataclass(component):
        positional.pop()  # its fields can be given by position, but nobody does
    return _Signature(
        is_class=is_class,
        positional=tuple(p.name for p in parameters if p.kind in positional),
        stars=tuple(str(p) for p in parameters if p.kind in stars),
        keywords=tuple(_asked(p) for p in parameters if p.kind not in (*positional, *stars)),
        unlike="async"
        if inspect.iscoroutinefunction(component) or inspect.isasyncgenfunction(component)
        else "a generator"
        if inspect.isgeneratorfunction(component)
        else "",
        doc="\n\n".join(_docstrings(component)),
        scope=Namespace(vars(sys.modules[_unwrapped(component).__module__])),
    )


def _asked(parameter: inspect.Parameter) -> _Parameter:
    empty = parameter.empty
    return _Parameter(
        parameter.name,
        None if parameter.annotation is empty else parameter.annotation,
        _NONE if parameter.default is empty else parameter.default,
    )


def _docstrings(component: Any) -> Iterator[str]:
    yield inspect.getdoc(_unwrapped(component)) or ""
    if inspect.isclass(component):
        yield inspect.getdoc(component.__init__) or ""


def _unwrapped(component: Any) -> Any:
    """Take partial objects and wrappers off, down to what somebody wrote."""
    component = getattr(component, "func", component)
    return inspect.unwrap(component) if callable(component) else component
