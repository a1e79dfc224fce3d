"""Docstrings as text for a terminal: cut into sections and wrapped, formulas and tables left whole.

A table that is wider than the terminal becomes a list of its rows.

Inline code stands between double backticks in a docstring and between single ones here. It is not
broken unless it is wider than the terminal. A paragraph that is nothing but code is a formula: it
has lines of its own, indented.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Sections = dict[str, list[list[str]]]

LISTS = ("raises", "metrics", "warns")
"""Sections of entries, ``name: text``."""

DESCRIPTION = "description"

_TITLE = re.compile(
    r"(Args|Arguments|Attributes|Differs|Example|Examples|Metrics|Note|Notes|Raises|Returns|See|"
    r"Warns|Yields):(?:\s+|$)"
)
_RULE = re.compile(r"\s*=+(\s+=+)+\s*")  # above, in and below a table
_FORMULA = re.compile(r"``([^`]+)``[.,;]?")
_NAMED = re.compile(r"(?:^|;\s+)``(\w+)``,\s+")  # in a sentence: ``a``, what; ``b``, what
_ENTRY = re.compile(r"([\w./*+-]+):\s+(.*)")
_CODE = re.compile(r"``(.+?)``")
_UNBROKEN = "\N{NO-BREAK SPACE}"


def sections(documentation: str) -> Sections:
    """Cut a Google-style docstring into its sections.

    Args:
        documentation: A docstring, cleaned of its indentation.

    Returns:
        Titles in lower case, with the paragraphs of each: "description" is all that has no title,
        "metrics" also what follows the word ``Metrics:`` inside of "returns". Arguments are left
        out, since options are listed with their ranges.
    """
    found: Sections = {}
    title = DESCRIPTION
    for block in _blocks(documentation):
        match = _TITLE.match(block[0])
        if match:
            title = match[1].lower()
            rest = textwrap.dedent("\n".join(block[1:])).splitlines()
            lines = [block[0][match.end() :], *rest] if block[0][match.end() :] else rest
        elif block[0][0].isspace() and title != DESCRIPTION:
            lines = textwrap.dedent("\n".join(block)).splitlines()
        else:
            title, lines = DESCRIPTION, block
        if lines:
            found.setdefault(title, []).append(lines)
    if "returns" in found:
        _take_metrics_out(found)
    for title in ("args", "arguments", "attributes"):
        found.pop(title, None)
    return found


def layout(title: str, blocks: Sequence[Sequence[str]], width: int) -> str:
    """Lay out one of the `sections`: its title, and its text below.

    Args:
        title: Decides whether the section is a list of entries.
        blocks: Paragraphs, each a list of lines.
        width: Columns to wrap to; tables that fit and examples are kept as they are.

    Returns:
        Text without a newline at the end; empty if there is none.
    """
    text = _entries(blocks, width) if title in LISTS else _text(blocks, width)
    return f"{title}\n{text}" if text else ""


def wrap(text: str, width: int, *, hang: int = 0) -> list[str]:
    """Wrap one paragraph; words, hyphens and inline code stay whole.

    Args:
        text: The paragraph, on any number of lines.
        width: Columns.
        hang: Indentation of all lines but the first.
    """

    def whole(code: re.Match[str]) -> str:
        fits = len(code[1]) + 2 + hang <= width
        return f"`{code[1].replace(' ', _UNBROKEN) if fits else code[1]}`"

    lines = textwrap.wrap(
        _CODE.sub(whole, " ".join(text.split())),
        width,
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_UNBROKEN, " ") for line in lines]


def two_columns(rows: Sequence[tuple[str, str]], width: int, left: int | None = None) -> str:
    """Lay out names and texts; a long name gets a line of its own.

    Args:
        rows: Pairs of a name and its text; each line of a text is wrapped by itself.
        width: Columns of both together.
        left: Columns of the names; none takes those of the longest, within reason.

    Returns:
        Indented text, without a newline at the end.
    """
    if not rows:
        return ""
    left = left or min(max(len(name) for name, _ in rows), 28)
    room = max(width - left - 4, 20)
    lines = []
    for name, text in rows:
        wrapped = [line for part in text.splitlines() for line in wrap(part, room)] or [""]
        if len(name) > left:
            lines.append(f"  {name}")
            name = ""  # noqa: PLW2901 - it has its own line already
        lines.append(f"  {name:<{left}}  {wrapped[0]}".rstrip())
        lines += [f"  {'':<{left}}  {line}" for line in wrapped[1:]]
    return "\n".join(lines)


def is_table(block: Sequence[str]) -> bool:
    """Whether a paragraph is a table between rules of equals signs."""
    return any(_RULE.fullmatch(line) for line in block)


def _blocks(documentation: str) -> Iterator[list[str]]:
    """What stands between blank lines."""
    block: list[str] = []
    for line in [*documentation.expandtabs().splitlines(), ""]:
        if line.strip():
            block.append(line.rstrip())
        elif block:
            yield block
            block = []


def _take_metrics_out(found: Sections) -> None:
    """Give metrics that are told with the returned value a section of their own."""
    kept: list[list[str]] = []
    for block in found["returns"]:
        text, word, metrics = "\n".join(block).partition("Metrics:")
        if word:
            found.setdefault("metrics", []).append(metrics.strip().split("\n"))
        if text.strip():
            kept.append(text.rstrip().split("\n"))
    found["returns"] = kept


def _entries(blocks: Sequence[Sequence[str]], width: int) -> str:
    """A section of entries in two columns; one of plain text as text."""
    sentence = " ".join(line.strip() for block in blocks for line in block)
    if _NAMED.match(sentence):
        parts = _NAMED.split(sentence)[1:]
        return two_columns(list(zip(parts[::2], parts[1::2], strict=True)), width)
    rows: list[tuple[str, str]] = []
    for line in (line for block in blocks for line in block):
        match = _ENTRY.fullmatch(line)
        if match:
            rows.append((match[1], match[2]))
        elif rows:
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line.strip()}")
        else:
            return _text(blocks, width)
    return two_columns(rows, width)


def _text(blocks: Sequence[Sequence[str]], width: int) -> str:
    """Paragraphs, indented; formulas that follow each other stand together."""
    text, above = "", ""
    for block in blocks:
        formula = _FORMULA.fullmatch(" ".join(line.strip() for line in block))
        if is_table(block):
            kind, lines = "table", _table(block, width - 2)
        elif block[0].startswith(">>>") or block[0][0].isspace():
            kind, lines = "verbatim", list(block)
        elif formula:
            kind, lines = "formula", _formula(formula[1], width - 4)
        else:
            kind, lines = "prose", _prose(block, width - 2)
        gap = "" if not text else "\n" if kind == above == "formula" else "\n\n"
        text, above = text + gap + textwrap.indent("\n".join(lines), "  "), kind
    return text


def _table(block: Sequence[str], width: int) -> list[str]:
    """As it is if it fits; else row by row, the first column before the others."""
    if max(map(len, block)) <= width:
        return [_CODE.sub(r"`\1`  ", line).rstrip() for line in block]
    rule = next(line for line in block if _RULE.fullmatch(line))
    starts = [column.start() for column in re.finditer("=+", rule)]
    spans = [slice(*span) for span in zip(starts, [*starts[1:], None], strict=True)]
    rows: list[list[str]] = []
    for line in block:
        cells = [line[span].strip() for span in spans]
        if _RULE.fullmatch(line):
            continue
        if cells[0]:
            rows.append(cells)
        elif rows:
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], cells, strict=True)]
    texts = [(first, "\n".join(filter(None, others))) for first, *others in rows]
    return textwrap.dedent(two_columns(texts, width + 2)).splitlines()


def _formula(code: str, width: int) -> list[str]:
    """One line as it stands; wrapped only where it is too wide."""
    lines = [code] if len(code) <= width else wrap(code, width, hang=4)
    return [f"  {line}" for line in lines]


def _prose(block: Sequence[str], width: int) -> list[str]:
    """A paragraph, or the items of a list."""
    items: list[str] = []
    for line in block:
        if line.lstrip().startswith("- ") or not items:
            items.append(line.strip())
        else:
            items[-1] += f" {line.strip()}"
    return [line for x in items for line in wrap(x, width, hang=2 * x.startswith("- "))]
