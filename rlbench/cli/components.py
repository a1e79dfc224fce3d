"""``rlbench list``, ``show`` and ``plugins``: what there is to combine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlbench.cli import flags
from rlbench.cli.flags import load
from rlbench.errors import PluginError, UsageError
from rlbench.report.text.terminal import columns, emit, say

if TYPE_CHECKING:
    from rlbench.plugin.registry import Registry
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
@click.argument("name", required=False)
@flags.plugin
@flags.out
def show(kind: str, name: str | None, plugins: tuple[str, ...], out: Path | None) -> None:
    """Describe a component, a setting or a run.

    Of a run (rlbench show run ID) also how to repeat it.
    """
    if name is None and kind in (*_kinds(), SETTING, RUN):
        which = "ID" if kind == RUN else "NAME"
        raise UsageError(f"show {kind}: which one? write rlbench show {kind} {which}")
    if kind == RUN and name is not None:
        emit(_run_text(name, plugins, out))
        return
    if out is not None:
        raise UsageError(f"-o names a folder of results; {kind} {name or ''} is not read from one")
    registry = load(plugins)
    if name is None:
        kind, name = _place(registry, kind)
    if kind == SETTING:
        emit(_setting_text(registry, name))
        return
    emit(_component_text(registry, _kind(kind, SETTING, RUN), name))


@click.command("plugins")
@flags.plugin
def plugins_(plugins: tuple[str, ...]) -> None:
    """List plugins, what they registered, and what went wrong."""
    from rlbench.plugin import loading
    from rlbench.report.show import plugins_text

    emit(plugins_text(loading.load(plugins), columns()))


def _place(registry: Registry, text: str) -> tuple[str, str]:
    """Find the one kind in which there is what was named without its kind.

    Raises:
        UsageError: It is in several kinds, or in none.
    """
    from rlbench.training import elsewhere
    from rlbench.training.settings import Settings

    name = text.partition(":")[0]
    settings = [option.name for option in Settings.options()]
    places = [kind for kind in _kinds() if registry.owners(kind, name)]
    found = [*places, *([SETTING] if text in settings else [])]
    if len(found) == 1:
        return found[0], text
    # what others call something has advice, which the kind's own message gives
    advised = [c.kind for c in registry.components() if c.advice(name)]
    several = found or list(dict.fromkeys(advised))
    if len(several) > 1:
        lines = " or ".join(f"rlbench show {kind} {text}" for kind in several)
        raise UsageError(f"{text!r} can be of several kinds; write {lines}")
    if several:
        return several[0], text
    _refuse_option(registry, text)
    if elsewhere.advice(text, settings):
        return SETTING, text
    known = [*settings, *(n for c in registry.components() for n in c.names), *_kinds()]
    raise UsageError.unknown(
        "component or setting", text, known, hint="rlbench list shows all components"
    )


def _setting_text(registry: Registry, name: str) -> str:
    from rlbench.report.show import setting_text

    _refuse_option(registry, name)
    return setting_text(name, columns())


def _refuse_option(registry: Registry, name: str) -> None:
    """Raise UsageError with a selection if what is no setting is an option of a component."""
    from rlbench.grid.axes import refuse_component_option
    from rlbench.plugin.selection import parse
    from rlbench.training.spec import DEFAULT_SELECTIONS

    usual = {kind: [parse(registry, kind, text)] for kind, text in DEFAULT_SELECTIONS.items()}
    refuse_component_option(name, "VALUE", registry, usual)


def _component_text(registry: Registry, kind: Kind, name: str) -> str:
    from rlbench.plugin.selection import parse
    from rlbench.report.show import component_text

    component = parse(registry, kind, name).component if ":" in name else registry.find(kind, name)
    return component_text(component, columns())


def _run_text(name: str, plugins: tuple[str, ...], out: Path | None) -> str:
    from rlbench.grid import repeat
    from rlbench.grid.store import Store
    from rlbench.report.run import run_text

    record = repeat.find(name, Store(out or Path(flags.DEFAULT_OUT)))
    try:
        registry = load((*plugins, *repeat.here([record])))
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
