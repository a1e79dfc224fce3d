"""What of a page is about a machine and no result, so that its author reads it before others do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlbench.report.page.failures import Failures
    from rlbench.report.page.provenance import Provenance

# an absolute path, of this system or another: two names at least, which no fraction has
_PATH = re.compile(r"(?<![\w./-])(~?/[\w.+-]+/[\w.+-]|[A-Za-z]:\\\\?\w)")


def of_page(failures: Failures, provenance: Provenance, others: Sequence[str] = ()) -> str:
    """Say in a sentence that a page has paths of a machine, or lines of logs.

    Args:
        failures: What it says of runs that failed.
        provenance: What it says of where results come from.
        others: Other texts that may hold a path.

    Returns:
        The sentence; empty if the page has neither.
    """
    logs = any(failure.log for failure in failures.detailed)
    paths = any(map(_PATH.search, [*_texts(failures, provenance), *others]))
    found = [*(["paths of a machine"] if paths else []), *(["log lines"] if logs else [])]
    if not found:
        return ""
    return f"The page holds {' and '.join(found)}: read it before you send it."


def _texts(failures: Failures, provenance: Provenance) -> Iterator[str]:
    for failure in failures.detailed:
        yield from (failure.error, failure.where, failure.command, *failure.log)
    for group in failures.groups:
        yield group.error
    for block in provenance.blocks:
        for fact in block.facts:
            yield from fact.values
