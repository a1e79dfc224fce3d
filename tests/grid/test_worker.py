from __future__ import annotations

import json
import math
import os
import random
import sys

import numpy as np
import pytest
import torch

from rlbench.errors import ComponentError, Diverged
from rlbench.grid import store as store_module
from rlbench.grid import worker
from rlbench.grid.attempt import Flight, Planned, history, job_maker
from rlbench.grid.identity import run_id
from rlbench.grid.store import Store

from .conftest import make_plan, make_specs

NUMBERS = {"score": 0.75, "score_start": 0.5, "kl": 0.125, "phases": {"rollout": 1.5}}


def make_payload(root, planned: Planned, plugins=(), trackers=(), **more):
    store = Store(root)
    seen = store.stamp(planned.run_id)
    flight = Flight(planned, seen, history(store, planned.run_id, seen))
    job = job_maker(store, plugins, trackers, None)(flight)
    payload = dict(job.payload)
    payload = json.loads(json.dumps(payload))  # as it arrives in another process
    return payload | more


@pytest.fixture
def trained(monkeypatch):
    """Replace the trainer; the test says what it does."""

    def set_to(function):
        monkeypatch.setattr(worker, "train", function)

    set_to(lambda spec, recorder, trackers, checkpoints: NUMBERS)
    return set_to


@pytest.fixture
def planned():
    return make_plan("3")[0]


def execute(payload):
    reports = []
    return worker.execute(payload, reports.append), reports


def on_disk(root, run_id, name):
    return (root / "runs" / run_id / name).read_text("utf-8")


def test_a_run_that_works_is_complete_on_disk(tmp_path, trained, planned):
    def train(spec, recorder, trackers, checkpoints):
        recorder.update({"update": 1, "loss": 0.5})
        recorder.evaluation({"update": 0, "score": 0.5})
        recorder.timing({"update": 1, "rollout": 0.5})
        recorder.samples([{"prompt": "1+1="}])
        recorder.progress(1, 1, "training")
        recorder.log("a line")
        assert recorder.base_folder == tmp_path / "base"
        assert spec.seed == 3
        return NUMBERS

    trained(train)
    result, reports = execute(make_payload(tmp_path, planned))
    record = Store(tmp_path).record(planned.run_id)
    assert (record.status, record.problem) == ("ok", None)
    assert record.result == result
    assert NUMBERS.items() <= result.items()
    assert (result["schema"], result["run_id"], result["error"]) == (1, planned.run_id, None)
    assert result["floor"] == 0.0
    assert record.spec["run_id"] == planned.run_id
    assert reports == [{"floor": 0.0}, {"done": 1, "total": 1, "phase": "training"}]
    names = {path.name for path in record.folder.iterdir()}
    assert names == {*store_module.ATTEMPT, "lock"}
    assert "a line" in on_disk(tmp_path, planned.run_id, "log.txt")


def test_the_result_says_where_it_comes_from(tmp_path, trained, planned):
    result, _ = execute(make_payload(tmp_path, planned))
    provenance = result["provenance"]
    assert provenance["threads"] == 1
    assert provenance["torch"] == torch.__version__
    assert provenance["cpu_capability"] == torch.backends.cpu.get_cpu_capability()
    assert provenance["owners"]["loss"] == "rlbench 0.1.0"
    assert provenance["started"].endswith("+00:00")
    assert {"python", "numpy", "rlbench", "platform", "cpu", "git"} <= provenance.keys()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("no such thing"), "failed"),
        (MemoryError("no memory"), "failed"),
        (SystemExit("a plugin left"), "failed"),
        (ComponentError("wrong shape"), "failed"),
        (Diverged("the loss is nan"), "diverged"),
        (RecursionError("too deep"), "failed"),
    ],
)
def test_a_run_that_fails_has_a_result_and_a_traceback(tmp_path, trained, planned, error, status):
    def train(spec, recorder, trackers, checkpoints):
        recorder.update({"update": 1, "loss": math.nan})
        raise error

    trained(train)
    result, _ = execute(make_payload(tmp_path, planned))
    record = Store(tmp_path).record(planned.run_id)
    assert record.result == result
    assert record.complete
    assert result["status"] == status
    assert result["error"]["type"] == type(error).__name__
    assert result["error"]["message"] == str(error)
    assert result["error"]["where"].startswith("grid/test_worker.py:")
    assert result["floor"] == 0.0
    assert "score" not in result
    log = on_disk(tmp_path, planned.run_id, "log.txt")
    assert "Traceback (most recent call last)" in log
    assert str(error) in log
    assert on_disk(tmp_path, planned.run_id, "metrics.csv") == "update,loss\n1,\n"


def test_numbers_that_are_not_finite_are_null_with_a_reason(tmp_path, trained, planned):
    trained(lambda *_: NUMBERS | {"score": math.nan, "phases": {"rollout": math.inf}})
    execute(make_payload(tmp_path, planned))
    text = on_disk(tmp_path, planned.run_id, "result.json")
    result = json.loads(text, parse_constant=pytest.fail)  # NaN and Infinity are no JSON
    assert result["score"] is None
    assert result["reason"] == "score was nan; phases.rollout was inf"


def test_what_a_run_prints_goes_to_its_log(tmp_path, trained, planned, capfd):
    def train(spec, recorder, trackers, checkpoints):
        sys.stdout.write("from Python, ≤\n")
        sys.stderr.write("an error\n")
        os.system("echo from a program")
        os.write(2, b"from C\n")
        return NUMBERS

    trained(train)
    execute(make_payload(tmp_path, planned))
    log = on_disk(tmp_path, planned.run_id, "log.txt")
    for text in ("from Python, ≤", "an error", "from a program", "from C"):
        assert text in log
    sys.stdout.write("after\n")
    assert capfd.readouterr() == ("after\n", "")


def test_all_global_generators_are_seeded_by_the_run(tmp_path, trained):
    drawn = {}

    def train(spec, recorder, trackers, checkpoints):
        drawn.setdefault(spec.seed, []).append(
            (random.random(), float(np.random.rand()), float(torch.rand(())))
        )
        return NUMBERS

    trained(train)
    plan = make_plan("0,1")
    for number, planned in enumerate([plan[0], plan[1], plan[0]]):
        execute(make_payload(tmp_path / str(number), planned))
    assert drawn[0][0] == drawn[0][1]
    assert all(a != b for a, b in zip(drawn[0][0], drawn[1][0], strict=True))


def test_a_plugin_that_reseeds_on_import_changes_nothing(tmp_path, trained, module):
    def plugin(name, first_line):
        return str(
            module(
                name,
                f"""
                from rlbench import hookimpl

                @hookimpl
                def rlbench_register_losses(register):
                    register("{name}", "{name}_part:loss", summary="A loss.")
                """,
            )
        ), module(f"{name}_part", f"{first_line}\ndef loss(batch, *, a: int = 1):\n    pass\n")

    drawn = []

    def train(spec, recorder, trackers, checkpoints):
        spec.selections["loss"].component.load()
        drawn.append(random.random())
        return NUMBERS

    trained(train)
    for name, line in (("calm", ""), ("rude", "import random; random.seed(1)")):
        path, _ = plugin(name, line)
        spec = make_specs(plugins=(path,), loss=name)[0]
        planned = Planned(run_id(spec), spec)
        result, _ = execute(make_payload(tmp_path, planned, plugins=(path,)))
        assert result["status"] == "ok"
    assert drawn[0] == drawn[1]


def test_a_finished_run_is_not_done_again(tmp_path, trained, planned):
    payload = make_payload(tmp_path, planned)
    first, _ = execute(payload)
    trained(lambda *_: pytest.fail("trained twice"))
    again, _ = execute(payload)  # planned before the first one finished
    assert again == first


def test_a_failed_run_is_done_again_when_its_result_was_seen(tmp_path, trained, planned):
    trained(lambda *_: 1 / 0)
    failed, _ = execute(make_payload(tmp_path, planned))
    assert failed["error"]["type"] == "ZeroDivisionError"
    trained(lambda *_: NUMBERS)
    result, _ = execute(make_payload(tmp_path, planned))
    assert result["status"] == "ok"
    assert "ZeroDivisionError" not in on_disk(tmp_path, planned.run_id, "log.txt")


def test_what_an_earlier_attempt_left_is_cleared(tmp_path, trained, planned):
    folder = Store(tmp_path).run_folder(planned.run_id)
    folder.mkdir(parents=True)
    (folder / "metrics.csv").write_text("update,loss\n1,0.5\n2,0.")
    (folder / "samples.jsonl").write_text('{"half')
    execute(make_payload(tmp_path, planned))
    assert not (folder / "metrics.csv").exists()
    assert not (folder / "samples.jsonl").exists()


def test_a_run_of_another_process_is_busy(tmp_path, trained, planned, monkeypatch):
    monkeypatch.setattr(Store.locked.__wrapped__, "__defaults__", (0.1,))
    with Store(tmp_path).locked(planned.run_id):
        assert execute(make_payload(tmp_path, planned))[0] == {"status": "busy"}
    assert execute(make_payload(tmp_path, planned))[0]["status"] == "ok"


def test_sources_that_changed_since_stop_the_run_without_settling_it(tmp_path, trained, planned):
    payload = make_payload(tmp_path, planned, digest="0" * 16)
    result, _ = execute(payload)
    assert result["status"] == "killed"
    assert not Store(tmp_path).record(planned.run_id).complete
    assert "source files changed" in result["error"]["message"]


def test_a_full_disk_fails_the_run_and_leaves_no_half_result(
    tmp_path, trained, planned, monkeypatch
):
    payload = make_payload(tmp_path, planned)
    real = worker.write_json

    def full(path, content):
        if path.name == "result.json":
            raise OSError(28, "No space left on device")
        real(path, content)

    monkeypatch.setattr(worker, "write_json", full)
    result, _ = execute(payload)
    assert (result["status"], result["stored"]) == ("killed", False)
    assert "No space left on device" in result["error"]["message"]
    assert not Store(tmp_path).record(planned.run_id).complete


def test_a_disk_that_fills_up_while_training_is_the_reason_of_the_failure(
    tmp_path, trained, planned
):
    def train(spec, recorder, trackers, checkpoints):
        raise OSError(28, "No space left on device")

    trained(train)
    result, _ = execute(make_payload(tmp_path, planned))
    assert Store(tmp_path).record(planned.run_id).result == result
    assert (result["status"], result["error"]["type"]) == ("killed", "OSError")
    assert "No space left" in result["error"]["message"]
    assert not Store(tmp_path).record(planned.run_id).complete  # it runs again


def test_a_log_that_can_not_be_written_does_not_cost_the_result(
    tmp_path, trained, planned, monkeypatch
):
    def full():
        raise OSError(28, "No space left on device")

    trained(lambda *_: 1 / 0)
    monkeypatch.setattr(worker.traceback, "print_exc", full)
    result, _ = execute(make_payload(tmp_path, planned))
    assert result["status"] == "failed"
    assert Store(tmp_path).record(planned.run_id).result == result


TRACKER = """
    from pathlib import Path
    from rlbench import hookimpl

    class Notes:
        def __init__(self, *, path: str = "notes", broken: bool = False):
            self.path, self.broken = Path(path), broken

        def start(self, run):
            self.path.write_text(f"start {run['run_id']}\\n")

        def log(self, update, metrics):
            pass

        def finish(self, result):
            if self.broken:
                raise RuntimeError("the tracker is broken")
            with self.path.open("a") as stream:
                stream.write(f"finish {result['status']}\\n")

    @hookimpl
    def rlbench_register_trackers(register):
        register("notes", f"{__name__}:Notes", summary="Writes notes.")
"""


@pytest.mark.parametrize("status", ["ok", "failed"])
def test_trackers_see_the_start_and_the_end_of_good_and_bad_runs(
    tmp_path, trained, planned, module, status
):
    if status == "failed":
        trained(lambda *_: 1 / 0)
    path = str(module("my_tracker", TRACKER))
    notes = tmp_path / "notes"
    payload = make_payload(tmp_path, planned, (path,), (f"notes:path={notes}",))
    assert execute(payload)[0]["status"] == status
    assert notes.read_text() == f"start {planned.run_id}\nfinish {status}\n"


def test_a_tracker_that_fails_at_the_end_is_in_the_log_and_the_run_counts(
    tmp_path, trained, planned, module
):
    path = str(module("my_tracker", TRACKER))
    text = f"notes:path={tmp_path / 'notes'},broken=true"
    assert execute(make_payload(tmp_path, planned, (path,), (text,)))[0]["status"] == "ok"
    assert "the tracker is broken" in on_disk(tmp_path, planned.run_id, "log.txt")


def test_a_plugin_that_is_gone_fails_the_run_by_name(tmp_path, trained, planned):
    payload = make_payload(tmp_path, planned, plugins=[str(tmp_path / "gone.py")])
    result, _ = execute(payload)
    assert result["status"] == "failed"
    assert "gone.py" in result["error"]["message"]


def test_a_module_outside_of_the_runs_name_is_warned_of(tmp_path, trained, module):
    package = module("part_of_package", "").parent / "hidden_package"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from rlbench import hookimpl\n"
        "@hookimpl\n"
        "def rlbench_register_losses(register):\n"
        "    register('hidden', 'hidden_package.losses:loss', summary='A loss.')\n"
    )
    (package / "losses.py").write_text(
        "import importlib\n"
        "importlib.import_module('hidden_package.' + 'scale')\n"
        "def loss(batch, *, a: int = 1):\n"
        "    pass\n"
    )
    (package / "scale.py").write_text("SCALE = 1\n")
    spec = make_specs(plugins=("hidden_package",), loss="hidden")[0]
    planned = Planned(run_id(spec), spec)
    result, _ = execute(make_payload(tmp_path, planned, plugins=("hidden_package",)))
    assert result["status"] == "ok", result
    log = on_disk(tmp_path, planned.run_id, "log.txt")
    assert log.count("warning: ") == 1
    assert "used module hidden_package.scale, which is no part of the run's name" in log
