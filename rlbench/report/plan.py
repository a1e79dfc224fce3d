"""What ``rlbench run`` would do: the cells of a grid, what is there, how long the rest takes."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field
from math import prod
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rlbench.grid.axes import ignore
from rlbench.report.progress import count, spell_seconds
from rlbench.report.text.folding import fold, width_of
from rlbench.report.text.layout import simple
from rlbench.report.text.spelling import printable, spell_seeds
from rlbench.training.settings import Settings
from rlbench.training.spec import DEFAULT_SELECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rlbench.grid.attempt import Planned
    from rlbench.grid.experiment import Grid
    from rlbench.grid.request import Request
    from rlbench.grid.store import Record, Store
    from rlbench.training.spec import RunSpec

MOST_ROWS = 40
ALWAYS = ("done", "missing", "failed")
SOMETIMES = ("running", "killed", "blocked")
_FAILED = ("failed", "diverged", "timeout")
_UNNAMED = ("estimator", "loss", "kl")  # what names the row of a grid of one cell


@dataclass(frozen=True)
class Cell:
    """One cell of a plan.

    Attributes:
        spec: Its run at the first seed.
        states: How many of its runs are ``done``, ``missing``, ``failed``, ``running``, ``killed``
            or, for what lies in their places, ``blocked``.
        took_s: Seconds of each of its runs that ended well.
    """

    spec: RunSpec
    states: Counter[str] = field(default_factory=Counter)
    took_s: list[float] = field(default_factory=list)

    @property
    def scale(self) -> tuple[str, str]:
        """Cells that agree in this differ in their seconds mostly by the number of updates."""
        selections = self.spec.selections
        return selections["task"].label, selections["model"].label

    def to_do(self, *, retry: bool) -> int:
        """Count the runs that would start."""
        return self.states["missing"] + self.states["killed"] + retry * self.states["failed"]


def survey(
    planned: Sequence[Planned],
    store: Store,
    note: Callable[[str], None] = ignore,
    *,
    retry: bool = False,
) -> list[Cell]:
    """Look at every run of a grid; nothing is written.

    Args:
        planned: The runs; those of a cell share selections and settings.
        store: The results.
        note: Hears what is wrong with what is there of a run, a line each.
        retry: Whether failed runs are to do, and blocked where something lies in their places.

    Returns:
        The cells in the order of their first runs.

    Raises:
        UsageError: The folder of results is a file, or can't be read.
    """
    cells: dict[tuple[int, int], Cell] = {}
    for run, record in zip(planned, store.records(r.run_id for r in planned), strict=True):
        key = (id(run.spec.selections), id(run.spec.settings))
        cell = cells.setdefault(key, Cell(run.spec))
        state = _state(record, store, retry=retry)
        cell.states[state] += 1
        if problem := record.problem or (record.obstacle if state == "blocked" else None):
            note(problem)
        if (seconds := _seconds(record)) is not None:
            cell.took_s.append(seconds)
    return list(cells.values())


def expected_s(
    cells: Sequence[Cell], others: Iterable[Record], *, retry: bool = False
) -> list[float | None]:
    """Guess how long one run of each cell takes.

    The median of its own runs that ended well; or that of the other cells with its task and model,
    per update; or that of other runs of this kind in the same folder.

    Args:
        cells: The plan.
        others: Every run of the folder; read only if a cell with something to do has no timing.
        retry: Whether failed runs are to do, too.

    Returns:
        Seconds for each cell; None where nothing like it has ended.
    """
    per_update: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        updates = cell.spec.settings.updates
        per_update.setdefault(cell.scale, []).extend(s / updates for s in cell.took_s)
    if any(cell.to_do(retry=retry) and not per_update[cell.scale] for cell in cells):
        known = {scale for scale, rates in per_update.items() if rates}
        for scale, rate in _rates(others):
            if scale in per_update and scale not in known:
                per_update[scale].append(rate)
    rates = {scale: statistics.median(some) for scale, some in per_update.items() if some}
    return [
        statistics.median(cell.took_s)
        if cell.took_s
        else rates[cell.scale] * cell.spec.settings.updates
        if cell.scale in rates
        else None
        for cell in cells
    ]


def plan_text(
    request: Request,
    cells: Sequence[Cell],
    seconds: Sequence[float | None],
    *,
    workers: int,
    width: int = 80,
    table_width: int | None = None,
    every_row: bool = False,
    older: str = "",
) -> str:
    """Write a plan.

    Args:
        request: What was asked for.
        cells: What is there of it, from `survey`.
        seconds: From `expected_s`.
        workers: Runs at the same time.
        width: Columns of prose.
        table_width: Columns of the table; where its labels need more, they stand in one column,
            folded. None means those of prose.
        every_row: Show more than the first 40 cells.
        older: What to say of runs that other code made, from `rlbench.report.older`.

    Returns:
        The axes, one row a cell, and what is left to do.
    """
    total = Counter[str]()
    for cell in cells:
        total.update(cell.states)
    paragraphs = [
        "\n".join(_axes(request, len(cells), width)),
        _table(cells, total, table_width or width, every_row=every_row),
        *(_fill(text, width) for text in _shared(cells)),
        _fill(_ending(request, cells, total, seconds, workers), width),
        *([_fill(older, width)] if older else []),
    ]
    return "\n\n".join(paragraphs)


def _state(record: Record, store: Store, *, retry: bool) -> str:
    """Sort a run into one of the columns."""
    failed = record.status in _FAILED
    if record.obstacle and ((retry and failed) or not record.complete):
        return "blocked"
    if record.complete:
        return "failed" if failed else "done"
    if store.running(record.run_id):
        return "running"
    return "killed" if record.status == "killed" else "missing"


def _seconds(record: Record) -> float | None:
    seconds = (record.result or {}).get("wall_s")
    ended_well = record.status == "ok" and isinstance(seconds, (int, float)) and seconds > 0
    return float(seconds) if ended_well and seconds is not None else None


def _rates(records: Iterable[Record]) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield task, model and seconds an update of every run that ended well."""
    for record in records:
        seconds, spec = _seconds(record), record.spec
        updates = spec["settings"].get("updates") if spec else None
        if spec is None or seconds is None or not isinstance(updates, int) or updates < 1:
            continue
        labels = [spec["components"].get(kind, {}).get("label") for kind in ("task", "model")]
        yield (str(labels[0]), str(labels[1])), seconds / updates


def _axes(request: Request, cells: int, width: int) -> list[str]:
    """Say what varies, an axis a line."""
    grid = request.grid
    seeds, runs = count(len(grid.seeds), "seed"), count(len(request.specs), "run")
    lines = [f"{count(cells, 'cell')}, {seeds}: {runs} in {printable(str(request.out))}"]
    rows: dict[str, str] = {
        kind: ", ".join(chosen.label for chosen in grid.selections[kind])
        for kind in DEFAULT_SELECTIONS
        if kind in grid.selections
    }
    rows |= {name: ", ".join(_spell(name, v) for v in vs) for name, vs in grid.settings.items()}
    for number, zipped in enumerate(grid.zips, 1):
        rows[f"zip {number}"] = "; ".join(
            " ".join(f"{name}={_spell(name, value)}" for name, value in row.items())
            for row in zipped
        )
    rows["seeds"] = spell_seeds(grid.seeds)
    if excluded := _excluded(grid, cells):
        rows["excluded"] = count(excluded, "cell")
    rows |= {
        name: _spell_how(value) for name, value in request.how.items() if _is_given(name, value)
    }
    margin = max(map(len, rows)) + 4
    for name, text in rows.items():
        lines += wrap(
            text,
            max(width, margin + 20),
            initial_indent=f"  {name}".ljust(margin),
            subsequent_indent=" " * margin,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def _excluded(grid: Grid, cells: int) -> int:
    sizes = [*grid.selections.values(), *grid.settings.values(), *grid.zips]
    return prod(map(len, sizes)) - cells


def _is_given(name: str, value: Any) -> bool:
    return value not in (None, False, ()) and (name, value) != ("engine", "local")


def _spell_how(value: Any) -> str:
    if isinstance(value, tuple):
        return printable(", ".join(value))
    if value is True:
        return "yes"
    return f"{value:g}" if isinstance(value, float) else printable(str(value))


def _table(cells: Sequence[Cell], total: Counter[str], width: int, *, every_row: bool) -> str:
    """Lay out one row a cell."""
    labels = _differing(cells) or list(_UNNAMED)
    states = [*ALWAYS, *(state for state in SOMETIMES if total[state])]
    shown = cells if every_row else cells[:MOST_ROWS]
    counts = [[f"{cell.states[state]:,}" for state in states] for cell in shown]
    names = [[_label(cell, name) for name in labels] for cell in shown]
    text = _laid_out(labels, names, states, counts)
    if max(map(width_of, text.splitlines())) > width:
        column = [max(map(len, texts)) for texts in zip(states, *counts, strict=True)]
        room = width - sum(size + 2 for size in column)
        names = [[fold(_name(labels, row), room)] for row in names]
        text = _laid_out(["cell"], names, states, counts)
    hidden = len(cells) - len(shown)
    return f"{text}\n... and {count(hidden, 'more cell')} (--all shows them)" if hidden else text


def _laid_out(
    labels: Sequence[str],
    names: Sequence[Sequence[str]],
    states: Sequence[str],
    counts: Sequence[Sequence[str]],
) -> str:
    rows = [[*name, *numbers] for name, numbers in zip(names, counts, strict=True)]
    flush = [*(False for _ in labels), *(True for _ in states)]
    return simple([*labels, *states], rows, flush)


def _name(labels: Sequence[str], texts: Sequence[str]) -> str:
    """Name a cell in one text, as notes below a table of results do."""
    return ", ".join(
        text if name in DEFAULT_SELECTIONS else f"{name}={text}"
        for name, text in zip(labels, texts, strict=True)
    )


def _differing(cells: Sequence[Cell]) -> list[str]:
    """Name what differs between cells, in the order of columns of the results."""
    chosen = {id(cell.spec.selections): cell.spec.selections for cell in cells}.values()
    trainers = {id(cell.spec.settings): cell.spec.settings for cell in cells}.values()
    values = [trainer.values() for trainer in trainers]
    kinds = [k for k in DEFAULT_SELECTIONS if len({one[k].label for one in chosen}) > 1]
    names = [option.name for option in Settings.options()]
    return [*kinds, *(name for name in names if len({one[name] for one in values}) > 1)]


def _shared(cells: Sequence[Cell]) -> list[str]:
    """Say what all cells have in common, settings only where they are not the default."""
    labels = _differing(cells)
    first = cells[0]
    hidden = labels or _UNNAMED
    common = [f"{kind} {_label(first, kind)}" for kind in DEFAULT_SELECTIONS if kind not in hidden]
    common += [
        f"{option.name}={_label(first, option.name)}"
        for option in Settings.options()
        if option.name not in labels and getattr(first.spec.settings, option.name) != option.default
    ]
    return [f"{'All cells' if len(cells) > 1 else 'With'}: {', '.join(common)}."]


def _label(cell: Cell, name: str) -> str:
    if name in DEFAULT_SELECTIONS:
        return _spell(name, cell.spec.selections[name])  # type: ignore[index]  # the names of kinds are kinds
    return _spell(name, getattr(cell.spec.settings, name))


def _spell(name: str, value: Any) -> str:
    text = value.label if name in DEFAULT_SELECTIONS else Settings.option(name).spell(value)
    return printable(text)


def _ending(
    request: Request,
    cells: Sequence[Cell],
    total: Mapping[str, int],
    seconds: Sequence[float | None],
    workers: int,
) -> str:
    """Say what is left to do, and how long it takes."""
    retry = bool(request.how["retry"])
    to_do = [cell.to_do(retry=retry) for cell in cells]
    parts = [f"{total[s]:,} {s}" for s in (*ALWAYS, *SOMETIMES) if s in ALWAYS or total[s]]
    text = f"{count(sum(total.values()), 'run')}: {', '.join(parts)}. "
    if not sum(to_do):
        text += "Nothing is left to run."
        again = total["failed"] and not retry
        return text + (" Those that failed run again with --retry." if again else "")
    text += f"{count(sum(to_do), 'run')} to do, {min(workers, sum(to_do))} at a time: "
    known = [(n, s) for n, s in zip(to_do, seconds, strict=True) if n and s is not None]
    unknown = sum(to_do) - sum(n for n, _ in known)
    if not known:
        return text + "no timing yet."
    work = sum(n * s for n, s in known) / workers
    longest = max(s for _, s in known)
    text += f"about {spell_seconds(max(work, longest))}"
    return text + (f", and {unknown:,} of them without timing yet." if unknown else ".")


def _fill(text: str, width: int) -> str:
    return "\n".join(wrap(text, width, break_long_words=False, break_on_hyphens=False))
