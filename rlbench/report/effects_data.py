"""Effects as data for programs: every digit, gaps empty or null."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlbench.report.effects import Contrast, Effect, Effects
    from rlbench.report.family import Judgement
    from rlbench.stats import Interval


def effect_name(effect: Effect) -> str:
    """Name an effect: ``loss``, or ``estimator x loss``."""
    return " x ".join(effect.factors)


def contrast_name(contrast: Contrast) -> str:
    """Name a contrast: ``clip - pg``, or ``(clip - pg) at gae less at rloo``."""
    if len(contrast.levels) == 1:
        one, other = contrast.levels[0]
        return f"{one} - {other}"
    (one, other), (here, there) = contrast.levels
    return f"({one} - {other}) at {here} less at {there}"


def data(found: Sequence[Effects], format: str, notes: Sequence[str]) -> str:  # noqa: A002 - as in `tables.table`
    """Write the effects of all tasks for programs.

    ``csv`` and ``tsv`` hold one row a contrast. ``json`` is ``{"tasks": [...], "notes": [...]}``; a
    task has ``metric``, ``seeds``, ``level``, ``correction`` (``holm``, ``max_t`` or null),
    ``factors``, ``means``, ``effects`` (each with its ``p`` alone, its ``share`` of the variance
    between cells and its contrasts, as in csv) and ``partners``.

    Args:
        found: One entry a task.
        format: ``json``, ``csv`` or ``tsv``.
        notes: What a reader has to know, for ``json``.
    """
    if format == "json":
        document = {"tasks": [_task(one) for one in found], "notes": list(notes)}
        return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    rows = [
        {"task": one.grid.task or None, "effect": effect_name(effect), **_contrast(contrast)}
        for one in found
        for effect in one.effects
        for contrast in effect.contrasts
    ]
    buffer = io.StringIO()
    delimiter = "," if format == "csv" else "\t"
    names = ["task", "effect", "contrast", "partners", *_JUDGED]
    writer = csv.DictWriter(buffer, names, delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().removesuffix("\n")


_JUDGED = (
    "difference",
    "difference_low",
    "difference_high",
    "simultaneous_low",
    "simultaneous_high",
    "sd",
    "p_t",
    "p_adjusted",
    "verdict",
    "more_seeds",
    "reason",
)


def _task(found: Effects) -> dict[str, Any]:
    grid, family = found.grid, found.family
    return {
        "task": grid.task or None,
        "metric": grid.metric.name,
        "higher_is_better": grid.metric.higher,
        "seeds": list(grid.seeds),
        "unused_seeds": list(grid.unused),
        "level": family.level,
        "margin": family.margin,
        "contrasts": family.size,
        "correction": ("max_t" if family.joint else "holm") if family.size else None,
        "factors": {factor.name: list(factor.levels) for factor in grid.factors},
        "holes": [list(place) for place in grid.holes],
        "means": [
            {
                "factor": mean.factor,
                "level": mean.level,
                "partners": mean.partners,
                **_bounds("mean", mean.interval),
            }
            for mean in found.means
        ],
        "effects": [
            {
                "effect": effect_name(effect),
                "p": effect.p,
                "share": effect.share,
                "missing": effect.missing,
                "contrasts": [_contrast(contrast) for contrast in effect.contrasts],
            }
            for effect in found.effects
        ],
        "partners": [
            {
                "factor": partners.factor,
                "chosen_on": list(partners.chosen_on),
                "compared_on": list(partners.compared_on),
                "levels": [
                    {
                        "level": one.level,
                        "chosen": dict(zip(partners.others, one.chosen, strict=True)),
                        **_bounds("mean", one.interval),
                    }
                    for one in partners.levels
                ],
                "differences": [
                    {"contrast": f"{one} - {other}", **_judged(judged)}
                    for (one, other), judged in partners.differences.items()
                ],
            }
            for partners in found.partners
        ],
    }


def _contrast(contrast: Contrast) -> dict[str, Any]:
    return {
        "contrast": contrast_name(contrast),
        "partners": contrast.partners,
        **_judged(contrast.judgement),
    }


def _judged(judged: Judgement) -> dict[str, Any]:
    difference, simultaneous = judged.difference, judged.simultaneous
    return {
        **_bounds("difference", difference.interval if difference else None),
        "simultaneous_low": simultaneous.low if simultaneous else None,
        "simultaneous_high": simultaneous.high if simultaneous else None,
        "sd": difference.sd if difference else None,
        "p_t": difference.p if difference else None,
        "p_adjusted": judged.p,
        "verdict": judged.verdict,
        "more_seeds": judged.more,
        "reason": judged.reason or None,
    }


def _bounds(name: str, interval: Interval | None) -> dict[str, float | None]:
    """An estimate with its bounds; a degenerate interval has none."""
    certain = interval is not None and interval.half_width is not None
    return {
        name: interval.mid if interval else None,
        f"{name}_low": interval.low if interval and certain else None,
        f"{name}_high": interval.high if interval and certain else None,
    }
