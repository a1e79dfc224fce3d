"""Values on the command line and in files: read as written, kept letter for letter, or refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli
from rlbench.grid import launch as launching
from rlbench.grid.identity import Catalogue
from rlbench.grid.supervisor import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlbench.training.spec import RunSpec

PLUGIN = """
from rlbench import hookimpl


def tagged(batch, *, tag: str = "-", flag: bool = True, size: float = 1.0):
    raise ValueError


@hookimpl
def rlbench_register_losses(register):
    register("tagged", ":tagged", summary="Has a text option.")
"""
WITH_PLUGIN = ("--plugin", "tagged.py")
ODD_TEXTS = ["1E5", "007", "00.00", "nan", "true", "null", "none", "no", "x[1]", "a/b", "d:b.txt"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tagged.py").write_text(PLUGIN, encoding="utf-8")
    return tmp_path


@pytest.fixture
def specs(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[RunSpec]]:
    """Give a command, and get the runs that it would execute."""

    def run(*arguments: str, file: str | None = None) -> list[RunSpec]:
        heard: list[RunSpec] = []

        def launch(registry: object, planned: list[Any], **options: Any) -> tuple[Any, Outcome]:
            heard.extend(run.spec for run in planned)
            records = launching._read_back(launching.Store(options["out"]), planned)
            return records, Outcome(0, 0, 0, interrupted=False, exit_code=0)

        monkeypatch.setattr(launching, "launch", launch)
        done = invoke("run", *([] if file is None else [written(file)]), *arguments)
        assert done.exit_code == 0, done.output
        return heard

    return run


def written(text: str) -> str:
    Path("grid.toml").write_text(text, encoding="utf-8")
    return "grid.toml"


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def refused(*arguments: str) -> str:
    """Give a command that is refused, in one or two lines, and writes nothing."""
    before = sorted(Path().rglob("*"))
    messages = set()
    for command in ("run", "plan"):
        done = invoke(command, *arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith("rlbench: ")
        assert len(done.stderr.splitlines()) <= 2
        messages.add(done.stderr.replace(f" {command} --help", ""))
    assert len(messages) == 1  # a plan refuses what a run refuses, in the same words
    assert sorted(p for p in Path().rglob("*") if "__pycache__" not in p.parts) == before
    return messages.pop()


def test_numbers_of_a_file_are_numbers(specs: Any) -> None:
    text = "[settings]\nlr = [1e-4, 3e-4]\nupdates = 1e4\neval_prompts = 10_000\ntop_k = '1e2'"
    runs = specs(file=text)
    assert [spec.settings.lr for spec in runs[:2]] == [0.0001, 0.0003]
    for name, value in {"updates": 10_000, "eval_prompts": 10_000, "top_k": 100}.items():
        found = getattr(runs[0].settings, name)
        assert (found, type(found)) == (value, int)


def test_no_is_no_kl() -> None:
    assert "unknown kl 'no'; did you mean 'none'" in refused(written('axes.kl = "no"'))
    assert "grid.toml:1: no valid TOML" in refused(written("axes.kl = no"))


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_text_is_kept_letter_for_letter(text: str, specs: Any) -> None:
    selection = f"tagged:tag={text}"
    (run,) = specs("-l", selection, "-s", "0", *WITH_PLUGIN)
    assert run.selections["loss"].options["tag"] == text
    described = Catalogue().canonical(run)["components"]["loss"]
    assert (described["label"], described["options"]["tag"]) == (selection, text)
    plan = invoke("plan", "-l", selection, "-s", "0", *WITH_PLUGIN)
    assert f"loss   {selection}\n" in plan.stdout
    for value in (f'"{selection}"', f'{{name = "tagged", tag = "{text}"}}'):
        (same,) = specs(file=f'seeds = [0]\nplugins = "tagged.py"\naxes.loss = {value}')
        assert same == run


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_text_is_in_the_table_as_written(text: str, specs: Any) -> None:
    other = "1E6"
    flags = ["-l", f"tagged:tag={text}", "-l", f"tagged:tag={other}", "-s", "0", *WITH_PLUGIN]
    specs(*flags)  # nothing is executed from here on
    done = invoke("run", *flags)
    rows = [line.split()[0] for line in done.stdout.splitlines()[2:4]]
    assert sorted(rows) == sorted([f"tagged:tag={text}", f"tagged:tag={other}"])


def test_two_texts_are_two_runs_also_where_they_are_one_number(specs: Any) -> None:
    texts = ["1E5", "1e5", "100000", "007", "7", "nan", "NaN", "null", "none", "true", "True"]
    flags = [word for text in texts for word in ("-l", f"tagged:tag={text}")]
    runs = specs(*flags, "-s", "0", *WITH_PLUGIN)
    assert [run.selections["loss"].options["tag"] for run in runs] == texts
    names = [Catalogue().run_id(run) for run in runs]
    assert len({*names}) == len(texts)


def test_long_settings_make_short_names_that_stay_apart(specs: Any, folder: Path) -> None:
    letters = "abcdefghijkl"
    options = ", ".join(f'{letter * 12}: str = "-"' for letter in letters)
    text = PLUGIN.replace("tag: str", f"{options}, tag: str")
    (folder / "tagged.py").write_text(text, encoding="utf-8")
    twelve = ",".join(f"{letter * 12}={'v' * 12}" for letter in letters)
    flags = []
    for last in "xy":  # 12 parameters with 300 letters and more; 100 letters of 300 bytes
        flags += ["-l", f"tagged:{twelve},tag={last}", "-l", f"tagged:tag={'長' * 99}{last}"]
    runs = specs(*flags, "-s", "0", *WITH_PLUGIN)
    assert len(runs) == 4
    names = [Catalogue().run_id(run) for run in runs]
    assert len({*names}) == 4
    assert all(len(name.encode()) <= 100 for name in names)
    assert all(name.isascii() for name in names)
    described = [Catalogue().canonical(run)["components"]["loss"]["options"] for run in runs]
    assert [one["tag"] for one in described] == ["x", "長" * 99 + "x", "y", "長" * 99 + "y"]
    assert described[0]["a" * 12] == described[2]["l" * 12] == "v" * 12


@pytest.mark.parametrize("value", ["1", "1.0", "true", "yes"])
def test_a_number_and_a_truth_stay_apart(value: str, specs: Any) -> None:
    if value in ("true", "yes"):
        assert f"size={value}: expected a number" in refused(
            "-l", f"tagged:size={value}", *WITH_PLUGIN
        )
    else:
        assert (
            specs("-l", f"tagged:size={value}", *WITH_PLUGIN)[0].selections["loss"].label
            == "tagged"
        )  # the default, however it is written


@pytest.mark.parametrize("value", ["False", "off", "no", "0", '"False"', "false"])
def test_false_has_many_spellings_in_commands_and_files(value: str, specs: Any) -> None:
    if '"' not in value:
        (run,) = specs("-l", f"tagged:flag={value}", "-s", "0", *WITH_PLUGIN)
        assert run.selections["loss"].label == "tagged:flag=false"
    if value in ('"False"', "false"):
        table = f'{{name = "tagged", flag = {value}}}'
        (run,) = specs(file=f'seeds = [0]\nplugins = ["tagged.py"]\naxes.loss = [{table}]')
        assert run.selections["loss"].label == "tagged:flag=false"


def test_maybe_is_neither_true_nor_false() -> None:
    message = "flag=maybe: expected true or false"
    assert message in refused("-l", "tagged:flag=maybe", *WITH_PLUGIN)
    assert "flag=1: expected true or false" in refused(
        written('plugins = "tagged.py"\naxes.loss = {name = "tagged", flag = 1}')
    )
    assert "No such option" in refused("-l", "tagged", "--no-flag", *WITH_PLUGIN)


def test_commas_separate_and_equals_signs_assign(specs: Any) -> None:
    assert len(specs("--set", "lr=1e-3,1e-4", "-s", "0")) == 2
    message = refused("-l", "tagged:tag=a,b", *WITH_PLUGIN)
    assert "'b' is no option=value; write tagged:option=value" in message
    assert "no comma or equals sign in a value" in message
    assert "no comma or equals sign" in refused("-l", "tagged:tag=a=b", *WITH_PLUGIN)
    assert "no comma or equals sign" in refused("-l", "tagged:tag==b.txt", *WITH_PLUGIN)
    table = '{name = "tagged", tag = "a,b"}'
    assert "tag=a,b: expected text without commas and equals signs" in refused(
        written(f'plugins = "tagged.py"\naxes.loss = {table}')
    )
    assert "expected one component" in refused("-l", "clip,pg")
    assert "lr=[1e-3: expected a number" in refused("--set", "lr=[1e-3,1e-4]")
    assert "lr==1e-3" in refused("--set", "lr==1e-3")
    (run,) = specs("-l", "tagged:tag=x[1]", "-s", "0", *WITH_PLUGIN)
    assert run.selections["loss"].options["tag"] == "x[1]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-k", "adaptive:target=0.1,enabled=false"], "unknown option 'enabled' of kl 'adaptive'"),
        (["-k", "none:target=0.1"], "unknown option 'target' of kl 'none'"),
        (["-e", "group:lambda=0.9"], "unknown option 'lambda'"),
        (["-e", "group:lam=0.9"], "unknown option 'lam' of estimator 'group'"),
        (["-e", "group:lam=0.9", "-e", "group:lam=0.95"], "unknown option 'lam' of estimator"),
        (["-e", "group", "--set", "lam=0.9,0.95"], "write -e gae:lam=0.9 -e gae:lam=0.95 or"),
        (["--set", "lam=0.9"], "write -e"),
        (["-e", "group:std=false,eps=0.1"], "eps=0.1 has no effect unless std=true"),
        (["--set", "critic_lr=1e-3,1e-4"], "no critic to train"),
        (["--set", "horizon=3"], "only the two that end in _norm"),
        (["--set", "count_masked_rows=true"], "leave count_masked_rows out"),
        (["--set", "warmup=225"], "would never be reached"),
        (["--set", "estimatr=gae"], "unknown setting 'estimatr'"),
        (["--set", "loss.epz=0.1"], "did you mean 'eps'"),
        (["--set", "loss.clp=0.1"], "unknown option of any loss 'clp'; "),
        (["-e", "gae:gamma=1.5"], "gamma=1.5: expected a number in [0, 1]"),
        (["--set", "group-size=4"], "did you mean 'group_size'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_would_have_no_effect_is_refused(arguments: list[str], message: str) -> None:
    assert message in refused(*arguments)


def test_an_option_of_a_plugin_that_no_cell_uses_is_refused() -> None:
    """Loaded, but not selected: what is said of it would have no effect."""
    assert "write -l tagged:tag=x" in refused("--set", "tag=x", *WITH_PLUGIN)
    assert "unknown option 'tag' of loss 'clip'" in refused("-l", "clip:tag=x", *WITH_PLUGIN)
    above = 'plugins = "tagged.py"\n'
    message = "settings.tag: 'tag' is no trainer setting but an option of a component: write loss"
    assert message in refused(written(f'{above}[settings]\ntag = "x"'))
    assert "unknown option 'tag' of loss 'pg'" in refused(
        written(f'{above}axes.loss = ["tagged", {{name = "pg", tag = "x"}}]')
    )


def test_a_file_of_another_language_is_no_traceback() -> None:
    assert "grid.toml:1: no valid TOML" in refused(written("lr:\t[1e-4, 3e-4]\nkl: no\n"))
    assert "there is no experiment file 'absent.toml'" in refused("absent.toml")


def test_a_message_is_one_line_whatever_was_given() -> None:
    assert r"lr=1\n2\x1b[2J: expected a number" in refused("--set", "lr=1\n2\x1b[2J")
    assert "\n" not in refused(written('[settings]\nlr = "1\\n2"')).removesuffix("\n")


def test_a_default_that_is_written_out_makes_no_second_cell(specs: Any) -> None:
    flags = ["-e", "gae", "-e", "gae:lam=0.95", "-l", "clip:eps=0.20", "-l", "clip"]
    assert len(specs(*flags, "--set", "lr=0.0005,5E-4", "-s", "0,0,00")) == 1


def test_names_that_can_not_be_file_names_are_refused(folder: Path) -> None:
    for name in ("acme/gae:v2|x", "../x", "Tagged", "a b"):
        text = PLUGIN.replace('"tagged"', repr(name))
        (folder / "odd.py").write_text(text, encoding="utf-8")
        message = refused("--plugin", "odd.py")
        assert repr(name) in message
        assert "odd.py" in message


TINY = ["updates=1", "prompts=2", "group_size=2", "minibatches=1", "eval_prompts=8", "base_score=0"]


def test_a_folder_of_results_may_have_any_name(folder: Path) -> None:
    out = "Übungen [1] = a,b/" + "長" * 60 + "/results.json"
    arguments = ["run", "-o", out, "-s", "0", "-q"]
    for setting in TINY:
        arguments += ["--set", setting]
    done = subprocess.run(
        [sys.executable, "-m", "rlbench", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONIOENCODING": "cp1252", "NO_COLOR": "1"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    (spec,) = (folder / out).glob("runs/*/spec.json")
    assert json.loads(spec.read_text(encoding="utf-8"))["run_id"] == spec.parent.name
    plan = invoke("plan", *(word for word in arguments[1:] if word != "-q"))
    assert "1 run: 1 done, 0 missing, 0 failed. Nothing is left to run." in plan.stdout


def test_files_are_utf_8_in_any_locale(folder: Path) -> None:
    text = PLUGIN.replace("raise ValueError", 'raise ValueError(f"not {tag}")')
    (folder / "tagged.py").write_text(text, encoding="utf-8")
    written('plugins = "tagged.py"\naxes.loss = "tagged:tag=Größe±長"\nseeds = [0]\nout = "out"')
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LC_", "PYTHON")) and name != "LANG"
    }
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    flags = [word for text in TINY for word in ("--set", text)]
    done = subprocess.run(
        [sys.executable, "-m", "rlbench", "run", "grid.toml", *flags],
        cwd=folder,
        env=plain | locale,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1  # it fails, and says so in the words of the plugin
    assert rb"not Gr\xf6\xdfe\xb1\u9577" in done.stdout
    (run,) = (folder / "out" / "runs").iterdir()
    for name in ("spec.json", "result.json", "log.txt"):
        assert "Größe±長" in (run / name).read_bytes().decode("utf-8"), name
