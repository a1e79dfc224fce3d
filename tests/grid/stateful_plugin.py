"""Components with a state of every kind, and a tracker that ends its process."""

import json
import os
import random
import signal
import time
from collections import defaultdict, deque
from pathlib import Path

import numpy as np
import torch

from rlbench import hookimpl
from rlbench.divergence import importance_ratio
from rlbench.types import LossTerms


def noisy(batch):
    """Draws from all three global generators."""
    scale = 1 + 0.1 * random.random() + 0.1 * float(np.random.rand()) + 0.1 * float(torch.rand(()))
    ratio = importance_ratio(batch.logp, batch.old_logp, batch.mask)
    return LossTerms(-scale * batch.advantages * ratio)


class Moody:
    """Remembers all that it saw, and draws from generators of its own."""

    def __init__(self):
        self.coef = 0.1
        self.seen = deque([0.0], maxlen=3)
        self.counts = defaultdict(int)
        self.python, self.numpy = random.Random(1), np.random.default_rng(2)
        self.torch = torch.Generator().manual_seed(3)
        self.mean = torch.zeros(1)

    def update(self, kl, *, samples):
        self.seen.append(kl)
        self.counts[samples, round(kl, 3) > 0] += 1
        self.mean += kl + self.python.random() + self.numpy.random()
        drawn = float(torch.rand((), generator=self.torch))
        self.coef = abs(float(self.mean)) * drawn / 50 + sum(self.seen) / len(self.counts) / 10


class Learning:
    """A network and its optimiser, trained at every call."""

    def prepare(self, context):
        self.context = context
        self.net = torch.nn.Linear(1, 1)
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.optimiser = torch.optim.Adam([*self.net.parameters(), self.weight], lr=0.1)
        self.scale = np.ones(2)

    def score(self, prompts, completions):
        true = self.context.task.score(prompts, completions)
        length = completions.mask.sum(1, keepdim=True).float()
        with torch.enable_grad():
            said = self.weight * self.net(length)[:, 0]
            loss = (said - true.float()).square().mean()
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
        self.scale = self.scale * 0.9 + 0.1 * len(true)
        return true + said.detach().double() / float(self.scale.sum())


class Unruly:
    """Kills its process, or interrupts the whole grid, at the calls that a file names."""

    def __init__(self, *, folder: str = ""):
        self.folder = Path(folder)

    def start(self, run):
        self.calls = 0
        self.file = self.folder / run["run_id"]
        self.plan = json.loads(self.file.read_text()) if self.file.exists() else []
        notes = self.folder / f"{run['run_id']}.told"
        told = json.loads(notes.read_text()) if notes.exists() else []
        if self.plan or told:
            notes.write_text(json.dumps([*told, run["resumed_from"]]))

    def log(self, update, metrics):
        self.calls += 1
        if self.plan and self.calls == self.plan[0][1]:
            what = self.plan[0][0]
            self.file.write_text(json.dumps(self.plan[1:]))
            if what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            os.kill(int((self.folder / "supervisor").read_text()), signal.SIGINT)
            time.sleep(60)

    def finish(self, result):
        pass


@hookimpl
def rlbench_register_losses(register):
    register("noisy", ":noisy", summary="Draws at random.")


@hookimpl
def rlbench_register_kl_controllers(register):
    register("moody", ":Moody", summary="Has moods.", needs=("ref_logp",))


@hookimpl
def rlbench_register_rewards(register):
    register("learning", ":Learning", summary="Learns.")


@hookimpl
def rlbench_register_trackers(register):
    register("unruly", ":Unruly", summary="Kills.")
