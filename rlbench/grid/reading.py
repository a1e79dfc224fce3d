"""What a run folder says, whoever wrote the files in it: nothing here hangs, and nothing raises."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import sys
from collections.abc import Mapping
from functools import lru_cache, partial
from types import NoneType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = {
    "score_start": "score_start",
    "score": "score",
    "reward_mean": "reward",
    "kl_nats": "kl",
    "entropy": "entropy",
    "length": "length",
    "tokens": "tokens",
    "wall_s": "wall_s",
}
"""Columns of numbers to keys of ``result.json``; columns ``reward`` and ``kl`` are components."""
NUMBERS = (*COLUMNS.values(), "floor")
"""What in ``result.json`` is a number; it may be null, or not be there."""
COMPLETE = ("ok", "failed", "diverged", "timeout")  # tried to the end; the rest runs again
STATUSES = (*COMPLETE, "killed", "interrupted")

_SORTS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_PIECE = 1 << 20  # bytes of a read
_SHARED = 8192  # cells of which it is remembered what their seeds have in common

# How a specification of ours begins. All seeds of a cell have the same text behind it.
_NUMBER = "(0|[1-9][0-9]{0,17})"
_HEAD = re.compile(
    rf'\{{\s*"schema": {_NUMBER},\s*"run_id": "([\w.-]+)",\s*"seed": {_NUMBER},(?=\s*")'
)


def read_bytes(path: Path | str) -> bytes:
    """Read a regular file.

    Raises:
        OSError: It can't be read, or is something else: reading a FIFO would wait for ever.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            sort = _SORTS.get(stat.S_IFMT(os.fstat(number).st_mode), "no file")
            raise OSError(f"it is {sort}, expected a file")
        return b"".join(iter(partial(os.read, number, _PIECE), b""))
    finally:
        os.close(number)


def what_lies(path: Path | str) -> str | None:
    """Say what is in the place of a file and is none; None if a file is there, or nothing.

    A link counts as what it points to, and one to nowhere as what it is.
    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - paths are text where thousands are read
    except OSError:
        return "a link to nowhere" if os.path.islink(path) else None  # noqa: PTH114 - as above
    return None if stat.S_ISREG(mode) else _SORTS.get(stat.S_IFMT(mode), "no file")


def read_object(path: Path | str) -> tuple[dict[str, Any] | None, str | None]:
    """Read a JSON object.

    Returns:
        The object, or None; and what is wrong, or None. Where there is no file, both are None.
        Objects that many files share may be one object in memory: they are not to be changed.
    """
    try:
        text = read_bytes(path).decode("utf-8")
        head = _HEAD.match(text)
        if head is not None:
            content: Any = {"schema": int(head[1]), "run_id": head[2], "seed": int(head[3])}
            content |= _load_shared("{" + text[head.end() :])
        else:
            content = _load(text)
    except FileNotFoundError:
        return None, None
    except (OSError, ValueError, RecursionError) as error:
        return None, f"{path} can't be read: {error}"
    if not isinstance(content, dict):
        return None, f"{path} holds {type(content).__name__}, expected an object"
    return content, None


def digest(path: Path | str) -> str | None:
    """Hash the bytes of a file, SHA-256 in hexadecimal; None if it can't be read."""
    try:
        return hashlib.sha256(read_bytes(path)).hexdigest()
    except OSError:
        return None


def fault_of_spec(spec: Mapping[str, Any]) -> str | None:
    """Say what makes a specification useless; None if nothing does."""
    seed = spec.get("seed")
    if isinstance(seed, bool) or not isinstance(seed, int):
        return f"has seed {seed!r}, expected a whole number"
    if (fault := _fault_of_parts(spec.get("components"), spec.get("settings"))) is not None:
        return fault
    for name in ("torch", "training"):
        if not isinstance(spec.get(name), (str, NoneType)):
            return f"has {name}={str(spec[name])[:40]!r}, expected text"
    return None


_judged: dict[int, tuple[object, object, str | None]] = {}  # by the id of what it holds


def _fault_of_parts(components: object, settings: object) -> str | None:
    """Judge what the seeds of a cell share, and only once while it is the same two objects."""
    known = _judged.get(id(components))
    if known is None or known[0] is not components or known[1] is not settings:
        fault = None
        if not isinstance(components, Mapping) or not all(map(_is_component, components.values())):
            fault = "does not say which components the run has"
        elif not _is_plain(settings):
            fault = "does not say which settings the run has"
        if len(_judged) >= _SHARED:
            _judged.clear()
        known = _judged[id(components)] = (components, settings, fault)
    return known[2]


def _is_component(found: object) -> bool:
    """Whether this describes a component, as far as it says anything."""
    return (
        isinstance(found, Mapping)
        and isinstance(found.get("label"), str)
        and all(_is_plain(found.get(name, {})) for name in ("options", "owner"))
        and isinstance(found.get("source"), (str, NoneType))
    )


def _is_plain(found: object) -> bool:
    """Whether this maps names to single values."""
    plain = (str, int, float, bool, NoneType)
    return isinstance(found, Mapping) and all(isinstance(value, plain) for value in found.values())


def fault_of_result(result: Mapping[str, Any]) -> str | None:
    """Say what makes a result useless; None if nothing does."""
    status = result.get("status")
    if status not in STATUSES:
        return f"has status {status!r}"
    for name in NUMBERS:
        value = result.get(name)
        if value is None:
            continue
        # an integer can be too large for a float
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not abs(value) <= sys.float_info.max:
            return f"has {name}={str(value)[:40]!r}, expected a finite number or null"
    tokens = result.get("tokens")
    if tokens is not None and (not isinstance(tokens, int) or abs(tokens) >= 2**63):
        return f"has tokens={str(tokens)[:40]!r}, expected a whole number or null"
    for name in ("provenance", "error", "phases"):
        if not isinstance(result.get(name), (Mapping, NoneType)):
            return f"has {name}={str(result[name])[:40]!r}, expected an object or null"
    return None


def describes_a_run(spec: object) -> bool:
    """Whether a specification, of whatever version, says what a row of a table needs."""
    return isinstance(spec, Mapping) and fault_of_spec(spec) is None


def _load(text: str) -> Any:
    return json.loads(text, parse_constant=_no_number, parse_float=_finite)


_load_shared = lru_cache(maxsize=_SHARED)(_load)


def _no_number(text: str) -> None:
    """Refuse the words that Python's reader takes and strict JSON has not."""
    raise ValueError(f"{text} is no number in JSON")


def _finite(text: str) -> float:
    """Read a number; 1e999 would be inf."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large for a number")
    return number
