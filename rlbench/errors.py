"""Every error that rlbench raises on purpose.

::

    RlbenchError                 a message for a person; never shown with a traceback
    ├── UsageError               what was asked can't be done: exit code 2, nothing was written
    ├── NothingSelected          nothing to show: exit code 3
    ├── PluginError              a plugin could not be loaded; names its distribution and version
    └── RunError                 one run can't go on; the others do
        ├── ComponentError       a component broke the contract of its kind; names its owner
        └── Diverged             the numbers of a run stopped being finite

A message says what was asked, what was found, whose it is and what to do. `UsageError` builds the
"did you mean" part, so that every unknown name reads alike.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Find the valid name that was probably meant.

    Names here are short, and a letter or two make another algorithm. So only a slip counts: nearly
    all letters, the same ones in another order (``gea``, ``cov_kl``), one wrong letter, or the
    beginning of one name alone. Case doesn't count.

    Args:
        name: The name as it was written.
        known: Every valid name.

    Returns:
        A valid name; None if none is near.
    """
    folded = {valid.lower(): valid for valid in known}
    written = name.lower()
    near = difflib.get_close_matches(written, folded, n=1, cutoff=0.75)
    near = near or [valid for valid in folded if sorted(valid) == sorted(written)]
    near = near or [valid for valid in folded if _one_letter_apart(valid, written)]
    if not near and len(written) > 1:
        begun = [valid for valid in folded if valid.startswith(written)]
        near = begun if len(begun) == 1 else []
    return folded[near[0]] if near else None


def _one_letter_apart(one: str, other: str) -> bool:
    long_enough = len(one) == len(other) > 2
    return long_enough and sum(a != b for a, b in zip(one, other, strict=True)) == 1


class RlbenchError(Exception):
    """Base of all errors with a message for the user."""

    exit_code = 1


class UsageError(RlbenchError):
    """What the user asked for does not exist or makes no sense."""

    exit_code = 2

    @classmethod
    def unknown(cls, what: str, name: str, known: Iterable[str], hint: str = "") -> UsageError:
        """Build the message for a name that nobody owns.

        Args:
            what: The kind of thing that was asked for, such as ``"estimator"``.
            name: The name as it was written.
            known: Every valid name.
            hint: What to do when no name is near, such as ``"see rlbench list estimator"``.

        Returns:
            The error, to be raised by the caller. It names the nearest valid name, or all of them
            when there are few and none is near.
        """
        names = sorted(set(known))
        near = nearest(name, names)
        message = f"unknown {what} {name!r}"
        if near:
            message += f"; did you mean {near!r}?"
        elif names and len(names) <= 40:
            message += f"; known: {', '.join(names)}"
        elif not names:
            message += "; there is none"
        if hint:
            message += f" ({hint})"
        return cls(message)


class NothingSelected(RlbenchError):  # noqa: N818 - it says what happened, as StopIteration does
    """There is no result, or no run, that fits what was asked."""

    exit_code = 3


class PluginError(RlbenchError):
    """A plugin could not be loaded or registered."""

    exit_code = 2


class RunError(RlbenchError):
    """A run can't go on; its row in the table says why."""

    status = "failed"


class ComponentError(RunError):
    """A component gave back something that its kind does not allow."""


class Diverged(RunError):  # noqa: N818 - the word that results and tables use
    """A loss, a gradient or a log-probability is no longer finite."""

    status = "diverged"
