"""``rlbench plot``: figures of what is on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlbench.cli import flags, selecting
from rlbench.cli.baseline import baselines
from rlbench.errors import NothingSelected, UsageError
from rlbench.report.plots import COLUMN_WIDTH, FULL_WIDTH, NAMES, SUMMARIES
from rlbench.report.text.terminal import Folder, Once, emit, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.cells.cell import Cell
    from rlbench.report.cells.metric import Direction

_FORMATS = ("png", "svg", "pdf")
_WIDTHS = {"full": FULL_WIDTH, "column": COLUMN_WIDTH}
_INCHES = (3.0, 30.0)
_SHOWN = 5  # remarks on a figure that are told one by one
_OPTIONS = {"column": "curves", "rows": "matrix", "columns": "matrix", "baseline": "improvement"}
_LIST = "\n".join(f"  {name:<12} {SUMMARIES[name]}" for name in NAMES)


def _width(_context: click.Context, _parameter: click.Parameter, value: str) -> Any:
    low, high = _INCHES
    if value in _WIDTHS:
        return _WIDTHS[value]
    try:
        inches = float(value)
    except ValueError:
        inches = 0.0
    if not low <= inches <= high:
        raise click.BadParameter(f"{value!r} is not full, column, or {low:g} to {high:g} inches.")
    return inches


def _formats(_context: click.Context, _parameter: click.Parameter, value: str) -> Any:
    names = list(dict.fromkeys(name.strip().lower().removeprefix(".") for name in value.split(",")))
    for name in names:
        if name not in _FORMATS:
            raise UsageError.unknown("plot format", name, _FORMATS)
    return names


@click.command(
    epilog=f"""\b
Plots:
{_LIST}

\b
  rlbench plot -o results/local
  rlbench plot curves -e gae -e group --save curves.pdf --width column
  rlbench plot curves --column clip_fraction
  rlbench plot matrix --rows estimator --columns lr
  rlbench plot improvement --baseline group+clip"""
)
@click.argument("names", metavar="[PLOT]...", nargs=-1)
@selecting.selection
@click.option(
    "--save",
    cls=Once,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write one plot to this file, which ends in .png, .svg or .pdf.",
)
@click.option(
    "--to",
    cls=Once,
    type=Folder(),
    metavar="DIR",
    help="Write plots into this folder (default: plots, in the folder of results).",
)
@click.option(
    "--format",
    "formats",
    cls=Once,
    default="png",
    show_default=True,
    callback=_formats,
    metavar="NAME[,NAME]",
    help="Of plots in a folder: png, svg, pdf.",
)
@click.option("--force", is_flag=True, help="Overwrite files that are no plots of rlbench.")
@click.option(
    "--width",
    cls=Once,
    default="full",
    show_default=True,
    callback=_width,
    metavar="INCHES",
    help=f"Or full ({FULL_WIDTH}), or column ({COLUMN_WIDTH}).",
)
@click.option(
    "--column",
    cls=Once,
    metavar="NAME",
    help="What curves show: a column of evals.csv or metrics.csv.",
)
@click.option("--rows", cls=Once, metavar="FACTOR", help="Down the matrix: estimator, lr, ...")
@click.option("--columns", cls=Once, metavar="FACTOR", help="Across the matrix.")
@click.option("--baseline", cls=Once, metavar="CELL", help="What improvement is measured against.")
@flags.metric
@flags.direction
def plot(
    *,
    names: tuple[str, ...],
    out: Path | None,
    seeds: tuple[str, ...],
    settings: tuple[str, ...],
    plugins: tuple[str, ...],
    save: Path | None,
    to: Path | None,
    formats: list[str],
    force: bool,
    width: float,
    column: str | None,
    rows: str | None,
    columns: str | None,
    baseline: str | None,
    metric: str,
    direction: Direction | None,
    **axes: tuple[str, ...],
) -> None:
    """Draw figures of results, those named or all.

    What these results can't have is left out, with the reason.
    """
    from rlbench.report.cells.metric import metric as metric_named

    root = selecting.root(None, out)
    wanted = _names(names)
    given = {"column": column, "rows": rows, "columns": columns, "baseline": baseline}
    _check_options(given, names)
    paths = _paths(wanted, save, to or root / "plots", formats)
    _check(paths, to_a_file=save is not None, force=force)
    chosen = selecting.choose(
        selecting.read(root), axes=axes, seeds=seeds, settings=settings, plugins=plugins
    )
    shown = selecting.cells(chosen, metric_named(metric, direction))
    options: dict[str, Any] = {"metric_column": column, "factors": (rows, columns), "width": width}
    if baseline is not None:
        options["baseline"] = baselines(shown, baseline, plugins)
    written = [
        path
        for name in wanted
        for path in _draw(name, shown, paths[name], options, alone=len(names) == 1, force=force)
    ]
    if not written:
        raise NothingSelected("no plot was written")


def _names(names: Sequence[str]) -> list[str]:
    """Check the names of figures; all if none is given."""
    for name in names:
        if name in NAMES:
            continue
        if Path(name).is_dir():
            raise UsageError(f"{name} is a folder; of results, write -o {name}")
        raise UsageError.unknown("plot", name, NAMES)
    return list(dict.fromkeys(names)) or list(NAMES)


def _check_options(given: dict[str, str | None], names: Sequence[str]) -> None:
    """Refuse an option that has no effect on what is named."""
    for option, value in given.items():
        name = _OPTIONS[option]
        if value is not None and names and name not in names:
            meant = "; did you mean --column?" if option == "columns" else ""
            raise UsageError(f"--{option} is for plot {name}, which is not asked for{meant}")


def _paths(
    wanted: Sequence[str], save: Path | None, folder: Path, formats: Sequence[str]
) -> dict[str, list[Path]]:
    """Name the files of each figure."""
    if save is None:
        return {name: [folder / f"{name}.{ending}" for ending in formats] for name in wanted}
    if len(wanted) > 1:
        raise UsageError(
            f"--save {save} takes one plot, {len(wanted)} are asked for; name one, or a folder "
            "with --to"
        )
    context = click.get_current_context()
    for option in ("to", "formats"):
        if context.get_parameter_source(option) is not click.core.ParameterSource.DEFAULT:
            flag = "--format" if option == "formats" else "--to"
            raise UsageError(f"{flag} is for plots in a folder; --save names the file itself")
    return {wanted[0]: [save]}


def _check(paths: dict[str, list[Path]], *, to_a_file: bool, force: bool) -> None:
    """Refuse files that can't be written, before anything is read."""
    from rlbench.report.plots import output

    for path in (path for several in paths.values() for path in several):
        if to_a_file or path.parent.exists():
            output.check_path(path, force=force)


def _draw(
    name: str,
    shown: Sequence[Cell],
    paths: Sequence[Path],
    options: dict[str, Any],
    *,
    alone: bool,
    force: bool,
) -> list[Path]:
    """Draw one figure and write its files; what it can't show is said on stderr."""
    from rlbench.report import plots

    remarks: list[str] = []
    try:
        figure = plots.draw(name, shown, note=remarks.append, **options)
    except NothingSelected as error:
        if alone:
            raise
        say(f"no {name}: {error}")
        return []
    for remark in remarks[:_SHOWN]:
        say(f"{name}: {remark}")
    if len(remarks) > _SHOWN:
        say(f"{name}: {len(remarks) - _SHOWN:,} more of this kind")
    for path in paths:
        _make_folder(path.parent)
        plots.save(figure, path, force=force)
        emit(str(path))
    return list(paths)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder {folder} can't be made: {error.strerror}") from error
