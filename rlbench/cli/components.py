"""``rlbench list``, ``show`` and ``plugins``: what there is to combine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rlbench.cli import flags
from rlbench.cli.flags import load
from rlbench.errors import UsageError
from rlbench.report.terminal import columns, emit

if TYPE_CHECKING:
    from rlbench.types import Kind

SETTING = "setting"  # what list and show take beside the kinds


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
    kinds = list(_kinds()) if kind is None else [_kind(kind)]
    emit(list_text(registry, kinds, columns()))


@click.command()
@click.argument("kind")
@click.argument("name")
@flags.plugin
def show(kind: str, name: str, plugins: tuple[str, ...]) -> None:
    """Describe a component, or a setting: owner, needs, options and documentation."""
    from rlbench.plugin.selection import parse
    from rlbench.report.show import component_text, setting_text

    registry = load(plugins)
    if kind == SETTING:
        emit(setting_text(name, columns()))
        return
    component = parse(registry, _kind(kind), name).component if ":" in name else None
    component = component or registry.find(_kind(kind), name)
    emit(component_text(component, columns()))


@click.command("plugins")
@flags.plugin
def plugins_(plugins: tuple[str, ...]) -> None:
    """List plugins, what they registered, and what went wrong."""
    from rlbench.plugin import loading
    from rlbench.report.show import plugins_text

    emit(plugins_text(loading.load(plugins), columns()))


def _kinds() -> tuple[Kind, ...]:
    from rlbench.plugin.registry import KINDS

    return KINDS


def _kind(name: str) -> Kind:
    """Check the name of a kind."""
    if name not in _kinds():
        raise UsageError.unknown("kind", name, [*_kinds(), SETTING])
    return name
