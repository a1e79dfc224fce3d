"""Flags that several commands have, and what is read from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rlbench.report.terminal import Folder, Once, say
from rlbench.training.spec import DEFAULT_SELECTIONS

if TYPE_CHECKING:
    from rlbench.plugin.registry import Registry
    from rlbench.types import Kind

DEFAULT_OUT = "results/local"
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
            more = "Show only these." if selecting else f"[default: {DEFAULT_SELECTIONS[name]}]"
            command = click.option(
                flag,
                f"--{name}",
                multiple=True,
                metavar="NAME[:OPT=VAL,..]",
                help=f"{text}  {more}",
            )(command)
        return command

    return decorate


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
width = click.option(
    "--max-width",
    cls=Once,
    type=click.IntRange(min=0),
    metavar="N",
    help="Widest table, in columns (default: the terminal's; 0: no limit).",
)


def positive_seconds(
    _context: click.Context, _parameter: click.Parameter, value: float | None
) -> Any:
    """Accept a positive, finite number of seconds."""
    if value is not None and not (0 < value < math.inf):
        raise click.BadParameter(f"{value:g} is not a positive number of seconds.")
    return value


def load(plugins: tuple[str, ...]) -> Registry:
    """Load all plugins; those that can't be loaded cost one line each."""
    from rlbench.plugin import loading

    registry = loading.load(plugins)
    for problem in registry.problems:
        say(f"warning: {problem}")
    return registry
