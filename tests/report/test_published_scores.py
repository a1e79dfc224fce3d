"""Numbers that others published, from their raw scores; where these are not there, it is skipped.

``RLBENCH_SCORES`` names the folder with the files: ``diamond_atari100k.json`` (the results of
DIAMOND), ``corl_finetune.json`` (those of CORL) and ``walker1.csv`` to ``walker6.csv`` (the
examples of AdaStop).

Random and human scores of the 26 Atari games are those of Mnih et al., "Human-level control through
deep reinforcement learning", Nature 518 (2015), as everybody uses them for 100k steps.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rlbench.cli import cli
from rlbench.grid.normalisation import read_normalisation
from rlbench.grid.store import Store
from rlbench.report.cells.cell import cells
from rlbench.report.suite.suite import suite

FOLDER = os.environ.get("RLBENCH_SCORES")
ATARI = Path(__file__).with_name("atari_random_human.csv")

# mean and sd before fine-tuning in CORL's README: AWAC, CQL, IQL and SPOT
CORL = """\
antmaze-umaze-v2 52.75 8.67 94.00 1.58 77.00 0.71 91.00 2.55
antmaze-umaze-diverse-v2 56.00 2.74 9.50 9.91 59.50 9.55 36.25 2.17
antmaze-medium-play-v2 0.00 0.00 59.00 11.18 71.75 2.95 67.25 10.47
antmaze-medium-diverse-v2 0.00 0.00 63.50 6.84 64.25 1.92 73.75 7.29
antmaze-large-play-v2 0.00 0.00 28.75 7.76 38.50 8.73 31.50 12.58
antmaze-large-diverse-v2 0.00 0.00 35.50 3.64 26.75 3.77 17.50 7.26
pen-cloned-v1 88.66 15.10 -2.76 0.08 84.19 3.96 6.19 5.21
door-cloned-v1 0.93 1.66 -0.33 0.01 1.19 0.93 -0.21 0.14
hammer-cloned-v1 1.80 3.01 0.56 0.55 1.35 0.32 3.97 6.39
relocate-cloned-v1 -0.04 0.04 -0.33 0.01 0.04 0.04 -0.24 0.01"""

needs_scores = pytest.mark.skipif(FOLDER is None, reason="RLBENCH_SCORES names no folder of scores")


def rlbench(*arguments: str | Path) -> Result:
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.stderr
    return done


def published(name: str) -> Path:
    path = Path(FOLDER or "") / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path


def test_there_is_a_pair_of_scores_for_each_of_the_26_games() -> None:
    scales = read_normalisation(ATARI)
    assert len(scales) == 26
    assert all(low < high for low, high in scales.values())
    assert scales["Pong"] == (-20.7, 14.6)


@needs_scores
def test_diamond_has_the_mean_and_the_iqm_of_its_article(tmp_path: Path) -> None:
    file = published("diamond_atari100k.json")
    rlbench("import", file, "--as", "algorithm=DIAMOND", "-o", tmp_path)
    (one,) = suite(cells(Store(tmp_path).read()), read_normalisation(ATARI)).algorithms
    assert (round(one.mean.mid, 3), round(one.iqm.mid, 3)) == (1.459, 0.641)
    assert one.iqm.low < 0.641 < one.iqm.high
    shown = rlbench("table", tmp_path, "--suite", "--normalise", ATARI).stdout
    row = next(line for line in shown.splitlines() if line.startswith("DIAMOND"))
    assert row.split()[:3] == ["DIAMOND", "130/130", "0.641"]
    assert "1.459" in row.split()


@needs_scores
def test_scores_that_are_normalised_on_import_give_the_same(tmp_path: Path) -> None:
    file = published("diamond_atari100k.json")
    rlbench("import", file, "--as", "algorithm=D", "--normalise", ATARI, "-o", tmp_path)
    (one,) = suite(cells(Store(tmp_path).read())).algorithms
    assert (round(one.mean.mid, 3), round(one.iqm.mid, 3)) == (1.459, 0.641)


@needs_scores
def test_corl_has_the_means_and_standard_deviations_of_its_readme(tmp_path: Path) -> None:
    file = published("corl_finetune.json")
    rlbench("import", file, "--map", "score=offline_final", "-o", tmp_path)
    found = {
        (cell.columns["algorithm"], cell.columns["task"]): cell
        for cell in cells(Store(tmp_path).read())
    }
    assert len(found) == 60
    for line in CORL.splitlines():
        task, *numbers = line.split()
        for algorithm, mean, sd in zip(
            ("AWAC", "CQL", "IQL", "SPOT"), numbers[::2], numbers[1::2], strict=True
        ):
            score = found[algorithm, task].score
            assert f"{score.mid:.2f}" == mean
            # the README's sd has ddof 0; the table's interval is t(3) sd / sqrt(4) with ddof 1
            half = score.half_width or 0.0
            assert half == pytest.approx(3.182446 * float(sd) / 3**0.5, abs=0.01)
    raw = json.loads(file.read_text("utf-8"))
    for (algorithm, task), cell in found.items():
        values = raw[algorithm][task]["offline_final"]
        assert cell.score.mid == pytest.approx(sum(values) / len(values), rel=1e-12, abs=1e-12)


@needs_scores
def test_the_walkers_have_the_means_of_the_examples(tmp_path: Path) -> None:
    files = [published(f"walker{number}.csv") for number in range(1, 7)]
    rlbench("import", *files, "--wide", "--as", "task=walker", "--renumber", "-o", tmp_path)
    found = {cell.columns["algorithm"]: cell for cell in cells(Store(tmp_path).read())}
    assert round(found["PPO"].score.mid, 2) == 2901.53
    assert found["PPO"].score.n == 10
    # the files have five seeds of DDPG more than the 25 that the published mean is of
    of_25 = [seed.score for seed in found["DDPG"].seeds][:25]
    assert round(sum(of_25) / 25, 3) == pytest.approx(884.119, abs=0.001)
