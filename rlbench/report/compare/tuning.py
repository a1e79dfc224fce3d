"""A value for each cell, chosen on half of the seeds, so that the other half may be compared."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlbench.errors import NothingSelected, UsageError
from rlbench.report.cells.baseline import spell_cell
from rlbench.report.cells.cell import KINDS, Cell, labels_of
from rlbench.report.text.spelling import spell_seeds, spelled
from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEAST_SEEDS = 4  # two to choose by, two to compare
_SLIP = 1e-12  # means this near, of numbers about 1, are equal but for rounding
NONE = "-"  # value of a component that has no such option


@dataclass(frozen=True, kw_only=True)
class Axis:
    """What is tuned.

    Attributes:
        name: A setting (``lr``), or an option with its kind (``loss.eps``).
        values: The values to choose from, in one spelling; None means all that are there.
    """

    name: str
    values: tuple[str, ...] | None = None

    @property
    def kind(self) -> str | None:
        """The kind of component whose option it is; None for a setting."""
        kind, dot, _ = self.name.partition(".")
        return kind if dot else None


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One cell with its chosen value.

    Attributes:
        cell: Its runs at that value, of the seeds that are compared; the axis is none of its
            columns.
        value: What was chosen; `NONE` where there is nothing to choose.
        means: Value to mean of the metric on the seeds that chose, failures at the task's floor;
            None where that is not known. In ascending order.
        failures: Value to failed runs among those seeds, where there are any.
    """

    cell: Cell
    value: str
    means: Mapping[str, float | None]
    failures: Mapping[str, int]

    @property
    def edge(self) -> str:
        """``smallest`` or ``largest`` if it is the end of a range of numbers; else empty.

        Empty also where another value is as good: then nothing points beyond the end.
        """
        numbers = {_number(value) for value in self.means}
        number, best = _number(self.value), self.means[self.value]
        if None in numbers or len(numbers) < 2 or number is None or best is None:
            return ""
        as_good = [m for m in self.means.values() if m is not None and abs(m - best) <= _slip(best)]
        if len(as_good) > 1:
            return ""
        ordered = sorted(one for one in numbers if one is not None)
        ends = {ordered[0]: "smallest", ordered[-1]: "largest"}
        return ends.get(number, "")


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """All cells, each at its own value.

    Attributes:
        axis: What was tuned.
        values: All values that some cell could choose, in ascending order.
        choices: One a cell.
        chosen_on: The seeds that chose.
        compared_on: The others, the only ones in `cells`.
        unused: Seeds that were not tried everywhere.
    """

    axis: Axis
    values: tuple[str, ...]
    choices: tuple[Choice, ...]
    chosen_on: tuple[int, ...]
    compared_on: tuple[int, ...]
    unused: tuple[int, ...] = ()

    @property
    def cells(self) -> list[Cell]:
        """The tuned cells."""
        return [choice.cell for choice in self.choices]

    def of(self, cell: Cell) -> Choice:
        """Look up how a value was chosen for one of `cells`."""
        return next(choice for choice in self.choices if choice.cell is cell)


def parse_axis(text: str) -> Axis:
    """Read ``lr``, ``lr=1e-4,3e-4`` or ``loss.eps=0.1,0.2``.

    Raises:
        UsageError: There is no such setting or kind, or a value is missing or none of it.
    """
    name, equals, written = text.partition("=")
    name = name.strip()
    parts = [part.strip() for part in written.split(",")]
    if equals and not all(parts):
        raise UsageError(f"--tune {text!r}: a value is missing; write {name}=value,value")
    kind, dot, option = name.partition(".")
    if dot and (kind not in KINDS or not option):
        raise UsageError(
            f"--tune {text!r}: {kind!r} is no kind of component; write a setting, such as lr, or "
            "an option with its kind, such as loss.eps"
        )
    if not dot:
        try:
            setting = Settings.option(name)
        except UsageError as error:
            raise UsageError(
                f"--tune {text!r}: {error}; an option is written with its kind, such as loss.eps"
            ) from error
        parts = [str(spelled(setting.check(part))) for part in parts] if equals else []
    values = tuple(dict.fromkeys(str(spelled(part)) for part in parts)) if equals else None
    if values is not None and len(values) < 2:
        raise UsageError(f"--tune {text!r}: one value leaves nothing to choose; give more, or none")
    return Axis(name=name, values=values)


def tune(cells: Sequence[Cell], axis: Axis) -> Tuning:
    """Choose a value for each cell on half of the seeds, and keep its other seeds.

    Cells that differ in the axis only are one tuned cell. Of the seeds that all of them have tried,
    in ascending order, every second one chooses (the second, the fourth, ...) and the others are
    compared, for all cells the same. The best mean of the metric wins, failures at the task's floor
    (where none is known, the value comes last); of equal means the value nearest the default, by
    ratio where both are positive, then the smallest. So no seed that is compared had a say in what
    is compared, and tests on them hold their level. Both halves in turn would use more of the
    seeds, but the pairs would depend on each other through the choices: that is not done.

    Args:
        cells: As `cells.cells` groups them.
        axis: What to choose.

    Raises:
        NothingSelected: No cell has a value of the axis.
        UsageError: There is one value only, or fewer than 4 seeds were tried everywhere.
    """
    groups: dict[tuple[tuple[str, str], ...], list[tuple[str, Cell]]] = {}
    for cell in cells:
        value = _value_of(cell, axis)
        if axis.values is None or value in (*axis.values, NONE):
            rest = _without(cell, axis)
            groups.setdefault(tuple(sorted(rest.items())), []).append((value, cell))
    there = _ascending({value for group in groups.values() for value, _ in group} - {NONE})
    _check_values(cells, axis, there)
    candidates = [(value, cell) for group in groups.values() for value, cell in group]
    seeds = _common(candidates, axis)
    choosing, compared = seeds[1::2], seeds[::2]
    choices = [_choose(group, axis, choosing, compared) for group in groups.values()]
    tried = {seed.number for _, cell in candidates for seed in cell.tried}
    return Tuning(
        axis=axis,
        values=there,
        choices=tuple(choices),
        chosen_on=choosing,
        compared_on=compared,
        unused=tuple(sorted(tried - set(seeds))),
    )


def absent(axis: Axis, cells: Sequence[Cell]) -> list[str]:
    """Name the values that were asked for and that no cell has."""
    there = {_value_of(cell, axis) for cell in cells}
    return [value for value in axis.values or () if value not in there]


def _check_values(cells: Sequence[Cell], axis: Axis, there: Sequence[str]) -> None:
    found = _ascending({_value_of(cell, axis) for cell in cells} - {NONE})
    if not found:
        raise NothingSelected(f"--tune {axis.name}: no result has it")
    if not there:
        wanted = " or ".join(axis.values or ())
        raise NothingSelected(
            f"--tune: no result with {axis.name}={wanted}; there are: {', '.join(found)}"
        )
    if len(there) == 1:
        more = f"; there are: {', '.join(found)}" if len(found) > 1 else ""
        raise UsageError(
            f"--tune {axis.name}: {there[0]} is the only value, nothing to choose from{more}"
        )


def _common(candidates: Sequence[tuple[str, Cell]], axis: Axis) -> tuple[int, ...]:
    """Find the seeds that were tried everywhere.

    Raises:
        UsageError: They are too few to be halved.
    """
    tried = [{seed.number for seed in cell.tried} for _, cell in candidates]
    common = set.intersection(*tried)
    if len(common) >= LEAST_SEEDS:
        return tuple(sorted(common))
    cells = [cell for _, cell in candidates]
    fewest = min(range(len(cells)), key=lambda number: (len(tried[number]), number))
    name = spell_cell(cells[fewest], labels_of(cells))
    raise UsageError(
        f"--tune {axis.name}: {LEAST_SEEDS} seeds that all have tried are needed, 2 to choose by "
        f"and 2 to compare; there are {len(common)} ({name} has "
        f"{spell_seeds(tried[fewest]) or 'none'})"
    )


def _choose(
    group: Sequence[tuple[str, Cell]],
    axis: Axis,
    choosing: Sequence[int],
    compared: Sequence[int],
) -> Choice:
    """Choose one of the cells that differ in the axis only."""
    by_value = dict(group)
    if len(by_value) < len(group):
        name = spell_cell(group[0][1], labels_of([cell for _, cell in group]))
        raise UsageError(f"--tune {axis.name}: {name} is there twice with one value of it")
    means = {value: _mean(by_value[value], choosing) for value in _ascending(by_value)}
    failures = {
        value: count
        for value in means
        if (count := sum(seed.number in choosing for seed in by_value[value].failed))
    }
    sign = group[0][1].metric.sign
    known = [sign * mean for mean in means.values() if mean is not None]
    best = max(known, default=0.0)
    equal = [
        value
        for value, mean in means.items()
        if not known or (mean is not None and sign * mean >= best - _slip(best))
    ]
    value = min(equal, key=_nearness(equal, by_value, axis))
    cell = by_value[value]
    kept = tuple(seed for seed in cell.seeds if seed.number in compared)
    repeats = tuple(seed for seed in cell.repeats if seed.number in compared)
    tuned = replace(cell, columns=_without(cell, axis), seeds=kept, repeats=repeats)
    return Choice(cell=tuned, value=value, means=means, failures=failures)


def _slip(best: float) -> float:
    """Tell how far below the best mean another is still equal but for rounding."""
    return _SLIP * max(1.0, abs(best))


def _mean(cell: Cell, seeds: Sequence[int]) -> float | None:
    """Average the metric over some seeds; None if one of them is not known."""
    scores = [seed.score for seed in cell.tried if seed.number in seeds]
    known = [score for score in scores if score is not None]
    return math.fsum(known) / len(known) if len(known) == len(scores) else None


def _nearness(equal: Sequence[str], by_value: Mapping[str, Cell], axis: Axis) -> Any:
    """Make a key by which the value nearest the default comes first, then the smallest."""
    order = {value: place for place, value in enumerate(equal)}  # ascending already
    usual = _default(by_value, axis)
    middle = _number(usual) if usual is not None else None

    def key(value: str) -> tuple[bool, float, int]:
        number = _number(value)
        far = 0.0 if middle is None or number is None else _distance(number, middle)
        return (value != usual, far, order[value])

    return key


def _distance(one: float, other: float) -> float:
    """Tell how far apart two values are: by their ratio, where both are positive."""
    if one > 0 and other > 0:
        return round(abs(math.log(one / other)), 9)  # 4/5 and 5/4 of a value are as far
    return abs(one - other)


def _default(by_value: Mapping[str, Cell], axis: Axis) -> str | None:
    """Spell the default; that of an option is what a label does not mention."""
    if axis.kind is None:
        return str(spelled(Settings.option(axis.name).default))
    for value, cell in by_value.items():
        if cell.columns.get(axis.kind) == _without(cell, axis).get(axis.kind):
            return value
    return None


def _value_of(cell: Cell, axis: Axis) -> str:
    """Spell the value that a cell has of the axis; `NONE` if it has none."""
    if axis.kind is None:
        return cell.columns.get(axis.name, NONE)
    spec = cell.seeds[0].record.spec or {}
    options = spec.get("components", {}).get(axis.kind, {}).get("options") or {}
    option = axis.name.partition(".")[2]
    return str(spelled(options[option])) if option in options else NONE


def _without(cell: Cell, axis: Axis) -> dict[str, str]:
    """Columns of a cell but for the axis; an option is taken out of its component's label."""
    if axis.kind is None:
        return {name: value for name, value in cell.columns.items() if name != axis.name}
    columns = dict(cell.columns)
    if axis.kind in columns:
        option = axis.name.partition(".")[2]
        name, _, written = columns[axis.kind].partition(":")
        rest = [part for part in written.split(",") if part.partition("=")[0] != option]
        columns[axis.kind] = ":".join(filter(None, (name, ",".join(rest))))
    return columns


def _ascending(values: Any) -> tuple[str, ...]:
    """Sort values: numbers by size, then the rest by letters."""

    def key(value: str) -> tuple[bool, float, str]:
        number = _number(value)
        return (number is None, number or 0.0, value)

    return tuple(sorted(values, key=key))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
