"""The flag ``--tune``: each cell at its own value of a setting, chosen on half of the seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rlbench.report.text.terminal import Once, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.cells.cell import Cell
    from rlbench.report.compare.tuning import Tuning

option = click.option(
    "--tune",
    cls=Once,
    metavar="NAME[=VAL,VAL]",
    help="Choose each cell's best value (of lr, say, or loss.eps) on half of the seeds; compare "
    "on the rest.",
)


def tuned(found: Sequence[Cell], text: str) -> Tuning:
    """Choose a value for each cell; values that are not there are said on stderr.

    Args:
        found: The cells, of all values.
        text: The value of the flag.

    Raises:
        UsageError: It can't be read, or there is nothing to choose.
    """
    from rlbench.report.compare import tuning

    axis = tuning.parse_axis(text)
    made = tuning.tune(found, axis)
    absent = tuning.absent(axis, found)
    if absent:
        say(
            f"no result with {axis.name}={' or '.join(absent)}; there are: {', '.join(made.values)}"
        )
    return made
