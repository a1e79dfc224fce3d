"""From what was asked to a list of runs: axes of components and settings, times seeds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from rlbench.errors import UsageError
from rlbench.grid.axes import (
    MOST_RUNS,
    Note,
    distinct,
    distinct_seeds,
    ignore,
    parse_settings,
    read_selection,
)
from rlbench.plugin.selection import Selection, Variants
from rlbench.training.settings import Settings
from rlbench.training.spec import DEFAULT_SELECTIONS, RunSpec, check

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rlbench.plugin.registry import Registry
    from rlbench.types import Kind

DEFAULT_SEEDS = "0-4"


@dataclass(frozen=True, kw_only=True)
class Exclude:
    """Which cells are dropped: those that match every key.

    Attributes:
        wanted: For each kind or setting, what it may be.
        place: Where it is written, for messages.
        required: Whether it has to match something.
    """

    wanted: Mapping[str, Sequence[Any]]
    place: str
    required: bool = True

    def matches(self, cell: RunSpec) -> bool:
        """Whether a cell is dropped by this."""
        return all(self._matches(cell, name, any_of) for name, any_of in self.wanted.items())

    @staticmethod
    def _matches(cell: RunSpec, name: str, any_of: Sequence[Any]) -> bool:
        if name in DEFAULT_SELECTIONS:
            chosen = cell.selections[name]  # type: ignore[index]  # the names of kinds are kinds
            return any(isinstance(one, Variants) and chosen in one for one in any_of)
        return getattr(cell.settings, name) in any_of


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What varies, and how it is combined.

    Attributes:
        selections: The values of each component axis. A kind that is missing takes its default.
        settings: The values of each setting that was given.
        zips: Axes that move together: each a list of rows, each row one value of every axis of it.
        excludes: Cells that are left out.
        seeds: Each cell's seeds.
    """

    selections: Mapping[Kind, Sequence[Selection]]
    settings: Mapping[str, Sequence[Any]]
    zips: Sequence[Sequence[Mapping[str, Any]]] = ()
    excludes: Sequence[Exclude] = ()
    seeds: Sequence[int]

    def expand(self, registry: Registry, note: Note = ignore) -> list[RunSpec]:
        """Build every run.

        Args:
            registry: The components that the defaults refer to.
            note: Hears of an exclude that is not required, and matches nothing.

        Returns:
            The runs, all cells at the first seed, then all at the next: a sweep that is stopped
            early leaves cells with the same seeds.

        Raises:
            UsageError: A combination can't work, an exclude matches nothing, nothing is left, or
                there would be more than 100,000 runs.
        """
        sizes = [*self.selections.values(), *self.settings.values(), *self.zips, self.seeds]
        total = prod(map(len, sizes))
        if total > MOST_RUNS:
            before = " before anything is excluded" if self.excludes else ""
            raise UsageError(
                f"that makes {total:,} runs{before}; the most at once is {MOST_RUNS:,}"
            )
        cells = self._kept(list(self._cells(registry)), note)
        for cell in cells:
            check(cell)
        return [
            RunSpec(selections=cell.selections, settings=cell.settings, seed=seed)
            for seed in self.seeds
            for cell in cells
        ]

    def _cells(self, registry: Registry) -> Iterator[RunSpec]:
        """Combine everything but the seeds, settings and zips outermost."""
        zipped = {name for rows in self.zips for name in rows[0]}
        free: dict[Kind, Sequence[Selection]] = {
            kind: self.selections.get(kind) or [read_selection(registry, kind, default)]
            for kind, default in DEFAULT_SELECTIONS.items()
            if kind not in zipped
        }
        shared: dict[tuple[int, ...], dict[Kind, Selection]] = {}  # one object where all is equal
        axes = [[{name: value} for value in values] for name, values in self.settings.items()]
        for parts in product(*axes, *self.zips):
            fixed = {name: value for part in parts for name, value in part.items()}
            trainer = Settings.from_values(
                {name: value for name, value in fixed.items() if name not in DEFAULT_SELECTIONS}
            )
            for combination in product(*free.values()):
                chosen = fixed | dict(zip(free, combination, strict=True))
                selections = {kind: chosen[kind] for kind in DEFAULT_SELECTIONS}
                key = tuple(map(id, selections.values()))
                yield RunSpec(
                    selections=shared.setdefault(key, selections),
                    settings=trainer,
                    seed=self.seeds[0],
                )

    def _kept(self, cells: list[RunSpec], note: Note) -> list[RunSpec]:
        """Leave out what is excluded."""
        for exclude in self.excludes:
            if any(map(exclude.matches, cells)):
                continue
            if exclude.required:
                raise UsageError(f"{exclude.place}: matches no cell, so it would do nothing")
            note(f"{exclude.place} matches no cell now")
        kept = [cell for cell in cells if not any(e.matches(cell) for e in self.excludes)]
        if not kept:
            raise UsageError(
                f"{' and '.join(e.place for e in self.excludes)}: every cell is excluded, "
                f"{len(cells):,} of {len(cells):,}; nothing is left to run"
            )
        return kept


def read_axes(
    registry: Registry,
    selections: Mapping[Kind, Sequence[object]],
    settings: Sequence[str],
    note: Note,
) -> tuple[dict[Kind, list[Selection]], dict[str, list[Any]]]:
    """Read the axes that were given on the command line or in Python.

    Args:
        registry: The components that names refer to.
        selections: For each kind what was given, each a value of that axis.
        settings: Trainer settings, ``"lr=1e-3"`` or ``"lr=1e-3,3e-4"`` for an axis.
        note: Hears of each repeat that was dropped.

    Returns:
        The axes of components, without those of which nothing was given; and those of settings.

    Raises:
        UsageError: A name, an option or a value is not valid.
    """
    axes = {
        kind: component_axis(registry, kind, written, note)
        for kind, written in selections.items()
        if written
    }
    defaults = {
        kind: [read_selection(registry, kind, default)]
        for kind, default in DEFAULT_SELECTIONS.items()
        if kind not in axes
    }
    return axes, parse_settings(settings, registry, {**axes, **defaults}, note)


def component_axis(
    registry: Registry, kind: Kind, written: Sequence[object], note: Note
) -> list[Selection]:
    """Read all values of one component axis, and drop repeats.

    Raises:
        UsageError: One is not valid; see `rlbench.grid.axes.read_selection`.
    """
    chosen = [read_selection(registry, kind, one) for one in written]
    labels = [one.label for one in chosen]
    texts = [
        one if isinstance(one, str) else label for one, label in zip(written, labels, strict=True)
    ]
    return distinct(kind, texts, chosen, labels, note)


def build(
    registry: Registry,
    *,
    selections: Mapping[Kind, Sequence[str]],
    settings: Sequence[str] = (),
    seeds: str | Iterable[int],
    note: Note | None = None,
) -> list[RunSpec]:
    """Build every run of a grid: the product of all axes and the seeds.

    Args:
        registry: The components that names refer to.
        selections: For each kind the texts that were given, each a value of that axis. A kind that
            is missing or empty takes its default.
        settings: Trainer settings, ``"lr=1e-3"`` or ``"lr=1e-3,3e-4"`` for an axis.
        seeds: Seeds in the form of `rlbench.grid.axes.parse_seeds`, or the numbers themselves.
        note: Hears of each repeat that was dropped.

    Returns:
        The runs; see `Grid.expand`.

    Raises:
        UsageError: A name, an option, a value or a combination is not valid, or there would be more
            than 100,000 runs.
    """
    note = note or ignore
    axes, values = read_axes(registry, selections, settings, note)
    numbers = distinct_seeds(seeds, note)
    return Grid(selections=axes, settings=values, seeds=numbers).expand(registry)


def cells_of(specs: Sequence[RunSpec]) -> int:
    """Count the cells of some runs: what differs in more than the seed."""
    # the runs of a grid share these objects, so few of them have to be compared
    different = {(id(spec.selections), id(spec.settings)): spec for spec in specs}.values()
    texts = (spec.to_payload() | {"seed": 0} for spec in different)
    return len({json.dumps(text, sort_keys=True) for text in texts})
