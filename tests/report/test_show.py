"""Text about components, read without importing any of them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from rlbench.plugin.loading import load
from rlbench.report.show import (
    component_text,
    docstring,
    list_text,
    plugins_text,
    settings_text,
)

if TYPE_CHECKING:
    from pathlib import Path

PLUGIN = '''
from rlbench import hookimpl

raise_at_import = None


def mine(batch, *, scale: float = 1.0):
    """Weigh everything.

    Args:
        batch: The minibatch.
        scale: How much.

    Returns:
        Nothing of use.
    """


@hookimpl
def rlbench_register_losses(register):
    register("mine", f"{__name__}:mine", summary="Weighs everything.", needs=("ref_logp",))
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "loose_loss.py"
    path.write_text(textwrap.dedent(PLUGIN), encoding="utf-8")
    return path


def test_every_component_is_listed_with_its_summary() -> None:
    registry = load()
    text = list_text(registry, ["estimator", "tracker"])
    for component in registry.components("estimator"):
        assert component.name in text
    assert text.endswith("tracker\n  (none installed)")
    assert max(map(len, text.splitlines())) <= 80


def test_foreign_owners_are_named(plugin: Path) -> None:
    text = list_text(load([plugin]), ["loss"])
    line = next(line for line in text.splitlines() if line.lstrip().startswith("mine"))
    assert "[file" in line
    assert "[" not in next(line for line in text.splitlines() if "clip, ppo_clip" in line)


def test_a_name_with_two_owners_is_marked(plugin: Path, tmp_path: Path) -> None:
    other = tmp_path / "other_loss.py"
    other.write_text(PLUGIN, encoding="utf-8")
    text = list_text(load([plugin, other]), ["loss"])
    assert text.count("AMBIGUOUS") == 2


def test_a_component_shows_options_needs_and_documentation(plugin: Path) -> None:
    text = component_text(load([plugin]).find("loss", "mine"))
    assert text.startswith("loss mine: Weighs everything.")
    assert "needs   ref_logp" in text
    assert "scale=1  a number" in text
    assert "How much." in text
    assert "Weigh everything." in text
    assert "Nothing of use." in text
    assert "The minibatch." not in text


def test_every_builtin_can_be_shown() -> None:
    for component in load().components():
        assert component.summary in " ".join(component_text(component).split())


def test_every_component_that_trains_shows_formula_source_and_variants() -> None:
    for component in load().components("kl"):
        text = component_text(component)
        if component.name != "none":
            assert "\nsee\n" in text
        assert "\ndiffers\n" in text
        assert "\nmetrics\n  coef" in text or "\nmetrics\n  kl_old" in text
        assert "coef" in text.partition("\ndescription\n")[2] or "stop" in component.name


def test_the_trainers_own_options_are_explained_once() -> None:
    registry = load()
    text = component_text(registry.find("kl", "fixed"))
    for title in ("place and estimator", "estimates", "see", "differs", "metrics", "raises"):
        assert text.count(f"\n{title}\n") == 1
    for said in (
        "k3_ratio              r (exp(-d) - 1 + d)",
        "low_var_kl",
        "are refused",
        "`full`",
    ):
        assert said in text
    assert text.index("  coef    As given") < text.index("  kl_...  The KL by")
    assert "estimates" not in component_text(registry.find("kl", "none"))
    assert "place and estimator" not in component_text(registry.find("kl", "target_stop"))


def test_components_fit_into_80_columns() -> None:
    for component in load().components("kl"):
        assert max(map(len, component_text(component).splitlines())) <= 80
    narrow = component_text(load().find("kl", "pid"), 60).splitlines()
    table = [line for line in narrow if line.startswith(("  ===", "  k", "  estimate", "  abs"))]
    assert max(len(line) for line in narrow if line not in table and "http" not in line) <= 60


def test_settings_are_listed_with_ranges() -> None:
    text = settings_text()
    assert "updates=300" in text
    assert "an integer in [1, inf)" in text


def test_plugins_are_listed_with_origin_and_problems(plugin: Path) -> None:
    text = plugins_text(load([plugin]))
    assert text.startswith("rlbench ")
    assert "loss  mine" in text
    assert str(plugin) in text


def test_documentation_that_can_not_be_found_is_empty() -> None:
    assert docstring("no_such_module_at_all:x") == ""
    assert docstring("json:no_such_name") == ""
    assert docstring("json:JSONDecoder.__init__") == ""
    assert docstring("json.decoder:JSONDecoder.decode").startswith("Return the Python")
    assert docstring("sys:exit") == ""  # built in, without a source
