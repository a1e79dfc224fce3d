"""Records of runs as a DataFrame, one row a run."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from rlbench.grid.reading import COLUMNS, describes_a_run
from rlbench.report.cells.cell import KINDS, KINDS_OF_RUNS, error_line, key_of
from rlbench.report.text.spelling import spelled
from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from rlbench.grid.store import Record


PREFIX = "setting."
_VERSIONS = ("rlbench", "torch")
_FIXED = frozenset(("run_id", *KINDS, "seed", "status", "error", *COLUMNS, *_VERSIONS))


def results(records: Iterable[Record]) -> pd.DataFrame:
    """Make a table with one row a run, for notebooks.

    Args:
        records: As read from a store.

    Returns:
        Columns ``run_id``, the kinds, ``seed``, one for each setting that differs between runs or
        is not at its default in one of them (so that tables of two folders, one below the other,
        still tell what was run: a gap stands for the default), ``status``, ``error``,
        ``score_start``, ``score``, ``reward_mean`` (what it was trained on; ``reward`` is the
        component), ``kl_nats``, ``entropy`` (nats), ``length`` (tokens), ``tokens``, ``wall_s``,
        ``rlbench`` and ``torch`` (versions). A setting that is called like another column, as those
        of imported runs may be, is ``setting.NAME``. A run that failed has no score here; that it
        counts with the task's floor is up to the reader. What is left out, because it can't be
        read or is there twice, is warned of.
    """
    import pandas as pd

    kept = _kept(records)
    specs = [record.spec or {} for record in kept]
    settings = list(dict.fromkeys(name for spec in specs for name in spec.get("settings", {})))
    told = {name: _column(name) for name in settings if _is_told(name, specs)}
    kinds = [kind for kind in KINDS if kind in KINDS_OF_RUNS or any(_label(s, kind) for s in specs)]
    rows = []
    for record, spec in zip(kept, specs, strict=True):
        result = record.result or {}
        versions = result.get("provenance") or {}
        rows.append(
            {
                "run_id": record.run_id,
                **{kind: _label(spec, kind) for kind in kinds},
                "seed": spec.get("seed"),
                **{told[name]: spec.get("settings", {}).get(name) for name in told},
                "status": record.status,
                "error": error_line(record) or None,
                **{name: result.get(key) for name, key in COLUMNS.items()},
                "rlbench": versions.get("rlbench"),
                "torch": spec.get("torch"),
            }
        )
    columns = ["run_id", *kinds, "seed", *told.values(), "status", "error", *COLUMNS, *_VERSIONS]
    frame = pd.DataFrame(rows, columns=columns)
    for name in told.values():  # a gap must not turn 8 into 8.0
        if all(row[name] is None or is_whole(row[name]) for row in rows):
            frame[name] = frame[name].astype("Int64")
    for name in COLUMNS:
        frame[name] = frame[name].astype("float64" if name != "tokens" else "Int64")
    return frame


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number that a column of them holds, and no truth value."""
    return type(value) is int and -(2**63) <= value < 2**63


def _column(setting: str) -> str:
    """Name the column of a setting, one alone and the same whatever else is in a table."""
    return f"{PREFIX}{setting}" if setting in _FIXED or setting.startswith(PREFIX) else setting


def _is_told(name: str, specs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a setting differs between runs, or is not at its default."""
    defaults = {option.name: spelled(option.default) for option in Settings.options()}
    values = {spelled(spec.get("settings", {}).get(name)) for spec in specs}
    return len(values) > 1 or (name in defaults and values != {defaults[name]})


def _kept(records: Iterable[Record]) -> list[Record]:
    """Leave out what can't be a row, each with a warning: a frame has no room for notes."""
    kept: dict[tuple[str, int], Record] = {}
    for record in records:
        if not describes_a_run(record.spec):
            problem = record.problem or f"{record.folder} has no specification"
            warnings.warn(f"left out: {problem}", stacklevel=3)
            continue
        spec = record.spec or {}
        first = kept.setdefault((key_of(spec), spec["seed"]), record)
        if first is not record and first.run_id != record.run_id:
            both = f"{first.folder} and {record.folder}"
            warnings.warn(f"one run lies in {both}; only the first counts", stacklevel=3)
    return list(kept.values())


def _label(spec: Mapping[str, Any], kind: str) -> str | None:
    component = spec.get("components", {}).get(kind)
    return str(component["label"]) if component else None
