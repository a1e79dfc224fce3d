"""Policy losses: what an optimiser step minimises, for each token and unreduced.

A positive advantage means that a step raises the token's log-probability. ``r`` is
``exp(logp - old_logp)``. One module for each idea:

============= ====================================================================
`plain`       no bound on the ratio, or none in the loss: pg, importance, penalty
`clipping`    the gradient stops at a bound: clip, two_sided
`weighting`   the gradient is kept and its weight is bounded: cispo, sapo
`sequence`    one ratio for a whole completion: gspo, gspo_token, gmpo
`selecting`   a few tokens of the whole step are treated apart: clip_cov, kl_cov
============= ====================================================================
"""
