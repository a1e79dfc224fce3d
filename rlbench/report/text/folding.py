"""Text in columns of a screen: how wide it is, and where it may be folded."""

from __future__ import annotations

import re

LEAST = 12  # columns that a folded text gets, however narrow the screen


def width_of(line: str) -> int:
    """Columns that a line takes on a terminal."""
    from unicodedata import combining, east_asian_width

    return sum(2 if east_asian_width(c) in "WF" else not combining(c) for c in line)


def paragraph(text: str, width: int) -> list[str]:
    """Break a text between words, and one that is wider than a line, a cell's name, at its ``+``.

    Args:
        text: One paragraph.
        width: Columns there are; a word that has no place to break may be wider.

    Returns:
        Lines, the second and later ones indented.
    """
    lines = [""]
    for word in text.split():
        wide = width_of(word) > width - 2
        pieces = re.findall(r"[^+,]*[+,]|[^+,]+", word) if wide else [word]
        for number, piece in enumerate(pieces):
            gap = " " if number == 0 and lines[-1].strip() else ""
            if lines[-1].strip() and width_of(lines[-1] + gap + piece) > width:
                lines.append("  ")
                gap = ""
            lines[-1] += gap + piece
    return lines


def fold(text: str, room: int) -> str:
    """Break a label where it is too long: after spaces and commas, else wherever it has to be.

    Args:
        text: One line.
        room: Columns there are; `LEAST` if it is less.

    Returns:
        Lines, the second and later ones indented; no character is lost but spaces at their ends.
    """
    room = max(room, LEAST)
    lines = [""]
    for piece in re.findall(r"[^ ,]*[ ,]+|[^ ,]+", text):
        if lines[-1].strip() and width_of(lines[-1] + piece.rstrip()) > room:
            lines.append("  ")
        for character in piece:
            if character != " " and width_of(lines[-1] + character) > room:
                lines.append("  ")
            lines[-1] += character
    return "\n".join(line.rstrip() for line in lines)
