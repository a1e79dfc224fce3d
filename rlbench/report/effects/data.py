"""Effects as data for programs: every digit, gaps empty or null."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from rlbench.report.tables.data import bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlbench.report.compare.family import Judgement
    from rlbench.report.effects.contrasts import Contrast, Effect, Effects, TaskEffects
    from rlbench.report.effects.partners import Partners
    from rlbench.stats import Difference


def effect_name(effect: Effect) -> str:
    """Name an effect: ``loss``, ``estimator x loss`` or ``estimator within loss``."""
    name = " x ".join(effect.factors)
    return f"{name} within {effect.within}" if effect.within else name


def contrast_name(contrast: Contrast) -> str:
    """Name a contrast: ``clip - pg``, ``(gae - rloo) x (clip - pg)`` or ``gae - rloo at clip``."""
    parts = [f"{one} - {other}" for one, other in contrast.levels]
    if len(parts) == 2:
        return f"({parts[0]}) x ({parts[1]})"
    return f"{parts[0]} at {contrast.at}" if contrast.at else parts[0]


def data(found: Effects, format: str, notes: Sequence[str]) -> str:  # noqa: A002 - as in `tables.table`
    """Write effects for programs.

    ``csv`` and ``tsv`` hold one row a contrast. ``json`` is ``{"level", "margin", "contrasts",
    "correction", "tasks", "notes"}``; ``correction`` is ``holm``, ``max_t`` or null. A task has
    ``metric``, ``seeds``, ``factors``, ``holes``, ``means``, ``effects`` (each with its ``p``
    alone, its ``share`` of the variance between cells and its contrasts, as in csv) and
    ``best_partners``.

    Args:
        found: The effects.
        format: ``json``, ``csv`` or ``tsv``.
        notes: What a reader has to know, for ``json``.
    """
    if format == "json":
        family = found.family
        document = {
            "level": family.level,
            "margin": family.margin,
            "contrasts": family.size,
            "correction": family.correction,
            "tasks": [_task(one) for one in found.tasks],
            "notes": list(notes),
        }
        return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    buffer = io.StringIO()
    delimiter = "," if format == "csv" else "\t"
    names = ["task", "effect", "contrast", "partners", *_JUDGED]
    writer = csv.DictWriter(buffer, names, delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_rows(found))
    return buffer.getvalue().removesuffix("\n")


_JUDGED = (
    "difference",
    "difference_low",
    "difference_high",
    "simultaneous_low",
    "simultaneous_high",
    "sd",
    "n",
    "p_t",
    "p_adjusted",
    "verdict",
    "more_seeds",
    "reason",
)


def _rows(found: Effects) -> Iterator[dict[str, Any]]:
    for one in found.tasks:
        for effect in one.effects:
            for contrast in effect.contrasts:
                name = effect_name(effect)
                yield {"task": one.grid.task or None, "effect": name, **_contrast(contrast)}


def _task(found: TaskEffects) -> dict[str, Any]:
    grid = found.grid
    return {
        "task": grid.task or None,
        "metric": grid.metric.name,
        "higher_is_better": grid.metric.higher,
        "normalised": grid.scaled,
        "seeds": list(grid.seeds),
        "unused_seeds": list(grid.lacking),
        "failed": {name: list(seeds) for name, seeds in grid.failed.items()},
        "left_out": dict(grid.unknown),
        "factors": {factor.name: list(factor.levels) for factor in grid.factors},
        "averaged_over": list(grid.averaged),
        "holes": [list(place) for place in grid.holes],
        "means": [
            {
                "levels": dict(zip(mean.factors, mean.levels, strict=True)),
                "partners": mean.partners,
                **bounds("mean", mean.interval),
            }
            for mean in found.means
        ],
        "effects": [
            {
                "effect": effect_name(effect),
                "factors": list(effect.factors),
                "within": effect.within or None,
                "p": effect.p,
                "share": effect.share,
                "forbidden_by_holes": effect.missing,
                "contrasts": [_contrast(contrast) for contrast in effect.contrasts],
            }
            for effect in found.effects
        ],
        "best_partners": [_partners(partners) for partners in found.partners],
    }


def _partners(partners: Partners) -> dict[str, Any]:
    return {
        "factor": partners.factor,
        "halves": [list(half) for half in partners.halves],
        "levels": [
            {
                "level": one.level,
                "chosen": [dict(zip(partners.others, way, strict=True)) for way in one.chosen],
                **bounds("mean", one.interval),
            }
            for one in partners.levels
        ],
        "differences": [
            {"contrast": f"best of {one} - best of {other}", **_difference(difference)}
            for (one, other), difference in partners.differences.items()
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
        **_difference(difference),
        "simultaneous_low": simultaneous.low if simultaneous else None,
        "simultaneous_high": simultaneous.high if simultaneous else None,
        "n": difference.interval.n if difference else None,
        "p_t": difference.p if difference else None,
        "p_adjusted": judged.p,
        "verdict": judged.verdict,
        "more_seeds": judged.more,
        "reason": judged.reason or None,
    }


def _difference(difference: Difference | None) -> dict[str, float | None]:
    interval = difference.interval if difference else None
    return {**bounds("difference", interval), "sd": difference.sd if difference else None}
