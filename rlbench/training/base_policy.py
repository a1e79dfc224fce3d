"""The base policy: a warm start that all cells at one seed share.

It is trained on demonstrations until it solves part of the task, so that there is something to
reinforce, and cached by content: the file's name is a hash of all that decides its weights.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import torch
from filelock import FileLock

from rlbench import masked
from rlbench.errors import Diverged, RunError
from rlbench.plugin import source
from rlbench.training import border, sealed
from rlbench.training.distribution import Distribution, chosen
from rlbench.training.sampling import log_probs_of, sample
from rlbench.training.seeding import seed_everything, stream

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlbench.training.recorder import Recorder
    from rlbench.training.settings import Settings
    from rlbench.training.spec import RunSpec
    from rlbench.types import Prompts, Task

BATCH = 128  # demonstrations in an optimiser step
LEARNING_RATE = 3e-3
MAX_GRAD_NORM = 1.0
CHECK_EVERY = 10  # steps between two validations
VALIDATION = 512  # prompts of a validation
PLAIN = Distribution(temperature=1.0, top_p=1.0, top_k=0)


def precision(settings: Settings) -> torch.dtype:
    """The floating-point type of a run."""
    return {"float32": torch.float32, "float64": torch.float64}[settings.precision]


def base_policy_name(spec: RunSpec) -> str:
    """Name the base policy of a run, by a hash of all that decides its weights."""
    text = json.dumps(_content(spec), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_base_policy(spec: RunSpec, task: Task, model: Any, recorder: Recorder) -> Any:
    """Get the base policy of a run, from the cache or by training it.

    Processes that want the same one at the same time wait for the first. The file appears by
    atomic rename; one that is torn or another's is named in the log and made again.

    Args:
        spec: The run; its task, model and base settings decide the policy.
        task: The run's task.
        model: The run's model.
        recorder: Knows the cache's folder and takes the log.

    Returns:
        A frozen `torch.nn.Module` that is a `rlbench.types.Network`.

    Raises:
        RunError: If the policy does not reach ``base_score`` within ``base_updates``.
    """
    content = _content(spec)
    key = base_policy_name(spec)
    path = recorder.base_folder / f"{key}.pt"
    path.parent.mkdir(parents=True, exist_ok=True)
    seed_everything("base", content["seed"])
    policy = border.call(spec.selections["model"], lambda: model.policy(task.vocabulary)).to(
        precision(spec.settings)
    )
    recorder.progress(0, spec.settings.updates, "base policy")
    with FileLock(path.with_suffix(".lock")):
        if not _restore(policy, path, content, recorder):
            facts = train_base_policy(policy, task, spec.settings, content["seed"])
            kept = {"weights": policy.state_dict(), "facts": {"content": content, **facts}}
            try:
                sealed.write(path, kept)
            except OSError as error:  # a cache is no reason to fail
                recorder.log(f"base policy {key} could not be cached: {error}")
            recorder.log(
                f"base policy {key}: trained {facts['steps']} steps, score {facts['score']:.4f}"
            )
    return policy.requires_grad_(requires_grad=False).eval()


def train_base_policy(policy: Any, task: Task, settings: Settings, seed: int) -> dict[str, Any]:
    """Train on demonstrations until validation prompts reach the wanted score.

    Args:
        policy: A network, changed in place.
        task: Where demonstrations and validation prompts come from.
        settings: ``base_score`` and ``base_updates``.
        seed: Names the stream of demonstrations.

    Returns:
        Steps taken and the score reached, greedy on the validation split.

    Raises:
        RunError: If ``base_updates`` steps were not enough.
        Diverged: If the loss is not finite.
    """
    optimiser = torch.optim.Adam(policy.parameters(), lr=LEARNING_RATE, fused=True)
    demonstrations = stream("demonstrations", seed)
    held_out = task.prompts(VALIDATION, stream("validation", seed), split="validation")
    score = _validate(policy, task, held_out)
    steps = 0
    while score < settings.base_score:
        if steps >= settings.base_updates:
            raise RunError(
                f"the base policy scores {score:.3f} after {steps} steps on demonstrations, below "
                f"base_score={settings.base_score:g}; raise base_updates or lower base_score"
            )
        prompts, right = task.demonstrations(BATCH, demonstrations)
        log_probs = log_probs_of(policy, prompts, right.ids, distribution=PLAIN)
        loss = -masked.mean(chosen(log_probs, right.ids), right.mask)
        if not bool(loss.isfinite()):
            raise Diverged(f"the base policy's loss is {loss.item()} at step {steps + 1}")
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.nn.utils.clip_grad_norm_(policy.parameters(), MAX_GRAD_NORM)
        optimiser.step()
        steps += 1
        if steps % CHECK_EVERY == 0 or steps == settings.base_updates:
            score = _validate(policy, task, held_out)
    return {"steps": steps, "score": score}


def _validate(policy: Any, task: Task, prompts: Prompts) -> float:
    """Mean greedy score."""
    written = sample(
        policy,
        prompts,
        vocabulary=task.vocabulary,
        limit=task.completion_limit,
        distribution=PLAIN,
    )
    scores = task.score(prompts, written.completions)
    return float(masked.mean(scores, ~scores.isnan()))


def _content(spec: RunSpec) -> dict[str, Any]:
    """Everything that decides the weights, and nothing else."""
    settings = spec.settings
    return {
        "task": spec.selections["task"].text(),
        "model": spec.selections["model"].text(),
        "sources": [
            source.digest(source.of_component(spec.selections["task"].component)),
            source.digest(source.of_component(spec.selections["model"].component)),
            source.digest(source.of_module(__name__)),
        ],
        "seed": spec.seed if settings.base_seed is None else settings.base_seed,
        "base_score": settings.base_score,
        "base_updates": settings.base_updates,
        "precision": settings.precision,
        "torch": str(torch.__version__),
    }


def _restore(policy: Any, path: Path, content: Mapping[str, Any], recorder: Recorder) -> bool:
    """Load cached weights; False if there are none, or they are not those that are wanted."""
    try:
        saved = sealed.read(path)
        _check_content(saved["facts"]["content"], content)
        policy.load_state_dict(saved["weights"])
    except FileNotFoundError:
        return False
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it, it can be made again
        cause = f"{type(error).__name__}: {str(error).strip()}".splitlines()[0]
        recorder.log(f"cached base policy {path.name} can't be used ({cause}); training it again")
        return False
    return True


def _check_content(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise Torn if a file holds another base policy than its name says."""
    differs = [name for name in wanted if found.get(name) != wanted[name]]
    if differs:
        raise sealed.Torn(f"its {differs[0]} is not that of this run")
