"""Advantage estimators: how much better than expected was each token?

All return (B, T) advantages, positive for better than expected and 0 outside the mask. Rows without
a reward (NaN) take part in nothing and get 0. Statistics are taken in float64, so that neither the
order of rows nor rounding residue becomes signal.

=============== ==================================================================================
module          what an outcome is compared with
=============== ==================================================================================
`group`         other completions of the same prompt: group (GRPO), dr_grpo, rloo, opo, ...
`reinforce`     the batch, or the greedy completion: reinforce, reinforce_pp, remax, ...
`critic`        a learned value of every state: gae, mc_returns, decoupled_gae, ...
=============== ==================================================================================

`outcome` and `discount` hold the mathematics that they share.
"""
