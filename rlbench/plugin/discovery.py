"""Where plugins come from: rlbench itself, installed distributions, files and modules.

Everything here only finds. A plugin is imported when its `Found.fetch` is called, so that the
caller can guard each one on its own.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib import import_module, metadata, util
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from rlbench.errors import PluginError, UsageError
from rlbench.plugin.guard import describe, guarded
from rlbench.plugin.registry import DISABLE, Owner
from rlbench.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.machinery import ModuleSpec

GROUP = "rlbench"
BUILTIN = "rlbench.builtin"


@dataclass(frozen=True)
class Found:
    """A plugin that has not been imported yet.

    Attributes:
        owner: Whose components these will be.
        fetch: Imports the plugin object; PluginError with the reason if that fails.
        argument: How another process asks for it; None if it finds it by itself.
    """

    owner: Owner
    fetch: Callable[[], object]
    argument: str | None = None


def builtin() -> Found:
    """Find the built-in components. They are a plugin like any other."""
    return Found(Owner("rlbench", "rlbench", __version__), partial(_import, BUILTIN))


def installed() -> list[Found]:
    """Find the plugins of installed distributions.

    Returns:
        Sorted by distribution and name, whatever the order on disk. Metadata that is there twice
        counts once; what RLBENCH_DISABLE_PLUGINS names, by plugin or by distribution, is left out.
    """
    disabled = {_normalise(name) for name in os.environ.get(DISABLE, "").split(",") if name.strip()}
    found: dict[tuple[str, str], Found] = {}
    for distribution, name, fetch in _entry_points():
        title, version = _identity(distribution)
        key = (_normalise(title), name)
        if key in found or {key[0], _normalise(name)} & disabled:
            continue
        found[key] = Found(Owner(name, title, version), fetch)
    return [found[key] for key in sorted(found)]


def requested(item: str | Path | ModuleType) -> Found:
    """Find a plugin that somebody asked for.

    Args:
        item: Path of a .py file, name of a module, or an imported module.

    Raises:
        PluginError: It does not exist, or another process could not import it.
        UsageError: It is none of these three.
    """
    if isinstance(item, ModuleType):
        path = _loose_path(item)
        return _file(path) if path else _module(item)
    if isinstance(item, Path):
        return _file(item)
    if not isinstance(item, str):
        raise UsageError(f"plugin {item!r}: expected a .py file, a module or the name of one")
    if item.endswith(".py") or os.sep in item or Path(item).is_file():
        return _file(Path(item))
    if not all(part.isidentifier() for part in item.split(".")):
        raise UsageError(f"plugin {item!r} is neither a .py file nor the name of a module")
    return Found(Owner(item), partial(_import, item), argument=item)


def _import(name: str) -> ModuleType:
    with guarded():
        return import_module(name)


def _normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _identity(distribution: metadata.Distribution | None) -> tuple[str, str | None]:
    """Read name and version; metadata can be half deleted."""
    try:
        name, version = distribution.metadata["Name"], distribution.version  # type: ignore[union-attr]  # None is one of the ways to fail
    except Exception:  # noqa: BLE001 - whatever the metadata's reader raises
        name = version = None
    return name or "unknown distribution", version


def _entry_points() -> Iterator[tuple[metadata.Distribution | None, str, Callable[[], object]]]:
    """Yield distribution, name and import of every entry point of the group."""
    try:
        points = list(metadata.entry_points(group=GROUP))
    except Exception:  # noqa: BLE001 - one malformed file of any distribution makes it fail as a whole
        yield from _entry_points_one_by_one()
        return
    for point in points:
        yield point.dist, point.name, partial(_load, point)


def _entry_points_one_by_one() -> Iterator[tuple[metadata.Distribution, str, Callable[[], object]]]:
    """Do the same, slowly, so that only the malformed file is lost."""
    for distribution in metadata.distributions():
        try:
            points = list(distribution.entry_points.select(group=GROUP))
        except Exception as error:  # noqa: BLE001 - reported when the plugin's turn comes
            if _names_the_group(distribution):
                reason = f"its entry_points.txt can't be read: {describe(error)}"
                yield distribution, "?", partial(_refuse, reason)
            continue
        for point in points:
            yield distribution, point.name, partial(_load, point)


def _names_the_group(distribution: metadata.Distribution) -> bool:
    """Whether a file of entry points that can't be read is for us; True if that can't be told."""
    try:
        text = distribution.read_text("entry_points.txt") or ""
    except UnicodeDecodeError as error:
        return f"[{GROUP}]".encode() in error.object
    except Exception:  # noqa: BLE001 - whatever the metadata's reader raises
        return True
    return f"[{GROUP}]" in text


def _refuse(reason: str) -> NoReturn:
    raise PluginError(reason)


def _load(point: metadata.EntryPoint) -> object:
    try:
        with guarded():
            return point.load()
    except PluginError as error:
        missing = error.__cause__
        top = point.module.partition(".")[0]
        if isinstance(missing, ModuleNotFoundError) and missing.name in (top, point.module):
            raise PluginError(
                f"its module {missing.name} is gone; reinstall or uninstall the distribution"
            ) from missing
        raise


def _module(module: ModuleType) -> Found:
    """Accept a module only if another process would import the same one by its name."""
    name = module.__name__
    if name == "__main__":
        raise PluginError(
            "the main script can't be a plugin, because worker processes don't import it; "
            "move the component into a file of its own and give its path"
        )
    try:
        spec = _spec_on_disk(name)
    except Exception:  # noqa: BLE001 - any failure to find it means that it can't be imported
        spec = None
    mine = getattr(module, "__file__", None)
    if spec is None or spec.origin is None or (mine and not _same(spec.origin, mine)):
        raise PluginError(
            f"module {name} can't be imported by worker processes under this name; "
            "put it into a file and give its path"
        )
    return Found(Owner(name), lambda: module, argument=name)


def _spec_on_disk(name: str) -> ModuleSpec | None:
    """Find a module as a fresh process would: without looking at what is imported already."""
    parent = name.rpartition(".")[0]
    path = import_module(parent).__path__ if parent else None
    for finder in sys.meta_path:
        spec = finder.find_spec(name, path)
        if spec is not None:
            return spec
    return None


def _same(a: str, b: str) -> bool:
    return Path(a).exists() and Path(b).exists() and Path(a).samefile(b)


_LOOSE = "rlbench_file_"


def _file(path: Path) -> Found:
    path = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - resolve() would follow links
    owner = Owner(path.stem, path=str(path))
    if path.is_dir():
        raise PluginError(f"{owner}: not loaded: it is a folder; give a .py file in it")
    if not path.exists():
        raise PluginError(f"{owner}: not loaded: there is no such file")
    if path.suffix != ".py":
        raise PluginError(f"{owner}: not loaded: its name does not end in .py")
    return Found(owner, partial(_import_file, path), argument=str(path))


def _import_file(path: Path) -> ModuleType:
    """Execute a file as a module of its own. An edited file is read again by the next call."""
    name = _loose_name(path)
    spec = util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginError("Python knows no way to import it")
    module = util.module_from_spec(spec)
    sys.modules[name] = module  # so that targets, dataclasses and pickles find it by its name
    try:
        with guarded():
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _loose_name(path: Path) -> str:
    """Name the module of a file: by its stem, and by its path too if another file has that stem."""
    name = _LOOSE + re.sub(r"\W", "_", path.stem)
    present = sys.modules.get(name)
    if present is None or present.__file__ == str(path):
        return name
    return f"{name}_{sha256(str(path).encode()).hexdigest()[:8]}"


def _loose_path(module: ModuleType) -> Path | None:
    """Tell where a module came from that `_import_file` made."""
    is_loose = module.__name__.startswith(_LOOSE) and module.__file__
    return Path(str(module.__file__)) if is_loose else None
