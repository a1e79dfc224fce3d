"""Figures of cells that nobody ran, and what can be read from a figure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from matplotlib.text import Annotation, Text

from rlbench.report.cells.cell import cells
from rlbench.report.plots import draw

from .made_up import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rlbench.report.cells.cell import Cell


def made(
    folder: Path,
    labels: Sequence[Mapping[str, Any]],
    *,
    seeds: int = 4,
    failed: Sequence[tuple[int, int]] = (),
    ended: Mapping[tuple[int, int], int] | None = None,
    points: int = 5,
) -> list[Cell]:
    """Make cells with curves; the score of a cell is 0.4 and a tenth for each before it.

    Args:
        folder: Where the curves go.
        labels: Of each cell, settings among them.
        seeds: Of each cell.
        failed: Cell and seed of runs that failed, at their third evaluation.
        ended: Evaluations of the runs that have fewer than the others.
        points: Evaluations of a run.
    """
    runs = []
    for number, names in enumerate(labels):
        settings = {name: value for name, value in names.items() if name == "lr"}
        kinds = {name: value for name, value in names.items() if name not in settings}
        for seed in range(seeds):
            bad = (number, seed) in failed
            score = 0.4 + 0.1 * number + 0.01 * seed
            place = folder / f"run-{number}-{seed}"
            place.mkdir(parents=True)
            stop = 3 if bad else (ended or {}).get((number, seed), points)
            rows = [f"{10 * n},{0.5 + n * (score - 0.5) / (points - 1)!r}" for n in range(stop)]
            (place / "evals.csv").write_text("\n".join(["update,score", *rows, ""]), "utf-8")
            one = record(
                seed,
                None if bad else score,
                settings=settings,
                result={} if bad else {"score_start": 0.5, "kl": 0.1 + 0.1 * number},
                **kinds,
            )
            runs.append(replace(one, folder=place, run_id=place.name))
    return cells(runs)


def grid(estimators: int, losses: int) -> list[dict[str, str]]:
    return [
        {"estimator": f"est{e}", "loss": f"loss{n}"}
        for e in range(estimators)
        for n in range(losses)
    ]


def written(figure: Figure) -> list[str]:
    """All that stands in a figure, but for numbers of axes."""
    found = [text for text in figure.findobj(Text) if text.get_visible()]
    return [text.get_text() for text in found if text.get_text()]


def caption(figure: Figure) -> str:
    return " ".join(figure.texts[0].get_text().split("\n"))


def lines_of(axes: Axes, marker: str) -> list[tuple[list[float], list[float]]]:
    return [
        (list(line.get_xdata()), list(line.get_ydata()))
        for line in axes.lines
        if line.get_marker() == marker
    ]


def notes_of(name: str, shown: Sequence[Cell], **options: Any) -> list[str]:
    heard: list[str] = []
    draw(name, shown, note=heard.append, **options)
    return heard


def rows_of(figure: Figure) -> list[str]:
    """Names at the left of the rows, from the top."""
    marks = [t for t in figure.axes[0].texts if isinstance(t, Annotation) and t.get_ha() == "right"]
    return [text.get_text() for text in sorted(marks, key=lambda text: text.xy[1])]


def bars(figure: Figure, width: float) -> list[list[float]]:
    """Ends of the intervals that are so thick, from the top."""
    lines = [line for line in figure.axes[0].lines if line.get_linewidth() == width]
    lines = [line for line in lines if line.get_marker() in ("None", None, "")]
    ordered = sorted(lines, key=lambda line: float(line.get_ydata()[0]))
    return [[float(x) for x in line.get_xdata()] for line in ordered]


def pairs_of(labels: Mapping[str, Sequence[float | None]], **more: Any) -> list[Cell]:
    return cells(
        [
            record(seed, score, estimator=name, **more)
            for name, scores in labels.items()
            for seed, score in enumerate(scores)
        ]
    )
