"""Signals that end a grid: Ctrl-C, a system that shuts down, a terminal that closes."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def handled(handle: Callable[[], object]) -> Iterator[None]:
    """Call a function on every signal that asks for the end, as long as the block runs.

    Python allows handlers in the main thread only: elsewhere nothing changes. A SIGHUP that is
    ignored stays ignored, because that is what ``nohup`` is for.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    # A plain function: where a handler is replaced, Python writes it out with all that it is bound
    # to, which is half a minute for the queue of a large grid.
    def handler(*_: object) -> None:
        handle()

    before = {
        number: signal.signal(number, handler)
        for number in ENDING
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, old in before.items():
            if old is not None:  # None: installed by C code, which Python can't put back
                signal.signal(number, old)


@contextmanager
def raised() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first of them, as Python does for SIGINT alone.

    A second one changes nothing: what the first one has to clean up must come to its end.

    Raises:
        KeyboardInterrupt: There was a signal.
    """
    heard = False

    def interrupt() -> None:
        nonlocal heard
        if not heard:
            heard = True
            raise KeyboardInterrupt

    with handled(interrupt):
        yield


@contextmanager
def unheard(*, when: bool) -> Iterator[None]:
    """Let a second signal change nothing while what the first one left is shown.

    Args:
        when: Whether there was a first one; without it, nothing changes.
    """
    if not when:
        yield
        return
    with handled(lambda: None):
        yield
