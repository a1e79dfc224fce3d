"""Find where something is defined in Python source, without importing it."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib import util
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOPS = 5  # re-exports of re-exports; enough for any package, and an end for a circle


@dataclass(frozen=True)
class Source:
    """One module, parsed.

    Attributes:
        path: Its file.
        module: Its full name; None if only the file is known.
        tree: What `ast` makes of it.
    """

    path: Path
    module: str | None
    tree: ast.Module

    def find(self, name: str, hops: int = _HOPS) -> tuple[ast.AST, Source] | None:
        """Find the one definition of a name at the module's top level.

        Args:
            name: A name, without dots.
            hops: How many ``from … import`` to follow.

        Returns:
            A function, a class or the expression assigned to the name, with the module it stands
            in; None if there is no such definition or more than one.
        """
        found = [node for bound, node in _bindings(self.tree.body) if bound == name]
        if len(found) != 1 or hops == 0:
            return None
        node = found[0]
        if not isinstance(node, ast.ImportFrom):
            return None if node is None else (node, self)
        origin = self._origin(node)
        source = read_module(origin) if origin else None
        original = next(alias.name for alias in node.names if (alias.asname or alias.name) == name)
        return source.find(original, hops - 1) if source else None

    def _origin(self, node: ast.ImportFrom) -> str | None:
        """Full name of the module that an import statement names."""
        if node.level == 0:
            return node.module
        if self.module is None:
            return None
        parts = self.module.split(".")
        if self.path.name == "__init__.py":
            parts.append("__init__")
        base = parts[: -node.level]
        return ".".join([*base, node.module] if node.module else base) if base else None


def read_module(name: str) -> Source | None:
    """Parse a module, found by its name; None if it has no Python source or is unknown."""
    path = _locate(name)
    return read_file(path, name) if path else None


def read_file(path: Path, module: str | None = None) -> Source | None:
    """Parse a file; None if it can't be read or is no Python."""
    try:
        return Source(path, module, _parse(path, path.stat().st_mtime_ns))
    except (OSError, SyntaxError, ValueError):
        return None  # importing it will say what is wrong, and say it better


@lru_cache(maxsize=256)
def _parse(path: Path, changed_ns: int) -> ast.Module:  # noqa: ARG001 - part of the cache's key
    return ast.parse(path.read_bytes(), filename=str(path))


def _locate(name: str) -> Path | None:
    """Find the file of a module; unlike `find_spec`, never import the packages above it."""
    spec: ModuleSpec | None
    try:
        if name in sys.modules:
            spec = sys.modules[name].__spec__
        else:
            top, *rest = name.split(".")
            spec = util.find_spec(top)
            for part in rest:
                if spec is None or spec.submodule_search_locations is None:
                    return None
                locations = list(spec.submodule_search_locations)
                spec = PathFinder.find_spec(f"{spec.name}.{part}", locations)
    except (ImportError, ValueError, AttributeError):
        return None
    origin = Path(spec.origin) if spec and spec.origin else None
    return origin if origin and origin.suffix == ".py" and origin.is_file() else None


def _bindings(body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST | None]]:
    """Yield every name that a module binds, with its definition; None where that depends."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case ast.ImportFrom(names=names):
                for alias in names:
                    yield alias.asname or alias.name, node
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=[]):
                yield from _bindings(node.body)
            case _:
                yield from _conditional(node)


def _conditional(node: ast.stmt) -> Iterator[tuple[str, None]]:
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name, None
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield inner.name, None
            case ast.ImportFrom(names=names):
                for alias in names:
                    yield alias.asname or alias.name, None
