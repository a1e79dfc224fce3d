"""What components hand back is checked here, and the message names whose component it is."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlbench.errors import ComponentError, Diverged, RlbenchError
from rlbench.types import Advantage, LossTerms, PolicyBatch, Rollout

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlbench.plugin.selection import Selection


def name_of(selection: Selection) -> str:
    """How messages speak of a component: its kind, its name and its owner."""
    return f"{selection.kind} {selection.name!r} ({selection.component.owner})"


def call(selection: Selection, what: Callable[[], Any]) -> Any:
    """Call into a component; whatever it raises is reported as its own."""
    try:
        return what()
    except RlbenchError:
        raise
    except Exception as error:
        raise ComponentError(
            f"{name_of(selection)} raised {type(error).__name__}: {error}"
        ) from error


def estimate(selection: Selection, estimator: Callable[..., Any], rollout: Rollout) -> Advantage:
    """Call an estimator and check what it returns.

    Raises:
        ComponentError: For a wrong type, shape or dtype, a tensor that carries a gradient, missing
            returns, or an input that was changed.
        Diverged: For NaN or inf on a trained token.
    """
    before = _copies(rollout)
    found = call(selection, lambda: estimator(rollout, **selection.options))
    _check_untouched(selection, rollout, before)
    if not isinstance(found, Advantage):
        raise ComponentError(
            f"{name_of(selection)} returned {type(found).__name__}, expected an rlbench Advantage"
        )
    like = rollout.old_logp
    _check_tensor(selection, "advantages", found.advantages, like, rollout.trained)
    if found.returns is not None:
        _check_tensor(selection, "returns", found.returns, like, rollout.trained)
    elif "values" in selection.component.needs:
        raise ComponentError(
            f"{name_of(selection)} needs values but returned no returns: the critic has no targets"
        )
    for name, tensor in (("advantages", found.advantages), ("returns", found.returns)):
        if tensor is not None and tensor.requires_grad:
            raise ComponentError(f"{name_of(selection)}: {name} carry a gradient; detach them")
    return found


def loss_terms(selection: Selection, loss: Callable[..., Any], batch: PolicyBatch) -> LossTerms:
    """Call a policy loss and check what it returns.

    Raises:
        ComponentError: For a wrong type, shape or dtype, a loss without a gradient, or an input
            that was changed.
        Diverged: For NaN or inf on a trained token.
    """
    before = _copies(batch)
    found = call(selection, lambda: loss(batch, **selection.options))
    _check_untouched(selection, batch, before)
    if not isinstance(found, LossTerms):
        raise ComponentError(
            f"{name_of(selection)} returned {type(found).__name__}, expected rlbench LossTerms"
        )
    _check_tensor(selection, "per_token", found.per_token, batch.logp, batch.mask)
    if not found.per_token.requires_grad:
        raise ComponentError(
            f"{name_of(selection)}: per_token has no gradient; it must depend on batch.logp"
        )
    if not isinstance(found.metrics, Mapping):
        raise ComponentError(
            f"{name_of(selection)}: metrics is {type(found.metrics).__name__}, expected a mapping "
            "from names to tensors"
        )
    for name, metric in found.metrics.items():
        if getattr(metric, "shape", None) != batch.mask.shape:
            raise ComponentError(
                f"{name_of(selection)}: metric {name!r} is {_describe(metric)}, expected a tensor "
                f"of shape {tuple(batch.mask.shape)}, one value a token"
            )
    return found


def stops(selection: Selection, controller: Any, kl_old: float) -> bool:
    """Ask a KL controller whether the update ends here.

    Raises:
        ComponentError: If it answers anything but True or False.
    """
    answer = call(selection, lambda: controller.stop(kl_old))
    if not isinstance(answer, bool):
        raise ComponentError(
            f"{name_of(selection)}: stop returned {_describe(answer)}, expected True or False"
        )
    return answer


def coefficient(selection: Selection, controller: Any) -> float:
    """Read the coefficient of a KL controller.

    Raises:
        ComponentError: If it is no finite number of at least 0: such a one would quietly switch the
            penalty off or turn it round.
    """
    found = call(selection, lambda: controller.coef)
    is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
    if not is_number or not 0 <= found < math.inf:
        raise ComponentError(
            f"{name_of(selection)}: coef is {found!r}, expected a finite number of at least 0"
        )
    return float(found)


def statistic(selection: Selection, controller: Any) -> str:
    """Read which KL a controller wants to see.

    Raises:
        ComponentError: If it is neither "sequence" nor "token".
    """
    found = getattr(controller, "statistic", "sequence")
    if found not in ("sequence", "token"):
        raise ComponentError(
            f"{name_of(selection)}: statistic is {found!r}, expected 'sequence' or 'token'"
        )
    return str(found)


# Columns of metrics.csv that are the trainer's; beside these, every name that begins with kl_.
RESERVED = frozenset(
    {
        *("update", "reward", "reward_sd", "true_reward", "unscored", "flat_groups", "length"),
        *("truncated", "explained_variance", "loss", "grad_norm", "first_ratio_error"),
        *("skipped_steps", "stopped", "value_loss", "coef", "lr", "tokens"),
    }
)
METRIC_NAME = re.compile(r"[a-z][a-z0-9_.-]*")


def check_metric_names(selection: Selection, terms: LossTerms, own: Mapping[str, Tensor]) -> None:
    """Refuse a loss's metric that would hide one of the trainer's, or is no name for a column."""
    for name in terms.metrics:
        if not METRIC_NAME.fullmatch(str(name)):
            raise ComponentError(
                f"{name_of(selection)}: metric {name!r} is no name: use a-z, 0-9 and _"
            )
        if name in own or name in RESERVED or name.startswith("kl_"):
            raise ComponentError(
                f"{name_of(selection)}: metric {name!r} is a name of the trainer's; choose another"
            )


def scores(selection: Selection, found: Any, rows: int) -> Tensor:
    """Check the scores of a task or reward: (B,), NaN where a row could not be scored.

    A list is accepted, and None in it means NaN.

    Raises:
        ComponentError: For a wrong shape or an infinite value.
    """
    if not isinstance(found, Tensor):
        try:
            listed = [float("nan") if value is None else float(value) for value in found]
        except (TypeError, ValueError) as error:
            raise ComponentError(
                f"{name_of(selection)}: score returned {_describe(found)}, expected one number a "
                f"completion"
            ) from error
        found = torch.tensor(listed, dtype=torch.float64)
    checked: Tensor = found
    if checked.shape != (rows,):
        raise ComponentError(
            f"{name_of(selection)}: score returned shape {tuple(checked.shape)}, expected "
            f"({rows},), one number a completion"
        )
    if bool(checked.isinf().any()):
        raise ComponentError(
            f"{name_of(selection)}: score returned an infinite value; NaN marks a completion that "
            "can't be scored"
        )
    return checked.detach()


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a {value.dtype} tensor of shape {tuple(value.shape)}"
    return type(value).__name__


def _check_tensor(selection: Selection, what: str, found: Any, like: Tensor, used: Tensor) -> None:
    if not isinstance(found, Tensor) or found.shape != like.shape or found.dtype != like.dtype:
        raise ComponentError(
            f"{name_of(selection)}: {what} is {_describe(found)}, expected {_describe(like)}"
        )
    bad = ~found.isfinite() & used
    if bool(bad.any()):
        raise Diverged(
            f"{name_of(selection)}: {what} is not finite on {int(bad.sum())} of "
            f"{int(used.sum())} trained tokens"
        )


def _copies(data: Rollout | PolicyBatch) -> Mapping[str, Tensor]:
    """Copy every tensor: torch's own count of changes misses what goes through ``.data``."""
    tensors = {field.name: getattr(data, field.name) for field in fields(data)}
    return {name: t.detach().clone() for name, t in tensors.items() if isinstance(t, Tensor)}


def _same(x: Tensor, y: Tensor) -> bool:
    """Equal, NaN to NaN."""
    return x.shape == y.shape and bool(((x == y) | ((x != x) & (y != y))).all())  # noqa: PLR0124 - true of NaN alone


def _check_untouched(
    selection: Selection, data: Rollout | PolicyBatch, before: Mapping[str, Tensor]
) -> None:
    changed = [
        name for name, copy in before.items() if not _same(getattr(data, name).detach(), copy)
    ]
    if changed:
        raise ComponentError(
            f"{name_of(selection)} changed its input {', '.join(changed)} in place; work on a copy"
        )
