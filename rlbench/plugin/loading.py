"""Load all plugins, each on its own, into one registry."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from rlbench.errors import PluginError, UsageError
from rlbench.plugin import discovery, staging
from rlbench.plugin.option import FALSE
from rlbench.plugin.registry import Component, Problem, Registry

if TYPE_CHECKING:
    from collections.abc import Sequence

STRICT = "RLBENCH_STRICT_PLUGINS"


def load(plugins: Sequence[str | Path | ModuleType] = ()) -> Registry:
    """Build the registry: built-ins, then installed plugins, then the given ones.

    An installed plugin that fails is listed in `Registry.problems`, and the rest are loaded. With
    ``RLBENCH_STRICT_PLUGINS=1`` every problem raises, names with two owners included.

    Args:
        plugins: Paths of .py files, names of modules or modules.

    Raises:
        PluginError: A given plugin does not load (or any plugin, if strict). The message names
            the plugin, its distribution and version or its file, and the cause.
        UsageError: A given plugin is neither a file nor a module.
    """
    strict = os.environ.get(STRICT, "").strip().lower() not in ("", *FALSE)
    asked = _asked(plugins)
    installed = discovery.installed()
    host = staging.manager()
    components: list[Component] = []
    problems: list[Problem] = []
    for found in [discovery.builtin(), *installed, *asked]:
        try:
            components += staging.stage(host, found.fetch(), found.owner)
        except PluginError as error:
            problem = Problem(found.owner, f"not loaded: {error}")
            if strict or found not in installed:
                raise PluginError(str(problem)) from error.__cause__
            problems.append(problem)
    registry = Registry(components, problems)
    if strict and registry.problems:
        raise PluginError(str(registry.problems[0]))
    return registry


def plugin_arguments(plugins: Sequence[str | Path | ModuleType]) -> list[str]:
    """Write plugins so that a worker process, in any folder, can pass them to `load`.

    Returns:
        For each plugin the absolute path of its file or the name of its module.

    Raises:
        PluginError: A worker process could not import it.
        UsageError: It is neither a file nor a module.
    """
    return [found.argument for found in _asked(plugins) if found.argument is not None]


def _asked(plugins: Sequence[str | Path | ModuleType]) -> list[discovery.Found]:
    """Find what was asked for; what is there twice counts once."""
    if isinstance(plugins, (str, Path, ModuleType)):
        raise UsageError(f"plugins={plugins!r}: expected a list of files or modules")
    found = map(discovery.requested, plugins)
    return list({one.argument: one for one in found}.values())
