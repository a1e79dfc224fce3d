"""Results as one tidy table in full precision, for other programs."""

from __future__ import annotations

import io
import re
import warnings
from csv import reader
from typing import TYPE_CHECKING

from rlbench.errors import UsageError
from rlbench.grid.reading import COLUMNS, read_bytes
from rlbench.grid.store import METRICS
from rlbench.report.cells.frame import is_whole, results
from rlbench.report.text.whole_file import check_place, in_one_step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pandas as pd
    from pandas.api.extensions import ExtensionArray

    from rlbench.grid.store import Record

FORMATS = (".csv", ".parquet")
SHOWN = 5  # runs without a curve that are named
_OF_THE_END = ("error", *COLUMNS)  # one number a run, which a curve does not repeat


def check_target(path: Path, *, force: bool) -> None:
    """Refuse a file that can't or must not be written, before anything is read.

    Raises:
        UsageError: It has another ending than those of `FORMATS`, no file can be put there (see
            `rlbench.report.text.whole_file.check_place`), it is there already and ``force`` is not
            given, or what writes Parquet is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"--to {path}: expected a name that ends in {' or '.join(FORMATS)}")
    check_place(path, f"--to {path}")
    if path.exists() and not force:
        raise UsageError(f"--to {path}: it is there already; --force overwrites it")
    if path.suffix.lower() == ".parquet" and not _writes_parquet():
        raise UsageError(
            f"--to {path}: Parquet needs pyarrow, which is not installed; "
            "pip install 'rlbench[parquet]', or name a .csv file"
        )


def _writes_parquet() -> bool:
    from importlib.util import find_spec

    return find_spec("pyarrow") is not None


def runs(records: Sequence[Record], note: Callable[[str], None]) -> pd.DataFrame:
    """Make a table with one row a run.

    Args:
        records: As read from a store.
        note: Hears of each record that can't be a row.

    Returns:
        The columns of `rlbench.report.cells.frame.results`.
    """
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        frame = results(records)
    for warning in heard:
        note(str(warning.message))
    return frame


def curves(records: Sequence[Record], note: Callable[[str], None]) -> pd.DataFrame:
    """Make a table with one row a run and update.

    Args:
        records: As read from a store.
        note: Hears of each record that can't be read, or has no curve.

    Returns:
        What names a run, as in `runs`, then the columns of its ``metrics.csv``; a metric that a run
        does not have is empty, and one that is called like a column of runs is ``NAME_metric``.
    """
    import pandas as pd

    table = runs(records, note)
    named = table.drop(columns=list(_OF_THE_END))
    named_records = {record.run_id: record for record in records}
    parts, without = [], []
    for row, run_id in enumerate(named["run_id"]):
        curve = named_records[run_id].damage() or _curve(named_records[run_id].folder / METRICS)
        if isinstance(curve, str):
            without.append(curve)
        else:
            run = named.iloc[[row] * len(curve)].reset_index(drop=True)
            clash = {name: f"{name}_metric" for name in curve if _stem(str(name)) in run}
            parts.append(pd.concat([run, curve.rename(columns=clash)], axis=1))
    for problem in without[:SHOWN]:
        note(f"without a curve: {problem}")
    if len(without) > SHOWN:
        note(f"without a curve: {len(without) - SHOWN:,} more runs")
    if not parts:
        return named.iloc[:0]
    return pd.concat(parts, ignore_index=True)


def _stem(name: str) -> str:
    """Take off what tells a metric from a column of runs, so that none is called like another."""
    return re.sub("(_metric)+$", "", name)


def _curve(path: Path) -> pd.DataFrame | str:
    """Read the curve of a run, or say why there is none."""
    import pandas as pd

    try:
        text = read_bytes(path).decode("utf-8")
        complete = text[: text.rfind("\n") + 1]  # a line that is being written may be half a number
        if not complete:
            return f"{path} is empty"
        header, *rows = reader(io.StringIO(complete))
        columns = zip(*rows, strict=True) if rows else [()] * len(header)
        named = zip(header, columns, strict=True)
        return pd.DataFrame({name: _numbers(texts) for name, texts in named})
    except FileNotFoundError:
        return f"there is no {path}"
    except (OSError, ValueError, OverflowError) as error:
        return f"{path} can't be read: {error}"


def _numbers(texts: Sequence[str]) -> ExtensionArray:
    """Read a column digit for digit: whole numbers stay whole, and nothing is a gap."""
    import pandas as pd

    whole = all(re.fullmatch("(-?[0-9]+)?", text) for text in texts)
    values = [(int(text) if whole else float(text)) if text else None for text in texts]
    return pd.array(values, dtype="Int64" if whole else "Float64")


def csv(frame: pd.DataFrame) -> str:
    """Write a table as CSV: every digit, missing values empty, no newline at the end."""
    return frame.to_csv(index=False, lineterminator="\n").removesuffix("\n")


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write a table to a file, in the format of its ending; the file appears in one step.

    Raises:
        RlbenchError: It can't be written; the disk is full, say. What was there before stays.
    """
    with in_one_step(path) as partial:
        if path.suffix.lower() == ".parquet":
            _one_type_a_column(frame).to_parquet(partial, index=False)
        else:
            partial.write_text(f"{csv(frame)}\n", encoding="utf-8", errors="backslashreplace")


def _one_type_a_column(frame: pd.DataFrame) -> pd.DataFrame:
    """Make text of columns that Parquet has no type for, as a setting of two versions may be."""
    odd = [
        name
        for name in frame.columns
        if frame[name].dtype == object and not _is_of_one_type(frame[name].dropna())
    ]
    return frame.astype(dict.fromkeys(odd, "string"))


def _is_of_one_type(values: pd.Series) -> bool:
    """Whether values are of one type, and not whole numbers too large for one."""
    kinds = {type(value) for value in values}
    return len(kinds) < 2 and (kinds != {int} or all(map(is_whole, values)))
