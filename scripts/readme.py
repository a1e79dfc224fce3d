"""Write the generated parts of README.md, or check that they are as they would be written.

Usage: python scripts/readme.py [--check]

A part stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``. Commands run with the
built-in components alone, so that the text is the same whatever else is installed.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PART = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
FIRST = ("__init__.py", "hookspecs.py", "types.py")  # files to read first stand first


def rlbench(*arguments: str) -> str:
    """What a command prints on 80 columns, without plugins."""
    environment = {
        **os.environ,
        "COLUMNS": "80",
        "RLBENCH_DISABLE_PLUGINS": "research",
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "rlbench", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.rstrip()


def shell(*arguments: str) -> str:
    """A command and what it prints, fenced."""
    shown = " ".join(arguments)
    return f"```console\n$ rlbench {shown}\n{rlbench(*arguments)}\n```\n"


def tree() -> str:
    """Every file of the package with the first sentence of its docstring."""
    lines = []
    files = sorted(
        (ROOT / "rlbench").rglob("*.py"),
        key=lambda file: (
            len(file.relative_to(ROOT).parts),
            file.parent,
            FIRST.index(file.name) if file.name in FIRST else len(FIRST),
            file.name,
        ),
    )
    folder = None
    for file in files:
        if file.parent != folder:
            folder = file.parent
            lines.append(f"{folder.relative_to(ROOT)}/")
        docstring = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
        first = " ".join(docstring.split("\n\n")[0].split())
        lines.append(f"  {file.name:<18} {first.removesuffix('.')}")
    return "```\n" + "\n".join(lines) + "\n```\n"


PARTS = {
    "reference": lambda: shell("table", "results/reference"),
    "compare": lambda: shell("compare", "results/reference", "--baseline", "group+clip"),
    "list": lambda: shell("list"),
    "run-help": lambda: shell("run", "--help"),
    "settings": lambda: shell("list", "setting"),
    "tree": tree,
}


def written(text: str) -> str:
    """The README with every part made anew."""
    return PART.sub(lambda part: f"{part[1]}{PARTS[part[2]]()}{part[3]}", text)


def main() -> int:
    """Write or check."""
    text = README.read_text("utf-8")
    new = written(text)
    if "--check" in sys.argv[1:]:
        if new != text:
            print("README.md is out of date: run python scripts/readme.py", file=sys.stderr)
        return int(new != text)
    README.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
