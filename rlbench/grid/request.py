"""What was asked for, in a file, with flags or from Python: the runs, and how to run them."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rlbench.errors import UsageError
from rlbench.grid.axes import (
    Note,
    distinct,
    distinct_seeds,
    ignore,
    read_selection,
    refuse_component_option,
    setting_values,
)
from rlbench.grid.experiment import DEFAULT_SEEDS, Exclude, Grid, component_axis, read_axes
from rlbench.grid.experiment_file import HOW, ExperimentFile, UnknownKey, at, read
from rlbench.plugin.selection import Selection, Variants, parse, variants
from rlbench.training.settings import Settings
from rlbench.training.spec import DEFAULT_SELECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import ModuleType

    from rlbench.plugin.registry import Registry
    from rlbench.training.spec import RunSpec
    from rlbench.types import Kind

DEFAULT_OUT = "results/local"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for.

    Attributes:
        registry: The components.
        grid: What varies.
        specs: Every run.
        out: Folder of results.
        plugins: What was loaded beside installed plugins.
        how: The names of `HOW`, ``engine`` and ``track``; each at its default if nobody asked for
            anything.
    """

    registry: Registry
    grid: Grid
    specs: Sequence[RunSpec]
    out: Path
    plugins: Sequence[str | Path | ModuleType]
    how: Mapping[str, Any]

    def arguments(self) -> dict[str, Any]:
        """Give `how` under the names that `rlbench.grid.launch.launch` has for it."""
        names = {"track": "trackers", "timeout": "timeout_s"}
        how = {name: value for name, value in self.how.items() if name != "verify"}  # comes after
        return {names.get(name, name): value for name, value in how.items()}


def ask(
    file: Path | None,
    *,
    load: Callable[[Sequence[str | Path | ModuleType]], Registry],
    axes: Mapping[Kind, Sequence[object]],
    settings: Sequence[str],
    seeds: str | Iterable[int] | None,
    plugins: Sequence[str | Path | ModuleType],
    how: Mapping[str, Any],
    note: Note | None = None,
) -> Request:
    """Put a file and what was given beside it together; the latter wins, axis by axis.

    Args:
        file: An experiment file, or None.
        load: Loads plugins.
        axes: The values of component axes.
        settings: ``"lr=1e-3,3e-4"``, each an axis.
        seeds: None means those of the file, or 0 to 4.
        plugins: They are loaded beside those of the file.
        how: ``out`` and the names of `Request.how`. None, False or nothing in it is not given.
        note: Hears of repeats that were dropped, and of what replaces something in the file.

    Raises:
        UsageError: Something is not valid; what is in the file is named with its place.
        PluginError: A plugin can't be loaded.
    """
    note = note or ignore
    content = _read(file, lambda: load(plugins)) if file is not None else None
    both = [*(content.how.get("plugins", ()) if content else ()), *plugins]
    registry = load(both)
    chosen, values = read_axes(registry, axes, settings, note)
    numbers = None if seeds is None else distinct_seeds(seeds, note)
    # 0 is something that was given
    given = {
        name: value for name, value in how.items() if value is not False and value not in (None, ())
    }
    if content is None:
        grid = Grid(
            selections=chosen,
            settings=values,
            seeds=numbers or distinct_seeds(DEFAULT_SEEDS, note),
        )
    else:
        grid = _combine(_Reader(registry, content, note), chosen, values, numbers)
        replaced = [*chosen, *values, *(["seeds"] if numbers else [])]
        _tell_replaced(content, replaced, given, note)
    merged = _how(registry, content, given)
    out = Path(merged.pop("out"))
    return Request(
        registry=registry,
        grid=grid,
        specs=grid.expand(registry, note),
        out=out,
        plugins=both,
        how=merged,
    )


def _read(path: Path, load: Callable[[], Registry]) -> ExperimentFile:
    """Read a file; who took an option of a component for a key is told how it is written."""
    try:
        return read(path)
    except UnknownKey as error:
        if error.name in DEFAULT_SELECTIONS:  # the message says where it belongs
            raise
        registry = load()
        usual = {
            kind: [read_selection(registry, kind, default)]
            for kind, default in DEFAULT_SELECTIONS.items()
        }
        with at(path, error.key):
            refuse_component_option(error.name, error.value, registry, usual, _in_a_file)
        raise


def _how(
    registry: Registry, file: ExperimentFile | None, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Put what was given over what the file says, and that over the defaults."""
    written = {} if file is None else {n: v for n, v in file.how.items() if n != "plugins"}
    for kind, name in (("engine", "engine"), ("tracker", "track")):
        for source in (written, given):
            texts = source.get(name, ())
            for text in (texts,) if isinstance(texts, str) else texts:
                with at(file.path, name) if source is written and file else nullcontext():
                    parse(registry, cast("Kind", kind), text)
    defaults: dict[str, Any] = {option.name: option.default for option in HOW}
    merged = {**defaults, "engine": "local", "track": (), "out": DEFAULT_OUT, **written, **given}
    if merged["fail_fast"] and merged["max_failures"] is not None:
        raise UsageError(
            "fail_fast starts nothing more after 1 failure, and max_failures="
            f"{merged['max_failures']} was asked for too; give one of them"
        )
    return merged


@dataclass(frozen=True)
class _Reader:
    """Reads the values of a file's axes; each error names the key."""

    registry: Registry
    file: ExperimentFile
    note: Note

    def axis(self, kind: Kind) -> list[Selection]:
        with at(self.file.path, f"axes.{kind}"):
            return component_axis(self.registry, kind, self.file.axes[kind], self.note)

    def setting(self, name: str, chosen: Mapping[Kind, Sequence[Selection]]) -> list[Any]:
        written = self.file.settings[name]
        with at(self.file.path, f"settings.{name}"):
            _refuse_lists(written)
            refuse_component_option(name, written[0], self.registry, chosen, _in_a_file)
            return setting_values(name, written, self.note)

    def zip(self, number: int, table: Mapping[str, list[Any]]) -> list[Mapping[str, Any]]:
        columns: dict[str, list[Any]] = {}
        for name, written in table.items():
            with at(self.file.path, f"zip[{number}].{name}"):
                columns[name] = [self._value(name, one) for one in written]
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        texts = [", ".join(f"{n}={_spell(n, v)}" for n, v in row.items()) for row in rows]
        return distinct(f"row of zip[{number}]", texts, rows, texts, self.note)

    def exclude(self, number: int, table: Mapping[str, list[Any]], replaced: set[str]) -> Exclude:
        wanted: dict[str, list[Any]] = {}
        for name, written in table.items():
            with at(self.file.path, f"exclude[{number}].{name}"):
                if name in DEFAULT_SELECTIONS:
                    wanted[name] = [self._variants(cast("Kind", name), one) for one in written]
                else:
                    wanted[name] = [self._value(name, one) for one in written]
        return Exclude(
            wanted=wanted,
            place=f"{self.file.path}: exclude[{number}]",
            required=not replaced & set(table),  # what it was meant for may be gone
        )

    def _value(self, name: str, written: object) -> Any:
        if name in DEFAULT_SELECTIONS:
            return read_selection(self.registry, cast("Kind", name), written)
        _refuse_lists([written])
        return Settings.option(name).check(written)

    def _variants(self, kind: Kind, written: object) -> Variants:
        chosen = read_selection(self.registry, kind, written)
        if isinstance(written, str):
            return variants(self.registry, kind, written)
        named = set(written) - {"name"}  # type: ignore[call-overload]  # what is no text is a table
        return Variants(chosen.name, {name: chosen.options[name] for name in named})


def _combine(
    reader: _Reader,
    chosen: dict[Kind, list[Selection]],
    values: dict[str, list[Any]],
    seeds: list[int] | None,
) -> Grid:
    """Put the axes that were given beside the file over those of the file."""
    file = reader.file
    replaced: set[str] = {*chosen, *values}
    for number, table in enumerate(file.zips, 1):
        for name in sorted(replaced & set(table)):
            others = ", ".join(other for other in table if other != name) or "it"
            raise UsageError(
                f"{file.path}: zip[{number}] moves {name} together with {others}, so {name} can't "
                "be given beside the file; change it there"
            )
    # read whether it is replaced or not: a mistake in a file is one
    written: dict[Kind, list[Selection]] = {
        cast("Kind", kind): reader.axis(cast("Kind", kind)) for kind in file.axes
    }
    selections = written | chosen
    settings = {name: reader.setting(name, selections) for name in file.settings} | values
    with at(file.path, "seeds"):
        note = reader.note if seeds is None else ignore
        numbers = distinct_seeds(DEFAULT_SEEDS if file.seeds is None else file.seeds, note)
    return Grid(
        selections=selections,
        settings=settings,
        zips=[reader.zip(number, table) for number, table in enumerate(file.zips, 1)],
        excludes=[
            reader.exclude(number, table, replaced) for number, table in enumerate(file.excludes, 1)
        ],
        seeds=seeds or numbers,
    )


def _tell_replaced(
    file: ExperimentFile, replaced: Sequence[str], given: Mapping[str, Any], note: Note
) -> None:
    """Say what of the file does not count."""
    written = [*file.axes, *file.settings, *([] if file.seeds is None else ["seeds"])]
    names = [name for name in written if name in replaced]
    names += [name for name in file.how if name in given and file.how[name] != given[name]]
    if names:
        note(f"replaced by what was given beside {file.path}: {', '.join(names)}")


def _refuse_lists(written: Sequence[object]) -> None:
    """Refuse what is no plain value, with the way to write an axis."""
    for value in written:
        if isinstance(value, (list, dict)):
            raise UsageError(f"expected a value or a list of values, found {value!r} in it")
        if isinstance(value, str) and "," in value:
            raise UsageError(f"{value!r} is one value; write an axis as a list, [value, value]")


def _in_a_file(kind: Kind, text: str) -> str:
    return f'{kind} = "{text}" under [axes]'


def _spell(name: str, value: Any) -> str:
    return str(value.label) if name in DEFAULT_SELECTIONS else Settings.option(name).spell(value)
