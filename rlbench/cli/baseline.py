"""The value of ``--baseline``: labels as in a table, or the flags that chose the cell."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from rlbench.cli import flags
from rlbench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.cells.cell import Cell


def baselines(shown: Sequence[Cell], text: str | None, plugins: tuple[str, ...]) -> dict[str, Cell]:
    """Find the baseline of each task, given by labels, by flags or not at all."""
    from rlbench.report.cells import baseline

    if text is None:
        return baseline.only_pair(shown)
    wanted = _flags_in(text) if text.lstrip().startswith("-") else text
    return baseline.find(shown, wanted, lambda: flags.load(plugins))


@click.command(add_help_option=False)
@flags.axes(selecting=True)
@click.option("-a", "--algorithm", multiple=True)
@click.option("--set", "settings", multiple=True)
def _one_cell(**_given: object) -> None:
    """Read the flags inside the value of --baseline; never invoked."""


def _flags_in(text: str) -> list[tuple[str | None, str]]:
    """Read ``-e group --set lr=0.001`` as columns and what they hold."""
    try:
        given = _one_cell.make_context("rlbench compare", shlex.split(text)).params
    except (click.ClickException, ValueError) as error:
        why = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise UsageError(f"--baseline {text!r}: {why}") from error
    settings = given.pop("settings")
    wishes: list[tuple[str | None, str]] = [
        (kind, value) for kind, values in given.items() for value in values
    ]
    for setting in settings:
        name, _, value = setting.partition("=")
        wishes.append((name.strip(), value.strip()))
    return wishes
