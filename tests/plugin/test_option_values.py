"""One value, one spelling: what an option accepts and how it writes it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlbench.errors import UsageError
from rlbench.plugin.option import Interval, Option

INT = Option(name="n", type="int", default=1, owner="loss 'x' (me 1)")
FLOAT = Option(name="x", type="float", default=1.0)
BOOL = Option(name="b", type="bool", default=True)
TEXT = Option(name="t", type="str", default="")
CHOICE = Option(name="c", type="str", default="left", choices=("left", "right"))


@pytest.mark.parametrize("text", ["100", "1e2", "1E2", "100.0", "+100", "1_00", "0100"])
def test_an_integer_has_many_spellings(text):
    value = INT.parse(text)
    assert value == 100
    assert type(value) is int
    assert INT.spell(value) == "100"


@pytest.mark.parametrize(
    "text",
    [
        "1.5",
        "abc",
        "",
        "nan",
        "inf",
        "true",
        "0x10",
        "1e-1",
        "1e999999999",
        "1,0",
        "none",
        "\u0661",
    ],
)
def test_what_is_no_integer_is_refused(text):
    with pytest.raises(UsageError, match=r"loss 'x' \(me 1\): n=.*: expected an integer"):
        INT.parse(text)


@pytest.mark.parametrize("text", ["\u0661", "0.\u0661", "\uff11"])
def test_digits_of_other_scripts_are_no_number(text):
    with pytest.raises(UsageError, match="expected a number"):
        FLOAT.parse(text)


@pytest.mark.parametrize("text", ["1e-4", "0.0001", "1.0E-4", ".0001", "1_0e-5"])
def test_a_number_has_many_spellings(text):
    assert FLOAT.parse(text) == 0.0001
    assert FLOAT.spell(FLOAT.parse(text)) == "0.0001"


@pytest.mark.parametrize(
    ("value", "spelling"),
    [
        (100.0, "100"),
        (0.5, "0.5"),
        (1e-5, "1e-5"),
        (1.5e-7, "1.5e-7"),
        (1e16, "1e16"),
        (1e300, "1e300"),
        (0.1 + 0.2, "0.30000000000000004"),
        (math.inf, "inf"),
        (-2.5, "-2.5"),
    ],
)
def test_numbers_are_spelled_shortly_and_exactly(value, spelling):
    assert FLOAT.spell(value) == spelling
    assert float(spelling) == value


@pytest.mark.parametrize("text", ["nan", "-nan", "inf", "1e999", "-inf", "abc", "", "true", "1..0"])
def test_what_is_no_finite_number_is_refused(text):
    with pytest.raises(UsageError, match="expected a number"):
        FLOAT.parse(text)


def test_minus_zero_is_zero():
    assert FLOAT.spell(FLOAT.parse("-0.0")) == "0"
    assert math.copysign(1, FLOAT.check(-0.0)) == 1


def test_infinity_needs_an_interval_that_holds_it():
    closed = Option(name="x", type="float", default=1.0, interval="(0, inf]")
    opened = Option(name="x", type="float", default=1.0, interval="(0, inf)")
    assert closed.parse("inf") == math.inf
    with pytest.raises(UsageError, match=r"x=inf: expected a number in \(0, inf\)"):
        opened.parse("inf")


@pytest.mark.parametrize(
    ("interval", "inside", "outside"),
    [
        ("[0, 1]", ["0", "0.5", "1"], ["-0.1", "1.1"]),
        ("(0, 1]", ["0.1", "1"], ["0"]),
        ("[0, 1)", ["0", "0.9"], ["1"]),
        ("(-inf, 0)", ["-1e300", "-1"], ["0", "1"]),
    ],
)
def test_ends_of_an_interval_belong_to_it_or_not(interval, inside, outside):
    option = Option(name="x", type="float", default=0.5, interval=interval)
    assert [option.parse(text) for text in inside] == [float(text) for text in inside]
    for text in outside:
        with pytest.raises(UsageError) as caught:
            option.parse(text)
        assert interval in str(caught.value)


@pytest.mark.parametrize("text", ["0, 1", "[1, 0]", "[a, b]", "[nan, 1]", "[0, 1, 2]", "", "[0 1]"])
def test_a_malformed_interval_is_refused(text):
    with pytest.raises(ValueError, match=r"interval|could not convert"):
        Interval.read(text)


@pytest.mark.parametrize("text", ["False", "false", "FALSE", "no", "off", "0", "Off"])
def test_false_has_many_spellings(text):
    assert BOOL.parse(text) is False
    assert BOOL.check(text) is False


@pytest.mark.parametrize("text", ["True", "yes", "on", "1"])
def test_true_has_many_spellings(text):
    assert BOOL.parse(text) is True


@pytest.mark.parametrize("value", ["maybe", "", "2", "none", "t", 1, 0, 1.0, None])
def test_what_is_neither_true_nor_false_is_refused(value):
    with pytest.raises(UsageError, match="expected true or false"):
        BOOL.check(value)


@pytest.mark.parametrize(
    "text",
    ["1E5", "007", "00.00", "nan", "true", "null", "None", "none", "x[1]", "a/b", "org:m", "é"],
)
def test_text_is_kept_letter_for_letter(text):
    assert TEXT.parse(text) == text
    assert TEXT.check(text) == text
    assert TEXT.spell(text) == text


@pytest.mark.parametrize("text", ["a,b", "a=b", "", " a", "a ", "a\nb", "a\x00b"])
def test_text_that_the_grammar_cannot_carry_is_refused(text):
    with pytest.raises(UsageError, match="expected text without commas"):
        TEXT.check(text)


def test_a_number_for_a_text_is_not_guessed():
    with pytest.raises(UsageError, match="not a int: put it in quotes"):
        TEXT.check(7)
    with pytest.raises(UsageError, match="not a bool"):
        TEXT.check(value=False)


def test_a_near_choice_is_offered():
    assert CHOICE.parse("right") == "right"
    with pytest.raises(
        UsageError, match="c=rigth: expected one of left, right; did you mean 'right'"
    ):
        CHOICE.parse("rigth")
    with pytest.raises(UsageError, match="c=RIGHT"):
        CHOICE.parse("RIGHT")


@pytest.mark.parametrize("kind", ["int", "float", "bool", "str"])
def test_none_is_a_value_only_of_an_optional_option(kind):
    optional = Option(name="x", type=kind, default=None, optional=True)
    assert optional.parse("none") is None
    assert optional.check(None) is None
    assert optional.spell(None) == "none"
    assert optional.allowed.endswith(" or none")
    with pytest.raises(UsageError, match="x=none"):
        Option(name="x", type=kind, default=1).check(None)


@pytest.mark.parametrize(
    ("option", "value", "right"),
    [
        (INT, 100.0, 100),
        (INT, np.int64(7), 7),
        (INT, np.float64(7.0), 7),
        (INT, "1e2", 100),
        (FLOAT, 5, 5.0),
        (FLOAT, np.float32(0.1), 0.1),
        (FLOAT, np.int64(3), 3.0),
        (FLOAT, "1e-4", 0.0001),
    ],
)
def test_numbers_from_elsewhere_become_canonical(option, value, right):
    found = option.check(value)
    assert found == right
    assert type(found) is type(right)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        (INT, True),
        (INT, 1.5),
        (INT, [1]),
        (INT, math.nan),
        (INT, math.inf),
        (FLOAT, True),
        (FLOAT, False),
        (FLOAT, math.nan),
        (FLOAT, math.inf),
        (FLOAT, np.nan),
        (FLOAT, 1j),
        (FLOAT, {}),
        (FLOAT, 10**400),
        (CHOICE, 1),
    ],
)
def test_values_of_another_type_are_refused(option, value):
    with pytest.raises(UsageError, match=f"option: {option.name}=|loss 'x'"):
        option.check(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_survives_its_spelling(value):
    assert FLOAT.parse(FLOAT.spell(FLOAT.check(value))) == value


@given(st.integers(-(10**17), 10**17))
def test_every_integer_survives_its_spelling(value):
    assert INT.parse(INT.spell(INT.check(value))) == value
