"""24 short runs whose processes are killed 30 times: the same results as if nobody had.

    python benchmarks/chaos.py [--kills 30] [--seed 0] [--pause 1.5] [--checkpoint-every N]

Supervisor, workers, fork server and guard get SIGKILL at random moments, half of the time the
supervisor and the server at once; the command is given again each time. Exit code 1 if a result is
missing or differs in one byte of metrics.csv, evals.csv or samples.jsonl.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "grid"))
from disturbance import command, differences, disturb


def main() -> int:
    """Run the grid twice and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    # longer ones than a run takes let the grid end before the kills do
    parser.add_argument("--pause", type=float, default=1.5, help="most seconds between two kills")
    parser.add_argument("--checkpoint-every", type=int, metavar="N")
    asked = parser.parse_args()
    axes = ["-e", "group", "-e", "gae", "-e", "rloo"]
    if asked.checkpoint_every:
        axes += ["--checkpoint-every", str(asked.checkpoint_every)]
    with tempfile.TemporaryDirectory() as folder:
        left_alone, killed = Path(folder) / "left-alone", Path(folder) / "killed"
        subprocess.run(  # noqa: S603 - this interpreter and the flags above
            command(left_alone, *axes, seeds="0-7", workers=asked.workers),
            check=True,
            stdout=subprocess.DEVNULL,
        )
        told = disturb(
            command(killed, *axes, seeds="0-7", workers=asked.workers),
            kills=asked.kills,
            seed=asked.seed,
            pause_s=(0.05, asked.pause),
        )
        found = differences(killed, left_alone)
        runs = len(list((killed / "runs").iterdir()))
    lines = [
        f"kills            {told.kills.total()} {dict(told.kills)}",
        f"commands         {told.commands}, exit codes {dict(told.codes)}",
        f"seconds          {told.seconds:.0f}",
        f"runs             {runs}",
        f"differences      {len(found)}",
        *(f"  {line}" for line in found),
    ]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return int(bool(found) or runs != 24)


if __name__ == "__main__":
    sys.exit(main())
