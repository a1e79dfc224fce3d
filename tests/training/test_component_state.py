"""What of a component can be saved, and that it is the same afterwards."""

from __future__ import annotations

import enum
import io
import random
import re
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rlbench.training.state import Unsaveable, capture, restore


def through_a_file(content):
    file = io.BytesIO()
    torch.save(content, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def copied(before, fresh):
    """Give `fresh` the state of `before`, as a file carries it."""
    captured = capture({"it": before})
    captured.check(capture({"it": fresh}).anchors)
    return restore({"it": fresh}, through_a_file(captured.content))["it"]


class Thing:
    def __init__(self, **attributes):
        vars(self).update(attributes)


class Phase(enum.Enum):
    WARM = 1
    COLD = 2


PLAIN = [
    None,
    True,
    2**200,
    -0.0,
    float("inf"),
    "≤",
    b"\x00\xff",
    1j,
    (1, (2.5, "x"), []),
    [1, [2, {"a": None}]],
    {"a": 1, 2: (3,), (4, "b"): [5]},
    {1, 2},
    frozenset({"a"}),
    OrderedDict(b=1, a=2),
    Counter("abca"),
    deque([1, 2], maxlen=2),
]


@pytest.mark.parametrize("value", PLAIN, ids=str)
def test_plain_values_come_back_as_they_were(value):
    found = copied(Thing(a=value), Thing(a=None)).a
    assert found == value
    assert type(found) is type(value)
    if isinstance(value, deque):
        assert found.maxlen == value.maxlen
    if isinstance(value, dict):
        assert list(found) == list(value)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.bool_, np.complex64])
def test_arrays_and_their_scalars_keep_shape_and_type(dtype):
    thing = copied(Thing(a=np.ones((2, 3), dtype), b=dtype(1)), Thing())
    assert (thing.a.dtype, thing.a.shape, type(thing.b)) == (dtype, (2, 3), dtype)
    assert (thing.a == 1).all()
    assert thing.b == 1


def test_tensors_keep_type_and_nan():
    value = torch.tensor([1.0, float("nan")], dtype=torch.float64)
    found = copied(Thing(a=value), Thing(a=torch.zeros(7))).a
    assert found.dtype == torch.float64
    assert torch.equal(found.isnan(), torch.tensor([False, True]))


def test_two_names_of_one_list_stay_two_names_of_one_list():
    shared = [1]
    thing = copied(Thing(a=shared, b={"c": shared}, d=[1]), Thing(a=[], b={}, d=[]))
    thing.a.append(2)
    assert thing.b["c"] == [1, 2]
    assert thing.d == [1]


def test_a_list_may_hold_itself():
    endless = [1]
    endless.append(endless)
    found = copied(Thing(a=endless), Thing(a=[])).a
    assert found[1] is found


def test_two_lists_that_were_one_at_the_start_are_two_afterwards():
    start = [0]
    thing = copied(Thing(a=[1], b=[2]), Thing(a=start, b=start))
    assert (thing.a, thing.b) == ([1], [2])


def test_generators_go_on_where_they_were():
    def build():
        return Thing(
            python=random.Random(1),
            numpy=np.random.default_rng(1),
            legacy=np.random.RandomState(1),
            torch=torch.Generator().manual_seed(1),
        )

    def draw(thing):
        return (
            thing.python.gauss(0, 1),  # remembers a second draw
            thing.numpy.random(),
            thing.legacy.normal(),  # so does this
            float(torch.rand((), generator=thing.torch)),
        )

    before = build()
    draw(before)
    after = copied(before, build())
    assert [draw(after) for _ in range(3)] == [draw(before) for _ in range(3)]


def test_a_network_and_its_optimiser_stay_together():
    def build():
        net = torch.nn.Linear(2, 1, bias=False)
        free = torch.ones(1, requires_grad=True)
        torch.nn.init.ones_(net.weight)
        return Thing(nets=[net], free=free, optimiser=torch.optim.Adam([net.weight, free], lr=0.5))

    def step(thing):
        loss = (thing.nets[0](torch.ones(1, 2)) * thing.free).sum()
        thing.optimiser.zero_grad()
        loss.backward()
        thing.optimiser.step()
        return [*thing.nets[0].weight[0].tolist(), float(thing.free.detach())]

    before = build()
    step(before)
    after = copied(before, build())
    assert [step(after) for _ in range(3)] == [step(before) for _ in range(3)]


def test_objects_in_attributes_are_filled_in_place():
    inner = Thing(n=0)
    fresh = Thing(inner=inner, other=inner)
    used = Thing(n=5)
    found = copied(Thing(inner=used, other=used), fresh)
    assert found.inner is inner
    assert inner.n == 5
    assert found.other is inner


def test_a_class_may_say_itself_what_its_state_is():
    class Own:
        def __init__(self):
            self.lock, self.n = threading.Lock(), 0

        def state_dict(self):
            return {"n": self.n}

        def load_state_dict(self, state):
            self.n = state["n"]

    before = Own()
    before.n = 3
    assert copied(before, Own()).n == 3


def test_what_does_not_change_is_taken_from_the_new_process():
    def build(n):
        return Thing(
            n=n, f=max, g=through_a_file, kind=Thing, path=Path("a"), pattern=re.compile("b"),
            phase=Phase.WARM, counts=defaultdict(list),
        )  # fmt: skip

    before = build(2)
    before.phase = Phase.COLD
    before.counts["x"].append(1)
    after = copied(before, build(1))
    assert (after.n, after.f, after.phase, after.path) == (2, max, Phase.COLD, Path("a"))
    assert after.counts["y"] == []
    assert after.counts["x"] == [1]


class Slotted:
    __slots__ = ("a",)


class Failing:
    def state_dict(self):
        raise KeyError("no state")

    def load_state_dict(self, state):
        pass


def closure():
    n = 0

    def count():
        nonlocal n
        n += 1

    return count


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (threading.Lock(), "it.a[0] is a _thread.lock"),
        (iter([1]), "it.a[0] is a builtins.list_iterator"),
        (closure(), "it.a[0] is a builtins.function"),
        (Slotted(), "Slotted"),
        (type("Mine", (list,), {})(), "Mine"),
        (np.array(["text"]), "an array of <U4"),
        (np.array([None]), "an array of object"),
        (torch.ones(1, requires_grad=True) * 2, "carries the graph of its gradient"),
        (Failing(), "whose state_dict raised KeyError: 'no state'"),
        ({Thing(): 1}, "a mapping from Thing"),
        ({Thing()}, "a set of objects"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_the_rest_is_refused_by_its_place(value, words):
    with pytest.raises(Unsaveable, match=re.escape(words)):
        capture({"it": Thing(a=[value])})


def test_what_is_nested_too_deeply_is_refused():
    deep = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(Unsaveable, match="it is nested too deeply"):
        capture({"it": Thing(a=deep)})


@pytest.mark.parametrize(
    ("later", "words"),
    [
        (Thing(rule=min, inner=Thing()), "it.rule is builtin_function_or_method min"),
        (Thing(rule=max, inner=SimpleNamespace()), "it.inner is a types.SimpleNamespace"),
        (Thing(rule=max, inner=Thing(), more=[Thing()]), "it.more[0] is a"),
        (Thing(rule=max, inner=Thing(), path=Path("b")), "it.path is PosixPath('b')"),
    ],
)
def test_what_could_not_be_built_again_is_refused(later, words):
    beginning = capture({"it": Thing(rule=max, inner=Thing(), path=Path("a"))}).anchors
    with pytest.raises(Unsaveable, match=re.escape(words)) as caught:
        capture({"it": later}).check(beginning)
    assert "which was not there when the run began" in str(caught.value)


def test_objects_that_were_one_and_are_two_are_refused():
    one = Thing()
    beginning = capture({"it": Thing(a=one, b=one)}).anchors
    with pytest.raises(Unsaveable, match=r"it\.b is a"):
        capture({"it": Thing(a=Thing(), b=Thing())}).check(beginning)
