"""Experiment files: what they say is what runs, and what is not understood is refused by name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from rlbench.errors import UsageError
from rlbench.grid.experiment import build
from rlbench.grid.request import Request, ask
from rlbench.plugin.loading import load

if TYPE_CHECKING:
    from pathlib import Path

    from rlbench.training.spec import RunSpec


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def request_(folder: Path) -> Any:
    """Write an experiment file and ask for it."""

    def ask_for(
        text: str | bytes, name: str = "grid.toml", note: Any = None, **given: Any
    ) -> Request:
        path = folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        rest = {"axes": {}, "settings": (), "seeds": None, "plugins": (), "how": {}} | given
        return ask(path.relative_to(folder), load=load, note=note, **rest)

    return ask_for


def labels(specs: list[RunSpec], *kinds: str) -> list[tuple[str, ...]]:
    return [tuple(spec.selections[kind].label for kind in kinds) for spec in specs]


WHOLE = """
out = "results/night"
seeds = "0-1"
workers = 2
timeout = 60
retry = true
engine = "local"
[axes]
estimator = ["group", "gae:lam=0.9"]
loss = ["clip", {name = "clip", eps = 0.1}]
task = "sort"
[settings]
lr = [3e-4, "1e-3"]
updates = 60.0
"""


def test_a_file_says_what_flags_say(request_: Any) -> None:
    asked = request_(WHOLE)
    assert asked.specs == build(
        load(),
        selections={
            "estimator": ["group", "gae:lam=0.9"],
            "loss": ["clip", "clip:eps=0.1"],
            "task": ["sort"],
        },
        settings=["lr=3e-4,1e-3", "updates=60"],
        seeds="0-1",
    )
    assert asked.how["workers"] == 2
    assert asked.how["timeout"] == 60.0
    assert asked.how["retry"] is True
    assert asked.how["engine"] == "local"
    assert not asked.how["fail_fast"]


def test_an_empty_file_is_the_default_grid(request_: Any) -> None:
    asked = request_("")
    assert asked.specs == build(load(), selections={}, seeds="0-4")
    assert str(asked.out) == os.path.join("results", "local")  # noqa: PTH118 - as the default is written


@pytest.mark.parametrize(
    "change", [lambda b: b"\xef\xbb\xbf" + b, lambda b: b.replace(b"\n", b"\r\n")]
)
def test_a_byte_order_mark_and_windows_line_ends_are_fine(change: Any, request_: Any) -> None:
    assert request_(change(WHOLE.encode())).specs == request_(WHOLE).specs


def test_seeds_are_text_or_numbers(request_: Any) -> None:
    assert [spec.seed for spec in request_('seeds = "0-1,7"').specs] == [0, 1, 7]
    assert [spec.seed for spec in request_("seeds = [7, 0]").specs] == [7, 0]


def test_paths_start_at_the_folder_of_the_file(folder: Path, request_: Any) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "mine.py").write_text(
        "from rlbench import hookimpl\n"
        "def mine(batch, *, tag: str = 'x'):\n    raise ValueError\n"
        "@hookimpl\ndef rlbench_register_losses(register):\n"
        "    register('mine', ':mine', summary='Mine.')\n"
    )
    text = 'out = "there"\nplugins = "mine.py"\naxes.loss = "mine:tag=007"'
    asked = request_(text, "sub/grid.toml")
    assert str(asked.out) == os.path.join("sub", "there")  # noqa: PTH118 - as it is typed
    assert labels(asked.specs[:1], "loss") == [("mine:tag=007",)]


def test_settings_of_a_zip_move_together(request_: Any) -> None:
    asked = request_(
        """
        seeds = [0]
        [axes]
        loss = ["clip", "pg"]
        [[zip]]
        estimator = ["group", "gae"]
        lr = [5e-4, 3e-4]
        [[zip]]
        epochs = [1, 2, 3]
        """
    )
    cells = [
        (spec.selections["estimator"].label, spec.settings.lr, spec.settings.epochs)
        for spec in asked.specs
    ]
    # two rows times three rows, times two losses
    assert len(cells) == 12
    assert {cell[:2] for cell in cells} == {("group", 5e-4), ("gae", 3e-4)}
    assert cells[:4] == [("group", 5e-4, 1)] * 2 + [("group", 5e-4, 2)] * 2


def test_a_repeated_row_of_a_zip_is_dropped_and_noted(request_: Any) -> None:
    said: list[str] = []
    text = "seeds=[0]\n[[zip]]\nlr=[1e-3, 0.001, 1e-3]\nestimator=['group','grpo','gae']"
    assert len(request_(text, note=said.append).specs) == 2
    assert said == ["dropped a repeated row of zip[1]: lr=0.001, estimator=group"]


def test_excluded_cells_are_not_run(request_: Any) -> None:
    asked = request_(
        """
        seeds = "0-1"
        [axes]
        estimator = ["group", "gae", "gae:lam=0.9"]
        loss = ["clip", "pg"]
        [settings]
        lr = [1e-3, 1e-4]
        [[exclude]]
        estimator = "gae"
        loss = "pg"
        [[exclude]]
        estimator = {name = "gae", lam = "0.9"}
        lr = [1e-4]
        """
    )
    expected = [
        ("group", "clip", 1e-3),
        ("group", "pg", 1e-3),
        ("gae", "clip", 1e-3),
        ("gae:lam=0.9", "clip", 1e-3),
        ("group", "clip", 1e-4),
        ("group", "pg", 1e-4),
        ("gae", "clip", 1e-4),
    ]
    found = [(*labels([spec], "estimator", "loss")[0], spec.settings.lr) for spec in asked.specs]
    assert found == expected * 2


def test_what_is_excluded_may_be_impossible(request_: Any) -> None:
    grid = "[axes]\nestimator = ['group', 'gae']\n[settings]\ngroup_size = [1, 4]\n"
    with pytest.raises(UsageError, match="needs at least 2"):
        request_(grid)
    assert len(request_(grid + "[[exclude]]\nestimator='group'\ngroup_size=1").specs) == 3 * 5


def test_a_flag_replaces_the_axis_of_its_name_and_says_so(request_: Any) -> None:
    said: list[str] = []
    asked = request_(
        WHOLE,
        note=said.append,
        axes={"estimator": ["rloo"], "kl": ["fixed"]},
        settings=["lr=5e-4"],
        seeds="9",
        how={"out": "elsewhere", "workers": 3, "retry": False, "timeout": None},
    )
    assert labels(asked.specs, "estimator", "loss", "kl") == [
        ("rloo", "clip", "fixed"),
        ("rloo", "clip:eps=0.1", "fixed"),
    ]
    assert {(spec.seed, spec.settings.lr, spec.settings.updates) for spec in asked.specs} == {
        (9, 5e-4, 60)
    }
    assert (str(asked.out), asked.how["workers"]) == ("elsewhere", 3)
    assert (asked.how["retry"], asked.how["timeout"]) == (True, 60)
    assert said == [
        "replaced by what was given beside grid.toml: estimator, lr, seeds, out, workers"
    ]


def test_a_zip_can_not_lose_one_of_its_axes(request_: Any) -> None:
    text = "[[zip]]\nestimator = ['group', 'gae']\nlr = [1e-3, 1e-4]"
    with pytest.raises(UsageError, match=r"zip\[1\] moves lr together with estimator"):
        request_(text, settings=["lr=1e-3"])


def test_an_exclude_whose_axis_was_replaced_may_match_nothing(request_: Any) -> None:
    text = "axes.estimator=['group', 'gae']\n[[exclude]]\nestimator='gae'"
    said: list[str] = []
    asked = request_(text, axes={"estimator": ["group"]}, note=said.append)
    assert labels(asked.specs[:1], "estimator") == [("group",)]
    assert "grid.toml: exclude[1] matches no cell now" in said


MISTAKES = {
    # keys
    'estimatr = "gae"': "key 'estimatr'; did you mean 'estimator'",
    "[axes]\nestimatr = 'gae'": "unknown key 'axes.estimatr'; did you mean 'estimator'",
    "sed = [1]": "unknown key 'sed'; did you mean 'seeds'",
    "[setings]\nlr = 1": "unknown key 'setings'; did you mean 'settings'",
    "[settings]\nlr_rate = 1": "settings.lr_rate: unknown setting 'lr_rate'",
    "[settings]\ngroup-size = 4": "did you mean 'group_size'",
    "estimator = 'gae'": "key estimator: 'estimator' belongs under [axes]",
    "lr = 1e-3": "key lr: 'lr' belongs under [settings]",
    "[axes]\nlr = 1e-3": "key axes.lr: 'lr' belongs under [settings]",
    "[axes]\nseeds = [1]": "key axes.seeds: 'seeds' belongs above the first [section]",
    "[settings]\nestimator = 'gae'": "key settings.estimator: 'estimator' belongs under [axes]",
    "[settings]\nworkers = 2": "'workers' belongs above the first [section]",
    "[settings]\nkl.target = 6": 'kl = "adaptive:target=6" under [axes]',
    "[settings]\nkl.targt = 6": "did you mean 'target'",
    "[settings]\nlam = 0.9": 'estimator = "gae:lam=0.9" under [axes]',
    "[[zip]]\nlrr = [1]\nestimator = ['gae']": "unknown key 'zip[1].lrr'; did you mean 'lr'",
    "[[exclude]]\nseed = 1": "unknown key 'exclude[1].seed'",
    '["a\\nb"]': "unknown key",
    # values
    "[settings]\nlr = 'abc'": "grid.toml: settings.lr: trainer setting: lr=abc: expected a number",
    "[settings]\nlr = true": "settings.lr: trainer setting: lr=True: expected a number",
    "[settings]\nlr = nan": "lr=nan: expected a number in (0, inf)",
    "[settings]\nlr = '1e-3,1e-4'": "write an axis as a list",
    "[settings]\nlr = [[1e-3]]": "settings.lr: expected a value or a list of values",
    "[settings]\nlr = []": "settings.lr: the list is empty",
    "[settings]\nlr = 2020-01-01": "lr=2020-01-01: expected a number",
    "[settings]\nupdates = 1.5": "updates=1.5: expected an integer",
    "[settings]\ncount_masked_rows = 1": "expected true or false",
    "[axes]\nloss = 'clp'": "grid.toml: axes.loss: unknown loss 'clp'; did you mean 'clip'",
    "[axes]\nloss = 'clip:eps=2'": "axes.loss: loss 'clip'",
    "[axes]\nloss = {nam = 'clip'}": "a table needs the component's name",
    "[axes]\nloss = {name = 'clip', ep = 1}": "did you mean 'eps'",
    "[axes]\nloss = {name = 'clip', eps = [0.1, 0.2]}": "eps=[0.1, 0.2]: expected a number",
    "[axes]\nloss = 3": "axes.loss: loss 3: expected text",
    "[axes]\nloss = []": "axes.loss: the list is empty",
    "axes = 3": "axes: expected a table",
    "zip = {lr = [1]}": "zip: expected tables, each below a line [[zip]]",
    # how to run
    "seeds = 5": 'seeds: expected a list of numbers or a text such as "0-4", not 5; write [5]',
    "seeds = true": "seeds: expected a list of numbers",
    "seeds = [true]": "seeds: seed True",
    "seeds = ['1']": "a seed is a whole number",
    "seeds = []": "no seed was given",
    "seeds = '0-'": "seeds: '0-' is neither a seed nor a range",
    "workers = 0": "grid.toml: workers=0: expected an integer in [1, inf)",
    "workers = true": "workers=True: expected an integer",
    "timeout = inf": "timeout=inf: expected a number in (0, inf)",
    "timeout = [1]": "timeout: expected a number",
    "retry = 1": "retry=1: expected true or false",
    "out = ''": "out: expected text, not ''",
    "out = 3": "out: expected text, not 3",
    'out = "a\\u0000b"': "out: expected text",
    "out = '~nobody-of-that-name/x'": "out: '~nobody-of-that-name/x'",
    "engine = 'locl'": "grid.toml: engine: unknown engine 'locl'; did you mean 'local'",
    "track = ['x']": "grid.toml: track: unknown tracker 'x'",
    "plugins = 'absent.py'": "grid.toml: plugins: there is no file 'absent.py'",
    # zip and exclude
    "[[zip]]\nlr = [1, 2]\nepochs = [1]": "need one length; lr has 2, epochs has 1",
    "[[zip]]\nlr = 1": "zip[1].lr: expected a list of values, not 1",
    "[[zip]]\nlr = ['x']": "grid.toml: zip[1].lr: trainer setting: lr=x",
    "[[zip]]": "zip[1]: is empty",
    "settings.lr = 1\n[[zip]]\nlr = [1]": "'lr' is given under [settings] too",
    "axes.kl = 'none'\n[[zip]]\nkl = ['none']": "'kl' is given under [axes] too",
    "[[zip]]\nlr = [1]\n[[zip]]\nlr = [1]": "zip[2].lr: 'lr' is in zip[1] too",
    "[[exclude]]\nloss = 'pg'": "grid.toml: exclude[1]: matches no cell",
    "[[exclude]]\nlr = 3e-3": "matches no cell",
    "[[exclude]]\nloss = 'clip'": "every cell is excluded",
    "[[exclude]]\nloss = 'clp'": "grid.toml: exclude[1].loss: unknown loss 'clp'",
    "[[exclude]]\nlr = 'x'": "grid.toml: exclude[1].lr: trainer setting: lr=x",
    "[[exclude]]": "exclude[1]: is empty",
    # no TOML
    "lr = 1\nlr = 2": "grid.toml:2: no valid TOML",
    "a = 1\n\tb: 2\n": "grid.toml:2: no valid TOML",
    "a = ": "grid.toml:1: no valid TOML",
    "a = [": "grid.toml:1: no valid TOML",
    f"a = {'9' * 5000}": "no valid TOML",
    f"a = {'[' * 5000}": "nested too deeply",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_a_file_is_named_with_its_place(text: str, request_: Any) -> None:
    with pytest.raises(UsageError) as caught:
        request_(text)
    assert MISTAKES[text] in str(caught.value)
    assert "grid.toml" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_mistake_counts_where_a_flag_replaces_it(request_: Any) -> None:
    with pytest.raises(UsageError, match=r"axes\.loss"):
        request_("axes.loss = 'clp'", axes={"loss": ["clip"]})


def test_bytes_that_are_no_utf_8_are_named(request_: Any) -> None:
    with pytest.raises(UsageError, match=r"grid\.toml: byte 0 is not UTF-8"):
        request_("seeds = [0]".encode("utf-16"))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("gird.toml", "there is no experiment file 'gird.toml'; did you mean 'grid.toml'?"),
        ("grid", "did you mean 'grid.toml'?"),
        ("zzz", "did you mean 'grid.toml'?"),  # the only one there is
        ("sub", "sub is a folder"),
        (
            "nowhere/grid.toml",
            "there is no experiment file 'nowhere/grid.toml', nor a folder nowhere",
        ),
        ("grid.toml/x", "grid.toml"),
        ("x" * 300, "can't be read: File name too long"),
        ("a\0b", "there is no experiment file 'a\\x00b'"),
    ],
)
def test_a_file_that_is_not_there(asked: str, message: str, folder: Path) -> None:
    from pathlib import Path

    (folder / "grid.toml").touch()
    (folder / "sub").mkdir()
    with pytest.raises(UsageError) as caught:
        ask(Path(asked), load=load, axes={}, settings=(), seeds=None, plugins=(), how={})
    assert message in str(caught.value)
