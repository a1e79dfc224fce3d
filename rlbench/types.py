"""What crosses the border between rlbench and a component.

Letters used in every shape, here and in all docstrings:

====== ==================================================
letter meaning
====== ==================================================
B      completions in a rollout (or in a minibatch of it)
N      prompts
P      prompt tokens, padded on the right
T      completion tokens, padded on the right
V      vocabulary size
G      group size: completions drawn for one prompt
====== ==================================================

``mask`` is boolean everywhere; True means that the policy chose this token, so its end token counts
and padding does not. What lies under a False is never defined: select with ``torch.where``, never
multiply (NaN * 0 is NaN). ``logp`` is a log-probability in nats; ``old_`` marks the policy that
sampled, ``ref_`` the frozen base policy.

Nothing here imports torch when it runs, so that the command line stays fast.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from torch import Generator, Tensor

Kind = Literal["estimator", "loss", "kl", "task", "reward", "model", "tracker", "engine"]
Split = Literal["train", "validation", "eval"]


def _check_shapes(owner: str, shapes: Mapping[str, tuple[Any, tuple[int, ...]]]) -> None:
    """Raise ValueError for the first tensor whose shape is not the one its name promises."""
    for name, (tensor, shape) in shapes.items():
        if tensor is not None and tuple(tensor.shape) != shape:
            raise ValueError(f"{owner}.{name}: shape {tuple(tensor.shape)}, expected {shape}")


def _check_mask(owner: str, mask: Any) -> None:
    if mask.ndim != 2 or str(mask.dtype) != "torch.bool":
        raise ValueError(
            f"{owner}.mask: expected a boolean tensor (B, T), got {mask.dtype} {tuple(mask.shape)}"
        )


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """Completions sampled from the policy, scored: the input of an advantage estimator.

    A row whose ``reward`` is NaN could not be scored. It takes no part in baselines, loss, KL or
    entropy; `trained` leaves it out.
    """

    prompt_ids: Tensor  # (B, P) int64
    prompt_mask: Tensor  # (B, P) bool
    completion_ids: Tensor  # (B, T) int64
    mask: Tensor  # (B, T) bool
    group: Tensor  # (B,) int64: id of the draw of a prompt; the same prompt drawn twice has two
    reward: Tensor  # (B,) outcome reward, NaN where it could not be scored
    token_reward: Tensor  # (B, T) outcome on the last True, minus coef * KL if placed there
    truncated: Tensor  # (B,) bool: cut at the length limit, without an end token
    old_logp: Tensor  # (B, T) under the sampling distribution, temperature and top-p included
    ref_logp: Tensor | None = None  # (B, T) only if needed
    values: Tensor | None = None  # (B, T) critic's value of the state before each token, if needed
    last_value: Tensor | None = None  # (B,) value after the last token, if needed
    greedy_reward: Tensor | None = None  # (B,) reward of the prompt's greedy completion, if needed

    def __post_init__(self) -> None:
        _check_mask("Rollout", self.mask)
        rows, tokens = self.mask.shape
        prompt = (rows, self.prompt_ids.shape[-1])
        _check_shapes(
            "Rollout",
            {
                "prompt_ids": (self.prompt_ids, prompt),
                "prompt_mask": (self.prompt_mask, prompt),
                "completion_ids": (self.completion_ids, (rows, tokens)),
                "group": (self.group, (rows,)),
                "reward": (self.reward, (rows,)),
                "token_reward": (self.token_reward, (rows, tokens)),
                "truncated": (self.truncated, (rows,)),
                "old_logp": (self.old_logp, (rows, tokens)),
                "ref_logp": (self.ref_logp, (rows, tokens)),
                "values": (self.values, (rows, tokens)),
                "last_value": (self.last_value, (rows,)),
                "greedy_reward": (self.greedy_reward, (rows,)),
            },
        )

    @property
    def scored(self) -> Tensor:
        """Rows that have a reward: (B,) bool."""
        return ~self.reward.isnan()

    @property
    def trained(self) -> Tensor:
        """Tokens that take part in training: (B, T) bool, the mask without unscorable rows."""
        scored = self.scored
        # the usual case, and a broadcast of bools costs more than all the rest of it
        return self.mask if bool(scored.all()) else self.mask & scored[:, None]


@dataclass(frozen=True, kw_only=True)
class PolicyBatch:
    """One minibatch on its way through a policy loss. Only ``logp`` carries a gradient.

    ``mask`` already leaves out rows that could not be scored.
    """

    logp: Tensor  # (B, T) under the policy that is being trained
    old_logp: Tensor  # (B, T)
    advantages: Tensor  # (B, T), 0 where the mask is False
    mask: Tensor  # (B, T) bool
    entropy: Tensor  # (B, T) nats, detached
    group: Tensor  # (B,) int64
    reward: Tensor  # (B,)
    truncated: Tensor  # (B,) bool
    ref_logp: Tensor | None = None  # (B, T) only if needed

    def __post_init__(self) -> None:
        _check_mask("PolicyBatch", self.mask)
        rows, tokens = self.mask.shape
        shapes: dict[str, tuple[Any, tuple[int, ...]]] = {
            name: (getattr(self, name), (rows, tokens))
            for name in ("logp", "old_logp", "advantages", "entropy", "ref_logp")
        }
        for name in ("group", "reward", "truncated"):
            shapes[name] = (getattr(self, name), (rows,))
        _check_shapes("PolicyBatch", shapes)


@dataclass(frozen=True)
class Advantage:
    """What an estimator returns.

    Positive means better than expected: the loss raises the probability of such a token. Cells
    where the mask is False are ignored; the convention is 0.
    """

    advantages: Tensor  # (B, T)
    returns: Tensor | None = None  # (B, T) the critic's targets; required of those that need values


@dataclass(frozen=True)
class LossTerms:
    """What a policy loss returns: a loss to minimise for each token, not reduced over anything.

    Each metric is a (B, T) tensor; the trainer averages it over the trained tokens of an update.
    """

    per_token: Tensor  # (B, T)
    metrics: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Tokens of a task. The position of a token in ``tokens`` is its id."""

    tokens: tuple[str, ...]
    pad: int
    eos: int

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str) -> list[int]:
        """Turn text, one character a token, into ids; ValueError for an unknown character."""
        return [self.tokens.index(character) for character in text]

    def decode(self, ids: Sequence[int]) -> str:
        """Turn ids into text; padding and the end token are left out."""
        return "".join(self.tokens[i] for i in ids if i not in (self.pad, self.eos))


@dataclass(frozen=True)
class Prompts:
    """Prompts with what is needed to score their completions."""

    ids: Tensor  # (N, P) int64, padded on the right
    mask: Tensor  # (N, P) bool
    references: tuple[Any, ...]  # N right answers, in whatever form the task likes

    def __len__(self) -> int:
        return len(self.references)

    def rows(self, index: Sequence[int]) -> Prompts:
        """Select, repeat or reorder prompts."""
        index = list(index)
        return Prompts(self.ids[index], self.mask[index], tuple(self.references[i] for i in index))


@dataclass(frozen=True)
class Completions:
    """What a policy wrote, or what a demonstration shows."""

    ids: Tensor  # (B, T) int64, padded on the right
    mask: Tensor  # (B, T) bool, True up to and with the end token
    truncated: Tensor  # (B,) bool


class Task(Protocol):
    """Where prompts come from and what a right answer is. A class; options go to ``__init__``."""

    vocabulary: Vocabulary
    completion_limit: int  # tokens of the longest completion, end token included
    floor: float  # the least score; what a failed run is counted with

    def prompts(self, n: int, generator: Generator, split: Split) -> Prompts:
        """Draw n prompts. Prompts of different splits never coincide."""
        ...

    def demonstrations(self, n: int, generator: Generator) -> tuple[Prompts, Completions]:
        """Draw n prompts of the split "train" with right completions."""
        ...

    def score(self, prompts: Prompts, completions: Completions) -> Tensor:
        """Score each completion, row by row: (B,), higher is better, NaN where it can't be."""
        ...


@dataclass(frozen=True)
class RewardContext:
    """What a reward may use to prepare itself."""

    task: Task
    seed: int
    cache: Path  # a folder for what can be reused by other runs


class Reward(Protocol):
    """What the policy is trained on. A class; options go to ``__init__``.

    A checkpoint keeps what is in its attributes, as it does for tasks and KL controllers: plain
    values, containers, tensors, arrays, random generators, networks, optimisers, and objects that
    hold such things. In the process that goes on, a new one is built and prepared first, and then
    gets the state back. A class that has more than that defines ``state_dict()`` and
    ``load_state_dict(state)``, as torch's own do. State elsewhere, in a module say, is not seen.
    """

    def prepare(self, context: RewardContext) -> None:
        """Called once a run, before anything is scored."""
        ...

    def score(self, prompts: Prompts, completions: Completions) -> Tensor:
        """Reward each completion: (B,), higher is better, NaN where it can't be."""
        ...


class KLController(Protocol):
    """Holds the coefficient of the KL penalty. A class; options go to ``__init__``.

    What a checkpoint keeps of one is told at `Reward`.

    A controller may have an attribute ``statistic``, "sequence" (default: the KL summed over a
    completion, averaged over completions) or "token" (averaged over tokens): what it is shown.

    It may have a method ``stop(kl_old: float) -> bool``. Before every optimiser step it is shown an
    estimate (k3) of the KL from the policy that sampled to the one that is trained, on the tokens
    of that step, in nats, as ``statistic`` says. If it says True, this step and the rest of the
    update's steps are left out, the critic's too; their share is the metric ``stopped``. It must
    say False at 0, where every update starts. One that only stops keeps ``coef`` at 0 and declares
    no need, so that no reference policy is computed.
    """

    coef: float  # cost of one nat; read before every rollout, finite and never negative

    def update(self, kl: float, *, samples: int) -> None:
        """See the KL of one rollout batch, in nats, and how many completions it averages."""
        ...


class Network(Protocol):
    """One network of a model, a `torch.nn.Module`. Its state is opaque to everybody else.

    Output number t belongs to the state BEFORE completion token t: logits that choose that token,
    or the value of that state.
    """

    def read(self, prompt_ids: Tensor, prompt_mask: Tensor) -> Any:
        """Read prompts (N, P) into a state."""
        ...

    def spread(self, state: Any, group_size: int) -> Any:
        """Repeat every row of a state group_size times, copies side by side."""
        ...

    def output(self, state: Any) -> Tensor:
        """What the network says after all it has read: (B, V) logits, or (B, 1) values."""
        ...

    def step(self, token: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Read one more token (B,): the output after it, and the new state."""
        ...

    def run(self, state: Any, completion_ids: Tensor) -> Tensor:
        """Outputs (B, T, V) or (B, T, 1) along given completions, in one differentiable pass."""
        ...


class Model(Protocol):
    """Builds networks. A class; options go to ``__init__``."""

    def policy(self, vocabulary: Vocabulary) -> Any:
        """Build a policy, a `torch.nn.Module` that is a `Network`, freshly initialised."""
        ...

    def critic(self, vocabulary: Vocabulary, policy: Any) -> Any:
        """Build a critic that starts from the body of a policy and says 0 everywhere."""
        ...


class Tracker(Protocol):
    """Sees the numbers of a run as they come. A class; options go to ``__init__``."""

    def start(self, run: Mapping[str, Any]) -> None:
        """Called once with the run's specification.

        ``resumed_from`` in it is None, or the update after which an earlier process left off and
        this one goes on. Numbers of later updates may have been told before; they come again, the
        same ones, and what is told last counts.
        """
        ...

    def log(self, update: int, metrics: Mapping[str, float]) -> None:
        """Called after every update and evaluation."""
        ...

    def finish(self, result: Mapping[str, Any]) -> None:
        """Called once with the run's result, also when it failed."""
        ...


@dataclass(frozen=True, kw_only=True)
class Job:
    """Work for an engine: call ``target`` with ``payload`` in a process of its own.

    The target is called as ``f(payload, report)``, where ``report`` sends a small JSON-able mapping
    back while the job runs. It returns a JSON-able mapping.
    """

    id: str
    target: str  # "module:function"
    payload: Mapping[str, Any]
    timeout_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class JobEvent:
    """What an engine tells of a job."""

    job: str
    what: Literal["started", "progress", "returned", "lost"]
    value: Mapping[str, Any] = field(default_factory=dict)
    # lost: {"status": "killed" | "timeout" | "failed", "reason": "ended by signal 9 (SIGKILL)"}
    # failed means that the process did it itself: an exit, a crash
    # with "engine_died": true, all jobs were lost at once, and who did it is not known


class Engine(Protocol):
    """Executes jobs somewhere. It knows nothing of runs and never writes to the store."""

    def open(self, workers: int, preload: Sequence[str]) -> None:
        """Get ready for so many jobs at once, with these modules imported."""
        ...

    def submit(self, job: Job) -> None:
        """Start a job. The caller never has more than ``workers`` jobs in flight."""
        ...

    def events(self, timeout_s: float) -> list[JobEvent]:
        """Wait for news, at most so long. Every job ends in exactly one "returned" or "lost"."""
        ...

    def close(self) -> None:
        """End all jobs at once, with all their children. Safe to call twice."""
        ...
