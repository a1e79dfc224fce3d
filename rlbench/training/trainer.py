"""The loop of one run: roll out, estimate, optimise, steer the KL, evaluate."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from rlbench import masked
from rlbench.errors import Diverged, RunError
from rlbench.training import border, schedule
from rlbench.training.checkpoint import Unusable
from rlbench.training.evaluation import evaluate
from rlbench.training.objective import StepReport, backward, value_loss
from rlbench.training.parts import Parts, assemble
from rlbench.training.rollout import Collected, collect
from rlbench.training.seeding import seed_everything, stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torch import Tensor

    from rlbench.training.checkpoint import Checkpoints
    from rlbench.training.recorder import Recorder
    from rlbench.training.spec import RunSpec
    from rlbench.types import Advantage, Tracker

RATIO_TOLERANCE = 1e-4  # of the first ratios of a run, which must be 1

Row = dict[str, float | int | None]


def train(
    spec: RunSpec,
    recorder: Recorder,
    trackers: Sequence[Tracker] = (),
    checkpoints: Checkpoints | None = None,
) -> dict[str, Any]:
    """Train one policy and evaluate it on the way.

    Args:
        spec: What to run.
        recorder: Takes the rows of metrics, timings and evaluations, samples and the log.
        trackers: Also see the metrics.
        checkpoints: Where to go on from, if there is something, and where to save.

    Returns:
        The numbers of the run: ``score_start`` and ``score`` (greedy, held-out), ``reward_start``
        and ``reward`` (sampled, held-out), ``kl`` to the base policy in nats, ``entropy`` a token
        in nats, ``length`` in tokens, ``tokens`` sampled in training, ``updates``, and ``phases``
        in seconds.

    Raises:
        ComponentError: If a component breaks its contract.
        Diverged: If a loss, a gradient or a log-probability is not finite.
        RunError: If the run can't go on for another reason.
    """
    run = _begin(spec, recorder, trackers, checkpoints)
    updates = spec.settings.updates
    for update in range(run.done + 1, updates + 1):
        run.update(update)
        if update % spec.settings.eval_every == 0 or update == updates:
            run.last = run.evaluate(update)
        run.done = update
        if checkpoints is not None:
            with run.clock("checkpoint"):
                checkpoints.save(run)
        recorder.progress(update, updates, "training")
    first, last = run.first, run.last
    return {
        "score_start": first["score"],
        "score": last["score"],
        "reward_start": first["reward"],
        "reward": last["reward"],
        "kl": last["kl"],
        "entropy": last["entropy"],
        "length": last["length"],
        "tokens": run.tokens,
        "updates": updates,
        "phases": {name: round(seconds, 3) for name, seconds in run.clock.totals.items()},
    }


def _begin(
    spec: RunSpec,
    recorder: Recorder,
    trackers: Sequence[Tracker],
    checkpoints: Checkpoints | None,
) -> Run:
    """Build a run: as its checkpoint says, or at its first evaluation."""
    run = Run(spec, recorder, trackers)
    if checkpoints is not None:
        checkpoints.begin(run)
        try:
            if checkpoints.resume(run):
                return run
        except Unusable as error:
            recorder.log(f"the checkpoint can't be used: {error}; the run starts anew")
            recorder.rewind({})
            seed_everything("run", spec.seed)
            run = Run(spec, recorder, trackers)
    run.first = run.last = run.evaluate(0)
    return run


class Run:
    """The state of a run between its updates: optimisers, counters, the clock.

    Attributes:
        done: Updates done.
        first: The evaluation before the first update.
        last: The latest evaluation.
    """

    first: Mapping[str, Any]
    last: Mapping[str, Any]

    def __init__(self, spec: RunSpec, recorder: Recorder, trackers: Sequence[Tracker]) -> None:
        self.recorder, self.trackers, self.settings = recorder, trackers, spec.settings
        self.clock = _Clock()
        with self.clock("base"):
            self.parts: Parts = assemble(spec, recorder)
        self.done = 0
        self.tokens = 0
        self.lr = spec.settings.lr
        self.critic_lr = spec.settings.critic_lr or spec.settings.lr
        self.optimiser = _adam(self.parts.policy, self.lr)
        self.critic_optimiser = (
            None if self.parts.critic is None else _adam(self.parts.critic, self.critic_lr)
        )

    def update(self, update: int) -> None:
        """One rollout and its optimiser steps."""
        before = dict(self.clock.totals)
        coef = border.coefficient(self.parts.spec.selections["kl"], self.parts.controller)
        rate = schedule.factor(self.settings, update)
        self._set_rate(rate)
        with self.clock("rollout"):
            collected = collect(self.parts, update, coef)
        with self.clock("estimate"):
            estimator = self.parts.spec.selections["estimator"]
            advantage = border.estimate(estimator, self.parts.estimator, collected.rollout)
        self.tokens += int(collected.rollout.mask.sum())
        row: Row = {"update": update}
        row |= rollout_metrics(collected, self.parts, advantage)
        row |= self._optimise(update, collected, advantage, coef)
        row |= {"coef": coef, "lr": self.lr * rate, "tokens": self.tokens}
        self._steer(collected)
        self.recorder.update(row)
        self._track(update, row)
        spent = {
            name: total - before.get(name, 0.0)
            for name, total in self.clock.totals.items()
            if name != "checkpoint"  # not in the first row, and never within an update
        }
        self.recorder.timing({"update": update} | spent)

    def evaluate(self, update: int) -> Mapping[str, Any]:
        """Evaluate and record."""
        with self.clock("evaluation"):
            found = evaluate(self.parts, update)
        self.recorder.evaluation(found.row)
        self.recorder.samples(found.samples)
        self._track(update, {f"eval/{name}": value for name, value in found.row.items()})
        return found.row

    def _set_rate(self, rate: float) -> None:
        for optimiser, lr in ((self.optimiser, self.lr), (self.critic_optimiser, self.critic_lr)):
            if optimiser is not None:
                for group in optimiser.param_groups:
                    group["lr"] = lr * rate

    def _optimise(
        self, update: int, collected: Collected, advantage: Advantage, coef: float
    ) -> Row:
        """All optimiser steps on one rollout; their averages."""
        tokens, steps, skipped, error = 0, 0, 0, None
        loss, norm, critic_loss = 0.0, 0.0, 0.0
        sums: dict[str, float] = defaultdict(float)
        for groups in self._minibatches(update):
            with self.clock("policy"):
                self.optimiser.zero_grad()
                report = backward(self.parts, collected, advantage, groups, coef)
                if report.tokens == 0:
                    skipped += 1
                    continue
                if error is None:  # the policy is still the one that sampled
                    error = report.log_ratio_error
                    _check_first_ratio(update, error)
                if self._stops(report):
                    break
                norm += _step(self.optimiser, self.parts.policy, self.settings.max_grad_norm)
            with self.clock("critic"):
                critic_loss += self._critic_step(collected, advantage, groups)
            tokens, steps, loss = tokens + report.tokens, steps + 1, loss + report.loss
            for name, value in report.sums.items():
                sums[name] += value
        row: Row = {
            "loss": loss / steps if steps else None,
            "grad_norm": norm / steps if steps else None,
            "first_ratio_error": error,
            "skipped_steps": skipped,
        }
        if hasattr(self.parts.controller, "stop"):
            planned = self.settings.epochs * self.settings.minibatches
            row["stopped"] = (planned - steps - skipped) / planned
        row |= {name: value / tokens for name, value in sums.items()}
        if self.critic_optimiser is not None:
            row["value_loss"] = critic_loss / steps if steps else None
        return row

    def _minibatches(self, update: int) -> Iterator[Tensor]:
        """Numbers of the groups in each optimiser step, all epochs of an update in a row."""
        shuffle = stream("minibatches", self.parts.spec.seed, update)
        for _ in range(self.settings.epochs):
            order = torch.randperm(self.settings.prompts, generator=shuffle)
            yield from order.tensor_split(self.settings.minibatches)

    def _stops(self, report: StepReport) -> bool:
        """Whether the controller, if it can, ends the update before the step that was prepared."""
        controller = self.parts.controller
        if not hasattr(controller, "stop"):
            return False
        per_token = border.statistic(self.parts.spec.selections["kl"], controller) == "token"
        kl_old = report.sums["kl_old"] / (report.tokens if per_token else report.rows)
        return border.stops(self.parts.spec.selections["kl"], controller, kl_old)

    def _critic_step(self, collected: Collected, advantage: Advantage, groups: Any) -> float:
        if self.critic_optimiser is None or advantage.returns is None:
            return 0.0
        self.critic_optimiser.zero_grad()
        loss, _ = value_loss(self.parts, collected, advantage.returns, groups)
        if not bool(loss.isfinite()):
            raise Diverged(f"the value loss is {loss.item()}")
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        _step(self.critic_optimiser, self.parts.critic, self.settings.max_grad_norm)
        return float(loss.detach())

    def _steer(self, collected: Collected) -> None:
        """Show the controller the KL of the rollout, once, after its coefficient was used."""
        if collected.kl is None:
            return
        controller, selection = self.parts.controller, self.parts.spec.selections["kl"]
        trained, scored = collected.rollout.trained, int(collected.rollout.scored.sum())
        if border.statistic(selection, controller) == "token":
            kl = float(masked.mean(collected.kl, trained))
        else:
            kl = sequence_kl(collected)
        border.call(selection, lambda: controller.update(kl, samples=scored))

    def _track(self, update: int, row: Mapping[str, Any]) -> None:
        """Trackers only watch: one that fails is named in the log and the run goes on."""
        numbers = {name: value for name, value in row.items() if value is not None}
        for tracker in self.trackers:
            try:
                tracker.log(update, dict(numbers))  # its own, whatever it does with it
            except Exception as error:  # noqa: BLE001 - a stranger's code, any error is possible
                self.recorder.log(
                    f"tracker {type(tracker).__name__} failed at update {update}: "
                    f"{type(error).__name__}: {error}"
                )


def sequence_kl(collected: Collected) -> float:
    """KL of the rollout in nats: summed over a completion, averaged over scored completions."""
    rollout = collected.rollout
    assert collected.kl is not None  # noqa: S101 - only called with a reference
    return float(masked.mean(masked.total(collected.kl, rollout.trained, 1), rollout.scored))


def rollout_metrics(collected: Collected, parts: Parts, advantage: Advantage) -> Row:
    """What is known of a rollout before the policy is changed; see the README for each name."""
    rollout = collected.rollout
    scored, known = rollout.scored, ~collected.true_reward.isnan()
    outcome = rollout.reward.double()  # float32 can't square 1e20
    spread = masked.standard_deviation(outcome, scored, ddof=1)
    group_size = parts.spec.settings.group_size
    reward = outcome.reshape(-1, group_size)
    low = torch.where(reward.isnan(), torch.inf, reward).amin(1)
    high = torch.where(reward.isnan(), -torch.inf, reward).amax(1)
    lengths = rollout.mask.sum(1)
    row: Row = {
        "reward": float(masked.mean(outcome, scored)),
        "reward_sd": float(spread),
        "true_reward": float(masked.mean(collected.true_reward, known)),
        "unscored": int((~scored).sum()),
        "flat_groups": float((low >= high).double().mean()),
        "length": float(lengths.double().mean()),
        "truncated": float(rollout.truncated.double().mean()),
    }
    if collected.kl is not None:
        row[f"kl_{parts.kl_kind}"] = sequence_kl(collected)
    if rollout.values is not None and advantage.returns is not None:
        row["explained_variance"] = explained_variance(
            rollout.values, advantage.returns, rollout.trained
        )
    return row


def explained_variance(values: Any, returns: Any, trained: Any) -> float | None:
    """1 - Var(returns - values) / Var(returns) over trained tokens; None if returns are equal."""
    wide = returns.double()  # float32 can't square 1e20
    total = masked.standard_deviation(wide, trained, ddof=0) ** 2
    if float(total) == 0.0:
        return None
    rest = masked.standard_deviation(wide - values, trained, ddof=0) ** 2
    return float(1.0 - rest / total)


def _adam(network: Any, lr: float) -> torch.optim.Adam:
    """Adam as torch's defaults have it; fused, which takes a third of the time here."""
    return torch.optim.Adam(network.parameters(), lr=lr, fused=True)


def _step(optimiser: torch.optim.Optimizer, network: Any, max_norm: float) -> float:
    """Clip the gradient, step, and give the gradient's norm before clipping."""
    gradients = [weight.grad for weight in network.parameters() if weight.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    if bool(norm.isinf()):  # float32 can't square 1e20, and such a gradient can still be clipped
        norm = torch.nn.utils.get_total_norm([gradient.double() for gradient in gradients])
    if not bool(norm.isfinite()):
        raise Diverged(f"the norm of the gradient is {float(norm)}")
    torch.nn.utils.clip_grads_with_norm_(network.parameters(), max_norm, norm)
    optimiser.step()
    return float(norm)


def _check_first_ratio(update: int, error: float) -> None:
    """The first ratios of a run must be 1: policy and sampler are the same network."""
    if update == 1 and error > RATIO_TOLERANCE:
        raise RunError(
            f"the first ratios differ from 1: |logp - old_logp| reaches {error:.2g}, allowed is "
            f"{RATIO_TOLERANCE:g}. Sampling and scoring disagree: dropout that is on, a state that "
            "depends on padding, or a model whose step and run don't match"
        )


class _Clock:
    """Adds up seconds by phase."""

    def __init__(self) -> None:
        self.totals: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.totals[phase] = self.totals.get(phase, 0.0) + spent
