"""A name has exactly one owner, or cannot be used."""

from __future__ import annotations

import pytest

from rlbench.errors import UsageError
from rlbench.plugin.loading import load
from rlbench.plugin.registry import KINDS, Component, Owner, Problem, Registry

A = Owner("a", "rlbench-a", "1.0")
B = Owner("b", "rlbench-b", "2.0")


def component(name, owner, *, aliases=(), kind="loss"):
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
    with pytest.raises(UsageError, match="unknown task 'mine'; there is none"):
        registry.find("task", "mine")


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
