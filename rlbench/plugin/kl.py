"""The two options that the trainer adds to every KL controller that measures something.

Where the penalty goes and which estimate of the KL it uses belong together: an estimate with the
right value can have the wrong gradient.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlbench.errors import UsageError
from rlbench.plugin.option import Option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlbench.plugin.registry import Component

ESTIMATORS = ("k1", "k2", "k3", "k3_ratio", "k1_plus", "k3_plus", "abs")
BEST = {"loss": "k3_ratio", "reward": "k1"}

_WRONG_IN_LOSS = {
    "k1": "its expected gradient is 0, so it would regularise nothing",
    "abs": "its gradient is not that of the KL",
}
_WRONG_IN_REWARD = {
    "k3_ratio": "only the value counts there, and it is that of k3: write k1, k2 or k3",
    "k1_plus": "only the value counts there, and it is that of k1: write k1, k2 or k3",
    "k3_plus": "only the value counts there, and it is that of k3: write k1, k2 or k3",
}

_OPTIONS = (
    Option(
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
        doc="Where the penalty goes.",
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
