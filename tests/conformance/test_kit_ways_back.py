"""A loss may stop what went far enough, and must leave a way back to what went the wrong way."""

import pytest
import torch

from rlbench import masked
from rlbench.testing import checks
from rlbench.types import LossTerms


def failing(component):
    """Message of every rule that a loss breaks, by the rule's name."""
    found = {}
    for check in checks("loss", component):
        try:
            check()
        except AssertionError as error:
            found[check.rule.name] = str(error)
    return found


def parts(batch):
    ratio = masked.select((batch.logp - batch.old_logp).clamp(-20, 20), batch.mask).exp()
    return ratio, masked.select(batch.advantages, batch.mask)


def larger(batch):
    ratio, advantages = parts(batch)
    return LossTerms(torch.maximum(-advantages * ratio, -advantages * ratio.clamp(0.8, 1.2)))


def smaller(batch):
    ratio, advantages = parts(batch)
    return LossTerms(torch.minimum(-advantages * ratio, -advantages * ratio.clamp(0.8, 1.2)))


def clamped(batch):
    ratio, advantages = parts(batch)
    return LossTerms(-advantages * ratio.clamp(0.8, 1.2))


def clamped_below(batch):
    ratio, advantages = parts(batch)
    held = -advantages * ratio.clamp(min=0.8)
    return LossTerms(torch.where(advantages > 0, held, -advantages * ratio))


def clamped_above(batch):
    ratio, advantages = parts(batch)
    held = -advantages * ratio.clamp(max=1.2)
    return LossTerms(torch.where(advantages < 0, held, -advantages * ratio))


def pulled(batch):
    ratio, advantages = parts(batch)
    return LossTerms(-advantages * ratio + 2 * (ratio - 1).square())


def pushed(batch):
    ratio, advantages = parts(batch)
    return LossTerms(-advantages * ratio - 2 * (ratio - 1).square())


@pytest.mark.parametrize("component", [larger, pulled])
def test_a_loss_with_a_way_back_is_sound(component):
    assert failing(component) == {}


@pytest.mark.parametrize(
    ("component", "token", "told"),
    [
        (smaller, "a token of advantage 1 and ratio 0.61", "has no gradient. Of the free and the"),
        (clamped, "a token of advantage 1 and ratio 0.61", "has no gradient. Of the free and the"),
        (clamped_below, "a token of advantage 1 and ratio 0.61", "has no gradient. Of the free"),
        (clamped_above, "a token of advantage -0.5 and ratio 1.65", "has no gradient. Of the free"),
        # -A r - 2 (r - 1)² by r, at A = 1 and r = 0.61: -1 - 4 (0.61 - 1) = 0.57, above 0
        (
            pushed,
            "a token of advantage 1 and ratio 0.61",
            "is driven further away. Check the signs",
        ),
    ],
)
def test_a_loss_without_a_way_back_is_found(component, token, told):
    found = failing(component)
    assert found.keys() == {"pushed_back"}
    assert f"(module {__name__}) breaks 'pushed_back'" in found["pushed_back"]
    assert f": {token} {told}" in found["pushed_back"]
    assert found["pushed_back"].endswith("register with exceptions={'pushed_back': 'why'}.")
