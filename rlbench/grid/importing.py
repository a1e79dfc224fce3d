"""Results that were made elsewhere, written as runs, so that every table and plot works on them."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from rlbench.errors import UsageError
from rlbench.grid.imported_curves import as_text
from rlbench.grid.normalisation import normalised
from rlbench.grid.score_rows import PARTS
from rlbench.grid.store import EVALUATIONS, RESULT, SCHEMA, SPEC, Store, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlbench.grid.normalisation import Scale
    from rlbench.grid.scores_file import Entry
    from rlbench.grid.store import Record

What = Literal["new", "there", "conflict", "replaced"]

STEM_LENGTH = 60
MADE_ELSEWHERE = "imported"  # a key of specifications
SEEDS_COUNTED = "seeds_counted"  # a key of provenances
STEPS = "steps"  # another: what curves are over, such as env_steps


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """A run that was made elsewhere, as it is written.

    Attributes:
        where: File and row that it comes from.
        spec: What was run.
        result: How it ended.
        curve: Step and score, in the unit of the result; empty where nobody said.
    """

    where: str
    spec: Mapping[str, Any]
    result: Mapping[str, Any]
    curve: tuple[tuple[float, float], ...] = ()

    @property
    def run_id(self) -> str:
        """Name of its folder."""
        return str(self.spec["run_id"])


def is_foreign(record: Record) -> bool:
    """Whether a run was made elsewhere."""
    return bool((record.spec or {}).get(MADE_ELSEWHERE))


def seeds_are_counted(record: Record) -> bool:
    """Whether rlbench counted the seeds of a run that was made elsewhere.

    Nobody said then that runs of one number share anything: they are no pairs.
    """
    provenance = (record.result or {}).get("provenance")
    return isinstance(provenance, Mapping) and bool(provenance.get(SEEDS_COUNTED))


def steps_of(record: Record) -> str:
    """Name what the learning curve of a run is over: updates, or what its file calls the steps."""
    provenance = (record.result or {}).get("provenance")
    name = provenance.get(STEPS) if isinstance(provenance, Mapping) else None
    return name if isinstance(name, str) else "step" if is_foreign(record) else "update"


def numbered(entries: Sequence[Entry], *, again: bool = False) -> list[Entry]:
    """Give a seed to entries that have none.

    Args:
        entries: In the order of the files.
        again: Count all on, from one file to the next, whatever seeds they have.

    Returns:
        The entries; seeds count up from 0 in each algorithm, task and setting.

    Raises:
        UsageError: All are to be counted on, and one file has a seed twice: such rows are steps of
            one run, or copies.
    """
    counted: Counter[str] = Counter()
    there: dict[tuple[str, str, int], Entry] = {}
    done = []
    for entry in entries:
        if entry.seed is not None and (entry.counted or not again):
            done.append(replace(entry, given=entry.given and not again))
            continue
        key = _cell_key(entry)
        if entry.seed is not None and entry.given:
            first = there.setdefault((entry.source, key, entry.seed), entry)
            if first is not entry:
                raise UsageError(f"{_twice(first, entry)}; --renumber would make two seeds of them")
        done.append(replace(entry, seed=counted[key], given=False))
        counted[key] += 1
    return done


def _twice(first: Entry, second: Entry) -> str:
    """Say that two rows are of one run, and what to do."""
    both = f"{_named(second)} is there twice, in {first.where} and in {second.where}"
    if first.source != second.source:
        return f"{both}; --renumber counts seeds on from file to file"
    if (first.numbers, first.status) == (second.numbers, second.status):
        return f"{both}, with the same numbers; remove one"
    return (
        f"{both}; where a column tells rows of one seed apart, say --map step=COLUMN if they are "
        "steps of one run, or --map set.NAME=COLUMN if it is a setting"
    )


def foreign_runs(
    entries: Sequence[Entry],
    *,
    lower_is_better: bool = False,
    floors: Mapping[str, float] | None = None,
    scales: Mapping[str, Scale] | None = None,
) -> list[Foreign]:
    """Turn entries into runs.

    Args:
        entries: With seeds, see `numbered`.
        lower_is_better: Whether less of the score is better.
        floors: What a failed run scores, by task, or under the empty name in all that are not
            named, in the unit of the scores as they are kept. Without one, cells with failures have
            no score.
        scales: Task to the scores that count as 0 and as 1; None keeps scores as they are. With
            it, the floor is 0 if none is given.

    Returns:
        One run an entry.

    Raises:
        UsageError: One algorithm, task and seed is there twice, or a task has no scale, or there is
            a floor of a task that is not there.
    """
    given = dict(floors or {})
    tasks = dict.fromkeys(entry.parts.get("task", "") for entry in entries)
    for task in given:
        if task and task not in tasks:
            raise UsageError.unknown("task of a floor:", task, filter(None, tasks))
    seen: dict[str, Entry] = {}
    runs = []
    for entry in entries:
        spec = _spec(
            entry,
            lower_is_better=lower_is_better,
            scale=_scale(entry, scales, lower_is_better=lower_is_better),
        )
        first = seen.setdefault(spec["run_id"], entry)
        if first is not entry:
            raise UsageError(_twice(first, entry))
        others = given.get("", None if scales is None else 0.0)
        result = _result(entry, spec, given.get(entry.parts.get("task", ""), others))
        curve = tuple((step, _on_scale(score, spec.get("scale"))) for step, score in entry.curve)
        runs.append(Foreign(where=entry.where, spec=spec, result=result, curve=curve))
    _check_floor(runs)
    return runs


def _check_floor(runs: Sequence[Foreign]) -> None:
    """Refuse a floor by which a failed run would beat every run that ended well."""
    by_task: dict[str, list[Foreign]] = {}
    for run in runs:
        by_task.setdefault(_task_of(run.spec), []).append(run)
    for task, of_task in by_task.items():
        floor = of_task[0].result["floor"]
        scores = [s for run in of_task if (s := run.result.get("score")) is not None]
        if floor is None or not scores or all(run.result["status"] == "ok" for run in of_task):
            continue
        lower = of_task[0].spec.get("direction") == "lower"
        best, worst = (min(scores), max(scores)) if lower else (max(scores), min(scores))
        wins = floor <= best if lower else floor >= best
        if wins and not best == worst == floor:
            where = f" of task {task!r}" if task else ""
            raise UsageError(
                f"the floor {floor:g} is as good as the best score{where}, {best:g}, or better: a "
                "failed run would win; --floor takes what is reached at worst"
            )


def write(
    runs: Sequence[Foreign], store: Store, *, overwrite: bool = False
) -> Iterator[tuple[Foreign, What]]:
    """Write runs that are not there yet.

    A run that is there with the same numbers is left. Nothing is written if one is there with
    others, unless they are to be replaced. An import that was cut short is repeated with the same
    command.

    Args:
        runs: What to write.
        store: Where to.
        overwrite: Put new numbers in the place of old ones.

    Yields:
        Each run with what became of it, as it happens; ``conflict`` means that nothing is written.

    Raises:
        UsageError: Results can't be written there, or others are there that go another way.
    """
    store.check_writable()
    _check_same_way(runs, store)
    there = set(store.names())
    verdicts = [_compared(run, store) if run.run_id in there else "new" for run in runs]
    if not overwrite and "conflict" in verdicts:
        yield from (
            (run, verdict)
            for run, verdict in zip(runs, verdicts, strict=True)
            if verdict == "conflict"
        )
        return
    for run, verdict in zip(runs, verdicts, strict=True):
        if verdict == "there":
            yield run, "there"
            continue
        with store.locked(run.run_id) as folder:
            # all are written out at the end; what a power cut takes before is read as not there
            write_json(folder / SPEC, run.spec, sync=False)
            if run.curve:
                (folder / EVALUATIONS).write_text(as_text(run.curve), "utf-8", newline="\n")
            else:  # what is replaced may have had one
                (folder / EVALUATIONS).unlink(missing_ok=True)
            write_json(folder / RESULT, run.result, sync=False)
        yield run, "replaced" if verdict == "conflict" else "new"
    os.sync()


def _check_same_way(runs: Sequence[Foreign], store: Store) -> None:
    """Refuse scores beside those of a task that go the other way, or are on another scale."""
    ways = {_task_of(run.spec): (_way(run.spec), run.where) for run in runs}
    for record in store.read():
        if not is_foreign(record) or record.spec is None:
            continue
        way, where = ways.get(_task_of(record.spec), (None, ""))
        if way is not None and way != _way(record.spec):
            raise UsageError(
                f"{store.root} has scores of that task that go another way ({record.run_id}: "
                f"{_way(record.spec)}; {where}: {way}); name another folder with -o"
            )


def _task_of(spec: Mapping[str, Any]) -> str:
    return str(spec["components"].get("task", {}).get("label", ""))


def _way(spec: Mapping[str, Any]) -> str:
    scale = spec.get("scale")
    on = f", on the scale {scale}" if scale else ""
    return f"{spec.get('direction', 'higher')} is better{on}"


def _compared(run: Foreign, store: Store) -> What:
    """Tell what is on disk of a run apart from what is to be written."""
    record = store.record(run.run_id)
    if record.result is None or record.spec is None:
        return "new"
    kept = [
        {name: value for name, value in result.items() if name != "provenance"}
        for result in (record.result, run.result)
    ]
    return "there" if kept[0] == kept[1] and record.spec == run.spec else "conflict"


def _cell_key(entry: Entry) -> str:
    return json.dumps([dict(entry.parts), dict(entry.settings)], sort_keys=True)


def _named(entry: Entry) -> str:
    parts = " ".join(entry.parts[name] for name in PARTS if name in entry.parts)
    settings = "".join(f" {name}={value}" for name, value in entry.settings.items())
    return f"{parts}{settings} seed {entry.seed}"


def _scale(
    entry: Entry, scales: Mapping[str, Scale] | None, *, lower_is_better: bool
) -> Scale | None:
    if scales is None:
        return None
    task = entry.parts.get("task", "")
    if task not in scales:
        raise UsageError.unknown(f"task in {entry.where}, to be normalised:", task, scales)
    low, high = scales[task]
    if lower_is_better and low < high:
        raise UsageError(
            f"less is better (--direction lower), but in task {task!r} {low:g} counts as 0 and "
            f"{high:g} as 1; turn one of them round"
        )
    return low, high


def _spec(entry: Entry, *, lower_is_better: bool, scale: Scale | None) -> dict[str, Any]:
    content = {
        "components": {
            name: {"name": entry.parts[name], "label": entry.parts[name], "options": {}}
            for name in PARTS
            if name in entry.parts
        },
        "settings": dict(entry.settings),
        MADE_ELSEWHERE: True,
        # on a scale, more is better: it goes from what counts as 0 to what counts as 1
        **({"direction": "lower"} if lower_is_better and not scale else {}),
        **({"scale": list(scale)} if scale else {}),
    }
    text = json.dumps([content, entry.seed], sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:10]
    names = "-".join(entry.parts[name] for name in PARTS if name in entry.parts)
    stem = re.sub(r"[^a-z0-9_.-]", "_", names.lower()).lstrip("_.-")[:STEM_LENGTH] or "run"
    head = {"schema": SCHEMA, "run_id": f"{stem}-s{entry.seed}-{digest}", "seed": entry.seed}
    return head | content


def _on_scale(score: float, scale: Scale | None) -> float:
    return normalised(score, scale) if scale else score


def _result(entry: Entry, spec: Mapping[str, Any], floor: float | None) -> dict[str, Any]:
    numbers = dict(entry.numbers)
    score, scale = numbers.get("score"), spec.get("scale")
    if scale and score is not None:
        numbers["score"] = _on_scale(score, scale)
        numbers["score_as_given"] = score
    tokens = numbers.get("tokens")
    if tokens is not None:
        numbers["tokens"] = int(tokens)  # counts; a gap made them floats
    return {
        "schema": SCHEMA,
        "run_id": spec["run_id"],
        "floor": floor,
        "status": entry.status,
        "error": {"type": "", "message": entry.why} if entry.why else None,
        **numbers,
        "provenance": {
            "imported": entry.where,
            **({} if entry.given else {SEEDS_COUNTED: True}),
            **({STEPS: entry.steps} if entry.curve and entry.steps else {}),
        },
    }
