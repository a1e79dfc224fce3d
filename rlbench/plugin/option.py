"""One option of a component, or one setting: its type, its range, its one spelling."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from numbers import Real
from typing import TYPE_CHECKING, Literal

from rlbench.errors import UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Value = int | float | str | bool | None

TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_BOOLEANS = {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE, False)}
_LONGEST_INT = 18  # digits; "1e999999999" must not fill the memory


@dataclass(frozen=True)
class Interval:
    """A range of numbers in the usual notation, such as ``(0, 1]`` or ``[1, inf)``."""

    low: float
    high: float
    low_closed: bool
    high_closed: bool

    @classmethod
    def read(cls, text: str) -> Interval:
        """Read the notation; ValueError if it isn't one or holds no number."""
        match = re.fullmatch(r"\s*([\[(])\s*([^\s,]+)\s*,\s*([^\s,]+)\s*([\])])\s*", text)
        if not match:
            raise ValueError(f"{text!r} is no interval such as '[0, 1]' or '(0, inf)'")
        interval = cls(float(match[2]), float(match[3]), match[1] == "[", match[4] == "]")
        if not interval.low <= interval.high or math.isnan(interval.low + interval.high):
            raise ValueError(f"{text!r} is an interval without any number in it")
        return interval

    def __contains__(self, value: float) -> bool:
        above = value > self.low or (self.low_closed and value == self.low)
        below = value < self.high or (self.high_closed and value == self.high)
        return above and below


@dataclass(frozen=True, kw_only=True)
class Option:
    """What the signature of a component says about one of its keyword-only parameters.

    Attributes:
        name: Name of the parameter.
        type: Type of its values.
        default: Value when nothing is said, in canonical form.
        optional: Whether None is a value, written ``none``.
        choices: All values, where they are few.
        interval: Range of a number, such as ``"(0, inf)"``; None means any finite number.
        doc: What the docstring says about it.
        owner: How messages speak of what has this option.
        elsewhere: Values that others have, in lower case, each with what to write here.
    """

    name: str
    type: Literal["int", "float", "str", "bool"]
    default: Value
    optional: bool = False
    choices: tuple[Value, ...] = ()
    interval: str | None = None
    doc: str = ""
    owner: str = "option"
    elsewhere: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def allowed(self) -> str:
        """The values, in words: ``a number in (0, inf) or none``."""
        if self.choices:
            text = "one of " + ", ".join(self.spell(choice) for choice in self.choices)
        else:
            text = {
                "int": "an integer",
                "float": "a number",
                "str": "text without commas and equals signs",
                "bool": "true or false",
            }[self.type]
        text += f" in {self.interval}" if self.interval else ""
        return text + (" or none" if self.optional else "")

    def parse(self, text: str) -> Value:
        """Read a value as it is written on the command line.

        Args:
            text: ``1e-4``, ``true``, ``none``; text options keep it letter for letter.

        Returns:
            The value in canonical form.

        Raises:
            UsageError: It is no value of this option. The message names the option, the value
                and what is allowed.
        """
        if self.optional and text == "none":
            return None
        try:
            value = _READERS[self.type](text)
        except ValueError:
            raise self._refusal(text) from None
        return self._within(value, text)

    def check(self, value: object) -> Value:
        """Check a value that comes from TOML or Python.

        Args:
            value: Text is read as on the command line. An integral float is an integer; a bool
                is no number.

        Returns:
            The value in canonical form.

        Raises:
            UsageError: As for `parse`.
        """
        if value is None and self.optional:
            return None
        if isinstance(value, str):
            return self.parse(value)
        if self.type == "bool" and isinstance(value, bool):
            return value
        is_number = not isinstance(value, bool) and isinstance(value, Real)
        if is_number and self.type in ("int", "float"):
            return self.parse(str(value))  # the shortest exact spelling, of numpy's numbers too
        raise self._refusal(value)

    def spell(self, value: Value) -> str:
        """Write a canonical value in the one way that labels and hashes use.

        Returns:
            Text that `parse` reads back as the same value: ``0.0001``, ``100``, ``true``, ``none``.
        """
        if value is None:
            return "none"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            mantissa, _, exponent = repr(value).partition("e")
            return mantissa.removesuffix(".0") + (f"e{int(exponent)}" if exponent else "")
        return str(value)

    def _within(self, value: Value, written: object) -> Value:
        """Refuse what has the right type and is outside the range."""
        if self.choices and value not in self.choices:
            raise self._refusal(written)
        if isinstance(value, float) and not math.isfinite(value) and not self.interval:
            raise self._refusal(written)
        if self.interval and value not in Interval.read(self.interval):  # type: ignore[operator]  # only numbers have an interval
            raise self._refusal(written)
        return value

    def _refusal(self, value: object) -> UsageError:
        written = "none" if value is None else value
        message = f"{self.owner}: {self.name}={written}: "
        if isinstance(value, str) and value.lower() in self.elsewhere:
            return UsageError(f"{message}write {self.elsewhere[value.lower()]}")
        message += f"expected {self.allowed}"
        if isinstance(value, str) and self.type == "str":
            near = nearest(value, map(str, self.choices))
            message += f"; did you mean {near!r}?" if near else ""
        elif self.type == "str" and not self.choices:
            message += f", not a {type(value).__name__}: put it in quotes"
        return UsageError(message)


def _read_int(text: str) -> int:
    if not text.isascii():  # Python reads the digits of all scripts
        raise ValueError(text)
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None
    if not number.is_finite() or number.adjusted() >= _LONGEST_INT or number != int(number):
        raise ValueError(text)
    return int(number)


def _read_float(text: str) -> float:
    if not text.isascii():
        raise ValueError(text)
    number = float(text)
    if math.isnan(number):
        raise ValueError(text)
    return number + 0.0  # turns -0.0 into 0.0


def _read_bool(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text.lower()]


def _read_str(text: str) -> str:
    """Keep text that the selection grammar can carry, letter for letter."""
    if not text.isprintable() or text != text.strip() or not text or set(text) & set(",="):
        raise ValueError(text)
    return text


_READERS: Mapping[str, Callable[[str], Value]] = {
    "int": _read_int,
    "float": _read_float,
    "bool": _read_bool,
    "str": _read_str,
}
