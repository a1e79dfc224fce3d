"""``rlbench list``, ``show`` and ``plugins``: what there is to combine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlbench.cli import flags
from rlbench.cli.flags import load
from rlbench.errors import PluginError, UsageError
from rlbench.report.terminal import columns, emit, say

if TYPE_CHECKING:
    from rlbench.types import Kind

SETTING, RUN = "setting", "run"  # what list and show take beside the kinds


@click.command("list")
@click.argument("kind", required=False)
@flags.plugin
def list_(kind: str | None, plugins: tuple[str, ...]) -> None:
    """List components, or those of one KIND (also: setting)."""
    from rlbench.report.show import list_text, settings_text

    registry = load(plugins)
    if kind == SETTING:
        emit(settings_text(columns()))
        return
    kinds = list(_kinds()) if kind is None else [_kind(kind, SETTING)]
    emit(list_text(registry, kinds, columns()))


@click.command()
@click.argument("kind")
@click.argument("name")
@flags.plugin
@flags.out
def show(kind: str, name: str, plugins: tuple[str, ...], out: Path | None) -> None:
    """Describe a component, a setting, or a run (rlbench show run ID) and how to repeat it."""
    from rlbench.plugin.selection import parse
    from rlbench.report.show import component_text, setting_text

    if kind == RUN:
        emit(_run_text(name, plugins, out))
        return
    if out is not None:
        raise UsageError(f"-o names a folder of results; {kind} {name} is not read from one")
    registry = load(plugins)
    checked = None if kind == SETTING else _kind(kind, SETTING, RUN)
    if checked is None:
        emit(setting_text(name, columns()))
        return
    component = parse(registry, checked, name).component if ":" in name else None
    component = component or registry.find(checked, name)
    emit(component_text(component, columns()))


@click.command("plugins")
@flags.plugin
def plugins_(plugins: tuple[str, ...]) -> None:
    """List plugins, what they registered, and what went wrong."""
    from rlbench.plugin import loading
    from rlbench.report.show import plugins_text

    emit(plugins_text(loading.load(plugins), columns()))


def _run_text(name: str, plugins: tuple[str, ...], out: Path | None) -> str:
    from rlbench.grid import repeat
    from rlbench.grid.store import Store
    from rlbench.report.run import run_text

    record = repeat.find(name, Store(out or Path(flags.DEFAULT_OUT)))
    there = [plugin for plugin in repeat.plugins(record) if Path(plugin).is_file()]
    try:
        registry = load((*plugins, *there))
    except PluginError as error:
        if plugins:
            raise
        say(f"warning: {error}")
        registry = load(())
    return run_text(record, registry, columns())


def _kinds() -> tuple[Kind, ...]:
    from rlbench.plugin.registry import KINDS

    return KINDS


def _kind(name: str, *more: str) -> Kind:
    """Check the name of a kind; ``more`` is what the command takes beside them."""
    if name not in _kinds():
        raise UsageError.unknown("kind", name, [*_kinds(), *more])
    return name
