"""Lay cells out as a grid: which columns are factors, which seeds count, what is left out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected, UsageError
from rlbench.grid.normalisation import normalised
from rlbench.report.cells.baseline import spell_cell
from rlbench.report.cells.cell import labels_of
from rlbench.report.cells.metric import SCORE
from rlbench.report.cells.pairing import off_footing, task_of
from rlbench.report.effects.factorial import Factor, Grid, in_one_order
from rlbench.report.tables.notes import name_of
from rlbench.report.text.spelling import natural, spell_seeds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlbench.grid.normalisation import Scale
    from rlbench.report.cells.cell import Cell, Seed
    from rlbench.report.cells.metric import Metric
    from rlbench.report.effects.factorial import Place

LARGEST = 1e150  # sums of squares have to fit in a float
_Columns = tuple[str, ...]  # the columns of one factor


def grids(
    cells: Iterable[Cell],
    wanted: Sequence[str] = (),
    *,
    across_tasks: bool = False,
    scales: Mapping[str, Scale] | None = None,
) -> tuple[list[Grid], list[str]]:
    """Lay cells out as one grid for each task, or as one in which the task is a factor.

    The factors are the columns in which cells differ. Columns that always change together are one
    factor: nobody can tell their effects apart. Over factors that are not wanted each place is
    averaged within every seed, with equal weights, over the levels that all places have.

    A failed seed counts with the floor. A cell with a common seed that has no number at all is
    left out as a whole, as one that did not run is, and leaves a hole: no seed is left out because
    of how it ended.

    Args:
        cells: In any order; it changes nothing.
        wanted: The factors, in this order; empty means all.
        across_tasks: Make the task a factor.
        scales: By task, the scores that count as 0 and as 1; for `across_tasks`.

    Returns:
        The grids in natural order of their tasks, and for each task without one the reason.

    Raises:
        NothingSelected: There is no grid at all.
        UsageError: A factor is not there, cells are not comparable, or nothing can be averaged.
    """
    found = sorted(cells, key=lambda cell: sorted(cell.columns.items()))
    if not found:
        raise NothingSelected("none of these folders holds a run that can be read")
    groups: dict[str, list[Cell]] = {}
    for cell in found:
        groups.setdefault("" if across_tasks else task_of(cell), []).append(cell)
    known = dict.fromkeys(name for group in groups.values() for name in _differing(group))
    for name in wanted:
        if name not in known:
            raise UsageError.unknown("factor", name, list(known), _hint(name, groups))
    made, skipped, last = [], [], NothingSelected("there is no task")
    for task in sorted(groups, key=lambda task: (natural(task), task)):
        try:
            made.append(_grid(task, groups[task], wanted, scales))
        except NothingSelected as error:
            last = error
            skipped.append(f"task {task}: {error}")
    if not made:
        raise last if len(groups) == 1 else NothingSelected("; ".join(skipped))
    return in_one_order(made) if len(made) > 1 else made, skipped


def _hint(name: str, groups: Mapping[str, object]) -> str:
    if name == "task" and len(groups) > 1:
        return "with --across-tasks the task is a factor"
    return "a factor is a column in which cells differ"


def _differing(cells: Sequence[Cell]) -> list[str]:
    return [name for name in labels_of(cells) if len({c.columns.get(name) for c in cells}) > 1]


def _grid(
    task: str, cells: Sequence[Cell], wanted: Sequence[str], scales: Mapping[str, Scale] | None
) -> Grid:
    labels = _differing(cells) or labels_of(cells)
    if len(cells) == 1:
        raise NothingSelected(f"one cell only, {spell_cell(cells[0], labels)}: it has no factor")
    _check_footing(cells, labels)
    names = {id(cell): name_of(cell, labels) for cell in cells}
    metric = _metric(cells, scaled=scales is not None)
    used, unknown = _known(cells, names)
    seeds = _common_seeds(used, names)
    factors = _merged(used, _differing(used))
    chosen = _chosen(factors, wanted)
    if not chosen:
        which = ", ".join(wanted) or "anything"
        raise NothingSelected(f"the cells with a {metric.name} do not differ in {which}")
    rest = [columns for columns in factors if columns not in chosen]
    kept, partners, uneven = _averaged(used, chosen, rest, names)
    values = {
        place: _mean([_values(cell, seeds, scales) for cell in group])
        for place, group in kept.items()
    }
    every = sorted({seed.number for cell in used for seed in cell.tried} - set(seeds))
    tried = {id(cell): {seed.number for seed in cell.tried} for cell in used}
    failed = {
        names[id(cell)]: tuple(seed.number for seed in cell.failed if seed.number in seeds)
        for group in kept.values()
        for cell in group
    }
    largest = max(abs(value) for of_place in values.values() for value in of_place)
    if largest > LARGEST:
        raise UsageError(f"a {metric.name} of {largest:g} is too large to compute with")
    return Grid(
        task=task,
        metric=metric,
        factors=tuple(_factor(columns, n, kept) for n, columns in enumerate(chosen)),
        values=values,
        seeds=seeds,
        lacking={s: tuple(names[id(c)] for c in used if s not in tried[id(c)]) for s in every},
        failed={name: numbers for name, numbers in failed.items() if numbers},
        unknown=unknown,
        averaged=tuple("+".join(columns) for columns in rest),
        partners=partners,
        uneven=uneven,
        scaled=scales is not None,
        named=tuple((names[id(cell)], cell) for cell in used),
        broken={
            place: frozenset(seed.number for cell in group for seed in cell.failed)
            for place, group in kept.items()
        },
    )


def _check_footing(cells: Sequence[Cell], labels: Sequence[str]) -> None:
    """Refuse cells that no number of seeds could compare."""
    first: dict[str, Cell] = {}
    for cell in cells:
        base = first.setdefault(task_of(cell), cell)
        why = off_footing(cell, base)
        if why:
            raise UsageError(
                f"{name_of(cell, labels)} can't be compared with {name_of(base, labels)}: "
                f"{why.replace(', the baseline', ', the other')}; select cells that can be"
            )


def _metric(cells: Sequence[Cell], *, scaled: bool) -> Metric:
    """Tell what all cells are compared by; on one scale more is better everywhere."""
    metric = cells[0].metric
    if scaled:
        return replace(metric, higher=True)
    other = next((cell for cell in cells if cell.metric.sign != metric.sign), None)
    if other:
        raise UsageError(
            f"less is better in one of the tasks {task_of(cells[0])} and {task_of(other)}, more in "
            "the other; --normalise FILE puts both on one scale"
        )
    return metric


def _known(cells: Sequence[Cell], names: Mapping[int, str]) -> tuple[list[Cell], dict[str, str]]:
    """Keep the cells that have a number at each common seed, and say why not of the others."""
    ran = [cell for cell in cells if cell.tried]
    unknown = {names[id(cell)]: "did not run" for cell in cells if not cell.tried}
    used, before = ran, None
    while used and len(used) != before:  # without a cell more seeds can be common
        before = len(used)
        common = set(_common_seeds(used, names))
        gaps = {
            id(cell): seed
            for cell in used
            for seed in reversed(cell.tried)
            if seed.number in common and seed.score is None
        }
        for cell in used:
            if id(cell) in gaps:
                unknown[names[id(cell)]] = _no_number(cell, gaps[id(cell)])
        used = [cell for cell in used if id(cell) not in gaps]
    if not used:
        raise NothingSelected(f"no cell has a {cells[0].metric.name} at every seed")
    return used, unknown


def _no_number(cell: Cell, seed: Seed) -> str:
    what = "known floor" if cell.metric.key == SCORE.key else cell.metric.name
    return f"seed {seed.number} {'has no' if seed.ok else 'failed, and has no'} {what}"


def _common_seeds(cells: Sequence[Cell], names: Mapping[int, str]) -> tuple[int, ...]:
    sets = {names[id(cell)]: {seed.number for seed in cell.tried} for cell in cells}
    common = set.intersection(*sets.values()) if sets else set()
    if not common:
        fewest = min(sets, key=lambda name: len(sets[name]), default="")
        has = f": {fewest} has {spell_seeds(sets[fewest])}" if fewest else ""
        raise NothingSelected(f"no seed ran in all {len(cells)} cells{has}; select fewer cells")
    return tuple(sorted(common))


def _merged(cells: Sequence[Cell], names: Sequence[str]) -> list[_Columns]:
    """Put columns together of which each tells the other: they are one factor."""
    merged: list[list[str]] = []
    for name in names:
        for columns in merged:
            both = {(c.columns.get(columns[0]), c.columns.get(name)) for c in cells}
            if len(both) == len({a for a, _ in both}) == len({b for _, b in both}):
                columns.append(name)
                break
        else:
            merged.append([name])
    return [tuple(columns) for columns in merged]


def _chosen(factors: Sequence[_Columns], wanted: Sequence[str]) -> list[_Columns]:
    """Pick the factors that are wanted, in that order; what does not differ here is none."""
    if not wanted:
        return list(factors)
    found = (columns for name in wanted for columns in factors if name in columns)
    return list(dict.fromkeys(found))


def _level(cell: Cell, columns: _Columns) -> str:
    if len(columns) == 1:
        return cell.columns.get(columns[0]) or "-"
    return spell_cell(cell, columns)


def _averaged(
    cells: Sequence[Cell],
    chosen: Sequence[_Columns],
    rest: Sequence[_Columns],
    names: Mapping[int, str],
) -> tuple[dict[Place, list[Cell]], int, tuple[str, ...]]:
    """Collect the cells of each place; those without their like in all other places are left out.

    Returns:
        Place to its cells, how many these are, and the names of those that are left out.
    """
    places: dict[Place, dict[Place, Cell]] = {}
    for cell in cells:
        place = tuple(_level(cell, columns) for columns in chosen)
        like = tuple(_level(cell, columns) for columns in rest)
        twin = places.setdefault(place, {}).setdefault(like, cell)
        if twin is not cell:
            ours, theirs = cell.columns, twin.columns
            differ = sorted(n for n in {*ours, *theirs} if ours.get(n) != theirs.get(n))
            raise UsageError(
                f"there are two cells {names[id(cell)]}, which differ in "
                f"{', '.join(differ) or 'nothing that is shown'}; rlbench rm removes one"
            )
    common = sorted(set.intersection(*(set(group) for group in places.values())))
    if not common:
        asked, others = ("/".join("+".join(c) for c in some) for some in (chosen, rest))
        raise UsageError(
            f"--factor {asked}: can't be averaged over {others}, no level of which is there for "
            f"all levels of {asked}; name it as a factor too, or select one level"
        )
    order = sorted(places, key=lambda place: [_rank(level) for level in place])
    uneven = [c for p in order for like, c in places[p].items() if like not in common]
    kept = {place: [places[place][like] for like in common] for place in order}
    return kept, len(common), tuple(names[id(cell)] for cell in uneven)


def _factor(columns: _Columns, n: int, kept: Iterable[Place]) -> Factor:
    levels = {place[n] for place in kept}
    return Factor(name="+".join(columns), levels=tuple(sorted(levels, key=_rank)))


def _rank(level: str) -> tuple[int, float, list[tuple[int, int, str]], str]:
    """Order levels: numbers by size, then names, of which clip2 comes before clip10."""
    try:
        number = float(level)
    except ValueError:
        number = math.nan
    finite = math.isfinite(number)  # "nan" and "inf" are names, too
    return 1 - finite, number if finite else 0.0, natural(level), level


def _values(cell: Cell, seeds: Sequence[int], scales: Mapping[str, Scale] | None) -> list[float]:
    known = {seed.number: seed.score for seed in cell.tried if seed.score is not None}
    scores = [float(known[seed]) for seed in seeds]
    if scales is None:
        return scores
    task = task_of(cell)
    if task not in scales:
        raise UsageError.unknown("task of the results, to be normalised:", task, scales)
    return [normalised(score, scales[task]) for score in scores]


def _mean(columns: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Average cells within each seed."""
    return tuple(sum(values) / len(values) for values in zip(*columns, strict=True))
