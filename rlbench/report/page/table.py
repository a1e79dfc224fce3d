"""A table of a page: what it says, and by what its rows are sorted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlbench.report.plots.panels import natural

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_ROWS = 100


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One field of a table.

    Attributes:
        text: What stands there, as it is; the page escapes it.
        key: What its row is sorted by in this column, in full precision; empty is always last.
        tone: Name of a style, such as ``better``; empty for none.
        strong: Whether it is in bold.
    """

    text: str
    key: str = ""
    tone: str = ""
    strong: bool = False


@dataclass(frozen=True, kw_only=True)
class Heading:
    """The head of a column.

    Attributes:
        text: Its name.
        number: Whether the column stands flush right.
        names_rows: Whether its fields are the names of their rows.
        falling: Whether the first click puts the largest on top.
        kept: Whether the column stays in sight where a narrow screen scrolls the table.
    """

    text: str
    number: bool = False
    names_rows: bool = False
    falling: bool = False
    kept: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table, whose rows can be sorted by any column.

    Attributes:
        title: What it is, for those who hear it.
        headings: Heads of the columns.
        rows: The rows; each has a field a column.
        below: Paragraphs on how to read it.
        cut: What is not shown, in words; empty if all is.
    """

    title: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Entry, ...], ...]
    below: tuple[str, ...] = ()
    cut: str = ""


def by_number(text: str, value: float | None, *, tone: str = "", strong: bool = False) -> Entry:
    """Make a field by whose number rows are sorted, in full precision; None comes last."""
    return Entry(text=text, key="" if value is None else repr(value), tone=tone, strong=strong)


def by_name(texts: Sequence[str]) -> list[Entry]:
    """Make the fields of a column of names, sorted naturally: 0.5 before 2e3, x2 before x10."""
    places = {text: place for place, text in enumerate(sorted(set(texts), key=natural))}
    return [Entry(text=text, key=str(places[text])) for text in texts]


def cut(number: int) -> str:
    """Say what a table of so many rows does not show; empty if it shows all."""
    if number <= MOST_ROWS:
        return ""
    return (
        f"These are the first {MOST_ROWS} of {number:,} cells, task by task, the best first. "
        "rlbench table shows all of them; -e, -l, -k, -t and --set choose some."
    )
