"""Run other people's code without letting it end the program or write into its output."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from rlbench.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def guarded(doing: str = "") -> Iterator[None]:
    """Send prints to stderr, stay in the working folder, turn a failure into a PluginError.

    Whatever is raised counts as a failure, SystemExit and pytest's Skipped included: a plugin must
    not end the command. Only KeyboardInterrupt passes, because it is the user who speaks.

    Args:
        doing: What is being run, to be put before the cause: ``"rlbench_register_losses"``.

    Raises:
        PluginError: The cause in one line, chained to the original exception.
    """
    folder = Path.cwd()
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (PluginError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise PluginError(f"{doing}: {describe(error)}" if doing else describe(error)) from error
    finally:
        os.chdir(folder)  # results would land in another place than the one that was named


def describe(error: BaseException) -> str:
    """Say in one line what went wrong."""
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}, line {error.lineno}: {error.msg}"
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
