"""Command lines and experiment files for tests, with what they mean worked out the slow way."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from rlbench.training.settings import Settings
from rlbench.training.spec import DEFAULT_SELECTIONS

# kind -> what is written -> name and the options that are written, in one spelling
KINDS: dict[str, dict[str, tuple[str, dict[str, str]]]] = {
    "estimator": {
        "group": ("group", {}),
        "grpo": ("group", {}),
        "gae": ("gae", {}),
        "gae:lam=0.90": ("gae", {"lam": "0.9"}),
        "gae:lam=9e-1": ("gae", {"lam": "0.9"}),
        "gae:lam=0.95": ("gae", {"lam": "0.95"}),
        "rloo": ("rloo", {}),
    },
    "loss": {
        "clip": ("clip", {}),
        "ppo_clip:eps=.1": ("clip", {"eps": "0.1"}),
        "clip:eps=0.1": ("clip", {"eps": "0.1"}),
        "clip:eps=0.2": ("clip", {"eps": "0.2"}),
        "pg": ("pg", {}),
    },
    "kl": {
        "none": ("none", {}),
        "fixed": ("fixed", {}),
        "fixed:coef=0.5": ("fixed", {"coef": "0.5"}),
    },
    "task": {"addition": ("addition", {}), "sort": ("sort", {})},
}
# name and option -> its default, in one spelling
DEFAULTS = {("gae", "lam"): "0.95", ("clip", "eps"): "0.2", ("fixed", "coef"): "0.1"}
SETTINGS: dict[str, dict[str, Any]] = {
    "lr": {"1e-3": 0.001, "0.0010": 0.001, "3E-4": 0.0003},
    "updates": {"60": 60, "6e1": 60, "60.0": 60, "7": 7},
    "epochs": {"1": 1, "2": 2, "03": 3},
    "top_p": {"0.9": 0.9, "1": 1.0},
    "precision": {"float64": "float64", "float32": "float32"},
    "base_seed": {"none": None, "3": 3},
}
SEEDS = {"0": [0], "007": [7], "0-2": [0, 1, 2], "4,0,4": [4, 0], "1,3-4": [1, 3, 4]}
FLAGS = {"estimator": ("-e", "--estimator"), "loss": ("-l", "--loss"), "kl": ("-k", "--kl")}
FLAGS |= {"task": ("-t", "--task")}

Cell = tuple[tuple[str, Any], ...]
Column = dict[str, list[str]]


def meaning(name: str, text: str) -> Any:
    """What a value is in a run: a label, or the value of a setting."""
    if name not in KINDS:
        return SETTINGS[name][text]
    component, options = KINDS[name][text]
    told = [f"{o}={v}" for o, v in options.items() if DEFAULTS[component, o] != v]
    return ":".join([component, *told])


def matches(name: str, found: Any, text: str) -> bool:
    """Whether a value of a run is among those that an exclusion names."""
    if name not in KINDS:
        return bool(found == SETTINGS[name][text])
    component, options = KINDS[name][text]
    label, _, told = found.partition(":")
    values = dict(part.split("=") for part in told.split(",") if part)
    return label == component and all(
        values.get(o, DEFAULTS[component, o]) == v for o, v in options.items()
    )


@dataclass
class Asked:
    """An experiment file, or none, and flags beside it; all of them valid one by one."""

    in_file: bool
    axes: Column = field(default_factory=dict)
    zips: list[Column] = field(default_factory=list)
    excludes: list[Column] = field(default_factory=list)
    seeds: str | None = None
    flags: Column = field(default_factory=dict)
    flag_seeds: list[str] = field(default_factory=list)

    def cells(self) -> set[Cell] | None:
        """Every cell, or None where the whole is to be refused."""
        if any(set(self.flags) & set(zipped) for zipped in self.zips):
            return None
        cells: list[dict[str, Any]] = [{}]
        for name, texts in {**self.axes, **self.flags}.items():
            cells = [c | {name: meaning(name, text)} for c in cells for text in texts]
        for zipped in self.zips:
            rows = [
                dict(zip(zipped, row, strict=True)) for row in zip(*zipped.values(), strict=True)
            ]
            cells = [c | {n: meaning(n, t) for n, t in row.items()} for c in cells for row in rows]
        defaults = {**DEFAULT_SELECTIONS, **Settings().values()}
        cells = [{**defaults, **cell} for cell in cells]
        kept = cells
        for exclude in self.excludes:
            hit = [
                c
                for c in cells
                if all(any(matches(n, c[n], t) for t in texts) for n, texts in exclude.items())
            ]
            if not hit and not set(exclude) & set(self.flags):
                return None
            kept = [cell for cell in kept if cell not in hit]
        return {tuple(sorted(cell.items(), key=lambda kv: kv[0])) for cell in kept} or None

    def numbers(self) -> list[int]:
        """The seeds."""
        if self.flag_seeds:
            return list(dict.fromkeys(n for text in self.flag_seeds for n in SEEDS[text]))
        return SEEDS[self.seeds] if self.seeds else [0, 1, 2, 3, 4]

    def words(self, choose: st.DrawFn) -> list[str]:
        """The command line, in any order, with short or long flags."""
        pieces = [
            [choose(st.sampled_from(FLAGS[name])), text]
            for name, texts in self.flags.items()
            if name in FLAGS
            for text in texts
        ]
        pieces += [
            ["--set", f"{name}={','.join(texts)}"]
            for name, texts in self.flags.items()
            if name not in FLAGS
        ]
        pieces += [[choose(st.sampled_from(["-s", "--seeds"])), text] for text in self.flag_seeds]
        pieces += [["grid.toml"]] if self.in_file else []
        # values of one axis keep their order; that of everything else is free
        return [word for piece in choose(st.permutations(pieces)) for word in piece]

    def toml(self, choose: st.DrawFn) -> str:
        """The experiment file, values as text or as what TOML has for them."""
        lines = []
        if self.seeds:
            text, numbers = json.dumps(self.seeds), json.dumps(SEEDS[self.seeds])
            lines.append(f"seeds = {choose(st.sampled_from([text, numbers]))}")
        for section, names in (("axes", KINDS), ("settings", SETTINGS)):
            lines.append(f"[{section}]")
            lines += self._lines({n: t for n, t in self.axes.items() if n in names}, choose)
        for header, tables in (("[[zip]]", self.zips), ("[[exclude]]", self.excludes)):
            for table in tables:
                lines += [header, *self._lines(table, choose, scalar=header != "[[zip]]")]
        return choose(st.sampled_from(["\n", "\r\n"])).join([*lines, ""])

    @staticmethod
    def _lines(table: Column, choose: st.DrawFn, *, scalar: bool = True) -> list[str]:
        lines = []
        for name, texts in table.items():
            values = [choose(st.sampled_from(_spellings(name, text))) for text in texts]
            one = scalar and len(values) == 1 and choose(st.booleans())
            lines.append(f"{name} = {values[0] if one else '[' + ', '.join(values) + ']'}")
        return lines


def _spellings(name: str, text: str) -> list[str]:
    """How a value may be written in TOML."""
    found = [json.dumps(text)]
    if name in KINDS:
        _, _, options = text.partition(":")
        told = ", ".join(
            f"{o} = {float(v)!r}" for o, v in (p.split("=") for p in options.split(",") if p)
        )
        found.append(
            "{" + ", ".join(filter(None, [f'name = "{text.partition(":")[0]}"', told])) + "}"
        )
    elif isinstance(SETTINGS[name][text], (int, float)):
        found.append(repr(SETTINGS[name][text]))
        found.append(repr(float(text)))
    return found


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    """Draw a file, or none, and flags."""

    def column(names: list[str], length: int | None = None, most: int = 2) -> Column:
        chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=3)) if names else []
        return {
            name: draw(
                st.lists(
                    st.sampled_from(sorted({**KINDS, **SETTINGS}[name])),
                    min_size=length or 1,
                    max_size=length or most,
                )
            )
            for name in chosen
        }

    names = [*KINDS, *SETTINGS]
    one = Asked(in_file=draw(st.booleans()))
    if one.in_file:
        one.axes = column(names)
        for _ in range(draw(st.integers(0, 2))):
            taken = {*one.axes, *(name for zipped in one.zips for name in zipped)}
            zipped = column([n for n in names if n not in taken], draw(st.integers(1, 3)))
            one.zips += [zipped] if zipped else []
        used = [*one.axes, *(name for zipped in one.zips for name in zipped)]
        for _ in range(draw(st.integers(0, 2))):
            exclude = column(used or names)
            one.excludes += [exclude] if exclude else []
        one.seeds = draw(st.sampled_from([None, *SEEDS]))
    one.flags = column(names)
    one.flag_seeds = draw(st.lists(st.sampled_from(sorted(SEEDS)), max_size=2))
    return one
