"""``rlbench import``: results that were made elsewhere become runs."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlbench.cli import flags
from rlbench.errors import UsageError
from rlbench.report.text.terminal import Once, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlbench.grid.importing import Foreign, What
    from rlbench.grid.score_rows import Layout
    from rlbench.grid.scores_file import Entry

_NAMED = 5  # runs that a message names
_SAID_EVERY = 2_000


@click.command(
    "import",
    epilog="""\b
  rlbench import runs.csv --map algorithm=algo,task=env,score=return -o results/theirs
  rlbench import scores.json --as algorithm=DIAMOND --normalise atari.csv -o results/theirs
  rlbench import walker*.csv --wide --as task=walker --renumber -o results/walker
  rlbench import corl.json --map score=offline_final -o results/corl
A table has a row a run, or one for each step of it; what can be mapped: algorithm (or
estimator, loss, ...), task, seed, score, step, status, score_start, kl_nats, reward_mean,
entropy, length, tokens, wall_s, set.NAME. Where no column has seeds, as in JSON, rlbench counts
them, and compares all runs of a side with all of the other instead of pairs. Of statuses, those
of wandb and MLflow are known: crashed is a failure; running or killed runs are left out.
JSON may also nest names around lists of scores: {task: [..]}, {algorithm: {task: [..]}},
{algorithm: {task: {metric: [..]}}}.""",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..")
@click.option(
    "--map",
    "mapped",
    multiple=True,
    metavar="WHAT=COLUMN[,..]",
    help="Which column holds what; repeatable.",
)
@click.option(
    "--as",
    "fixed",
    multiple=True,
    metavar="WHAT=NAME[,..]",
    help="What all rows are, such as task=walker; repeatable.",
)
@click.option("--wide", is_flag=True, help="Every column is an algorithm, every row a seed.")
@click.option(
    "--levels",
    cls=Once,
    metavar="WHAT,..",
    help="What the names in nested JSON are, from the outside.",
)
@click.option("--renumber", is_flag=True, help="Count seeds on from file to file.")
@click.option(
    "--direction",
    cls=Once,
    type=click.Choice(["higher", "lower"]),
    default="higher",
    show_default=True,
    help="Which scores are better.",
)
@flags.normalise()
@click.option(
    "--floor",
    "floors",
    multiple=True,
    metavar="[TASK=]SCORE[,..]",
    help="What a failed run scores, in all tasks or in one; repeatable (default: 0 if normalised, "
    "else unknown).",
)
@click.option("--replace", is_flag=True, help="Put new numbers in the place of old ones.")
@flags.out
def import_(
    *,
    files: tuple[Path, ...],
    mapped: tuple[str, ...],
    fixed: tuple[str, ...],
    wide: bool,
    levels: str | None,
    renumber: bool,
    direction: str,
    normalise: Path | None,
    floors: tuple[str, ...],
    replace: bool,
    out: Path | None,
) -> int:
    """Turn results that were made elsewhere into runs.

    Then table, compare, effects, plot, report, gate, export and merge work on them.
    """
    from rlbench.grid import importing
    from rlbench.grid.normalisation import read_normalisation
    from rlbench.grid.score_rows import Layout
    from rlbench.grid.store import Store

    columns = _pairs("--map", mapped)
    if wide and columns.keys() - {"seed"}:
        raise UsageError("--wide reads every column as an algorithm: --map may name the seed only")
    layout = Layout(
        columns=columns,
        fixed=_pairs("--as", fixed),
        wide=wide,
        levels=tuple(part.strip() for part in levels.split(",")) if levels else (),
        renumber=renumber,
    )
    entries = _entries(files, layout)
    runs = importing.foreign_runs(
        importing.numbered(entries, again=renumber),
        lower_is_better=direction == "lower",
        floors=_floors(floors),
        scales=read_normalisation(normalise) if normalise else None,
    )
    store = Store(out or Path(flags.DEFAULT_OUT))
    if out is None and any(not importing.is_foreign(record) for record in store.read()):
        raise UsageError(
            f"{store.root} holds runs that were made here; name a folder for these with -o"
        )
    return _written(importing.write(runs, store, overwrite=replace), len(runs), store.root)


def _pairs(flag: str, given: Sequence[str]) -> dict[str, str]:
    """Read ``algorithm=algo,score=return``."""
    from rlbench.grid.scores_file import check_targets

    pairs: dict[str, str] = {}
    for part in (part for text in given for part in text.split(",")):
        target, equals, name = part.strip().partition("=")
        if not equals or not target or not name:
            raise UsageError(f"{flag} {part!r}: write WHAT=NAME, such as algorithm=PPO")
        if target in pairs:
            raise UsageError(f"{flag}: {target} is given twice")
        pairs[target] = name
    check_targets(list(pairs), flag)
    return pairs


def _floors(given: Sequence[str]) -> dict[str, float]:
    """Read ``-1`` or ``Pong=-21,Breakout=0``; the empty name stands for all other tasks."""
    floors: dict[str, float] = {}
    for part in (part for text in given for part in text.split(",")):
        task, _, value = (piece.strip() for piece in part.rpartition("="))
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise UsageError(
                f"--floor {part.strip()!r}: write a finite score, such as -1, or TASK=SCORE"
            )
        if task in floors:
            raise UsageError(f"--floor: {f'task {task}' if task else 'a score'} is given twice")
        floors[task] = number
    return floors


def _entries(files: Sequence[Path], layout: Layout) -> list[Entry]:
    """Read all files before anything is written."""
    from rlbench.grid.scores_file import read_scores

    entries: list[Entry] = []
    first = 0
    for path in files:
        found, remarks = read_scores(path, layout, first)
        if layout.renumber:
            first = max((e.seed + 1 for e in found if e.counted and e.seed is not None), default=0)
        for remark in remarks:
            say(f"{path}: {remark}")
        entries += found
    unnumbered = sum(entry.seed is None for entry in entries)
    if unnumbered and not layout.renumber:
        say(f"rows without a seed are numbered in their order: {unnumbered:,}")
    return entries


def _written(steps: Iterator[tuple[Foreign, What]], total: int, out: Path) -> int:
    """Write, and say how far it is and what was written; give the exit code."""
    from rlbench.grid.store import Busy
    from rlbench.report.progress import count

    counts: Counter[str] = Counter()
    conflicts: list[Foreign] = []
    failed, problem = 0, ""
    try:
        for number, (run, what) in enumerate(steps, 1):
            counts[what] += 1
            failed += run.result["status"] != "ok"
            if what == "conflict":
                conflicts.append(run)
            if number % _SAID_EVERY == 0 and number < total:
                say(f"{number:,} of {total:,} runs")
    except KeyboardInterrupt:
        done = count(counts["new"] + counts["replaced"], "run")
        say(f"interrupted; the same command does the rest; so far {done} written to {out}")
        raise
    except (Busy, OSError) as error:
        why = str(error) if isinstance(error, Busy) else error.strerror or str(error)
        problem = f"stopped: {why}; the same command does the rest; so far "
    if conflicts:
        named = ", ".join(f"{run.run_id} ({run.where})" for run in conflicts[:_NAMED])
        more = f" and {len(conflicts) - _NAMED:,} more" if len(conflicts) > _NAMED else ""
        raise UsageError(
            f"other numbers are in {out} already for {named}{more}; --replace takes the new ones. "
            "Nothing was written"
        )
    parts = [f"{count(counts['new'], 'run')} written to {out}"]
    parts += [f"{counts['there']:,} there already"] if counts["there"] else []
    parts += [f"{counts['replaced']:,} replaced"] if counts["replaced"] else []
    parts += [f"{failed:,} without a score count as failed"] if failed else []
    say(problem + "; ".join(parts))
    return int(bool(problem))
