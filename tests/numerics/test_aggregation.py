from typing import get_args

import pytest
import torch

from rlbench.aggregation import MODES, aggregate, weighted_sum, weights
from rlbench.errors import UsageError
from rlbench.training.settings import Aggregation

NAN = float("nan")
# Lengths 4, 1 and 2; what is under the mask is NaN.
LOSS = torch.tensor([[1.0, 1, 1, 1], [2, NAN, NAN, NAN], [3, 3, NAN, NAN]])
MASK = ~LOSS.isnan()


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("token_mean", 12 / 7),  # (4 + 2 + 6) / 7
        ("seq_mean_token_mean", 2.0),  # (1 + 2 + 3) / 3
        ("seq_mean_token_sum", 4.0),  # (4 + 2 + 6) / 3
        ("seq_mean_token_sum_norm", 1.0),  # 4 / horizon
        ("prompt_mean", 2.1),  # (6 / 5 + 6 / 2) / 2 with rows 0 and 1 in one group
    ],
)
def test_each_mode_has_its_value(mode, expected):
    group = torch.tensor([9, 9, -4])
    result = aggregate(LOSS, MASK, mode, horizon=4, group=group)
    assert result.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("mode", "expected"),
    # A: 4 tokens of loss 1, B: 1 token of loss 3
    [("token_mean", 7 / 5), ("seq_mean_token_mean", (1 + 3) / 2)],
)
def test_token_mean_is_not_sequence_mean(mode, expected):
    loss = torch.tensor([[1.0, 1, 1, 1], [3, 0, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0]]).bool()
    assert aggregate(loss, mask, mode).item() == pytest.approx(expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_micro_batches_do_not_change_the_gradient(mode, size):
    mask = torch.tensor([[1, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 1], [1, 0, 1]]).bool()
    group = torch.tensor([0, 1, 0, 1, 2, 2])
    x = torch.linspace(-1, 1, 18, dtype=torch.float64).reshape(6, 3).requires_grad_()
    aggregate(x.square(), mask, mode, horizon=5, group=group).backward()
    whole, x.grad = x.grad, None
    weight = weights(mask, mode, horizon=5, group=group, dtype=torch.float64)
    for start in range(0, 6, size):
        rows = slice(start, start + size)
        weighted_sum(x[rows].square(), weight[rows]).backward()
    torch.testing.assert_close(x.grad, whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_masked_cells_reach_neither_value_nor_gradient(mode):
    x = LOSS.clone().requires_grad_()
    aggregate(x, MASK, mode, horizon=4, group=torch.arange(3)).backward()
    assert torch.equal(x.grad != 0, MASK)
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("mode", MODES)
def test_no_valid_token_gives_zero_connected_to_the_graph(mode):
    x = torch.full((2, 3), NAN, requires_grad=True)
    empty = torch.zeros(2, 3, dtype=torch.bool)
    result = aggregate(x, empty, mode, horizon=4, group=torch.tensor([0, 1]))
    result.backward()
    assert result.item() == 0
    assert torch.equal(x.grad, torch.zeros(2, 3))


@pytest.mark.parametrize("mode", MODES)
def test_padding_and_rows_without_tokens_do_not_count(mode):
    wide = torch.nn.functional.pad(LOSS, (0, 46, 0, 2), value=NAN)
    group = torch.tensor([9, 9, -4, 5, 5])
    expected = aggregate(LOSS, MASK, mode, horizon=4, group=group[:3]).item()
    found = aggregate(wide, ~wide.isnan(), mode, horizon=4, group=group).item()
    assert found == pytest.approx(expected, rel=1e-6)


def test_weights_keep_the_precision_they_are_asked_for():
    weight = weights(MASK, "token_mean", dtype=torch.float64)
    assert weight.sum().item() == pytest.approx(1, abs=1e-15)
    assert aggregate(LOSS.double(), MASK, "token_mean").dtype == torch.float64


def test_every_setting_of_the_trainer_is_a_mode():
    assert set(get_args(Aggregation)) <= set(MODES)


def test_unknown_mode_names_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'token_mean'"):
        weights(MASK, "token-mean")


@pytest.mark.parametrize("horizon", [None, 0])
def test_norm_needs_a_horizon(horizon):
    with pytest.raises(UsageError, match="horizon"):
        weights(MASK, "seq_mean_token_sum_norm", horizon=horizon)


def test_prompt_mean_needs_groups():
    with pytest.raises(UsageError, match="group"):
        weights(MASK, "prompt_mean")
