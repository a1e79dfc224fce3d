"""One run from beginning to end, in a process of its own: the target of an engine's jobs."""

from __future__ import annotations

import contextlib
import copy
import errno
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

import torch

from rlbench.errors import RlbenchError, RunError
from rlbench.grid import provenance
from rlbench.grid.reading import COMPLETE, digest
from rlbench.grid.recorder import RunRecorder
from rlbench.grid.store import (
    CHECKPOINT,
    METRICS,
    RESULT,
    SCHEMA,
    SPEC,
    Busy,
    Store,
    strict,
    write_json,
)
from rlbench.plugin import source
from rlbench.plugin.loading import load
from rlbench.plugin.selection import parse
from rlbench.training import border
from rlbench.training.checkpoint import Checkpoints, Unusable
from rlbench.training.guarded import GuardedTask
from rlbench.training.seeding import seed_everything
from rlbench.training.spec import RunSpec
from rlbench.training.trainer import train

Report = Callable[[Mapping[str, Any]], None]
MESSAGE_LENGTH = 2000  # of an error in a result; the log has all of it
PACKAGE = str(Path(__file__).parent.parent)
STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"]
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class SourceChanged(RunError):  # noqa: N818 - what happened; the run itself did nothing wrong
    """The code is no longer what the run is named after."""

    status = "killed"  # not complete: it runs again


def execute(payload: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Do one run and write its folder.

    Args:
        payload: ``run_id``, ``root`` of the store, ``spec`` (`RunSpec.to_payload`),
            ``description`` (`identity.canonical`), ``files`` (the sources that are part of it) with
            their ``digest``, ``plugins``, ``trackers``, ``seen`` (the stamp of a result that is to
            be replaced, or None), ``history`` (of attempts), ``provenance``, and
            ``checkpoint_every`` (updates), if checkpoints are wanted.
        report: Hears progress, and ``{"floor": …}`` once.

    Returns:
        The content of ``result.json``; with ``"stored": False`` if it could not be written, and
        just ``{"status": "busy"}`` if another process is doing this run.
    """
    store, run_id = Store(Path(payload["root"])), payload["run_id"]
    try:
        with store.locked(run_id) as folder:
            present = store.record(run_id)
            if present.complete and store.stamp(run_id) != payload["seen"]:
                return dict(present.result or {})  # another process was faster
            try:
                checkpoints, problem = _checkpoints(payload, store, folder)
                _keep_history(payload, folder)
                log_file = folder / "log.txt"  # of all attempts, if one goes on from another
                with log_file.open("a", encoding="utf-8", errors="backslashreplace") as log:
                    if problem:
                        log.write(f"{problem}\n")
                    result = _attempt(payload, store, folder, log, report, checkpoints=checkpoints)
            except OSError as error:  # not even a log: the disk is full, say
                result = _result(run_id, _failure(error))
            return _store(folder, {**result, **payload["history"]})
    except Busy:
        return {"status": "busy"}
    except OSError as error:  # not even a folder
        return _result(run_id, _failure(error)) | {"stored": False}


def _checkpoints(
    payload: Mapping[str, Any], store: Store, folder: Path
) -> tuple[Checkpoints, str | None]:
    """Look for something to go on from, and clear away what an earlier attempt left beside it.

    Returns:
        The checkpoints of the run, and what is wrong with one that can't be used.
    """
    found = Checkpoints(
        folder / CHECKPOINT,
        every=payload.get("checkpoint_every"),
        # On another processor, or with another numpy, the rest would be other numbers.
        identity={"run_id": payload["run_id"], "schema": SCHEMA, **provenance.machine()},
    )
    problem = None
    try:
        if found.read() is None:
            store.clear(payload["run_id"])
        else:
            (folder / RESULT).unlink(missing_ok=True)
    except Unusable as error:
        store.clear(payload["run_id"])
        problem = f"the checkpoint can't be used: {error}; the run starts anew"
    return found, problem


def _keep_history(payload: Mapping[str, Any], folder: Path) -> None:
    """Write down how earlier attempts ended, in the place of the result that told it.

    If this attempt ends with the power, nobody else can; what is written then says so.
    """
    if "earlier" in payload["history"]:
        error = {"type": "Lost", "message": "its process was gone before it ended", "where": None}
        numbers = {"status": "killed", "error": error}
        write_json(folder / SPEC, payload["description"])
        write_json(folder / RESULT, _result(payload["run_id"], numbers) | payload["history"])


def _attempt(
    payload: Mapping[str, Any],
    store: Store,
    folder: Path,
    log: IO[str],
    report: Report,
    *,
    checkpoints: Checkpoints,
) -> dict[str, Any]:
    """Do the run; whatever goes wrong becomes part of its result."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    torch.set_num_threads(1)
    recorder = RunRecorder(folder, store.base_folder, log, report)
    run = _Run(payload, folder, recorder, report, checkpoints)
    with _captured(log):
        try:
            numbers = {"status": "ok", "error": None, **run.train()}
        except BaseException as error:  # noqa: BLE001 - code of strangers; nothing may get past
            with contextlib.suppress(OSError):  # a full disk must not cost the result
                traceback.print_exc()
            numbers = _failure(error)
        finally:
            recorder.close()
        result = _result(payload["run_id"], numbers) | {
            "floor": run.floor,
            "metrics_sha256": digest(folder / METRICS),  # tells equal curves at a glance
            # The base policy is shared: it would be charged to whichever cell came first.
            "wall_s": round(checkpoints.spent_s - numbers.get("phases", {}).get("base", 0), 3),
            "provenance": provenance.describe(
                started, payload["provenance"] | {"owners": run.owners}, torch.get_num_threads()
            ),
        }
        run.finish(result)
    return result


class _Run:
    """The steps of a run, with what is known of it so far."""

    def __init__(
        self,
        payload: Mapping[str, Any],
        folder: Path,
        recorder: RunRecorder,
        report: Report,
        checkpoints: Checkpoints,
    ) -> None:
        self._payload, self._folder, self._checkpoints = payload, folder, checkpoints
        self._recorder, self._report = recorder, report
        self._trackers: list[tuple[str, Any]] = []
        self.floor: float | None = None
        self.owners: dict[str, str] = {}

    def train(self) -> dict[str, Any]:
        """Everything that can fail."""
        description = self._payload["description"]
        write_json(self._folder / SPEC, description)
        registry = load(self._payload["plugins"])
        spec = RunSpec.from_payload(registry, self._payload["spec"])
        self.owners = {k: str(chosen.component.owner) for k, chosen in spec.selections.items()}
        self._check_sources()
        loaded = set(sys.modules)
        self.floor = GuardedTask(spec.selections["task"]).floor
        self._report({"floor": self.floor})
        if self._checkpoints.update is not None:
            self._recorder.log(f"going on after update {self._checkpoints.update}")
        for text in self._payload["trackers"]:
            chosen = parse(registry, "tracker", text)
            tracker = border.call(chosen, chosen.create)
            told = copy.deepcopy(description) | {"resumed_from": self._checkpoints.update}
            start = partial(tracker.start, told)
            border.call(chosen, start)
            self._trackers.append((text, tracker))
        for chosen in spec.selections.values():
            chosen.component.load()  # now, because an import may seed the global generators
        seed_everything("run", spec.seed)
        trackers = [tracker for _, tracker in self._trackers]
        numbers = train(spec, self._recorder, trackers, self._checkpoints)
        self._warn_of_modules(spec, loaded)
        return numbers

    def _check_sources(self) -> None:
        """A result must not get the name of code that is there no more."""
        files = tuple(Path(file) for file in self._payload["files"])
        if source.raw_digest(files) != self._payload["digest"]:
            raise SourceChanged(
                f"source files changed after this run was named {self._payload['run_id']}; "
                "give the command again, and it runs under its new name"
            )

    def _warn_of_modules(self, spec: RunSpec, loaded: set[str]) -> None:
        """Name modules of components that were loaded since and are not part of the run's name."""
        known = {Path(file) for file in self._payload["files"]}
        new = {name: module for name, module in sys.modules.items() if name not in loaded}
        found = {
            (name, str(chosen.component.owner))
            for chosen in spec.selections.values()
            for name in source.outside(chosen.component.target.partition(":")[0], new, known)
        }
        for name, owner in sorted(found):
            self._recorder.log(
                f"warning: {owner} used module {name}, which is no part of the run's name: "
                "it is imported in a way that can't be seen in the source"
            )

    def finish(self, result: Mapping[str, Any]) -> None:
        """Show trackers the result, also of a run that failed."""
        for text, tracker in self._trackers:
            try:
                tracker.finish(copy.deepcopy(dict(result)))
            except Exception as error:  # noqa: BLE001 - a tracker only watches
                traceback.print_exc()
                self._recorder.log(f"tracker {text} failed at the end: {error}")


def _result(run_id: str, numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {"schema": SCHEMA, "run_id": run_id, "floor": None, **numbers}


def _store(folder: Path, result: Mapping[str, Any]) -> dict[str, Any]:
    """Write the result, strictly; say so if that is not possible."""
    reasons: list[str] = []
    content: dict[str, Any] = strict(result, reasons)
    if reasons:
        content["reason"] = "; ".join(reasons)
    try:
        write_json(folder / RESULT, content)
        if content["status"] in COMPLETE:
            (folder / CHECKPOINT).unlink(missing_ok=True)
    except OSError as error:
        return content | _failure(error) | {"stored": False}
    return content


def _failure(error: BaseException) -> dict[str, Any]:
    status = error.status if isinstance(error, RunError) else "failed"
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        status = "killed"  # the disk's doing, not the algorithm's: it runs again
    return {
        "status": status,
        "error": {
            "type": type(error).__name__,
            "message": str(error)[:MESSAGE_LENGTH],
            "where": _where(error),
        },
    }


def _where(error: BaseException) -> str | None:
    """Find the line to look at: of a plugin in a file if there is one, else of rlbench itself.

    An error of a component reaches the run wrapped in one of rlbench's; what was wrapped is looked
    at too.
    """
    frames = [traceback.extract_tb(one.__traceback__) for one in _chain(error)]
    tests: list[Callable[[str], bool]] = [
        lambda file: not (_is_below(file, PACKAGE) or _is_of_library(file)),
        lambda file: _is_below(file, PACKAGE),
        lambda _: True,
    ]
    for fits in tests:
        for stack in frames:
            for frame in reversed(stack):
                if fits(frame.filename):
                    # Two parts of the path are enough to find it, and hold no home folders.
                    place = "/".join(Path(frame.filename).parts[-2:])
                    return f"{place}:{frame.lineno} in {frame.name}"
    return None


def _chain(error: BaseException) -> list[BaseException]:
    """List an error and what it was raised from, or while handling."""
    found: list[BaseException] = []
    next_one: BaseException | None = error
    while isinstance(next_one, RlbenchError) and next_one.__cause__:
        next_one = next_one.__cause__  # rlbench only gave it a name
    while next_one is not None and next_one not in found:
        found.append(next_one)
        hidden = None if next_one.__suppress_context__ else next_one.__context__
        next_one = next_one.__cause__ or hidden
    return found


def _is_below(file: str, folder: str) -> bool:
    return file.startswith(folder + os.sep)


def _is_of_library(file: str) -> bool:
    """Whether a file is Python's own or was installed, or is no file at all."""
    parts = Path(file).parts
    installed = "site-packages" in parts or "dist-packages" in parts
    return file.startswith("<") or installed or _is_below(file, STANDARD_LIBRARY)


@contextlib.contextmanager
def _captured(log: IO[str]) -> Iterator[None]:
    """Send what Python code and libraries print to the log: standard output is for results."""
    kept = {number: os.dup(number) for number in (1, 2)}
    try:
        with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            for number in kept:
                os.dup2(log.fileno(), number)
            try:
                yield
            finally:
                log.flush()
    finally:
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
