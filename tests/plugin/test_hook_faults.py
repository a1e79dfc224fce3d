"""Hooks that pluggy would call without effect are refused, with a word on what to write."""

from __future__ import annotations

import types

import pytest

from rlbench import hookimpl, hookspecs
from rlbench.errors import PluginError
from rlbench.plugin import staging
from rlbench.plugin.registry import Owner

OWNER = Owner("demo", "rlbench-demo", "1.2")
START = "from rlbench import hookimpl\n"
REGISTER = 'register("mine", f"{__name__}:mine", summary="Mine.")'

FAULTS = {
    "undecorated": (
        f"def rlbench_register_losses(register): {REGISTER}",
        "rlbench_register_losses is not marked: write @hookimpl",
    ),
    "undecorated helper": (
        "def rlbench_version(): pass\n"
        f"@hookimpl\ndef rlbench_register_losses(register): {REGISTER}",
        "rlbench_version is not marked",
    ),
    "no argument": (
        "@hookimpl\ndef rlbench_register_losses(): pass",
        r"takes \(\), and rlbench 0.1.0 passes exactly \(register\)",
    ),
    "an argument that is not in the spec": (
        f"@hookimpl\ndef rlbench_register_losses(register, values): {REGISTER}",
        r"hook rlbench_register_losses takes \(register, values\)",
    ),
    "another name": (
        "@hookimpl\ndef rlbench_register_losses(registry): pass",
        r"takes \(registry\)",
    ),
    "default": (
        "@hookimpl\ndef rlbench_register_losses(register=None): pass",
        r"takes \(register=None\)",
    ),
    "keyword-only": (
        "@hookimpl\ndef rlbench_register_losses(*, register): pass",
        r"takes \(\*, register\)",
    ),
    "starred": (
        "@hookimpl\ndef rlbench_register_losses(*register): pass",
        r"takes \(\*register\)",
    ),
    "async": (
        f"@hookimpl\nasync def rlbench_register_losses(register): {REGISTER}",
        "is async",
    ),
    "generator": (
        f"@hookimpl\ndef rlbench_register_losses(register):\n  {REGISTER}\n  yield",
        "is a generator",
    ),
    "async generator": (
        f"@hookimpl\nasync def rlbench_register_losses(register):\n  {REGISTER}\n  yield",
        "is a generator",
    ),
    "wrapper": (
        f"@hookimpl(wrapper=True)\ndef rlbench_register_losses(register):\n  {REGISTER}\n  yield",
        "wrapper=True",
    ),
    "old wrapper": (
        "@hookimpl(hookwrapper=True)\ndef rlbench_register_losses(register): yield",
        "hookwrapper=True",
    ),
    "optional": (
        f"@hookimpl(optionalhook=True)\ndef rlbench_register_losses(register): {REGISTER}",
        "optionalhook=True",
    ),
    "partial": (
        "import functools\ndef f(register): pass\n"
        "rlbench_register_losses = hookimpl(functools.partial(f))",
        "hook rlbench_register_losses is a partial",
    ),
    "hides a coroutine": (
        "async def f(register): pass\n"
        "@hookimpl\ndef rlbench_register_losses(register): return f(register)",
        "returned a coroutine",
    ),
    "registers nothing": (
        "@hookimpl\ndef rlbench_register_losses(register): pass",
        "hook rlbench_register_losses registers nothing",
    ),
    "one of two registers nothing": (
        f"@hookimpl\ndef rlbench_register_losses(register): {REGISTER}\n"
        "@hookimpl\ndef rlbench_register_tasks(register): pass",
        "hook rlbench_register_tasks registers nothing",
    ),
    "no hook": ("answer = 42", "it has no hook"),
    "misspelt": (
        f"@hookimpl\ndef rlbench_register_loses(register): {REGISTER}",
        "no hook rlbench_register_loses; did you mean rlbench_register_losses",
    ),
    "misspelt beyond recognition": (
        f"@hookimpl\ndef advantage_estimater(register): {REGISTER}",
        "no hook advantage_estimater; known: rlbench_register_estimators, ",
    ),
    "misspelt specname": (
        f'@hookimpl(specname="rlbench_register_los")\ndef f(register): {REGISTER}',
        "did you mean rlbench_register_losses",
    ),
    "raises": (
        "@hookimpl\ndef rlbench_register_losses(register): 1 / 0",
        "rlbench_register_losses: ZeroDivisionError",
    ),
    "exits": (
        "@hookimpl\ndef rlbench_register_losses(register): raise SystemExit(3)",
        r"it called sys.exit\(3\)",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_hook_without_effect_is_refused(staged, fault):
    source, message = FAULTS[fault]
    with pytest.raises(PluginError, match=message) as caught:
        staged(START + source)
    assert "\n" not in str(caught.value)


def test_keyboard_interrupt_in_a_hook_is_the_users(staged):
    with pytest.raises(KeyboardInterrupt):
        staged(START + "@hookimpl\ndef rlbench_register_losses(register): raise KeyboardInterrupt")


ARGUMENTS = {
    "upper case": ('"Mine", "m:f", summary="x"', "loss 'Mine': a name has"),
    "path": ('"../x", "m:f", summary="x"', "loss '../x': a name has"),
    "colon": ('"gae:v2", "m:f", summary="x"', "a name has"),
    "foreign letters": ('"größe", "m:f", summary="x"', "a name has"),
    "newline": ('"mine\\n", "m:f", summary="x"', "a name has"),
    "no text": ('1, "m:f", summary="x"', "loss 1: a name has"),
    "bad alias": ('"mine", "m:f", summary="x", aliases=("A",)', "loss 'A': a name has"),
    "own alias": ('"mine", "m:f", summary="x", aliases=("mine",)', "registered twice"),
    "repeated alias": ('"mine", "m:f", summary="x", aliases=("a", "a")', "repeats itself"),
    "aliases as text": ('"mine", "m:f", summary="x", aliases="a"', "no tuple of texts"),
    "needs as text": ('"mine", "m:f", summary="x", needs="ref_logp"', "no tuple of texts"),
    "unknown need": ('"mine", "m:f", summary="x", needs=("values",)', "can need: ref_logp"),
    "target without colon": ('"mine", "m.f", summary="x"', "no 'module:attribute'"),
    "target without attribute": ('"mine", "m:", summary="x"', "no 'module:attribute'"),
    "target is the function": ('"mine", print, summary="x"', "no 'module:attribute'"),
    "target in the script": ('"mine", "__main__:f", summary="x"', "worker processes can't import"),
    "empty summary": ('"mine", "m:f", summary=" "', "not one line"),
    "long summary": ('"mine", "m:f", summary="a\\nb"', "not one line"),
    "no summary": ('"mine", "m:f"', "TypeError.*summary"),
    "group-relative loss": ('"mine", "m:f", summary="x", group_relative=True', "only estimators"),
    "group_relative as text": ('"mine", "m:f", summary="x", group_relative="no"', "neither True"),
    "exceptions as list": ('"mine", "m:f", summary="x", exceptions=["a"]', "no mapping"),
    "no reason": ('"mine", "m:f", summary="x", exceptions={"rule": ""}', "needs a reason"),
}


@pytest.mark.parametrize("fault", ARGUMENTS)
def test_a_malformed_registration_is_refused(staged, fault):
    arguments, message = ARGUMENTS[fault]
    with pytest.raises(PluginError, match=message):
        staged(
            f"{START}@hookimpl\ndef rlbench_register_losses(register):\n"
            f'  register("good", "m:f", summary="x")\n  register({arguments})'
        )


def test_a_name_twice_in_one_plugin_is_refused(staged):
    for second in ('"b"', '"c", aliases=("b",)'):
        name, _, rest = second.partition(", ")
        call = f'register({name}, "m:g", summary="x"{", " + rest if rest else ""})'
        with pytest.raises(PluginError, match="loss 'b' is registered twice"):
            staged(
                f"{START}@hookimpl\ndef rlbench_register_losses(register):\n"
                f'  register("a", "m:f", summary="x", aliases=("b",))\n  {call}'
            )


def test_the_same_name_in_two_kinds_is_fine(staged):
    found = staged(
        f"{START}@hookimpl\ndef rlbench_register_losses(register): {REGISTER}\n"
        f"@hookimpl\ndef rlbench_register_tasks(register): {REGISTER}"
    )
    assert [(c.kind, c.name) for c in found] == [("loss", "mine"), ("task", "mine")]


def test_hooks_in_an_unusual_but_working_form_are_accepted(staged):
    for decorator in ("@hookimpl(tryfirst=True)", "@hookimpl(trylast=True)"):
        assert staged(f"{START}{decorator}\ndef rlbench_register_losses(register): {REGISTER}")
    named = f'@hookimpl(specname="rlbench_register_losses")\ndef f(register): {REGISTER}'
    assert [c.kind for c in staged(START + named)] == ["loss"]


def test_a_relative_target_means_the_plugins_own_module(staged):
    (found,) = staged(
        f'{START}@hookimpl\ndef rlbench_register_losses(register): register("a", ":f", summary="x")'
    )
    assert found.target == "demo_inline:f"


def test_an_object_with_hooks_is_a_plugin():
    class Plugin:
        @hookimpl
        def rlbench_register_losses(self, register):
            register("mine", ":f", summary="x")

    (found,) = staging.stage(staging.manager(), Plugin(), OWNER)
    assert found.target == f"{Plugin.__module__}:f"
    # the class itself would be called without self
    with pytest.raises(PluginError, match=r"takes \(self, register\)"):
        staging.stage(staging.manager(), Plugin, OWNER)


def test_an_unhashable_plugin_is_refused():
    class Plugin:
        __hash__ = None

    with pytest.raises(PluginError, match="must be hashable, and Plugin is not"):
        staging.stage(staging.manager(), Plugin(), OWNER)


def test_a_refused_plugin_leaves_the_host_as_it_was():
    class Misspelt:
        @hookimpl
        def rlbench_register_loses(self, register):
            register("mine", ":f", summary="x")

    class Raising:
        @hookimpl
        def rlbench_register_losses(self, register):
            register("mine", ":f", summary="x")
            raise RuntimeError("half way")

    class Good:
        @hookimpl
        def rlbench_register_losses(self, register):
            register("good", ":f", summary="x")

    host = staging.manager()
    for plugin in (Misspelt(), Raising()):
        with pytest.raises(PluginError):
            staging.stage(host, plugin, OWNER)
        assert host.get_plugins() == set()
    assert [c.name for c in staging.stage(host, Good(), OWNER)] == ["good"]


def test_each_plugin_gets_only_its_own_call():
    calls = []

    class Plugin:
        def __init__(self, name):
            self.name = name

        @hookimpl
        def rlbench_register_losses(self, register):
            calls.append(self.name)
            register(self.name, ":f", summary="x")

    host = staging.manager()
    for name in ("a", "b"):
        (found,) = staging.stage(host, Plugin(name), Owner(name, f"rlbench-{name}", "1"))
        assert (found.name, found.owner.plugin) == (name, name)
    assert calls == ["a", "b"]


@pytest.mark.parametrize(("kind", "hook"), staging.HOOKS.items())
def test_every_hook_is_documented_and_registers_its_kind(staged, kind, hook):
    spec = getattr(hookspecs, hook)
    assert spec.__doc__.startswith("Register ")
    assert list(spec.__annotations__) == ["register", "return"]
    (found,) = staged(f"{START}@hookimpl\ndef {hook}(register): {REGISTER}")
    assert (found.kind, found.name, found.owner) == (kind, "mine", OWNER)


def test_no_hook_is_without_a_kind():
    specs = {name for name in vars(hookspecs) if name.startswith("rlbench_")}
    assert specs == set(staging.HOOKS.values())


def test_every_need_of_the_docs_can_be_declared():
    for need in {need for needs in staging.NEEDS.values() for need in needs}:
        assert f"``{need}``" in hookspecs.__doc__


def later_plugin(api: str) -> object:
    module = types.ModuleType("demo_api")
    code = (
        f"{START}RLBENCH_API = {api}\n@hookimpl\ndef rlbench_register_losses(register): {REGISTER}"
    )
    exec(code, module.__dict__)
    return module


def test_a_plugin_for_later_hooks_is_refused():
    with pytest.raises(PluginError, match=r"needs hook API 2, and rlbench 0\.1\.0 has 1; upgrade"):
        staging.stage(staging.manager(), later_plugin("2"), OWNER)


@pytest.mark.parametrize("api", ["0", "True", "'2'", "1.5", "None"])
def test_an_api_that_is_no_version_is_refused(api):
    with pytest.raises(PluginError, match=r"RLBENCH_API=.*expected a whole number from 1"):
        staging.stage(staging.manager(), later_plugin(api), OWNER)


def test_a_plugin_for_these_hooks_is_taken():
    (component,) = staging.stage(staging.manager(), later_plugin("1"), OWNER)
    assert component.name == "mine"
