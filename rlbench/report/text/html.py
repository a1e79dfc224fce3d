"""HTML: a table that says what its headers are the headers of."""

from __future__ import annotations

from html import escape as _escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_RIGHT = ' style="text-align: right"'


def escape(text: str) -> str:
    """Write text so that it is shown letter for letter."""
    return _escape(text)


def strong(text: str) -> str:
    """Set in bold what is escaped already."""
    return f"<strong>{text}</strong>"


def table(
    header: Sequence[str],
    texts: Sequence[Sequence[str]],
    right: Sequence[bool],
    caption: str = "",
) -> str:
    """Lay out a table; the columns before the first that stands flush right name the rows.

    Args:
        header: Names of the columns, escaped.
        texts: The rows, escaped.
        right: Which columns stand flush right.
        caption: Its caption, not escaped; none if empty.
    """
    naming = list(right).index(True) if any(right) else 1
    lines = ["<table>"]
    if caption:
        lines.append(f"<caption>{escape(caption)}</caption>")
    lines += ["<thead>", f"<tr>{_headers(header, right)}</tr>", "</thead>", "<tbody>"]
    for row in texts:
        cells = "".join(
            f'<th scope="row">{text}</th>'
            if place < naming
            else f"<td{_RIGHT if flush else ''}>{text}</td>"
            for place, (text, flush) in enumerate(zip(row, right, strict=True))
        )
        lines.append(f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</tbody>", "</table>"])


def paragraphs(texts: Sequence[str]) -> str:
    """Write prose, a paragraph each."""
    return "\n".join(f"<p>{escape(text)}</p>" for text in texts)


def _headers(header: Sequence[str], right: Sequence[bool]) -> str:
    return "".join(
        f'<th scope="col"{_RIGHT if flush else ""}>{name}</th>'
        for name, flush in zip(header, right, strict=True)
    )
