"""Numbers that can't work are refused by the command, before anything is trained or written."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from rlbench.cli import cli


def refused(arguments: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What `rlbench run` says to arguments that it refuses."""
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(cli, ["run", *arguments])
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert not list(folder.iterdir())
    return done.stderr


@pytest.mark.parametrize(
    "estimator",
    [
        *("group", "grpo", "group:std=false", "group:leave_one_out=true", "group:singleton=raw"),
        *("dr_grpo", "rloo", "opo", "group_mean_batch_std", "reinforce_pp_baseline", "group_gae"),
    ],
)
def test_a_group_of_one_is_refused_by_whoever_compares_within_groups(
    estimator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = refused(["-e", estimator, "--set", "group_size=1"], tmp_path, monkeypatch)
    assert "group_size=1" in said
    assert "needs at least 2" in " ".join(said.split())
    assert "divi" not in said  # 1 divides everything; that is not what is wrong


def test_one_cell_of_a_grid_is_enough_to_refuse_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["-e", "gae", "-e", "rloo", "--set", "group_size=2,1"]
    assert "'rloo'" in refused(arguments, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("selection", "named"),
    [
        *((f"{name}:target=0", "target=0") for name in ("adaptive", "proportional", "pid")),
        *((f"{name}:target=-1", "target=-1") for name in ("adaptive", "proportional", "pid")),
        *((f"{name}:coef=0", "coef=0") for name in ("adaptive", "proportional")),
        *((f"{name}:coef=-0.1", "coef=-0.1") for name in ("adaptive", "proportional", "fixed")),
        ("adaptive:target=nan", "target=nan"),
        ("proportional:target=inf", "target=inf"),
        ("proportional:horizon=0", "horizon=0"),
        ("proportional:horizon=-5", "horizon=-5"),
        ("proportional:clip=0", "clip=0"),
        ("adaptive:min_coef=0", "min_coef=0"),
        ("adaptive:coef=20", "coef=20"),
        ("pid:kp=0,ki=0,kd=0", "kp=0"),
        ("target_stop:target=0", "target=0"),
        ("target_stop:factor=0", "factor=0"),
        ("schedule:updates=0", "updates=0"),
        ("fixed:estimator=k1", "estimator=k1"),  # in the loss it would pull nowhere
        ("fixed:estimator=k3_ratio,place=reward", "estimator=k3_ratio"),
    ],
)
def test_a_controller_that_could_not_steer_is_refused_by_the_name_of_its_option(
    selection: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = refused(["-k", selection], tmp_path, monkeypatch)
    assert named in said
    assert f"kl '{selection.partition(':')[0]}'" in " ".join(said.split())


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["-e", "group:ddof=2"], "ddof=2"),
        (["-e", "group:ddof=-1"], "ddof=-1"),
        (["-e", "group:eps=-1e-6"], "eps=-1e-6"),
        (["-e", "rloo:kl=never"], "kl=never"),
        (["-e", "gae:lam=1.5"], "lam=1.5"),
        (["-e", "gae:gamma=nan"], "gamma=nan"),
        (["-e", "gae:ddof=0"], "ddof=0 has no effect unless whiten=true"),
        (["-l", "clip:dual=1"], "dual=1"),
        (["-l", "clip:eps=0"], "eps=0"),
        (["-l", "cispo:eps_high=0"], "eps_high=0"),
        # ten prompts can be cut into 1 to 10 steps
        (["--set", "prompts=10", "--set", "minibatches=11"], "1 to 10"),
        # they divide by tokens, by nothing, and by the horizon
        (["--set", "count_masked_rows=true"], "aggregation=token_mean:"),
        (["--set", "count_masked_rows=true", "--set", "aggregation=token_sum"], "token_sum:"),
        (["--set", "count_masked_rows=true,false", "--set", "aggregation=token_sum_norm"], "norm:"),
    ],
)
def test_options_out_of_their_range_are_refused(
    arguments: list[str], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert named in " ".join(refused(arguments, tmp_path, monkeypatch).split())
