"""The two options that the trainer adds to every KL controller that measures something.

Where the penalty goes and which estimate of the KL it uses belong together: an estimate with the
right value can have the wrong gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlbench.errors import UsageError
from rlbench.plugin.option import Option, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlbench.plugin.registry import Component

ESTIMATORS = ("k1", "k2", "k3", "k3_ratio", "k1_plus", "k3_plus", "abs", "full")
BEST = {"loss": "k3_ratio", "reward": "k1"}
SYNONYMS = {
    "kl": "k1",
    "mse": "k2",
    "low_var_kl": "k3",
    "k1+": "k1_plus",
    "k2+": "k2",  # k2's own gradient is the straight-through one
    "k3+": "k3_plus",
    "low_var_kl+": "k3_plus",
}
EXPLAINED = "rlbench.divergence:kl_estimate"
"""Whose documentation explains the estimators."""

PLACES = """
What the two options do that every controller with a penalty has:

``place=loss``: ``L = policy loss + coef * KL``, aggregated over tokens as the policy loss is. The
gradient of the estimate matters; k1 and abs, whose gradients are wrong, are refused.

``place=reward``: ``token_reward = reward on the last token - coef * KL`` on every token, without a
gradient. Only the value matters; estimates that differ only in their gradients are refused.
Advantage estimators that compare whole completions sum ``token_reward`` over each.

``estimator``: one of the table below, or ``full``, the exact KL over the vocabulary: no noise of
sampling, for one more pass of the policy in a rollout. In the reward, ``full`` charges no token for
itself, only those that led there; a first token has no gradient from it.

Differs: PPO for language models (TRL, OpenRLHF, verl's use_kl_in_reward) puts k1 in the reward;
GRPO (TRL, verl's use_kl_loss) puts k3 in the loss. Both at once would count it twice, so there is
one place.

Metrics:
    kl_...: The KL by the run's estimator, whose name is in the column, of the rollout before the
        update's steps: nats, summed over a completion, averaged over completions. Evaluations have
        the exact one as kl.
"""

_WRONG_IN_LOSS = {
    "k1": "its expected gradient is 0, so it would regularise nothing",
    "abs": "its gradient is not that of the KL",
}
_WRONG_IN_REWARD = {
    "k3_ratio": "only the value counts there, and it is that of k3: write k1, k2 or k3",
    "k1_plus": "only the value counts there, and it is that of k1: write k1, k2 or k3",
    "k3_plus": "only the value counts there, and it is that of k3: write k1, k2 or k3",
}


@dataclass(frozen=True, kw_only=True)
class _EstimatorOption(Option):
    """Also takes the names that other libraries have; a run has one name for each estimate."""

    @property
    def allowed(self) -> str:
        return f"{super().allowed}; also understood: {', '.join(SYNONYMS)}"

    def parse(self, text: str) -> Value:
        return super().parse(SYNONYMS.get(text, text))


_OPTIONS = (
    _EstimatorOption(
        name="estimator",
        type="str",
        default=None,
        optional=True,
        choices=ESTIMATORS,
        doc="Estimate of the KL; none takes the best for its place: k3_ratio in the loss, k1 in "
        "the reward.",
    ),
    Option(
        name="place",
        type="str",
        default="loss",
        choices=("loss", "reward"),
        doc="Where the penalty goes: added to the loss, or taken off each token's reward.",
    ),
)


def host_options(component: Component) -> tuple[Option, ...]:
    """List the options that the trainer adds: two for controllers that need the reference."""
    if component.kind != "kl" or "ref_logp" not in component.needs:
        return ()
    return tuple(replace(option, owner=component.title) for option in _OPTIONS)


def resolve(component: Component, values: Mapping[str, Any]) -> dict[str, Any]:
    """Put the best estimator in where none was chosen.

    Args:
        component: A KL controller with `host_options`.
        values: All options of the controller.

    Raises:
        UsageError: The estimator is wrong in this place; the message says why.
    """
    place, estimator = values["place"], values["estimator"] or BEST[values["place"]]
    wrong = (_WRONG_IN_LOSS if place == "loss" else _WRONG_IN_REWARD).get(estimator)
    if wrong:
        raise UsageError(
            f"{component.title}: estimator={estimator} with place={place}: {wrong}; "
            f"the best one for this place is {BEST[place]}"
        )
    return {**values, "estimator": estimator}
