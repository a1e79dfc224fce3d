"""The line that a failed run names is one that its author can mend."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from rlbench.grid import worker
from rlbench.grid.attempt import Flight, job_maker
from rlbench.grid.store import Store
from rlbench.training import border

from .conftest import make_plan

PLUGIN = """\
import statistics
from rlbench.training import border

def inner(values):
    return statistics.mean(values)

def outer(values):
    try:
        return inner(values)
    except statistics.StatisticsError as error:
        raise ValueError("nothing there") from error

def odd(values):
    return border.name_of(values)
"""


@pytest.fixture
def failure(tmp_path, monkeypatch):
    """Do a run whose training is replaced, and tell its error."""

    def of(train):
        (run,) = make_plan("0")
        monkeypatch.setattr(worker, "train", train)
        flight = Flight(run, None, {"attempts": 1})
        job = job_maker(Store(tmp_path / "out"), (), (), None)(flight)
        result = worker.execute(json.loads(json.dumps(dict(job.payload))), lambda _: None)
        return result["error"]

    return of


@pytest.mark.parametrize(
    ("function", "where"),
    [
        ("inner", "modules/my_plugin.py:5 in inner"),  # not in the standard library
        ("outer", "modules/my_plugin.py:11 in outer"),  # what was raised, not what was caught
        ("odd", "modules/my_plugin.py:14 in odd"),  # not the line of rlbench that it called
    ],
)
def test_an_error_of_a_plugin_names_a_line_of_the_plugin(failure, module, function, where):
    path = module("my_plugin", PLUGIN)
    plugin: dict = {}
    exec(compile(path.read_text("utf-8"), str(path), "exec"), plugin)
    owner = SimpleNamespace(kind="loss", name="mine", component=SimpleNamespace(owner="my_plugin"))
    error = failure(lambda *_: border.call(owner, lambda: plugin[function]([])))
    assert error["type"] == "ComponentError"
    assert error["where"] == where


def test_an_error_of_rlbench_names_its_own_line(failure):
    error = failure(border.name_of)  # takes other arguments, so it fails where it is called
    assert error["type"] == "TypeError"
    assert error["where"].startswith("grid/worker.py:")


def test_an_error_that_comes_round_to_itself_ends(failure):
    def train(*_):
        one, other = ValueError("one"), ValueError("other")
        one.__cause__, other.__cause__ = other, one
        raise one

    assert failure(train)["where"].startswith("grid/test_where_it_failed.py:")
