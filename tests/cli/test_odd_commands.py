"""Random command lines and experiment files: what is said is run, the rest is refused by name."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import chdir, contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from rlbench.cli import cli
from rlbench.grid import launch as launching
from rlbench.grid import request as requesting
from rlbench.plugin import loading
from rlbench.plugin.loading import load
from rlbench.plugin.selection import parse
from rlbench.report.text.spelling import printable
from rlbench.training.settings import Settings
from rlbench.training.spec import DEFAULT_SELECTIONS

from .odd_commands import FLAGS, KINDS, SETTINGS, Asked, asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlbench.grid.request import Request

odd = settings(
    max_examples=int(os.environ.get("RLBENCH_ODD_COMMANDS", "100")),
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
SHORT = {"-e": "estimator", "-l": "loss", "-k": "kl", "-t": "task", "-r": "reward", "-m": "model"}
SHORT |= {"-s": "seeds", "-j": "--workers", "-o": "folder"}
# argv can hold anything but a null character; half a surrogate pair is a byte that is no UTF-8
ODD_TEXT = st.text(st.characters(exclude_characters="\0"), max_size=12)


NOTES = ("dropped a repeated", "replaced by what was given")


def lines(text: str) -> list[str]:
    """Take text apart at whatever a terminal may take for the end of a line."""
    return text.removesuffix("\n").splitlines()


class Commands:
    """Gives commands in a folder of their own; nothing is ever trained."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def give(self, *words: str) -> Result:
        """Give a command; it ends with 0, 2 or 3, without a traceback, and writes nothing."""
        before = sorted(Path().rglob("*"))
        done = CliRunner().invoke(cli, words)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert done.exit_code in (0, 2, 3), done.output
        assert "Traceback" not in done.output
        assert sorted(Path().rglob("*")) == before
        return done

    def refused(self, *words: str) -> None:
        """Give a command, as a plan and as a run, that is refused with what was given."""
        for command in ("plan", "run"):
            done = self.give(command, *words)
            assert done.exit_code == 2, (words, done.output)
            assert done.stdout == ""
            said = lines(done.stderr)
            assert sum(not line.startswith(NOTES) for line in said) <= 2
            assert said[-1].startswith("rlbench: ")
            assert names_one_of(words, done.stderr), (words, done.stderr)


def names_one_of(words: tuple[str, ...], message: str) -> bool:
    """Whether a message names something of what was given, as it is or as Python writes it."""
    parts = {part for word in words for part in (word, *re.split(r"[=,:]", word))}
    parts |= {part.strip() for part in parts} | {str(Path(word)) for word in words if word}
    for word in words:
        if word.startswith("-"):  # its long name, and what stands glued to it
            parts |= {SHORT.get(word[:2], ""), word[:2], word[2:]}
    written = {part.encode("utf-8", "backslashreplace").decode() for part in parts}
    shown = {ascii(part)[1:-1] for part in parts} | {repr(part)[1:-1] for part in parts} | written
    shown |= set(map(printable, parts))
    shown |= {"extra argument", "''", "empty"} if "" in words else set()
    return any(part in message for part in shown if part)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    given_ = Commands()
    real = requesting.ask

    def ask(*arguments: Any, **options: Any) -> Request:
        given_.requests.append(real(*arguments, **options))
        return given_.requests[-1]

    everything = load()  # of which no test here changes anything

    def load_(plugins: Any = ()) -> Any:
        return load(plugins) if plugins else everything

    def launch(*_: Any, **__: Any) -> Any:
        raise AssertionError("this was to be refused")

    monkeypatch.setattr(requesting, "ask", ask)
    monkeypatch.setattr(launching, "launch", launch)
    monkeypatch.setattr(loading, "load", load_)
    return given_


@contextmanager
def folder(toml: str | None = None) -> Iterator[None]:
    with tempfile.TemporaryDirectory() as name, chdir(name):
        if toml is not None:
            Path("grid.toml").write_bytes(toml.encode("utf-8"))
        yield


def specs_as_cells(request: Request) -> list[tuple[int, tuple[tuple[str, Any], ...]]]:
    found = []
    for spec in request.specs:
        labels = {kind: chosen.label for kind, chosen in spec.selections.items()}
        cell = labels | spec.settings.values()
        found.append((spec.seed, tuple(sorted(cell.items(), key=lambda item: item[0]))))
    return found


@odd
@given(asked(), st.data())
def test_what_is_said_is_what_is_planned(commands: Commands, one: Asked, data: Any) -> None:
    toml = one.toml(data.draw)
    words = one.words(data.draw)
    cells = one.cells()
    with folder(toml if one.in_file else None):
        if cells is None:
            event("refused")
            commands.refused(*words)
            return
        event("planned")
        done = commands.give("plan", *words)
        assert done.exit_code == 0, (words, toml, done.output)
        planned = specs_as_cells(commands.requests[-1])
        assert len(planned) == len(set(planned)) == len(cells) * len(one.numbers())
        assert set(planned) == {(seed, cell) for seed in one.numbers() for cell in cells}
        # all cells at the first seed, then all at the next
        by_seed = [seed for seed, _ in groupby(seed for seed, _ in planned)]
        assert sorted(by_seed) == sorted(one.numbers())
        runs = f"{len(planned)} run{'s' if len(planned) > 1 else ''}"
        assert f": {runs} in results/local\n" in done.stdout


FAULTY_FLAGS = [
    *[["-e", text] for text in ("", "gea", "gae:", "gae:lam", "gae:lam=", "gae:lam=2", "gae,rloo")],
    *[["-l", text] for text in ("clip:ep=1", "clip:eps=0.1,eps=0.2", "clip:eps=nan", "gae", " ")],
    *[["-s", text] for text in ("", "0-", "3-1", "-1", "1.5", "a", "0-999999", "\u0663", "0,,1")],
    *[
        ["--set", text]
        for text in ("lr", "lr=", "=1", "", "lr=0", "lr=1e-3,", "lr=a", "LR=1", "k=1")
    ],
    *[
        ["--set", text]
        for text in ("updates=1.5", "lr=true", "kl.target=1", "minibatches=65", "lr==1")
    ],
    *[["-j", text] for text in ("0", "-1", "1.5", "", "two")],
    *[["--timeout", text] for text in ("0", "nan", "inf", "-1", "", "1 s")],
    *[["--engine", text] for text in ("", "locl")],
    *[["--plugin", text] for text in ("absent.py", "no such module", "")],
    ["--track", "nothing"],
    ["--estimtor", "gae"],
    ["-x"],
    ["--retry=yes"],
    ["--out", ""],
    ["--out", "a", "-o", "a"],
    ["-j", "1", "--workers", "1"],
    ["absent.toml", "absent.toml"],
]
UNFINISHED = ["-e", "--loss", "-s", "--set", "-j", "-o", "--timeout", "--engine", "--plugin"]


@odd
@given(asked(), st.data())
def test_one_fault_in_a_command_is_refused(commands: Commands, one: Asked, data: Any) -> None:
    words = one.words(data.draw)
    fault = data.draw(st.sampled_from([*FAULTY_FLAGS, *([flag] for flag in UNFINISHED)]))
    with folder(one.toml(data.draw) if one.in_file else None):
        if fault[0] in UNFINISHED and len(fault) == 1:
            commands.refused(*words, *fault)
        else:
            commands.refused(*fault, *words)


FAULTS_ABOVE = [
    *("seed = [1]", "seeds = 3", "seeds = [-1]", "seeds = [1.0]", "seeds = []", "seeds = ''"),
    *("workers = 0", "workers = 1.5", "workers = true", "timeout = nan", "timeout = 'soon'"),
    *("retry = 1", "retry = 'perhaps'", "out = ''", "out = 1", "track = 1", "plugins = ['no.py']"),
    *("lr = 1e-3", "estimator = 'gae'", "axis = 1", "= 1", "a b = 1", "a = ", "\ta:\tb", "\u0000"),
    *("axes = 1", "zip = 1", "exclude = [1]", "[axes", "a.b = 1", "'' = 1", "'\u00fc\\n' = 1"),
]
FAULTS_BELOW = [
    *("[[zip]]\nreward = ['true']\nmodel = ['lstm', 'lstm']", "[[zip]]\nreward = 'true'"),
    *("[[zip]]", "[[exclude]]", "[[zip]]\nrewrd = ['true']", "[[exclude]]\nseeds = [1]"),
    *("[[exclude]]\nloss = 'sapo'", "[[exclude]]\nreward = 'true'", "[[exclude]]\nlr = 'x'"),
    *("[axes]\nloss = 'clip'\n[axes]\nkl = 'none'", "[[axes]]", "[setting]\nlr = 1", "[zip]"),
]
FAULTY_VALUES = [
    "true",
    "[true]",
    "[[]]",
    "{}",
    "nan",
    "'clp,'",
    "''",
    "1979-05-27",
    "[]",
    "-1",
    "'\\n'",
]


@odd
@given(asked(), st.data())
def test_one_fault_in_a_file_is_refused(commands: Commands, one: Asked, data: Any) -> None:
    one.in_file = True
    place = data.draw(st.sampled_from(["above", "below", "value", "key"]))
    toml = one.toml(data.draw)
    if place == "above":
        if one.seeds:
            toml = toml.partition("\n")[2]
        toml = data.draw(st.sampled_from(FAULTS_ABOVE)) + "\n" + toml
    elif place == "below":
        toml += data.draw(st.sampled_from(FAULTS_BELOW)) + "\n"
    else:
        free = [n for n in (*KINDS, *SETTINGS) if f"\n{n} = " not in toml]
        name = data.draw(st.sampled_from(free)) if free else "unknown"
        section = "[axes]" if name in KINDS else "[settings]"
        if place == "value":
            line = f"{name} = {data.draw(st.sampled_from(FAULTY_VALUES))}"
        else:
            cut = data.draw(st.integers(1, len(name) - 1))
            line = f"{name[:cut]}_{name[cut + 1 :]}_ = 1"
        toml = toml.replace(section, f"{section}\n{line}", 1)
    with folder(toml):
        commands.refused(*one.words(data.draw))


PIECES = st.one_of(
    st.tuples(st.sampled_from([f for pair in FLAGS.values() for f in pair]), ODD_TEXT),
    st.tuples(
        st.sampled_from(["-e", "-l", "-k", "-t", "-r", "-m"]),
        st.sampled_from([text for texts in KINDS.values() for text in texts]),
    ),
    st.tuples(st.just("--set"), ODD_TEXT),
    st.tuples(
        st.just("--set"),
        st.builds(
            "{}={}".format,
            st.sampled_from([option.name for option in Settings.options()]) | ODD_TEXT,
            st.sampled_from(["1", "0.5", "2e0", "true", "none", "linear", "1,2"]) | ODD_TEXT,
        ),
    ),
    st.tuples(st.sampled_from(["-s", "--seeds"]), st.from_regex(r"[0-9,-]{1,4}", fullmatch=True)),
    st.tuples(st.sampled_from(["-j", "--timeout", "-o", "--engine", "--track"]), ODD_TEXT),
    st.tuples(st.sampled_from(["-j", "--timeout", "--retries"]), st.sampled_from(["1", "2", "0"])),
    st.tuples(st.sampled_from(["--retry", "--fail-fast", "--all", "--"])),
    st.tuples(ODD_TEXT),
    st.tuples(st.sampled_from(["grid.toml", "-", ".", "/", "--seed", "--sets", "-ee", "-s0"])),
)


@odd
@given(st.lists(PIECES, max_size=5), st.one_of(st.none(), ODD_TEXT))
def test_odd_words_never_raise_and_are_never_ignored(
    commands: Commands, pieces: list[tuple[str, ...]], toml: str | None
) -> None:
    words = [word for piece in pieces for word in piece]
    text = None if toml is None else toml.encode("utf-8", "replace").decode()
    before = len(commands.requests)
    with folder(text):
        done = commands.give("plan", *words)
        if done.exit_code == 0 and len(commands.requests) > before:
            event("planned")
            nothing_is_ignored(commands.requests[-1], pieces)
        elif done.exit_code == 2:
            assert 1 <= len([one for one in lines(done.stderr) if not one.startswith(NOTES)]) <= 2
            assert names_one_of((*words, "grid.toml"), done.stderr), (words, done.stderr)


def nothing_is_ignored(request: Request, pieces: list[tuple[str, ...]]) -> None:
    """Find every value in what is planned; pieces such as ``-ee`` are read by others."""
    registry = load()
    for piece in pieces:
        if len(piece) < 2 or "--" in [one[0] for one in pieces]:
            continue
        flag, text = piece
        kind = SHORT.get(flag) or flag.removeprefix("--")
        if kind in DEFAULT_SELECTIONS:
            label = parse(registry, kind, text).label  # type: ignore[arg-type]  # it is a kind
            assert label in {spec.selections[kind].label for spec in request.specs}  # type: ignore[index]  # it is a kind
        elif flag == "--set":
            name, _, values = text.partition("=")
            option = Settings.option(name.strip())
            found = {getattr(spec.settings, option.name) for spec in request.specs}
            assert {option.parse(value.strip()) for value in values.split(",")} <= found
        elif flag in ("-s", "--seeds"):
            numbers = {int(n) for part in text.split(",") for n in part.split("-")}
            assert numbers <= {spec.seed for spec in request.specs}
        elif flag == "-o":
            assert request.out == Path(text)
        else:
            name = {"-j": "workers"}.get(flag, flag.removeprefix("--"))
            value = request.how[name]
            assert text in value if isinstance(value, tuple) else str(value) in (text, f"{text}.0")
