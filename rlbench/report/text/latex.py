"""LaTeX: text with its specials escaped once, and a table that compiles with booktabs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMATS = ("latex", "latex_booktabs", "latex_longtable")

_SPECIAL = str.maketrans(
    {
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
        # in the oldest font encoding these three are other characters
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
    }
)


# advice on flags and places of files, of which a paper has no use
_OF_THE_COMMAND_LINE = (
    (re.compile(r"--[a-z-]+ names another; "), ""),
    (re.compile(r"; [^;.()]* without --[a-z-]+"), ""),
    (re.compile(r" \((?:with )?--[a-z-]+[^()]*\)"), ""),
    (re.compile(r" \([^()]*log\.txt\)"), ""),
)
_NUMBERS = re.compile(r"[\[(<]?[+-]?\d[\d.,]*\*?(?:, [+-]?\d[\d.,]*)?[\])]?(?: ± [\d.,]+)?")
_RANGE = re.compile(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)")


def escape(text: str) -> str:
    """Write text so that LaTeX sets it letter for letter."""
    # two hyphens would be a dash
    return text.translate(_SPECIAL).replace("--", "-{}-")


def escape_cell(text: str) -> str:
    """Write what stands in a table: a minus is one, and no hyphen."""
    if text in ("+", "-", "="):
        return f"${text}$"
    if found := _RANGE.fullmatch(text):
        return f"{found[1]}--{found[2]}"
    escaped = escape(text)
    return re.sub(r"([+-])(?=\d)", r"$\1$", escaped) if _NUMBERS.fullmatch(text) else escaped


def for_paper(text: str) -> str:
    """Leave out what speaks of the command line."""
    for advice, rest in _OF_THE_COMMAND_LINE:
        text = advice.sub(rest, text)
    return text


def strong(text: str) -> str:
    """Set in bold what is escaped already."""
    return rf"\textbf{{{text}}}"


def tabular(
    header: Sequence[str],
    texts: Sequence[Sequence[str]],
    right: Sequence[bool],
    environment: str = "tabular",
) -> str:
    """Lay out the table alone.

    Args:
        header: Names of the columns, escaped.
        texts: The rows, escaped.
        right: Which columns stand flush right.
        environment: ``tabular`` or ``longtable``.
    """
    columns = "".join("r" if flush else "l" for flush in right)
    lines = [rf"\begin{{{environment}}}{{{columns}}}", r"\toprule", _row(header), r"\midrule"]
    lines += [_row(row) for row in texts]
    return "\n".join([*lines, r"\bottomrule", rf"\end{{{environment}}}"])


def document(table: str, paragraphs: Sequence[str], *, floats: bool = True) -> str:
    r"""Put a table and what stands below it into what compiles with ``\usepackage{booktabs}``.

    Args:
        table: From `tabular`.
        paragraphs: What stands below; the first is the caption, none is escaped.
        floats: Whether to make a float of it; a longtable can't be one.
    """
    caption, *notes = [escape(for_paper(text)) for text in paragraphs]
    below = "\n\n".join(notes)
    if not floats:
        parts = [r"% needs \usepackage{booktabs,longtable}", table, rf"\noindent {caption}", below]
        return "\n\n".join(part for part in parts if part)
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption}}}",
        r"\label{tab:rlbench}",
        table,
    ]
    if below:
        lines += [r"\par\medskip", r"\begin{minipage}{\linewidth}", r"\footnotesize", below]
        lines += [r"\end{minipage}"]
    return "\n".join([*lines, r"\end{table}"])


def _row(texts: Sequence[str]) -> str:
    line = " & ".join(texts)
    # the \\ before it would take these for an option of its own
    protected = "{}" + line if line.startswith(("[", "*")) else line
    return rf"{protected} \\"
