"""The registry's suite takes defaults; options are held to the same rules here."""

import pytest

from rlbench.testing import checks

VARIANTS = [
    ("group", {"leave_one_out": True}),
    ("group", {"leave_one_out": True, "std": False}),
    ("group", {"ddof": 0, "eps": 0.0}),
    ("group", {"kl": "after"}),
    ("group", {"singleton": "raw"}),
    ("dr_grpo", {"kl": "per_token", "singleton": "raw"}),
    ("rloo", {"kl": "after", "singleton": "raw"}),
    ("opo", {"singleton": "raw"}),
    ("group_mean_batch_std", {"spread_of": "centred", "ddof": 0, "eps": 0.0}),
    ("reinforce", {"baseline": "none"}),
    ("reinforce", {"std": True, "eps": 0.0}),
    ("reinforce_pp", {"kl": "per_token", "gamma": 0.9}),
    ("reinforce_pp", {"whiten": False, "gamma": 0.5}),
    ("reinforce_pp_baseline", {"kl": "after", "ddof": 0}),
    ("reinforce_pp_baseline", {"kl": "per_token", "whiten": False}),
    ("gae", {"gaps": "zero", "truncation": "bootstrap", "gamma": 0.9}),
    ("gae", {"lam": 0.0, "whiten": True}),
    ("mc_returns", {"truncation": "bootstrap", "gamma": 0.9}),
    ("decoupled_gae", {"lam_policy": 0.0, "truncation": "bootstrap"}),
    ("length_adaptive_gae", {"alpha": 1.0, "whiten": True}),
    ("group_gae", {"ddof": 0, "eps": 0.0, "truncation": "bootstrap"}),
]


CHECKS = [
    check
    for name, options in VARIANTS
    for check in checks("estimator", name, options=options)
    # gaps=zero is the library's meaning that breaks this rule, and is there to be compared with
    if not (options.get("gaps") == "zero" and check.rule.name == "gaps")
]


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_options_conform(check):
    check()
