"""Plugins given on the command line or from Python: files and modules."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import ModuleType

import pytest

from rlbench.errors import PluginError, UsageError
from rlbench.plugin.loading import load, plugin_arguments

LOSS = """
from rlbench import hookimpl

def mine(batch, *, scale: float = 1.0):
    return scale

@hookimpl
def rlbench_register_losses(register):
    register("mine", f"{__name__}:mine", summary="Mine.")
"""


def test_a_file_is_loaded_and_its_function_found(write, monkeypatch, tmp_path):
    write("my_loss.py", LOSS)
    monkeypatch.chdir(tmp_path)
    found = load(["my_loss.py"]).find("loss", "mine")
    assert found.title == "loss 'mine' (file my_loss.py)"
    assert found.target == "rlbench_file_my_loss:mine"
    assert found.load()(None, scale=2.0) == 2.0


def test_a_file_elsewhere_is_named_in_full(write, monkeypatch, tmp_path):
    path = write("plugins/my-loss.v2.py", LOSS)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for given in (path, str(path), "../plugins/my-loss.v2.py"):
        found = load([given]).find("loss", "mine")
        assert str(found.owner) == f"file {path}"
        assert found.load()(None) == 1.0


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bad.py", "x = 1\ndef f(:\n", r"file .*bad\.py: not loaded: SyntaxError, line 2"),
        ("bad.py", "import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere"),
        ("bad.py", "raise SystemExit", "it called sys.exit"),
        ("bad.py", "raise GeneratorExit", "not loaded: GeneratorExit"),
        ("bad.py", "import pytest\npytest.importorskip('nowhere_at_all')", "not loaded: Skipped: "),
        ("bad.py", "class Odd(BaseException): pass\nraise Odd('so')", "not loaded: Odd: so"),
        ("bad.py", "x = 1", "it has no hook"),
        ("bad.txt", LOSS, "does not end in .py"),
    ],
)
def test_a_file_that_fails_is_an_error_of_one_line(write, name, text, message):
    path = write(name, text)
    with pytest.raises(PluginError, match=message) as caught:
        load([path])
    assert "\n" not in str(caught.value)
    assert "rlbench_file_bad" not in sys.modules or "no hook" in message


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(PluginError, match=r"nowhere\.py: not loaded: there is no such file"):
        load([tmp_path / "nowhere.py"])
    with pytest.raises(PluginError, match=r"it is a folder; give a \.py file"):
        load([tmp_path])


def test_a_file_given_twice_counts_once(write):
    path = write("my_loss.py", LOSS)
    registry = load([path, str(path), path.parent / "." / path.name])
    assert registry.problems == ()
    assert registry.find("loss", "mine").name == "mine"


def test_two_files_with_one_stem_keep_their_own_functions(write):
    first = write("a/my_loss.py", LOSS)
    second = write("b/my_loss.py", LOSS.replace("mine", "theirs"))
    registry = load([first, second])
    mine, theirs = registry.find("loss", "mine"), registry.find("loss", "theirs")
    assert mine.load().__name__ == "mine"
    assert theirs.load().__name__ == "theirs"
    assert mine.target == "rlbench_file_my_loss:mine"


def test_an_edited_file_is_read_again(write):
    path = write("my_loss.py", LOSS)
    assert load([path]).find("loss", "mine").load()(None) == 1.0
    write("my_loss.py", LOSS.replace("return scale", "return -100 * scale"))
    assert load([path]).find("loss", "mine").load()(None) == -100.0


def test_a_file_with_a_taken_name_spoils_only_that_name(write):
    path = write("my_loss.py", LOSS.replace('"mine"', '"clip"'))
    registry = load([path])
    with pytest.raises(UsageError, match=r"loss 'clip' belongs to rlbench 0\.1\.0 and file "):
        registry.find("loss", "clip")
    assert registry.find("loss", "pg").name == "pg"


def test_a_module_is_given_by_name_or_as_itself(write, monkeypatch, tmp_path):
    write("demo_module.py", LOSS)
    monkeypatch.syspath_prepend(tmp_path)
    registry = load(["demo_module"])
    assert str(registry.find("loss", "mine").owner) == "module demo_module"
    module = sys.modules["demo_module"]
    assert load([module]).find("loss", "mine").load() is module.mine
    assert plugin_arguments([module, "demo_module"]) == ["demo_module"]


def test_a_module_in_a_package_is_found_by_a_worker(write, monkeypatch, tmp_path):
    write("demo_package/__init__.py", "")
    write("demo_package/inner.py", LOSS)
    monkeypatch.syspath_prepend(tmp_path)
    import demo_package.inner

    assert plugin_arguments([demo_package.inner]) == ["demo_package.inner"]


def test_a_module_that_no_worker_can_import_is_refused(write, monkeypatch, tmp_path):
    made = ModuleType("demo_made_up")
    exec(LOSS, vars(made))
    monkeypatch.setitem(sys.modules, "demo_made_up", made)
    with pytest.raises(PluginError, match="module demo_made_up can't be imported by worker"):
        load([made])
    # the same name on disk is another module
    write("demo_made_up.py", LOSS)
    monkeypatch.syspath_prepend(tmp_path)
    made.__file__ = str(tmp_path / "elsewhere.py")
    with pytest.raises(PluginError, match="module demo_made_up can't be imported by worker"):
        plugin_arguments([made])


def test_the_main_script_is_refused():
    with pytest.raises(PluginError, match="move the component into a file of its own"):
        load([sys.modules["__main__"]])


@pytest.mark.parametrize("odd", ["not a module!", "a..b", ""])
def test_text_that_is_neither_file_nor_module_is_refused(odd):
    with pytest.raises(UsageError, match=r"neither a \.py file nor the name of a module"):
        load([odd])


def test_a_requested_module_that_is_missing_is_an_error():
    with pytest.raises(PluginError, match="module demo_absent: not loaded: ModuleNotFoundError"):
        load(["demo_absent"])


def test_something_else_is_refused():
    with pytest.raises(UsageError, match=r"expected a \.py file, a module or the name of one"):
        load([42])


def test_one_plugin_is_not_taken_for_a_list():
    for one in ("demo", Path("demo.py"), sys):
        with pytest.raises(UsageError, match="expected a list of files or modules"):
            load(one)


def test_arguments_mean_the_same_in_any_folder(write, monkeypatch, tmp_path):
    path = write("my_loss.py", LOSS)
    monkeypatch.chdir(tmp_path)
    arguments = plugin_arguments([Path("my_loss.py")])
    assert arguments == [str(path)]
    monkeypatch.chdir("/")
    found = load(arguments).find("loss", "mine")
    # the module of a loose file goes by its path again
    assert plugin_arguments([sys.modules[found.target.partition(":")[0]]]) == arguments
    assert found.owner.path == str(path)


def test_a_registry_can_be_pickled():
    registry = load()
    copy = pickle.loads(pickle.dumps(registry))
    assert copy.components() == registry.components()


def test_a_plugin_that_changes_the_folder_changes_it_for_itself_alone(tmp_path, monkeypatch):
    """Results that were asked for at a relative path would land elsewhere."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wanderer.py").write_text(
        "import os\n"
        "from rlbench import hookimpl\n"
        "os.chdir('/')\n"
        "@hookimpl\n"
        "def rlbench_register_losses(register):\n"
        "    os.chdir('/')\n"
        "    register('mine', ':mine', summary='A loss.')\n"
        "def mine(batch):\n"
        "    pass\n"
    )
    assert load(["wanderer.py"]).find("loss", "mine").name == "mine"
    assert Path.cwd() == tmp_path
