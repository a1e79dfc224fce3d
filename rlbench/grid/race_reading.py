"""What a file of plans of races says, key by key: whoever wrote it, a fault has a place and a name.

A plan that is read wrongly would hold no error rate. So nothing in it is guessed, and nothing that
is another type is turned into what was expected.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlbench.errors import UsageError
from rlbench.grid.race import Pair, RacePlan
from rlbench.grid.store import SCHEMA

_SHOWN = 40  # characters of what was found


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One race of a folder.

    Attributes:
        plan: Its plan.
        seen: Number of its runs that were complete before the plan: whoever has seen them may have
            planned by them.
    """

    plan: RacePlan
    seen: int


def plain(entry: Entry) -> dict[str, Any]:
    """Turn an entry into what is written."""
    plan = entry.plan
    return {
        "looks": plan.looks,
        "alpha": plan.alpha,
        "margin": plan.margin,
        "seeds": list(plan.seeds),
        "pairs": [{"cell": p.cell, "other": p.other, "sign": p.sign} for p in plan.pairs],
        "names": dict(plan.names),
        "seen": entry.seen,
    }


def entries(content: Mapping[str, Any]) -> tuple[Entry, ...]:
    """Read what `plain` made, in the object around it.

    Raises:
        UsageError: Somebody else wrote it; says where, what was found and what was expected.
    """
    if content.get("schema") != SCHEMA:
        found = _spelled(content["schema"]) if "schema" in content else "not there"
        raise UsageError(f"schema is {found}; this version of rlbench reads {SCHEMA}")
    races = _value(content, "races", "")
    _expect(isinstance(races, list), "races", races, "a list of plans")
    return tuple(_entry(race, f"races[{number}]") for number, race in enumerate(races))


def _entry(race: object, where: str) -> Entry:
    if not isinstance(race, Mapping):
        raise _other(where, race, "an object")
    seeds, pairs = _list(race, "seeds", where), _list(race, "pairs", where)
    for number, seed in enumerate(seeds):
        _expect(_is_whole(seed), f"{where}.seeds[{number}]", seed, "a whole number")
    looks, margin = _value(race, "looks", where), _value(race, "margin", where)
    none = "or null"
    _expect(looks is None or _is_whole(looks), f"{where}.looks", looks, f"a whole number {none}")
    _expect(margin is None or _is_number(margin), f"{where}.margin", margin, f"a number {none}")
    alpha, seen = _value(race, "alpha", where), _value(race, "seen", where)
    _expect(_is_number(alpha), f"{where}.alpha", alpha, "a number")
    _expect(_is_whole(seen) and seen >= 0, f"{where}.seen", seen, "a number of runs")
    try:
        plan = RacePlan(
            pairs=tuple(_pair(pair, f"{where}.pairs[{n}]") for n, pair in enumerate(pairs)),
            seeds=tuple(seeds),
            looks=looks,
            alpha=float(alpha),
            margin=None if margin is None else float(margin),
            names=_names(race, where),
        )
    except OverflowError as error:  # of a level that no number of seeds can reach
        raise _other(f"{where}.alpha", alpha, "an error rate in (0, 1)") from error
    except UsageError as error:
        said = str(error)
        raise error if said.startswith(where) else UsageError(f"{where}: {said}") from error
    return Entry(plan=plan, seen=seen)


def _pair(pair: object, where: str) -> Pair:
    if not isinstance(pair, Mapping):
        raise _other(where, pair, "an object")
    cell, other = (_value(pair, name, where) for name in ("cell", "other"))
    for name, key in (("cell", cell), ("other", other)):
        _expect(isinstance(key, str) and key != "", f"{where}.{name}", key, "the key of a cell")
    _expect(cell != other, f"{where}.other", other, "another cell than its own")
    sign = _value(pair, "sign", where)
    _expect(_is_whole(sign) and sign in (1, -1), f"{where}.sign", sign, "1 or -1")
    return Pair(cell=cell, other=other, sign=sign)


def _names(race: Mapping[str, Any], where: str) -> dict[str, str]:
    names = _value(race, "names", where)
    if not isinstance(names, Mapping):
        raise _other(f"{where}.names", names, "an object")
    for key, name in names.items():
        _expect(isinstance(name, str), f"{where}.names.{key}", name, "text")
    return dict(names)


def _value(content: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in content:
        raise UsageError(f"{where}.{name} is not there".removeprefix("."))
    return content[name]


def _list(content: Mapping[str, Any], name: str, where: str) -> list[Any]:
    value = _value(content, name, where)
    if not isinstance(value, list) or not value:
        raise _other(f"{where}.{name}", value, "a list with something in it")
    return value


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    # an integer can be too large for a float
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and abs(value) <= sys.float_info.max  # type: ignore[arg-type]  # a number


def _expect(holds: bool, where: str, found: object, expected: str) -> None:  # noqa: FBT001 - a condition
    if not holds:
        raise _other(where, found, expected)


def _other(where: str, found: object, expected: str) -> UsageError:
    return UsageError(f"{where} is {_spelled(found)}, expected {expected}")


def _spelled(found: object) -> str:
    """Spell a value as JSON has it, as far as a message has room."""
    words = {None: "null", True: "true", False: "false"}
    if found is None or isinstance(found, bool):
        return words[found]
    if isinstance(found, Mapping):
        return "an object"
    text = repr(found)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
