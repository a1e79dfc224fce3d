"""Where a run puts its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class Recorder(Protocol):
    """Takes what a run tells of itself; the grid writes it to disk, tests keep it in memory."""

    base_folder: Path

    def update(self, row: Mapping[str, float | int | None]) -> None:
        """Take one row of ``metrics.csv``. The columns are the same in every row of a run."""
        ...

    def timing(self, row: Mapping[str, float]) -> None:
        """Take one row of ``timings.csv``: seconds by phase of one update."""
        ...

    def evaluation(self, row: Mapping[str, float | int | None]) -> None:
        """Take one row of ``evals.csv``."""
        ...

    def samples(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take a few prompts with completions, for people to look at."""
        ...

    def position(self) -> Mapping[str, tuple[int, str]]:
        """Tell how long each file is, in bytes, once all of it is on the disk."""
        ...

    def rewind(self, position: Mapping[str, tuple[int, str]]) -> None:
        """Go back to a position that an earlier process told; files it does not name go.

        Raises:
            ValueError: A file is shorter than that.
        """
        ...

    def progress(self, done: int, total: int, phase: str) -> None:
        """Hear how far the run is."""
        ...

    def log(self, text: str) -> None:
        """Take one line for ``log.txt``."""
        ...
