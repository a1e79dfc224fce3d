"""`only_if`: an option that does nothing beside the others makes no cell of its own."""

from __future__ import annotations

import pytest

from rlbench.errors import PluginError, UsageError
from rlbench.plugin.loading import load
from rlbench.plugin.selection import parse, select
from rlbench.report.show import component_text

PLUGIN = """
from rlbench import hookimpl

def scaled(batch, *, std: bool = False, eps: float = 1e-6, mode: str = "a", width: int = 1):
    return eps

@hookimpl
def rlbench_register_losses(register):
    register("scaled", ":scaled", summary="x", only_if={only_if})
"""


@pytest.fixture
def registry(write):
    def make(only_if):
        return load([write("demo_scaled.py", PLUGIN.replace("{only_if}", repr(only_if)))])

    return make


CONDITIONS = {"eps": "std=true", "width": "mode=b"}


@pytest.mark.parametrize(
    "text",
    [
        "scaled",
        "scaled:std=true,eps=1e-3",
        "scaled:eps=1e-3,std=on",  # the order does not matter, nor the spelling
        "scaled:eps=1e-6",  # the default says nothing
        "scaled:mode=b,width=2",
        "scaled:mode=c",
    ],
)
def test_an_option_that_has_an_effect_is_accepted(registry, text):
    assert parse(registry(CONDITIONS), "loss", text).name == "scaled"


def test_an_option_without_effect_is_refused_with_what_to_write(registry):
    known = registry(CONDITIONS)
    with pytest.raises(UsageError) as caught:
        parse(known, "loss", "scaled:eps=0.001")
    assert str(caught.value).endswith(
        "eps=0.001 has no effect unless std=true; leave out eps, or write scaled:std=true,eps=0.001"
    )
    parse(known, "loss", "scaled:std=true,eps=0.001")
    with pytest.raises(UsageError, match="width=2 has no effect unless mode=b"):
        parse(known, "loss", "scaled:mode=c,width=2")
    with pytest.raises(UsageError, match="unless std=true"):
        select(known.find("loss", "scaled"), {"eps": 0.001})


@pytest.mark.parametrize(
    ("only_if", "message"),
    [
        ({"esp": "std=true"}, "only_if names 'esp', no option of it"),
        ({"eps": "stdd=true"}, "only_if names 'stdd', no option of it"),
        ({"eps": "std=maybe"}, "only_if: .*std=maybe: expected true or false"),
    ],
)
def test_conditions_are_checked_when_the_options_are_known(registry, only_if, message):
    with pytest.raises(PluginError, match=message):
        parse(registry(only_if), "loss", "scaled")


@pytest.mark.parametrize(
    ("only_if", "message"),
    [
        (["eps"], "no mapping of options to other=value"),
        ({"eps": True}, "are not both text"),
        ({"eps": "std"}, "is no other=value, such as 'std=true'"),
        ({"eps": "std=a=b"}, "is no other=value"),
        ({"eps": "eps=1"}, "is no other=value"),
    ],
)
def test_the_form_of_conditions_is_checked_at_registration(registry, only_if, message):
    with pytest.raises(PluginError, match=message):
        registry(only_if)


def test_show_says_when_an_option_counts(registry):
    text = component_text(registry(CONDITIONS).find("loss", "scaled"))
    assert "a number; only if std=true" in text


def test_conditions_of_all_built_ins_name_what_there_is():
    registry = load()
    conditional = [component for component in registry.components() if component.only_if]
    assert {"group", "gae"} <= {component.name for component in conditional}
    for component in conditional:
        assert parse(registry, component.kind, component.name).label == component.name
