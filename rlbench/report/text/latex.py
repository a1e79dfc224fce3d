"""LaTeX: text with its specials escaped once, and a table that compiles with booktabs."""

from __future__ import annotations

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


def escape(text: str) -> str:
    """Write text so that LaTeX sets it letter for letter."""
    return text.translate(_SPECIAL)


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
    caption, *notes = [escape(text) for text in paragraphs]
    below = "\n\n".join(notes)
    if not floats:
        parts = [r"% needs \usepackage{booktabs,longtable}", table, rf"\noindent {caption}", below]
        return "\n\n".join(part for part in parts if part)
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption}}}",
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
