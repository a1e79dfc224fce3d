"""Text in figures: how wide it is, where it may be broken, and which characters fonts have."""

from __future__ import annotations

import re
from functools import lru_cache

FAMILY = "DejaVu Sans"


@lru_cache(maxsize=4096)
def width_of(text: str, size: float) -> float:
    """Measure a line, as `spelled_out` writes it.

    Args:
        text: One line.
        size: Points.

    Returns:
        Inches.
    """
    font = _font()
    font.set_size(size, 72)
    font.set_text(spelled_out(text), 0.0)
    width: float = font.get_width_height()[0]
    return width / 64 / 72


def wrap(text: str, width: float, size: float) -> list[str]:
    """Break text into lines; no character is lost but spaces at breaks.

    Args:
        text: Its own line breaks stay.
        width: Inches.
        size: Points.
    """
    return [
        line
        for paragraph in text.split("\n")
        if paragraph
        for line in _filled(re.findall(r"\S+\s*", paragraph), width, size)
    ]


def fold(label: str, width: float, size: float) -> str:
    """Break a label where it is too wide: behind plus, colon, comma or space, else anywhere."""
    pieces = re.findall(r"[^+:, ]*[+:, ]+|[^+:, ]+", label)
    return "\n".join(_filled(pieces, width, size))


def spelled_out(text: str) -> str:
    r"""Write ``\u4e2d`` for each character that the font has not."""
    return "".join(c if has(c) else c.encode("unicode_escape").decode() for c in text)


@lru_cache(maxsize=4096)
def has(character: str) -> bool:
    """Whether the font has a character; a line break counts as one that it has."""
    return character == "\n" or _font().get_char_index(ord(character)) != 0


def _filled(pieces: list[str], width: float, size: float) -> list[str]:
    lines = [""]
    for piece in pieces:
        if lines[-1] and width_of((lines[-1] + piece).rstrip(), size) > width:
            lines.append("")
        if width_of(piece.rstrip(), size) <= width:
            lines[-1] += piece
            continue
        for character in piece:
            if lines[-1] and width_of(lines[-1] + character, size) > width:
                lines.append("")
            lines[-1] += character
    return [line.rstrip() for line in lines]


@lru_cache(maxsize=1)
def _font():  # type: ignore[no-untyped-def]  # matplotlib's font object has no public type
    from matplotlib.font_manager import findfont, get_font

    return get_font(findfont(FAMILY))
