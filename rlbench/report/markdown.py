"""Markdown as GitHub reads it: text that stays what it is."""

from __future__ import annotations

import re

FORMATS = ("github", "pipe")

# what would begin code, emphasis, a link, a tag or an entity; inside a word a _ does nothing
_ACTIVE = re.compile(
    r"""
    \\ (?= [!-/:-@\[-`{-~] )
    | [`*\[~]
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
