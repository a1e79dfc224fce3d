"""Installed plugins: found in a fixed order, loaded one by one, blamed by name and version."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import rlbench
from rlbench.errors import PluginError, UsageError
from rlbench.plugin.loading import load
from rlbench.report.show import plugins_text


def problems(registry):
    return [str(problem) for problem in registry.problems]


LOSS = """
from rlbench import hookimpl

def {name}(batch, *, scale: float = 1.0):
    return scale

@hookimpl
def rlbench_register_losses(register):
    register("{name}", f"{{__name__}}:{name}", summary="Mine.")
"""


def loss(name):
    return LOSS.format(name=name)


def test_an_installed_plugin_is_found_with_its_distribution(install):
    install("rlbench-demo", {"demo_a": loss("mine")})
    found = load().find("loss", "mine")
    assert str(found.owner) == "rlbench-demo 1.2 (plugin demo_a)"
    assert found.load()(None, scale=3.0) == 3.0


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("import a_module_that_is_not_there", "ModuleNotFoundError: No module named 'a_module"),
        ("raise ImportError('no such thing')", "ImportError: no such thing"),
        ("raise RuntimeError('first\\nsecond')", "RuntimeError: first"),
        ("raise RuntimeError", "RuntimeError"),
        ("import sys; sys.exit('bye')", "it called sys.exit('bye')"),
        ("def f(:", "SyntaxError, line 1: "),
        ("x = 1", "it has no hook"),
    ],
)
def test_a_broken_plugin_is_named_and_the_rest_works(install, source, cause):
    install("rlbench-broken", {"demo_broken": source}, version="0.9")
    install("rlbench-demo", {"demo_good": loss("mine")})
    registry = load()
    (line,) = problems(registry)
    assert line.startswith(f"rlbench-broken 0.9 (plugin demo_broken): not loaded: {cause}")
    assert "\n" not in line
    assert registry.find("loss", "mine").name == "mine"
    assert registry.find("estimator", "gae").name == "gae"
    with pytest.raises(UsageError, match=r"unknown loss 'theirs'.*rlbench-broken 0.9"):
        registry.find("loss", "theirs")


def test_half_a_registration_counts_for_nothing(install):
    half = loss("half") + "    raise ValueError('half way')\n"
    install("rlbench-half", {"demo_half": half})
    registry = load()
    assert registry.owners("loss", "half") == []
    with pytest.raises(UsageError, match="rlbench_register_losses: ValueError: half way"):
        registry.find("loss", "half")


def test_a_plugin_that_prints_does_not_reach_stdout(install, capsys):
    chatty = "print('import')\n" + loss("mine") + "    print('hook')\n"
    install("rlbench-chatty", {"demo_chatty": chatty})
    load()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.split() == ["import", "hook"]


def test_keyboard_interrupt_at_import_is_the_users(install):
    install("rlbench-slow", {"demo_slow": "raise KeyboardInterrupt"})
    with pytest.raises(KeyboardInterrupt):
        load()


def test_strict_mode_raises_for_any_problem(install, monkeypatch):
    monkeypatch.setenv("RLBENCH_STRICT_PLUGINS", "1")
    install("rlbench-broken", {"demo_broken": "1 / 0"})
    with pytest.raises(PluginError, match=r"rlbench-broken 1.2.*ZeroDivisionError") as caught:
        load()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    monkeypatch.setenv("RLBENCH_STRICT_PLUGINS", "0")
    assert len(load().problems) == 1


def test_strict_mode_raises_for_a_name_with_two_owners(install, monkeypatch):
    install("rlbench-demo", {"demo_a": loss("clip")})
    assert len(load().problems) == 1
    monkeypatch.setenv("RLBENCH_STRICT_PLUGINS", "1")
    with pytest.raises(PluginError, match=r"loss 'clip' belongs to rlbench 0.1.0 and rlbench-demo"):
        load()


@pytest.mark.parametrize("value", ["demo_broken", "other, Rlbench_Broken ,", "demo-broken"])
def test_a_disabled_plugin_is_not_even_imported(install, monkeypatch, value):
    install("rlbench-broken", {"demo_broken": "1 / 0"})
    others = os.environ["RLBENCH_DISABLE_PLUGINS"]
    monkeypatch.setenv("RLBENCH_DISABLE_PLUGINS", f"{others},{value}")
    assert load().problems == ()


def test_the_order_is_that_of_the_names_not_of_the_disk(install, capsys):
    for distribution, module in [("rlbench-b", "demo_1"), ("rlbench-a", "demo_3")]:
        install(distribution, {module: f"print({module!r})" + loss(module)})
    install(
        "rlbench-c", {"demo_2": "print('demo_2')" + loss("demo_2"), "demo_0": "print('demo_0')"}
    )
    load()
    assert capsys.readouterr().err.split() == ["demo_3", "demo_1", "demo_0", "demo_2"]


def test_the_same_metadata_twice_counts_once(install, tmp_path, monkeypatch):
    install("rlbench-demo", {"demo_a": loss("mine")})
    other = tmp_path / "checkout"
    install("rlbench_Demo", {"demo_a": loss("mine")}, folder=other)
    monkeypatch.syspath_prepend(other)
    registry = load()
    assert registry.problems == ()
    assert len(registry.owners("loss", "mine")) == 1


def test_of_two_versions_on_the_path_the_first_counts(install, tmp_path, monkeypatch):
    install("rlbench-demo", {"demo_a": loss("mine")}, version="1.2")
    other = tmp_path / "newer"
    install("rlbench-demo", {"demo_a": loss("mine")}, version="9.9", folder=other)
    monkeypatch.syspath_prepend(other)
    assert load().find("loss", "mine").owner.version == "9.9"
    # the same when a torn file elsewhere makes the quick way of reading metadata fail
    install("unrelated", {}, entry_points="[console_scripts]\nno equals sign\n")
    assert [c.owner.version for c in load().owners("loss", "mine")] == ["9.9"]


def test_one_module_under_two_entry_points_counts_once(install):
    install(
        "rlbench-demo",
        {"demo_a": loss("mine")},
        entry_points="[rlbench]\none = demo_a\ntwo = demo_a\n",
    )
    registry = load()
    assert registry.problems == ()
    assert [c.owner.plugin for c in registry.owners("loss", "mine")] == ["one"]


def test_metadata_whose_module_is_gone_gives_one_line(install):
    install("rlbench-gone", {}, entry_points="[rlbench]\ngone = demo_gone.plugin\n")
    (line,) = problems(load())
    assert line == (
        "rlbench-gone 1.2 (plugin gone): not loaded: its module demo_gone is gone; "
        "reinstall or uninstall the distribution"
    )


def test_empty_leftover_metadata_is_nothing(install):
    info = install("rlbench-left", {})
    for file in info.iterdir():
        file.unlink()
    assert load().problems == ()


def test_metadata_without_a_name_is_survived(install):
    info = install("rlbench-nameless", {"demo_a": loss("mine")})
    (info / "METADATA").unlink()
    registry = load()
    assert registry.problems == ()
    assert str(registry.find("loss", "mine").owner) == "unknown distribution (plugin demo_a)"


def test_a_malformed_entry_point_file_costs_only_its_own_plugin(install):
    install("rlbench-demo", {"demo_a": loss("mine")})
    install("rlbench-torn", {}, entry_points="[rlbench]\nthis line has no equals sign\n")
    install("unrelated", {}, entry_points="[console_scripts]\nthis neither\n")
    registry = load()
    (line,) = problems(registry)
    assert line.startswith("rlbench-torn 1.2 (plugin ?): not loaded: its entry_points.txt")
    assert registry.find("loss", "mine").name == "mine"


def test_an_entry_point_can_name_an_object(install):
    source = """
    from rlbench import hookimpl

    def mine(batch): return 1

    class Plugin:
        @hookimpl
        def rlbench_register_losses(self, register):
            register("mine", ":mine", summary="x")

    plugin = Plugin()
    """
    install("rlbench-demo", {"demo_a": source}, entry_points="[rlbench]\nd = demo_a:plugin\n")
    assert load().find("loss", "mine").load()(None) == 1


def test_a_target_that_is_not_there_is_blamed_on_its_owner(install):
    source = loss("mine").replace(":mine", ":other")
    install("rlbench-demo", {"demo_a": source})
    found = load().find("loss", "mine")
    with pytest.raises(PluginError, match=r"loss 'mine' \(rlbench-demo 1.2.*demo_a:other can't be"):
        found.load()


def test_component_gives_the_function_of_an_installed_plugin(install):
    install("rlbench-demo", {"demo_a": loss("mine")})
    assert rlbench.component("loss", "mine")(None, scale=2.0) == 2.0
    with pytest.raises(UsageError, match="did you mean 'mine'"):
        rlbench.component("loss", "mien")


def test_loading_and_reading_signatures_imports_nothing_heavy():
    code = """
import sys
from rlbench.plugin.loading import load
from rlbench.plugin.signature import options
registry = load()
for component in registry.components():
    if component.owner.distribution == "rlbench":
        options(component)
heavy = {"torch", "numpy", "pandas", "scipy", "matplotlib"} & set(sys.modules)
assert not heavy, heavy
components = [m for m in sys.modules if m.startswith("rlbench.builtin.")]
assert components == ["rlbench.builtin.elsewhere"], components  # names and nothing else
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_entry_points_that_are_no_text_cost_one_line_if_they_are_ours(install):
    info = install("rlbench-odd", {"demo_odd": loss("odd")})
    (info / "entry_points.txt").write_bytes(b"[rlbench]\nodd = demo_\xff\n")
    other = install("somebody-else", {"demo_else": ""})
    (other / "entry_points.txt").write_bytes(b"[console_scripts]\nx = \xff:main\n")
    install("rlbench-good", {"demo_good": loss("good")})
    registry = load()
    (problem,) = registry.problems
    assert "rlbench-odd 1.2" in str(problem)
    assert "its entry_points.txt can't be read: UnicodeDecodeError" in str(problem)
    assert registry.find("loss", "good").name == "good"


@pytest.mark.parametrize("value", ["", "0", "false", "No", " off "])
def test_strict_mode_can_be_switched_off_in_words(install, monkeypatch, value):
    monkeypatch.setenv("RLBENCH_STRICT_PLUGINS", value)
    install("rlbench-broken", {"demo_broken": "1 / 0"})
    assert len(load().problems) == 1


def test_a_plugin_with_a_blocked_name_is_listed_once_with_its_problem(install):
    install("rlbench-demo", {"demo_a": loss("clip")})
    text = plugins_text(load(), 200)
    assert text.count("rlbench-demo 1.2 (plugin demo_a)\n") == 1
    assert "NOT LOADED" not in text
    assert "PROBLEM  loss 'clip' belongs to rlbench 0.1.0 and rlbench-demo" in text


def test_a_clash_names_the_plugins_that_can_be_left_out_and_no_file(install, write):
    path = write("my_loss.py", loss("clip"))
    with pytest.raises(UsageError, match=r"rename one$"):
        load([path]).find("loss", "clip")
    install("rlbench-demo", {"demo_a": loss("clip")})
    with pytest.raises(UsageError, match=r"or leave it out: RLBENCH_DISABLE_PLUGINS=demo_a$"):
        load([path]).find("loss", "clip")
