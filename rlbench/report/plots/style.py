"""One look for all figures: sizes, inks, and what tells cells apart in colour and without."""

from __future__ import annotations

import logging
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlbench.report.plots import lettering

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = 8.0  # points; nothing is smaller
LINE = SIZE * 1.25 / 72  # inches from one line of text to the next
INK, GREY, FAINT = "#222222", "#5a5a5a", "#e4e4e4"
WIDE = 4.5  # inches from which a figure is as wide as a page, not a column
EDGE = 0.04  # inches of white around everything

_CROWD = 50  # dots of one colour

# behind text that lies on lines
HALO = {"boxstyle": "square,pad=0.05", "fc": "white", "ec": "none", "alpha": 0.75}

# Okabe and Ito, "Color universal design" (2008), but for its yellow, which white paper swallows;
# the order keeps neighbours apart in lightness too
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D46")
FAILED = "X"  # the marker of a run that failed, and of no cell
_MARKERS = ("o", "s", "^", "D", "v", "P", "*", "h", "<", ">", "p")
_DASHES: tuple[Any, ...] = (
    "solid",
    (0, (4.5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (9, 2)),
    (0, (3.5, 1.2, 1.2, 1.2, 1.2, 1.2)),
    (0, (1.2, 2.6)),
)
_FILLS = ("full", "none", "left", "bottom", "right", "top")

# what a user's matplotlibrc could change
_OURS = (
    "agg.",
    "axes.",
    "errorbar.",
    "figure.",
    "font.",
    "grid.",
    "hatch.",
    "image.",
    "legend.",
    "lines.",
    "markers.",
    "patch.",
    "path.",
    "pdf.",
    "savefig.",
    "scatter.",
    "svg.",
    "text.",
    "xaxis.",
    "xtick.",
    "yaxis.",
    "ytick.",
)
_SETTINGS: dict[str, Any] = {
    "font.size": SIZE,
    "font.family": ["DejaVu Sans"],
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "axes.labelsize": SIZE,
    "axes.titlesize": SIZE,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "axes.titlelocation": "left",
    "axes.titlepad": 4,
    "xtick.labelsize": SIZE,
    "ytick.labelsize": SIZE,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "legend.fontsize": SIZE,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "legend.borderaxespad": 0.2,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.5,
    "hatch.color": "#b0b0b0",
    "svg.fonttype": "none",  # text that can be searched and read aloud, a third of the bytes
    "svg.hashsalt": "rlbench",
    "pdf.fonttype": 42,  # what journals accept
}


@dataclass(frozen=True, kw_only=True)
class Look:
    """What tells a cell from others: each of colour, marker and dashes would do.

    Attributes:
        colour: Of lines and markers.
        marker: Its shape.
        dash: How a line is broken.
        fill: How a marker is filled.
    """

    colour: str
    marker: str
    dash: Any
    fill: str = "full"

    def of_marker(self, size: float = 5.0) -> dict[str, Any]:
        """Give the keywords of a line whose markers are this look's."""
        hollow = self.fill == "none"  # filled with white, or lines would show through
        return {
            "color": self.colour,
            "marker": self.marker,
            "markersize": size,
            "fillstyle": "full" if hollow else self.fill,
            "markerfacecolor": "white" if hollow else self.colour,
            "markerfacecoloralt": "white",
            "markeredgewidth": 0.9,
        }


def look(position: int, group: int = 0) -> Look:
    """Give the look of a cell by its place in the canonical order.

    Args:
        position: Among those of its group; colours, markers and dashes repeat after 8, 11 and 7.
        group: The number of its group, which fills markers differently.
    """
    return Look(
        colour=_COLOURS[position % len(_COLOURS)],
        marker=_MARKERS[position % len(_MARKERS)],
        dash=_DASHES[position % len(_DASHES)],
        fill=_FILLS[group % len(_FILLS)],
    )


@contextmanager
def plain() -> Iterator[None]:
    """Draw with these settings, whatever the user's are, and without a word on stderr.

    A glyph that no font has is a warning of matplotlib; `output` spells such characters out.
    """
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        import matplotlib as mpl

        default = mpl.rcParamsDefault
        ours: Any = {name: default[name] for name in default if name.startswith(_OURS)}
        with mpl.rc_context(ours | _SETTINGS), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
            yield
    finally:
        logger.setLevel(level)


def new_figure(width: float, height: float, caption: str) -> Figure:
    """Make an empty figure with a caption below it.

    Args:
        width: In inches, of the whole.
        height: In inches, of what stands above the caption.
        caption: Of any length; it is wrapped.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    lines = lettering.wrap(caption, width - 2 * EDGE, SIZE)
    below = (len(lines) + 0.4) * LINE + EDGE if lines else 0.0
    total = height + below
    figure = Figure(
        figsize=(width, total),
        layout=ConstrainedLayoutEngine(
            w_pad=EDGE, h_pad=EDGE, rect=(0, below / total, 1, height / total)
        ),
    )
    if lines:
        figure.text(
            EDGE / width,
            EDGE / total,
            "\n".join(lines),
            va="bottom",
            ha="left",
            color=GREY,
            linespacing=1.25,
        ).set_in_layout(False)
    return figure


def quiet_axes(axes: Axes, *, grid: str = "") -> None:
    """Put a faint grid behind everything, along ``"x"``, ``"y"`` or neither."""
    axes.set_axisbelow(True)
    if grid == "x":
        axes.xaxis.grid(visible=True, color=FAINT, linewidth=0.6)
    elif grid == "y":
        axes.yaxis.grid(visible=True, color=FAINT, linewidth=0.6)


def write(
    axes: Axes,
    text: str,
    place: tuple[float, float],
    *,
    away: tuple[float, float] = (0.0, 0.0),
    align: tuple[Any, Any] = ("center", "center"),
    colour: str = INK,
    coords: Any = "data",
    **more: Any,
) -> None:
    """Write text near a place, inside the axes or beside them.

    Args:
        axes: The axes.
        text: Of any number of lines.
        place: In data, or as ``coords`` say.
        away: From there, in points, to the right and up.
        align: What of the text stands there, horizontally and vertically.
        colour: Of the text.
        coords: See `matplotlib.axes.Axes.annotate`.
        **more: Other properties of the text.
    """
    axes.annotate(
        text,
        place,
        xycoords=coords,
        xytext=away,
        textcoords="offset points",
        ha=align[0],
        va=align[1],
        color=colour,
        annotation_clip=False,
        **more,
    )


def dots(number: int) -> dict[str, Any]:
    """Give the keywords of so many small dots; a crowd of them is an image in SVG and PDF."""
    return {
        "linestyle": "none",
        "marker": "o",
        "markersize": 3,
        "markeredgewidth": 0,
        "alpha": 0.55 if number <= _CROWD else 0.25,
        "rasterized": number > _CROWD,
    }


def cross(colour: str, size: float) -> dict[str, Any]:
    """Give the keywords of the mark of a run that failed."""
    return {
        "color": colour,
        "marker": FAILED,
        "markersize": size,
        "markeredgecolor": "white",  # or it would be lost on a line of its colour
        "markeredgewidth": 0.6,
        "linestyle": "none",
    }


def dark(colour: str) -> str:
    """Darken a colour until text in it can be read on white."""
    from matplotlib.colors import to_hex, to_rgb

    red, green, blue = to_rgb(colour)
    while luminance((red, green, blue)) > 0.17:  # a contrast of 4.7 to 1
        red, green, blue = 0.93 * red, 0.93 * green, 0.93 * blue
    return to_hex((red, green, blue))


def luminance(rgb: tuple[float, float, float]) -> float:
    """Compute the relative luminance of a colour (WCAG 2.1): 0 black, 1 white."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def plain_numbers(axes: Axes) -> None:
    """Write 0.5, 1 and 2 on a logarithmic axis, where matplotlib would write powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
