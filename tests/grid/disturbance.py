"""A grid whose processes are killed at random moments, and what must be true of it afterwards."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

MARK = "RLBENCH_DISTURBED"  # in the environment of every process of one disturbance
COMPARED = ("metrics.csv", "evals.csv", "samples.jsonl")
TINY = (
    "updates=4",
    "prompts=4",
    "group_size=4",
    "minibatches=1",
    "epochs=1",
    "eval_every=2",
    "eval_prompts=16",
    "base_score=0",
)


@dataclass
class Told:
    """What happened.

    Attributes:
        kills: How many of each kind of process were killed.
        commands: How often the command was given.
        codes: Its exit codes; -9 where it was killed.
        seconds: All of it.
    """

    kills: Counter[str] = field(default_factory=Counter)
    commands: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0


def command(out: Path, *more: str, seeds: str, workers: int = 2) -> list[str]:
    """Write the command of a grid of short runs."""
    settings = [word for text in TINY for word in ("--set", text)]
    flags = ["-s", seeds, "-o", str(out), "-j", str(workers), *more]
    return [sys.executable, "-m", "rlbench", "run", "-q", "--format", "json", *flags, *settings]


def disturb(arguments: list[str], *, kills: int, seed: int, pause_s: tuple[float, float]) -> Told:
    """Give a command again and again while its processes are killed, then until all is done.

    Args:
        arguments: The command.
        kills: How many processes are killed, all together.
        seed: Of the choice of victims and moments.
        pause_s: The least and the most seconds between two kills.

    Returns:
        What happened.

    Raises:
        AssertionError: A process is left at the end.
    """
    rng, told, began = random.Random(seed), Told(), time.monotonic()
    mark = uuid.uuid4().hex
    while True:
        told.commands += 1
        with subprocess.Popen(
            arguments,
            env=os.environ | {MARK: mark, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            while process.poll() is None and told.kills.total() < kills:
                time.sleep(rng.uniform(*pause_s))
                kill_one(process, rng, told.kills)
            code = process.wait()
        told.codes[code] += 1
        if told.kills.total() >= kills and code == 0:
            break
        assert told.commands < 10 * kills + 10, f"it never ends well: {told}"
    assert not left_over(mark), "processes are left"
    told.seconds = time.monotonic() - began
    return told


def kill_one(process: subprocess.Popen[bytes], rng: random.Random, kills: Counter[str]) -> None:
    """Kill one process of a command; a worker that is not there yet is left alone."""
    guards = children(process.pid)
    servers = [pid for guard in guards for pid in children(guard)]
    victims = {
        "supervisor": [process.pid],
        "guard": guards,
        "server": servers,
        "worker": [pid for server in servers for pid in children(server)],
    }
    kind = rng.choice(["supervisor", "worker", "worker", "server", "guard"])
    both = kind == "supervisor" and rng.random() < 0.5  # the server in the same moment
    for pid in [*rng.sample(victims[kind], min(1, len(victims[kind]))), *(servers if both else [])]:
        if process.poll() is None:
            kills[kind] += pid not in servers or kind == "server"
            os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """Processes whose parent is this one."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word) for word in text.split()]


def left_over(mark: str, patience_s: float = 10.0) -> list[int]:
    """Processes with this mark in their environment that do not end."""
    end, wanted = time.monotonic() + patience_s, f"{MARK}={mark}".encode()
    while True:
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.05)


def differences(disturbed: Path, undisturbed: Path) -> list[str]:
    """Say what of a disturbed grid is not as in one that was left alone."""
    runs = {path.name: path for path in (disturbed / "runs").iterdir()}
    models = {path.name: path for path in (undisturbed / "runs").iterdir()}
    found = [f"only in one of them: {name}" for name in sorted(set(runs) ^ set(models))]
    for name in sorted(set(runs) & set(models)):
        status = json.loads((runs[name] / "result.json").read_text())["status"]
        if status != "ok":
            found.append(f"{name} is {status}")
        found += [
            f"{name}: {file} differs"
            for file in COMPARED
            if (runs[name] / file).read_bytes() != (models[name] / file).read_bytes()
        ]
    return found
