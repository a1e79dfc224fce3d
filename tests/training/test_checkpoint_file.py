"""A run that stops and goes on in one process: what can be wrong with its checkpoint."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest
import torch

from rlbench.grid.recorder import RunRecorder
from rlbench.plugin.loading import load
from rlbench.training import sealed
from rlbench.training.checkpoint import Checkpoints, Unusable
from rlbench.training.seeding import seed_everything
from rlbench.training.trainer import train

TINY = {"updates": 6, "eval_every": 4, "task": "sort", "model": "lstm:embed=4,hidden=8"}
FILES = ("metrics.csv", "evals.csv", "samples.jsonl")
PLUGIN = """
    import threading
    from rlbench import hookimpl

    class Keeper:
        coef = 0.1

        def __init__(self, *, fault: str = "none"):
            self.fault, self.seen = fault, []
            if fault == "always":
                self.lock = threading.Lock()

        def update(self, kl, *, samples):
            self.seen.append(kl)
            if self.fault == "later" and len(self.seen) == 4:
                self.thing = threading.Lock()

    class Own(Keeper):
        def state_dict(self):
            return {"seen": self.seen}

        def load_state_dict(self, state):
            raise RuntimeError("an old state")

    @hookimpl
    def rlbench_register_kl_controllers(register):
        register("keeper", ":Keeper", summary="Keeps all.", needs=("ref_logp",))
        register("own", ":Own", summary="Knows better.", needs=("ref_logp",))
"""


class Stopped(BaseException):
    """The process ends here."""


class Recorder(RunRecorder):
    stop = 0

    def timing(self, row):
        if row["update"] == self.stop:
            raise Stopped
        super().timing(row)


class Folder:
    """A folder in which one run is tried again and again."""

    def __init__(self, path: Path, base: Path, spec) -> None:
        self.path, self.base, self.spec = path, base, spec
        path.mkdir()
        self.log = io.StringIO()
        self.file = path / "checkpoint.pt"

    def open(self, every: int | None = 2, **identity) -> Checkpoints:
        return Checkpoints(self.file, every=every, identity={"run_id": "a", **identity})

    def train(self, stop: int = 0, every: int | None = 2, checkpoints: Checkpoints | None = None):
        """Go on as a worker does; None if it was stopped in an update."""
        checkpoints = checkpoints or self.open(every)
        checkpoints.read()
        recorder = Recorder(self.path, self.base, self.log, lambda _: None)
        recorder.stop = stop
        seed_everything("run", self.spec.seed)
        try:
            return train(self.spec, recorder, (), checkpoints)
        except Stopped:
            return None
        finally:
            recorder.close()

    def content(self) -> list[bytes]:
        return [(self.path / name).read_bytes() for name in FILES]


@pytest.fixture
def folder(tmp_path, make_spec):
    def make(name="disturbed", source=None, **chosen):
        more = {"source": source} if source else {}
        spec = make_spec(**{**TINY, **chosen}, **more)
        return Folder(tmp_path / name, tmp_path / "base", spec)

    return make


@pytest.fixture
def plugin(tmp_path):
    import textwrap

    path = tmp_path / "keepers.py"
    path.write_text(textwrap.dedent(PLUGIN))
    return load([str(path)])


def test_a_run_goes_on_after_its_last_checkpoint(folder):
    run, alone = folder(), folder("alone")
    assert run.train(stop=5) is None
    assert run.open().read() == 4
    assert len(run.content()[0].splitlines()) == 6  # the fifth update is written already
    result, right = run.train(), alone.train(every=None)
    assert run.content() == alone.content()
    assert {**result, "phases": 0} == {**right, "phases": 0}
    assert run.log.getvalue().count("\n") == 1  # of the base policy


def test_nothing_is_saved_unless_asked_and_nothing_after_the_end(folder):
    run = folder()
    run.train(every=None)
    assert not run.file.exists()
    run.train(every=7)  # there are six updates
    assert not run.file.exists()
    run.train(every=3)
    assert run.open().read() == 3  # not 6: by then there is a result


def test_a_checkpoint_is_used_also_by_a_command_that_writes_none(folder):
    run, alone = folder(), folder("alone")
    run.train(stop=3)
    before = run.file.read_bytes()
    run.train(stop=5, every=None)
    assert run.file.read_bytes() == before
    run.train(every=None)
    alone.train(every=None)
    assert run.content() == alone.content()


@pytest.mark.parametrize("fault", ["short", "empty", "flipped", "foreign", "a folder"])
def test_a_torn_file_is_told_from_a_whole_one(folder, fault):
    run = folder()
    run.train(stop=3)
    whole = run.file.read_bytes()
    middle = len(whole) // 2
    run.file.unlink()
    if fault == "a folder":
        run.file.mkdir()
    else:
        flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        found = {"short": whole[:-1], "empty": b"", "flipped": flipped, "foreign": b"PK" * 99}
        run.file.write_bytes(found[fault])
    with pytest.raises(Unusable, match=r"torn, or nothing|is no file"):
        run.open().read()


def test_a_file_that_would_execute_code_is_not_executed(folder, tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "executed"),)

    run = folder()
    sealed.write(run.file, {"identity": {"run_id": "a"}, "x": Evil()})
    with pytest.raises(Unusable, match="UnpicklingError"):
        run.open().read()
    assert not (tmp_path / "executed").exists()


def test_another_run_and_another_machine_are_named(folder):
    run = folder()
    run.train(stop=3, checkpoints=run.open(cpu="A"))
    assert run.open(cpu="A").read() == 2
    with pytest.raises(Unusable, match=r"^its cpu is 'A', here it is 'B'$"):
        run.open(cpu="B").read()
    with pytest.raises(Unusable, match="KeyError"):
        run.open(gpu="none").read()


@pytest.mark.parametrize("fault", ["shorter", "gone", "changed"])
def test_numbers_that_were_lost_start_the_run_anew(folder, fault):
    run, alone = folder(), folder("alone")
    run.train(stop=5)
    file = run.path / "metrics.csv"
    content = file.read_bytes()
    file.write_bytes({"shorter": content[:100], "changed": b"7" + content[1:]}.get(fault, content))
    if fault == "gone":
        file.unlink()
    run.train()
    assert "the run starts anew" in run.log.getvalue()
    assert "metrics.csv is not" in run.log.getvalue() or "metrics.csv has" in run.log.getvalue()
    alone.train()
    assert run.content() == alone.content()


def test_a_state_that_is_refused_starts_the_run_anew(folder, plugin):
    run, alone = (folder(name, source=plugin, kl="own") for name in ("run", "alone"))
    run.train(stop=5)
    checkpoints = run.open()
    run.train(checkpoints=checkpoints)
    assert "RuntimeError: an old state; the run starts anew" in run.log.getvalue()
    alone.train()
    assert run.content() == alone.content()


def test_a_full_disk_keeps_the_checkpoint_before(folder, monkeypatch):
    run, alone = folder(), folder("alone")
    saves = []
    real = sealed.os.fsync

    def fsync(number):
        if run.path / ".checkpoint.pt.new" == Path(f"/proc/self/fd/{number}").readlink():
            saves.append(number)
            if len(saves) == 2:
                raise OSError(errno.ENOSPC, "No space left on device")
        real(number)

    monkeypatch.setattr(sealed.os, "fsync", fsync)
    assert run.train(stop=5) is None
    assert run.open().read() == 2
    assert [path.name for path in run.path.glob(".*")] == []
    log = run.log.getvalue()
    assert "no checkpoint after update 4 ([Errno 28] No space left on device)" in log
    assert "that of update 2 stays" in log
    run.train()
    alone.train()
    assert run.content() == alone.content()


def test_who_can_not_be_saved_is_named_once_and_the_run_goes_on(folder, plugin):
    run = folder(source=plugin, kl="keeper:fault=always")
    assert run.train()["updates"] == 6
    (line,) = [line for line in run.log.getvalue().splitlines() if "checkpoint" in line]
    assert line.startswith("no checkpoints from here on: the state of kl 'keeper' (")
    assert "keepers.py" in line
    assert "kl.lock is a _thread.lock" in line
    assert not run.file.exists()


def test_who_can_not_be_saved_any_more_leaves_the_checkpoint_before(folder, plugin):
    run, alone = (folder(name, source=plugin, kl="keeper:fault=later") for name in ("run", "alone"))
    run.train(stop=6)
    assert run.open().read() == 2
    assert run.log.getvalue().count("kl.thing is a _thread.lock") == 1
    run.train()
    alone.train()
    assert run.content() == alone.content()


def test_weights_and_optimisers_are_those_of_the_run(folder):
    """What the next update would not show: the moments of every weight."""
    run = folder(estimator="gae", updates=3)
    run.train(every=2)
    kept = sealed.read(run.file)["kept"]
    for name in ("policy", "critic"):
        saved = kept[f"{name} optimiser"][2][2]
        steps = [v for k, v in _leaves(saved) if k == "step"]
        # 2 updates of 2 epochs of 2 minibatches each
        assert {float(step) for step in steps} == {8.0}
        assert len(steps) == len(list(_tensors(kept[name])))


def _leaves(pairs):
    for key, value in pairs:
        if isinstance(value, tuple) and value[0] == "dict":
            yield from _leaves(value[2])
        else:
            yield key, value[2] if isinstance(value, tuple) and value[0] == "tensor" else value


def _tensors(described):
    return [value for _, value in _leaves(described[2][2]) if isinstance(value, torch.Tensor)]
