"""rlbench: which piece of RL fine-tuning makes the difference?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlbench.hookspecs import hookimpl
from rlbench.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    import pandas as pd

    from rlbench.types import Kind

    Selections = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]

__all__ = ["__version__", "component", "hookimpl", "results", "run"]


def component(kind: Kind, name: str) -> Any:
    """Import a component by its name: the function or class itself.

    Args:
        kind: Kind of the component, such as ``"estimator"``.
        name: Its name or an alias.

    Returns:
        ``component("loss", "clip")(batch, eps=0.2)`` calls the loss.

    Raises:
        UsageError: Nobody registered such a component, or several plugins did; or the name comes
            with options, which are keyword arguments of what is returned.
        PluginError: It can't be imported.
    """
    from rlbench.errors import UsageError
    from rlbench.plugin.loading import load

    if ":" in name:
        plain = name.partition(":")[0]
        raise UsageError(
            f"{kind} {name!r}: this takes a name alone; options are keyword arguments of what it "
            f"returns: rlbench.component({kind!r}, {plain!r})(..., option=value)"
        )
    return load().find(kind, name).load()


def run(
    experiment: str | Path | None = None,
    *,
    estimator: Selections = (),
    loss: Selections = (),
    kl: Selections = (),
    task: Selections = (),
    reward: Selections = (),
    model: Selections = (),
    seeds: str | Iterable[int] | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    workers: int | None = None,
    plugins: Sequence[str | Path | ModuleType] = (),
    timeout: float | None = None,
    retry: bool = False,
    retries: int | None = None,
    fail_fast: bool = False,
    max_failures: int | None = None,
    checkpoint_every: int | None = None,
    verify: int | None = None,
) -> pd.DataFrame:
    """Run a grid as ``rlbench run`` does: the product of all axes and the seeds.

    Runs that are in ``out`` already are not repeated.

    Args:
        experiment: An experiment file; what is given beside it replaces what it says.
        estimator: One selection, ``"gae:lam=0.9"`` or ``{"name": "gae", "lam": 0.9}``, or several:
            an axis. Nothing means the default; so it does for the other kinds.
        loss: Policy losses.
        kl: KL controllers.
        task: Tasks.
        reward: What policies are trained on.
        model: Models.
        seeds: ``range(5)``, or text such as ``"0-4"``. None means ``range(5)``, as None means the
            default for what follows, if the experiment file says nothing either.
        settings: Trainer settings, a value or a list of values each.
        out: Folder of results; ``results/local`` if nothing names one.
        workers: Runs at the same time; None means one a core.
        plugins: Files, or modules that worker processes can import.
        timeout: The most seconds that a run may take.
        retry: Also repeat runs that failed, diverged or took too long before.
        retries: How often a run that fails, takes too long or is killed is tried again.
        fail_fast: Start nothing more after a failure.
        max_failures: Start nothing more after so many failures.
        checkpoint_every: Save each run after so many updates; if killed, it goes on from there.
        verify: Then repeat so many runs elsewhere, and warn of those that come to other numbers.

    Returns:
        One row for each run that was asked for, as in `results`; a run that failed is a row, too.

    Raises:
        UsageError: A name, an option, a value or a combination is not valid.
        PluginError: A given plugin can't be loaded.
        KeyboardInterrupt: It was interrupted; what had ended by then is kept in ``out``.
    """
    from rlbench.grid.launch import run_grid
    from rlbench.report.cells import frame

    axes: dict[Kind, Selections] = {
        "estimator": estimator,
        "loss": loss,
        "kl": kl,
        "task": task,
        "reward": reward,
        "model": model,
    }
    records = run_grid(
        experiment,
        axes,
        seeds=seeds,
        settings=settings or {},
        out=out,
        plugins=plugins,
        how={
            "workers": workers,
            "timeout": timeout,
            "retry": retry,
            "retries": retries,
            "fail_fast": fail_fast,
            "max_failures": max_failures,
            "checkpoint_every": checkpoint_every,
            "verify": verify,
        },
    )
    return frame.results(records)


def results(out: str | Path = "results/local") -> pd.DataFrame:
    """Read all runs of a folder.

    Args:
        out: Folder of results.

    Returns:
        One row a run: ``run_id``, the kinds, ``seed``, each setting that differs or is not at its
        default, ``status``, ``error`` and the numbers; see `rlbench.report.cells.frame.results`. A
        setting that is called like another column is ``setting.NAME``.
    """
    from pathlib import Path

    from rlbench.grid.store import Store
    from rlbench.report.cells import frame

    return frame.results(Store(Path(out)).read())
