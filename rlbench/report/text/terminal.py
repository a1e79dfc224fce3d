"""Where the command line meets a terminal: exit codes, streams and encodings."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from rlbench.errors import RlbenchError
from rlbench.report.text.spelling import printable

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
        except OSError as error:  # a full disk behind stdout, a path that the system refuses
            complain(str(error))
            code = 1
        if not _flush():
            code = code or 1
        sys.exit(code if isinstance(code, int) else 0)


class Once(click.Option):
    """A flag with one value, refused where it is given again instead of dropping the first."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        self._check = attributes.pop("callback", None)
        if attributes.get("default") is not None:
            attributes["default"] = (attributes["default"],)
        super().__init__(*args, **attributes | {"multiple": True})

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Take the one value out of those that were given."""
        given = super().process_value(ctx, value)
        if len(given) > 1:
            raise click.BadParameter(f"given {len(given)} times; give it once", ctx, self)
        one = given[0] if given else None
        return self._check(ctx, self, one) if self._check else one


class Folder(click.Path):
    """The path of a folder, which is never empty: that would be the current folder, unasked."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse empty text, what an unset variable of a shell leaves."""
        if value == "":
            self.fail("the name of the folder is empty", param, ctx)
        return super().convert(value, param, ctx)


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


def is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody looks at a stream; nobody does at one that is closed or not there."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def open_what_is_closed() -> None:
    """Send streams with which the process was started closed (``2>&-``) nowhere.

    Else the next file or socket that is opened gets their numbers, and what a library or a child
    process writes to its output ends in there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
            os.set_inheritable(opened, True)  # noqa: FBT003 - it has no keyword
        if getattr(sys, name) is None:
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115 - open to the end
            setattr(sys, name, stream)


def write_whatever_the_encoding() -> None:
    """Escape what an encoding does not have: an odd name must not cost a table."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def emit(text: str) -> None:
    """Write data to stdout; a reader that went away is no error.

    Raises:
        RlbenchError: It can't be written: the disk is full, say.
    """
    try:
        _write(sys.stdout, text)
    except BrokenPipeError:
        _stop_writing()
    except OSError as error:
        _stop_writing()
        raise RlbenchError(f"the output can't be written: {error}") from error


def say(text: str) -> None:
    """Write one line to stderr, whoever listens."""
    with contextlib.suppress(OSError):
        _write(sys.stderr, printable(text))


def _write(stream: TextIO | None, text: str) -> None:
    """Write a line as the stream's encoding has it; click.echo would make ASCII streams UTF-8."""
    if stream is not None and not stream.closed:
        stream.write(f"{text}\n")
        stream.flush()


def complain(text: str) -> None:
    """Say what went wrong, and who says so."""
    say(f"rlbench: {text}")


def _flush() -> bool:
    """Write what is still buffered, or Python complains at its end; False if that fails."""
    try:
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except BrokenPipeError:
        _stop_writing()
    except OSError as error:
        _stop_writing()
        complain(f"the output can't be written: {error}")
        return False
    return True


def _stop_writing() -> None:
    """Send what is still buffered nowhere, or Python complains about the pipe at its end."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
