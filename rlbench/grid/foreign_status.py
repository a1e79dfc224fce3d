"""What other tools call the end of a run, such as wandb and MLflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.errors import UsageError
from rlbench.grid.reading import COMPLETE

if TYPE_CHECKING:
    from collections.abc import Sequence

_KNOWN = dict(zip(COMPLETE, COMPLETE, strict=True)) | {
    **dict.fromkeys(("finished", "completed", "complete", "success", "succeeded", "done"), "ok"),
    **dict.fromkeys(("crashed", "error", "errored", "failure", "oom"), "failed"),
    **dict.fromkeys(("timed out", "timed_out", "timedout"), "timeout"),
}
# the machine or a person stopped it, or nobody has yet: what it would have scored is not known
_NOT_ENDED = (
    *("running", "pending", "queued", "scheduled", "created"),
    *("killed", "interrupted", "preempted", "preempting", "canceled", "cancelled", "stopped"),
)


def status_of(text: str, where: str) -> str | None:
    """Translate a status; None where the run came to no end of its own.

    Args:
        text: As the file has it, in any case.
        where: File and row, for the message.

    Returns:
        One of `rlbench.grid.reading.COMPLETE`, or None.

    Raises:
        UsageError: Nobody knows it; names the nearest.
    """
    name = text.strip().lower()
    if name in _NOT_ENDED:
        return None
    if name not in _KNOWN:
        raise UsageError.unknown(f"status in {where}:", text.strip(), [*_KNOWN, *_NOT_ENDED])
    return _KNOWN[name]


def left_out(texts: Sequence[str]) -> list[str]:
    """Say what became of runs that came to no end; nothing if there are none."""
    if not texts:
        return []
    names = sorted(text.strip().lower() for text in texts)
    counts = ", ".join(f"{names.count(name):,} {name}" for name in dict.fromkeys(names))
    one = len(texts) == 1
    noun, own, which = ("run is", "its", "it") if one else ("runs are", "their", "they")
    return [
        f"{len(texts):,} {noun} left out, which came to no end of {own} own ({counts}): what "
        f"{which} would have scored is not known"
    ]
