"""Docstrings as text for a terminal."""

from __future__ import annotations

import textwrap

import pytest

from rlbench.report.text.prose import layout, sections, two_columns, wrap


def shown(documentation: str, width: int = 40) -> str:
    found = sections(textwrap.dedent(documentation).strip())
    return "\n\n".join(filter(None, (layout(t, b, width) for t, b in found.items())))


def test_sections_have_titles_and_arguments_are_left_out() -> None:
    text = shown(
        """
        Do it.

        See: Somebody, "A Paper"
        (https://example.org).

        Differs: others do not.

        Args:
            x: One thing,
                on two lines.

            y: Another, after a blank line.

        Returns:
            Something.

        Raises:
            UsageError: Never.
            ValueError: Now and
                then.

        One more paragraph of the description.
        """
    )
    assert text == textwrap.dedent(
        """\
        description
          Do it.

          One more paragraph of the description.

        see
          Somebody, "A Paper"
          (https://example.org).

        differs
          others do not.

        returns
          Something.

        raises
          UsageError  Never.
          ValueError  Now and then."""
    )


def test_prose_is_wrapped_and_formulas_are_not() -> None:
    text = shown(
        """
        A sentence that is too long for a line of forty columns.

        ``kl > 2:   coef <- 2 * coef``

        ``kl < 1:   coef <- coef / 2``

        and ``some inline code that stays`` together.
        """
    )
    assert text == textwrap.dedent(
        """\
        description
          A sentence that is too long for a line
          of forty columns.

            kl > 2:   coef <- 2 * coef
            kl < 1:   coef <- coef / 2

          and `some inline code that stays`
          together."""
    )


def test_tables_that_fit_examples_and_code_stay_as_they_are() -> None:
    documentation = """
        Before.

        ====  ========================
        name  a column
        ====  ========================
        a     b
        ====  ========================

        >>> f(1,   2)
        3

            code   with spaces
        """
    assert shown(documentation) == "description\n" + textwrap.indent(
        textwrap.dedent(documentation).strip(), "  "
    )


def test_code_in_a_table_keeps_its_columns() -> None:
    table = "=====  ====\n``a``  b\nlong   c\n=====  ===="
    assert shown(table).splitlines()[2:4] == ["  `a`    b", "  long   c"]


def test_a_table_that_is_too_wide_becomes_a_list_of_rows() -> None:
    text = shown(
        """
        ===== ============ =========================
        name  value        what it is
        ===== ============ =========================
        one   a short text ``x``, and in words: a
                           long text of two lines
        two                nothing much
        ===== ============ =========================
        """
    )
    assert text == textwrap.dedent(
        """\
        description
          name  value
                what it is
          one   a short text
                `x`, and in words: a long text
                of two lines
          two   nothing much"""
    )


def test_a_formula_that_is_too_wide_goes_on_below() -> None:
    text = shown("``a_long_name = another_long_name + yet_another_long_name``")
    assert text.splitlines()[1:] == [
        "    a_long_name = another_long_name +",
        "        yet_another_long_name",
    ]


def test_code_wider_than_the_line_is_wrapped_like_prose() -> None:
    assert wrap("``one two three four``", 12) == ["`one two", "three four`"]


def test_items_of_a_list_hang() -> None:
    text = shown("- the first item of this list is long\n  and goes on\n- the second")
    assert text.splitlines()[1:] == [
        "  - the first item of this list is long",
        "    and goes on",
        "  - the second",
    ]


@pytest.mark.parametrize(
    "metrics",
    [
        "``clipped``, tokens at a bound; ``moved``, all\n    others.",
        "clipped: tokens at a bound\n    moved: all others.",
    ],
)
def test_metrics_told_with_the_returned_value_are_listed(metrics: str) -> None:
    text = shown(f"Do it.\n\nReturns:\n    A loss. Metrics: {metrics}\n")
    assert text.endswith(
        "returns\n  A loss.\n\nmetrics\n  clipped  tokens at a bound\n  moved    all others."
    )


def test_metrics_in_free_text_stay_text() -> None:
    text = shown("Returns:\n    Metrics: as those of ``clip``.")
    assert text == "metrics\n  as those of `clip`."


def test_names_can_be_given_more_room_than_they_need() -> None:
    assert two_columns([("a", "b")], 60, 4) == "  a     b"


def test_names_too_long_for_their_column_have_a_line_of_their_own() -> None:
    name = "n" * 30
    assert two_columns([("a", "b"), (name, "c")], 60).splitlines() == [
        f"  a{' ' * 29}b",
        f"  {name}",
        f"{' ' * 32}c",
    ]
