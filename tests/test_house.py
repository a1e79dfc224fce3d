"""The house rules that no linter knows."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    file
    for folder in ("rlbench", "plugins", "scripts")
    for file in (ROOT / folder).rglob("*.py")
    if "tests" not in file.parts
)
NAMES_OF_ALGORITHMS = re.compile(
    r"\b(gae|grpo|rloo|remax|opo|ppo|gspo|cispo|sapo|gmpo|ziegler|pid|gpg|max_rl|simple_po)\b"
)


def test_there_is_something_to_check() -> None:
    assert len(SOURCES) > 50


def test_files_stay_under_400_lines() -> None:
    long = {f.name: n for f in SOURCES if (n := len(f.read_text("utf-8").splitlines())) > 400}
    assert long == {}


def test_functions_stay_under_60_lines_without_their_docstring() -> None:
    long = []
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                documented = len((ast.get_docstring(node, clean=False) or "").splitlines())
                assert node.end_lineno is not None
                if node.end_lineno - node.lineno + 1 - documented > 60:
                    long.append(f"{file.name}: {node.name}")
    assert long == []


def test_no_module_is_named_after_nothing() -> None:
    assert [
        f.name for f in SOURCES if f.stem in {"utils", "util", "common", "helpers", "core"}
    ] == []


@pytest.mark.parametrize("wing", ["plugin", "training", "grid", "report"])
def test_no_wing_knows_an_algorithm_by_name(wing: str) -> None:
    """A component declares what it needs; nobody asks which one it is."""
    found = [
        f"{file.name}:{node.lineno}"
        for file in (ROOT / "rlbench" / wing).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Compare)
        for side in [node.left, *node.comparators]
        if isinstance(side, ast.Constant)
        and isinstance(side.value, str)
        and NAMES_OF_ALGORITHMS.search(side.value)
    ]
    assert found == []


def test_every_exception_to_a_rule_has_its_reason() -> None:
    bare = []
    for file in [*SOURCES, *(ROOT / "tests").rglob("*.py")]:
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            mark = re.search(r"#\s*(noqa|type: ignore)(?P<codes>[^#]*)(?P<rest>.*)", line)
            if mark and "test_house" not in file.name:
                reason = mark["codes"].partition(" - ")[2] or mark["rest"].lstrip("# ")
                if len(reason.split()) < 2:
                    bare.append(f"{file.name}:{number}")
    assert bare == []


def test_the_generated_parts_of_the_readme_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/readme.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
