"""Families whose comparisons have few or many pairs."""

from __future__ import annotations

import numpy as np
import pytest

from rlbench.stats import holm, max_t
from rlbench.stats.mixed import adjusted_by_pairs

D = np.random.default_rng(4).normal(0.8, 1, size=(8, 4))


def test_families_of_one_kind_are_those_of_the_methods() -> None:
    p = [0.01, 0.2, 0.03, 0.04]
    assert list(adjusted_by_pairs(p, [6] * 4, D)) == list(holm(p))
    assert list(adjusted_by_pairs(p, [8] * 4, D)) == list(max_t(D))


def test_each_group_gets_its_share() -> None:
    found = adjusted_by_pairs([0.5, 0.01, 0.5, 0.9], [8, 3, 8, 8], D)
    # one of four by t: 4/1 of its own p; three of four by flips: 4/3 of theirs
    assert found[1] == pytest.approx(0.04)
    assert found[[0, 2, 3]] == pytest.approx(np.minimum(max_t(D[:, [0, 2, 3]]) * 4 / 3, 1))


def test_a_comparison_of_few_pairs_makes_no_p_smaller() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        d = rng.normal(rng.uniform(0, 1.5), 1, size=(7, 2))
        p = rng.uniform(size=2)
        alone = adjusted_by_pairs(p, [7, 7], d)
        more = adjusted_by_pairs([*p, 0.97], [7, 7, 3], np.column_stack([d, np.zeros(7)]))
        assert (more[:2] >= alone).all()


def test_what_is_not_paired_is_never_flipped() -> None:
    found = adjusted_by_pairs([0.02], [0], np.zeros((5, 1)))
    assert list(found) == [0.02]


def test_shapes_have_to_fit() -> None:
    with pytest.raises(ValueError, match=r"\(2,\), pairs \(1,\), d \(8, 4\)"):
        adjusted_by_pairs([0.1, 0.2], [3], D)
