"""Markdown as GitHub reads it: text that stays what it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlbench.report.text.folding import width_of

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMATS = ("github", "pipe")

# what would begin code, emphasis, a link, a formula, a tag or an entity; in a word a _ is itself
_ACTIVE = re.compile(
    r"""
    \\ (?= [!-/:-@\[-`{-~] )
    | [`*\[~$]
    | < (?= [A-Za-z/!?] )
    | & (?= \#? \w+ ; )
    | (?<! [^\W_] ) _
    | _ (?! [^\W_] )
    """,
    re.VERBOSE,
)


def escape(text: str) -> str:
    """Write text so that it is shown letter for letter, outside of tables."""
    return _ACTIVE.sub(lambda found: "\\" + found[0], text)


def escape_cell(text: str) -> str:
    """Write text so that it is shown letter for letter, and stays one cell."""
    return escape(text).replace("|", "\\|")


def strong(text: str) -> str:
    """Set in bold what is escaped already."""
    return f"**{text}**"


def table(header: Sequence[str], texts: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Lay out a table whose source lines up on a screen, wide characters included.

    Args:
        header: Names of the columns, escaped.
        texts: The rows, escaped.
        right: Which columns stand flush right.
    """
    widths = [max(3, *map(width_of, column)) for column in zip(header, *texts, strict=True)]
    rules = [
        "-" * (width - 1) + ":" if flush else "-" * width
        for width, flush in zip(widths, right, strict=True)
    ]
    lines = [_line(header, widths, right), _line(rules, widths, right)]
    return "\n".join(lines + [_line(row, widths, right) for row in texts])


def _line(texts: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cells = []
    for text, width, flush in zip(texts, widths, right, strict=True):
        padding = " " * (width - width_of(text))
        cells.append(padding + text if flush else text + padding)
    return f"| {' | '.join(cells)} |"
