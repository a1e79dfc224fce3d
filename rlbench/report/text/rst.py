"""reStructuredText, as docutils and Sphinx read it: text that stays what it is."""

from __future__ import annotations

import re

# what would begin emphasis, a literal, a role, a reference or a substitution
_ACTIVE = re.compile(r"[\\`*|:]|_(?![^\W_])|@(?=\w)")
# at the start of a line: what would begin a list, a field, an option or a comment
_BLOCK = re.compile(r"[^\w(]|\w+[.)](\s|$)|\(\w+\)(\s|$)|$")


def escape(text: str) -> str:
    """Write text so that it is shown letter for letter, as a paragraph."""
    escaped = _ACTIVE.sub(lambda found: f"\\{found[0]}", text)
    # a backslash before a space is nothing, and a paragraph may begin with it
    return f"\\ {escaped}" if _BLOCK.match(escaped) and not escaped.startswith("- ") else escaped


def escape_cell(text: str) -> str:
    """Write text so that it is shown letter for letter in a table; an empty one is a cell, too."""
    escaped = escape(text)
    return f"\\ {escaped}" if escaped.startswith("- ") or not escaped else escaped
