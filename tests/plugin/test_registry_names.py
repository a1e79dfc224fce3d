"""A name has exactly one owner, or cannot be used."""

from __future__ import annotations

import re

import pytest

from rlbench.errors import PluginError, UsageError
from rlbench.plugin.loading import load
from rlbench.plugin.registry import KINDS, Component, Owner, Problem, Registry
from rlbench.plugin.selection import parse

A = Owner("a", "rlbench-a", "1.0")
B = Owner("b", "rlbench-b", "2.0")

PLUGIN = """
from rlbench import hookimpl

@hookimpl
def rlbench_register_losses(register):
    register("mine", "m:f", summary="x", elsewhere={advice})
"""


def component(name, owner, *, aliases=(), kind="loss", elsewhere=None):
    return Component(
        kind=kind,
        name=name,
        target="module:f",
        summary="Text.",
        needs=(),
        aliases=aliases,
        group_relative=False,
        exceptions={},
        owner=owner,
        elsewhere=elsewhere or {},
    )


def test_an_alias_leads_to_the_component():
    mine = component("mine", A, aliases=("other",))
    assert Registry([mine]).find("loss", "other") is mine


def test_the_nearest_name_is_offered_and_aliases_are_names():
    registry = Registry([component("mine", A, aliases=("other",))])
    with pytest.raises(UsageError, match="unknown loss 'othr'; did you mean 'other'"):
        registry.find("loss", "othr")
    with pytest.raises(UsageError, match="unknown loss 'zzz'; known: mine, other"):
        registry.find("loss", "zzz")
    with pytest.raises(UsageError, match="unknown task 'yours'; there is none"):
        registry.find("task", "yours")


def test_a_name_of_another_kind_is_found_there():
    registry = Registry([component("mine", A, aliases=("other",)), component("mind", A, kind="kl")])
    with pytest.raises(UsageError, match=r"^unknown kl 'mine'; 'mine' is of the kind loss$"):
        registry.find("kl", "mine")
    with pytest.raises(UsageError, match=r"^unknown task 'other'; 'other' is of the kind loss$"):
        registry.find("task", "other")


def test_a_name_that_others_use_is_refused_with_what_to_write():
    registry = Registry(
        [
            component("mine", A, elsewhere={"their": "mine:x=3", "both": "mine for A"}),
            component("theirs", B, elsewhere={"both": "theirs:y=1 for B"}),
            component("their", B, kind="task", elsewhere={"mine": "their"}),
        ],
        [Problem(B, "not loaded")],
    )
    with pytest.raises(UsageError, match=r"^unknown loss 'their'; write mine:x=3 \(rlbench-b"):
        registry.find("loss", "their")
    with pytest.raises(UsageError, match="'both'; write mine for A or theirs:y=1 for B"):
        registry.find("loss", "both")
    # advice is no name: it takes none away, and is no clash
    assert registry.find("loss", "mine").owner == A
    assert registry.find("task", "their").owner == B
    assert len(registry.problems) == 1


@pytest.mark.parametrize("advice", ['["x"]', '{"x": ""}', '{"x": 1}', '{1: "x"}'])
def test_advice_is_names_with_texts(staged, advice):
    with pytest.raises(PluginError, match="loss 'mine': elsewhere"):
        staged(PLUGIN.format(advice=advice))


def test_advice_of_a_plugin_is_kept(staged):
    (mine,) = staged(PLUGIN.format(advice='{"their": "mine:x=3"}'))
    assert mine.elsewhere == {"their": "mine:x=3"}


def test_an_unknown_kind_is_refused():
    with pytest.raises(UsageError, match="unknown kind 'losss'; did you mean 'loss'"):
        Registry([]).find("losss", "clip")


@pytest.mark.parametrize(
    ("first", "second", "spoilt", "usable"),
    [
        ({"name": "x"}, {"name": "x"}, ["x"], []),
        ({"name": "x"}, {"name": "y", "aliases": ("x",)}, ["x"], ["y"]),
        ({"name": "x", "aliases": ("z",)}, {"name": "y", "aliases": ("z",)}, ["z"], ["x", "y"]),
        # z leads to x only, but a label written with it would say x
        ({"name": "x", "aliases": ("z",)}, {"name": "x"}, ["x", "z"], []),
    ],
)
def test_every_use_of_a_name_with_two_owners_fails(first, second, spoilt, usable):
    registry = Registry([component(owner=A, **first), component(owner=B, **second)])
    for name in spoilt:
        with pytest.raises(UsageError) as caught:
            registry.find("loss", name)
        assert "rlbench-a 1.0 (plugin a)" in str(caught.value)
        assert "rlbench-b 2.0 (plugin b)" in str(caught.value)
    for name in usable:
        assert registry.find("loss", name).name == name
    assert registry.problems
    assert registry.problems[0].owner == B


def test_one_name_in_two_kinds_is_no_clash():
    registry = Registry([component("x", A), component("x", B, kind="task")])
    assert registry.problems == ()
    assert registry.find("task", "x").owner == B


def test_components_come_sorted_with_the_ambiguous_ones():
    registry = Registry(
        [component("b", A), component("a", B), component("a", A), component("z", A, kind="task")]
    )
    assert [(c.kind, c.name, c.owner.plugin) for c in registry.components()] == [
        ("loss", "a", "a"),
        ("loss", "a", "b"),
        ("loss", "b", "a"),
        ("task", "z", "a"),
    ]
    assert [c.name for c in registry.components("task")] == ["z"]
    assert [c.owner for c in registry.owners("loss", "a")] == [B, A]


def test_an_unknown_name_points_to_the_plugins_that_failed():
    registry = Registry([component("clip", A)], [Problem(B, "not loaded: ImportError: no x")])
    with pytest.raises(UsageError, match=r"rlbench-b 2.0 \(plugin b\): not loaded: ImportError"):
        registry.find("loss", "theirs")


def test_owners_are_written_for_people():
    assert str(Owner("rlbench", "rlbench", "0.1.0")) == "rlbench 0.1.0"
    assert str(Owner("x", "rlbench-x", None)) == "rlbench-x (plugin x)"
    assert str(Owner("x")) == "module x"
    assert str(Owner("x", path="/somewhere/x.py")) == "file /somewhere/x.py"


def test_components_have_a_hash_and_compare_by_content():
    assert {component("x", A), component("x", A)} == {component("x", A)}
    assert component("x", A) != component("x", B)


def test_the_built_in_components_have_all_names_to_themselves():
    registry = load()
    assert [p for p in registry.problems if p.owner.plugin == "rlbench"] == []
    assert registry.find("estimator", "grpo").name == "group"
    assert registry.find("loss", "ppo_clip").name == "clip"
    assert registry.find("kl", "ziegler").name == "proportional"
    own = [c for c in registry.components() if c.owner.distribution == "rlbench"]
    assert {c.kind for c in own} == set(KINDS) - {"tracker"}


def test_the_advice_of_built_in_components_can_be_followed():
    registry = load()
    advised = [(c, name, text) for c in registry.components() for name, text in c.elsewhere.items()]
    assert ("clip", "dual_clip") in {(c.name, name) for c, name, _ in advised}
    for component, name, text in advised:
        if name.startswith(":"):
            continue  # an option, not a component
        selection = re.match(r"[^\s;]+", text)[0].rstrip(",")
        assert parse(registry, component.kind, selection).label == selection
        assert selection.partition(":")[0] == component.name
        assert registry.owners(component.kind, name) == []


@pytest.mark.parametrize(
    ("kind", "name", "means"),
    [
        ("estimator", "grpo", "group"),
        ("estimator", "reinforce_plus_plus", "reinforce_pp"),
        ("estimator", "reinforce_plus_plus_baseline", "reinforce_pp_baseline"),
        ("estimator", "rloo_vectorized", "rloo"),
        ("estimator", "centered", "dr_grpo"),
        ("loss", "gpg", "pg"),
        ("loss", "importance_sampling", "importance"),
        ("loss", "ppo_penalty", "penalty"),
        ("loss", "two_sided_clip", "two_sided"),
        ("kl", "pid_lagrangian", "pid"),
        ("kl", "adaptive_proportional", "proportional"),
        ("kl", "target_kl_stop", "target_stop"),
    ],
)
def test_names_of_other_libraries_lead_to_the_same_thing(kind, name, means):
    assert load().find(kind, name).name == means


@pytest.mark.parametrize(
    ("kind", "name", "advice"),
    [
        ("loss", "vanilla", "write pg for ROLL's or clip:dual=3 for verl's"),
        ("loss", "dual_clip", "write clip:dual=3"),
        ("loss", "clip_higher", "write clip:eps_high=0.28"),
        ("loss", "geo_mean", "write gmpo:eps=0.2, with --set aggregation=seq_mean_token_mean"),
        ("loss", "bnpo", "write clip, with --set aggregation=token_mean_local"),
        ("loss", "dapo", "write clip:eps_high=0.28, with -e group"),
        ("loss", "dr_grpo", "write clip, with -e dr_grpo"),
        ("estimator", "dapo", "write group, with -l clip:eps_high=0.28"),
        ("estimator", "group_norm", "write group:eps=1e-9,kl=after"),
        ("estimator", "reinforce_baseline", "write reinforce_pp_baseline:kl=after,ddof=0"),
        ("estimator", "optimal_token_baseline", "write opo for one baseline a completion"),
        ("estimator", "clip", "'clip' is of the kind loss"),
        ("kl", "low_var_kl", "write fixed:estimator=k3"),
        ("kl", "target_kl", "write proportional to steer .* or target_stop to end updates early"),
    ],
)
def test_names_that_mean_something_else_say_what_to_write(kind, name, advice):
    with pytest.raises(UsageError, match=f"^unknown {kind} {name!r}; {advice}"):
        load().find(kind, name)
