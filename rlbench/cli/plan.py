"""``rlbench plan``: what ``rlbench run`` would do, and what of it is done."""

from __future__ import annotations

from functools import cache
from typing import Any

import click

from rlbench.cli import flags
from rlbench.report.text.terminal import columns, emit, say


@click.command(
    epilog="""\b
It takes the flags of rlbench run, but those of its table; nothing runs.
  rlbench plan night.toml
  rlbench plan -e gae -e group --set lr=3e-4,1e-3 -s 0-9"""
)
@flags.grid
@flags.execution
@click.option("--all", "every_row", is_flag=True, help="Show every cell, not only the first 40.")
def plan(*, every_row: bool, **given: Any) -> None:
    """Show what a grid has, what is done of it, and its ETA."""
    from rlbench.grid.launch import cores, plan
    from rlbench.grid.store import Store
    from rlbench.report import older
    from rlbench.report.plan import expected_s, plan_text, survey

    request = flags.ask(given, say)
    how = request.how
    store = Store(request.out)
    planned = plan(request.specs)
    cells = survey(planned, store, _warn, retry=how["retry"])
    for problem in store.blocked_base_policies().values():
        _warn(problem)
    read, names = cache(store.record), store.names()
    seconds = expected_s(cells, map(read, names), retry=how["retry"])
    workers = how["workers"] or cores()
    emit(
        plan_text(
            request,
            cells,
            seconds,
            workers=workers,
            width=min(columns(), 100),
            table_width=columns(),
            every_row=every_row,
            older=older.text(older.find(planned, names, read), store.root),
        )
    )


def _warn(problem: str) -> None:
    say(f"warning: {problem}")
