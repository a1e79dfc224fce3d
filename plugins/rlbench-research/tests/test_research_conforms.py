import pytest

from rlbench.testing import checks

COMPONENTS = [("estimator", "gpg"), ("estimator", "max_rl"), ("loss", "simple_po")]


@pytest.mark.parametrize(
    "check", [check for kind, name in COMPONENTS for check in checks(kind, name)], ids=str
)
def test_conforms(check):
    check()
