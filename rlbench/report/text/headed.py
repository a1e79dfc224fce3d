"""A table of a terminal whose rows stand under headings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.report.text import layout
from rlbench.report.text.folding import fold
from rlbench.report.text.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = tuple[str, str, list[str]]  # heading, name, and the texts of the other columns


def headed(rows: Sequence[Row], header: list[str], right: list[bool], width: int) -> str:
    """Lay out rows; each heading takes a line of its own, and what is below it stands in.

    Args:
        rows: At least one; rows of one heading follow each other.
        header: Names of the columns, the first one that of the names.
        right: Which columns stand flush right.
        width: The most columns of the terminal: names and headings are folded to fit.
    """
    numbers = [texts for _, _, texts in rows]
    room = width - layout.widest(layout.simple(header[1:], numbers, right[1:])) - 4
    names = [fold(printable(name), room) for _, name, _ in rows]
    texts = [
        [f"  {name}".replace("\n", "\n  "), *row] for name, row in zip(names, numbers, strict=True)
    ]
    head, rule, *lines = layout.simple(header, texts, right).split("\n")
    done = [head, rule]
    before = None
    for (heading, _, _), name in zip(rows, names, strict=True):
        if heading != before:
            done.append(fold(printable(heading), width))
            before = heading
        height = name.count("\n") + 1
        done += lines[:height]
        lines = lines[height:]
    return "\n".join(done)
