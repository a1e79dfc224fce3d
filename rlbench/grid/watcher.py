"""Who hears what happens while a grid runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlbench.grid.attempt import Planned


class Watcher(Protocol):
    """Shows what happens."""

    def begin(self, todo: Sequence[Planned], done: int, failed: int) -> None:
        """Called once: the runs to do, and how many are complete already, and failed at that."""
        ...

    def started(self, run: Planned) -> None:
        """A run has a process."""
        ...

    def progress(self, run: Planned, done: int, total: int, phase: str) -> None:
        """A run has come so far."""
        ...

    def waiting(self, run: Planned) -> None:
        """Another process is doing a run; its result is taken over when it is there."""
        ...

    def again(self, run: Planned, result: Mapping[str, Any]) -> None:
        """A run did not end well, and is tried again; ``result`` as in `ended`."""
        ...

    def ended(self, run: Planned, result: Mapping[str, Any]) -> None:
        """A run ended; ``result`` has ``status`` and ``error``, as in ``result.json``."""
        ...

    def renamed(self, runs: Sequence[Planned], files: Sequence[str]) -> None:
        """Runs are not started: their sources, in ``files`` if known, changed since the plan."""
        ...

    def end(self) -> None:
        """Called once, also after an error."""
        ...


class Silent:
    """A watcher that shows nothing; a base for those that show only some of it."""

    def begin(self, todo: Sequence[Planned], done: int, failed: int) -> None:
        """Show nothing."""

    def started(self, run: Planned) -> None:
        """Show nothing."""

    def progress(self, run: Planned, done: int, total: int, phase: str) -> None:
        """Show nothing."""

    def waiting(self, run: Planned) -> None:
        """Show nothing."""

    def again(self, run: Planned, result: Mapping[str, Any]) -> None:
        """Show nothing."""

    def ended(self, run: Planned, result: Mapping[str, Any]) -> None:
        """Show nothing."""

    def renamed(self, runs: Sequence[Planned], files: Sequence[str]) -> None:
        """Show nothing."""

    def end(self) -> None:
        """Show nothing."""
