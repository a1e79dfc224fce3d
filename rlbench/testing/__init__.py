"""What a plugin author needs for tests: inputs from lists, and the conformance kit.

Build inputs for hand-computed cases::

    rollout = make_rollout(reward=[1, 0, 0, 0.5], mask=[[1, 1], [1], [1, 1], [1]])
    batch = make_batch(logp=[[-1.0, -2.0]], old_logp=[[-1.1, -2.0]], advantages=[[1.0, 1.0]])

Hold a component to the rules of its kind, one test for each rule::

    @pytest.mark.parametrize("check", rlbench.testing.checks("estimator", "gpg"), ids=str)
    def test_conforms(check):
        check()

A rule that a component breaks on purpose is declared at its registration, with the reason, and
becomes a skipped test: ``register(..., exceptions={"on_policy_gradient": "why"})``.
"""

from rlbench.testing.conformance import Check, checks
from rlbench.testing.inputs import make_batch, make_rollout

__all__ = ["Check", "checks", "make_batch", "make_rollout"]
