"""What a component hands back is checked, and the message says whose it is."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from rlbench.errors import ComponentError, Diverged
from rlbench.training import border
from rlbench.types import Advantage, LossTerms

rlbench_testing = pytest.importorskip("rlbench.testing")


@pytest.fixture
def rollout() -> Any:
    return rlbench_testing.make_rollout(
        reward=[1.0, 0.0], mask=[[1, 1, 1], [1, 1, 0]], values=[[0.0] * 3] * 2
    )


@pytest.fixture
def batch() -> Any:
    return rlbench_testing.make_batch(
        logp=[[-1.0, -2.0]], old_logp=[[-1.0, -2.0]], advantages=[[1.0, -1.0]], mask=[[1, 1]]
    )


def in_place(rollout: Any) -> Advantage:
    rollout.reward.sub_(rollout.reward.mean())
    return Advantage(torch.zeros(2, 3))


def behind_torchs_back(rollout: Any) -> Advantage:
    values = rollout.reward.numpy()
    values -= 5
    return Advantage(torch.zeros(2, 3))


FAULTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a value a row": (lambda _: Advantage(torch.zeros(2)), r"of shape \(2,\), expected .*\(2, 3\)"),
    "transposed": (lambda _: Advantage(torch.zeros(3, 2)), r"of shape \(3, 2\), expected"),
    "float64": (lambda _: Advantage(torch.zeros(2, 3, dtype=torch.float64)), "float64"),
    "nothing": (lambda _: None, "returned NoneType, expected an rlbench Advantage"),
    "a tensor": (lambda _: torch.zeros(2, 3), "returned Tensor"),
    "a list": (lambda _: Advantage([[0.0] * 3] * 2), "advantages is list"),  # type: ignore[arg-type]  # the fault under test
    "gradient": (lambda _: Advantage(torch.zeros(2, 3, requires_grad=True)), "detach"),
    "changed input": (in_place, "changed its input reward in place"),
    "changed behind torch's back": (behind_torchs_back, "changed its input reward in place"),
    "raises": (lambda _: 1 / 0, "raised ZeroDivisionError: division by zero"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_advantage_is_refused_and_its_owner_named(
    make_spec: Callable[..., Any], rollout: Any, fault: str
) -> None:
    estimator, message = FAULTS[fault]
    selection = make_spec(estimator="rloo").selections["estimator"]
    with pytest.raises(ComponentError, match=message) as caught:
        border.estimate(selection, lambda data, **_: estimator(data), rollout)
    assert "estimator 'rloo' (rlbench" in str(caught.value)


def test_a_critic_without_targets_is_refused(make_spec: Callable[..., Any], rollout: Any) -> None:
    selection = make_spec(estimator="gae").selections["estimator"]
    with pytest.raises(ComponentError, match="needs values but returned no returns"):
        border.estimate(selection, lambda *_, **__: Advantage(torch.zeros(2, 3)), rollout)


def test_nan_on_a_trained_token_is_divergence_and_elsewhere_nothing(
    make_spec: Callable[..., Any], rollout: Any
) -> None:
    selection = make_spec().selections["estimator"]
    advantages = torch.zeros(2, 3)
    advantages[1, 2] = float("nan")  # padding
    border.estimate(selection, lambda *_, **__: Advantage(advantages), rollout)
    advantages[1, 1] = float("inf")
    with pytest.raises(Diverged, match="not finite on 1 of 5 trained tokens"):
        border.estimate(selection, lambda *_, **__: Advantage(advantages), rollout)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda b: LossTerms(-b.logp.mean()), r"of shape \(\), expected"),
        (lambda b: LossTerms(-b.advantages), "has no gradient"),
        (lambda b: -b.logp, "returned Tensor, expected rlbench LossTerms"),
        (lambda b: LossTerms(-b.logp, {"clip": 0.1}), "metric 'clip' is float"),
        (lambda b: LossTerms(-b.logp, [b.logp]), "metrics is list"),
    ],
)
def test_a_wrong_loss_is_refused(
    make_spec: Callable[..., Any],
    batch: Any,
    fault: Callable[[Any], Any],
    message: str,
) -> None:
    selection = make_spec(loss="pg").selections["loss"]
    batch.logp.requires_grad_()
    with pytest.raises(ComponentError, match=message):
        border.loss_terms(selection, lambda data, **_: fault(data), batch)


def test_a_metric_can_not_hide_one_of_the_trainers(
    make_spec: Callable[..., Any], batch: Any
) -> None:
    selection = make_spec(loss="pg").selections["loss"]
    for name in ("entropy", "reward", "true_reward", "first_ratio_error", "kl_k3_ratio"):
        terms = LossTerms(-batch.logp, {name: batch.logp})
        with pytest.raises(ComponentError, match=f"metric '{name}' is a name of the trainer's"):
            border.check_metric_names(selection, terms, {"entropy": batch.logp})


def test_scores_may_be_a_list_with_gaps(make_spec: Callable[..., Any]) -> None:
    selection = make_spec().selections["reward"]
    found = border.scores(selection, [1, None, 0.5], 3)
    assert found.isnan().tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0, 2.0], r"shape \(2,\), expected \(3,\)"),
        (torch.zeros(3, 1), r"shape \(3, 1\), expected \(3,\)"),
        ([1.0, float("inf"), 0.0], "infinite"),
        (1.0, "returned float"),
        (["good", "bad", "bad"], "returned list"),
    ],
)
def test_wrong_scores_are_refused(make_spec: Callable[..., Any], scores: Any, message: str) -> None:
    selection = make_spec().selections["reward"]
    with pytest.raises(ComponentError, match=message):
        border.scores(selection, scores, 3)


@pytest.mark.parametrize("name", ["", "a,b", "new\nline", "Clip", 3])
def test_a_metric_needs_a_name_that_can_head_a_column(
    make_spec: Callable[..., Any], batch: Any, name: Any
) -> None:
    selection = make_spec(loss="pg").selections["loss"]
    with pytest.raises(ComponentError, match="is no name"):
        border.check_metric_names(selection, LossTerms(-batch.logp, {name: batch.logp}), {})


class Controller:
    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


@pytest.mark.parametrize("coef", [float("nan"), float("inf"), -0.1, None, "0.5", True])
def test_a_coefficient_that_would_switch_the_penalty_off_is_refused(
    make_spec: Callable[..., Any], coef: Any
) -> None:
    selection = make_spec(kl="fixed").selections["kl"]
    with pytest.raises(ComponentError, match=r"kl 'fixed' \(rlbench .*coef is"):
        border.coefficient(selection, Controller(coef=coef))
    assert border.coefficient(selection, Controller(coef=0)) == 0.0


def test_a_controller_without_a_coefficient_is_named(make_spec: Callable[..., Any]) -> None:
    selection = make_spec(kl="fixed").selections["kl"]
    with pytest.raises(ComponentError, match=r"kl 'fixed' .* raised AttributeError"):
        border.coefficient(selection, Controller())


def test_an_unknown_statistic_is_refused(make_spec: Callable[..., Any]) -> None:
    selection = make_spec(kl="fixed").selections["kl"]
    with pytest.raises(ComponentError, match="statistic is 'tokens'"):
        border.statistic(selection, Controller(statistic="tokens"))
    assert border.statistic(selection, Controller()) == "sequence"
