"""`name:option=value,option=value`: strict to read, one way to write."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlbench.errors import PluginError, UsageError
from rlbench.plugin import kl
from rlbench.plugin.loading import load
from rlbench.plugin.registry import Component, Owner, Registry
from rlbench.plugin.selection import parse, select
from rlbench.plugin.signature import options

PLUGIN = """
from typing import Annotated, Literal
from rlbench import hookimpl

def odd(
    batch,
    *,
    rate: Annotated[float, "[0, inf]"] = 0.5,
    count: int = 3,
    tag: str = "a,b",
    flag: bool = True,
    side: Literal["left", "right"] = "left",
    limit: Annotated[float, "(0, inf)"] | None = None,
):
    return rate, count, tag, flag, side, limit

class Strict:
    def __init__(self, *, low: float = 0.0, high: float = 1.0):
        if low > high:
            raise ValueError("low is above high")
        if low == high:
            raise TypeError("a bug")
        self.low = low

class Clash:
    def __init__(self, *, place: str = "here"):
        pass

@hookimpl
def rlbench_register_losses(register):
    register("odd", ":odd", summary="x", aliases=("strange",))

@hookimpl
def rlbench_register_tasks(register):
    register("strict", ":Strict", summary="x")

@hookimpl
def rlbench_register_kl_controllers(register):
    register("clash", ":Clash", summary="x", needs=("ref_logp",))
"""


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    path = tmp_path_factory.mktemp("plugin") / "odd_plugin.py"
    path.write_text(PLUGIN, encoding="utf-8")
    registry = load([path])
    module = sys.modules["rlbench_file_odd_plugin"]
    yield registry
    sys.modules.pop(module.__name__, None)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("odd", "odd"),
        ("strange", "odd"),
        ("odd:rate=0.5", "odd"),
        ("odd:rate=5e-1,count=3.0,flag=yes", "odd"),
        ("odd:flag=off,rate=1e-4", "odd:rate=0.0001,flag=false"),
        (" odd : count = 1e2 , rate = 0 ", "odd:rate=0,count=100"),
        ("odd:tag=1E5", "odd:tag=1E5"),
        ("odd:tag=org/model:v2", "odd:tag=org/model:v2"),
        ("odd:tag=none", "odd:tag=none"),
        ("odd:limit=none", "odd"),
        ("odd:limit=2,rate=inf", "odd:rate=inf,limit=2"),
    ],
)
def test_the_label_says_what_differs_in_one_spelling(registry, text, label):
    found = parse(registry, "loss", text)
    assert (found.label, found.text(), found.kind, found.name) == (label, label, "loss", "odd")
    assert parse(registry, "loss", label) == found


def test_all_options_are_filled_in(registry):
    found = parse(registry, "loss", "odd:count=7")
    assert found.options == {
        "rate": 0.5,
        "count": 7,
        "tag": "a,b",
        "flag": True,
        "side": "left",
        "limit": None,
    }
    assert found.create()(None) == (0.5, 7, "a,b", True, "left", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected one component"),
        (":count=1", "expected one component"),
        ("odd,clip", "expected one component"),
        ("odd:", "'' is no option=value; write odd:option=value"),
        ("odd:count", "'count' is no option=value"),
        ("odd:count=", "'count=' is no option=value"),
        ("odd:=1", "'=1' is no option=value"),
        ("odd:count=1,", "'' is no option=value"),
        ("odd:count=1,,rate=1", "'' is no option=value"),
        ("odd:tag=a=b", "'tag=a=b' is no option=value.*no comma or equals sign in a value"),
        ("odd:tag==b.txt", "'tag==b.txt' is no option=value"),
        ("odd:tag=a,b", "'b' is no option=value.*no comma or equals sign in a value"),
        ("odd:count=1,count=1", "option 'count' is there twice"),
        ("odd:count=1.5", r"loss 'odd' \(file .*: count=1.5: expected an integer"),
        ("odd:rate=-1", r"rate=-1: expected a number in \[0, inf\]"),
        ("odd:side=up", "side=up: expected one of left, right"),
        ("odd:flag=maybe", "flag=maybe: expected true or false"),
        ("odd:cuont=1", r"unknown option 'cuont' of loss 'odd' \(file .*; did you mean 'count'"),
        ("od", "unknown loss 'od'; did you mean 'odd'"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(registry, text, message):
    with pytest.raises(UsageError, match=message) as caught:
        parse(registry, "loss", text)
    assert "\n" not in str(caught.value)


def test_built_in_options_are_known_by_name(registry):
    with pytest.raises(
        UsageError,
        match=r"^unknown option 'ep' of loss 'clip' \(rlbench 0\.1\.0\); did you mean 'eps'\?$",
    ):
        parse(registry, "loss", "clip:ep=0.1")
    with pytest.raises(UsageError, match="did you mean 'eps_high'"):
        parse(registry, "loss", "clip:eps-high=0.1")
    # an option of another component has no effect here, so it can't be written
    with pytest.raises(UsageError, match="unknown option 'lam' of estimator 'group'"):
        parse(registry, "estimator", "group:lam=0.9")
    with pytest.raises(UsageError, match="unknown option 'target' of kl 'none'"):
        parse(registry, "kl", "none:target=6")


def test_what_is_no_text_is_refused(registry):
    with pytest.raises(UsageError, match="loss 7: expected text"):
        parse(registry, "loss", 7)


def test_values_from_python_mean_the_same_as_text(registry):
    odd = registry.find("loss", "odd")
    made = select(odd, {"count": 7.0, "flag": "off", "limit": 2, "side": "right"})
    assert made == parse(registry, "loss", "odd:count=7,flag=no,limit=2.0,side=right")
    with pytest.raises(UsageError, match="unknown option 'cuont'"):
        select(odd, {"cuont": 7})
    with pytest.raises(UsageError, match="count=True"):
        select(odd, {"count": True})
    with pytest.raises(UsageError, match="tag=a,b"):
        select(odd, {"tag": "a,b"})


def test_selections_can_be_counted(registry):
    texts = ("odd", "strange", "odd:rate=0.5", "odd:rate=1")
    assert len({parse(registry, "loss", text) for text in texts}) == 2


def test_a_class_is_created_with_its_options(registry):
    assert parse(registry, "task", "strict:low=0.5").create().low == 0.5


def test_a_class_that_refuses_its_options_is_named(registry):
    with pytest.raises(UsageError, match=r"task 'strict' \(file .*\): low is above high"):
        parse(registry, "task", "strict:low=2").create()
    with pytest.raises(PluginError, match=r"task 'strict' \(file .*\): TypeError: a bug"):
        parse(registry, "task", "strict:low=1").create()


@pytest.mark.parametrize(
    ("text", "label", "estimator", "place"),
    [
        ("fixed", "fixed", "k3_ratio", "loss"),
        ("fixed:estimator=none", "fixed", "k3_ratio", "loss"),
        ("fixed:estimator=k3_ratio", "fixed", "k3_ratio", "loss"),
        ("fixed:place=reward", "fixed:place=reward", "k1", "reward"),
        ("fixed:place=reward,estimator=k1", "fixed:place=reward", "k1", "reward"),
        ("fixed:place=reward,estimator=abs", "fixed:estimator=abs,place=reward", "abs", "reward"),
        ("fixed:estimator=k3", "fixed:estimator=k3", "k3", "loss"),
        ("fixed:estimator=low_var_kl", "fixed:estimator=k3", "k3", "loss"),
        ("fixed:estimator=mse", "fixed:estimator=k2", "k2", "loss"),
        ("fixed:place=reward,estimator=kl", "fixed:place=reward", "k1", "reward"),
        ("fixed:estimator=full", "fixed:estimator=full", "full", "loss"),
        (
            "fixed:place=reward,estimator=full",
            "fixed:estimator=full,place=reward",
            "full",
            "reward",
        ),
        ("ziegler:coef=0.3", "proportional:coef=0.3", "k3_ratio", "loss"),
    ],
)
def test_a_controller_gets_the_best_estimator_for_its_place(
    registry, text, label, estimator, place
):
    found = parse(registry, "kl", text)
    assert (found.label, found.options["estimator"], found.options["place"]) == (
        label,
        estimator,
        place,
    )
    assert parse(registry, "kl", label) == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("fixed:estimator=k1", "its expected gradient is 0"),
        ("fixed:estimator=kl", "estimator=k1 with place=loss: its expected gradient is 0"),
        ("fixed:estimator=abs", "its gradient is not that of the KL"),
        ("fixed:estimator=k3_ratio,place=reward", "only the value counts there"),
        ("fixed:estimator=k1_plus,place=reward", "write k1, k2 or k3"),
        ("fixed:estimator=k3_plus,place=reward", "the best one for this place is k1"),
        ("fixed:estimator=k4", "expected one of k1, k2, k3, k3_ratio, k1_plus, k3_plus, abs, full"),
        ("fixed:place=both", "expected one of loss, reward"),
        ("none:place=reward", "unknown option 'place' of kl 'none'"),
    ],
)
def test_an_estimator_in_the_wrong_place_is_refused_with_the_reason(registry, text, reason):
    with pytest.raises(UsageError, match=reason):
        parse(registry, "kl", text)


def test_the_estimators_are_those_that_can_be_computed():
    from rlbench import divergence

    assert (*divergence.KINDS, divergence.EXACT) == kl.ESTIMATORS


def test_names_of_other_libraries_are_understood_and_not_kept(registry):
    for name, ours in kl.SYNONYMS.items():
        place = "loss" if ours not in ("k1", "abs") else "reward"
        found = parse(registry, "kl", f"fixed:place={place},estimator={name}")
        assert found == parse(registry, "kl", f"fixed:place={place},estimator={ours}")
        assert found.options["estimator"] == ours
        assert "+" not in found.label


def test_a_controller_is_created_with_its_own_options_only(registry):
    controller = parse(registry, "kl", "fixed:coef=0.3,place=reward").create()
    assert controller.coef == 0.3


def test_a_controller_with_an_option_of_the_trainers_is_refused(registry):
    with pytest.raises(PluginError, match="option 'place' is one that rlbench gives"):
        parse(registry, "kl", "clash")


def _values(option):
    """Values that the option accepts."""
    if option.choices:
        values = st.sampled_from(option.choices)
    elif option.type == "bool":
        values = st.booleans()
    elif option.type == "int":
        values = st.integers(-(10**9), 10**9)
    elif option.type == "float":
        values = st.floats(0, exclude_min=True, allow_nan=False, allow_infinity=False)
    else:
        values = st.text(min_size=1).filter(
            lambda text: text.isprintable() and text == text.strip() and not set(text) & set(",=")
        )
    return st.none() | values if option.optional else values


ODD = Component(
    kind="loss",
    name="odd",
    target="odd_source:odd",
    summary="x",
    needs=(),
    aliases=(),
    group_relative=False,
    exceptions={},
    owner=Owner("odd", "odd", "1"),
)


@given(data=st.data())
def test_every_selection_survives_its_own_text(registry, data):
    component = replace(ODD, target=registry.find("loss", "odd").target)
    values = {option.name: data.draw(_values(option)) for option in options(component)}
    found = select(component, values)
    again = parse(Registry([component]), "loss", found.text())
    assert again == found
    assert again.options == values
    assert again.text() == found.text()
