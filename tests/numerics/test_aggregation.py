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
        ("token_mean_local", 12 / 7),  # one micro-batch
        ("token_sum", 12.0),  # 4 + 2 + 6
        ("seq_mean_token_mean", 2.0),  # (1 + 2 + 3) / 3
        ("seq_mean_token_sum", 4.0),  # (4 + 2 + 6) / 3
        ("seq_mean_token_sum_norm", 1.0),  # 4 / horizon
        ("token_sum_norm", 3.0),  # 12 / horizon
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


# token_mean_local depends on the split by definition.
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "token_mean_local"])
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


@pytest.mark.parametrize(
    ("mode", "left_out", "counted"),
    [
        ("seq_mean_token_mean", 2.0, 1.5),  # 6 / 3 and 6 / 4
        ("seq_mean_token_sum", 4.0, 3.0),  # 12 / 3 and 12 / 4
        ("seq_mean_token_sum_norm", 1.0, 0.75),  # the same over a horizon of 4
        ("prompt_mean", 2.1, 1.4),  # (6/5 + 6/2) over 2 and 3 groups
        ("token_mean_local", 2.1, 1.4),  # the same over 2 and 3 micro-batches
        ("token_mean", 12 / 7, 12 / 7),  # tokens are counted, not rows
        ("token_sum", 12.0, 12.0),
        ("token_sum_norm", 3.0, 3.0),
    ],
)
def test_rows_without_tokens_count_in_the_divisor_only_on_request(mode, left_out, counted):
    loss = torch.cat([LOSS, torch.full((1, 4), NAN)])
    options = {"horizon": 4, "group": torch.tensor([9, 9, -4, 5]), "parts": [2, 1, 1]}
    for count, expected in ((False, left_out), (True, counted)):
        found = aggregate(loss, ~loss.isnan(), mode, count_masked_rows=count, **options)
        assert found.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([3], 12 / 7),
        ([1, 1, 1], 2.0),  # (4/4 + 2/1 + 6/2) / 3
        ([2, 1], 2.1),  # (6/5 + 6/2) / 2
        ([1, 2], 11 / 6),  # (4/4 + 8/3) / 2
    ],
)
def test_the_local_mean_depends_on_the_split(parts, expected):
    found = aggregate(LOSS, MASK, "token_mean_local", parts=parts)
    assert found.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count_masked_rows", [False, True])
def test_weights_are_those_of_a_slow_loop(mode, count_masked_rows):
    generator = torch.Generator().manual_seed(7)
    mask = torch.rand(9, 5, generator=generator) < 0.4
    mask[3:6] = torch.tensor([False])  # a micro-batch and a group without a token
    mask[0, 0] = mask[8, 4] = True
    group, parts = [7, 7, 2, 4, 4, 4, 2, 7, 2], [3, 3, 2, 1]
    part = [0, 0, 0, 1, 1, 1, 2, 2, 3]
    loss = torch.rand(9, 5, generator=generator, dtype=torch.float64)
    tokens = [[loss[i, t].item() for t in range(5) if mask[i, t]] for i in range(9)]

    def mean_of_means(cells):
        """Mean over cells, each a list of losses, of the mean inside."""
        kept = [cell for cell in cells if cell or count_masked_rows]
        return sum(sum(cell) / max(len(cell), 1) for cell in kept) / len(kept)

    def joined(labels):
        names = sorted(set(labels))
        return [[x for i in range(9) if labels[i] == name for x in tokens[i]] for name in names]

    rows = 9 if count_masked_rows else sum(bool(row) for row in tokens)
    total = sum(map(sum, tokens))
    expected = {
        "token_mean": mean_of_means(joined([0] * 9)),
        "token_mean_local": mean_of_means(joined(part)),
        "token_sum": total,
        "seq_mean_token_mean": mean_of_means(tokens),
        "seq_mean_token_sum": total / rows,
        "seq_mean_token_sum_norm": total / rows / 11,
        "token_sum_norm": total / 11,
        "prompt_mean": mean_of_means(joined(group)),
    }[mode]
    found = aggregate(
        loss,
        mask,
        mode,
        11,
        torch.tensor(group),
        parts=parts,
        count_masked_rows=count_masked_rows,
    )
    assert found.item() == pytest.approx(expected, abs=1e-12)


def test_parts_must_add_up():
    with pytest.raises(UsageError, match="3"):
        weights(MASK, "token_mean_local", parts=[1, 1])


def test_masked_cells_are_selected_not_multiplied():
    """Ones over a batch of width 4 with 7 valid tokens: 7/7, where ROLL's token-mean has 12/7."""
    assert aggregate(torch.ones(3, 4), MASK, "token_mean").item() == pytest.approx(1, rel=1e-6)


def test_weights_keep_the_precision_they_are_asked_for():
    weight = weights(MASK, "token_mean", dtype=torch.float64)
    assert weight.sum().item() == pytest.approx(1, abs=1e-15)
    assert aggregate(LOSS.double(), MASK, "token_mean").dtype == torch.float64


def test_every_setting_of_the_trainer_is_a_mode():
    assert set(get_args(Aggregation)) == set(MODES)


def test_unknown_mode_names_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'token_mean'"):
        weights(MASK, "token-mean")


@pytest.mark.parametrize("mode", ["seq_mean_token_sum_norm", "token_sum_norm"])
@pytest.mark.parametrize("horizon", [None, 0])
def test_norm_needs_a_horizon(mode, horizon):
    with pytest.raises(UsageError, match="horizon"):
        weights(MASK, mode, horizon=horizon)


def test_prompt_mean_needs_groups():
    with pytest.raises(UsageError, match="group"):
        weights(MASK, "prompt_mean")
