"""Where the command line meets a terminal: exit codes, streams and encodings."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any, TextIO

import click

from rlbench.errors import RlbenchError

if TYPE_CHECKING:
    from collections.abc import Callable

_INTERRUPTED = 130


class Commands(click.Group):
    """A group whose errors are one line, with rlbench's exit codes and no traceback."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run a command and exit the process, as click does, but with our errors."""
        invoke: Callable[..., Any] = super().main
        if not standalone_mode:
            return invoke(*args, standalone_mode=False, **extra)
        code: object
        try:
            code = invoke(*args, standalone_mode=False, **extra)
        except click.ClickException as error:
            context = getattr(error, "ctx", None)
            where = f" (see {context.command_path} --help)" if context else ""
            complain(f"{error.format_message().rstrip('.')}{where}")
            code = error.exit_code
        except RlbenchError as error:
            complain(str(error))
            code = error.exit_code
        except (KeyboardInterrupt, click.Abort):
            code = _INTERRUPTED
        except BrokenPipeError:
            _stop_writing()
            code = 0  # the reader has what it wanted
        sys.exit(code if isinstance(code, int) else 0)


def columns() -> int:
    """Width of the terminal; 80 where there is none."""
    return shutil.get_terminal_size().columns


def can_write(text: str) -> bool:
    """Whether the encoding of stdout has these characters."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def write_whatever_the_encoding() -> None:
    """Escape what an encoding does not have: an odd name must not cost a table."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def emit(text: str) -> None:
    """Write data to stdout; a reader that went away is no error."""
    try:
        _write(sys.stdout, text)
    except BrokenPipeError:
        _stop_writing()


def say(text: str) -> None:
    """Write one line to stderr, whoever listens."""
    with contextlib.suppress(BrokenPipeError):
        _write(sys.stderr, text)


def _write(stream: TextIO | None, text: str) -> None:
    """Write a line as the stream's encoding has it; click.echo would make ASCII streams UTF-8."""
    if stream is not None:  # None: the process was started with it closed
        stream.write(f"{text}\n")
        stream.flush()


def complain(text: str) -> None:
    """Say what went wrong, and who says so."""
    say(f"rlbench: {text}")


def _stop_writing() -> None:
    """Send what is still buffered nowhere, or Python complains about the pipe at its end."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
