"""A page as HTML: one file that loads nothing, and in which nothing runs but its own sorting."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rlbench.report.text.spelling import printable
from rlbench.version import __version__

if TYPE_CHECKING:
    from rlbench.report.page.page import Page

MARK = '<meta name="generator" content="rlbench report '
"""What a page of ours has in its head."""


def render(page: Page) -> str:
    """Write a page as HTML; the same page gives the same text."""
    script, style = _part("sort.js"), _part("style.css")
    images = " img-src data:;" if any("data:image/" in p.svg for p in page.pictures.drawn) else ""
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src 'unsafe-inline';{images} "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            policy=policy,
            mark=Markup(MARK),  # noqa: S704 - a constant
            version=__version__,
            script=Markup(script),  # noqa: S704 - our own file
            style=Markup(style),  # noqa: S704 - our own file
            svg=Markup,
        )
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("rlbench.report.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _shown(value: Any) -> Any:
    """Write a value so that it can't do anything: what is no letter is spelled out.

    Autoescaping leaves control characters, and those that turn the direction of the text round.
    """
    if value is None:
        raise TypeError("a page says nothing by None")
    return value if isinstance(value, Markup) else printable(str(value))


@cache
def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Name a script as a content security policy does."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
