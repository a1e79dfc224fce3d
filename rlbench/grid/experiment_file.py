"""Experiment files: TOML in the words of the flags, with axes that move together and exclusions.

::

    out = "results/night"
    seeds = "0-4"                                # or [0, 3, 7]
    plugins = ["my_loss.py"]

    [axes]
    estimator = ["group", "gae:lam=0.9"]
    loss = ["clip", {name = "clip", eps = 0.1}]

    [settings]
    lr = [3e-4, 1e-3]                            # a list is an axis
    updates = 60

    [[zip]]                                      # first with first, second with second
    kl = ["none", "fixed"]
    entropy_coef = [0.01, 0.0]

    [[exclude]]                                  # cells that match all of these
    estimator = "gae"                            # every gae; gae:lam=0.9 means those alone
    lr = 1e-3

Paths, ``out`` and those in ``plugins``, start at the folder of the file. Whatever is not understood
is refused, with its place and the nearest name.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlbench.errors import UsageError
from rlbench.plugin.option import Option
from rlbench.training import elsewhere
from rlbench.training.settings import Settings
from rlbench.training.spec import DEFAULT_SELECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlbench.plugin.option import Value

HOW = (
    Option(name="workers", type="int", default=None, interval="[1, inf)"),
    Option(name="timeout", type="float", default=None, interval="(0, inf)"),
    Option(name="retry", type="bool", default=False),
    Option(name="retries", type="int", default=0, interval="[0, inf)"),
    Option(name="fail_fast", type="bool", default=False),
    Option(name="max_failures", type="int", default=None, interval="[1, inf)"),
    Option(name="checkpoint_every", type="int", default=None, interval="[1, inf)"),
    Option(name="verify", type="int", default=None, interval="[1, inf)"),
)
"""How to run: what has one value and no influence on the numbers."""
TEXTS = ("out", "engine")
LISTS = ("track", "plugins")
SECTIONS = ("axes", "settings", "zip", "exclude")
TOP = ("seeds", *TEXTS, *LISTS, *(option.name for option in HOW))


class UnknownKey(UsageError):  # noqa: N818 - its base names what kind of error it is
    """A key that nobody knows where it stands.

    Attributes:
        path: The file.
        key: The key as it stands in the file, with its section.
        name: The key alone.
        value: What it was to be, or the first of a list.
    """

    def __init__(self, message: str, path: Path, key: str, name: str, value: object) -> None:
        super().__init__(message)
        self.path, self.key, self.name = path, key, name
        self.value = value[0] if isinstance(value, list) and value else value


@dataclass(frozen=True, kw_only=True)
class ExperimentFile:
    """What an experiment file says, its structure checked and its values as written.

    Attributes:
        path: The file.
        axes: For each kind, the values of its axis.
        settings: For each setting, the values of its axis; names are not checked yet.
        zips: For each ``[[zip]]``, lists of one length by kind or setting.
        excludes: For each ``[[exclude]]``, what is excluded by kind or setting.
        seeds: The seeds; None if the file says nothing.
        how: What else the file says: ``out`` and ``plugins``, as paths from the working folder,
            ``track``, ``engine`` and the names of `HOW`, in canonical form.
    """

    path: Path
    axes: Mapping[str, list[Any]]
    settings: Mapping[str, list[Any]]
    zips: list[Mapping[str, list[Any]]]
    excludes: list[Mapping[str, list[Any]]]
    seeds: str | list[Any] | None
    how: Mapping[str, Any]


def read(path: Path) -> ExperimentFile:
    """Read an experiment file.

    Raises:
        UsageError: It is not there, is no TOML, or holds a key that nobody knows or a value of the
            wrong type. The message names the file with the line or the key.
    """
    content = _parse(path)
    for name in content:
        if name not in (*TOP, *SECTIONS):
            raise _unknown(path, name, content[name], "", (*TOP, *SECTIONS))
    axes = _table(path, content, "axes")
    for kind in axes:
        if kind not in DEFAULT_SELECTIONS:
            raise _unknown(path, kind, axes[kind], "axes", tuple(DEFAULT_SELECTIONS))
    settings = _table(path, content, "settings")
    for name in settings:
        if name in (*TOP, *DEFAULT_SELECTIONS) and not isinstance(settings[name], dict):
            raise _unknown(path, name, settings[name], "settings", ())
    zips = [
        _zip(path, place, table, {*axes, *settings})
        for place, table in _tables(path, content, "zip")
    ]
    for place, table in _tables(path, content, "exclude"):
        _check_names(path, place, table)
    _refuse_repeats(path, zips)
    return ExperimentFile(
        path=path,
        axes={kind: _values(path, f"axes.{kind}", value) for kind, value in axes.items()},
        settings={
            name: _values(path, f"settings.{name}", value)
            for name, value in _flat(settings).items()
        },
        zips=zips,
        excludes=[
            {name: _values(path, f"{place}.{name}", value) for name, value in table.items()}
            for place, table in _tables(path, content, "exclude")
        ],
        seeds=_seeds(path, content),
        how=_how(path, content),
    )


@contextmanager
def at(path: Path, key: str) -> Iterator[None]:
    """Name the file and the key in the message of a UsageError."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{path}: {key}: {error}") from error


def _parse(path: Path) -> dict[str, Any]:
    """Read TOML; a byte order mark and Windows line ends are fine."""
    try:
        if not path.is_file() and (path.is_dir() or not path.exists()):
            raise _absent(path)
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8; save it as UTF-8") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: can't be read: {reason}") from error
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise UsageError(f"{path}: its lists or tables are nested too deeply") from error
    except ValueError as error:  # a TOMLDecodeError, or a number too long for Python
        message, _, place = str(error).partition(" (at ")
        line = re.match(r"line (\d+), column (\d+)", place)
        number = line[1] if line else len(text.splitlines()) or 1  # "at end of document"
        where = f"{path}:{number}" if place else str(path)
        column = f" (column {line[2]})" if line else ""
        raise UsageError(f"{where}: no valid TOML: {message}{column}") from error


def _absent(path: Path) -> UsageError:
    """Build the message for a file that is not there."""
    if path.is_dir():
        return UsageError(f"{path} is a folder, expected an experiment file such as grid.toml")
    try:
        there = sorted(file.name for file in path.parent.iterdir() if file.is_file())
    except OSError:
        return UsageError(f"there is no experiment file {str(path)!r}, nor a folder {path.parent}")
    near = difflib.get_close_matches(path.name, there, n=1) or [
        name for name in there if name.endswith(".toml")
    ]
    hint = f"; did you mean {str(path.parent / near[0])!r}?" if near else ""
    return UsageError(f"there is no experiment file {str(path)!r}{hint}")


def _unknown(
    path: Path, name: str, value: object, section: str, known: tuple[str, ...]
) -> UnknownKey:
    """Build the error for a key that is not known where it stands."""
    key = f"{section}.{_key(name)}" if section else _key(name)
    return UnknownKey(f"{path}: {_what_is_meant(name, key, known)}", path, key, name, value)


def _what_is_meant(name: str, key: str, known: tuple[str, ...]) -> str:
    """Say where a key belongs, or what its author may have meant."""
    settings = tuple(option.name for option in Settings.options())
    homes = {
        "above the first [section]": TOP,
        "under [axes]": tuple(DEFAULT_SELECTIONS),
        "under [settings]": settings,
    }
    homes_of = {other: home for home, names in homes.items() for other in names}
    if name in homes_of and name not in known:
        return f"key {key}: {name!r} belongs {homes_of[name]}"
    if advice := elsewhere.advice(name, settings):
        where = " (under [settings])" if re.split(r"\W", advice)[0] in settings else ""
        return f"unknown key {key!r}; write {advice}{where}"
    near = difflib.get_close_matches(name, homes_of, n=1)
    if near and not difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6):
        found = f"did you mean {near[0]!r}, which belongs {homes_of[near[0]]}?"
        return f"unknown key {key!r}; {found}"
    message = str(UsageError.unknown("key", name, known))
    return message.replace(repr(name), repr(key), 1)


def _check_names(path: Path, place: str, table: Mapping[str, Any]) -> None:
    """Refuse what is neither a kind nor a setting, and a table without any."""
    known = (*DEFAULT_SELECTIONS, *(option.name for option in Settings.options()))
    if not table:
        raise UsageError(f"{path}: {place}: is empty; it takes axes and settings")
    for name in table:
        if name not in known:
            raise _unknown(path, name, table[name], place, known)


def _table(path: Path, content: Mapping[str, Any], section: str) -> dict[str, Any]:
    found = content.get(section, {})
    if not isinstance(found, dict):
        raise UsageError(f"{path}: {section}: expected a table, [{section}], not {_show(found)}")
    return found


def _tables(
    path: Path, content: Mapping[str, Any], section: str
) -> list[tuple[str, dict[str, Any]]]:
    """List the tables of ``[[section]]``, each with its place in messages."""
    found = content.get(section, [])
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        raise UsageError(f"{path}: {section}: expected tables, each below a line [[{section}]]")
    return [(f"{section}[{number}]", table) for number, table in enumerate(found, 1)]


def _zip(
    path: Path, place: str, table: Mapping[str, Any], taken: set[str]
) -> Mapping[str, list[Any]]:
    """Check one ``[[zip]]``: lists of one length, of axes that are given nowhere else."""
    _check_names(path, place, table)
    for name, values in table.items():
        if not isinstance(values, list) or not values:
            raise UsageError(
                f"{path}: {place}.{name}: expected a list of values, not {_show(values)}"
            )
        if name in taken:
            section = "axes" if name in DEFAULT_SELECTIONS else "settings"
            raise UsageError(
                f"{path}: {place}.{name}: {name!r} is given under [{section}] too; an axis that "
                "moves with others can't be multiplied as well: leave one of them out"
            )
    lengths = {name: len(values) for name, values in table.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise UsageError(f"{path}: {place}: lists that move together need one length; {found}")
    return table


def _refuse_repeats(path: Path, zips: list[Mapping[str, list[Any]]]) -> None:
    """Refuse an axis that moves with two groups of others."""
    seen: dict[str, int] = {}
    for number, table in enumerate(zips, 1):
        for name in table:
            if name in seen:
                raise UsageError(
                    f"{path}: zip[{number}].{name}: {name!r} is in zip[{seen[name]}] too; an axis "
                    "can move with one group only"
                )
            seen[name] = number


def _values(path: Path, place: str, written: Any) -> list[Any]:
    """Read one value or a list of them."""
    values = written if isinstance(written, list) else [written]
    if not values:
        raise UsageError(f"{path}: {place}: the list is empty; give a value, or leave the key out")
    return values


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Name what stands in tables below [settings] with dots; nothing of it is a setting."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            flat |= {f"{name}.{inner}": found for inner, found in value.items()}
        else:
            flat[name] = value
    return flat


def _seeds(path: Path, content: Mapping[str, Any]) -> str | list[Any] | None:
    seeds = content.get("seeds")
    if seeds is None or isinstance(seeds, (str, list)):
        return seeds
    hint = f'; write [{seeds}] for this one seed, or a range such as "0-4"'
    is_number = isinstance(seeds, int) and not isinstance(seeds, bool)
    raise UsageError(
        f'{path}: seeds: expected a list of numbers or a text such as "0-4", not {_show(seeds)}'
        f"{hint if is_number else ''}"
    )


def _how(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Read the keys above the first section but for the seeds."""
    how: dict[str, Any] = {}
    for name in TEXTS:
        if name in content:
            how[name] = _text(path, name, content[name])
    for name in LISTS:
        written = content.get(name, [])
        texts = written if isinstance(written, list) else [written]
        if name in content:
            how[name] = tuple(_text(path, name, text) for text in texts)
    for option in HOW:
        if option.name in content:
            how[option.name] = _check(path, option, content[option.name])
    if "out" in how:
        how["out"] = _path(path, "out", how["out"])
    if "plugins" in how:
        how["plugins"] = tuple(_plugin(path, item) for item in how["plugins"])
    return how


def _check(path: Path, option: Option, value: object) -> Value:
    if isinstance(value, (list, dict)):
        raise UsageError(f"{path}: {option.name}: expected {option.allowed}, not {_show(value)}")
    try:
        return option.check(value)
    except UsageError as error:
        raise UsageError(str(error).replace("option: ", f"{path}: ", 1)) from error


def _text(path: Path, name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise UsageError(f"{path}: {name}: expected text, not {_show(value)}")
    return value


def _plugin(path: Path, item: str) -> str:
    """Find a plugin's file beside the experiment file; the name of a module stays."""
    beside = path.parent / item
    if not (item.endswith(".py") or "/" in item or beside.is_file()):
        return item
    file = _path(path, "plugins", item)
    if not file.exists():
        raise UsageError(f"{path}: plugins: there is no file {str(file)!r}")
    return str(file)


def _path(path: Path, name: str, text: str) -> Path:
    try:
        return path.parent / Path(text).expanduser()
    except RuntimeError as error:  # ~nobody
        raise UsageError(f"{path}: {name}: {text!r}: {error}") from error


def _key(name: str) -> str:
    """Write a key as it stands in a dotted path."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else repr(name)


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
