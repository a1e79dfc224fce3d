"""Whoever knows another library's names is told what to write here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import rlbench
from rlbench import aggregation
from rlbench.cli import cli
from rlbench.errors import UsageError, nearest
from rlbench.plugin.loading import load
from rlbench.plugin.selection import parse
from rlbench.plugin.signature import options
from rlbench.report.show import component_text, setting_text
from rlbench.training import elsewhere
from rlbench.training.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

REGISTRY = load()
NAMES = [option.name for option in Settings.options()]

OPTIONS = """
estimator group norm_adv_by_std_in_grpo=False std=false
estimator group grpo_std_normalization=false std=false
estimator group scale_rewards=none std=false
estimator group scale_rewards=batch group_mean_batch_std
estimator gae gae_lambda=0.9 lam=0.9
estimator gae lambd=0.9 lam=0.9
estimator gae lambda=0.9 lam=0.9
estimator group_gae gae_lambda=0.9 lam=0.9
estimator decoupled_gae gae_lambda=0.9 lam_policy
loss clip clip_ratio=0.1 eps=0.1
loss clip clip-ratio=0.1 eps=0.1
loss clip clip_ratio_low=0.1 eps=0.1
loss clip cliprange=0.1 eps=0.1
loss clip epsilon=0.1 eps=0.1
loss clip epsilon_low=0.1 eps=0.1
loss clip eps_clip=0.1 eps=0.1
loss clip clip_ratio_high=0.3 eps_high=0.3
loss clip epsilon_high=0.3 eps_high=0.3
loss clip eps_clip_high=0.3 eps_high=0.3
loss clip clip_ratio_c=3 dual=3
loss clip delta=4 dual, or two_sided:delta=
loss two_sided clip_ratio_c=3 delta=3
loss two_sided clip_ratio=0.1 eps=0.1
loss cispo clip_ratio_high=0.3 eps_high=0.3
loss cispo epsilon_high=5 eps_high, with bound=absolute for that of TRL
loss cispo eps_clip_high=0.3 eps_high=0.3
loss gspo clip_ratio_low=3e-4 eps=3e-4
loss gspo_token clip_ratio_high=4e-4 eps_high=4e-4
loss gmpo clip_ratio=0.4 eps=0.4
loss sapo sapo_temperature_pos=1 tau_pos=1
loss sapo sapo_temperature_neg=1 tau_neg=1
loss clip_cov clip_cov_ratio=1e-3 fraction=1e-3
loss clip_cov clip_cov_lb=1 cov_low=1
loss clip_cov clip_cov_ub=5 cov_high=5
loss clip_cov clip_ratio=0.1 eps=0.1
loss kl_cov kl_cov_ratio=1e-3 fraction=1e-3
loss kl_cov ppo_kl_coef=1 beta=1
kl fixed beta=0.1 coef=0.1
kl fixed init_kl_coef=0.1 coef=0.1
kl fixed kl_coef=0.1 coef=0.1
kl adaptive kl_coef=0.1 coef=0.1
kl proportional init_kl_coef=0.1 coef=0.1
kl proportional target_kl=6 target=6
kl schedule kl_coef=0.1 start=0.1
kl fixed kl_loss_type=k2 estimator=k2
kl fixed kl_penalty=mse estimator=mse
kl fixed type=low_var_kl estimator=low_var_kl
kl adaptive kl_estimator=k3 estimator=k3
kl adaptive horizon=10000 proportional:horizon=
kl target_stop target_kl=0.1 target=0.1
"""

SETTINGS = """
loss_agg_mode=token-mean aggregation
loss_type=grpo aggregation
num_generations=8 group_size
n=8 group_size
n_samples_per_prompt=8 group_size
rollout_n=8 group_size
train_batch_size=64 prompts
rollout_batch_size=64 prompts
num_iterations=2 epochs
ppo_epochs=2 epochs
learning_rate=1e-4 lr
Learning-Rate=1e-4 lr
actor_lr=1e-4 lr
actor_rollout_ref.actor.optim.lr=1e-4 lr
actor_rollout_ref.rollout.n=8 group_size
loss_scale_factor=100 horizon
mini_batch_size=8 minibatches, the number of optimiser steps in an epoch, not their size
ppo_mini_batch_size=8 minibatches, the number of optimiser steps
micro_batch_size=8 microbatches, the number of parts of an optimiser step, not their size
total_epochs=2 updates, the number of rollouts, in which epochs are passes over one rollout
total_training_steps=2 updates
max_steps=2 updates
steps=2 updates
seed=3 -s
adv_estimator=grpo -e NAME
"""

OPTIONS_AS_SETTINGS = """
clip_ratio_high=0.28 -l clip:eps_high=0.28
epsilon_high=0.28 -l clip:eps_high=0.28
epsilon=0.1 -l clip:eps=0.1
actor_rollout_ref.actor.clip_ratio=0.1 -l clip:eps=0.1
loss.clip_ratio=0.1 -l clip:eps=0.1
kl_coef=0.1 -k adaptive:coef=0.1 or -k fixed:coef=0.1
algorithm.kl_ctrl.kl_coef=0.1 -k adaptive:coef=0.1 or -k fixed:coef=0.1
beta=0.1 -k adaptive:coef=0.1 or -k fixed:coef=0.1 or
norm_adv_by_std_in_grpo=False -e group:std=false
scale_rewards=none -e group:std=false for none
gae_lambda=0.9 -e gae:lam=0.9
"""

MODES = """
grpo seq_mean_token_mean
dapo token_mean
DAPO token_mean
bnpo token_mean_local
dr_grpo seq_mean_token_sum_norm
token-mean token_mean
seq-mean-token-sum-norm seq_mean_token_sum_norm for verl's, or token_sum_norm for
"""

COMPONENTS = """
kl kl_coef fixed:coef=
kl kl_loss_coef fixed:coef=
kl beta fixed:coef=
kl use_kl_loss fixed, with place=loss
kl use_kl_in_reward fixed:place=reward
kl abs fixed:estimator=abs,place=reward
kl full fixed:estimator=full
kl k1+ fixed:estimator=k1_plus
kl k3+ fixed:estimator=k3_plus
kl low_var_kl+ fixed:estimator=k3_plus
kl k3_ratio fixed, with estimator=k3_ratio
estimator REINFORCE++ reinforce_pp
estimator gdpo group for one reward
estimator gigpo group to compare completions
estimator tir_optimal_token_baseline opo for one baseline a completion
loss gepo gspo for a ratio
loss vespo gspo for a ratio
loss policy_gradient pg
loss bypass_mode clip; the ratio here
"""


def rows(table: str, columns: int) -> list[list[str]]:
    return [line.split(" ", columns - 1) for line in table.strip().splitlines()]


def refused(*arguments: str) -> str:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 2, done.output
    return done.stderr.replace("\n", " ")


@pytest.mark.parametrize(("kind", "name", "written", "advice"), rows(OPTIONS, 4))
def test_an_option_from_elsewhere_says_what_to_write(kind, name, written, advice):
    option = re.escape(written.partition("=")[0])
    with pytest.raises(UsageError) as caught:
        parse(REGISTRY, kind, f"{name}:{written}")
    message = str(caught.value)
    assert re.match(rf"unknown option '{option}' of {kind} '{name}' \(rlbench [^)]*\); ", message)
    assert re.search(rf"; write .*{re.escape(advice)}", message)
    assert "did you mean" not in message
    here = f"{name}:{advice}"
    if re.fullmatch(r"\S+=[^=\s]+", advice):
        parse(REGISTRY, kind, here)  # advice with a value can be followed


@pytest.mark.parametrize(("written", "advice"), rows(SETTINGS, 2))
def test_a_setting_from_elsewhere_says_what_to_write(written, advice):
    message = refused("plan", "--set", written)
    assert f"unknown setting '{written.partition('=')[0]}'; write {advice}" in message
    assert "did you mean" not in message
    assert f"; write {advice}" in refused("show", "setting", written.partition("=")[0])


@pytest.mark.parametrize(("written", "advice"), rows(OPTIONS_AS_SETTINGS, 2))
def test_an_option_from_elsewhere_is_no_setting(written, advice):
    assert f"an option of a component: write {advice}" in refused("plan", "--set", written)
    name = written.partition("=")[0]
    kind, selection = advice.split()[:2]
    flag = f"{kind} {selection.partition('=')[0]}="
    assert f"write {flag}" in refused("show", "setting", name)


def test_what_was_selected_is_named_first():
    message = refused("plan", "-l", "gspo", "--set", "clip_ratio=0.1")
    assert message.rstrip().endswith("write -l gspo:eps=0.1")
    message = refused("plan", "-l", "gspo", "--set", "clip_ratio=0.1,0.2")
    assert message.rstrip().endswith("write -l gspo:eps=0.1 -l gspo:eps=0.2")
    message = refused("plan", "-l", "penalty", "--set", "beta=0.1")
    assert message.rstrip().endswith("write -l penalty:beta=0.1")


@pytest.mark.parametrize(("mode", "advice"), rows(MODES, 2))
def test_an_aggregation_from_elsewhere_says_what_to_write(mode, advice):
    message = refused("plan", "--set", f"aggregation={mode}")
    assert f"trainer setting: aggregation={mode}: write {advice}" in message


@pytest.mark.parametrize(("kind", "name", "advice"), rows(COMPONENTS, 3))
def test_a_component_from_elsewhere_says_what_to_write(kind, name, advice):
    with pytest.raises(UsageError, match=f"unknown {kind} '{re.escape(name)}'; write ") as caught:
        REGISTRY.find(kind, name)
    assert f"write {advice}" in str(caught.value)


@pytest.mark.parametrize(
    ("written", "flag"),
    [
        ("estimator=gae", "-e gae"),
        ("loss=clip:eps=0.1", "-l clip:eps=0.1"),
        ("kl=fixed", "-k fixed"),
        ("task=sort", "-t sort"),
        ("model=nothing", "-m nothing"),
    ],
)
def test_a_kind_is_no_setting(written, flag):
    message = refused("plan", "--set", written)
    assert f"is no trainer setting but a kind: write {flag}" in message


def test_an_option_with_the_name_of_a_kind_stays_one():
    assert "write -e group:kl=after" in refused("plan", "--set", "kl=after")
    assert "write -k adaptive:estimator=k2" in refused("plan", "--set", "estimator=k2")


# the tables themselves


def test_every_name_of_an_option_leads_to_an_option():
    told = 0
    for component in REGISTRY.components():
        own = [option.name for option in options(component)]
        for name, text in component.elsewhere.items():
            if not name.startswith(":"):
                continue
            told += 1
            assert name[1:] not in own, (component.name, name)
            first = re.match(r"[\w:]+", text)[0].rstrip(":")
            selected, colon, option = first.partition(":")
            other = REGISTRY.find(component.kind, selected) if colon else component
            assert (option or selected) in [one.name for one in options(other)], (name, text)
            assert not colon or " " in text, "a selection needs its reason"
    assert told > 100


def test_every_setting_from_elsewhere_leads_to_a_setting_or_a_flag():
    flags = {"-s", "-e", "-l"}
    names = [name for names in elsewhere.NAMES.values() for name in names]
    assert len(names) == len(set(names))
    assert not set(names) & set(NAMES)
    for text in elsewhere.NAMES:
        assert text.replace(",", " ").split()[0] in {*NAMES, *flags}


def test_every_mode_from_elsewhere_is_the_one_of_the_documented_table():
    for written, advice in elsewhere.VALUES["aggregation"].items():
        modes = re.findall(r"\w+_\w+", advice)
        assert set(modes) <= set(aggregation.MODES)
        for mode in modes:
            block = re.search(rf"^{mode} .*\n(?: .*\n)*", aggregation.__doc__, re.MULTILINE)[0]
            same = written.replace("-", "_") == mode
            assert same or f"``{written}``" in block, (written, mode)


# names that are near, and names that are not


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("gea", "gae"),
        ("cov_kl", "kl_cov"),
        ("epz", "eps"),
        ("GAE", "gae"),
        ("rlo", "rloo"),
        ("reinforce_baselin", "reinforce_baseline"),
        ("group_mean", "group_mean_batch_std"),
    ],
)
def test_a_slip_has_a_near_name(written, meant):
    known = ["gae", "kl_cov", "eps", "rloo", "reinforce_baseline", "group_mean_batch_std", "gspo"]
    assert nearest(written, known) == meant


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("estimator", "treepo"),
        ("estimator", "steppo"),
        ("loss", "treepo"),
        ("estimator", "vespo"),
        ("estimator", "x"),
    ],
)
def test_another_algorithm_is_not_taken_for_a_slip(kind, name):
    with pytest.raises(UsageError, match=f"^unknown {kind} '{name}'") as caught:
        REGISTRY.find(kind, name)
    assert "did you mean" not in str(caught.value)


def test_one_wrong_letter_of_two_is_no_slip():
    assert nearest("k9", ["k1", "k2"]) is None
    assert nearest("g", ["gae"]) is None
    assert nearest("re", ["remax", "rloo", "reinforce"]) is None


# what is shown


def test_show_finds_the_kind():
    shown = CliRunner().invoke(cli, ["show", "grpo"])
    assert shown.exit_code == 0
    assert shown.stdout.startswith("estimator group:")
    assert CliRunner().invoke(cli, ["show", "clip:eps=0.1"]).stdout.startswith("loss clip:")
    assert CliRunner().invoke(cli, ["show", "lr"]).stdout.startswith("setting\n  lr=")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gpg"], "rlbench show estimator gpg or rlbench show loss gpg"),
        (["dapo"], "rlbench show estimator dapo or rlbench show loss dapo"),
        (["dual_clip"], "unknown loss 'dual_clip'; write clip:dual=3"),
        (["clip:epsilon=0.1"], "write eps=0.1"),
        (["clpi"], "unknown component or setting 'clpi'; did you mean 'clip'?"),
        (["loss"], "show loss: which one? write rlbench show loss NAME"),
        (["run"], "show run: which one? write rlbench show run ID"),
        (["learning_rate"], "unknown setting 'learning_rate'; write lr"),
        (["clip_ratio"], "an option of a component: write -l clip:eps=VALUE"),
        (["lam"], "an option of a component: write -e gae:lam=VALUE"),
        (["clip", "-o", "results"], "-o names a folder of results"),
    ],
)
def test_show_without_a_kind_says_what_it_lacks(arguments, message, monkeypatch, tmp_path):
    plugin = tmp_path / "named_twice.py"
    plugin.write_text(
        "from rlbench import hookimpl\n"
        "def gpg(rollout): ...\n"
        "@hookimpl\n"
        "def rlbench_register_estimators(register):\n"
        "    register('gpg', f'{__name__}:gpg', summary='Text.')\n"
    )
    monkeypatch.setenv("RLBENCH_DISABLE_PLUGINS", "rlbench_research,research,rlbench-research")
    assert message in refused("show", *arguments, "--plugin", str(plugin))


def test_options_are_shown_with_their_names_elsewhere():
    text = component_text(REGISTRY.find("loss", "clip"), 200)
    assert "Elsewhere: clip_ratio, clip_ratio_low, cliprange," in text
    assert "Elsewhere: clip_ratio_c, ratio_clip_c, eps_clip_c, dual_clip, delta.\n" in text
    assert ":clip_ratio" not in text
    assert "Elsewhere: learning_rate, actor_lr, actor_learning_rate." in setting_text("lr", 200)
    assert "Elsewhere" not in setting_text("base_score")


def test_the_modes_of_aggregations_are_shown_without_stray_blanks():
    text = setting_text("aggregation")
    assert "older copies of verl (no mean over rows)" in " ".join(text.split())
    assert not re.search(r"\S +[,;.]", text)


def test_an_estimate_that_does_not_exist_lists_all_names_of_those_that_do():
    with pytest.raises(UsageError, match=r"also understood: kl, mse, low_var_kl, k1\+, k2\+, k3"):
        parse(REGISTRY, "kl", "fixed:estimator=nothing")
    assert parse(REGISTRY, "kl", "fixed:estimator=low_var_kl+").options["estimator"] == "k3_plus"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clip_ratio": 0.1}, "write -l clip:eps=0.1"),
        ({"learning_rate": 0.1}, "unknown setting 'learning_rate'; write lr"),
        ({"aggregation": "grpo"}, "write seq_mean_token_mean"),
    ],
)
def test_settings_in_python_are_answered_alike(settings, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        rlbench.run(settings=settings, out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_component_in_python_has_its_options_as_arguments():
    with pytest.raises(UsageError, match=r"keyword arguments of what it returns: rlbench\.comp"):
        rlbench.component("estimator", "gae:lam=0.9")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            "[axes]\nclip_ratio_high = [0.28]",
            "axes.clip_ratio_high: 'clip_ratio_high' is no trainer setting but an option of a "
            'component: write loss = "clip:eps_high=0.28" under [axes]',
        ),
        (
            "gae_lambda = 0.9",
            "gae_lambda: 'gae_lambda' is no trainer setting but an option of a component: write "
            'estimator = "gae:lam=0.9" under [axes]',
        ),
        (
            "[[zip]]\nkl_coef = [0.1, 0.2]\nlr = [1e-3, 1e-4]",
            "zip[1].kl_coef: 'kl_coef' is no trainer setting but an option of a component: write "
            'kl = "adaptive:coef=0.1" under [axes] or kl = "fixed:coef=0.1" under [axes]',
        ),
        (
            "[axes]\nlearning_rate = [1e-4]",
            "unknown key 'axes.learning_rate'; write lr (under [settings])",
        ),
        ("[axes]\nadv_estimator = 'grpo'", "unknown key 'axes.adv_estimator'; write -e NAME"),
        ("[axes]\nlos = 'pg'", "unknown key 'axes.los'; did you mean 'loss'?"),
    ],
)
def test_keys_of_a_file_are_translated_wherever_they_stand(
    tmp_path: Path, written: str, message: str
) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(written, "utf-8")
    done = CliRunner().invoke(cli, ["plan", str(path)])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"rlbench: {path}: {message}")
    assert len(done.stderr.splitlines()) == 1
