"""Read what a Google-style docstring says about each argument."""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(r"(Args|Arguments|Attributes|Keyword Args|Keyword Arguments):\s*")
_ENTRY = re.compile(r"(\w+)(?:\s*\([^)]*\))?:\s*(.*)")


def descriptions(docstring: str | None) -> dict[str, str]:
    """Collect the entries of the sections Args and Attributes.

    Args:
        docstring: As it stands in the source; None counts as empty.

    Returns:
        Name to description; one line, however many it has in the source.
    """
    found: dict[str, list[str]] = {}
    entry: list[str] = []
    section: int | None = None  # indentation of the section's header
    indent: int | None = None  # indentation of the section's entries
    for line in inspect.cleandoc(docstring or "").splitlines():
        text = line.strip()
        depth = len(line) - len(line.lstrip())
        if not text:
            continue
        if section is None or depth <= section:
            section = depth if _SECTION.fullmatch(text) else None
            indent = None
            continue
        indent = depth if indent is None else indent
        match = _ENTRY.fullmatch(text) if depth == indent else None
        if match:
            entry = found.setdefault(match[1], [])
            text = match[2]
        entry.append(text)
    return {name: " ".join(filter(None, lines)) for name, lines in found.items()}
