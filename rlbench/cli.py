"""The command line. Declarations only: whatever is heavy is imported in the body that needs it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from rlbench import __version__
from rlbench.errors import NothingSelected, UsageError
from rlbench.report.terminal import (
    Commands,
    Folder,
    Once,
    can_write,
    columns,
    emit,
    is_terminal,
    open_what_is_closed,
    say,
    write_whatever_the_encoding,
)
from rlbench.training.spec import DEFAULT_SELECTIONS

if TYPE_CHECKING:
    from rlbench.grid.store import Record
    from rlbench.grid.supervisor import Planned, Watcher
    from rlbench.plugin.registry import Registry
    from rlbench.types import Kind

DEFAULT_OUT = "results/local"
SETTING = "setting"  # what list and show take beside the kinds
_Command = TypeVar("_Command", bound=Callable[..., Any])

_AXES: tuple[tuple[str, Kind, str], ...] = (
    ("-e", "estimator", "Advantage estimator, such as gae or gae:lam=0.9."),
    ("-l", "loss", "Policy loss, such as clip:eps=0.2,eps_high=0.28."),
    ("-k", "kl", "KL controller."),
    ("-t", "task", "Task."),
    ("-r", "reward", "What the policy is trained on."),
    ("-m", "model", "Policy and critic networks."),
)


def main() -> None:
    """Entry point of the ``rlbench`` command."""
    open_what_is_closed()
    write_whatever_the_encoding()
    cli(prog_name="rlbench")


def axis_flags(*, selecting: bool) -> Callable[[_Command], _Command]:
    """Add ``-e`` to ``-m``, which repeat, to choose what runs or to select what is shown."""

    def decorate(command: _Command) -> _Command:
        for flag, name, text in reversed(_AXES):
            more = "Show only these." if selecting else f"[default: {DEFAULT_SELECTIONS[name]}]"
            command = click.option(
                flag,
                f"--{name}",
                multiple=True,
                metavar="NAME[:OPT=VAL,..]",
                help=f"{text}  {more}",
            )(command)
        return command

    return decorate


plugin_flag = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE",
    help="Load a plugin from a file; repeatable.",
)
out_flag = click.option(
    "-o",
    "--out",
    cls=Once,
    type=Folder(),
    help=f"Folder of results (default: {DEFAULT_OUT}).",
)
format_flag = click.option(
    "--format",
    "format_",
    cls=Once,
    default="simple",
    show_default=True,
    help="Any tabulate format (github, latex, ...), or csv, tsv, json.",
)
width_flag = click.option(
    "--max-width",
    cls=Once,
    type=click.IntRange(min=0),
    metavar="N",
    help="Widest table, in columns (default: the terminal's; 0: no limit).",
)


def _seconds(_context: click.Context, _parameter: click.Parameter, value: float | None) -> Any:
    """Accept a positive, finite number of seconds."""
    if value is not None and not (0 < value < math.inf):
        raise click.BadParameter(f"{value:g} is not a positive number of seconds.")
    return value


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  rlbench run -e gae -e group -s 0-4
  rlbench run -l clip -l clip:eps=0.1 --set lr=3e-4,1e-3
  rlbench run -l my_loss --plugin my_loss.py
  rlbench table --format github
  rlbench show loss clip""",
)
@click.version_option(__version__, "-V", "--version", message="rlbench %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Compare pieces of RL fine-tuning on small language models: fair, seeded grids."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@cli.command(
    epilog="""\b
A repeated flag is an axis; the grid is the product of the axes and the seeds.
  rlbench run -e gae:lam=0.9 -e gae -e rloo     three estimators, seeds 0 to 4
  rlbench run -l clip -l pg --set lr=3e-4,1e-3  two losses at two learning rates
  rlbench run -k adaptive:target=0.3 -s 0,3,7   three seeds of one cell
Runs that are on disk already are not repeated."""
)
@axis_flags(selecting=False)
@click.option("--track", "trackers", multiple=True, metavar="NAME", help="Tracker; repeatable.")
@click.option("--engine", cls=Once, default="local", show_default=True, help="Where runs execute.")
@click.option(
    "-s",
    "--seeds",
    multiple=True,
    default=("0-4",),
    show_default=True,
    help="Seeds: 0-4 or 0,3,7; repeatable.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VAL[,VAL]",
    help="Trainer setting; repeatable (rlbench list setting).",
)
@out_flag
@click.option(
    "-j",
    "--workers",
    cls=Once,
    type=click.IntRange(min=1),
    metavar="N",
    help="Runs at the same time (default: cores).",
)
@plugin_flag
@click.option(
    "--timeout",
    cls=Once,
    type=float,
    callback=_seconds,
    metavar="SECONDS",
    help="The most a run may take.",
)
@click.option("--retry", is_flag=True, help="Repeat failed, diverged and timed-out runs.")
@click.option("--fail-fast", is_flag=True, help="Start nothing more after a failure.")
@format_flag
@width_flag
@click.option("-q", "--quiet", is_flag=True, help="Only failures on stderr.")
def run(
    *,
    trackers: tuple[str, ...],
    engine: str,
    seeds: tuple[str, ...],
    settings: tuple[str, ...],
    out: Path | None,
    workers: int | None,
    plugins: tuple[str, ...],
    timeout: float | None,
    retry: bool,
    fail_fast: bool,
    format_: str,
    max_width: int | None,
    quiet: bool,
    **axes: tuple[str, ...],
) -> int:
    """Run a grid, then show its table."""
    from rlbench.grid.experiment import build
    from rlbench.grid.launch import cores, launch, plan
    from rlbench.report.tables import check_format

    check_format(format_)
    registry = _load(plugins)
    note = None if quiet else say
    specs = build(
        registry,
        selections=cast("Mapping[Kind, tuple[str, ...]]", axes),
        settings=settings,
        seeds=",".join(seeds),
        note=note,
    )
    folder = out or Path(DEFAULT_OUT)
    slots = workers or cores()
    planned = plan(specs)
    records, outcome = launch(
        registry,
        planned,
        out=folder,
        plugins=plugins,
        trackers=trackers,
        engine=engine,
        workers=slots,
        watcher=_watcher(planned, folder, slots, quiet=quiet),
        timeout_s=timeout,
        retry=retry,
        fail_fast=fail_fast,
    )
    _print_table(records, format_, max_width)
    return int(outcome.exit_code)


@cli.command(
    epilog="""\b
  rlbench table results/local --format github
  rlbench table -e gae -e rloo -l clip
A name selects all its variants; with options, those that have these values."""
)
@click.argument("folder", metavar="[OUT]", required=False, type=Folder())
@out_flag
@axis_flags(selecting=True)
@click.option("-s", "--seeds", multiple=True, help="Only these seeds; repeatable.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VAL[,VAL]",
    help="Only runs with these settings; repeatable.",
)
@plugin_flag
@format_flag
@width_flag
def table(
    *,
    folder: Path | None,
    out: Path | None,
    seeds: tuple[str, ...],
    settings: tuple[str, ...],
    plugins: tuple[str, ...],
    format_: str,
    max_width: int | None,
    **axes: tuple[str, ...],
) -> None:
    """Show the results in a folder, one row a cell."""
    from rlbench.grid.experiment import parse_seeds, parse_settings
    from rlbench.grid.store import Store
    from rlbench.report.select import select
    from rlbench.report.tables import check_format

    check_format(format_)
    if folder and out and folder != out:
        raise UsageError(f"two folders of results were given, {folder} and {out}; give one")
    root = folder or out or Path(DEFAULT_OUT)
    records = Store(root).read()
    if not records:
        raise NothingSelected(f"no results in {root}; rlbench run -o {root} makes some")
    wanted = {cast("Kind", kind): texts for kind, texts in axes.items() if texts}
    registry = _load(plugins) if wanted or plugins or settings else None
    chosen = select(
        records,
        registry,
        wanted,
        seeds=parse_seeds(",".join(seeds)) if seeds else None,
        settings=parse_settings(settings, registry),
        note=say,
    )
    _print_table(chosen, format_, max_width)


@cli.command("list")
@click.argument("kind", required=False)
@plugin_flag
def list_(kind: str | None, plugins: tuple[str, ...]) -> None:
    """List components, or those of one KIND (also: setting)."""
    from rlbench.report.show import list_text, settings_text

    registry = _load(plugins)
    if kind == SETTING:
        emit(settings_text(columns()))
        return
    kinds = list(_kinds()) if kind is None else [_kind(kind)]
    emit(list_text(registry, kinds, columns()))


@cli.command()
@click.argument("kind")
@click.argument("name")
@plugin_flag
def show(kind: str, name: str, plugins: tuple[str, ...]) -> None:
    """Describe a component, or a setting: owner, needs, options and documentation."""
    from rlbench.plugin.selection import parse
    from rlbench.report.show import component_text, setting_text

    registry = _load(plugins)
    if kind == SETTING:
        emit(setting_text(name, columns()))
        return
    component = parse(registry, _kind(kind), name).component if ":" in name else None
    component = component or registry.find(_kind(kind), name)
    emit(component_text(component, columns()))


@cli.command("plugins")
@plugin_flag
def plugins_(plugins: tuple[str, ...]) -> None:
    """List plugins, what they registered, and what went wrong."""
    from rlbench.plugin.loading import load
    from rlbench.report.show import plugins_text

    emit(plugins_text(load(plugins), columns()))


def _load(plugins: tuple[str, ...]) -> Registry:
    """Load all plugins; those that can't be loaded cost one line each."""
    from rlbench.plugin.loading import load

    registry = load(plugins)
    for problem in registry.problems:
        say(f"warning: {problem}")
    return registry


def _kinds() -> tuple[Kind, ...]:
    from rlbench.plugin.registry import KINDS

    return KINDS


def _kind(name: str) -> Kind:
    """Check the name of a kind."""
    if name not in _kinds():
        raise UsageError.unknown("kind", name, [*_kinds(), SETTING])
    return name


def _watcher(planned: Sequence[Planned], out: Path, workers: int, *, quiet: bool) -> Watcher:
    """Choose how to show the progress."""
    from rlbench.grid.store import Store
    from rlbench.report.progress import Display, Lines, typical_seconds

    if quiet or not is_terminal(sys.stderr):
        return Lines(out=out, workers=workers, say=say, quiet=quiet)
    earlier_s = typical_seconds(map(Store(out).record, (run.run_id for run in planned)))
    return Display(out=out, workers=workers, say=say, earlier_s=earlier_s)


def _print_table(records: list[Record], format_: str, max_width: int | None) -> None:
    """Print the table; where its format has no room for notes, they go to stderr."""
    from rlbench.report.cells import KINDS, cells, differing
    from rlbench.report.notes import notes
    from rlbench.report.tables import ranked, table

    shown = cells(records)
    for record in records:
        if record.problem:
            say(f"warning: {record.problem}")
    if not shown:
        raise NothingSelected("none of these folders holds a run that can be read")
    width = max_width if max_width is not None else (columns() if is_terminal(sys.stdout) else 0)
    emit(table(shown, format_, width or None, ascii_only=not can_write("±")))
    if format_ in ("csv", "tsv"):
        labels = differing(shown) or list(KINDS[:3])
        for line in notes(ranked(shown, labels), labels):
            say(line)
