"""What other libraries call the options of the built-in components.

For ``elsewhere=`` of `rlbench.hookspecs`: each name with the option to write here. Names come from
verl, TRL, OpenRLHF, slime, ROLL, CleanRL and Stable-Baselines3.
"""

from __future__ import annotations


def _options(**named: str) -> dict[str, str]:
    """Write down names by the option here: ``eps="cliprange epsilon"``."""
    return {f":{name}": option for option, names in named.items() for name in names.split()}


_HIGH = "clip_ratio_high epsilon_high eps_clip_high clip_higher"
BOUNDS = _options(
    eps="clip_ratio clip_ratio_low cliprange clip_range clip_eps epsilon epsilon_low eps_clip "
    "eps_clip_low eps_low",
    eps_high=_HIGH,
)
CLIP = BOUNDS | _options(dual="clip_ratio_c ratio_clip_c eps_clip_c dual_clip")
CLIP[":delta"] = "dual, or two_sided:delta= to bound positive advantages too"
TWO_SIDED = BOUNDS | _options(delta="clip_ratio_c ratio_clip_c eps_clip_c")
CISPO = BOUNDS | {
    # the one name under which a library has another bound
    ":epsilon_high": "eps_high, with bound=absolute for that of TRL"
}
CLIP_COV = BOUNDS | _options(
    fraction="clip_cov_ratio clip_ratio_cov", cov_low="clip_cov_lb", cov_high="clip_cov_ub"
)
KL_COV = _options(fraction="kl_cov_ratio", beta="ppo_kl_coef")
SAPO = _options(
    tau_pos="sapo_temperature_pos temperature_pos", tau_neg="sapo_temperature_neg temperature_neg"
)

GROUP = _options(std="norm_adv_by_std_in_grpo grpo_std_normalization std_normalization") | {
    ":scale_rewards": "std=false for none or False, or group_mean_batch_std for batch"
}
GAE = _options(lam="gae_lambda lambd lambda lmbda", gamma="discount discount_factor")
DECOUPLED_GAE = {
    f":{name}": "lam_policy, and lam_critic for the critic's"
    for name in ("lam", "gae_lambda", "lambd", "lambda")
}

_ESTIMATE = _options(estimator="kl_loss_type kl_penalty kl_penalty_type kl_estimator type")
_COEF = "beta kl_coef kl_loss_coef init_kl_coef init_coef kl_beta"
PENALTY = _ESTIMATE | _options(coef=_COEF)
SCHEDULE = _ESTIMATE | _options(start=_COEF)
STEERED = PENALTY | _options(target="target_kl kl_target")
ADAPTIVE = STEERED | {
    f":{name}": "proportional:horizon=, which is what verl and TRL call adaptive"
    for name in ("horizon", "kl_horizon")
}
PROPORTIONAL = STEERED | _options(horizon="kl_horizon")
STOP = _options(target="target_kl kl_target")
PENALTY_ALONE = {
    "kl_coef": "fixed:coef=0.001 for verl's, 0.01 for OpenRLHF's",
    "kl_loss_coef": "fixed:coef=0.001 for verl's",
    "init_kl_coef": "fixed:coef=0.01 for OpenRLHF's",
    "beta": "fixed:coef=0.04 for that of GRPO as published",
    "use_kl_loss": "fixed, with place=loss as it comes",
    "use_kl_in_reward": "fixed:place=reward",
    "kl": "fixed:place=reward",
    "k1": "fixed:place=reward",
    "k1+": "fixed:estimator=k1_plus",
    "mse": "fixed:estimator=k2",
    "k2": "fixed:estimator=k2",
    "k2+": "fixed:estimator=k2",
    "low_var_kl": "fixed:estimator=k3",
    "k3": "fixed:estimator=k3",
    "k3+": "fixed:estimator=k3_plus",
    "low_var_kl+": "fixed:estimator=k3_plus",
    "k3_ratio": "fixed, with estimator=k3_ratio as it comes",
    "abs": "fixed:estimator=abs,place=reward",
    "full": "fixed:estimator=full",
}
