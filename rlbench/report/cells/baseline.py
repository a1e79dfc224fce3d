"""Find the cell that a text such as ``group+clip`` names, in each task its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlbench.errors import NothingSelected, UsageError, nearest
from rlbench.report.cells.cell import KINDS, Cell, labels_of
from rlbench.report.cells.pairing import task_of
from rlbench.report.cells.select import select
from rlbench.report.text.spelling import spelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rlbench.plugin.registry import Registry

    Wish = tuple[str | None, str]

LISTED = 20  # cells that a message names


def spell_cell(cell: Cell, labels: Sequence[str]) -> str:
    """Name a cell as `find` reads it: ``group+clip``, with settings as ``lr=0.001``."""
    return "+".join(
        value if name in KINDS else f"{name}={value}"
        for name in labels
        if (value := cell.columns.get(name))
    )


def find(
    cells: Sequence[Cell], wanted: str | Sequence[Wish], load: Callable[[], Registry]
) -> dict[str, Cell]:
    """Find the cell that is meant, or one in each task.

    A label that is written as the table has it means just that cell, ``gae`` never
    ``gae:lam=0.9``. What no cell has letter for letter may be an alias, another spelling of a
    value, or a name without the options that it has there. What fits one cell in each of several
    tasks, of the same components but for the task, means all of them: each is the baseline of its
    task.

    Args:
        cells: What to choose from, in the order of messages.
        wanted: Labels joined by ``+`` in any order, settings among them as ``lr=0.001``; or
            pairs of a column (None for any kind of component) and what it holds.
        load: Gives the registry, for what is not there letter for letter.

    Returns:
        Cells by the label of their task.

    Raises:
        UsageError: No cell, or more than one in a task, is named so; lists the cells.
    """
    finder = _Finder(cells, load)
    wishes = finder.words(wanted) if isinstance(wanted, str) else list(wanted)
    shown = wanted if isinstance(wanted, str) else ", ".join(f"{c} {text}" for c, text in wishes)
    found = finder.all_of(wishes)
    by_task = {task_of(cells[number]): cells[number] for number in found}
    if found and len(by_task) == len(found) and len(set(map(_but_for_task, by_task.values()))) == 1:
        return by_task
    names = [spell_cell(cell, labels_of(cells)) for cell in cells]
    if found:
        fitting = _listed([names[number] for number in found])
        raise UsageError(f"--baseline {shown!r} fits {len(found)} cells: {fitting}; name one")
    bare = [spell_cell(cell, but_for_task(labels_of(cells))) for cell in cells]
    near = nearest(shown, [*bare, *names])
    if all(bare):  # nobody wants to read them once a task
        names = list(dict.fromkeys(bare))
    meant = f"; did you mean {near!r}?" if near else ";"
    why = f" ({finder.refused})" if finder.refused else ""
    raise UsageError(f"--baseline {shown!r}: no such cell{why}{meant} there are: {_listed(names)}")


def only_pair(cells: Sequence[Cell]) -> dict[str, Cell]:
    """Take the first of two cells as the baseline that nobody named, in each task its own.

    Args:
        cells: In the order of the table.

    Returns:
        Cells by the label of their task.

    Raises:
        UsageError: There are more than two in a task; shows how to name one.
    """
    labels = but_for_task(labels_of(cells))
    groups: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        groups.setdefault(spell_cell(cell, labels), {})[task_of(cell)] = cell
    if len(groups) == 2:
        return next(iter(groups.values()))
    names = list(groups)
    several = " of each task" if len({task_of(cell) for cell in cells}) > 1 else ""
    raise UsageError(
        f"{len(names)} cells{several} and no baseline; write --baseline {_quoted(names[0])}, "
        f"or another of: {_listed(names)}"
    )


def baseline_name(baselines: Mapping[str, Cell], labels: Sequence[str]) -> str:
    """Name what rows are compared with, without the task where each task has its own.

    Args:
        baselines: Cells by the label of their task.
        labels: Columns that tell the cells of the table apart.
    """
    names = but_for_task(labels) if len(baselines) > 1 else labels
    return " or ".join(dict.fromkeys(spell_cell(cell, names) for cell in baselines.values()))


def but_for_task(labels: Sequence[str]) -> list[str]:
    """Keep the labels that tell cells of one task apart."""
    return [name for name in labels if name.partition(".")[0] != "task"]


def _but_for_task(cell: Cell) -> tuple[str | None, ...]:
    return tuple(cell.columns.get(kind) for kind in but_for_task(KINDS))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _quoted(name: str) -> str:
    from shlex import quote

    return quote(name)


class _Finder:
    """Which cells a word fits, looked up once a word."""

    def __init__(self, cells: Sequence[Cell], load: Callable[[], Registry]) -> None:
        self.refused = ""  # what was wrong with the options of a component that is known
        self._cells = cells
        self._load = load
        self._registry: Registry | None = None
        self._seen: dict[Wish, set[int]] = {}  # of what is not there letter for letter

    def all_of(self, wishes: Sequence[Wish]) -> list[int]:
        """Numbers of the cells that fit all wishes: letter for letter, else in a wider sense."""
        if not wishes:
            return []
        exact = [self._exact(wish) for wish in wishes]
        found = set.intersection(*exact)
        if not found:
            found = set.intersection(*(self._exact(wish) | self._loose(wish) for wish in wishes))
        return sorted(found)

    def words(self, text: str) -> list[Wish]:
        """Cut a text at each ``+``, but for those inside a value (``1e+16``)."""
        pieces = text.split("+")
        return next(self._cuts(pieces), [self._wish(piece) for piece in pieces])

    def _cuts(self, pieces: Sequence[str]) -> Iterator[list[Wish]]:
        if not pieces:
            yield []
        for end in range(1, len(pieces) + 1):
            word = self._wish("+".join(pieces[:end]))
            if self._exact(word) or self._loose(word):
                for rest in self._cuts(pieces[end:]):
                    yield [word, *rest]

    def _wish(self, word: str) -> Wish:
        name, equals, value = word.strip().partition("=")
        if equals and any(name.strip() in cell.columns for cell in self._cells):
            return name.strip(), value.strip()
        return None, word.strip()

    def _exact(self, wish: Wish) -> set[int]:
        column, text = wish
        columns = KINDS if column is None else (column,)
        return {
            number
            for number, cell in enumerate(self._cells)
            if any(cell.columns.get(name) == text for name in columns)
        }

    def _loose(self, wish: Wish) -> set[int]:
        column, text = wish
        if column is not None and column not in KINDS:
            return self._exact((column, spelled(text)))
        if wish not in self._seen:
            kinds = KINDS if column is None else (column,)
            self._seen[wish] = set().union(*(self._selected(kind, text) for kind in kinds))
        return self._seen[wish]

    def _selected(self, kind: str, text: str) -> set[int]:
        if not text:
            return set()
        if self._registry is None:
            self._registry = self._load()
        records = [cell.seeds[0].record for cell in self._cells]
        try:
            chosen = select(records, self._registry, {kind: [text]})
        except NothingSelected:
            return set()
        except UsageError as error:
            self.refused = str(error)
            return set()
        kept = {record.run_id for record in chosen}
        return {number for number, record in enumerate(records) if record.run_id in kept}
