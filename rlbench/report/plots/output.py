"""Figures as files and as parts of a page: the same bytes on every call."""

from __future__ import annotations

import hashlib
import html
import io
import os
import re
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected, UsageError, nearest
from rlbench.report.plots import lettering
from rlbench.report.plots.style import plain
from rlbench.report.text.whole_file import in_one_step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
DPI = 200
_MARK = "rlbench plot"  # in every file, so that another's is not overwritten
_FONTS = "DejaVu Sans, Verdana, sans-serif"  # Verdana is as wide, where DejaVu is not installed


def check_path(path: Path, *, force: bool = False) -> None:
    """Refuse a file that can't or must not be written, before anything is drawn.

    Raises:
        UsageError: Its ending is none of `FORMATS`, it is a folder or its folder is not there, or
            it holds what is no plot of rlbench and ``force`` is not given.
    """
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        near = nearest(ending, FORMATS) if ending else None
        meant = f"; did you mean .{near}?" if near else ""
        expected = ", ".join(f".{name}" for name in FORMATS)
        raise UsageError(f"{path}: expected a name that ends in {expected}{meant}")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"{path}: the folder {path.parent} is not writable")
    if path.exists() and not force and not _is_ours(path):
        raise UsageError(f"{path} is there already and no plot of rlbench; --force overwrites it")


@contextmanager
def that_fits() -> Iterator[None]:
    """Draw what an axis can hold and a page has room for.

    Raises:
        NothingSelected: Numbers are too large for an axis, or names leave no room for one.
    """
    with warnings.catch_warnings():
        for message in ("overflow encountered", "invalid value encountered", "divide by zero"):
            warnings.filterwarnings("error", message, RuntimeWarning)
        warnings.filterwarnings("error", "constrained_layout not applied", UserWarning)
        try:
            yield
        except (OverflowError, RuntimeWarning) as error:
            raise NothingSelected(
                "its numbers are too large for an axis; use a larger unit"
            ) from error
        except UserWarning as warning:
            raise NothingSelected(
                "its names and numbers leave no room for axes; give a larger --width, or select "
                "some"
            ) from warning


def settle(figure: Figure) -> None:
    """Lay a figure out for good, so that all files of it are alike, whichever is written first.

    Twice: ticks depend on the size of the axes, and that on the width of the ticks' numbers.
    """
    engine = figure.get_layout_engine()
    if engine is None:
        return
    with _spelled_out(figure):
        engine.execute(figure)
        engine.execute(figure)
    figure.set_layout_engine("none")


def save(figure: Figure, path: Path, *, force: bool = False) -> None:
    """Write a figure to a file, in the format of its ending; the file appears in one step.

    A plot that rlbench wrote there before is overwritten.

    Args:
        figure: What `draw` made.
        path: Ends in .png (200 dots an inch), .svg or .pdf.
        force: Overwrite whatever is there.

    Raises:
        UsageError: See `check_path`.
        RlbenchError: It can't be written; the disk is full, say. What was there before stays.
    """
    check_path(path, force=force)
    content = _content(figure, path.suffix.lower().removeprefix("."))
    with in_one_step(path) as partial:
        partial.write_bytes(content)


def as_svg(figure: Figure) -> str:
    """Write a figure as an ``<svg>`` element that can stand in a page beside others.

    Text is text, in DejaVu Sans or what is like it. Ids begin with a hash of the figure, so that
    two figures of one page share none unless they are the same. Nothing in it runs or loads.
    """
    buffer = io.StringIO()
    with plain():
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=nothing, dpi=DPI)
    text = buffer.getvalue()
    text = text[text.index("<svg") :].rstrip()
    text = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", text, count=1, flags=re.DOTALL)
    says = html.escape(str(figure.get_label()), quote=True)
    attributes = 'style="stroke-linejoin: round; stroke-linecap: butt" role="img"'
    text = text.replace("<svg ", f'<svg {attributes} aria-label="{says}" ', 1)
    text = text.replace(f"'{lettering.FAMILY}'", _FONTS)
    text = re.sub(r">\s+<", "><", text)  # no text in a figure is only spaces
    return _with_own_ids(re.sub(r' d="[^"]+"', _shortened, text))


def _content(figure: Figure, ending: str) -> bytes:
    if ending == "svg":
        text = as_svg(figure)
        return f'<?xml version="1.0" encoding="utf-8"?>\n<!-- {_MARK} -->\n{text}\n'.encode()
    buffer = io.BytesIO()
    about = {"Software": _MARK} if ending == "png" else {"Creator": _MARK, "CreationDate": None}
    with plain(), _spelled_out(figure):
        figure.savefig(buffer, format=ending, dpi=DPI, metadata=about)
    return buffer.getvalue()


def _shortened(path: re.Match[str]) -> str:
    """Write a path in hundredths of a point, on one line."""
    one_line = " ".join(path[0].split())
    return " " + re.sub(r"(\.\d\d)\d+", r"\1", one_line).replace(' "', '"')


def _with_own_ids(text: str) -> str:
    """Drop ids that nothing refers to, and put a prefix before the rest."""
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    prefix = f"p{hashlib.sha256(text.encode()).hexdigest()[:8]}-"

    def rename(found: re.Match[str]) -> str:
        return f' id="{prefix}{found[1]}"' if found[1] in used else ""

    text = re.sub(r' id="([^"]*)"', rename, text)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}", text)


@contextmanager
def _spelled_out(figure: Figure) -> Iterator[None]:
    """Have no character in a figure that its font has not: it would be an empty box."""
    from matplotlib.text import Text

    before = []
    for text in figure.findobj(Text):
        was: str = text.get_text()
        now = lettering.spelled_out(was)
        if now != was:
            before.append((text, was))
            text.set_text(now)
    try:
        yield
    finally:
        for text, was in before:
            text.set_text(was)


def _is_ours(path: Path) -> bool:
    """Whether a file has the mark that `save` leaves, or nothing in it."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    return not content or _MARK.encode() in content
