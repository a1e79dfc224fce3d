"""What tables say of policies that training made no better."""

from __future__ import annotations

from rlbench.report.cells.cell import cells
from rlbench.report.tables.notes import notes

from .made_up import record


def said(**rows: tuple[float, float, float]) -> str:
    """Start, score and entropy of each row, at three seeds."""
    made = [
        record(seed, score, estimator=name, result={"score_start": start, "entropy": entropy})
        for name, (start, score, entropy) in rows.items()
        for seed in range(3)
    ]
    return " ".join(notes(cells(made), ["estimator"]))


def test_where_nothing_got_better_it_is_said() -> None:
    assert "All rows end no better than before training." in said(a=(0.5, 0.4, 1), b=(0.5, 0.5, 1))
    assert "no better than before" not in said(a=(0.5, 0.4, 1), b=(0.5, 0.51, 1))
    assert "The row ends no better than before training." in said(a=(0.5, 0.4, 1))


def test_collapsed_policies_are_named() -> None:
    text = said(a=(0.506, 0.0, 0.001), b=(0.5, 0.8, 0.3))
    assert (
        "a: its policies collapsed: entropy below 0.01 at every seed, score 0.506 before training, "
        "0.000 after." in text
    )
    # sure of what is right is no collapse
    assert "collapsed" not in said(a=(0.5, 1.0, 0.001), b=(0.5, 0.4, 0.5))


def test_nobody_knows_where_imported_policies_started() -> None:
    made = [record(seed, 0.5, estimator="a") for seed in range(3)]
    assert "before training" not in " ".join(notes(cells(made), ["estimator"]))
