"""``rlbench plot``: figures of what is on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlbench.cli import flags, selecting
from rlbench.cli.baseline import baselines
from rlbench.errors import NothingSelected, UsageError
from rlbench.report.plots import AGAINST, COLUMN_WIDTH, FULL_WIDTH, NAMES, SUMMARIES
from rlbench.report.text.terminal import Folder, Once, emit, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.cells.cell import Cell
    from rlbench.report.cells.metric import Direction

_FORMATS = ("png", "svg", "pdf")
_WIDTHS = {"full": FULL_WIDTH, "column": COLUMN_WIDTH}
_INCHES = (3.0, 30.0)
_SHOWN = 5  # remarks on a figure that are told one by one
_OPTIONS = {
    "column": ("curves",),
    "rows": ("matrix",),
    "columns": ("matrix",),
    "baseline": AGAINST,
    "margin": ("differences",),
}
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
  rlbench plot results/local
  rlbench plot curves -e gae -e group --save curves.pdf --width column
  rlbench plot curves --column clip_fraction
  rlbench plot matrix --rows estimator --columns lr
  rlbench plot differences --baseline group+clip --margin 0.02
  rlbench plot results/atari profile --normalise random_human.csv
A folder among the names is that of the results, as -o is."""
)
@click.argument("names", metavar="[OUT] [PLOT]...", nargs=-1)
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
@click.option(
    "--baseline",
    cls=Once,
    metavar="CELL",
    help="What differences and improvement are measured against.",
)
@flags.margin
@flags.normalise()
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
    margin: float | None,
    normalise: Path | None,
    metric: str,
    direction: Direction | None,
    **axes: tuple[str, ...],
) -> None:
    """Draw figures of results, those named or all.

    What these results can't have is left out, with the reason.
    """
    from rlbench.grid.normalisation import read_normalisation
    from rlbench.report.cells.metric import metric as metric_named

    asked, folder = _asked(names)
    root = selecting.root(folder, out)
    wanted = asked or list(NAMES)
    given = {"column": column, "rows": rows, "columns": columns, "baseline": baseline}
    _check_options(given | {"margin": margin}, asked)
    paths = _paths(wanted, save, to or root / "plots", formats)
    _check(paths, to_a_file=save is not None, force=force)
    if normalise is not None and metric != "score":
        raise UsageError(f"--normalise is for scores, not for {metric}")
    scales = read_normalisation(normalise) if normalise else None
    chosen = selecting.choose(
        selecting.read(root), axes=axes, seeds=seeds, settings=settings, plugins=plugins
    )
    shown = selecting.cells(chosen, metric_named(metric, direction))
    options: dict[str, Any] = {
        "metric_column": column,
        "factors": (rows, columns),
        "width": width,
        "margin": margin,
        "scales": scales,
    }
    if baseline is not None:
        options["baseline"] = baselines(shown, baseline, plugins)
    _draw_all(shown, wanted, asked, paths, options, force=force)


def _draw_all(
    shown: Sequence[Cell],
    wanted: Sequence[str],
    asked: Sequence[str],
    paths: dict[str, list[Path]],
    options: dict[str, Any],
    *,
    force: bool,
) -> None:
    """Draw figures; why one can't be drawn is said once for all of which it is true."""
    absent = _without_baseline(shown, wanted, options, asked)
    for name in wanted:
        if name not in absent:
            absent |= _draw(name, shown, paths[name], options, alone=len(asked) == 1, force=force)
    for reason in dict.fromkeys(absent.values()):
        say(f"no {', '.join(name for name in absent if absent[name] == reason)}: {reason}")
    if len(absent) == len(wanted):
        raise NothingSelected("no plot was written")


def _asked(names: Sequence[str]) -> tuple[list[str], Path | None]:
    """Tell the figures that are asked for by name from the folder of the results."""
    if "" in names:  # what an unset variable of a shell leaves, and no name of the current folder
        raise UsageError("the name of the plot is empty")
    folders = [name for name in names if name not in NAMES and Path(name).is_dir()]
    if len(set(folders)) > 1:
        raise UsageError(f"{len(folders)} folders of results were given, {', '.join(folders)}")
    for name in names:
        if name in NAMES or name in folders:
            continue
        if "/" in name:
            raise UsageError(f"there is no folder {name}, and no plot of that name")
        raise UsageError.unknown("plot", name, NAMES)
    asked = list(dict.fromkeys(name for name in names if name in NAMES))
    return asked, Path(folders[0]) if folders else None


def _without_baseline(
    shown: Sequence[Cell], wanted: Sequence[str], options: dict[str, Any], asked: Sequence[str]
) -> dict[str, str]:
    """Say why figures that take a baseline can't be drawn; whoever asked for one is refused."""
    from rlbench.report.plots import check_baseline

    against = [name for name in wanted if name in AGAINST]
    try:
        if against:
            check_baseline(shown, options.get("baseline"))
    except UsageError as error:
        if asked:
            raise
        return dict.fromkeys(against, str(error))
    except NothingSelected as error:
        if len(asked) == 1:
            raise
        return dict.fromkeys(against, str(error))
    return {}


def _check_options(given: dict[str, Any], asked: Sequence[str]) -> None:
    """Refuse an option that has no effect on what is named."""
    for option, value in given.items():
        takes = _OPTIONS[option]
        if value is not None and asked and not set(takes) & set(asked):
            meant = "; did you mean --column?" if option == "columns" else ""
            several = "s" if len(takes) > 1 else ""
            which = "none of which is" if several else "which is not"
            raise UsageError(
                f"--{option} is for plot{several} {' and '.join(takes)}, {which} asked for{meant}"
            )


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
) -> dict[str, str]:
    """Draw one figure and write its files; what it can't show is said on stderr.

    Returns:
        Why it can't be drawn, under its name; nothing where it was.
    """
    from rlbench.report import plots

    remarks: list[str] = []
    try:
        figure = plots.draw(name, shown, note=remarks.append, **options)
    except NothingSelected as error:
        if alone:
            raise
        return {name: str(error)}
    for remark in remarks[:_SHOWN]:
        say(f"{name}: {remark}")
    if len(remarks) > _SHOWN:
        say(f"{name}: {len(remarks) - _SHOWN:,} more of this kind")
    for path in paths:
        _make_folder(path.parent)
        plots.save(figure, path, force=force)
        emit(str(path))
    return {}


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder {folder} can't be made: {error.strerror}") from error
