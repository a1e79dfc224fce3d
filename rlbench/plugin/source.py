"""Which source files decide what a component does, and one hash over what they say.

Everything is found in the text of the files: nothing is imported, so neither torch nor a plugin
with side effects is loaded to learn the name of a run. An import that is computed while running
can't be seen this way; a run warns of modules that it used outside of what was found here.

What was read is remembered until the file changes: a notebook whose plugin was edited must not be
given the old result.
"""

from __future__ import annotations

import ast
import hashlib
import io
import sys
import sysconfig
import tokenize
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import metadata, util
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    from rlbench.plugin.registry import Component

# What these do shows in the identity of a run already: as parsed values and resolved names.
WITHOUT_EFFECT = ("rlbench.plugin", "rlbench.errors", "rlbench.hookspecs")

Stamp = tuple[int, int]  # time of change in ns, size: tells that a file is still the same


@dataclass(frozen=True)
class Origin:
    """Where a module comes from.

    Attributes:
        module: Full name, such as ``"rlbench.builtin.losses.clipping"``.
        distribution: The installed distribution that brought it, if any.
        path: The file, if it was loaded from a loose one.
        without: Modules, with all below them, that can't move the numbers of a run.
    """

    module: str
    distribution: str | None = None
    path: str | None = None
    without: tuple[str, ...] = ()


_closures: dict[Origin, dict[Path, Stamp]] = {}


def closure(origin: Origin) -> tuple[Path, ...]:
    """Find the files of a module and of the modules of the same origin that it imports.

    Imports inside functions count; imports for the type checker don't. A package's ``__init__``
    counts where something of its own is imported, not because a module below it is: a package that
    lists one more plugin does not change the ones it had.

    Returns:
        The files, sorted by module. For a loose file, or a distribution that is installed in place,
        the same origin is the folder it lies in. Empty if the module has no file.
    """
    known = _closures.get(origin)
    if known is None or any(_stamp(file) != stamp for file, stamp in known.items()):
        known = _closures[origin] = {file: _stamp(file) for file in _search(origin)}
    return tuple(known)


def of_component(component: Component) -> tuple[Path, ...]:
    """Find the files that decide what a component does."""
    owner, module = component.owner, component.target.partition(":")[0]
    is_loose = getattr(sys.modules.get(module), "__file__", None) == owner.path
    return closure(
        Origin(
            module,
            distribution=owner.distribution,
            path=owner.path if is_loose else None,
            without=WITHOUT_EFFECT,
        )
    )


def of_module(module: str) -> tuple[Path, ...]:
    """Find the files that decide what a module of rlbench does."""
    return closure(Origin(module, without=WITHOUT_EFFECT))


def digest(files: tuple[Path, ...]) -> str:
    """Hash what files say: their text without comments, docstrings and blank lines.

    Args:
        files: As given by `closure`. Where they lie does not matter, their order does.

    Returns:
        16 hex digits.
    """
    return _short("\n".join(_meaning(file, _stamp(file)) for file in files))


def outside(module: str, loaded: Mapping[str, ModuleType], known: set[Path]) -> list[str]:
    """Name loaded modules of the same package that are none of the known files.

    Packages are left out: they are loaded because something below them is.
    """
    top = module.partition(".")[0]
    return sorted(
        name
        for name, found in loaded.items()
        if name.startswith(f"{top}.")
        and not hasattr(found, "__path__")
        and Path(getattr(found, "__file__", None) or "") not in known
    )


def raw_digest(files: tuple[Path, ...]) -> str:
    """Hash the bytes of files as they are on disk now; missing ones count as empty."""
    contents = [file.read_bytes() if file.is_file() else b"" for file in files]
    return _short("\n".join(hashlib.sha256(content).hexdigest() for content in contents))


def content_digest(path: Path) -> str:
    """Hash a file's bytes, or those of all files below a folder with their names in it."""
    if path.is_file():
        return _short(_bytes(path, _stamp(path)))
    files = sorted(file for file in path.rglob("*") if file.is_file())
    parts = [f"{file.relative_to(path).as_posix()}\0{_bytes(file, _stamp(file))}" for file in files]
    return _short("\n".join(parts))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _stamp(file: Path) -> Stamp:
    try:
        state = file.stat()
    except OSError:
        return (0, -1)
    return (state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4096)
def _bytes(file: Path, stamp: Stamp) -> str:  # noqa: ARG001 - a changed file is another key
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@lru_cache(maxsize=4096)
def _meaning(file: Path, stamp: Stamp) -> str:
    """Hash one file. By lines and not by tokens: those differ between versions of Python."""
    if stamp[1] < 0:
        return ""
    content = file.read_bytes()
    try:
        tokens = list(tokenize.tokenize(io.BytesIO(content).readline))
        text = content.decode(tokens[0].string)
        said = _docstring_lines(text)
    except (tokenize.TokenError, SyntaxError, ValueError):
        return hashlib.sha256(content).hexdigest()  # compiled, or no Python: every byte counts
    lines = io.StringIO(text, newline=None).read().split("\n")
    inside: set[int] = set()  # lines that begin inside a string, where blanks and marks are content
    for token in tokens:
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
        elif token.start[0] != token.end[0] and token.type not in (tokenize.NEWLINE, tokenize.NL):
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
    kept = [
        line if row in inside or row + 1 in inside else line.rstrip()
        for row, line in enumerate(lines, start=1)
        if row not in said and (row in inside or line.strip())
    ]
    return hashlib.sha256("\n".join(kept).encode()).hexdigest()


def _docstring_lines(text: str) -> set[int]:
    """Lines that hold nothing but a docstring; none if the code looks at any."""
    if "__doc__" in text:
        return set()
    lines = text.encode().splitlines()
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        first = node.body[0] if node.body else None
        if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
            continue
        last = first.end_lineno or first.lineno
        before, after = lines[first.lineno - 1][: first.col_offset], lines[last - 1]
        alone = (before + after[first.end_col_offset :].partition(b"#")[0]).strip() == b""
        if isinstance(first.value.value, str) and alone:
            found.update(range(first.lineno, last + 1))
    return found


def _search(origin: Origin) -> list[Path]:
    """Follow imports from one module to the next."""
    if origin.path is not None:
        root, tops = Path(origin.path).parent, None
        waiting = {Path(origin.path): origin.module}
    else:
        top = origin.module.partition(".")[0]
        found = _root(top)
        start = found and _locate(found, origin.module)
        if found is None or start is None:
            return []
        root, waiting = found, {start: origin.module}
        tops = _top_levels(origin.distribution) | {top} if _is_shared(root) else None
    seen: dict[Path, str] = {}
    while waiting:
        file, module = waiting.popitem()
        seen[file] = module
        for names in _imports(file, module, _stamp(file)):
            for name in names:
                if tops is not None and name.partition(".")[0] not in tops:
                    continue
                target = _locate(root, name)
                if target is not None:
                    if target not in seen and not _is_below(name, origin.without):
                        waiting[target] = name
                    break
    return sorted(seen, key=lambda file: (seen[file], file.name))


def _is_below(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in packages)


@lru_cache(maxsize=4096)
def _imports(file: Path, module: str, stamp: Stamp) -> tuple[tuple[str, ...], ...]:  # noqa: ARG001 - a changed file is another key
    """Name what a file imports: for each name the modules it may be, the likeliest first."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return ()
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    found: list[tuple[str, ...]] = []
    for node in _executed(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name,) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *(node.module.split(".") if node.module else [])])
            # `from a import b` takes the module a.b, or else something that a itself defines
            found += [(f"{base}.{alias.name}", base) for alias in node.names if base]
    return tuple(dict.fromkeys(found))


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree, leaving out what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and _is_type_checking(child.test):
            for other in child.orelse:
                yield other
                yield from _executed(other)
        else:
            yield child
            yield from _executed(child)


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _root(top: str) -> Path | None:
    """Find the folder in which a top-level module or package lies, without importing it."""
    try:
        spec = sys.modules[top].__spec__ if top in sys.modules else util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).parent
    return Path(spec.origin).parent if spec.origin and Path(spec.origin).is_file() else None


def _locate(root: Path, module: str) -> Path | None:
    """Find the file of a module below a folder; None if it is not there, or has no code."""
    place = root.joinpath(*module.split("."))
    files = [place / "__init__.py"]
    files += [place.with_name(place.name + suffix) for suffix in (".py", *EXTENSION_SUFFIXES)]
    return next((file for file in files if file.is_file()), None)


def _is_shared(root: Path) -> bool:
    """Whether many distributions are installed into this folder."""
    standard = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    return root.name in ("site-packages", "dist-packages") or str(root) in standard


@cache
def _top_levels(distribution: str | None) -> frozenset[str]:
    """Name the top-level modules of an installed distribution."""
    try:
        files = metadata.files(distribution) if distribution else None
    except metadata.PackageNotFoundError:
        files = None
    return frozenset(
        file.parts[0].partition(".")[0]
        for file in files or ()
        if file.suffix in (".py", ".so") and ".." not in file.parts
    )
