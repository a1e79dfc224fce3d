import pytest

from rlbench.testing import checks

COMPONENTS = [("estimator", "gpg"), ("estimator", "max_rl"), ("loss", "simple_po")]
COMPONENTS += [
    ("estimator", name)
    for name in ("passk_best", "passk_analytic", "pkpo", "positives_only", "negatives_only")
]
COMPONENTS += [("estimator", "w_reinforce")]
COMPONENTS += [("loss", name) for name in ("dppo_tv", "dppo_kl", "topr", "dro", "awr")]


@pytest.mark.parametrize(
    "check", [check for kind, name in COMPONENTS for check in checks(kind, name)], ids=str
)
def test_conforms(check):
    check()
