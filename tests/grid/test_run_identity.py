from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap

import pytest

from rlbench.grid import identity
from rlbench.grid.experiment import build
from rlbench.grid.identity import canonical, run_id, sources
from rlbench.grid.launch import plan
from rlbench.plugin.loading import load
from rlbench.plugin.signature import options
from rlbench.training.settings import Settings

from .conftest import make_specs

LOSS = """
    from rlbench import hookimpl
    from rlbench.types import LossTerms
    import my_scale

    def my_loss(batch, *, factor: float = 1.0, path: str = "none"):
        '''A loss.'''
        return LossTerms(-my_scale.SCALE * factor * batch.advantages * batch.logp)

    @hookimpl
    def rlbench_register_losses(register):
        register("my_loss", f"{__name__}:my_loss", summary="A loss.", aliases=("mine",))
"""
SCALE = "SCALE = 2.0\n"


@pytest.fixture
def plugin(module):
    """A loose file that imports a module beside it."""
    module("my_scale", SCALE)
    return str(module("my_loss", LOSS))


def loose_id(plugin: str, text: str = "my_loss") -> str:
    return run_id(make_specs(plugins=(plugin,), loss=text)[0])


def test_the_name_is_short_readable_ascii():
    name = run_id(make_specs("3", estimator="gae", kl="fixed:coef=0.1")[0])
    assert re.fullmatch(r"gae-clip-fixed-addition-s3-[0-9a-f]{10}", name)


def test_long_names_are_cut_and_stay_unique(module):
    long = "x" * 90
    path = module(
        "long_names",
        f"""
        from rlbench import hookimpl

        def one(batch, *, a: int = 1):
            return None

        def two(batch, *, a: int = 2):
            return None

        @hookimpl
        def rlbench_register_losses(register):
            register("{long}_one", f"{{__name__}}:one", summary="One.")
            register("{long}_two", f"{{__name__}}:two", summary="Two.")
        """,
    )
    names = [
        run_id(make_specs(plugins=(str(path),), loss=f"{long}_{which}")[0])
        for which in ("one", "two")
    ]
    assert max(map(len, names)) <= 100
    assert names[0] != names[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"estimator": "group"}, {"estimator": "grpo"}),
        ({"loss": "clip"}, {"loss": "clip:eps=0.2"}),
        ({"loss": "clip:eps=0.1"}, {"loss": "clip:eps=1e-1"}),
        ({"kl": "adaptive:target=6"}, {"kl": "adaptive:target=6.0,coef=0.1"}),
        ({"settings": ("lr=1e-4",)}, {"settings": ("lr=0.0001",)}),
        ({"settings": ("lr=1.0E-4",)}, {"settings": ("lr=0.0001",)}),
        ({"settings": ("updates=300",)}, {"settings": ("updates=3e2",)}),
        ({"settings": (f"updates={Settings().updates}",)}, {}),
        ({"settings": ("lr=1e-3", "epochs=3")}, {"settings": ("epochs=3", "lr=1e-3")}),
    ],
)
def test_two_spellings_of_one_run_have_one_name(one, other):
    assert run_id(make_specs(**one)[0]) == run_id(make_specs(**other)[0])


@pytest.mark.parametrize(
    "other",
    [
        {"loss": "clip:eps=0.1"},
        {"loss": "pg"},
        {"settings": (f"updates={Settings().updates + 1}",)},
        {"settings": ("base_seed=0",)},
        {"seeds": "1"},
        {"kl": "fixed"},
        {"task": "sort"},
    ],
)
def test_whatever_moves_the_numbers_moves_the_name(other):
    assert run_id(make_specs(**other)[0]) != run_id(make_specs()[0])


def test_the_name_does_not_depend_on_hash_seed_or_folder(tmp_path):
    code = textwrap.dedent(
        """
        import sys
        from rlbench.plugin.loading import load
        from rlbench.grid.experiment import build
        from rlbench.grid.identity import run_id
        specs = build(load(), selections={"kl": ["fixed"]}, settings=["lr=1e-3"], seeds="0")
        print(run_id(specs[0]))
        print([m for m in ("torch", "numpy", "pandas", "scipy") if m in sys.modules])
        """
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, folder in (("1", tmp_path), ("2", "/"))
    }
    expected = run_id(make_specs(kl="fixed", settings=("lr=1e-3",))[0])
    assert outputs == {f"{expected}\n[]\n"}  # and it took none of the heavy modules


def test_comments_and_blank_lines_do_not_count(plugin, module):
    before = loose_id(plugin)
    module("my_scale", "# why 2: no reason\n\n\nSCALE = 2.0  # twice\n   # more\n")
    assert loose_id(plugin) == before


DOCUMENTED = """{first}SCALE = 2.0
def f():
    {inner}
    return 1
class C:
    {inner}
    x = 1
"""


def test_docstrings_do_not_count(plugin, module):
    names = set()
    for said in ("'A'", '"""One line."""', "'''Two\n\n    lines.'''  # why", '"""A # mark."""'):
        module("my_scale", DOCUMENTED.format(first=f"{said}\n", inner=said))
        names.add(loose_id(plugin))
    assert len(names) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('SCALE = 2.0\n"""A"""\n', 'SCALE = 2.0\n"""B"""\n'),  # not the first statement
        ('"""A"""; SCALE = 2.0\n', '"""A"""; SCALE = 3.0\n'),
        ('"""A"""\nSCALE = len(__doc__)\n', '"""AB"""\nSCALE = len(__doc__)\n'),
        ("def f():\n    b'A'\nSCALE = 2.0\n", "def f():\n    b'B'\nSCALE = 2.0\n"),
    ],
)
def test_other_strings_count(plugin, module, before, after):
    module("my_scale", before)
    name = loose_id(plugin)
    module("my_scale", after)
    assert loose_id(plugin) != name


@pytest.mark.parametrize(
    "scale",
    [
        "SCALE = 3.0\n",
        "SCALE = 2.0\nif SCALE:\n    SCALE += 1\n",
        'SCALE = 2.0\nTEXT = """\n# no comment\n"""\n',
    ],
)
def test_a_change_in_an_imported_module_counts(plugin, module, scale):
    before = loose_id(plugin)
    module("my_scale", scale)
    assert loose_id(plugin) != before


def test_marks_and_blank_lines_inside_a_string_count(plugin, module):
    names = set()
    for text in ("# one", "# two", "", "\n", "\n\n"):
        module("my_scale", f'{SCALE}TEXT = """a\n{text}\nb"""\n')
        names.add(loose_id(plugin))
    assert len(names) == 5


def test_a_module_imported_inside_a_function_counts(plugin, module):
    module("my_scale", "def scale():\n    import deep\n    return deep.VALUE\nSCALE = 1.0\n")
    module("deep", "VALUE = 1\n")
    before = loose_id(plugin)
    module("deep", "VALUE = 2\n")
    assert loose_id(plugin) != before


def test_a_module_only_the_type_checker_imports_does_not_count(plugin, module):
    module(
        "my_scale",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import deep\nSCALE = 1.0\n",
    )
    module("deep", "VALUE = 1\n")
    before = loose_id(plugin)
    module("deep", "VALUE = 2\n")
    assert loose_id(plugin) == before


def test_a_file_that_moves_keeps_its_name(plugin, tmp_path, module):
    before = loose_id(plugin)
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "my_loss.py").write_text(textwrap.dedent(LOSS))
    (other / "my_scale.py").write_text(SCALE)
    assert loose_id(str(other / "my_loss.py")) == before


def test_the_contents_of_a_named_file_count_and_its_place_does_not(plugin, tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("same")
    two.write_text("same")
    first = loose_id(plugin, f"my_loss:path={one}")
    assert loose_id(plugin, f"my_loss:path={two}") == first
    two.write_text("other")
    assert loose_id(plugin, f"my_loss:path={two}") != first


def test_the_contents_of_a_named_folder_count(plugin, tmp_path):
    folder = tmp_path / "weights"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.bin").write_bytes(b"\x00\x01")
    first = loose_id(plugin, f"my_loss:path={folder}")
    (folder / "deep" / "a.bin").rename(folder / "deep" / "b.bin")
    second = loose_id(plugin, f"my_loss:path={folder}")
    (folder / "deep" / "b.bin").write_bytes(b"\x00\x02")
    assert len({first, second, loose_id(plugin, f"my_loss:path={folder}")}) == 3


def installed(folder, version):
    """A distribution with two top-level modules beside unrelated ones, as in site-packages."""
    site = folder / "site-packages"
    info = site / f"my_dist-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: my-dist\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("[rlbench]\ndist_loss = dist_loss\n")
    (info / "RECORD").write_text("dist_loss.py,,\ndist_scale.py,,\n")
    text = textwrap.dedent(LOSS).replace("my_loss", "dist_loss").replace("mine", "theirs")
    text = text.replace("import my_scale", "import dist_scale as my_scale, unrelated")
    (site / "dist_loss.py").write_text(text)
    (site / "dist_scale.py").write_text(SCALE)
    (site / "unrelated.py").write_text("VALUE = 1\n")
    return site


def test_an_installed_plugin_is_known_by_version_and_by_its_own_modules(tmp_path):
    code = textwrap.dedent(
        """
        from rlbench.plugin.loading import load
        from rlbench.grid.experiment import build
        from rlbench.grid.identity import run_id, canonical, sources
        spec = build(load(), selections={"loss": ["dist_loss"]}, settings=[], seeds="0")[0]
        print(run_id(spec), canonical(spec)["components"]["loss"]["owner"]["version"])
        print(*[file.name for file in sources(spec) if "site-packages" in str(file)])
        """
    )

    def ask(site):
        return subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(site)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()

    name, version, *files = ask(installed(tmp_path / "1", "1.0"))
    assert (version, files) == ("1.0", ["dist_loss.py", "dist_scale.py"])
    newer = installed(tmp_path / "2", "2.0")
    assert ask(newer)[0] != name
    again = installed(tmp_path / "3", "1.0")
    (again / "unrelated.py").write_text("VALUE = 2\n")
    assert ask(again)[0] == name
    (again / "dist_scale.py").write_text("SCALE = 5.0\n")
    assert ask(again)[0] != name


def test_the_torch_version_counts(monkeypatch):
    before = run_id(make_specs()[0])
    monkeypatch.setattr(identity, "_version", lambda name: f"{name} 99")
    assert run_id(make_specs()[0]) != before


def test_the_training_wing_counts_and_the_wings_above_it_do_not():
    files = {str(file).partition("/rlbench/")[2] for file in sources(make_specs()[0])}
    assert {"training/trainer.py", "training/rollout.py", "masked.py"} <= files
    assert "builtin/losses/clipping.py" in files
    outside = ("cli", "report/", "grid/", "plugin/", "__init__", "builtin/__init__")
    assert not [file for file in files if file.startswith(outside)]


def test_the_description_is_strict_json_and_complete():
    spec = make_specs("2", loss="clip:eps=0.1", settings=("lr=1e-3",))[0]
    content = canonical(spec)
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["run_id"] == run_id(spec)
    assert content["seed"] == 2
    assert content["settings"]["lr"] == 0.001
    loss = content["components"]["loss"]
    assert (loss["name"], loss["label"]) == ("clip", "clip:eps=0.1")
    assert loss["options"]["eps"] == 0.1
    assert loss["owner"] == {"plugin": "rlbench", "distribution": "rlbench", "version": "0.1.0"}
    assert re.fullmatch(r"[0-9a-f]{16}", loss["source"])
    assert re.fullmatch(r"[0-9a-f]{16}", content["training"])


def test_seeds_share_everything_else_of_their_description():
    one, two = (canonical(spec) for spec in make_specs("0,1"))
    differing = {name for name in one if one[name] != two[name]}
    assert differing == {"run_id", "seed"}


def test_a_hundred_runs_have_a_hundred_names():
    specs = build(
        load(), selections={"estimator": ["gae", "group"]}, settings=["lr=1e-3,1e-4"], seeds="0-24"
    )
    assert len({run_id(spec) for spec in specs}) == len(specs) == 100


def test_a_plan_looks_at_each_component_once_however_many_seeds(monkeypatch):
    asked = []

    def counted(component):
        asked.append(component.name)
        return options(component)

    monkeypatch.setattr(identity, "options", counted)
    specs = build(
        load(),
        selections={"estimator": ["gae", "group"], "loss": ["clip", "pg"]},
        settings=["lr=1e-3,1e-4"],
        seeds=range(50),
    )
    planned = plan(specs)
    assert len({run.run_id for run in planned}) == 2 * 2 * 2 * 50
    assert sorted(asked) == ["addition", "clip", "gae", "group", "lstm", "none", "pg", "true"]


def test_a_plan_gives_the_names_of_single_runs():
    specs = make_specs(seeds="0-2", settings=("lr=1e-3,1e-4",), loss="clip:eps=0.1")
    assert [run.run_id for run in plan(specs)] == [run_id(spec) for spec in specs]
    described = canonical(specs[1])
    assert described["run_id"] == run_id(specs[1])
    assert [described["seed"], specs[1].seed] == [0, 0]
