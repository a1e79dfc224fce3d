"""What the simulations share: a promise with what was measured, and its place in statistics.md."""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

ALPHA = 0.05
RHO = 0.7  # correlation between two cells at one seed
TARGET = Path(__file__).with_name("statistics.md")
_NEXT = "\n## What `rlbench "  # how the section of another program begins


@dataclass(frozen=True, kw_only=True)
class Line:
    """One promise with what was measured.

    Attributes:
        what: What was simulated.
        rate: Share of the simulations in which it happened.
        runs: Number of simulations.
        least: Smallest rate that keeps the promise.
        most: Largest rate that keeps it.
        note: What else was measured.
    """

    what: str
    rate: float
    runs: int
    least: float = 0.0
    most: float = 1.0
    note: str = ""

    @property
    def kept(self) -> bool:
        """Whether the promise was kept, but for two standard errors above ``most``."""
        return (
            self.least
            <= self.rate
            <= self.most + 2 * math.sqrt(self.most * (1 - self.most) / self.runs)
        )

    def __str__(self) -> str:
        promise = f"at least {self.least:g}" if self.least else f"at most {self.most:g}"
        if self.least == 0 and self.most == 1:
            promise = "none"
        error = math.sqrt(self.rate * (1 - self.rate) / self.runs)
        mark = "yes" if self.kept else "**no**"
        return f"| {self.what} | {self.rate:.3f} ± {error:.3f} | {promise} | {mark} | {self.note} |"


def report(
    heading: str,
    introduction: str,
    parts: Mapping[Callable[[int], Iterable[Line]], float],
    *,
    runs: int,
    about: str | None,
) -> int:
    """Simulate, print the lines, and write them as one section of the report.

    Args:
        heading: First line of the section; what follows below ``#`` has ``##``, and so on.
        introduction: What stands below it; ``{runs}`` is the number of simulations a line.
        parts: What measures, titled by its docstring, and how many simulations a line it makes
            of each that is asked for.
        runs: Simulations a line, if nobody asks for another number.
        about: The program's docstring.

    Returns:
        The exit code: 1 if a promise was broken.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--runs", type=int, default=runs, help="simulations a line")
    parser.add_argument("--output", type=Path, default=TARGET)
    arguments = parser.parse_args()
    text = [heading, "", introduction.format(runs=arguments.runs)]
    level = heading.partition(" ")[0] + "#"
    broken = 0
    for part, share in parts.items():
        title = (part.__doc__ or "").splitlines()[0].removeprefix("Measure ").rstrip(".")
        text += ["", f"{level} {title[0].upper()}{title[1:]}", ""]
        text += ["| what | rate | promise | kept | |", "|---|---|---|---|---|"]
        for line in part(max(round(share * arguments.runs), 1)):
            text.append(str(line))
            broken += not line.kept
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    before = arguments.output.read_text("utf-8") if arguments.output.exists() else ""
    arguments.output.write_text(replaced(before, heading, "\n".join(text)), encoding="utf-8")
    return int(broken > 0)


def replaced(before: str, heading: str, section: str) -> str:
    """Put a section in the place of the old one, or at the end; those of other programs stay."""
    head, found, rest = before.partition(heading)
    _, following, tail = rest.partition(_NEXT) if found else ("", "", "")
    parts = [head, section, following + tail]
    return "\n\n".join(part.strip("\n") for part in parts if part.strip("\n")) + "\n"
