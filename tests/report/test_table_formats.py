"""Tables for papers, pages and pull requests: valid, escaped once, with caption, notes and bold."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser

import pytest
from docutils import nodes
from docutils.core import publish_doctree

from rlbench.errors import UsageError
from rlbench.report.cells.cell import cells
from rlbench.report.tables.table import table
from rlbench.report.text import latex, layout, markdown

from .made_up import records

STEADY = [0.80, 0.79, 0.81, 0.82, 0.80]
WEAK = [0.30, 0.20, 0.35, 0.10, 0.20]
LIKE_NUMBERS = ["1e5", "2e3", "42924e28", "12345678", "01.00", "10.00", "inf", "nan", "80,443"]
ODD = ["a|b", "ppo_clip & 50%", "a\nb", "<b>&amp;", "*x*_y_`z`", "[0](1)", r"c:\d\|e", "$x^2$ #{~}"]
SHOWN_ODD = [name.replace("\n", r"\n") for name in ODD]


# what would begin a list, a field, a comment, a target, a doctest, or be a link
BLOCKS = ["-", "- a", "+", "1. a", "(a) b", "#. c", ":x: y", ">>> a", ".. note::", "a::", "__ z"]
BLOCKS += ["http://x.y/z_", "me@example.org", "<script>alert(1)</script>|{x}[y]*_a_", "==", "\\"]


def made(names: list[str], **more: object) -> str:
    scores = {name: [x + i / 1000 for x in STEADY] for i, name in enumerate(names)}
    return table(cells(records(scores)), **more)  # type: ignore[arg-type]  # as tests name them


def cells_of_markdown(line: str) -> list[str]:
    """Split a row as GitHub does: at bars that no backslash stands before; then read escapes."""
    assert line.startswith("| ")
    assert line.endswith(" |")
    parts = [part.strip() for part in re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]]
    parts = [part.replace(r"\|", "|") for part in parts]  # the table's own escape comes first
    return [re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", part) for part in parts]


class Tables(HTMLParser):
    """Rows of texts, with the tags and attributes that were met."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.met: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.met.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        self.text.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in self.open:
            self.text[tag][-1] += data
        if self.open and self.open[-1] in ("th", "td", "strong"):
            self.rows[-1][-1] += data


def test_markdown_shows_every_label_letter_for_letter_in_its_cell() -> None:
    body = made([*LIKE_NUMBERS, *ODD], format="github").split("\n\n")[0].splitlines()
    rows = [cells_of_markdown(line) for line in body if set(line) - set("|-: ")]
    assert len(rows) == 1 + len(LIKE_NUMBERS) + len(ODD)
    assert {len(row) for row in rows} == {len(rows[0])}
    assert {row[0] for row in rows[1:]} == {*LIKE_NUMBERS, *SHOWN_ODD}
    assert {len(line.split("|")) for line in body[:2]} == {len(rows[0]) + 2}


def test_markdown_rules_say_which_columns_stand_flush_right() -> None:
    header, rule = made(["a", "b"], format="github").splitlines()[:2]
    assert header.split("|")[1:3] == [" estimator ", "   n "]
    assert rule.split("|")[1:3] == [" --------- ", " --: "]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("group_gae:lam=0.9", "group_gae:lam=0.9"),
        ("_x_", r"\_x\_"),
        ("a*b", r"a\*b"),
        ("p < 0.05", "p < 0.05"),
        ("<class 'int'>", r"\<class 'int'>"),
        (r"a\nb", r"a\nb"),  # no mark of Markdown stands behind it
        (r"\*", r"\\\*"),
    ],
)
def test_markdown_escapes_what_would_be_read_and_nothing_else(text: str, escaped: str) -> None:
    assert markdown.escape(text) == escaped


def unescaped(text: str) -> str:
    """Take away what LaTeX sets letter for letter, commands included."""
    return re.sub(r"\\[&%$#_{}]|\\text[a-z]+\{\}", "", text)


@pytest.mark.parametrize("format_", ["latex", "latex_booktabs", "latex_longtable"])
def test_latex_is_whole_and_escaped_once(format_: str) -> None:
    text = made([*LIKE_NUMBERS, *ODD, "[x]", "*star"], format=format_)
    environment = "longtable" if format_ == "latex_longtable" else "tabular"
    start = text.index(rf"\begin{{{environment}}}")
    body = text[start : text.index(rf"\end{{{environment}}}")]
    columns = re.match(rf"\\begin\{{{environment}\}}\{{([lr]+)\}}", body)
    assert columns is not None
    lines = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert len(lines) == 1 + len(LIKE_NUMBERS) + len(ODD) + 2
    for line in lines:
        left = unescaped(line.removesuffix(r"\\"))
        assert left.count("&") == len(columns[1]) - 1
        assert not re.search(r"[%#_^~<>|]", left.replace("$\\pm$", ""))
        assert not line.startswith(("[", "*"))  # an option of the line break before
    assert r"ppo\_clip \& 50\%" in body
    assert r"\\_" not in text
    assert r"\textbackslash{}\_" not in text
    assert [r"\toprule" in body, r"\midrule" in body, r"\bottomrule" in body] == [True] * 3
    assert "±" not in text
    assert r"$\pm$95\%" in body
    balance = 0
    for brace in re.findall(r"[{}]", re.sub(r"\\[{}]", "", text)):
        balance += 1 if brace == "{" else -1
        assert balance >= 0
    assert balance == 0
    begun = re.findall(r"\\begin\{(\w+)\}", text)
    assert sorted(begun) == sorted(re.findall(r"\\end\{(\w+)\}", text))


def test_latex_has_a_caption_notes_and_bold() -> None:
    text = table(cells(records({"steady": STEADY, "weak": WEAK})), "latex")
    assert text.startswith("% needs \\usepackage{booktabs}\n\\begin{table}\n")
    assert r"\caption{score: the task's own, greedy" in text
    assert r"p \textless{} 0.05" in text
    assert r"steady & 5/5 & \textbf{0.804} &" in text
    assert r"weak & 5/5 & 0.230 &" in text
    assert "All rows: loss clip" in text
    assert text.endswith("\\end{table}")


def test_latex_text_is_set_letter_for_letter() -> None:
    assert latex.escape(r"50%_a&b#{x}~^\|<±>") == (
        r"50\%\_a\&b\#\{x\}\textasciitilde{}\textasciicircum{}\textbackslash{}\textbar{}"
        r"\textless{}$\pm$\textgreater{}"
    )


def test_html_has_caption_scopes_notes_and_bold_and_is_escaped_once() -> None:
    found = Tables(made([*LIKE_NUMBERS, *ODD], format="html"))
    header, *rows = found.rows
    assert {len(row) for row in rows} == {len(header)}
    assert {row[0] for row in rows} == {*LIKE_NUMBERS, *SHOWN_ODD}
    scopes = [attributes["scope"] for tag, attributes in found.met if tag == "th"]
    assert scopes == ["col"] * len(header) + ["row"] * len(rows)
    assert found.text["caption"][0].startswith("score: the task's own")
    found = Tables(table(cells(records({"steady": STEADY, "weak": WEAK})), "html"))
    assert found.text["strong"] == ["0.804"]
    assert any(text.startswith("Bold: no test shows") for text in found.text["p"])


def in_rst(text: str) -> tuple[list[str], list[list[str]]]:
    """Read reStructuredText as docutils does: its paragraphs, and the fields of its table."""
    document = publish_doctree(text, settings_overrides={"report_level": 1, "halt_level": 1})
    fields = [
        [entry.astext().replace("\x00", "") for entry in row.findall(nodes.entry)]
        for row in document.findall(nodes.row)
    ]
    return [node.astext().replace("\x00", "") for node in document.findall(nodes.paragraph)], fields


def test_rst_is_read_letter_for_letter() -> None:
    names = [*SHOWN_ODD, *LIKE_NUMBERS, *BLOCKS]
    text = made([*ODD, *LIKE_NUMBERS, *BLOCKS], format="rst")
    _, (header, *rows) = in_rst(text)
    assert header[0] == "estimator"
    assert {row[0] for row in rows} == set(names)
    assert {len(row) for row in rows} == {len(header)}


def test_what_stands_below_a_table_in_rst_is_read_letter_for_letter() -> None:
    made_up = records({"brittle*": [0.5, None, 0.7], "_x_`": WEAK[:3]})
    said, _ = in_rst(table(cells(made_up), "rst"))
    assert "Rows with *: failed seeds count with the task's floor in the score." in said
    assert any(line.startswith("seed 1 diverged: Diverged") for line in said)
    assert any(line.startswith("brittle*: 1 of 3 failed") for line in said)


@pytest.mark.parametrize("format_", ["jira", "mediawiki", "textile", "unsafehtml", "latex_raw"])
def test_markup_that_nobody_escapes_is_not_offered(format_: str) -> None:
    with pytest.raises(UsageError, match=f"unknown format '{format_}'"):
        made(["a"], format=format_)


@pytest.mark.parametrize("format_", layout.FORMATS)
def test_every_format_keeps_labels_and_does_not_crash(format_: str) -> None:
    text = made(LIKE_NUMBERS, format=format_)
    for name in LIKE_NUMBERS:
        assert name in text


def test_data_keep_names_and_digits() -> None:
    for format_, comma in (("csv", ","), ("tsv", "\t")):
        rows = list(
            csv.DictReader(
                io.StringIO(made([*LIKE_NUMBERS, *ODD], format=format_)), delimiter=comma
            )
        )
        assert {row["estimator"] for row in rows} == {*LIKE_NUMBERS, *ODD}
    document = json.loads(made([*LIKE_NUMBERS, *ODD], format="json"))
    assert {row["estimator"] for row in document["rows"]} == {*LIKE_NUMBERS, *ODD}
    first = sum(STEADY) / 5
    assert document["rows"][-1]["score"] == pytest.approx(first, rel=1e-15)


@pytest.mark.parametrize("name", ["优势估计", "グループ相対", "é", "x" * 150])
def test_columns_line_up_whatever_the_width_of_the_letters(name: str) -> None:
    from rlbench.report.text.folding import width_of

    for format_ in ("simple", "github"):
        lines = made([name, "ascii"], format=format_).split("\n\n")[0].splitlines()
        if format_ == "github":
            assert len({width_of(line) for line in lines}) == 1
        else:
            ends = [width_of(line[: line.index("5/5") + 3]) for line in lines[2:]]
            assert len(set(ends)) == 1
            assert ends[0] == width_of(lines[0][: lines[0].index(" n ") + 2])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-0.054", "$-$0.054"),
        ("+0.3", "$+$0.3"),
        ("-", "$-$"),
        ("0.00-0.26", "0.00--0.26"),
        ("[-0.1, +0.2]", "[$-$0.1, $+$0.2]"),
        ("group+clip", "group+clip"),
        ("2024-01-02", "2024-01-02"),
        ("a--b", "a-{}-b"),
    ],
)
def test_a_minus_in_latex_is_a_minus(text: str, expected: str) -> None:
    assert latex.escape_cell(text) == expected


def test_papers_hear_nothing_of_flags_and_files() -> None:
    for text, expected in (
        ("Left out for width: s (--max-width 0 shows all).", "Left out for width: s."),
        ("? undecided (with --margin: how many more)", "? undecided"),
        ("worse (p < 0.05); nothing is called equivalent without --margin.", "worse (p < 0.05)."),
        ("- seed 3 failed: it broke (seed 3: out/runs/a b/log.txt)", "- seed 3 failed: it broke"),
    ):
        assert latex.for_paper(text) == expected
