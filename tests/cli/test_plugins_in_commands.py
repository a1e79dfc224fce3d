"""Plugins as commands meet them: broken, rude, in any order. None costs more than its own name."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli
from rlbench.grid import launch as launching
from rlbench.grid.identity import run_id
from rlbench.grid.request import ask
from rlbench.grid.supervisor import Outcome
from rlbench.plugin.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

TINY = ["updates=1", "prompts=2", "group_size=2", "minibatches=1", "eval_prompts=8", "base_score=0"]
LOSS = """
from rlbench import hookimpl
from rlbench.types import LossTerms


def {name}(batch, *, scale: float = 1.0):
    return LossTerms(-scale * batch.advantages * batch.logp)


@hookimpl
def rlbench_register_losses(register):
    register("{name}", f"{{__name__}}:{name}", summary="Mine.")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Install a distribution with one plugin, first on the path."""

    def install(name: str, source: str) -> None:
        site = tmp_path / f"site of {name}"
        info = site / f"{name}-1.2.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[rlbench]\n{name} = {name}\n")
        (site / f"{name}.py").write_text(source, encoding="utf-8")
        monkeypatch.syspath_prepend(site)
        monkeypatch.delitem(sys.modules, name, raising=False)

    return install


def rlbench(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("print('boo')\nraise ImportError('the moon is missing')", "the moon is missing"),
        ("print('boo')\nimport sys\nsys.exit(0)", "it called sys.exit(0)"),
        (f"print('boo')\n{LOSS.format(name='demo_moon')}", ""),
    ],
    ids=["import error", "exit", "prints"],
)
def test_an_installed_plugin_that_is_broken_or_loud_costs_others_nothing(
    source: str,
    cause: str,
    install: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def launch(_: object, planned: list[Any], **options: Any) -> tuple[Any, Outcome]:
        records = launching._read_back(launching.Store(options["out"]), planned)
        return records, Outcome(0, 0, 0, interrupted=False, exit_code=0)

    monkeypatch.setattr(launching, "launch", launch)
    install("demo_moon", source)
    commands = {("list", "kl"): 1, ("plan",): 1, ("run", "-q"): 1, ("show", "loss", "clip"): 1}
    for command, warnings in (commands | {("--help",): 0, ("plugins",): 0}).items():
        sys.modules.pop("demo_moon", None)
        done = rlbench(*command)
        assert done.exit_code == 0, (command, done.output)
        assert "boo" not in done.stdout
        said = [line for line in done.stderr.splitlines() if line != "boo"]
        assert len(said) == (warnings if cause else 0), command
        assert all("demo_moon 1.2" in line and cause in line for line in said)
    asked = rlbench("plan", "-l", "demo_moon")
    assert asked.exit_code == (2 if cause else 0)
    assert cause in asked.stderr.splitlines()[-1] if cause else True
    assert ("NOT LOADED" in rlbench("plugins").stdout) is bool(cause)


def names_of_runs(plugins: list[str], *losses: str) -> list[str]:
    request = ask(
        None,
        load=load,
        axes={"loss": losses},
        settings=(),
        seeds="0",
        plugins=plugins,
        how={},
    )
    return [run_id(spec) for spec in request.specs]


def test_the_order_of_plugins_changes_no_name(
    folder: Path, install: Callable[[str, str], None]
) -> None:
    for name in ("demo_a", "demo_b"):
        (folder / f"{name}.py").write_text(LOSS.format(name=name), encoding="utf-8")
    forth, back = ["demo_a.py", "demo_b.py"], ["demo_b.py", "demo_a.py"]
    losses = ("demo_a:scale=2", "demo_b", "clip")
    assert names_of_runs(forth, *losses) == names_of_runs(back, *losses)
    listed = [c.name for c in load(forth).components("loss")]
    assert listed == [c.name for c in load(back).components("loss")]
    assert {"demo_a", "demo_b"} <= set(listed)

    alone = names_of_runs(forth, "clip")
    for name in ("demo_z", "demo_y"):  # the last one installed is the first on the path
        install(name, LOSS.format(name=name))
        assert names_of_runs([], "clip") == alone


TRACKERS = """
import json
from pathlib import Path

from rlbench import hookimpl


class Meddler:
    def __init__(self, *, path: str = "none"):
        pass

    def start(self, run):
        run["settings"].clear()
        run["components"]["loss"]["label"] = "mine"

    def log(self, update, metrics):
        metrics.clear()
        metrics["reward"] = 99.0

    def finish(self, result):
        result["score"] = 99.0
        result["provenance"].clear()


class Witness:
    def __init__(self, *, path: str = "none"):
        self.path, self.seen = Path(path), []

    def start(self, run):
        self.seen.append(run)

    def log(self, update, metrics):
        self.seen.append(metrics)

    def finish(self, result):
        self.path.write_text(json.dumps([*self.seen, result]))


@hookimpl
def rlbench_register_trackers(register):
    register("meddler", ":Meddler", summary="Writes into whatever it is given.")
    register("witness", ":Witness", summary="Tells what it was given.")
"""


def test_what_one_tracker_does_to_its_arguments_nobody_else_sees(folder: Path) -> None:
    (folder / "trackers.py").write_text(TRACKERS, encoding="utf-8")
    settings = [word for text in TINY for word in ("--set", text)]
    arguments = ["run", "-q", "-s", "0", "-j", "1", "-o", "out", "--plugin", "trackers.py"]
    trackers = ["--track", "meddler", "--track", f"witness:path={folder / 'seen.json'}"]
    done = rlbench(*arguments, *settings, *trackers, "--track", "meddler:path=x")
    assert done.exit_code == 0, done.stderr
    (run,) = Path("out/runs").iterdir()
    start, *updates, result = json.loads(Path("seen.json").read_text("utf-8"))
    spec = json.loads((run / "spec.json").read_text("utf-8"))
    assert {name: start[name] for name in spec} == spec
    assert spec["components"]["loss"]["label"] == "clip"
    with (run / "metrics.csv").open(encoding="utf-8") as stream:
        (row,) = csv.DictReader(stream)
    (update,) = (told for told in updates if "reward" in told)  # the others are evaluations
    assert 0 <= update["reward"] <= 1
    assert update["reward"] == float(row["reward"])
    kept = json.loads((run / "result.json").read_text("utf-8"))
    assert 0 <= kept["score"] <= 1
    assert (result["score"], result["provenance"]) == (kept["score"], kept["provenance"])
