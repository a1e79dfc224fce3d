"""Where a short label stands beside a line, so that it touches no marker."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from rlbench.report.plots import lettering, style

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes

    Point = tuple[float, float]
    Box = tuple[float, float, float, float]

_AWAY = 0.05  # inches between a line and its label
_FAR = 1.8  # times as far, where there is no room beside it
_STEPS = 12  # points between two updates at which lines are looked at
_MARKER = 0.06  # inches from the middle of the largest marker to its edge


@dataclass(frozen=True, kw_only=True)
class Label:
    """A label that looks for a place.

    Attributes:
        text: One line.
        colour: Of the text.
        spots: Places in data that it may stand above or below, the best first.
    """

    text: str
    colour: str
    spots: tuple[Point, ...]


def between(xs: Iterable[float], ys: Iterable[float], most: int = 4) -> tuple[Point, ...]:
    """Give the middles between the first points of a line; the point itself if there is one."""
    points = list(zip(map(float, xs), map(float, ys), strict=True))[: most + 1]
    if len(points) == 1:
        return (points[0],)
    found = []
    for share in (0.5, 0.3, 0.7):
        found += [(x + share * (u - x), y + share * (v - y)) for (x, y), (u, v) in pairwise(points)]
    return tuple(found)


def write(
    axes: Axes,
    labels: Iterable[Label],
    markers: Iterable[Point],
    lines: Iterable[tuple[Iterable[float], Iterable[float]]],
    size: tuple[float, float],
) -> None:
    """Write each label where it touches no marker, label or line, as far as there is room.

    Args:
        axes: With its final limits.
        labels: In the order in which they choose.
        markers: In data; these count more than lines.
        lines: Values of both axes.
        size: Width and height of the axes, in inches, about.
    """
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()

    def inches(point: Point) -> Point:
        x, y = (point[0] - left) / (right - left), (point[1] - low) / (high - low)
        return x * size[0], y * size[1]

    taken = [_around(inches(marker), _MARKER, _MARKER) for marker in markers]
    crossed = [_around(inches(point), 0, 0) for xs, ys in lines for point in _along(xs, ys)]
    for label in labels:
        half = lettering.width_of(label.text, style.SIZE) / 2 + 0.02, style.LINE / 2
        away = half[1] + _AWAY
        choices = [
            (spot, side, _around((x, y + side * away), *half))
            for spot in label.spots
            for x, y in [inches(spot)]
            for side in (1, -1, _FAR, -_FAR)
        ]

        def cost(choice: tuple[Point, float, Box]) -> tuple[int, bool]:
            return _covered(choice[2], taken, size), _covered(choice[2], crossed, size) > 0

        spot, side, box = min(choices, key=cost)
        taken.append(box)
        style.write(
            axes,
            label.text,
            spot,
            away=(0, 72 * side * away),
            colour=label.colour,
            zorder=5,
            bbox=style.HALO,
        )


def _around(point: Point, half_width: float, half_height: float) -> Box:
    x, y = point
    return x - half_width, y - half_height, x + half_width, y + half_height


def _along(xs: Iterable[float], ys: Iterable[float]) -> Iterable[Point]:
    """Give points along a line, close to each other."""
    for (x, y), (u, v) in pairwise(zip(xs, ys, strict=True)):
        for step in range(_STEPS):
            yield x + step / _STEPS * (u - x), y + step / _STEPS * (v - y)


def _covered(box: Box, taken: Iterable[Box], size: tuple[float, float]) -> int:
    """Count what a box would cover; the edge of the axes counts as much as anything."""
    left, low, right, high = box
    outside = left < 0 or low < 0 or right > size[0] or high > size[1]
    covered = (
        left < other[2] and other[0] < right and low < other[3] and other[1] < high
        for other in taken
    )
    return sum(covered) + 3 * outside
