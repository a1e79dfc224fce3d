"""Text about components, read without importing any of them."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from rlbench.plugin.loading import load
from rlbench.plugin.selection import parse
from rlbench.plugin.signature import options
from rlbench.report.show import (
    CRITICS_METRICS,
    EXPLAINED,
    NEEDS,
    TRAINERS_METRICS,
    component_text,
    docstring,
    list_text,
    plugins_text,
    setting_text,
    settings_text,
)
from rlbench.testing import make_batch
from rlbench.training.settings import Settings
from rlbench.training.spec import DEFAULT_SELECTIONS, RunSpec
from rlbench.training.trainer import train

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlbench.plugin.registry import Component

REGISTRY = load()
TRAINING = [c for kind in ("estimator", "loss", "kl") for c in REGISTRY.components(kind)]
EACH = pytest.mark.parametrize("component", TRAINING, ids=lambda c: f"{c.kind}-{c.name}")
FORMULA = re.compile(r"`[^`]*[-=+*/()][^`]*`|^    \S", re.MULTILINE)


def section(text: str, title: str) -> str:
    """The lines below a heading, up to the next one; empty if there is no such heading."""
    found = re.search(rf"^{title}\n((?: .*\n|\n)*)", f"{text}\n", re.MULTILINE)
    return found[1].strip("\n") if found else ""


def first_column(text: str) -> set[str]:
    """Names that begin a line of a section of two columns."""
    return set(re.findall(r"^  ([\w.]+)(?:  |$)", text, re.MULTILINE))


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
        # all on one line, however long the names beside it are
        assert re.search(
            rf"^  {component.name} +{re.escape(component.summary)}$", text, re.MULTILINE
        )
    assert text.endswith("tracker\n  (none installed)")
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("kind", ["loss", "kl", "task", "reward", "model", "engine"])
def test_every_component_has_one_line(kind: Any) -> None:
    text = list_text(REGISTRY, [kind])
    for component in REGISTRY.components(kind):
        assert re.search(
            rf"^  {component.name} +{re.escape(component.summary)}$", text, re.MULTILINE
        )


def test_every_alias_is_listed_with_its_name() -> None:
    text = list_text(REGISTRY, ["estimator", "loss", "kl"])
    pairs = [f"{alias}={c.name}" for c in TRAINING for alias in c.aliases]
    assert "grpo=group" in pairs
    assert [pair for pair in pairs if pair not in re.split(r",?\s+", text)] == []


def test_foreign_components_stand_below_their_owner(plugin: Path) -> None:
    own, _, foreign = list_text(load([plugin]), ["loss"]).partition(f"\nloss [file {plugin}]\n")
    assert foreign.startswith("  mine        Weighs everything.\nalso\n")
    assert "  clip        Clipped importance ratio" in own
    assert own.startswith("loss\n")


def test_a_name_with_two_owners_is_marked(plugin: Path, tmp_path: Path) -> None:
    other = tmp_path / "other_loss.py"
    other.write_text(PLUGIN, encoding="utf-8")
    text = list_text(load([plugin, other]), ["loss"])
    assert text.count("AMBIGUOUS") == 2


def test_a_component_shows_options_needs_and_documentation(plugin: Path) -> None:
    text = component_text(load([plugin]).find("loss", "mine"))
    assert text.startswith("loss mine: Weighs everything.")
    assert "needs   ref_logp (a pass of the base policy)" in text
    assert "scale=1  a number" in text
    assert "How much." in text
    assert "Weigh everything." in text
    assert "Nothing of use." in text
    assert "The minibatch." not in text


def test_every_builtin_can_be_shown() -> None:
    for component in load().components():
        assert component.summary in " ".join(component_text(component).split())


@EACH
def test_whoever_trains_is_shown_whole(component: Component) -> None:
    text = component_text(component)
    assert re.search(r"^  needs +\S", text, re.MULTILINE)
    for title in ("description", "source", "variants by library", "metrics"):
        assert section(text, title), title
    # those that only combine others point to where the formulas are
    assert FORMULA.search(section(text, "description")) or "`gae`" in text
    assert max(map(len, text.splitlines())) <= 80


@EACH
def test_every_source_can_be_looked_up(component: Component) -> None:
    source = section(component_text(component), "source")
    assert "http" in source or "2002" in source or "`" in source


@EACH
def test_every_option_has_a_meaning_and_a_usual_range(component: Component) -> None:
    for option in options(component):
        assert option.doc, option.name
        if option.type in ("int", "float") and component.kind != "estimator":
            assert "usual" in option.doc.lower(), option.name


def test_every_need_is_explained() -> None:
    assert {need for c in TRAINING for need in c.needs} <= set(NEEDS)


@pytest.mark.parametrize("loss", REGISTRY.components("loss"), ids=lambda c: c.name)
def test_a_loss_shows_the_metrics_that_it_logs(loss: Component) -> None:
    batch = make_batch(logp=[[-1.0, -2.0]], old_logp=[[-1.1, -2.0]], advantages=[[1.0, -1.0]])
    logged = set(loss.load()(batch).metrics)
    shown = section(component_text(loss), "metrics")
    assert first_column(shown) == logged
    assert logged or shown == "  None of its own."


class Rows:
    """Keeps the last row of a run, drops the rest."""

    def __init__(self, base_folder: Path) -> None:
        self.base_folder = base_folder
        self.row: Mapping[str, Any] = {}

    def update(self, row: Mapping[str, Any]) -> None:
        self.row = row

    def timing(self, row: Any) -> None: ...

    def evaluation(self, row: Any) -> None: ...

    def samples(self, rows: Any) -> None: ...

    def progress(self, done: int, total: int, phase: str) -> None: ...

    def log(self, text: str) -> None: ...


def logged_by_a_run(folder: Path, **chosen: str) -> set[str]:
    texts = {**DEFAULT_SELECTIONS, **chosen}
    small = {"updates": 1, "prompts": 4, "group_size": 2, "minibatches": 2, "eval_prompts": 4}
    spec = RunSpec(
        selections={kind: parse(REGISTRY, kind, text) for kind, text in texts.items()},
        settings=Settings.from_values({**small, "base_score": 0.0}),
        seed=0,
    )
    rows = Rows(folder)
    train(spec, rows)
    return set(rows.row)


def test_the_trainer_logs_what_is_said_of_it(tmp_path: Path) -> None:
    always = {name for metrics in TRAINERS_METRICS.values() for name in metrics}
    without = logged_by_a_run(tmp_path, estimator="group")
    assert always <= without
    assert not without & set(CRITICS_METRICS)
    assert always | set(CRITICS_METRICS) <= logged_by_a_run(tmp_path, estimator="gae")
    text = component_text(REGISTRY.find("estimator", "gae"))
    shown = first_column(section(text, "metrics of the trainer"))
    assert shown == {"flat_groups", *CRITICS_METRICS}


@pytest.mark.parametrize("controller", REGISTRY.components("kl"), ids=lambda c: c.name)
def test_a_controller_shows_the_metrics_that_a_run_logs(
    controller: Component, tmp_path: Path
) -> None:
    logged = logged_by_a_run(tmp_path, kl=controller.name)
    shown = first_column(section(component_text(controller), "metrics"))
    measures = {"kl_..."} if controller.needs else set()
    assert measures <= shown
    assert shown - measures <= logged
    assert bool(measures) == ("kl_k3_ratio" in logged)
    assert ("stopped" in shown) == ("stopped" in logged)


def test_the_trainers_own_options_are_explained_once() -> None:
    registry = load()
    text = component_text(registry.find("kl", "fixed"))
    for title in ("place and estimator", "estimates", "source", "metrics", "raises"):
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


def test_everything_fits_into_80_columns_and_mostly_into_less() -> None:
    for component in REGISTRY.components():
        assert max(map(len, component_text(component).splitlines())) <= 80
    narrow = component_text(REGISTRY.find("kl", "pid"), 60).splitlines()
    assert max(len(line) for line in narrow if "http" not in line) <= 60


def test_names_that_others_use_are_shown_with_what_to_write() -> None:
    text = component_text(REGISTRY.find("loss", "clip"))
    assert "dual_clip: write clip:dual=3\n" in text
    assert "vanilla: write clip:dual=3 for verl's\n" in text
    assert "\n  elsewhere  " not in component_text(REGISTRY.find("loss", "cispo"))


def test_a_setting_with_a_table_shows_it() -> None:
    text = setting_text("aggregation")
    shown = section(text, "values")
    for mode in Settings.option("aggregation").choices:
        assert re.search(rf"^  {mode}  +\S", shown, re.MULTILINE)
    assert "TRL `bnpo`" in shown
    assert max(map(len, text.splitlines())) <= 80
    assert "values" not in setting_text("lr")
    assert set(EXPLAINED) <= {option.name for option in Settings.options()}


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
    assert docstring("json:JSONDecoder.no_such_name.at_all") == ""
    assert docstring("") == ""
    assert docstring("json").startswith("JSON (JavaScript Object Notation)")
    assert docstring("json.decoder:JSONDecoder.decode").startswith("Return the Python")
    assert docstring("sys:exit") == ""  # built in, without a source
