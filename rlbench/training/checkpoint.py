"""Checkpoints: a run that was killed goes on from its last one, to the same bytes.

One file a run, of plain values and tensors.
"""

from __future__ import annotations

import contextlib
import random
import re
import time
import types
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rlbench.training import border, sealed, state

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlbench.training.trainer import Run


class Unusable(Exception):  # noqa: N818 - no error of the run: it starts anew
    """A checkpoint is there and can't be used."""


class Checkpoints:
    """The checkpoint of one run, read at its start and written on its way.

    Args:
        path: The file.
        every: Updates between two checkpoints; None writes none, but uses one that is there.
        identity: What has to be the same in the process that goes on: the run, the machine.
    """

    def __init__(self, path: Path, *, every: int | None, identity: Mapping[str, Any]) -> None:
        self._path, self._every = path, every
        self._identity = {name: str(value) for name, value in identity.items()}
        self._start, self._spent_s = time.monotonic(), 0.0
        self._found: dict[str, Any] | None = None
        self._kept: int | None = None
        self._anchors: Mapping[str, str] = {}

    def read(self) -> int | None:
        """Read the file.

        Returns:
            The update after which the run goes on; None if there is no file.

        Raises:
            Unusable: There is one that is torn, or belongs to another run or machine.
        """
        if not self._path.exists():
            return None
        try:
            found = sealed.read(self._path)
            identity = found["identity"]
            differs = [name for name, here in self._identity.items() if identity[name] != here]
            update, spent_s = int(found["update"]), float(found["spent_s"])
        except sealed.Torn as error:
            raise Unusable(str(error)) from error
        except Exception as error:
            raise Unusable(f"it can't be read: {_first_line(error)}") from error
        if differs:
            name = differs[0]
            raise Unusable(f"its {name} is {identity[name]!r}, here it is {self._identity[name]!r}")
        self._found, self._kept, self._spent_s = found, update, spent_s
        return update

    @property
    def update(self) -> int | None:
        """The update of the checkpoint on the disk; None if there is none."""
        return self._kept

    @property
    def spent_s(self) -> float:
        """Seconds of this process since it opened the checkpoints, and of those before it."""
        return self._spent_s + time.monotonic() - self._start

    def begin(self, run: Run) -> None:
        """Look at a run that was just built: whether the state of its components can be saved.

        If not, the log says whose fault it is, once, and the run goes on without checkpoints.
        """
        if self._every is None and self._found is None:
            return
        try:
            self._anchors = state.capture(_kept(run)).anchors
        except state.Unsaveable as error:
            self._give_up(run, error)

    def resume(self, run: Run) -> bool:
        """Put a run into the state of the checkpoint that was found.

        Returns:
            Whether there was one.

        Raises:
            Unusable: Something does not fit; the run is then in no state to be used.
        """
        found, self._found = self._found, None
        if found is None:
            return False
        try:
            state.Captured(None, found["anchors"]).check(self._anchors)
            _restore(run, found)
        except Exception as error:
            self._spent_s, self._kept = 0.0, None
            raise Unusable(_first_line(error)) from error
        return True

    def save(self, run: Run) -> None:
        """Save a run after an update, if one is due; a full disk keeps the checkpoint before it."""
        if self._every is None or run.done % self._every or run.done == run.settings.updates:
            return
        try:
            captured = state.capture(_kept(run))
            captured.check(self._anchors)
            content = {
                "identity": self._identity,
                "update": run.done,
                "spent_s": self.spent_s,
                "facts": state.capture(_facts(run)).content,
                "kept": captured.content,
                "anchors": captured.anchors,
            }
            sealed.write(self._path, content)
        except state.Unsaveable as error:
            self._give_up(run, error)
        except OSError as error:
            kept = "there is none" if self._kept is None else f"that of update {self._kept} stays"
            with contextlib.suppress(OSError):  # the log is on the same disk
                run.recorder.log(f"no checkpoint after update {run.done} ({error}); {kept}")
        else:
            self._kept = run.done

    def _give_up(self, run: Run, error: state.Unsaveable) -> None:
        """Go on without checkpoints, and say whose component it is."""
        kind = re.split(r"[.\[]", error.path)[0]
        owners = {str(kind): chosen for kind, chosen in run.parts.spec.selections.items()}
        chosen = owners.get(kind, owners["model"])  # of networks and their optimisers
        run.recorder.log(
            f"no checkpoints from here on: the state of {border.name_of(chosen)} can't be saved: "
            f"{error}. What can: plain values, containers and tensors in attributes, or a class "
            "with state_dict() and load_state_dict(state)"
        )
        self._every = None


def _kept(run: Run) -> dict[str, Any]:
    """Everything of a run that may have a state."""
    parts = run.parts
    functions = {"estimator": parts.estimator, "loss": parts.loss}
    return {
        "task": parts.task.component,
        "reward": parts.reward.component,
        "kl": parts.controller,
        "policy": parts.policy,
        "critic": parts.critic,
        "policy optimiser": run.optimiser,
        "critic optimiser": run.critic_optimiser,
        # a function has no state, by contract
        **{k: f for k, f in functions.items() if not isinstance(f, types.FunctionType)},
    }


def _facts(run: Run) -> dict[str, Any]:
    """What else a run has come to; of the generators just the global ones: others are named."""
    return {
        "tokens": run.tokens,
        "first": dict(run.first),
        "last": dict(run.last),
        "seconds": dict(run.clock.totals),
        "position": dict(run.recorder.position()),
        "random": random.getstate(),
        "numpy": np.random.get_state(legacy=False),
        "torch": torch.get_rng_state(),
    }


def _restore(run: Run, found: Mapping[str, Any]) -> None:
    """Fill a run that was just built."""
    facts = state.restore(dict.fromkeys(found["facts"]), found["facts"])
    run.recorder.rewind(facts["position"])
    state.restore(_kept(run), found["kept"])
    run.done, run.tokens = found["update"], facts["tokens"]
    run.first, run.last = facts["first"], facts["last"]
    for phase, seconds in facts["seconds"].items():
        run.clock.totals[phase] = run.clock.totals.get(phase, 0.0) + seconds
    random.setstate(facts["random"])  # last: what came before may have drawn
    np.random.set_state(facts["numpy"])
    torch.set_rng_state(facts["torch"])


def _first_line(error: Exception) -> str:
    """Say what an error says, without torch's advice."""
    return f"{type(error).__name__}: {str(error).strip()}".splitlines()[0]
