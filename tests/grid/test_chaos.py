from __future__ import annotations

import subprocess

from .disturbance import command, differences, disturb


def test_killed_at_random_moments_a_grid_ends_as_if_left_alone(tmp_path):
    """Real runs; six of them, five kills. `benchmarks/chaos.py` does the same at length."""
    left_alone, killed = tmp_path / "left-alone", tmp_path / "killed"
    axes = ("-e", "group")
    done = subprocess.run(
        command(left_alone, *axes, seeds="0-5"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = disturb(command(killed, *axes, seeds="0-5"), kills=5, seed=4, pause_s=(0.1, 1.5))
    assert told.kills.total() == 5
    assert told.codes[0] == 1
    assert len(list((killed / "runs").iterdir())) == 6
    assert differences(killed, left_alone) == []
