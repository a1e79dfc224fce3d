"""How a table is laid out, whatever is in it: columns, places of numbers, the prose below."""

from __future__ import annotations

import math
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from rlbench.report.text import html, latex, markdown, rst
from rlbench.report.text.folding import paragraph, width_of
from rlbench.report.text.spelling import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlbench.stats import Interval

MISSING = "-"
PROSE_WIDTH = 80
_LARGE = 1e12  # larger numbers would put a table out of shape

# what tabulate draws from letters alone, which read nothing in the text
_DRAWN = (
    "plain",
    "grid",
    "simple_grid",
    "rounded_grid",
    "heavy_grid",
    "mixed_grid",
    "double_grid",
    "fancy_grid",
    "outline",
    "simple_outline",
    "rounded_outline",
    "heavy_outline",
    "mixed_outline",
    "double_outline",
    "fancy_outline",
    "presto",
    "pretty",
    "psql",
)
FORMATS = ("simple", *markdown.FORMATS, *latex.FORMATS, "html", "rst", *_DRAWN)


def lay_out(
    header: list[str],
    texts: list[list[str]],
    right: list[bool],
    format: str,  # noqa: A002 - what everybody calls it, tabulate included
) -> str:
    """Lay out a table in any of `FORMATS`; ``latex`` is that of booktabs.

    Args:
        header: Names of the columns, as `escape` gives them.
        texts: The rows, a text a column, as `escape` gives them.
        right: Which columns stand flush right.
        format: The format.
    """
    if format == "simple":
        return simple(header, texts, right)
    if format in latex.FORMATS:
        environment = "longtable" if format == "latex_longtable" else "tabular"
        return latex.tabular(header, texts, right, environment)
    if format == "html":
        return html.table(header, texts, right)
    if format in markdown.FORMATS:
        return markdown.table(header, texts, right)
    from tabulate import tabulate

    return tabulate(
        texts,
        headers=header,
        tablefmt=format,
        disable_numparse=True,  # else a label 1e5 becomes 100000
        colalign=["right" if flush else "left" for flush in right] if texts else None,
    )


def page(
    header: list[str],
    texts: list[list[str]],
    right: list[bool],
    *,
    below: Sequence[str],
    format: str,  # noqa: A002 - as in `lay_out`
    width: int = PROSE_WIDTH,
) -> str:
    """Lay out a table and what stands below it, as one piece of a document.

    In ``latex`` it is a float and in ``html`` it has a caption, which is the first paragraph.

    Args:
        header: Names of the columns, as `escape` gives them.
        texts: The rows, a text a column, as `escape` gives them.
        right: Which columns stand flush right.
        below: Paragraphs, not escaped; at least one.
        format: The format.
        width: Columns of the prose, where it is wrapped.
    """
    below = [printable(text) for text in below]
    if format in latex.FORMATS:
        table = lay_out(header, texts, right, format)
        return latex.document(table, below, floats=format != "latex_longtable")
    if format == "html":
        caption, *notes = below
        parts = [html.table(header, texts, right, caption), html.paragraphs(notes)]
        return "\n".join(part for part in parts if part)
    return f"{lay_out(header, texts, right, format)}\n\n{prose(below, format, width)}"


def simple(header: list[str], texts: list[list[str]], right: list[bool]) -> str:
    """Lay out like tabulate's ``simple``, without its padding of headers, by width on screen.

    Args:
        header: Names of the columns.
        texts: The rows, a text a column; a text of several lines stays in its column.
        right: Which columns stand flush right.
    """
    split = [[text.split("\n") for text in row] for row in texts]
    columns = zip(header, *split, strict=True)
    widths = [max(map(width_of, [name, *chain(*cells)])) for name, *cells in columns]
    lines = [header, ["-" * width for width in widths]]
    for row in split:
        lines += [list(line) for line in zip_longest(*row, fillvalue="")]
    return "\n".join(
        "  ".join(
            " " * (width - width_of(text)) + text
            if flush
            else text + " " * (width - width_of(text))
            for text, width, flush in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def widest(text: str) -> int:
    """Columns that the longest line takes on a terminal."""
    return max(map(width_of, text.splitlines()))


def places_by_interval(intervals: Iterable[Interval | None]) -> int:
    """Places that intervals justify: two digits of the typical half width, at most 4 places.

    There are 2 at least where all numbers are below 10: on a scale from 0 to 1 they belong there.
    """
    known = [interval for interval in intervals if interval]
    halves = sorted(
        half
        for interval in known
        if (half := interval.half_width) is not None and math.isfinite(half)
    )
    if not halves:
        return 3
    least = 2 if max(abs(interval.mid) for interval in known) < 10 else 0
    return min(max(1 - math.floor(math.log10(halves[(len(halves) - 1) // 2])), least), 4)


def places_by_size(values: Sequence[float]) -> int:
    """Places for a column without intervals: three digits of its typical number, at most 3 places.

    Not of its largest: one outlier would take the digits of all others.
    """
    sizes = sorted(abs(value) for value in values if value)
    if not sizes:
        return 2
    return min(max(2 - math.floor(math.log10(sizes[(len(sizes) - 1) // 2])), 0), 3)


def fixed(value: float, places: int) -> str:
    """Write a number with so many places; zero has no sign."""
    if abs(value) >= _LARGE:
        return f"{value:.3g}"
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def is_markup(format: str) -> bool:  # noqa: A002 - as in `lay_out`
    """Whether a format is the source of a document, whose width on a screen does not matter."""
    return format in (*latex.FORMATS, *markdown.FORMATS, "html", "rst")


def escape(text: str, format: str) -> str:  # noqa: A002 - as in `lay_out`
    """Keep a cell one cell, letter for letter: no line breaks, nothing that the format reads."""
    text = printable(text)
    if format in latex.FORMATS:
        return latex.escape_cell(text)
    if format in markdown.FORMATS:
        return markdown.escape_cell(text)
    if format == "html":
        return html.escape(text)
    return rst.escape_cell(text) if format == "rst" else text


def has_strong(format: str) -> bool:  # noqa: A002 - as in `lay_out`
    """Whether `strong` can set text in bold in a format."""
    return format in (*latex.FORMATS, *markdown.FORMATS, "html")


def strong(text: str, format: str) -> str:  # noqa: A002 - as in `lay_out`
    """Set in bold what is escaped already; as it is where the format has no bold."""
    if format in latex.FORMATS:
        return latex.strong(text)
    if format in markdown.FORMATS:
        return markdown.strong(text)
    return html.strong(text) if format == "html" else text


def prose(paragraphs: Sequence[str], format: str, width: int = PROSE_WIDTH) -> str:  # noqa: A002 - as in `lay_out`
    """Set caption and notes so that they don't break the document the table goes into."""
    paragraphs = [printable(text) for text in paragraphs]
    if format in markdown.FORMATS:
        return "\n\n".join(markdown.escape(text) for text in paragraphs)
    if format == "rst":
        return "\n\n".join(rst.escape(text) for text in paragraphs)
    if format == "html":
        return html.paragraphs(paragraphs)
    lines = [line for text in paragraphs for line in paragraph(text, width)]
    return "\n".join(f"% {line}" if format in latex.FORMATS else line for line in lines)
