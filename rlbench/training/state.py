"""The state of components as plain data: what a checkpoint keeps of controller, reward and task.

Nothing is pickled and nothing is built from a file: values are copied, and everything with an
identity of its own (an object, a network, an optimiser, a random generator) is filled in place, in
a component that was built and prepared in the usual way. That works as long as these are the same
ones, at the same places, as when the run began; `Captured.anchors` lists them.
"""

from __future__ import annotations

import enum
import pathlib
import random
import re
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch

from rlbench.training.guarded import GuardedReward, GuardedTask
from rlbench.types import RewardContext

PLAIN = (type(None), bool, int, float, str, complex, bytes)
LISTS: dict[str, Callable[..., Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}
MAPS: dict[str, Callable[..., Any]] = {
    "dict": dict,
    "OrderedDict": OrderedDict,
    "Counter": Counter,
}
CONSTANT = (
    *(type, types.ModuleType, types.BuiltinFunctionType, np.ufunc, pathlib.PurePath),
    *(re.Pattern, torch.dtype, torch.device, torch.Size, range),
)
OURS = (GuardedTask, GuardedReward, RewardContext)  # given to a component, and kept by the run
MISSING = object()  # in the place of a counterpart that is not there


class Unsaveable(Exception):  # noqa: N818 - no error of the run: it goes on without checkpoints
    """Something can't be turned into plain data.

    Attributes:
        path: Where it is, such as ``reward.client``.
        what: What it is, for people.
    """

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path} is {what}")
        self.path, self.what = path, what


@dataclass(frozen=True)
class Captured:
    """Components as plain data.

    Attributes:
        content: Plain values, tensors and tuples that describe the rest.
        anchors: What has an identity of its own, by place: its type, or where it was met first.
    """

    content: Any
    anchors: Mapping[str, str]

    def check(self, beginning: Mapping[str, str]) -> None:
        """Compare with the anchors of the same components when the run began.

        Raises:
            Unsaveable: Something is new, or another; it could not be built again.
        """
        for path, what in self.anchors.items():
            if beginning.get(path) != what:
                raise Unsaveable(path, f"{what}, which was not there when the run began")


def capture(components: Mapping[str, Any]) -> Captured:
    """Describe the state of components.

    Args:
        components: By name, which begins every path.

    Returns:
        Their state; tensors are not copied.

    Raises:
        Unsaveable: There is something that is no plain data.
    """
    capture = _Capture()
    content = {}
    for name, component in components.items():
        try:
            content[name] = capture.value(component, name)
        except RecursionError:
            raise Unsaveable(name, "nested too deeply") from None
    return Captured(content, capture.anchors)


def restore(components: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """Put a state into components that were built the same way and have the same anchors.

    Args:
        components: By the names that `capture` was given; changed in place.
        content: `Captured.content`.

    Returns:
        The same components; what was a plain value has the value of then.
    """
    restore = _Restore()
    return {name: restore.value(content[name], value) for name, value in components.items()}


def _has_state_dict(value: object) -> bool:
    return all(callable(getattr(type(value), n, None)) for n in ("state_dict", "load_state_dict"))


def _constant(value: object) -> str | None:
    """Describe what is no state: it can't be changed, and is there again in the next process."""
    if isinstance(value, types.FunctionType) and value.__closure__ is None:
        return f"function {value.__module__}.{value.__qualname__}"
    if isinstance(value, type):
        return f"class {value.__module__}.{value.__qualname__}"
    if isinstance(value, (types.ModuleType, types.BuiltinFunctionType)):
        return f"{type(value).__name__} {value.__name__}"
    if isinstance(value, OURS):
        return type(value).__name__
    return repr(value) if isinstance(value, CONSTANT) else None


def _only_attributes(value: object) -> bool:
    """Whether all that an object knows is in its ``__dict__``."""
    if type(value) is types.SimpleNamespace:
        return True
    try:
        reduced: Any = object.__reduce_ex__(value, 2)
        kind, arguments, _, items, pairs = reduced
    except (TypeError, ValueError):  # a file, a lock, a generator; or it has its own idea
        return False
    slots = any(vars(base).get("__slots__") for base in type(value).__mro__)
    built = getattr(kind, "__name__", "") == "__newobj__" and len(arguments) == 1
    return built and items is None and pairs is None and not slots and hasattr(value, "__dict__")


class _Capture:
    def __init__(self) -> None:
        self.anchors: dict[str, str] = {}
        self._met: dict[int, tuple[int, str, Any]] = {}  # holds them, so that ids stay theirs

    def value(self, value: Any, path: str) -> Any:
        """Describe one value."""
        if type(value) in PLAIN:
            return value
        constant = _constant(value)
        if constant is not None:
            self.anchors[path] = constant
            return ("constant",)
        if isinstance(value, enum.Enum):
            self.anchors[path] = f"a member of {type(value).__module__}.{type(value).__qualname__}"
            return ("enum", value.name)
        if type(value) in (tuple, set, frozenset):  # they have no identity that could be missed
            name = type(value).__name__
            before = len(self.anchors)
            listed = [self.value(one, f"{path}[{i}]") for i, one in enumerate(value)]
            if name != "tuple" and len(self.anchors) > before:
                raise Unsaveable(path, "a set of objects")
            return (name, listed)
        if id(value) in self._met:
            number, first, _ = self._met[id(value)]
            if first:
                self.anchors[path] = f"the same as {first}"
            return ("again", number)
        number = len(self._met)
        tag, content = self._anchor(value, path, number) or self._rebuilt(value, path, number)
        return (tag, number, content)

    def _anchor(self, value: Any, path: str, number: int) -> tuple[str, Any] | None:
        """Describe what has to be filled in place; None if it is nothing of that kind."""
        name = f"a {type(value).__module__}.{type(value).__qualname__}"
        tag, content = "", cast("Any", None)
        self._met[id(value)] = (number, path, value)
        if isinstance(value, torch.Tensor):
            if not value.requires_grad:
                return None
            if not value.is_leaf:
                raise Unsaveable(path, "a tensor that carries the graph of its gradient")
            tag, name = "parameter", f"{name} of shape {tuple(value.shape)}"
            content = value.detach()
        elif isinstance(value, torch.Generator):
            tag, content = "torch", value.get_state()
        elif isinstance(value, random.Random):
            tag, content = "random", self.value(value.getstate(), path)
        elif isinstance(value, np.random.Generator):
            tag, content = "numpy", self.value(value.bit_generator.state, path)
        elif isinstance(value, np.random.RandomState):
            tag, content = "legacy", self.value(value.get_state(legacy=False), path)
        elif type(value) is defaultdict:
            tag, content = "defaultdict", self._pairs(value, path)
            self.value(value.default_factory, f"{path}.default_factory")
        elif _has_state_dict(value):
            try:
                described = value.state_dict()
            except Exception as error:
                what = f"{name}, whose state_dict raised {type(error).__name__}: {error}"
                raise Unsaveable(path, what) from error
            tag, content = "state", self.value(described, path)
        elif _only_attributes(value):
            tag = "object"
            content = {key: self.value(one, f"{path}.{key}") for key, one in vars(value).items()}
        else:
            return None
        self.anchors[path] = name
        return tag, content

    def _rebuilt(self, value: Any, path: str, number: int) -> tuple[str, Any]:
        """Describe what is built anew."""
        self._met[id(value)] = (number, "", value)
        if type(value) is torch.Tensor:
            return "tensor", value
        if isinstance(value, (np.ndarray, np.generic)):
            try:
                array = torch.from_numpy(np.array(value))
            except (TypeError, ValueError):  # text, objects, another byte order
                raise Unsaveable(path, f"an array of {value.dtype}") from None
            return ("array" if isinstance(value, np.ndarray) else "scalar"), array
        if type(value) is list:
            return "list", [self.value(one, f"{path}[{i}]") for i, one in enumerate(value)]
        if type(value) is deque:
            listed = [self.value(one, f"{path}[{i}]") for i, one in enumerate(value)]
            return "deque", (value.maxlen, listed)
        if type(value) in MAPS.values():
            return type(value).__name__, self._pairs(value, path)
        raise Unsaveable(path, f"a {type(value).__module__}.{type(value).__qualname__}")

    def _pairs(self, value: Mapping[Any, Any], path: str) -> list[tuple[Any, Any]]:
        pairs = []
        for key, one in value.items():
            before = len(self.anchors)
            described = self.value(key, f"{path}.keys")
            if len(self.anchors) > before:
                raise Unsaveable(path, f"a mapping from {type(key).__name__}")
            pairs.append((described, self.value(one, f"{path}[{key!r}]")))
        return pairs


class _Restore:
    def __init__(self) -> None:
        self._met: dict[int, Any] = {}

    def value(self, saved: Any, fresh: Any) -> Any:
        """Build one value, or fill its fresh counterpart."""
        if not isinstance(saved, tuple):
            return saved
        tag = saved[0]
        if tag == "constant":
            return fresh
        if tag == "enum":
            return type(fresh)[saved[1]]
        if tag == "again":
            return self._met[saved[1]]
        if tag in LISTS:
            counterparts = list(fresh) if tag == "tuple" and isinstance(fresh, tuple) else []
            return LISTS[tag](self._several(saved[1], counterparts))
        _, number, content = saved
        if tag in MAPS or tag in ("list", "deque", "tensor", "array", "scalar"):
            return self._rebuild(tag, number, content, fresh)
        self._met[number] = fresh
        self._fill(tag, content, fresh)
        return fresh

    def _rebuild(self, tag: str, number: int, content: Any, fresh: Any) -> Any:
        if tag in ("tensor", "array", "scalar"):
            array = content if tag == "tensor" else content.numpy()
            self._met[number] = array[()] if tag == "scalar" else array
        elif tag in MAPS:
            built = self._met[number] = MAPS[tag]()  # before its values: they may lead back to it
            built.update(self._mapping(content, fresh))
        else:
            maxlen, listed = content if tag == "deque" else (None, content)
            sequence: Any = deque(maxlen=maxlen) if tag == "deque" else []
            self._met[number] = sequence
            counterparts = list(fresh) if isinstance(fresh, (list, deque)) else []
            sequence.extend(self._several(listed, counterparts))
        return self._met[number]

    def _fill(self, tag: str, content: Any, fresh: Any) -> None:
        if tag == "parameter":
            with torch.no_grad():
                fresh.copy_(content)
        elif tag == "torch":
            fresh.set_state(content)
        elif tag == "random":
            fresh.setstate(self.value(content, None))
        elif tag == "numpy":
            fresh.bit_generator.state = self.value(content, None)
        elif tag == "legacy":
            fresh.set_state(self.value(content, None))
        elif tag == "state":
            fresh.load_state_dict(self.value(content, None))
        else:
            mapping, found = (fresh, content) if tag == "defaultdict" else (vars(fresh), content)
            pairs = found if tag == "defaultdict" else list(found.items())
            restored = self._mapping(pairs, dict(mapping))
            mapping.clear()
            mapping.update(restored)

    def _several(self, saved: list[Any], fresh: list[Any]) -> list[Any]:
        fresh = fresh + [MISSING] * (len(saved) - len(fresh))
        return [self.value(one, fresh[i]) for i, one in enumerate(saved)]

    def _mapping(self, pairs: list[tuple[Any, Any]], fresh: Any) -> dict[Any, Any]:
        counterparts = fresh if isinstance(fresh, Mapping) else {}
        found = {}
        for described, one in pairs:
            key = self.value(described, MISSING)
            found[key] = self.value(one, counterparts.get(key, MISSING))
        return found
