"""The parts of a page as they are made: said on stderr where that takes long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PATIENCE_S = 3.0


class Parts:
    """Says what is being made from the third second on: what is there at once needs no words.

    Args:
        say: Writes one line.
        clock: Seconds, from any start.
    """

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._clock = say, clock
        self._start = clock()

    def __call__(self, text: str) -> None:
        """Hear of a part before it is made."""
        if self._clock() - self._start >= _PATIENCE_S:
            self._say(text)
