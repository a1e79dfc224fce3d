"""Every pair of cells at once: the same as one pair at a time."""

from __future__ import annotations

import numpy as np
import pytest

from rlbench.stats import holm, max_t, paired_difference, unpaired_difference
from rlbench.stats.pairwise import pair_tests


def pairs_of(k: int) -> np.ndarray:
    return np.array(np.triu_indices(k, 1)).T


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_each_pair_is_what_one_pair_alone_gives(n: int) -> None:
    y = np.random.default_rng(n).normal(3.0, 1.0, size=(n, 4))
    found = pair_tests(y, pairs_of(4))
    for number, (i, j) in enumerate(pairs_of(4)):
        alone = paired_difference(y[:, i], y[:, j])
        assert found.n[number] == n
        assert found.testable[number]
        assert found.p[number] == pytest.approx(alone.p, rel=1e-12)
        assert found.difference[number] == pytest.approx(alone.interval.mid, rel=1e-12)


def test_up_to_six_seeds_holm_from_seven_max_t() -> None:
    y = np.random.default_rng(0).normal(size=(7, 3))
    d = np.stack([y[:, i] - y[:, j] for i, j in pairs_of(3)], axis=1)
    seven, six = pair_tests(y, pairs_of(3)), pair_tests(y[:6], pairs_of(3))
    assert (seven.joint, six.joint) == (True, False)
    assert seven.adjusted == pytest.approx(max_t(d))
    assert six.adjusted == pytest.approx(holm(six.p))


def test_few_seeds_of_one_pair_leave_the_method_of_the_others() -> None:
    y = np.random.default_rng(0).normal(size=(8, 3))
    present = np.ones((8, 3), dtype=bool)
    present[6:, 2] = False
    found = pair_tests(y, pairs_of(3), present)
    assert list(found.n) == [8, 6, 6]
    assert (found.joint, found.mixed) == (False, True)
    # one of three by flips, two by t: each group has its share of the error rate
    first = max_t((y[:, 0] - y[:, 1])[:, None])[0]
    assert found.adjusted[0] == pytest.approx(min(3 * first, 1))
    assert found.adjusted[1:] == pytest.approx(np.minimum(1.5 * holm(found.p[1:]), 1))


def test_a_task_of_tiny_scores_is_judged_beside_one_of_huge_ones() -> None:
    rng = np.random.default_rng(0)
    tiny, huge = rng.normal(size=(5, 2)) * 1e-24, rng.normal(size=(5, 2)) * 1e300
    both = pair_tests(np.hstack([tiny, huge]), [[0, 1], [2, 3]])
    assert both.testable.all()
    assert both.p[0] == pytest.approx(paired_difference(tiny[:, 0], tiny[:, 1]).p)
    assert both.difference[0] == pytest.approx((tiny[:, 0] - tiny[:, 1]).mean())


def test_only_common_seeds_count_and_nothing_is_read_where_nothing_is() -> None:
    # cell 0 at seeds 0 1 2, cell 1 at 1 2 3: d = 3 - 1 = 2, 5 - 2 = 3 at seeds 1 and 2
    y = np.array([[9.0, 77.0], [3.0, 1.0], [5.0, 2.0], [-88.0, 6.0]])
    present = np.array([[True, False], [True, True], [True, True], [False, True]])
    found = pair_tests(y, [[0, 1]], present)
    assert (found.n[0], found.difference[0]) == (2, 2.5)
    # t = 2.5 / (sd 0.70711 / sqrt(2)) = 5; with 1 degree of freedom p = 1 - 2 atan(5) / pi
    assert found.p[0] == pytest.approx(1 - 2 * np.arctan(5) / np.pi)
    assert found.p[0] == pytest.approx(paired_difference([3, 5], [1, 2]).p)


@pytest.mark.parametrize(
    ("first", "second", "tied"),
    [
        ([0.1, 0.2, 0.3], [0.1, 0.2, 0.3], True),
        ([0.3, 0.7], [0.1, 0.5], False),  # 0.2 but for rounding
        ([0.5, 0.5], [0.25, 0.25], False),
    ],
)
def test_no_spread_is_no_test(first: list[float], second: list[float], tied: bool) -> None:  # noqa: FBT001 - a column of the table above
    found = pair_tests(np.array([first, second]).T, [[0, 1]])
    assert not found.testable[0]
    assert (found.p[0], found.adjusted[0]) == (1.0, 1.0)
    assert found.tied[0] == tied
    assert not paired_difference(first, second).testable


def test_one_or_no_common_seed_is_no_test() -> None:
    y = np.array([[1.0, 2.0, 3.0], [4.0, 7.0, 9.0]])
    present = np.array([[True, True, False], [True, False, True]])
    found = pair_tests(y, pairs_of(3), present)
    assert list(found.n) == [1, 1, 0]
    assert not found.testable.any()
    assert not found.joint


def test_scale_and_order_of_cells_change_no_p() -> None:
    y = np.random.default_rng(3).normal(size=(5, 4))
    plain = pair_tests(y, pairs_of(4))
    for factor in (2.0**-900, 2.0**900):
        assert pair_tests(y * factor, pairs_of(4)).adjusted.tolist() == plain.adjusted.tolist()
    turned = pair_tests(y, pairs_of(4)[:, ::-1])
    assert turned.adjusted.tolist() == plain.adjusted.tolist()
    assert turned.difference.tolist() == (-plain.difference).tolist()
    backwards = pair_tests(y, pairs_of(4)[::-1])
    assert backwards.adjusted.tolist() == plain.adjusted[::-1].tolist()


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        pair_tests([[1.0, float("nan")]], [[0, 1]])
    with pytest.raises(ValueError, match="outside"):
        pair_tests([[1.0, 2.0]], [[0, 2]])
    with pytest.raises(ValueError, match="present has shape"):
        pair_tests([[1.0, 2.0]], [[0, 1]], [[True]])


def test_pairs_that_are_equal_have_false_claims_at_the_stated_rate() -> None:
    """Eight cells of one law, five and eight seeds: any claim in a table is a false one."""
    generator = np.random.default_rng(11)
    for n in (5, 8):
        tables = 400
        wrong = 0
        for _ in range(tables):
            luck = generator.normal(size=(n, 1))
            y = luck + generator.normal(size=(n, 8))
            wrong += bool((pair_tests(y, pairs_of(8)).adjusted < 0.05).any())
        # 0.05 and two standard errors of 400 tables
        assert wrong / tables <= 0.05 + 2 * (0.05 * 0.95 / tables) ** 0.5


def test_independent_cells_are_tested_by_welch_on_all_of_their_values() -> None:
    y = np.random.default_rng(0).normal(size=(9, 3))
    present = np.ones((9, 3), dtype=bool)
    present[5:, 1] = False
    found = pair_tests(y, pairs_of(3), present, [True, True, False])
    for number, (one, other) in enumerate([(y[:, 0], y[:5, 1]), (y[:, 0], y[:, 2])]):
        alone = unpaired_difference(one, other)
        assert found.p[number] == alone.p
        assert found.difference[number] == alone.interval.mid
    assert list(found.n) == [5, 9, 5]
    # none has enough pairs for flips: one family by Holm
    assert found.adjusted == pytest.approx(holm(found.p))
    assert not found.joint


def test_independent_cells_without_values_or_spread_have_no_test() -> None:
    y = np.array([[1.0, 2.0, 5.0], [1.0, 2.0, 6.0]])
    present = np.array([[True, True, False], [True, True, False]])
    found = pair_tests(y, [[0, 1], [0, 2]], present, [True, True])
    assert list(found.testable) == [False, False]
    assert list(found.n) == [2, 0]
    assert list(found.difference) == [-1.0, 0.0]
