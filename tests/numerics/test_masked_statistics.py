import math
import statistics

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlbench import masked

NAN = float("nan")


def test_sums_and_means_ignore_what_is_under_the_mask():
    x = torch.tensor([[1.0, 3, NAN], [5, math.inf, -math.inf]])
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]]).bool()
    assert masked.total(x, mask).item() == 9
    assert masked.mean(x, mask).item() == 3
    assert masked.mean(x, mask, 1).tolist() == [2, 5]
    # deviations -2, 0, 2: variance 8 / 2 or 8 / 3
    assert masked.standard_deviation(x, mask, ddof=1).item() == 2
    assert masked.standard_deviation(x, mask, ddof=0).item() == pytest.approx(math.sqrt(8 / 3))


def test_statistics_of_nothing_are_zero():
    x, empty = torch.full((2, 2), NAN), torch.zeros(2, 2, dtype=torch.bool)
    assert masked.total(x, empty) == 0
    assert masked.mean(x, empty) == 0
    assert masked.standard_deviation(x, empty, ddof=1) == 0
    assert torch.equal(masked.whiten(x, empty), torch.zeros(2, 2))


@pytest.mark.parametrize("width", [4, 50])
def test_whitening_by_hand(width):
    x = torch.full((2, width), 7.0)
    x[0, :2] = torch.tensor([1.0, 3])
    x[1, 0] = 5
    mask = torch.zeros(2, width, dtype=torch.bool)
    mask[0, :2] = mask[1, 0] = True
    result = masked.whiten(x, mask, ddof=0, eps=0)
    # mean 3, sd sqrt(8 / 3) = 1.633: -2 / 1.633, 0, 2 / 1.633
    assert result[0, :2].tolist() == pytest.approx([-1.2247449, 0])
    assert result[1, 0].item() == pytest.approx(1.2247449)
    assert torch.equal(result[~mask], torch.zeros(int((~mask).sum())))


@pytest.mark.parametrize("eps", [0.0, 1e-6])
@pytest.mark.parametrize("n", [1, 3, 16])
def test_whitening_equal_numbers_gives_exactly_zero(eps, n):
    x = torch.full((n, 1), 4.2)
    assert torch.equal(
        masked.whiten(x, torch.ones(n, 1, dtype=torch.bool), eps=eps), torch.zeros(n, 1)
    )


def test_whitening_keeps_nan_visible():
    x = torch.tensor([[1.0, NAN, 2.0]])
    assert masked.whiten(x, torch.ones(1, 3, dtype=torch.bool)).isnan().all()


def test_group_statistics_per_row_and_per_position():
    group = torch.tensor([5, -1, 5, -1])
    x = torch.tensor([[1.0, 2], [10, NAN], [3, 6], [30, NAN]])
    mask = torch.tensor([[1, 1], [1, 0], [1, 1], [1, 0]]).bool()
    assert masked.group_count(mask, group).tolist() == [[2, 2], [2, 0], [2, 2], [2, 0]]
    assert masked.group_mean(x, mask, group).tolist() == [[2, 4], [20, 0], [2, 4], [20, 0]]
    spread = masked.group_standard_deviation(x, mask, group, ddof=0)
    assert spread.tolist() == [[1, 2], [10, 0], [1, 2], [10, 0]]
    assert masked.group_constant(x, mask, group).tolist() == [
        [False, False],
        [False, True],
        [False, False],
        [False, True],
    ]


def test_a_constant_group_is_seen_through_rounding():
    x = torch.full((16,), 4.2)
    everywhere = torch.ones(16, dtype=torch.bool)
    same = torch.zeros(16, dtype=torch.int64)
    assert masked.group_constant(x, everywhere, same).all()
    assert not masked.group_constant(
        x.index_fill(0, torch.tensor(3), 4.2000003), everywhere, same
    ).any()


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.floats(-100, 100), st.booleans(), st.integers(-2, 2)), min_size=1, max_size=12
    )
)
def test_group_statistics_agree_with_a_plain_loop(rows):
    x = torch.tensor([r[0] for r in rows], dtype=torch.float64)
    mask = torch.tensor([r[1] for r in rows])
    group = torch.tensor([r[2] for r in rows])
    mean = masked.group_mean(x, mask, group)
    spread = masked.group_standard_deviation(x, mask, group, ddof=1)
    constant = masked.group_constant(x, mask, group)
    for i, (_, _, mine) in enumerate(rows):
        members = [value for value, live, other in rows if live and other == mine]
        assert mean[i].item() == pytest.approx(
            statistics.fmean(members) if members else 0, abs=1e-9
        )
        expected = statistics.stdev(members) if len(members) > 1 else 0
        assert spread[i].item() == pytest.approx(expected, abs=1e-6)
        assert constant[i].item() == (len(set(members)) < 2)
