"""Flags that several commands have, and what is read from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rlbench.errors import UsageError
from rlbench.report.text.terminal import Folder, Once, say
from rlbench.training.spec import DEFAULT_SELECTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from rlbench.grid.request import Request
    from rlbench.plugin.registry import Registry
    from rlbench.types import Kind

DEFAULT_OUT = "results/local"
_LEVELS = (0.5, 0.999)
_Command = TypeVar("_Command", bound=Callable[..., Any])

_AXES: tuple[tuple[str, Kind, str], ...] = (
    ("-e", "estimator", "Advantage estimator, such as gae or gae:lam=0.9."),
    ("-l", "loss", "Policy loss, such as clip:eps=0.2,eps_high=0.28."),
    ("-k", "kl", "KL controller."),
    ("-t", "task", "Task."),
    ("-r", "reward", "What the policy is trained on."),
    ("-m", "model", "Policy and critic networks."),
)


def axes(*, selecting: bool) -> Callable[[_Command], _Command]:
    """Add ``-e`` to ``-m``, which repeat, to choose what runs or to select what is shown."""

    def decorate(command: _Command) -> _Command:
        for flag, name, text in reversed(_AXES):
            more = "Only these." if selecting else f"[default: {DEFAULT_SELECTIONS[name]}]"
            command = click.option(
                flag,
                f"--{name}",
                multiple=True,
                metavar="NAME[:OPT=VAL,..]",
                help=f"{text}  {more}",
            )(command)
        return command

    return decorate


def _positive(_context: click.Context, _parameter: click.Parameter, value: float | None) -> Any:
    """Accept a positive, finite difference."""
    if value is not None and not (0 < value < math.inf):
        raise click.BadParameter(f"{value:g} is not a positive difference.")
    return value


def _confidence(_context: click.Context, _parameter: click.Parameter, value: float) -> Any:
    """Accept a level of confidence."""
    low, high = _LEVELS
    if not low <= value <= high:  # also where it is not a number
        raise click.BadParameter(f"{value:g} is not in [{low:g}, {high:g}].")
    return value


def normalise(what_for: str = "") -> Callable[[_Command], _Command]:
    """Add ``--normalise``.

    Args:
        what_for: What stands behind its help, of a command in which it is not for everything.
    """
    return click.option(
        "--normalise",
        cls=Once,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Scores of each task that count as 0 and 1: task,low,high (csv or json)"
        + (f"; {what_for}." if what_for else "."),
    )


plugin = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE",
    help="Load a plugin from a file; repeatable.",
)
out = click.option(
    "-o",
    "--out",
    cls=Once,
    type=Folder(),
    help=f"Folder of results (default: {DEFAULT_OUT}).",
)
format_ = click.option(
    "--format",
    "format_",
    cls=Once,
    default="simple",
    show_default=True,
    help="Any tabulate format (github, latex, ...), or csv, tsv, json.",
)
metric = click.option(
    "--metric",
    cls=Once,
    default="score",
    show_default=True,
    metavar="NAME",
    help="What is compared: score, reward_mean, kl_nats, wall_s, ...",
)
direction = click.option(
    "--direction",
    cls=Once,
    type=click.Choice(["higher", "lower"]),
    help="Which way is better (default: what is usual for the metric).",
)
margin = click.option(
    "--margin",
    cls=Once,
    type=float,
    callback=_positive,
    metavar="DIFF",
    help="Differences below this count as none (default: no such claim).",
)
level = click.option(
    "--level",
    cls=Once,
    type=float,
    default=0.95,
    show_default=True,
    callback=_confidence,
    metavar="LEVEL",
    help="Confidence level.",
)
width = click.option(
    "--max-width",
    cls=Once,
    type=click.IntRange(min=0),
    metavar="N",
    help="Widest table, in columns (default: the terminal's; 0: no limit).",
)


file = click.argument("file", metavar="[GRID.toml]", required=False, type=str)
seeds = click.option(
    "-s",
    "--seeds",
    multiple=True,
    help="Seeds: 0-4 or 0,3,7; repeatable.  [default: 0-4]",
)
settings = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VAL[,VAL]",
    help="Trainer setting; repeatable (rlbench list setting).",
)


def grid(command: _Command) -> _Command:
    """Add what chooses the runs: an experiment file, axes, seeds, settings, plugins, a folder."""
    for decorate in (plugin, out, settings, seeds, axes(selecting=False), file):
        command = decorate(command)
    return command


def execution(command: _Command) -> _Command:
    """Add what says how to run; each is a key of experiment files too, with the same name."""
    options = (
        click.option("--track", multiple=True, metavar="NAME", help="Tracker; repeatable."),
        click.option("--engine", cls=Once, help="Where runs execute.  [default: local]"),
        click.option(
            "-j",
            "--workers",
            cls=Once,
            type=click.IntRange(min=1),
            metavar="N",
            help="Runs at the same time (default: cores).",
        ),
        click.option(
            "--timeout",
            cls=Once,
            type=float,
            callback=positive_seconds,
            metavar="SECONDS",
            help="The most a run may take.",
        ),
        click.option(
            "--retry", is_flag=True, help="Repeat runs that failed, diverged or timed out."
        ),
        click.option(
            "--retries",
            cls=Once,
            type=click.IntRange(min=0),
            metavar="N",
            help="Try a run that fails, times out or is killed up to N times more.  [default: 0]",
        ),
        click.option("--fail-fast", is_flag=True, help="Start nothing more after a failure."),
        click.option(
            "--max-failures",
            cls=Once,
            type=click.IntRange(min=1),
            metavar="N",
            help="Start nothing more after N failures.",
        ),
        click.option(
            "--checkpoint-every",
            cls=Once,
            type=click.IntRange(min=1),
            metavar="N",
            help="Save each run every N updates (10 ms, 2 MB); if killed, it goes on from there.",
        ),
    )
    for decorate in reversed(options):
        command = decorate(command)
    return command


def ask(given: Mapping[str, Any], note: Callable[[str], None] | None) -> Request:
    """Put together what `grid` and `execution` gave.

    Args:
        given: The values of these flags, by parameter.
        note: Hears of repeats that were dropped, and of what replaces something in a file.

    Raises:
        UsageError: Something is not valid.
        PluginError: A plugin can't be loaded.
    """
    from rlbench.grid.request import ask

    rest = dict(given)
    if rest["file"] == "":  # what an unset variable of a shell leaves
        raise UsageError("the name of the experiment file is empty")
    file, chosen, plugins = rest.pop("file"), rest.pop("seeds"), rest.pop("plugins")
    set_ = rest.pop("settings")
    kinds: dict[Kind, tuple[str, ...]] = {kind: rest.pop(kind) for _, kind, _ in _AXES}
    return ask(
        None if file is None else Path(file),
        load=load,
        axes=kinds,
        settings=set_,
        seeds=",".join(chosen) if chosen else None,
        plugins=plugins,
        how=rest,
        note=note,
    )


def positive_seconds(
    _context: click.Context, _parameter: click.Parameter, value: float | None
) -> Any:
    """Accept a positive, finite number of seconds."""
    if value is not None and not (0 < value < math.inf):
        raise click.BadParameter(f"{value:g} is not a positive number of seconds.")
    return value


def load(plugins: Sequence[str | Path | ModuleType]) -> Registry:
    """Load all plugins; those that can't be loaded cost one line each."""
    from rlbench.plugin import loading

    registry = loading.load(plugins)
    for problem in registry.problems:
        say(f"warning: {problem}")
    return registry
