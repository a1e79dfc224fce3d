"""Make the reference results again: run the experiment, keep the summaries, renew the README.

Usage: python scripts/reference.py. About six minutes on two cores; runs that are in
results/local/reference already are not repeated.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import rlbench

ROOT = Path(__file__).resolve().parent.parent
WORK, KEPT = ROOT / "results/local/reference", ROOT / "results/reference"
ESTIMATORS, LOSSES, SEEDS = ("group", "rloo", "gae"), ("clip", "pg"), "0-4"
SUMMARIES = ("spec.json", "result.json", "evals.csv")


def main() -> None:
    """Run, copy, renew."""
    flags = [word for name in ESTIMATORS for word in ("-e", name)]
    flags += [word for name in LOSSES for word in ("-l", name)]
    experiment = ["run", *flags, "-s", SEEDS]
    command = [sys.executable, "-m", "rlbench"]
    subprocess.run([*command, *experiment, "-o", str(WORK)], check=True)
    # Nothing is left to run: this names the runs of the experiment among older ones.
    frame = rlbench.run(estimator=ESTIMATORS, loss=LOSSES, seeds=SEEDS, out=WORK)
    if set(frame["status"]) != {"ok"}:
        sys.exit("some runs are not ok; nothing was kept")
    shutil.rmtree(KEPT, ignore_errors=True)
    for run_id in frame["run_id"]:
        folder = KEPT / "runs" / run_id
        folder.mkdir(parents=True)
        for name in SUMMARIES:
            shutil.copy(WORK / "runs" / run_id / name, folder)
    shown = KEPT.relative_to(ROOT)
    (KEPT / "experiment.txt").write_text(f"rlbench {' '.join(experiment)} -o {shown}\n")
    table = subprocess.run(
        [*command, "table", str(shown), "--format", "github"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    (KEPT / "table.md").write_text(table.stdout, encoding="utf-8")
    subprocess.run([sys.executable, str(ROOT / "scripts/readme.py")], check=True)


if __name__ == "__main__":
    main()
